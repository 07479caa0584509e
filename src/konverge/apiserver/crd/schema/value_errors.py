"""`Issue`: what a check of a value reports, and the field error that it becomes.

Upstream: kubeOpenAPIResultToFieldErrors (pkg/apiserver/validation/validation.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.apiserver import field_errors
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.go.strconv import quote


class Issue(msgspec.Struct, frozen=True):
    """`code` is one of type, enum, required, too long, too many, plain, or "" for an ordinary invalid value."""

    code: str
    path: str
    value: Any = ""
    message: str = ""
    limit: int = -1
    values: tuple[Any, ...] = ()


def invalid_type(path: str, wanted: str, got: str) -> Issue:
    return Issue("type", path, got, f"{path} in body must be of type {wanted}: {quote(got)}")


def plain(message: str) -> Issue:
    """An error without a path: the API reports it at the root of what was validated."""
    return Issue("plain", "", "", message)


def as_field_errors(issues: Iterable[Issue], root: str = "") -> list[FieldError]:
    """Field errors in the order of the issues; equal messages are reported once."""
    seen: set[str] = set()
    errors: list[FieldError] = []
    for issue in issues:
        key = issue.message or f"{issue.path} {issue.code}"
        if key not in seen:
            seen.add(key)
            errors.append(_field_error(issue, root))
    return errors


def _field_error(issue: Issue, root: str) -> FieldError:
    name = issue.path.removeprefix(".") if issue.code != "plain" else ""
    path = f"{root}.{name}" if root and name else root or name or "<nil>"
    if issue.code == "required":
        return field_errors.required(path)
    if issue.code == "enum":
        return field_errors.not_supported(path, ordered(issue.value), [_allowed(value) for value in issue.values])
    if issue.code == "too long":
        return field_errors.too_long(path, issue.limit)
    if issue.code == "too many":
        return field_errors.too_many(path, issue.value, issue.limit)
    if issue.code == "type":
        return field_errors.type_invalid(path, issue.value, issue.message)
    return field_errors.invalid(path, ordered(issue.value), issue.message)


def _allowed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


def ordered(value: Any) -> Any:
    """Members in the order in which Go writes a map: by name."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return value
