"""A check leaves the garbage collector of its process as it was; inside, modules are not visited again and again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from konverge.check.collector import what_stays_is_frozen
from konverge.check.model import Run, Task
from konverge.check.subjects import InThisProcess
from tests.check.campaign import keeper
from tests.check.campaign.test_campaign import Counting, campaign


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


class Watching(Counting):
    """Notes for each run whether anything was frozen."""

    def __init__(self) -> None:
        super().__init__(InThisProcess(keeper.manager))
        self.frozen: list[bool] = []

    def run(self, task: Task) -> Run:
        self.frozen.append(gc.get_freeze_count() > 0)
        return super().run(task)


def test_all_runs_after_the_references_are_without_the_modules() -> None:
    runner = Watching()
    campaign(keeper.manager, runner=runner).check()
    assert runner.frozen[:2] == [False, False]
    assert len(runner.frozen) > 2
    assert all(runner.frozen[2:])
    assert gc.get_freeze_count() == 0


def test_a_check_that_is_interrupted_leaves_nothing_frozen() -> None:
    campaign(keeper.manager, runner=Counting(InThisProcess(keeper.manager), most=3)).check()
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_froze_stays_so() -> None:
    gc.freeze()
    with what_stays_is_frozen():
        pass
    assert gc.get_freeze_count() > 0


class Ring:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.me = self


def test_what_is_garbage_already_does_not_stay() -> None:
    gone = weakref.ref(Ring())
    with what_stays_is_frozen():
        assert gone() is None
