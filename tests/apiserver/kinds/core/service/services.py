"""Bodies of services and a server that allocates for them, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.service.allocation import Allocators
from konverge.apiserver.strategy import Obj
from tests.apiserver.kinds.harness import Outcome, World


class AllocatingWorld(World):
    """A server that offers its allocators, as a real one does."""

    def __init__(self) -> None:
        super().__init__()
        self.service_allocators = Allocators("10.96.0.0/30")


def service(name: str = "s", **spec: Any) -> Obj:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def created(world: World, body: Obj) -> Outcome:
    outcome = world.create("", "Service", body)
    assert (outcome.texts, outcome.refusal) == ([], "")
    return outcome
