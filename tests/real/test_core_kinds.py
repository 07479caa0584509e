"""Valid objects of the core kinds with one thing changed: ours refuses, reports and defaults as the real server does.

Every field of a rich object is taken out, emptied, or given a value that is wrong for some fields and right for
others, and the result is created as a dry run on both servers.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.real.core_objects import CLUSTER_WIDE, OBJECTS, Obj
from tests.real.sides import NAMESPACE, Side, differences

Path = tuple[str | int, ...]
ABSENT = object()
TEXTS = ("", "Bad_Value!", "x" * 300, "../a", "/abs", "a b", "-1", "999.1.1.1", "a.b")
NUMBERS = (-1, 0, 1, 70000, 2**31 - 1)
PER_KIND = 150
_MADE_UP = re.compile(r"kube-api-access-\w+|\d+-\d+-\d+T[\d:.]+Z|10\.\d+\.\d+\.\d+")
_EMPTY = re.compile(r"\{\}|\[\]")


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def replacements(value: Any) -> Iterator[Any]:
    yield ABSENT
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from NUMBERS
    elif isinstance(value, str):
        yield from TEXTS


def changed(obj: Obj, path: Path, value: Any) -> Obj:
    result = copy.deepcopy(obj)
    holder = at(result, path[:-1])
    if value is ABSENT:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return result


def variants(obj: Obj) -> list[tuple[Path, Obj]]:
    """A fixed choice of all ways to change one thing."""
    every = [(path, value) for path in places(obj) for value in replacements(at(obj, path))]
    chosen = random.Random(7).sample(every, min(PER_KIND, len(every)))
    return [(path, changed(obj, path, value)) for path, value in chosen]


def essence(answer: tuple[int, Any], warnings: list[str]) -> Any:
    """What a strategy decides. An empty list from a client counts as none (docs/conformance.md)."""
    code, body = answer
    if code >= 400:
        return code, _EMPTY.sub("null", _MADE_UP.sub("_", body["message"]))
    kept = {name: value for name, value in body.items() if name not in ("metadata", "kind", "apiVersion")}
    return code, _settled(kept), sorted(warnings)


def _settled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _settled(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_settled(member) for member in value]
    return _MADE_UP.sub("_", value) if isinstance(value, str) else value


@pytest.mark.spec("S-09")
@pytest.mark.parametrize("plural", OBJECTS)
def test_an_object_with_one_change_is_answered_alike(sides: tuple[Side, Side], plural: str) -> None:
    prefix = "/api/v1" if plural in CLUSTER_WIDE else f"/api/v1/namespaces/{NAMESPACE}"
    for side in sides:
        side.send("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    for path, body in [((), OBJECTS[plural]), *variants(OBJECTS[plural])]:
        real, ours = (
            essence(side.send("POST", f"{prefix}/{plural}", body, dryRun="All"), side.warnings) for side in sides
        )
        assert not differences(ours, real), path
