"""Models: what the metaclass adds to a class."""

from __future__ import annotations

from typing import Any, ClassVar

from konverge.objects import Model, Object, Resource
from konverge.objects.codec import from_json, to_json
from konverge.objects.model import NullableList, NullableMap, NullableText

WIDGETS = Resource("example.com", "v1", "Widget", "widgets")


class Widget(Object):
    resource: ClassVar[Resource] = WIDGETS
    size: int = 0


def test_a_kind_gets_the_identity_of_its_resource() -> None:
    widget = Widget(size=3)
    assert (widget.api_version, widget.kind) == ("example.com/v1", "Widget")
    assert to_json(widget).startswith(b'{"apiVersion":"example.com/v1","kind":"Widget",')
    assert from_json(Widget, b'{"kind":"Other","size":4}') == Widget(kind="Other", size=4)


def test_a_kind_whose_annotations_do_not_exist_yet_gets_it_too() -> None:
    namespace: dict[str, Any] = {"__module__": __name__, "__qualname__": "Bare", "resource": WIDGETS}
    bare = type(Object)("Bare", (Object,), namespace)
    assert to_json(bare()) == b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{}}'


class Basket(Model):
    fruits: NullableList[str] = []
    labels: NullableMap[str, str] = {}
    packed: NullableText = ""

    def __post_init__(self) -> None:
        self.fruits.append("added")


class BigBasket(Basket):
    breads: NullableList[str] = []


def test_nulls_become_empty_before_the_own_post_init_of_a_class_runs() -> None:
    basket = from_json(Basket, b'{"fruits":null,"labels":null,"packed":null}')
    assert (basket.fruits, basket.labels, basket.packed) == (["added"], {}, "")


def test_a_subclass_with_nullable_fields_keeps_those_of_its_base() -> None:
    basket = from_json(BigBasket, b'{"fruits":null,"breads":null}')
    assert (basket.fruits, basket.breads) == (["added"], [])
