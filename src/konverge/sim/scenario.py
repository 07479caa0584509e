"""A story that a cluster must survive: workloads come, change and go while things go wrong; at the end all is well.

`run_seed(seed)` runs it once. When it fails, `shortest` leaves out one fault after the other for as long as it still
fails, so that what remains is the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from konverge.client import Client, MergePatch
from konverge.objects.kinds.apps_v1 import Deployment, StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim import run
from konverge.sim.cluster import Cluster
from konverge.sim.faults import Plan
from konverge.sim.invariants import Invariants

SPACE = "default"
QUIET = 120.0
"""Simulated seconds without a change after which nothing more is to be expected: longer than any pause of a client."""
PATIENCE = 3600.0
"""Simulated seconds within which a cluster must have come to rest after the last fault."""


@dataclass(slots=True)
class Outcome:
    """How it went."""

    seed: int
    plan: Plan
    problem: str = ""
    happened: list[str] = field(default_factory=list)
    """The faults that came to pass."""

    @property
    def fine(self) -> bool:
        return not self.problem


def run_seed(seed: int, plan: Plan | None = None) -> Outcome:
    """The story with the faults of a seed (or of a plan), on virtual time."""
    chosen = Plan.of(seed) if plan is None else plan
    outcome = Outcome(seed, chosen)
    try:
        run(_play(chosen, outcome), seed=seed)
    except AssertionError as error:
        outcome.problem = str(error) or repr(error)
    except Exception as error:  # the boundary of a run: whatever ended it is what is reported
        outcome.problem = f"{type(error).__name__}: {error}"
    return outcome


def shortest(outcome: Outcome, again: Callable[[int, Plan], Outcome] = run_seed) -> Outcome:
    """A failing outcome with as few faults as will do: no single one of them can be left out."""
    best, place = outcome, 0
    while place < len(best.plan.faults):
        faults = best.plan.faults
        tried = again(best.seed, Plan(faults[:place] + faults[place + 1 :]))
        if tried.fine:
            place += 1
        else:
            best = tried
    return best


def report(outcome: Outcome, short: Outcome, command: str = "konverge sim") -> str:
    """A failing outcome as text: what is wrong, the fewest faults that lead to it, and how to see it again."""
    again = f'{command} --seed {outcome.seed} --plan "{short.plan if short.plan.faults else ""}" --logs'
    lines = [
        f"seed {outcome.seed} failed: {outcome.problem}",
        f"with {len(short.plan.faults)} of {len(outcome.plan.faults)} faults it still fails: {short.problem}",
        *(f"  {line}" for line in short.happened),
        f"the whole of it: {command} --seed {outcome.seed}",
        f"again: {again}",
    ]
    return "\n".join(lines)


async def _play(plan: Plan, outcome: Outcome) -> None:
    async with Cluster(faults=plan) as cluster:
        watching = Invariants(cluster)
        watching.follow()
        if cluster.faulty is not None:
            outcome.happened = cluster.faulty.happened
        for chapter in (_begin, _change, _end):
            await chapter(cluster.client)
            await asyncio.sleep(40)
            watching.check()
        if cluster.chaos is not None:
            await cluster.chaos.over.wait()
        await cluster.settle(quiet=QUIET, limit=PATIENCE)
        watching.at_rest()
        await _all_is_well(cluster.client)


# ------------------------------------------------------------------ the chapters


async def _begin(client: Client) -> None:
    await client.create(_workload("apps/v1", "Deployment", "web", replicas=3))
    await client.create(_workload("apps/v1", "StatefulSet", "db", replicas=3, serviceName="db"))
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}}
    job = {"completions": 3, "parallelism": 2, "template": template}
    await client.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta("once"), "spec": job})


async def _change(client: Client) -> None:
    image = {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}
    await client.patch(Deployment, "web", MergePatch({"spec": {**image, "replicas": 5}}), SPACE)
    await client.patch(StatefulSet, "db", MergePatch({"spec": image}), SPACE)


async def _end(client: Client) -> None:
    await client.patch(Deployment, "web", MergePatch({"spec": {"replicas": 2}}), SPACE)
    await client.patch(StatefulSet, "db", MergePatch({"spec": {"replicas": 1}}), SPACE)
    await client.delete(Job, "once", SPACE, propagation="Background")


async def _all_is_well(client: Client) -> None:
    """What a user would see who knows nothing of the faults."""
    pods = [pod for pod in await client.list(Pod, SPACE) if pod.metadata.deletion_timestamp is None]
    shown = sorted(
        f"{pod.metadata.labels.get('app')} {pod.spec.containers[0].image} "
        f"{next((condition.status for condition in pod.status.conditions if condition.type == 'Ready'), '')}"
        for pod in pods
        if pod.status.phase not in ("Succeeded", "Failed")
    )
    wanted = ["db app:2 True", "web app:2 True", "web app:2 True"]
    assert shown == wanted, f"at the end there are {shown}, wanted {wanted}"
    web = await client.get(Deployment, "web", SPACE)
    assert web.status.ready_replicas == 2, f"Deployment web says {web.status.ready_replicas} ready, there are 2"


def _meta(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": SPACE}


def _workload(version: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    whole = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": version, "kind": kind, "metadata": _meta(name), "spec": whole}
