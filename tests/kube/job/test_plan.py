"""Which pods a Job creates and deletes, and how long it waits after failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import clock
from konverge.kube.job.job_pods import FAILURES, IGNORED_FAILURES, index_of
from konverge.kube.job.plan import Plan, Streak, Streaks, plan, remaining
from konverge.kube.job.view import look_at
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import parse_time
from tests.kube.job.made import at, indexed, names, pod, ready
from tests.kube.objects import job

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-36")]


def planned(owner: Job, *pods: Pod, streak: Streak | None = None) -> Plan:
    return plan(look_at(owner, list(pods)), streak or Streak())


RUNNING = [pod(name, "Running", conditions=ready()) for name in "abc"]


@pytest.mark.parametrize(
    ("spec", "succeeded", "running", "created", "deleted"),
    [
        ({"parallelism": 3, "completions": 9}, 0, 0, 3, 0),
        ({"parallelism": 3, "completions": 9}, 0, 2, 1, 0),
        ({"parallelism": 3, "completions": 9}, 7, 1, 1, 0),
        ({"parallelism": 3, "completions": 9}, 8, 1, 0, 0),
        ({"parallelism": 3, "completions": 9}, 8, 3, 0, 2),
        ({"parallelism": 3, "completions": 9}, 9, 1, 0, 1),
        ({"parallelism": 3, "completions": 9}, 12, 0, 0, 0),
        ({"parallelism": 1, "completions": 9}, 0, 3, 0, 2),
        ({"parallelism": 0, "completions": 9}, 0, 3, 0, 3),
        ({"completions": 9}, 0, 0, 1, 0),
        ({"parallelism": 3}, 0, 1, 2, 0),
        ({"parallelism": 3}, 1, 2, 0, 0),  # after the first success none is added
        ({"parallelism": 1}, 1, 3, 0, 0),
        ({"parallelism": 1}, 0, 3, 0, 2),
        ({"parallelism": 3, "completions": 9, "suspend": True}, 0, 3, 0, 3),
        ({"parallelism": 3, "completions": 9, "suspend": True}, 0, 0, 0, 0),
    ],
)
def test_as_many_pods_run_as_are_wanted(
    spec: dict[str, Any], succeeded: int, running: int, created: int, deleted: int
) -> None:
    owner = job(**spec)
    owner.status.succeeded = succeeded
    steps = planned(owner, *RUNNING[:running])
    assert (len(steps.create), len(steps.delete), steps.wait) == (created, deleted, 0)


def test_pods_that_are_being_deleted_are_waited_for_if_only_failed_ones_are_replaced() -> None:
    going = pod("x", going=True)
    assert len(planned(job(parallelism=2, completions=2, podReplacementPolicy="Failed"), going).create) == 1
    assert len(planned(job(parallelism=2, completions=2), going).create) == 2
    fives = {"podReplacementPolicy": "Failed"}
    pending = planned(indexed(3, **fives), pod("x", index=1, going=True)).create
    assert [index_of(made) for made in pending] == [0, 2]
    assert len(planned(indexed(3), pod("x", index=1, going=True)).create) == 3


def test_the_surplus_goes_in_the_order_of_deletion() -> None:
    pods = [pod("ready", conditions=ready()), pod("pending", "Pending"), pod("started", "Running")]
    assert names(planned(job(parallelism=1, completions=9), *pods).delete) == "pending started"


def test_of_an_index_one_pod_is_kept_and_invalid_indexes_go() -> None:
    pods = [
        pod("late", "Pending", index=1), pod("first", index=1, conditions=ready()), pod("two", index=2),
        pod("none"), pod("beyond", index=7), pod("zero", index=0),
    ]  # fmt: skip
    assert names(planned(indexed(4), *pods).delete) == "late none beyond"
    fewer = indexed(4)
    fewer.spec.parallelism = 1
    removed = names(planned(fewer, *pods).delete).split()
    assert set(removed[:3]) == {"late", "none", "beyond"}
    assert len(removed) == 5
    assert "first" not in removed


@pytest.mark.parametrize(
    ("done", "failed", "running", "parallelism", "expected"),
    [
        ("", "", [], 9, [0, 1, 2, 3, 4]),
        ("", "", [], 2, [0, 1]),
        ("0,2", "", [], 9, [1, 3, 4]),
        ("0", "1", [], 9, [2, 3, 4]),
        ("0", "1", [2, 4], 9, [3]),
        ("0", "", [1, 4], 3, [2]),
        ("0-4", "", [], 9, []),
    ],
)
def test_the_lowest_free_indexes_get_pods(
    done: str, failed: str, running: list[int], parallelism: int, expected: list[int]
) -> None:
    owner = indexed(5, backoffLimitPerIndex=1)
    owner.spec.parallelism = parallelism
    owner.status.completed_indexes, owner.status.failed_indexes = done, failed
    steps = planned(owner, *(pod(f"r{index}", index=index) for index in running))
    assert [index_of(made) for made in steps.create] == expected
    assert all(made.metadata.annotations[FAILURES] == "0" for made in steps.create)
    plain = indexed(2)
    assert [index_of(made) for made in planned(plain).create] == [0, 1]
    assert all(FAILURES not in made.metadata.annotations for made in planned(plain).create)


async def test_an_index_waits_after_its_failure_and_its_successor_takes_over_the_count() -> None:
    ignore = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}]}
    owner = indexed(4, backoffLimitPerIndex=5, podFailurePolicy=ignore)
    failed = [
        pod("a", "Failed", index=0, failures=2, ended=0),
        pod("b", "Failed", index=1, failures=1, ignored=1, ended=0, code=42),
        pod("c", index=2),
        pod("d", "Failed", index=3, failures=0, ended=0),
    ]
    steps = planned(owner, *failed)
    assert (steps.create, steps.wait) == ([], 10)
    await asyncio.sleep(10)
    steps = planned(owner, *failed)
    assert [index_of(made) for made in steps.create] == [3]
    assert steps.wait == 30  # the third failure of the others: 40 s in all
    await asyncio.sleep(30)
    created = planned(owner, *failed)
    counts = [
        (index_of(made), made.metadata.annotations[FAILURES], made.metadata.annotations.get(IGNORED_FAILURES))
        for made in created.create
    ]
    assert counts == [(0, "3", None), (1, "1", "2"), (3, "1", None)]
    assert created.wait == 0


async def test_a_job_without_a_limit_per_index_waits_as_a_whole() -> None:
    streak = Streak(2, clock.utc_now())
    for owner in (job(), indexed(3)):
        assert planned(owner, streak=streak) == Plan(wait=20)
    assert planned(indexed(3, backoffLimitPerIndex=1), streak=streak).wait == 0


@pytest.mark.parametrize(
    ("failures", "delay"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (8, 600), (99, 600), (9999, 600)]
)
async def test_the_delay_after_failures_doubles_up_to_ten_minutes(failures: int, delay: float) -> None:
    last = clock.utc_now()
    assert remaining(failures, last) == delay
    assert remaining(failures, None) == 0
    await asyncio.sleep(3)
    assert remaining(failures, last) == max(0, delay - 3)
    await asyncio.sleep(900)
    assert remaining(failures, last) == 0


def test_failures_are_counted_since_the_last_success() -> None:
    def ended(*minutes: int) -> list[Pod]:
        return [pod(f"p{minute}", ended=minute) for minute in minutes]

    streak = Streak(2, parse_time(at(1)))
    assert streak.after([], []) is streak
    assert streak.after([], ended(5, 3)) == Streak(4, parse_time(at(5)))
    assert streak.after(ended(4), []) == Streak(0, None)
    assert streak.after(ended(4, 2), ended(3, 4, 7, 5)) == Streak(2, parse_time(at(7)))
    assert streak.after(ended(9), ended(3)) == Streak(0, None)


def test_streaks_are_kept_by_job_and_bounded() -> None:
    streaks = Streaks()
    streaks.put("a", Streak(3))
    assert (streaks.get("a"), streaks.get("b")) == (Streak(3), Streak())
    streaks.forget("a")
    streaks.forget("b")
    assert streaks.get("a") == Streak()
    for number in range(10_001):
        streaks.put(f"u{number}", Streak(number + 1))
    assert streaks.get("u0") == Streak()
    assert streaks.get("u1") == Streak(2)
    assert streaks.get("u10000") == Streak(10_001)
