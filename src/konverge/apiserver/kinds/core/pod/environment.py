"""Environment variables of containers."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.pod.field_refs import ENV_FIELDS, RESOURCE_IN_ENV, field_reference
from konverge.apiserver.kinds.core.volume.paths import no_backsteps
from konverge.apiserver.kinds.framework.declare import Report, Rule, even_absent, field, items, required, struct
from konverge.apiserver.kinds.rules.names import config_key, dns_label, dns_subdomain, env_name
from konverge.objects.names import dns_subdomain_errors


@even_absent
def _object_name(value: Any, path: str, report: Report) -> bool:
    """The name of a referenced object; an empty one is a bad name, not a missing one."""
    return dns_subdomain(value or "", path, report)


_KEY_OF_OBJECT = struct(field("name", _object_name), field("key", required, config_key))

SOURCES: dict[str, Rule] = {
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


def _value_from(value: Any, path: str, report: Report) -> bool:
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


ENV = items(struct(field("name", required, env_name), _value_from))


def _source_name(value: Any, path: str, report: Report) -> bool:
    """Names here may end with a dash, as a generateName may."""
    masked = value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value
    errors = dns_subdomain_errors(masked)
    for detail in errors:
        report.invalid(path, value, detail)
    return not errors


_SOURCE = struct(field("name", required, _source_name))


def env_from(value: Any, path: str, report: Report) -> bool:
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
