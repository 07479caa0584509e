"""Field selectors: `metadata.name=web,status.phase!=Running`, with the API server's escapes and error messages.

Upstream: apimachinery/pkg/fields/selector.go (`ParseSelector`, `UnescapeValue`).

Which fields a kind knows is the server's business; here a selector is only its terms and a test over a mapping from
field to value, in which an absent field counts as empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from konverge.objects.labels import SelectorError
from konverge.objects.text_cache import remembered

_first_operator = re.compile("!=|==|=").search


class FieldTerm(msgspec.Struct, frozen=True):
    """One comparison."""

    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A conjunction of comparisons.

    >>> parse("metadata.name=web").matches({"metadata.name": "web"})
    True
    """

    terms: tuple[FieldTerm, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))

    @property
    def empty(self) -> bool:
        return not self.terms

    def matches(self, values: Mapping[str, str]) -> bool:
        # A plain loop: all() with a generator costs twice as much for the usual one or two terms.
        for term in self.terms:  # noqa: SIM110
            if (values.get(term.field, "") == term.value) is not term.equal:
                return False
        return True

    def exact(self, field: str) -> str | None:
        """The one value that the field must have, when the selector says so."""
        return next((term.value for term in self.terms if term.field == field and term.equal), None)


def from_fields(values: Mapping[str, str]) -> FieldSelector:
    return FieldSelector(tuple(FieldTerm(field, value) for field, value in values.items()))


@remembered(1024)
def parse(text: str) -> FieldSelector:
    return FieldSelector(tuple(_terms(text)))


def _terms(text: str) -> Iterable[FieldTerm]:
    for part in sorted(_split(text)):
        if not part:
            continue
        operator = _first_operator(part)
        if operator is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        term = FieldTerm(part[: operator.start()], unescape(part[operator.end() :]), operator[0] != "!=")
        if term.field or term.value:  # the server drops a comparison of nothing with nothing
            yield term


def _split(text: str) -> list[str]:
    """Cut at the commas that no backslash protects."""
    parts, start, escaped = [], 0, False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def unescape(value: str) -> str:
    if not any(character in value for character in "\\,="):
        return value
    result: list[str] = []
    characters = iter(value)
    for character in characters:
        if character in ",=":
            # The server prints the number of the character, not the character.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        if character == "\\":
            character = next(characters, "")
            if not character or character not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{character}")
        result.append(character)
    return "".join(result)
