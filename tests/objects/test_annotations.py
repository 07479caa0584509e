"""Annotations of models, evaluated once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import pytest

from konverge.objects import Model
from konverge.objects.custom.annotations import evaluate

if TYPE_CHECKING:
    from decimal import Decimal

T = TypeVar("T")


class Base(Model):
    size: int = 0


class Inner(Model):
    text: str = ""


class Deep(Model):
    inner: Inner | None = None


class Outer(Base):
    many: dict[str, list[Deep]] = {}
    other: Any = None


class Wrong(Model):
    amount: Decimal | None = None
    inner: Inner | None = None


class Box(Model, Generic[T]):
    value: T | None = None
    deep: Deep | None = None


@pytest.mark.spec("R-96")
def test_texts_become_types_in_bases_and_in_what_a_class_contains() -> None:
    evaluate([Outer])
    assert Base.__annotations__ == {"size": int}
    assert Deep.__annotations__ == {"inner": Inner | None}
    assert Inner.__annotations__ == {"text": str}
    assert Outer.__annotations__["many"] == dict[str, list[Deep]]
    decoded = msgspec.convert({"many": {"a": [{"inner": {"text": "b"}}]}, "size": 3}, Outer)
    assert (decoded.size, decoded.many["a"][0].inner) == (3, Inner(text="b"))


@pytest.mark.spec("R-96")
def test_a_text_that_cannot_be_evaluated_stays() -> None:
    evaluate([Wrong])
    assert Wrong.__annotations__ == {"amount": "Decimal | None", "inner": Inner | None}
    with pytest.raises(NameError, match="Decimal"):
        msgspec.json.Decoder(Wrong)


@pytest.mark.spec("R-96")
def test_generic_classes() -> None:
    evaluate([Box[int]])  # type: ignore[list-item]
    assert Box.__annotations__["deep"] == Deep | None
    assert msgspec.convert({"value": 3}, Box[int]).value == 3
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"value": "three"}, Box[int])
