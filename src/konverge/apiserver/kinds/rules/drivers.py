"""Names of drivers, where the real server checks them by generated rules, which have words of their own."""

from __future__ import annotations

import re
from typing import Any

from konverge.apiserver.field_errors import ErrorType, FieldError
from konverge.apiserver.kinds.framework.declare import Report
from konverge.objects.names import regex_error

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORDS = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch


def driver_name(value: Any, path: str, report: Report) -> bool:
    """A DNS subdomain in any case, of at most 63 characters."""
    if not _is_subdomain(value.lower()):
        report.invalid(path, value, regex_error(_WORDS, _SUBDOMAIN, "Example.com"))
    if len(value) <= 63:
        return True
    return report.add(FieldError(ErrorType.TOO_LONG, path, "", "may not be more than 63 characters"))
