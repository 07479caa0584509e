"""What the health server says of a manager, check by check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Manager
from konverge.wire.message import Request

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-29")]


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that is content."""


async def ask(manager: Manager, target: str) -> tuple[int, str]:
    response = await manager.health.handle(Request("GET", target))
    return response.status, response.body.decode()


async def test_a_manager_that_was_not_started_lives_and_is_not_ready() -> None:
    manager = Manager()
    assert (await ask(manager, "/livez"))[0] == 200
    assert (await ask(manager, "/readyz"))[0] == 503
    assert sorted(manager.health.live) == ["ping", "shutdown"]
    assert sorted(manager.health.ready) == ["caches", "dependencies"]
    assert sorted(manager.health.remarks) == ["quarantine", "sources", "tasks"]
    assert {name: check() for name, check in manager.health.ready.items()} == {
        "caches": "not synced",
        "dependencies": "",
    }
    assert {check() for check in manager.health.remarks.values()} == {""}
    assert (manager.health.advisory, manager.readiness.started, manager.readiness.waiting) == (frozenset(), set(), {})


async def test_a_manager_is_ready_while_it_runs_and_says_that_it_stops(client: Client) -> None:
    manager = Manager(client).add(Controller(Secret, nothing)).add(Controller(ConfigMap, nothing))
    async with manager.running():
        assert (await ask(manager, "/readyz"))[0] == 200
        assert (await ask(manager, "/livez"))[0] == 200
        assert manager.readiness.started == {"secret", "configmap"}
        assert manager.health.live["shutdown"]() == ""
        manager.readiness.stopping = True
        assert manager.health.live["shutdown"]() == "stopping"
        assert (await ask(manager, "/readyz"))[0] == 503
        manager.readiness.stopping = False


async def test_dependencies_that_are_away_are_listed() -> None:
    readiness = Manager().readiness
    readiness.waiting |= {"a": "db:5432", "b": "mail:25"}
    assert readiness.unmet() == "a waits for db:5432; b waits for mail:25"


async def test_conversions_make_it_ready_before_its_caches_are_filled() -> None:
    manager = Manager()
    manager.readiness.serves_conversions()
    assert manager.health.advisory == {"caches", "dependencies", "sharding"}
    assert (await ask(manager, "/readyz"))[0] == 200
    assert "[!]caches: not synced" in (await ask(manager, "/readyz?verbose"))[1]


async def test_remarks_name_everything_that_is_down() -> None:
    manager = Manager()
    manager.numbers.tasks |= {  # type: ignore[arg-type]
        "report": SimpleNamespace(down="it raised"),
        "other": SimpleNamespace(down=""),
        "sweep": SimpleNamespace(down="it hangs"),
    }
    assert manager.health.remarks["tasks"]() == "report: it raised; sweep: it hangs"
    manager.numbers.controllers += [  # type: ignore[list-item]
        SimpleNamespace(name="a", sources_down={"mail": "away", "news": "late"}),
        SimpleNamespace(name="b", sources_down={}),
    ]
    assert manager.health.remarks["sources"]() == "a mail: away; a news: late"
    informers = {
        1: SimpleNamespace(spec="secrets", quarantine=["default/x: no object", "default/y: no object"]),
        2: SimpleNamespace(spec="pods", quarantine=[]),
    }
    manager.caches = SimpleNamespace(informers=informers, unsynced=[])  # type: ignore[assignment]
    assert manager.health.remarks["quarantine"]() == "secrets default/x: no object; secrets default/y: no object"
    assert manager.health.ready["caches"]() == ""
    manager.caches.unsynced = ["secrets"]  # type: ignore[misc]
    assert manager.health.ready["caches"]() == "not synced"
