"""Bodies of pods for the tests of this folder."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from tests.apiserver.kinds.harness import World


def pod(name: str = "p", **spec: Any) -> Obj:
    containers = [{"name": "c", "image": "app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def stored_pod(body: Obj) -> World:
    world = World()
    outcome = world.create("", "Pod", body)
    assert not outcome.errors, outcome.texts
    return world
