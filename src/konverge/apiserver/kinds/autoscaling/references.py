"""References to objects of any version (CrossVersionObjectReference)."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, required
from konverge.apiserver.kinds.rules.names import format_rule
from konverge.apiserver.kinds.rules.zero_values import text
from konverge.objects.names import path_segment_errors

_segment = format_rule(path_segment_errors)
_kind = text("kind", required, _segment)
_name = text("name", required, _segment)


def api_version_error(version: str, *, group_required: bool) -> str:
    """What is wrong with an apiVersion, or an empty text."""
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if group_required and "/" not in version.strip("/"):
        return "apiVersion must specify API group"
    return ""


def reference(value: Any, path: str, report: Report, *, version_checked: bool, group_required: bool) -> bool:
    """Kind and name are path segments; the version is checked unless the stored object had the same."""
    _kind(value, path, report)
    _name(value, path, report)
    version = value.get("apiVersion", "")
    error = api_version_error(version, group_required=group_required) if version_checked else ""
    return not error or report.invalid(f"{path}.apiVersion", version, error)
