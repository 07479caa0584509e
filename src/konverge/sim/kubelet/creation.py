"""Why a kubelet does not create a container although all that it refers to is there. Pure.

Upstream: makeMounts (pkg/kubelet/kubelet_pods.go) and verifyRunAsNonRoot (pkg/kubelet/kuberuntime).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from konverge.objects.kinds.core_v1 import Container, EnvVar, Pod

_REFERENCE = re.compile(r"\$(?:\$|\(([^()]*)\))")


def creation_error(pod: Pod, spec: Container) -> str:
    """The message of a `CreateContainerConfigError`, or an empty text."""
    return _sub_path_error(pod, spec) or _root_error(pod, spec)


def _root_error(pod: Pod, spec: Container) -> str:
    own, shared = spec.security_context, pod.spec.security_context
    non_root = own.run_as_non_root if own is not None and own.run_as_non_root is not None else None
    user = own.run_as_user if own is not None and own.run_as_user is not None else None
    if shared is not None:
        non_root = shared.run_as_non_root if non_root is None else non_root
        user = shared.run_as_user if user is None else user
    if not non_root or user != 0:
        return ""
    meta = pod.metadata
    name = f"{meta.name}_{meta.namespace}({meta.uid})"
    return f'container\'s runAsUser breaks non-root policy (pod: "{name}", container: {spec.name})'


def _sub_path_error(pod: Pod, spec: Container) -> str:
    mounts = [mount for mount in spec.volume_mounts if mount.sub_path_expr]
    values = _environment(pod, spec) if mounts else {}
    for mount in mounts:
        expression = mount.sub_path_expr or ""
        path = _expanded(expression, values)
        refusal = missing_values(expression, values) or ("" if path is None else sub_path_refusal(path))
        if refusal:
            return refusal
    return ""


def missing_values(expression: str, values: Mapping[str, str | None]) -> str:
    """Which variables of a subPathExpr have no value, as the kubelet says it. Upstream: ExpandContainerVolumeMounts."""
    missing = sorted({name for name in _REFERENCE.findall(expression) if name and values.get(name, "") == ""})
    return f"missing value for {', '.join(missing)}" if missing else ""


def sub_path_refusal(path: str) -> str:
    """Why a path cannot be one within a volume, as the kubelet says it, or an empty text."""
    if path.startswith("/"):
        return f"error SubPath `{path}` must not be an absolute path"
    if ".." in path.split("/"):
        return f"unable to provision SubPath `{path}`: must not contain '..'"
    return ""


def _environment(pod: Pod, spec: Container) -> dict[str, str | None]:
    """The container's variables; None where the value is not known here."""
    values: dict[str, str | None] = {}
    for variable in spec.env:
        values[variable.name] = _value(pod, variable, values)
    if spec.env_from:  # which may hold any other
        names = {name for mount in spec.volume_mounts for name in _REFERENCE.findall(mount.sub_path_expr or "")}
        return {**dict.fromkeys(names), **values}
    return values


def _value(pod: Pod, variable: EnvVar, before: Mapping[str, str | None]) -> str | None:
    source = variable.value_from
    if source is None:
        return _expanded(variable.value or "", before)
    if source.field_ref is None:
        return None
    meta, spec = pod.metadata, pod.spec
    path = source.field_ref.field_path
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
    if keyed is not None:
        return (meta.labels if keyed[1] == "labels" else meta.annotations).get(keyed[2], "")
    known = {"metadata.name": meta.name, "metadata.namespace": meta.namespace, "metadata.uid": meta.uid}
    known |= {"spec.nodeName": spec.node_name or "", "spec.serviceAccountName": spec.service_account_name or ""}
    return known.get(path)


def _expanded(text: str, values: Mapping[str, str | None]) -> str | None:
    """A text with its references written out; None where a value is not known. Upstream: expansion.Expand."""
    names = {name for name in _REFERENCE.findall(text) if name}
    if any(values.get(name, "") is None for name in names):
        return None

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else values[name] or "" if name in values else match[0]

    return _REFERENCE.sub(replaced, text)
