"""What counts as activity before rest, without a clock: the pure part."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from konverge.check import real_rest
from konverge.check.child_log import ChildLog
from konverge.check.host_time import longest, stolen
from konverge.check.model import Change, Checkpoint, Exchange, Moment, Plan, Ref, Run
from konverge.check.real_rest import (
    CYCLE,
    LEAST,
    LEAST_LIMIT,
    LIMIT,
    TICK,
    Activity,
    RealRest,
    always_busy_in,
    is_given_up,
    limit_after,
    lost_in,
    pauses_after,
    quiet_after,
)
from konverge.check.under_way import is_busy

POD = Ref("/pods", "default", "web-0")


def change(time: float, *differences: tuple[str, Any, Any]) -> Change:
    moment = Moment("MODIFIED", POD.resource, POD.namespace, POD.name, ",".join(path for path, _, _ in differences))
    return Change(
        revision=1, time=time, moment=moment, ref=POD, uid="u", writer="operator", differences=differences
    )  # fmt: skip


def write(status: int, name: str = "web", incarnation: int = 1) -> Exchange:
    return Exchange(
        number=0, incarnation=incarnation, verb="update", resource="/services", namespace="default", name=name,
        status=status, began=0.0, revision=1,
    )  # fmt: skip


@pytest.mark.spec("K-06")
def test_what_changed_last_is_what_rest_is_counted_from() -> None:
    activity = Activity(10.0)
    for time, value in ((11.0, 1), (14.5, 2), (15.0, 3)):
        activity.changed(change(time, ("spec.size", 0, value)))
    assert activity.last == 15.0
    assert activity.noise(0.0) == {}


@pytest.mark.spec("K-06")
def test_changes_that_go_round_in_a_circle_are_noise() -> None:
    activity = Activity(0.0)
    for number in range(2 * CYCLE + 4):
        on = number % 2
        activity.changed(
            change(float(number), ("metadata.labels.a", 1 - on, on), ("metadata.resourceVersion", 1, number))
        )
    assert activity.last == 2 * CYCLE - 1  # each of the two states so often
    assert list(activity.noise(activity.last).values()) == [4]


@pytest.mark.spec("K-06")
def test_a_counter_is_no_circle() -> None:
    activity = Activity(0.0)
    for number in range(20):
        activity.changed(change(float(number), ("status.count", number, number + 1)))
    assert activity.last == 19.0


@pytest.mark.spec("K-06")
def test_a_write_without_effect_counts_once_for_each_incarnation_and_answer() -> None:
    activity = Activity(0.0)
    activity.requested(write(200), 1.0)
    activity.requested(write(200), 2.0)
    assert activity.last == 1.0
    activity.requested(write(409), 3.0)
    assert activity.last == 3.0
    activity.requested(write(200, incarnation=2), 4.0)
    assert activity.last == 4.0
    activity.requested(write(200, incarnation=2), 5.0)
    assert activity.noise(4.0) == {"update services default/web": 1}


@pytest.mark.spec("K-06")
@pytest.mark.parametrize(
    ("elapsed", "work", "taken", "lost"),
    [
        (TICK, 0.0, 0.0, 0.0),
        (TICK, 0.03, 0.0, 0.03),
        (TICK, 0.03, 0.05, 0.08),
        (TICK, 0.09, 0.09, TICK),  # several threads, or what both count
        (TICK, -5.0, 0.0, 0.0),  # another program since
        (5 * TICK, 0.0, 0.0, 3 * TICK),  # we were late ourselves
        (5 * TICK, 0.0, 4 * TICK, 4 * TICK),
    ],
)
def test_time_in_which_the_machine_was_busy_or_stood_still_is_no_rest(
    elapsed: float, work: float, taken: float, lost: float
) -> None:
    assert lost_in(elapsed, work, taken) == pytest.approx(lost)


@pytest.mark.spec("K-06")
def test_what_the_host_has_taken_from_the_processor_that_lost_most(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  9 9 9 9 9 9 9 300 0 0\ncpu0 1 1 1 1 1 1 1 100 0 0\ncpu1 1 1 1 1 1 1 1 200 7 7\nintr 5 5\n")
    assert stolen(stat) == [1.0, 2.0]
    assert longest([1.0, 2.0], [1.5, 2.25]) == 0.5
    assert longest([], [1.0]) == 0.0
    stat.write_text("cpu 1 1 1 1\ncpu0 1 1 1 1\n")  # of a kernel that does not tell
    assert stolen(stat) == []
    assert stolen(tmp_path / "absent") == []


@pytest.mark.spec("K-06")
def test_the_pause_that_means_rest_is_learned_from_the_reference() -> None:
    def run(*gaps: float) -> Run:
        checkpoints = [Checkpoint(step="", revision=1, time=0.0, state={}, gap=gap) for gap in gaps]
        return Run(plan=Plan("reference"), seed=0, steps=(), checkpoints=checkpoints)

    assert quiet_after([run(0.1, 0.4)]) == LEAST
    assert quiet_after([run(0.1, 10.0), run(2.0)]) == 15.0


@pytest.mark.spec("K-05")
def test_of_a_log_the_first_panic_and_the_last_lines_are_kept() -> None:
    log = ChildLog()
    log.receive(2, b"starting\npanic: nil map\n\ngoroutine 1 [running]:\nmain.main()\n")
    for number in range(1000):
        log.receive(1, b"line %d\nhalf" % number)
        log.receive(1, b" of it\n")
    log.receive(1, b"no end")
    log.finish()
    assert log.reason() == "panic: nil map"
    assert log.lines()[0] == "panic: nil map"
    assert log.lines()[-2:] == ["half of it", "no end"]
    assert len(log.lines()) < 300


@pytest.mark.spec("K-05")
def test_the_reason_of_an_end_is_the_last_line_of_a_traceback_or_what_was_logged_last() -> None:
    python = ChildLog()
    python.receive(2, b'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: no size\n')
    assert python.reason() == "ValueError: no size"
    go = ChildLog()
    go.receive(2, b'{"level":"error","msg":"unable to start","error":"no \\"config\\"","stacktrace":"main"}\n')
    assert go.reason() == 'unable to start: no \\"config\\"'


@pytest.mark.spec("K-06")
def test_each_step_has_a_pause_of_its_own() -> None:
    def run(**gaps: float) -> Run:
        checkpoints = [Checkpoint(step=name, revision=1, time=0.0, state={}, gap=gap) for name, gap in gaps.items()]
        return Run(plan=Plan("reference"), seed=0, steps=(), checkpoints=checkpoints)

    assert pauses_after([run(create=0.1, grow=10.0), run(create=2.0, grow=0.1)]) == {"create": 3.0, "grow": 15.0}


PENDING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a pod that is not ready": (
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "False"}]},
        },
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    ),
    "an object that is being deleted": (
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {}},
    ),
    "a controller that is behind": (
        {"kind": "Thing", "apiVersion": "v1", "metadata": {"generation": 3}, "status": {"observedGeneration": 2}},
        {"status": {"observedGeneration": 3}},
    ),
    "a claim that is to grow": (
        {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "spec": {"resources": {"requests": {"storage": "20Gi"}}},
            "status": {"capacity": {"storage": "10Gi"}},
        },
        {"status": {"capacity": {"storage": "20Gi"}}},
    ),
    "replicas that are missing": (
        {
            "kind": "StatefulSet",
            "apiVersion": "apps/v1",
            "spec": {"replicas": 3},
            "status": {"readyReplicas": 2, "updatedReplicas": 3},
        },
        {"status": {"readyReplicas": 3, "updatedReplicas": 3}},
    ),
    "pods of an older template": (
        {
            "kind": "StatefulSet",
            "apiVersion": "apps/v1",
            "spec": {"replicas": 3},
            "status": {"readyReplicas": 3, "updatedReplicas": 2},
        },
        {"status": {"readyReplicas": 3, "updatedReplicas": 3}},
    ),
    "a ReplicaSet, which knows one template": (
        {"kind": "ReplicaSet", "apiVersion": "apps/v1", "spec": {"replicas": 3}, "status": {}},
        {"status": {"readyReplicas": 3}},
    ),
}
TABLES = {
    "Pod": "/pods", "Thing": "example.dev/things", "PersistentVolumeClaim": "/persistentvolumeclaims",
    "StatefulSet": "apps/statefulsets", "ReplicaSet": "apps/replicasets",
}  # fmt: skip


@pytest.mark.spec("K-06")
@pytest.mark.parametrize("name", PENDING)
def test_objects_say_that_something_is_under_way(name: str) -> None:
    pending, then = PENDING[name]
    assert is_busy(TABLES[pending["kind"]], {"metadata": {}, **pending})
    assert not is_busy(TABLES[pending["kind"]], {"metadata": {"generation": 3}, **pending, **then})


@pytest.mark.spec("K-06")
def test_what_objects_always_say_at_rest_means_nothing() -> None:
    checkpoints = [
        Checkpoint(step="create", revision=1, time=0.0, state={}, under_way=True),
        Checkpoint(step="delete", revision=1, time=0.0, state={}),
    ]
    run = Run(plan=Plan("reference"), seed=0, steps=(), checkpoints=checkpoints)
    assert always_busy_in([run]) == ("create",)


@pytest.mark.spec("K-06")
def test_a_step_is_given_up_after_several_times_what_the_longest_took_undisturbed() -> None:
    def run(*times: float) -> Run:
        checkpoints = [Checkpoint(step="", revision=1, time=time, state={}) for time in times]
        return Run(plan=Plan("reference"), seed=0, steps=(), checkpoints=checkpoints)

    assert limit_after([run(2.0, 3.0)]) == LEAST_LIMIT
    assert limit_after([run(2.0, 17.0, 20.0), run(3.0, 5.0)]) == 60.0
    assert limit_after([run(60.0)]) == LIMIT


@pytest.mark.spec("K-06")
def test_a_busy_machine_gives_a_step_longer_and_not_for_ever() -> None:
    assert not is_given_up(60.0, 30.0, 40.0)
    assert is_given_up(80.0, 30.0, 40.0)
    assert not is_given_up(100.0, 100.0, 40.0)
    assert is_given_up(121.0, 121.0, 40.0)


class Still:
    """A recorder to which nothing happens."""

    away = down = False
    asked = True
    started = 0.0
    first = 0
    step_name = "create"
    unwatched = ()

    def __init__(self) -> None:
        self.on_change: list[Any] = []
        self.on_request: list[Any] = []

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def at_work(self) -> float:
        return 0.0


async def waited(rest: RealRest, still: Still | None = None) -> int:
    """Seconds, on virtual time, until nothing that happens is rest."""
    rest.began = True
    began = asyncio.get_running_loop().time()
    cluster: Any = SimpleNamespace(scheduler=None, server=SimpleNamespace(store=SimpleNamespace(tables={})))
    await rest.wait(cluster, still or Still())  # type: ignore[arg-type]
    return int(asyncio.get_running_loop().time() - began)


@pytest.mark.virtual
@pytest.mark.spec("K-76")
async def test_a_wait_is_longer_while_objects_say_what_they_did_not_say_undisturbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rests() -> tuple[RealRest, ...]:
        learned = {"create": 2.0}
        return RealRest(12.0), RealRest(12.0, pauses=learned), RealRest(12.0, pauses=learned, always_busy=("create",))

    for under_way, seconds in ((False, [12, 2, 2]), (True, [12, 12, 2])):
        monkeypatch.setattr(real_rest, "is_under_way", lambda store, since, said=under_way: said)
        made = rests()
        assert [await waited(rest) for rest in made] == seconds
        assert [rest.under_way for rest in made] == [under_way] * 3


@pytest.mark.virtual
@pytest.mark.spec("K-87")
@pytest.mark.parametrize(("perturbed", "seconds"), [(True, 4 + 3), (False, 1 + 3)])
async def test_a_client_that_repeats_what_the_check_has_refused_is_at_work(perturbed: bool, seconds: int) -> None:
    still = Still()
    repeated = msgspec.structs.replace(write(429), perturbed=perturbed)

    async def client() -> None:
        for _ in range(4):
            await asyncio.sleep(1.01)
            for callback in still.on_request:
                callback(repeated)

    async with asyncio.TaskGroup() as group:
        group.create_task(client())
        assert await waited(RealRest(3.0), still) == seconds


@pytest.mark.virtual
@pytest.mark.spec("K-134")
async def test_the_pause_that_is_learned_is_without_the_time_that_is_no_rest() -> None:
    still = Still()
    computing = 0.0
    still.at_work = lambda: computing  # type: ignore[method-assign]
    rest = RealRest(3.0)

    async def operator() -> None:
        """A change, two seconds later another one; then five seconds of work, and rest before the last."""
        nonlocal computing
        for seconds_of_work, rests in ((0, 1.0), (0, 2.0), (5, 1.0)):
            for _ in range(seconds_of_work * 10):
                await asyncio.sleep(TICK)
                computing += TICK
            await asyncio.sleep(rests)
            for callback in still.on_change:
                callback(change(still.now(), ("spec.size", 0, still.now())))

    async with asyncio.TaskGroup() as group:
        group.create_task(operator())
        assert await waited(rest, still) == 9 + 3
    assert rest.gap == pytest.approx(2.0, abs=2 * TICK)


@pytest.mark.virtual
@pytest.mark.spec("K-134")
@pytest.mark.parametrize(("last", "gap"), [(0.0, 1.0), (2.0, 4.0)])
async def test_a_controller_that_looks_and_changes_nothing_ends_no_pause(
    monkeypatch: pytest.MonkeyPatch, last: float, gap: float
) -> None:
    """A node says that it lives, and the scheduler has a pod to look at for a moment: who learned that as a pause would
    wait ten times as long in all other runs. If something follows, it was waited for since the change before."""
    still = Still()
    looks = False
    monkeypatch.setattr(real_rest, "busy_queues", lambda queues: ["default-scheduler"] if looks else [])
    rest = RealRest(3.0)

    async def cluster() -> None:
        nonlocal looks
        await asyncio.sleep(1.0)
        still.on_change[0](change(still.now(), ("spec.size", 0, 1)))
        await asyncio.sleep(2.0)
        looks = True
        await asyncio.sleep(TICK)
        looks = False
        if last:
            await asyncio.sleep(last)
            still.on_change[0](change(still.now(), ("spec.size", 0, 2)))

    async with asyncio.TaskGroup() as group:
        group.create_task(cluster())
        assert await waited(rest, still) == 3 + last + 3
    assert rest.gap == pytest.approx(gap, abs=2 * TICK)


@pytest.mark.virtual
@pytest.mark.spec("K-89")
async def test_a_step_that_the_reference_did_not_have_waits_as_long_as_any_where_objects_say_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(real_rest, "is_under_way", lambda store, since: False)
    learned = {"a": 2.0, "b": 2.0, "c": 3.0, "d": 9.0}
    still = Still()
    still.step_name = "another"
    assert await waited(RealRest(9.0, pauses=learned), still) == 3
    assert await waited(RealRest(9.0, pauses=learned, always_busy=("c",)), still) == 9
    still.step_name = "a"
    assert await waited(RealRest(9.0, pauses=learned, always_busy=("c",)), still) == 2
