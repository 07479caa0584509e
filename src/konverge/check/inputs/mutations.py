"""What can be done with a field whose meaning is not known: by the type of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from konverge.check.inputs import values
from konverge.check.inputs.fields import Field
from konverge.check.inputs.paths import ABSENT
from konverge.check.inputs.proposals import Proposal, given

MOST_CHOICES = 4


def mutations(field: Field, value: Any) -> Iterator[Proposal]:
    """Changes of the value by its type, and its removal where the sample has one that may go."""
    if field.schema.get("enum"):
        yield from _choices(field, value)
    else:
        yield from _BY_KIND.get(field.kind, _nothing)(field, value)
    if field.given and not field.required and field.default is None and field.kind != "boolean":
        yield Proposal(name="remove", values=(ABSENT,), worth=63)


def _nothing(field: Field, value: Any) -> Iterator[Proposal]:
    yield from ()


def _choices(field: Field, value: Any) -> Iterator[Proposal]:
    now = given(value, field.default)
    others = tuple(choice for choice in field.schema["enum"] if choice != now and choice is not None)
    if others:
        yield Proposal(name="in turn", values=others[:MOST_CHOICES], worth=66)


def _switch(field: Field, value: Any) -> Iterator[Proposal]:
    now = bool(given(value, given(field.default, False)))
    yield Proposal(name="off" if now else "on", values=(not now,), worth=74)


def _number(field: Field, value: Any) -> Iterator[Proposal]:
    low, high = field.schema.get("minimum"), field.schema.get("maximum")
    now = given(value, given(field.default, given(low, 1)))
    yield Proposal(name="one more", values=(now + 1,), worth=56)
    if high is not None and now + 1 > high:
        yield Proposal(name="one less", values=(now - 1,), worth=56)
    if low is not None and low != now:
        yield Proposal(name="the least", values=(low,), worth=32)
    if high is not None and high not in (now, now + 1):
        yield Proposal(name="the most", values=(high,), worth=30)
    if low is None:
        yield Proposal(name="zero", values=(0,), worth=28, bad=True)
        yield Proposal(name="a negative number", values=(-1,), worth=22, bad=True)


def _text(field: Field, value: Any) -> Iterator[Proposal]:
    now = given(value, field.default)
    if isinstance(now, str) and "\n" in now:
        yield Proposal(name="one line more", values=(now.rstrip("\n") + "\n# changed\n",), worth=60)
    else:
        others = [text for text in values.strings(field.schema, field.name, 2) if text != now]
        if others:
            yield Proposal(name="another value", values=(others[0],), worth=54)
    if not field.schema.get("minLength") and not field.schema.get("pattern") and now != "":
        yield Proposal(name="empty", values=("",), worth=24, bad=True)


def _scalar(field: Field, value: Any) -> Iterator[Proposal]:
    now = given(value, given(field.default, 1))
    yield Proposal(name="another value", values=(now + 1 if isinstance(now, int) else 2,), worth=46)


def _list(field: Field, value: Any) -> Iterator[Proposal]:
    now = list(given(value, []))
    inner = field.schema.get("items") or {}
    first, second = (values.item(inner, field.name, number) for number in (1, 2))
    if now and isinstance(now[0], dict) and "name" in now[0]:
        first, second = ({**now[0], **item} for item in (first, second))  # as the sample has them
    if inner.get("enum"):
        rest = [choice for choice in inner["enum"] if choice not in now]
        first, second = rest[0] if rest else first, rest[-1] if rest else second
    if first == second:
        yield Proposal(name="append, remove", values=([*now, first],), worth=62)
    else:
        yield Proposal(name="append, replace, remove", values=([*now, first], [*now, second]), worth=67)
    if len(now) > 1:
        yield Proposal(name="reorder", values=([*reversed(now)],), worth=52)
    if now:
        yield Proposal(name="remove an item", values=(now[1:] or ABSENT,), worth=71)
        yield Proposal(name="an item twice", values=([*now, now[0]],), worth=26, bad=True)


def _map(field: Field, value: Any) -> Iterator[Proposal]:
    now = dict(given(value, {}))
    inner = field.schema.get("additionalProperties")
    key = f"{values.word(field.name)}-a"
    if isinstance(inner, dict):
        first = values.item(inner, field.name, 1)
        yield Proposal(name="add, remove", values=({**now, key: first},), worth=68)
        if isinstance(first, str):
            yield Proposal(name="add, change", values=({**now, key: first}, {**now, key: f"{first}b"}), worth=40)
    elif field.schema.get("x-kubernetes-preserve-unknown-fields"):
        yield Proposal(name="add, remove", values=({**now, key: "value-a"},), worth=44)
    if now:
        yield Proposal(name="remove an entry", values=(dict(list(now.items())[1:]) or ABSENT,), worth=71)


def _object(field: Field, value: Any) -> Iterator[Proposal]:
    if not field.given and not field.required:
        made = values.smallest(field.schema, field.name)
        yield Proposal(name="empty", values=(made,), worth=33, bad=not made)


_BY_KIND: dict[str, Callable[[Field, Any], Iterator[Proposal]]] = {
    "boolean": _switch,
    "integer": _number,
    "number": _number,
    "string": _text,
    "int-or-string": _scalar,
    "array": _list,
    "map": _map,
    "object": _object,
}
