"""Conditions of a status: the standard ones (metav1.Condition), which all kinds since 2020 have.

Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

import re
from typing import Any

from konverge.apiserver.kinds.framework.declare import (
    Report,
    Rule,
    distinct,
    field,
    items,
    one_of,
    present,
    required,
    required_saying,
    struct,
    text,
)
from konverge.apiserver.kinds.rules.names import format_rule, qualified_name
from konverge.apiserver.kinds.rules.numbers import at_least
from konverge.objects.names import regex_error

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_MESSAGE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)


def reason_errors(value: str) -> list[str]:  # upstream: IsValidConditionReason
    if re.fullmatch(_REASON, value):
        return []
    return [regex_error(_REASON_MESSAGE, _REASON, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")]


def longest(maximum: int) -> Rule:
    """A text of at most so many bytes."""

    def check(value: Any, path: str, report: Report) -> bool:
        return len(value.encode()) <= maximum or report.too_long(path, maximum)

    return check


def _unique_type(value: Any, path: str, report: Report) -> bool:
    distinct(value.get("type", ""), path, report)
    return True


CONDITION = struct(  # upstream: ValidateCondition
    text("type", required_saying("is required"), qualified_name),
    text("status", required, one_of("False", "True", "Unknown")),
    field("observedGeneration", at_least(0, "must be greater than or equal to zero")),
    field("lastTransitionTime", present),
    text("reason", required, format_rule(reason_errors), longest(1024)),
    field("message", longest(32768)),
)

conditions = items(_unique_type, CONDITION)  # upstream: ValidateConditions
"""`field("conditions", conditions)`."""
