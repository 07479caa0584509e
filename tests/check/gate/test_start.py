"""An operator that ends before it has read anything: the undisturbed run does not wait for it."""

from __future__ import annotations

import pytest

from konverge.check.model import Edit, Plan, Ref
from konverge.check.operator import Link
from konverge.check.supervisor import RESTARTS
from tests.check.gate.test_errors import STEPS
from tests.check.small import CONFIGS, Life, Small, run


class Short(Life):
    """Ends at once, after `reads` requests."""

    def __init__(self, small: Small, link: Link, token: str, reads: int = 0) -> None:
        self._reads = reads
        super().__init__(small, link, token)

    async def _run(self) -> None:
        for _ in range(self._reads):
            await self._api.get(CONFIGS, "nothing")


class ShortReader(Short):
    def __init__(self, small: Small, link: Link, token: str) -> None:
        super().__init__(small, link, token, 1)


async def nothing(*_: object) -> None:
    return


def ending() -> Small:
    return Small(nothing, life=Short)


def reading() -> Small:
    return Small(nothing, life=ShortReader)


@pytest.mark.spec("K-151")
def test_an_operator_that_ends_at_once_ends_the_undisturbed_run() -> None:
    made = run(ending, STEPS)
    assert made.problem == (
        f"the operator did not start (check its arguments and its environment): it ended {RESTARTS + 1} times: it ended"
    )
    assert len(made.exits) == RESTARTS + 1
    assert made.checkpoints == []


@pytest.mark.spec("K-151")
def test_one_that_has_read_something_may_go_on_with_the_next_step() -> None:
    made = run(reading, STEPS)
    assert made.problem == ""
    assert made.checkpoints


@pytest.mark.spec("K-151")
def test_one_that_something_disturbs_may_go_on_as_well() -> None:
    edit = Edit(Ref("/configmaps", "default", "a"), None, 0)
    made = run(ending, STEPS, Plan("edits", (edit,)))
    assert made.problem.startswith("the operator did not start: it ended 4 times")
    assert made.checkpoints
