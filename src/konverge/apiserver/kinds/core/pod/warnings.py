"""Warnings about pods and templates: what is accepted, but hardly meant. Upstream: pkg/api/pod/warnings.go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.kinds.core.nodes import deprecated_label, term_warnings
from konverge.apiserver.kinds.core.pod.annotations import APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from konverge.apiserver.kinds.core.pod.scope import containers_of
from konverge.apiserver.kinds.core.volume.warnings import overlapping_paths, volume_warnings
from konverge.apiserver.kinds.rules.network import ip_warnings
from konverge.apiserver.kinds.rules.quantities import is_whole

_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'

Spec = dict[str, Any]


def template_warnings(template: dict[str, Any], path: str) -> Iterable[str]:  # upstream: GetWarningsForPodTemplate
    """Warnings about the template of a workload: `template_warnings(spec["template"], "spec.template")`."""
    return pod_warnings(template.get("metadata") or {}, template.get("spec") or {}, f"{path}.")


# upstream: warningsForPodSpecAndMeta
def pod_warnings(metadata: dict[str, Any], spec: Spec, prefix: str) -> Iterable[str]:
    """`prefix` is "" for a pod, "spec.template." for a template."""
    path, annotations = f"{prefix}spec", metadata.get("annotations") or {}
    yield from _placement(spec, path)
    for key, detail in _ANNOTATIONS.items():
        if key in annotations:
            yield f"{prefix}metadata.annotations[{key}]: {detail}"
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from volume_warnings(volume, f"{path}.volumes[{index}]")
    yield from overlapping_paths(spec.get("volumes") or ())
    yield from _repeated(spec, path)
    for name in ("memory", "ephemeral-storage"):
        yield from _fraction(spec.get("overhead"), name, f"{path}.overhead")
    yield from _security_annotations(annotations, spec, prefix)
    for container, place in containers_of(spec, path):
        yield from _container(container, place, annotations, spec, prefix)
    yield from _ports(spec, path)
    yield from _remaining_warnings(spec, path)


def _placement(spec: Spec, path: str) -> Iterable[str]:  # upstream: warningsForPodSpecAndMeta
    for key in sorted(spec.get("nodeSelector") or ()):
        if deprecated_label(key):
            yield f"{path}.nodeSelector[{key}]: {deprecated_label(key)}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for index, term in enumerate((affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        place = f"{path}.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{index}]"
        yield from term_warnings(term, place, check_values=False)
    for index, entry in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.affinity.nodeAffinity.{_PREFERRED}[{index}].preference"
        yield from term_warnings(entry.get("preference") or {}, place, check_values=True)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey") or ""
        if deprecated_label(key):
            yield f"{place}.topologyKey: {key} is {deprecated_label(key)}"
        if constraint.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_NULL_SELECTOR}"


def _repeated(spec: Spec, path: str) -> Iterable[str]:  # upstream: warningsForPodSpecAndMeta
    seen: set[str] = set()
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        if alias.get("ip") in seen:
            yield f"{path}.hostAliases[{index}].ip: duplicate ip {quote(alias['ip'])}"
        seen.add(alias.get("ip") or "")
    names: set[str] = set()
    secrets = spec.get("imagePullSecrets") or ()
    for index, secret in enumerate(secrets):
        name = secret.get("name") or ""
        if name in names:
            yield f"{path}.imagePullSecrets[{index}].name: duplicate name {quote(name)}"
        names.add(name)
    for index, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _fraction(resources: Spec | None, name: str, path: str) -> Iterable[str]:  # upstream: warningsForPodSpecAndMeta
    if resources and name in resources and not is_whole(resources[name]):
        value = quote(str(resources[name]))
        yield f"{path}[{name}]: fractional byte value {value} is invalid, must be an integer"


# upstream: warningsForPodSpecAndMeta
def _security_annotations(annotations: dict[str, str], spec: Spec, prefix: str) -> Iterable[str]:
    if SECCOMP_POD in annotations and not (spec.get("securityContext") or {}).get("seccompProfile"):
        yield f"{prefix}metadata.annotations[{SECCOMP_POD}]: {_SECCOMP}"


# upstream: warningsForPodSpecAndMeta
def _container(container: Spec, path: str, annotations: dict[str, str], spec: Spec, prefix: str) -> Iterable[str]:
    context, name = container.get("securityContext") or {}, container.get("name") or ""
    if annotations:
        if SECCOMP_CONTAINER + name in annotations and not context.get("seccompProfile"):
            yield f"{prefix}metadata.annotations[{SECCOMP_CONTAINER}{name}]: {_SECCOMP}"
        if prefix and APP_ARMOR + name in annotations and not context.get("appArmorProfile"):
            detail = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            yield f"{prefix}metadata.annotations[{APP_ARMOR}{name}]: {detail}"
    resources = container.get("resources") or {}
    for resource in ("memory", "ephemeral-storage"):
        for which in ("limits", "requests"):
            yield from _fraction(resources.get(which), resource, f"{path}.resources.{which}")
    yield from _hidden_env(container.get("env") or (), path)


def _hidden_env(env: Iterable[Spec], path: str) -> Iterable[str]:  # upstream: warningsForPodSpecAndMeta
    seen: set[str] = set()
    for index, entry in enumerate(env):
        name, value = entry.get("name") or "", entry.get("value") or ""
        reference = f"$({name})"
        if name not in seen:
            seen.add(name)
        elif entry.get("valueFrom") is not None or value == reference or reference not in value:
            detail = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            yield f"{path}.env[{index}]: {detail}"


def _go_port(port: Spec) -> str:
    """A ContainerPort as Go prints a struct."""
    return (
        f"{{Name:{port.get('name') or ''} HostPort:{port.get('hostPort') or 0} "
        f"ContainerPort:{port.get('containerPort') or 0} Protocol:{port.get('protocol') or ''} "
        f"HostIP:{port.get('hostIP') or ''}}}"
    )


def _clash(port: Spec, other: Spec) -> str:  # upstream: warningsForPodSpecAndMeta
    host, outside = port.get("hostIP") or "", port.get("hostPort") or 0
    other_host, other_outside = other.get("hostIP") or "", other.get("hostPort") or 0
    if host == other_host and outside == other_outside:
        return "duplicate"
    if not outside or not other_outside:
        return "overlapping"
    ambiguous = outside == other_outside and bool(host) != bool(other_host)
    return "dangerously ambiguous" if ambiguous else ""


def _ports(spec: Spec, path: str) -> Iterable[str]:  # upstream: warningsForPodSpecAndMeta
    taken: dict[str, list[tuple[str, Spec]]] = {}
    listed = [
        (f"{place}.ports[{index}]", port)
        for container, place in containers_of(spec, path)
        for index, port in enumerate(container.get("ports") or ())
    ]
    for place, port in listed:
        if port.get("hostIP") and not port.get("hostPort"):
            yield f"{place}: hostIP set without hostPort: {_go_port(port)}"
        others = taken.setdefault(f"{port.get('containerPort') or 0}/{port.get('protocol')}", [])
        for other_place, other in others:
            clash = _clash(port, other)
            if clash:
                yield f"{place}: {clash} port definition with {other_place}"
        others.append((place, port))
    names: dict[str, str] = {}
    for place, port in listed:
        name = port.get("name")
        if name and name in names:
            use = f"services and probes that select ports by name will use {names[name]}"
            yield f"{place}: duplicate port name {quote(name)} with {names[name]}, {use}"
        elif name:
            names[name] = place


# upstream: warningsForPodSpecAndMeta, warningsForPodAffinityTerms, warningsForWeightedPodAffinityTerms
def _remaining_warnings(spec: Spec, path: str) -> Iterable[str]:
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        detail = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {detail}"
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(kind) or {}
        for index, term in enumerate(affinity.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.affinity.{kind}.{_REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}"
        for index, entry in enumerate(affinity.get(_PREFERRED) or ()):
            if (entry.get("podAffinityTerm") or {}).get("labelSelector") is None:
                place = f"{path}.affinity.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector"
                yield f"{place}: {_NULL_SELECTOR}"
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from ip_warnings(f"{path}.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_warnings(f"{path}.hostAliases[{index}].ip", alias.get("ip") or "")
