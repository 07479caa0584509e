"""The formats of names (`konverge.objects.names`) as rules of fields and as checks of an object's own name.

`field("name", required, dns_label)` reports one `Invalid value` per message; `Strategy(name_check=…)` takes
`object_name(dns_label_errors)` for metadata.name and generateName.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.objects.names import (
    Format,
    config_key_errors,
    dns_1035_errors,
    dns_label_errors,
    dns_subdomain_errors,
    dns_subdomain_underscore_errors,
    env_name_errors,
    label_value_errors,
    path_segment_errors,
    path_segment_prefix_errors,
    port_name_errors,
    qualified_name_errors,
    wildcard_errors,
)


def object_name(errors_of: Format) -> Callable[[str, bool], Sequence[str]]:
    """`Strategy.name_check`: a prefix for generateName may end with a dash (upstream: maskTrailingDash)."""

    def check(name: str, is_prefix: bool) -> Sequence[str]:
        if is_prefix and len(name) > 1 and name.endswith("-"):
            name = name[:-2] + "a"
        return errors_of(name)

    return check


def path_segment_name(name: str, is_prefix: bool) -> Sequence[str]:
    """`Strategy.name_check` of kinds whose names need only fit into a path (upstream: path.ValidatePathSegmentName)."""
    return path_segment_prefix_errors(name) if is_prefix else path_segment_errors(name)


def format_rule(errors_of: Format) -> Rule:
    """A rule that reports every error of a format."""

    def check(value: Any, path: str, report: Report) -> bool:
        errors = errors_of(value)
        if not errors:
            return True
        for detail in errors:
            report.invalid(path, value, detail)
        return False

    return check


dns_label = format_rule(dns_label_errors)
dns_subdomain = format_rule(dns_subdomain_errors)
dns_subdomain_underscore = format_rule(dns_subdomain_underscore_errors)
dns_1035 = format_rule(dns_1035_errors)
wildcard_subdomain = format_rule(wildcard_errors)
qualified_name = format_rule(qualified_name_errors)
label_value = format_rule(label_value_errors)
config_key = format_rule(config_key_errors)
env_name = format_rule(env_name_errors)
port_name = format_rule(port_name_errors)


def labels(value: Any, path: str, report: Report) -> bool:
    """A map of labels; keys and values are both reported at the path of the map. upstream: ValidateLabels."""
    for key in sorted(value or ()):
        qualified_name(key, path, report)
        label_value(value[key], path, report)
    return True
