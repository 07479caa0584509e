"""Environment variables of containers, and references to fields and resources of the pod itself.

Upstream: pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, Rule, field, items, required, struct, text
from konverge.apiserver.kinds.rules.names import (
    config_key,
    dns_label,
    dns_subdomain,
    env_name,
    no_backsteps,
    qualified_name,
)
from konverge.apiserver.kinds.rules.quantities import amount, shown
from konverge.objects.names import dns_subdomain_errors

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_LABELS = frozenset((*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"))
_SUBSCRIPTED = re.compile(r"(.+?)\['(.*)'\]")

_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (_BYTES, f"only divisor's values {', '.join(_BYTES)} are supported with the memory resource"),
    "ephemeral-storage": (
        _BYTES,
        f"only divisor's values {', '.join(_BYTES)} are supported with the local ephemeral storage resource",
    ),
    "hugepages": (_BYTES, f"only divisor's values {', '.join(_BYTES)} are supported with the hugepages resource"),
}
_RESOURCES = tuple(f"{of}.{name}" for of in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory"))


def _conversion_error(version: str, label: str) -> str:  # upstream: ConvertDownwardAPIFieldLabel (pkg/apis/core/pods)
    if version != "v1":
        return f"unsupported pod version: {version}"
    subscripted = _SUBSCRIPTED.fullmatch(label)
    if subscripted:
        known = subscripted[1] in ("metadata.annotations", "metadata.labels")
        return "" if known else f"field label does not support subscript: {label}"
    return "" if label in _LABELS or label == "spec.host" else f"field label not supported: {label}"


def field_reference(supported: Collection[str]) -> Rule:  # upstream: validateObjectFieldSelector
    """An ObjectFieldSelector that may point at these fields."""

    def check(value: Any, path: str, report: Report) -> bool:
        version, label = value.get("apiVersion") or "", value.get("fieldPath") or ""
        if not version:
            return report.required(f"{path}.apiVersion")
        if not label:
            return report.required(f"{path}.fieldPath")
        problem = _conversion_error(version, label)
        if problem:
            return report.invalid(f"{path}.fieldPath", label, f"error converting fieldPath: {problem}")
        subscripted = _SUBSCRIPTED.fullmatch(label)
        if subscripted:
            key = subscripted[2].lower() if subscripted[1] == "metadata.annotations" else subscripted[2]
            return qualified_name(key, path, report)
        name = "spec.nodeName" if label == "spec.host" else label
        return name in supported or report.not_supported(f"{path}.fieldPath", name, sorted(supported))

    return check


def _divisor(value: Any, path: str, report: Report) -> bool:  # upstream: validateContainerResourceDivisor
    divisor, resource = value.get("divisor"), value.get("resource") or ""
    if amount(divisor) == 0:
        return True
    name = resource.partition(".")[2]
    allowed, detail = _DIVISORS.get("hugepages" if name.startswith("hugepages-") else name, ((), ""))
    return not detail or shown(divisor) in allowed or report.invalid(f"{path}.divisor", resource, detail)


def _resource_reference(*, needs_container: bool) -> Rule:  # upstream: validateContainerResourceFieldSelector
    def check(value: Any, path: str, report: Report) -> bool:
        resource = value.get("resource") or ""
        if needs_container and not value.get("containerName"):
            report.required(f"{path}.containerName")
        elif not resource:
            report.required(f"{path}.resource")
        elif resource not in _RESOURCES and not resource.startswith(("requests.hugepages-", "limits.hugepages-")):
            report.not_supported(f"{path}.resource", resource, _RESOURCES)
        return _divisor(value, path, report)

    return check


RESOURCE_IN_VOLUME = _resource_reference(needs_container=True)
RESOURCE_IN_ENV = _resource_reference(needs_container=False)


# upstream: validateConfigMapKeySelector, validateSecretKeySelector
_KEY_OF_OBJECT = struct(text("name", dns_subdomain), field("key", required, config_key))

SOURCES: dict[str, Rule] = {  # upstream: validateEnvVarValueFrom
    "fieldRef": field_reference(ENV_FIELDS),
    "resourceFieldRef": RESOURCE_IN_ENV,
    "configMapKeyRef": _KEY_OF_OBJECT,
    "secretKeyRef": _KEY_OF_OBJECT,
    "fileKeyRef": struct(
        field("key", required, env_name),
        field("volumeName", required, dns_label),
        field("path", required, no_backsteps),
    ),
}
_ONE_OF = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"


def _value_from(value: Any, path: str, report: Report) -> bool:  # upstream: validateEnvVarValueFrom
    source, place = value.get("valueFrom"), f"{path}.valueFrom"
    if source is None:
        return True
    given = [name for name in SOURCES if source.get(name) is not None]
    for name in given:
        SOURCES[name](source[name], f"{place}.{name}", report)
    if not given:
        return report.invalid(place, "", _ONE_OF)
    if value.get("value"):
        return report.invalid(place, "", "may not be specified when `value` is not empty")
    return len(given) == 1 or report.invalid(place, "", "may not have more than one field specified at a time")


ENV = items(struct(field("name", required, env_name), _value_from))  # upstream: ValidateEnv


# upstream: validateConfigMapEnvSource, validateSecretEnvSource
def _source_name(value: Any, path: str, report: Report) -> bool:
    """Names here may end with a dash, as a generateName may."""
    masked = value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value
    errors = dns_subdomain_errors(masked)
    for detail in errors:
        report.invalid(path, value, detail)
    return not errors


_SOURCE = struct(field("name", required, _source_name))


def env_from(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateEnvFrom
    """Whole ConfigMaps and Secrets as environment; the API reports the choice of source at the list."""
    for index, entry in enumerate(value):
        place = f"{path}[{index}]"
        if entry.get("prefix"):
            env_name(entry["prefix"], f"{place}.prefix", report)
        given = [name for name in ("configMapRef", "secretRef") if entry.get(name) is not None]
        for name in given:
            _SOURCE(entry[name], f"{place}.{name}", report)
        if not given:
            report.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            report.invalid(path, "", "may not have more than one field specified at a time")
    return True
