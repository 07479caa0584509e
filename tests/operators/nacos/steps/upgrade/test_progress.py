"""While servers are replaced: who has arrived, which one may go next, and what the status says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from konverge.operators.nacos.resource import NacosStatus, UpgradeStatus
from konverge.operators.nacos.server import Verdict
from konverge.operators.nacos.steps.outcome import (
    ASLEEP,
    CLUSTER,
    CONTINUE,
    DONE,
    PARAMETER,
    SYSTEM,
    UNKNOWN,
    Outcome,
    failed,
    held,
    wait,
)
from konverge.operators.nacos.steps.restarts import heal_pods, replace_next, replace_useless
from konverge.operators.nacos.steps.upgrade.progress import finish, observe, record_upgrade
from tests.operators.nacos.steps.bench import Bench, ago
from tests.operators.nacos.steps.servers import verdict
from tests.operators.nacos.world import EMBEDDED, MYSQL

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-51")]
IMAGE = EMBEDDED["image"]
LONG_AGO = "2020-01-01T00:00:00Z"


def bench_of(
    *,
    ready: Sequence[int] | None = None,
    outdated: Sequence[int] = (),
    done: Sequence[int] = (),
    step: Any = "Rolling",
    phase: Any = "Running",
    replicas: int = 3,
    spec: dict[str, Any] = EMBEDDED,
) -> Bench:
    """A cluster on its way from 2.3.2 to 2.4.3."""
    record = UpgradeStatus(
        from_version="2.3.2",
        to="2.4.3",
        image=IMAGE,
        step=step,
        since=LONG_AGO,
        members_done=[f"nacos-{number}" for number in done],
    )
    status = NacosStatus(phase=phase, version="2.3.2", upgrade=record)
    bench = Bench({**spec, "image": IMAGE, "replicas": replicas}, status=status)
    bench.stateful_set()
    bench.pods(replicas, ready=ready, outdated=outdated)
    bench.state.image_in_force = bench.state.image_wanted = IMAGE
    return bench


def record(bench: Bench) -> UpgradeStatus:
    assert bench.status.upgrade is not None
    return bench.status.upgrade


def answers(versions: dict[int, str], up: Sequence[int] = (0, 1, 2)) -> Verdict:
    """A verdict with other versions than 2.4.3."""
    base = verdict(3, up=up)
    members = tuple(
        msgspec.structs.replace(member, version=versions.get(number, "2.4.3"))
        for number, member in enumerate(base.members)
    )
    return replace(base, members=members)


# ------------------------------------------------------------------ who has arrived


def test_members_that_answered_with_the_new_version() -> None:
    bench = bench_of(outdated=[0, 1])
    observe(bench.state, bench.workload(), answers({0: "2.3.2", 1: "2.3.2"}))
    assert (record(bench).step, record(bench).members_done) == ("Rolling", ["nacos-2"])
    assert record(bench).since == LONG_AGO, "the step is the same"
    assert bench.state.halted is None


def test_a_member_that_is_not_up_has_not_arrived() -> None:
    bench = bench_of(outdated=[0], done=[1, 2])
    observe(bench.state, bench.workload(), answers({}, up=[0, 1]))
    assert record(bench).members_done == ["nacos-1"]


def test_all_have_arrived() -> None:
    bench = bench_of()
    observe(bench.state, bench.workload(), answers({}))
    assert record(bench).step == "Verifying"
    assert record(bench).since != LONG_AGO
    assert record(bench).members_done == ["nacos-0", "nacos-1", "nacos-2"]


def test_a_pod_that_is_missing_keeps_it_rolling() -> None:
    bench = bench_of()
    del bench.objects.stored["Pod", "nacos-1"]
    observe(bench.state, bench.workload(), answers({}))
    assert record(bench).step == "Rolling"


def test_a_pod_that_is_about_to_leave_does_not_count() -> None:
    bench = bench_of(outdated=[2])
    bench.state.at_size(3, 2)
    observe(bench.state, bench.workload(), answers({2: "2.3.2"}))
    assert (record(bench).step, record(bench).members_done) == ("Verifying", ["nacos-0", "nacos-1"])


def test_another_line_than_the_image_promised_halts() -> None:
    bench = bench_of(outdated=[0], done=[1, 2])
    observe(bench.state, bench.workload(), answers({1: "2.3.2", 2: "2.5.0"}))
    assert record(bench).members_done == []
    assert bench.state.halted is not None
    assert bench.state.halted.reason == "VersionDiffers"
    assert "nacos-1 reports 2.3.2, nacos-2 reports 2.5.0, and " in bench.state.halted.message
    assert not bench.state.may_roll
    bench = bench_of()
    observe(bench.state, bench.workload(), answers({1: "2.4.9"}))
    assert bench.state.halted is None


def test_nothing_is_observed_of_an_upgrade_that_is_not_rolling() -> None:
    bench = bench_of(step="Done")
    observe(bench.state, bench.workload(), answers({0: "9.0.0"}))
    assert bench.state.halted is None
    bench = bench_of(step="Preflight")
    bench.state.image_in_force = "n:v2.3.2"
    observe(bench.state, bench.workload(), answers({0: "9.0.0"}))
    assert bench.state.halted is None


# ------------------------------------------------------------------ which one may go next


async def test_the_next_one_goes_when_all_before_it_have_arrived() -> None:
    bench = bench_of(outdated=[0, 1], done=[2])
    assert (await replace_next(bench.state, bench.workload(), [], verdict(3), "")).reason == "RollingUpdate"
    assert bench.sent == ["delete Pod nacos-1"]
    bench = bench_of(outdated=[0, 1], done=[])
    assert await replace_next(bench.state, bench.workload(), [], verdict(3), "") is CONTINUE
    assert bench.sent == []


async def test_no_last_resort_while_a_new_one_has_not_arrived() -> None:
    bench = bench_of(outdated=[0, 1], phase="Failed")
    assert await replace_next(bench.state, bench.workload(), [], verdict(3, up=[0, 1]), "") is CONTINUE
    assert bench.sent == []


async def test_the_last_resort_is_an_old_one_of_no_use() -> None:
    bench = bench_of(outdated=[0, 1, 2], phase="Failed")
    await replace_next(bench.state, bench.workload(), [], verdict(3, up=[1, 2]), "")
    assert bench.sent == ["delete Pod nacos-0"]
    bench = bench_of(outdated=[0, 1, 2], phase="Running")
    await replace_next(bench.state, bench.workload(), [], verdict(3, up=[1, 2]), "")
    assert bench.sent == []


async def test_a_halt_replaces_none() -> None:
    bench = bench_of(outdated=[0, 1], done=[2])
    bench.state.may_roll = False
    assert await replace_next(bench.state, bench.workload(), [], verdict(3), "") is CONTINUE
    assert bench.sent == []


@pytest.mark.spec("N-50")
async def test_the_database_is_asked_right_before() -> None:
    bench = bench_of(outdated=[0, 1], done=[2], spec=MYSQL)
    server = bench.databases.add_server("my", 3306, "mysql")
    server.add("nacos", "nacos", "word")
    server.down = True
    outcome = await replace_next(bench.state, bench.workload(), [], verdict(3), "")
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", SYSTEM, "DatabaseUnreachable")
    assert bench.condition("DatabaseReady") == "False Unreachable"
    assert bench.sent == []
    server.down = False
    await replace_next(bench.state, bench.workload(), [], verdict(3), "")
    assert bench.sent == ["delete Pod nacos-1"]


async def test_the_database_is_not_asked_where_the_user_says_so_or_without_an_upgrade() -> None:
    unchecked = {**MYSQL, "database": {**MYSQL["database"], "mysqlCheck": False}}
    bench = bench_of(outdated=[0, 1], done=[2], spec=unchecked)
    await replace_next(bench.state, bench.workload(), [], verdict(3), "")
    assert bench.sent == ["delete Pod nacos-1"]
    bench = bench_of(outdated=[0, 1], step="Done", spec=MYSQL)
    await replace_next(bench.state, bench.workload(), [], verdict(3), "")
    assert bench.sent == ["delete Pod nacos-1"]


# ------------------------------------------------------------------ old servers that stumble


@pytest.mark.spec("N-53")
async def test_an_old_server_that_stumbles_is_not_given_a_version_that_has_not_started() -> None:
    bench = bench_of(ready=[0], outdated=[0, 1])
    assert await replace_useless(bench.state, bench.workload()) is CONTINUE
    assert bench.sent == []


@pytest.mark.parametrize(
    ("ready", "outdated", "step"),
    [
        ([0, 2], [0, 1], "Rolling"),  # a new one is ready
        ([0], [0, 1, 2], "Rolling"),  # there is no new one yet
        ([], [0, 1], "Rolling"),  # there is nothing to protect
        ([0], [0, 1], "Done"),  # another change than an upgrade
    ],
)
async def test_else_it_goes_first(ready: list[int], outdated: list[int], step: str) -> None:
    bench = bench_of(ready=ready, outdated=outdated, step=step)
    assert (await replace_useless(bench.state, bench.workload())).reason == "Replacing"
    assert len(bench.sent) == 1


@pytest.mark.spec("N-53")
@pytest.mark.parametrize(
    ("ready", "done", "healed"),
    [
        ([0, 1], [], "nacos-4"),  # no majority to lose
        ([0, 1, 2], [], "nacos-4"),
        ([0, 1, 2, 4], [], ""),  # the new one is ready, but no member
        ([0, 1, 2, 4], [4], "nacos-3"),
    ],
)
async def test_healing_gives_no_old_server_a_version_that_has_not_proved_itself(
    ready: list[int], done: list[int], healed: str
) -> None:
    bench = bench_of(ready=ready, outdated=[0, 1, 2, 3], done=done, phase="Failed", replicas=5)
    await heal_pods(bench.state, bench.workload(), None, failed(UNKNOWN, "PodsNotReady", ""))
    assert bench.sent == ([f"delete Pod {healed}"] if healed else [])


async def test_without_a_majority_an_old_server_is_healed_whatever_it_becomes() -> None:
    bench = bench_of(ready=[0, 4], outdated=[0, 1, 2, 3], phase="Failed", replicas=5)
    await heal_pods(bench.state, bench.workload(), None, failed(UNKNOWN, "PodsNotReady", ""))
    assert bench.sent == ["delete Pod nacos-3"]


# ------------------------------------------------------------------ the status


def test_it_is_done() -> None:
    bench = bench_of(step="Verifying", done=[0, 1, 2])
    record(bench).halted = "MembersNotUp"
    finish(bench.state)
    assert (record(bench).step, record(bench).halted) == ("Done", "")
    assert record(bench).since != LONG_AGO
    assert record(bench).message == "3 servers run Nacos 2.4.3"
    assert bench.condition("Upgrading") == "False Done"
    assert bench.reasons == ["Normal Upgraded"]
    finish(bench.state)
    assert bench.reasons == ["Normal Upgraded"]


@pytest.mark.parametrize("why", ["a step before", "not all", "halted", "another image"])
def test_it_is_not_done(why: str) -> None:
    bench = bench_of(
        step="Rolling" if why == "a step before" else "Verifying", done=[0, 1] if why == "not all" else [0, 1, 2]
    )
    if why == "halted":
        bench.state.halted = held("UpgradePaused", "")
    if why == "another image":
        bench.state.image_in_force = "n:v2.3.2"
    finish(bench.state)
    assert record(bench).step != "Done"
    assert bench.reasons == []


SLOW = 181.0
"""Seconds, a little more than the patience."""


@pytest.mark.spec("N-53")
@pytest.mark.parametrize(
    ("outcome", "failing", "halted"),
    [
        (wait("RollingUpdate", "m"), SLOW, ""),
        (DONE, SLOW, ""),
        (failed(CLUSTER, "MembersNotUp", "m"), 0.0, ""),
        (failed(CLUSTER, "MembersNotUp", "m"), 170.0, ""),
        (failed(CLUSTER, "MembersNotUp", "m"), SLOW, "MembersNotUp"),
        (failed(UNKNOWN, "PodsNotReady", "m"), SLOW, "PodsNotReady"),
        (failed(SYSTEM, "InitJobFailed", "m"), 0.0, "InitJobFailed"),
        (failed(PARAMETER, "NotOwned", "m"), 0.0, "NotOwned"),
        (ASLEEP, 0.0, "Hibernated"),
        (wait("Hibernating", "m"), 0.0, "Hibernating"),
    ],
)
def test_what_halts_it(outcome: Outcome, failing: float, halted: str) -> None:
    bench = bench_of(done=[2])
    bench.status.failing_since = ago(failing) if failing else ""
    record_upgrade(bench.state, outcome)
    assert record(bench).halted == halted
    assert bench.condition("Upgrading") == f"True {halted or 'Rolling'}"
    expected = outcome.message if halted else "from Nacos 2.3.2 to 2.4.3: 1 of 3 servers have it"
    assert record(bench).message == bench.message("Upgrading") == expected
    assert bench.reasons == (["Warning UpgradeHalted"] if halted else [])


def test_the_gate_says_why_whatever_the_outcome() -> None:
    bench = bench_of(step="Preflight")
    bench.state.halted = held("BackupMissing", "x" * 2000)
    record_upgrade(bench.state, failed(SYSTEM, "Other", ""))
    assert record(bench).halted == "BackupMissing"
    assert record(bench).message == "x" * 1024


def test_one_event_for_each_halt_and_one_when_it_goes_on() -> None:
    bench = bench_of(step="Migrating")
    for outcome in (
        wait("A", ""),
        failed(SYSTEM, "X", ""),
        failed(SYSTEM, "X", ""),
        failed(SYSTEM, "Y", ""),
        wait("A", ""),
    ):
        record_upgrade(bench.state, outcome)
    assert bench.reasons == ["Warning UpgradeHalted", "Warning UpgradeHalted", "Normal UpgradeResumed"]
    assert record(bench).message == "from Nacos 2.3.2 to 2.4.3"
    record_upgrade(bench.state, wait("A", ""))
    assert len(bench.reasons) == 3


def test_a_condition_of_no_upgrade() -> None:
    bench = bench_of()
    bench.status.upgrade = None
    record_upgrade(bench.state, DONE)
    assert bench.condition("Upgrading") == ""
    bench.since("Upgrading", "True", 60.0, "Rolling")
    record_upgrade(bench.state, DONE)
    assert bench.condition("Upgrading") == "False Ended"
