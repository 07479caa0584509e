"""PodSecurity: pods that violate the standard of their namespace are refused, workloads are warned of.

A namespace says by labels which standard it enforces, and of which it warns. The checks are in
`pod_security_checks.py`. Upstream: k8s.io/pod-security-admission, api and admission.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from konverge.apiserver import field_errors, status
from konverge.apiserver.admission.plugin import Kind, Step, Validating
from konverge.apiserver.admission.pod_security_checks import BASELINE, RESTRICTED, CheckFunction, Finding
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj

_PREFIX = "pod-security.kubernetes.io/"
_PREFIX_BYTES = _PREFIX.encode()
_LEVELS = ("privileged", "baseline", "restricted")
_LATEST = 1 << 30
"""The minor version that is newer than all others."""
_VERSION = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")
_IGNORED = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
_TEMPLATES = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_MOST_PODS = 3000
"""Pods of a namespace that are checked when its labels change. Upstream: defaultNamespaceMaxPodsToCheck."""


# --- the policy of a namespace


class Standard(msgspec.Struct, frozen=True):
    level: str = "privileged"
    minor: int = _LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == _LATEST else f'v1.{self.minor}'}"

    @property
    def strictness(self) -> int:
        return _LEVELS.index(self.level)


class Policy(msgspec.Struct, frozen=True):
    """What is refused, and what is warned of. Audits go to a log that this server does not keep."""

    enforce: Standard
    warn: Standard


def _policy_of(labels: dict[str, str] | None) -> tuple[Policy, list[FieldError]]:
    """The policy that labels ask for. A level that cannot be read is `restricted` for enforcing, else `privileged`.

    Upstream: PolicyToEvaluate (api/helpers.go).
    """
    errors: list[FieldError] = []
    if not labels:
        return Policy(Standard(), Standard()), errors
    enforce, valid = _standard(labels, "enforce", "restricted", errors)
    _standard(labels, "audit", "privileged", errors)
    warn, _ = _standard(labels, "warn", "privileged", errors)
    if f"{_PREFIX}warn" not in labels and valid and enforce.strictness > warn.strictness:
        warn = Standard(enforce.level, warn.minor if f"{_PREFIX}warn-version" in labels else enforce.minor)
    return Policy(enforce, warn), errors


def _standard(labels: dict[str, str], mode: str, fallback: str, errors: list[FieldError]) -> tuple[Standard, bool]:
    """The standard of a mode, and whether its level was given and is valid."""
    level, minor, valid = "privileged", _LATEST, False
    label = f"{_PREFIX}{mode}"
    if label in labels:
        valid = labels[label] in _LEVELS
        level = labels[label] if valid else fallback
        if not valid:
            path = f"metadata.labels[{label}]"
            errors.append(field_errors.invalid(path, labels[label], f"must be one of {', '.join(_LEVELS)}"))
    label = f"{_PREFIX}{mode}-version"
    if label in labels and labels[label] != "latest":
        version = _VERSION.fullmatch(labels[label])
        if version is None:
            path = f"metadata.labels[{label}]"
            errors.append(field_errors.invalid(path, labels[label], 'must be "latest" or "v1.x"'))
        else:
            minor = int(version[1])
    return Standard(level, minor), valid


# --- whether a pod meets a standard


@lru_cache(maxsize=256)
def _checks(standard: Standard) -> tuple[CheckFunction, ...]:
    """The checks of a standard, those of baseline first. Upstream: checkRegistry (policy/registry.go)."""
    minor = standard.minor
    if standard.level == "privileged":
        return ()
    strict = [check for check in RESTRICTED if check.at(minor)] if standard.level == "restricted" else []
    replaced = {check.replaces for check in strict}
    checks = [check for check in BASELINE if check.id not in replaced] + strict
    return tuple(function for check in checks if (function := check.at(minor)) is not None)


def _findings(standard: Standard, metadata: Obj, spec: Obj) -> list[Finding]:
    return [finding for check in _checks(standard) if (finding := check(metadata, spec)) is not None]


def _detailed(findings: list[Finding]) -> str:
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in findings)


# --- the plugin


class PodSecurity(Validating):
    def validate(self, kind: Kind) -> Step | None:
        if kind.operation not in ("CREATE", "UPDATE"):
            return None
        if (kind.group, kind.plural) == ("", "pods"):
            return None if kind.subresource in _IGNORED else _check_pod
        if kind.subresource:
            return None
        if (kind.group, kind.plural) == ("", "namespaces"):
            return _check_namespace
        path = _TEMPLATES.get((kind.group, kind.plural))
        return None if path is None else _template_warning(path)


def _template_warning(path: tuple[str, ...]) -> Step:
    """Upstream: ValidatePodController."""

    def warn(request: AdmissionRequest) -> None:
        policy = _policy(request)
        template: Obj | None = request.obj
        if policy is not None:
            for key in path:
                template = (template or {}).get(key)
            if template is not None:
                _warn(request, policy, template)

    return warn


def _policy(request: AdmissionRequest) -> Policy | None:
    """The policy of the request's namespace, None if it has none."""
    record = request.call.server.store.get("/namespaces", request.namespace)
    if record is None or not record.labels or _PREFIX_BYTES not in record.data:
        return None
    return _policy_of(record.labels)[0]


def _check_pod(request: AdmissionRequest) -> None:
    """Upstream: ValidatePod, EvaluatePod."""
    policy = _policy(request)
    if policy is None or (request.old is not None and not _is_significant(request.new, request.old)):
        return
    findings = _findings(policy.enforce, request.new["metadata"], request.new.get("spec") or {})
    if findings:
        why = f"violates PodSecurity {quote(str(policy.enforce))}: {_detailed(findings)}"
        raise status.forbidden("", "pods", request.name, why)
    _warn(request, policy, request.new)


def _warn(request: AdmissionRequest, policy: Policy, pod: Obj) -> None:
    findings = _findings(policy.warn, pod.get("metadata") or {}, pod.get("spec") or {})
    if findings:
        request.call.warn(f"would violate PodSecurity {quote(str(policy.warn))}: {_detailed(findings)}")


def _is_significant(pod: Obj, old: Obj) -> bool:
    """Whether an update changes what standards are about: of a pod that exists, only images can change.

    Upstream: isSignificantPodUpdate.
    """
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    for key in ("containers", "initContainers"):
        images = [[c.get("image") for c in spec.get(key) or ()] for spec in (new_spec, old_spec)]
        if images[0] != images[1]:
            return True
    before = {c.get("name"): c.get("image") for c in old_spec.get("ephemeralContainers") or ()}
    ephemeral = new_spec.get("ephemeralContainers") or ()
    return any(c.get("name") not in before or before[c.get("name")] != c.get("image") for c in ephemeral)


def _check_namespace(request: AdmissionRequest) -> None:
    """Labels that cannot be read are refused; existing pods are warned of. Upstream: ValidateNamespace."""
    policy, errors = _policy_of(request.new["metadata"].get("labels"))
    if request.old is None:
        if errors:
            raise status.invalid("", "Namespace", request.name, errors)
        return
    old, old_errors = _policy_of(request.old["metadata"].get("labels"))
    if errors and errors != old_errors:
        raise status.invalid("", "Namespace", request.name, errors)
    new = policy.enforce
    if new == old.enforce or new.level == "privileged":
        return
    if new.minor == old.enforce.minor and new.strictness <= old.enforce.strictness:
        return
    for text in _violations(request, new):
        request.call.warn(text)


def _violations(request: AdmissionRequest, standard: Standard) -> list[str]:
    """Upstream: EvaluatePodsInNamespace, decoratePodWarnings."""
    pods = _prioritized(list(request.call.scan("", "pods", request.name)))
    names_by_reasons: dict[str, list[str]] = {}
    for pod in pods[:_MOST_PODS]:
        findings = _findings(standard, pod["metadata"], pod.get("spec") or {})
        if findings:
            reasons = ", ".join(reason for reason, _ in findings)
            names_by_reasons.setdefault(reasons, []).append(pod["metadata"]["name"])
    texts = []
    if len(pods) > _MOST_PODS:
        checked = f"the first {_MOST_PODS} of {len(pods)} existing pods"
        texts.append(f"new PodSecurity enforce level only checked against {checked}")
    if names_by_reasons:
        where = f"existing pods in namespace {quote(request.name)} violate"
        texts.append(f"{where} the new PodSecurity enforce level {quote(str(standard))}")
    return texts + sorted(f"{_first(names)}: {reasons}" for reasons, names in names_by_reasons.items())


def _first(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other {'pod' if others == 1 else 'pods'})"


def _prioritized(pods: list[Obj]) -> list[Obj]:
    """One pod of each controller before its others, so that those checked represent all. Upstream: prioritizePods."""
    first: list[Obj] = []
    more: list[Obj] = []
    seen: set[str] = set()
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((str(owner.get("uid")) for owner in owners if owner.get("controller")), "")
        (more if controller in seen else first).append(pod)
        if controller:
            seen.add(controller)
    return first + more
