"""Label selectors: parsed with the API server's grammar and messages, matched fast, rendered canonically.

A `LabelSelector` (the API object of `spec.selector`) and a text (`?labelSelector=`) both become a `Selector`: an
ordered tuple of requirements with a compiled test. Selectors are immutable, hashable and safe to share; parsing is
cached, since a watch repeats the same text for as long as it lives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Protocol

import msgspec

from konverge.objects.names import label_value_errors, qualified_name_errors
from konverge.objects.text_cache import remembered

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]


class SelectorError(ValueError):
    """The selector cannot be understood; the message is the API server's."""


class Operator(Enum):
    """How a key relates to the values; the value is the API server's own word for it."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = "gt"
    LESS_THAN = "lt"


_EQUAL = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS)
_SETS = (Operator.IN, Operator.NOT_IN)
_ORDER = (Operator.GREATER_THAN, Operator.LESS_THAN)
_UNARY = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_SYMBOL = {
    Operator.IN: " in ",
    Operator.NOT_IN: " notin ",
    Operator.GREATER_THAN: ">",
    Operator.LESS_THAN: "<",
}
_INT64 = re.compile(r"[+-]?[0-9]+").fullmatch


class Requirement(msgspec.Struct, frozen=True):
    """One term of a selector. Made by `requirement()`, which refuses what the API server refuses."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in _SETS:
            values = f"({values})"
        return f"{self.key}{_SYMBOL.get(self.operator, self.operator.value)}{values}"


def requirement(key: str, operator: Operator, values: Iterable[str] = ()) -> Requirement:
    """A checked requirement. Upstream: NewRequirement (apimachinery/pkg/labels)."""
    made = Requirement(key, operator, tuple(values))
    errors = [*key_errors(key, "key"), *_count_errors(made)]
    for index, value in enumerate(made.values):
        if messages := label_value_errors(value):
            errors.append(f"values[{index}][{key}]: Invalid value: {_quote(value)}: {'; '.join(messages)}")
    if errors:
        raise SelectorError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return made


def key_errors(key: str, path: str) -> list[str]:
    errors = qualified_name_errors(key)
    return [f"{path}: Invalid value: {_quote(key)}: {'; '.join(errors)}"] if errors else []


def _count_errors(made: Requirement) -> list[str]:
    values, shown = made.values, json.dumps(list(made.values) or None, ensure_ascii=False, separators=(",", ":"))
    if made.operator in _SETS and not values:
        return [f"values: Invalid value: {shown}: for 'in', 'notin' operators, values set can't be empty"]
    if made.operator in _EQUAL and len(values) != 1:
        return [f"values: Invalid value: {shown}: exact-match compatibility requires one single value"]
    if made.operator in _UNARY and values:
        return [f"values: Invalid value: {shown}: values set must be empty for exists and does not exist"]
    if made.operator not in _ORDER:
        return []
    errors = []
    if len(values) != 1:
        errors.append(f"values: Invalid value: {shown}: for 'Gt', 'Lt' operators, exactly one value is required")
    message = "for 'Gt', 'Lt' operators, the value must be an integer"
    for index, value in enumerate(values):
        if _integer(value) is None:
            errors.append(f"values[{index}]: Invalid value: {_quote(value)}: {message}")
    return errors


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _integer(text: str) -> int | None:
    if len(text) > 64 or not _INT64(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


class Selector:
    """A conjunction of requirements.

    >>> str(parse("tier in (b,a), app=web"))
    'app=web,tier in (a,b)'
    >>> parse("app=web").matches({"app": "web"})
    True
    """

    __slots__ = ("_text", "matches", "requirements")

    requirements: tuple[Requirement, ...]
    matches: Test
    """Whether a set of labels is selected."""

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda r: r.key))
        self.matches = _compile(self.requirements)
        self._text: str | None = None

    def __str__(self) -> str:
        if self._text is None:
            self._text = ",".join(map(str, self.requirements))
        return self._text

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[bool, str]:
        return self.matches is _nothing, str(self)

    @property
    def empty(self) -> bool:
        """Whether it selects everything."""
        return self.matches is _everything

    def exact(self, key: str) -> str | None:
        """The one value that the key must have, when the selector says so."""
        for term in self.requirements:
            if term.key == key:
                exact = term.operator in (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)
                return term.values[0] if exact and len(term.values) == 1 else None
        return None


# ── matching ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _everything(labels: Labels) -> bool:
    return True


def _nothing(labels: Labels) -> bool:
    return False


def _compile(requirements: tuple[Requirement, ...]) -> Test:
    if not requirements:
        return _everything
    if all(r.operator in (Operator.EQUALS, Operator.DOUBLE_EQUALS) for r in requirements):
        return _compile_equalities({r.key: r.values[0] for r in requirements}, requirements)
    tests = tuple(_compile_one(r) for r in requirements)
    if len(tests) == 1:
        return tests[0]

    def every(labels: Labels) -> bool:
        # A plain loop: all() with a generator costs twice as much for the usual two or three terms.
        for test in tests:  # noqa: SIM110
            if not test(labels):
                return False
        return True

    return every


def _compile_equalities(wanted: dict[str, str], requirements: tuple[Requirement, ...]) -> Test:
    if any(wanted[r.key] != r.values[0] for r in requirements):
        return lambda labels: False  # one key cannot have two values
    if len(wanted) == 1:
        ((key, value),) = wanted.items()
        return lambda labels: labels.get(key) == value
    items = wanted.items()
    return lambda labels: items <= labels.items()


def _compile_one(term: Requirement) -> Test:
    key, operator = term.key, term.operator
    if operator in _ORDER:
        return _compile_order(key, term.values[0], greater=operator is Operator.GREATER_THAN)
    if operator in _UNARY:
        return (lambda labels: key in labels) if operator is Operator.EXISTS else (lambda labels: key not in labels)
    values: frozenset[str | None] = frozenset(term.values)
    # None stands for "no such label", which is never a value: it fails `in` and passes `notin`, as it should.
    if operator in (Operator.NOT_IN, Operator.NOT_EQUALS):
        return lambda labels: labels.get(key) not in values
    return lambda labels: labels.get(key) in values


def _compile_order(key: str, value: str, *, greater: bool) -> Test:
    bound = int(value)

    def compare(labels: Labels) -> bool:
        number = _integer(labels.get(key, ""))
        return number is not None and (number > bound if greater else number < bound)

    return compare


def _make_nothing() -> Selector:
    selector = Selector()
    selector.matches = _nothing
    return selector


EVERYTHING = Selector()
NOTHING = _make_nothing()


# ── from API objects ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Expression(Protocol):
    key: str
    operator: str
    values: list[str]


class _SelectorObject(Protocol):
    @property
    def match_labels(self) -> Mapping[str, str]: ...
    @property
    def match_expressions(self) -> Iterable[_Expression]: ...


_EXPRESSION_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_labels(labels: Labels) -> Selector:
    """The selector of exactly these labels; of none, everything (as `spec.selector` of a Service means it)."""
    return Selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())


def from_selector(selector: _SelectorObject | None) -> Selector:
    """The selector of a `LabelSelector`: None selects nothing, an empty one everything.

    Upstream: LabelSelectorAsSelector (apimachinery/pkg/apis/meta/v1).
    """
    if selector is None:
        return NOTHING
    return _from_terms(
        selector.match_labels, ((e.key, e.operator, tuple(e.values)) for e in selector.match_expressions)
    )


def from_selector_dict(selector: Mapping[str, object] | None) -> Selector:
    """The same of the JSON form: `{"matchLabels": {…}, "matchExpressions": […]}`."""
    if selector is None:
        return NOTHING
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    assert isinstance(labels, Mapping)
    assert isinstance(expressions, list)
    return _from_terms(
        labels, ((e.get("key", ""), e.get("operator", ""), tuple(e.get("values") or ())) for e in expressions)
    )


def _from_terms(labels: Labels, expressions: Iterable[tuple[str, str, tuple[str, ...]]]) -> Selector:
    terms = [requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items()]
    for key, word, values in expressions:
        operator = _EXPRESSION_OPERATORS.get(word)
        if operator is None:
            raise SelectorError(f"{_quote(word)} is not a valid label selector operator")
        terms.append(requirement(key, operator, values))
    return Selector(terms)


@remembered(1024)
def parse(text: str) -> Selector:
    """The selector that a text such as `app=web,tier in (a,b),!canary` means."""
    from konverge.objects.label_parser import parse_requirements

    return Selector(parse_requirements(text))
