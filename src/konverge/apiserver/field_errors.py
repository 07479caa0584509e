"""Errors about fields, with the messages of the Kubernetes API.

A validation yields `FieldError`s; the request path turns them into one 422 Status with a cause for each. The wording
is part of the wire contract: people and tools match on it.

Upstream: k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec

from konverge.apiserver.go.fmt import go_float
from konverge.apiserver.go.json import encode
from konverge.apiserver.go.strconv import quote


class ErrorType(Enum):
    """value = (reason in `details.causes`, text in the message)."""

    REQUIRED = ("FieldValueRequired", "Required value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    NOT_FOUND = ("FieldValueNotFound", "Not found")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")
    INTERNAL = ("InternalError", "Internal error")


# Types whose message carries no value: naming the value would add nothing, or would be too long.
_WITHOUT_VALUE = {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL}


OMIT: Any = object()
"""The value of an error whose message names no value (the API omits objects and lists that a rule refuses)."""


def aggregate(messages: Iterable[str]) -> str:
    """Several errors as one text, each once. Upstream: aggregate.Error (apimachinery/pkg/util/errors)."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def render(value: Any) -> str:
    """A value inside a message: strings quoted, numbers plain, anything else as compact JSON."""
    if isinstance(value, str):
        return quote(value)
    return go_float(value) if isinstance(value, float) else encode(value)


class FieldError(msgspec.Struct, frozen=True):
    """One thing that is wrong with one field."""

    type: ErrorType
    path: str
    value: Any = None
    detail: str = ""

    @property
    def reason(self) -> str:
        return str(self.type.value[0])

    @property
    def body(self) -> str:
        """The message without its path, as `details.causes[].message` has it."""
        text = str(self.type.value[1])
        if self.type not in _WITHOUT_VALUE and self.value is not OMIT:
            text += f": {render(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


MOST = 10_000
"""Errors of one validation. They are more than an answer has room for, so there is no point in looking for others."""


class TooManyErrors(Exception):
    """A validation was given up."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__(f"{len(errors)} errors")
        self.errors = errors


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(ErrorType.REQUIRED, path, "", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, path, value, detail)


def not_supported(path: str, value: Any, supported: list[str]) -> FieldError:
    """`supported` is printed in the order given; the API sorts it in most places, so callers do too."""
    return FieldError(
        ErrorType.NOT_SUPPORTED, path, value, "supported values: " + ", ".join(quote(s) for s in supported)
    )


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(ErrorType.FORBIDDEN, path, "", detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(ErrorType.DUPLICATE, path, value)


def not_found(path: str, value: Any) -> FieldError:
    return FieldError(ErrorType.NOT_FOUND, path, value)


def too_long(path: str, maximum: int) -> FieldError:
    return FieldError(
        ErrorType.TOO_LONG, path, "", f"may not be more than {maximum} {'byte' if maximum == 1 else 'bytes'}"
    )


def too_many(path: str, actual: int, maximum: int) -> FieldError:
    noun = "item" if maximum == 1 else "items"
    return FieldError(ErrorType.TOO_MANY, path, actual, f"must have at most {maximum} {noun}")


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.TYPE_INVALID, path, value, detail)
