"""On real time, an operator whose watches the check has ended is not at rest before it watches again."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from konverge.check.model import Gap, Plan, Run, TimePasses
from konverge.check.real_rest import STARTED, RealRest
from tests.check.gate.test_errors import copy_size
from tests.check.gate.test_views import RESOURCE, moment
from tests.check.small import Life, Small, create, run

pytestmark = pytest.mark.spec("K-132")
QUIET = 0.3
"""Seconds; the small operator waits a whole one before it watches again."""
STEPS = (create("create", size=3), create("down", size=1), create("up", size=5), create("on", size=4))
GAP = Plan("gap", (Gap(RESOURCE, moment("MODIFIED", "spec.size"), moment("MODIFIED", "spec.size", 2)),))
AWAY = Plan("time", (TimePasses(0, 20.0, away=True),))


def done(plan: Plan, small: Small | None = None) -> Run:
    made = run(lambda: small or Small(copy_size), STEPS, plan, rest=RealRest(QUIET))
    assert not made.missed
    assert all(checkpoint.rested for checkpoint in made.checkpoints)
    return made


def sizes(made: Run) -> list[Any]:
    """What the operator has done by the rest after each step."""
    return [checkpoint.state["configmaps default/a"]["data"]["size"] for checkpoint in made.checkpoints]


def seconds(made: Run) -> list[float]:
    times = [checkpoint.time for checkpoint in made.checkpoints]
    return [after - before for before, after in pairwise(times)]


def test_what_passed_unseen_is_looked_at_before_the_rest() -> None:
    assert sizes(done(GAP)) == ["3", "3", "5", "4"]


def test_so_is_what_was_changed_while_the_api_server_was_away() -> None:
    made = done(AWAY)
    assert sizes(made) == ["3", "1", "5", "4"]
    assert max(seconds(made)) < 5.0, "it comes back at the first rest"


class Forgetful(Life):
    """Never begins a watch again."""

    async def _informer(self, path: str) -> None:
        await self._list_and_watch(path, "")
        await asyncio.Event().wait()


def test_one_that_never_watches_again_comes_to_rest_all_the_same() -> None:
    made = done(GAP, Small(copy_size, life=Forgetful))
    assert sizes(made) == ["3"] * 4, "it has seen no more"
    assert STARTED <= max(seconds(made)) < STARTED + 5.0


class Looking(Life):
    """Looks at everything now and then."""

    async def _informer(self, path: str) -> None:
        while True:
            listed = await self._api.call("GET", path)
            self._caches[path] = {item["metadata"]["name"]: item for item in listed["items"]}
            self._news.set()
            await asyncio.sleep(QUIET / 2)


class Dying(Life):
    """Ends with its first watch."""

    async def _informer(self, path: str) -> None:
        await self._list_and_watch(path, "")
        raise SystemError("no watch any more")


def test_another_life_has_no_watch_to_begin_again() -> None:
    lives = iter((Dying, Looking))
    made = done(GAP, Small(copy_size, life=lambda *arguments: next(lives)(*arguments)))
    assert sizes(made) == ["3", "3", "5", "4"]
    assert max(seconds(made)) < STARTED
