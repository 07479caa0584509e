"""Docstrings become the descriptions of a definition."""

from __future__ import annotations

import importlib
import linecache
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import pytest

from konverge.objects import Condition, CustomResource, Description, Model, NoStatus, crd_dict
from konverge.objects.custom import definition
from konverge.objects.custom.schema import schema_of, schemas_of_classes
from konverge.objects.kinds.core_v1 import PodTemplateSpec

pytestmark = pytest.mark.spec("O-66")

T = TypeVar("T", bound=Model)


class Wheel(Model):
    """A wheel of any vehicle."""

    size: int = 0
    """In
    centimetres.

    Not for the definition.
    """
    plain: int = 0


class Vehicle(Model):
    """Something that moves."""

    name: str = ""
    """What its owner calls it."""
    colour: str = ""
    """Its paint."""
    wheels: list[Wheel] = []
    """All wheels."""
    spare: Wheel | None = None
    """The wheel in the back."""
    other: Wheel | None = None


class Car(Vehicle):
    """A car."""

    colour: str = "black"
    """Any, so long as it is black."""
    name: str = "car"
    seats: Annotated[int, Description("By a marker.")] = 4
    """Not this."""
    pod: PodTemplateSpec | None = None
    """Where it is parked."""
    conditions: list[Condition] = []


class Parked(Model, Generic[T]):
    """Something at a place."""

    place: str = ""
    """Where."""
    thing: T | None = None
    """What."""


def descriptions(model: type[Any]) -> dict[str, str]:
    return dict(_walk(schema_of(model), ""))


def _walk(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    if "description" in schema:
        yield path, schema["description"]
    for name, part in schema.get("properties", {}).items():
        yield from _walk(part, f"{path}.{name}")
    if "items" in schema:
        yield from _walk(schema["items"], f"{path}[]")


def test_fields_have_their_docstrings_and_classes_theirs() -> None:
    assert descriptions(Vehicle) == {
        "": "Something that moves.",
        ".name": "What its owner calls it.",
        ".colour": "Its paint.",
        ".wheels": "All wheels.",
        ".wheels[]": "A wheel of any vehicle.",
        ".wheels[].size": "In centimetres.",
        ".spare": "The wheel in the back.",
        ".spare.size": "In centimetres.",
        ".other": "A wheel of any vehicle.",
        ".other.size": "In centimetres.",
    }


def test_inherited_fields_markers_and_parts_of_other_projects() -> None:
    found = descriptions(Car)
    assert found[".name"] == "What its owner calls it."
    assert found[".colour"] == "Any, so long as it is black."
    assert found[".seats"] == "By a marker."
    assert found[".pod"] == "Where it is parked."
    assert not [path for path in found if path.startswith(".pod.")]
    assert found[".conditions[].reason"]


def test_generic_and_nested_classes() -> None:
    class Local(Model):
        class Inner(Model):
            depth: int = 0
            """How deep."""

        inner: Inner | None = None
        """What is inside."""

    assert descriptions(Parked[Wheel])[".place"] == "Where."  # type: ignore[arg-type, unused-ignore]
    assert descriptions(Parked[Wheel])[".thing.size"] == "In centimetres."
    assert descriptions(Local) == {".inner": "What is inside.", ".inner.depth": "How deep."}


SOURCE = '''
from konverge.objects import Model
if True:
    class Lamp(Model):
        colour: str = ""
        """Its colour."""
'''


def test_a_class_without_source_has_no_descriptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lamps_module.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("lamps_module")
    try:
        assert descriptions(module.Lamp) == {".colour": "Its colour."}
        (tmp_path / "lamps_module.py").unlink()
        schemas_of_classes.clear()
        linecache.checkcache()
        assert descriptions(module.Lamp) == {}
        (tmp_path / "lamps_module.py").write_text("this is (no longer Python")
        schemas_of_classes.clear()
        linecache.checkcache()
        assert descriptions(module.Lamp) == {}
    finally:
        del sys.modules["lamps_module"]


@pytest.mark.parametrize("name", ["<ipython-input-{}-0123>", "<python-input-{}>", "/tmp/ipykernel_7/{}.py"])
def test_a_notebook_and_a_prompt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = types.ModuleType("prompt")
    monkeypatch.setitem(sys.modules, "prompt", prompt)
    for number, colour in enumerate(("An earlier text.", "Its colour.")):
        source = SOURCE.replace("Its colour.", colour)
        lines = source.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, name.format(number), (len(source), None, lines, name.format(number)))
        exec(compile(source, name.format(number), "exec"), vars(prompt))
    assert descriptions(prompt.Lamp) == {".colour": "Its colour."}


def test_a_definition_that_kubectl_cannot_apply_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    class Thing(CustomResource[Wheel, NoStatus], group="tests.konverge.dev", version="v1"):
        """A thing."""

    crd_dict(Thing)  # no warning
    monkeypatch.setattr(definition, "APPLY_LIMIT", 100)
    with pytest.warns(UserWarning, match=r"things\.tests\.konverge\.dev has \d+ bytes.*--server-side"):
        crd_dict(Thing)
