"""What may stand in `Annotated[…]` of a custom resource's field.

Each marker is a msgspec `Meta`: what msgspec can check it checks when decoding, and everything ends up in the schema of
the definition, where the API server checks it. What only the server can check (CEL rules, formats, uniqueness of list
entries) is said in the marker's docstring.
"""

# ruff: noqa: N802 - markers read like the types that they are for their users

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from konverge.objects.cel_names import reserved_in

# What Python reads and RE2 does not, or otherwise. Escapes are looked at in pairs, so that brackets after an escaped
# backslash count.
_NOT_SHARED: Final = re.compile(
    r"(?:[^\\]|\\[^1-9ZuUN])*?(\(\?<?[=!]|\(\?[>(#]|\(\?P=|\\[1-9ZuUN]|\[:\^?[a-z]+:\])"
).match
_OF_ASCII: Final = re.compile(r"\\[dDwWsSbB]").search
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z-]+[:)]").search
ASCII_PREFIX: Final = "(?a:"
"""Begins a pattern in which `\\w` means to Python what it means to RE2; the schema has the pattern without it."""


def Minimum(value: int | float) -> Meta:
    """At least this number."""
    return Meta(ge=value)


def Maximum(value: int | float) -> Meta:
    """At most this number."""
    return Meta(le=value)


def ExclusiveMinimum(value: int | float) -> Meta:
    """More than this number."""
    return Meta(gt=value)


def ExclusiveMaximum(value: int | float) -> Meta:
    """Less than this number."""
    return Meta(lt=value)


def MultipleOf(value: int | float) -> Meta:
    return Meta(multiple_of=value)


def MinLength(value: int) -> Meta:
    """A text of at least so many characters."""
    return Meta(min_length=value)


def MaxLength(value: int) -> Meta:
    """A text of at most so many characters."""
    return Meta(max_length=value)


def Pattern(regex: str) -> Meta:
    """A text in which the pattern is found (write `^…$` for the whole text). Keep to what RE2 and Python share."""
    if unshared := _NOT_SHARED(regex):
        raise TypeError(f"{unshared[1]!r} in the pattern {regex!r} is not common to RE2 (of the API server) and Python")
    ours = f"{ASCII_PREFIX}{regex})" if _OF_ASCII(regex) and not _FLAGS(regex) else regex
    try:
        return Meta(pattern=ours)
    except re.error as error:
        raise TypeError(f"the pattern {regex!r} cannot be read by Python: {error}") from None


def MinItems(value: int) -> Meta:
    """A list of at least so many items."""
    return Meta(min_length=value)


def MaxItems(value: int) -> Meta:
    """A list of at most so many items."""
    return Meta(max_length=value)


def MinProperties(value: int) -> Meta:
    """A map of at least so many entries."""
    return Meta(min_length=value)


def MaxProperties(value: int) -> Meta:
    """A map of at most so many entries."""
    return Meta(max_length=value)


def Format(name: str) -> Meta:
    """A format of OpenAPI (`date-time`, `ipv4`, `uri` …); checked by the server only."""
    return Meta(extra_json_schema={"format": name})


def Nullable() -> Meta:
    """An explicit null is kept by the server; the field's type must allow None. Without it, None means absent."""
    return Meta(extra_json_schema={"nullable": True})


def ListType(kind: Literal["map", "set", "atomic"], *keys: str) -> Meta:
    """How entries of a list are identified: by keys (`map`), by value (`set`) or not at all; checked by the server."""
    if (kind == "map") != bool(keys):
        raise TypeError('ListType("map", …) needs the names of its keys, the other list types have none')
    schema: dict[str, Any] = {"x-kubernetes-list-type": kind}
    if keys:
        schema["x-kubernetes-list-map-keys"] = list(keys)
    return Meta(extra_json_schema=schema)


def MapType(kind: Literal["granular", "atomic"]) -> Meta:
    """Whether entries of a map have owners of their own."""
    return Meta(extra_json_schema={"x-kubernetes-map-type": kind})


def PreserveUnknown() -> Meta:
    """The server keeps fields that the schema does not name. For a `dict[str, Any]` this is so anyway."""
    return Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})


def EmbeddedResource() -> Meta:
    """A `dict[str, Any]` that is a whole object with apiVersion, kind and metadata."""
    return Meta(
        extra_json_schema={"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    )


def Rule(
    rule: str,
    *,
    message: str | None = None,
    message_expression: str | None = None,
    reason: str | None = None,
    field_path: str | None = None,
    optional_old_self: bool | None = None,
) -> Meta:
    """A CEL rule over `self` (and `oldSelf`); checked by the server only.

    A reserved word of CEL is no name of a field: write `self.__namespace__`. Servers before 1.31 refuse it everywhere,
    later ones wherever they do not learn from it how long a value can get.
    """
    for expression in (rule, message_expression or ""):
        if (word := reserved_in(expression)) is not None:
            raise TypeError(
                f"{word!r} is a reserved word of CEL: write .__{word}__ for a field, [{word!r}] for the key of a map "
                f"(in the rule {expression!r})"
            )
    given = {
        "rule": rule,
        "message": message,
        "messageExpression": message_expression,
        "reason": reason,
        "fieldPath": field_path,
        "optionalOldSelf": optional_old_self,
    }
    validation = {name: value for name, value in given.items() if value is not None}
    return Meta(extra_json_schema={"x-kubernetes-validations": [validation]})


def Description(text: str) -> Meta:
    """What `kubectl explain` says about the field."""
    return Meta(description=text)


def Default(value: Any) -> Meta:
    """A default that only the server fills in: `Annotated[int | None, Default(3)] = None`."""
    return Meta(extra_json_schema={"default": value})


def SchemaExtra(**keywords: Any) -> Meta:
    """Keywords of the schema as they are, for what has no marker; checked by the server only."""
    return Meta(extra_json_schema=keywords)


Time = Annotated[str, Format("date-time")]
"""A time of whole seconds (`konverge.objects.times`)."""
