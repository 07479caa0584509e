"""Runs that begin where the reference was at rest: as if they had begun with the first step."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest

from konverge.check import shrink
from konverge.check.beginnings import Beginnings
from konverge.check.campaign import Campaign, Options
from konverge.check.child_run import run_child
from konverge.check.differences import Masks
from konverge.check.model import (
    Alarm,
    Change,
    Crash,
    Delete,
    Edit,
    Exchange,
    Lag,
    LateOwnWrites,
    Moment,
    OperatorAway,
    Place,
    Plan,
    Ref,
    Run,
    Stale,
    Step,
    Task,
    decode_run,
    decode_task,
    encode,
)
from konverge.check.oracles import judge
from konverge.check.planning import Planned
from konverge.check.plans.length import Length
from konverge.check.reference import Reference
from konverge.check.snapshot import Counted, put_back, taken
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim import Cluster
from tests.check.child.support import CREATE, task, written

AGAIN = Step("again", (Delete("v1", "ConfigMap", "default", "second"),))
"""The program makes it again, which is the second occurrence of that write."""
STEPS = (CREATE, AGAIN, Step("idle", ()))
SECOND = Place("create", "/configmaps", "default", "second")
AGAIN_MADE = Place("create", "/configmaps", "default", "second", occurrence=2)


@dataclass
class Here:
    """Carries out tasks in this process, as a worker does, and remembers where they began."""

    jobs: int = 1
    begun: list[int] = field(default_factory=list)

    def run(self, wanted: Task) -> Run:
        if wanted.restored is not None:
            self.begun.append(wanted.plan.begin)
        return decode_run(encode(asyncio.run(run_child(decode_task(encode(wanted))))))


@pytest.fixture(scope="module")
def reference() -> Reference:
    run = Here().run(msgspec.structs.replace(task(steps=STEPS), snapshots=True))
    assert run.problem == ""
    masks = Masks((r"configmaps:data\..*",))  # its environment and process
    return Reference(run=run, masks=masks)


@pytest.mark.spec("K-70")
def test_a_run_that_begins_later_is_as_one_from_the_beginning(reference: Reference) -> None:
    runner = Here()
    beginnings = Beginnings(runner, reference)
    beginnings.try_out(task(steps=STEPS), judge)
    assert runner.begun == [1, 2]
    plan = beginnings.plan(Plan("crash", (Crash(AGAIN_MADE),)))
    assert plan.begin == 1
    run = beginnings.run(task(plan=plan, steps=STEPS))
    assert not run.missed
    assert run.hit == [f"crash after {AGAIN_MADE}"]
    assert [checkpoint.step for checkpoint in run.checkpoints] == ["create", "again", "idle"]
    assert written(run) == [(1, "create", "second"), (1, "create", "third"), (2, "create", "second")]
    numbers = [item.number for item in run.exchanges]
    assert numbers == sorted(set(numbers))
    revisions = [change.revision for change in run.changes]
    assert revisions == sorted(set(revisions))
    uid = [checkpoint.state["configmaps default/third"]["metadata"]["uid"] for checkpoint in run.checkpoints]
    assert len(set(uid)) == 1
    assert list(judge(run, reference)) == []


@dataclass
class Written:
    """Answers as the reference went, but for one beginning, from which something is wrong."""

    reference: Run
    wrong: str
    jobs: int = 1
    whole: int = 0

    def run(self, wanted: Task) -> Run:
        plan = wanted.plan
        if wanted.restored is None:
            self.whole += 1
            return self.reference
        run = Run(plan=plan, seed=0, steps=self.reference.steps)
        run.checkpoints = self.reference.checkpoints[plan.begin - 1 : plan.first]
        if plan.begin == 2:
            match self.wrong:
                case "problem":
                    run.problem = "the operator did not start"
                case "unrested":
                    run.checkpoints = [msgspec.structs.replace(item, rested=False) for item in run.checkpoints]
                case "short":
                    run.checkpoints = run.checkpoints[:-1]
        return run

    def judge(self, run: Run, beside: Reference) -> list[Alarm]:
        usual = Alarm(oracle="state", severity="high", object="usual", sentence="")
        if self.wrong == "alarm" and run is not beside.run and run.plan.begin == 2:
            return [usual, Alarm(oracle="state", severity="medium", object="x", sentence="")]
        return [usual]


@pytest.mark.spec("K-70")
@pytest.mark.parametrize("wrong", ["problem", "unrested", "short", "alarm"])
def test_from_where_an_undisturbed_run_does_not_go_on_as_the_reference_none_begins(
    reference: Reference, wrong: str
) -> None:
    runner = Written(reference.run, wrong)
    beginnings = Beginnings(runner, reference)
    beginnings.try_out(task(steps=STEPS), runner.judge)
    plan = beginnings.plan(Plan("input", steps=STEPS))
    assert plan.begin == 1  # and not 2
    beginnings.run(task(plan=plan, steps=STEPS))
    assert runner.whole == 0
    beginnings.run(task(plan=msgspec.structs.replace(plan, begin=2), steps=STEPS))
    assert runner.whole == 1


@pytest.mark.spec("K-70")
def test_a_check_begins_its_plans_late_and_confirms_by_whole_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "RESYNC", 1.0)  # this program looks at its objects all the time

    def alarmed(run: Run, beside: Reference) -> list[Alarm]:
        disturbed = bool(run.plan.perturbations)
        return [Alarm(oracle="state", severity="high", object="x", sentence="x", step="again")] if disturbed else []

    runner, plan = Here(), Plan("crash", (Crash(AGAIN_MADE),))
    wanted = task(steps=STEPS)
    options = Options(quiet=wanted.quiet, limit=wanted.limit, shrink=False)
    campaign = Campaign(
        wanted.subject, wanted.setup, STEPS, runner, options, judge=alarmed, planner=lambda *_: Planned([plan])
    )
    outcome = campaign.check()
    assert runner.begun == [1, 2, 1], "two are tried undisturbed; one plan; and no repetition"
    [finding] = outcome.findings
    assert finding.confirmed == (1, 1)
    assert not any(item.missed or item.problem for item in outcome.performed)


# ------------------------------------------------------------------ where a plan can begin


def moved(step: int, occurrence: int = 1) -> Change:
    moment = Moment("MODIFIED", "/pods", "default", "a", "spec", occurrence)
    ref = Ref("/pods", "default", "a")
    return Change(revision=step + 10, time=0.0, moment=moment, ref=ref, uid="u", writer="user", step=step)


def length() -> Length:
    steps = tuple(Step(name, ()) for name in "abcd")
    changes = [moved(1), moved(3, 2)]
    exchange = Exchange(
        number=0, incarnation=1, verb="create", resource="/pods", namespace="default", name="a", status=201, began=0.0,
        revision=1, revisions=(13,), place=SECOND,
    )  # fmt: skip
    return Length(
        Reference(
            run=Run(plan=Plan("reference"), seed=0, steps=steps, changes=changes, exchanges=[exchange]), masks=Masks()
        )
    )


LATE = Crash(SECOND)
UNKNOWN = Crash(Place("create", "/pods", "default", "never"))


@pytest.mark.spec("K-70")
@pytest.mark.parametrize(
    ("plan", "begin"),
    [
        (Plan("crash", (LATE,)), 3),
        (Plan("crash", (LATE, UNKNOWN)), 0),
        (Plan("stale", (Stale("/pods", moved(1).moment, moved(3, 2).moment),)), 1),
        (Plan("stale", (Lag("/pods", moved(3, 2).moment),)), 3),
        (Plan("edits", (Edit(Ref("/pods", "default", "a"), None, 1),)), 2),
        (Plan("crash", (OperatorAway(1, 3),)), 1),
        (Plan("own-writes", (LateOwnWrites("/pods"),)), 0),
        (Plan("input", steps=(Step("a", ()), Step("other", ()))), 1),
        (Plan("input", steps=(Step("other", ()), Step("b", ()))), 0),
    ],
)
def test_nothing_that_a_plan_disturbs_is_before_its_beginning(plan: Plan, begin: int) -> None:
    assert length().beginning(plan) == begin


# ------------------------------------------------------------------ what lasts


@pytest.mark.spec("K-70")
async def test_pods_go_on_where_they_were() -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 2, "serviceName": "a", "selector": {"matchLabels": {"app": "a"}}, "template": template}
    sets = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a", "namespace": "default"}}

    async def shown(cluster: Cluster) -> list[tuple[str | None, ...]]:
        pods = (await cluster.client.list(Pod, "default")).items
        return [(pod.metadata.uid, pod.metadata.resource_version, pod.status.pod_ip, pod.status.phase) for pod in pods]

    async with Cluster(nodes=1) as cluster:
        await cluster.client.create({**sets, "spec": spec})
        await cluster.settle()
        before = await shown(cluster)
        snapshot = taken(cluster, 0, Counted(first=1, time=0.0, incarnation=1, requests=0))
    another = Cluster(nodes=1)
    put_back(another, snapshot)
    async with another:
        await another.settle()
        assert len(before) == 2
        assert await shown(another) == before
        assert another.server.store.revision > snapshot.revision
