"""`konverge sim OPERATOR`: an operator with its samples on a simulated cluster, where things go wrong by seed.

The oracle is the same run without faults: at the end each object must have the same phase, the same conditions and the
same children. Names that were generated do not count, and neither do texts and times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from konverge.cli.exit import UsageError
from konverge.cli.install_objects import create_samples, install_definitions
from konverge.client import Client
from konverge.objects.resource import Resource
from konverge.operators.catalog import Operator
from konverge.runtime import Manager
from konverge.sim import run
from konverge.sim.cluster import Cluster
from konverge.sim.faults import Plan
from konverge.sim.outside import with_simulators
from konverge.sim.scenario import PATIENCE, QUIET, Outcome

State = dict[str, str]
"""`Kind namespace/name` -> what is compared of it, as text."""


@dataclass(slots=True)
class OperatorScenario:
    """The run of some operators with their samples, for one seed after the other."""

    operators: list[Operator]
    expected: State | None = None
    """The end without faults, once it is known."""

    def __post_init__(self) -> None:
        if not any(operator.samples for operator in self.operators):
            names = " ".join(operator.name for operator in self.operators)
            raise UsageError(f"{names} has no samples to run with: put a sample.yaml beside the file of the operator")

    def run_seed(self, seed: int, plan: Plan | None = None) -> Outcome:
        """The outcome with the faults of a seed, or of a plan."""
        if self.expected is None:
            self.expected = self._end(Outcome(seed, Plan(())), None)
        outcome = Outcome(seed, Plan.of(seed) if plan is None else plan)
        try:
            end = self._end(outcome, outcome.plan)
        except AssertionError as error:
            outcome.problem = str(error) or repr(error)
        except Exception as error:  # the boundary of a run: whatever ended it is what is reported
            outcome.problem = f"{type(error).__name__}: {error}"
        else:
            outcome.problem = difference(self.expected, end)
        return outcome

    def _end(self, outcome: Outcome, plan: Plan | None) -> State:
        state: State = run(self._play(outcome, plan), seed=outcome.seed)
        return state

    async def _play(self, outcome: Outcome, plan: Plan | None) -> State:
        async with Cluster(faults=plan) as cluster, with_simulators(cluster, self.operators) as controllers:
            if cluster.faulty is not None:
                outcome.happened = cluster.faulty.happened
            await install_definitions(cluster.client, self.operators)
            async with cluster.connect("operator") as client:
                manager = Manager(client, name="konverge")
                for controller in controllers:
                    manager.add(controller)
                for operator in self.operators:
                    if operator.manager is not None:
                        manager.take_tasks(operator.manager)
                    manager.take_webhooks(operator.webhooks())
                manager.webhooks = manager.webhooks and replace(manager.webhooks, place=cluster.webhook_place())
                async with manager.running():
                    await create_samples(cluster.client, self.operators)
                    if cluster.chaos is not None:
                        await cluster.chaos.over.wait()
                    await cluster.settle(quiet=QUIET, limit=PATIENCE)
                    owned = {owned.kind.resource for controller in controllers for owned in controller.owned}
                    return await self._state(cluster.client, owned)

    async def _state(self, client: Client, owned: Iterable[Resource]) -> State:
        served = {served.resource for served in await client.mapper.all()}
        children = [obj for resource in owned if resource in served for obj in await _all(client, resource)]
        kinds = [kind.resource for operator in self.operators for kind in operator.stored_kinds]
        objs = [obj for kind in kinds for obj in await _all(client, kind)]
        return {_name(obj): _seen(obj, children) for obj in objs}


async def _all(client: Client, resource: Resource) -> list[dict[str, Any]]:
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [{**obj, **kind} for obj in await client.list(resource)]


def _name(obj: dict[str, Any]) -> str:
    meta = obj["metadata"]
    return f"{obj['kind']} {meta.get('namespace', '')}/{meta['name']}".replace(" /", " ")


def _seen(obj: dict[str, Any], children: list[dict[str, Any]]) -> str:
    """What is compared of an object: its phase, its conditions, and the names of its children."""
    status = obj.get("status") or {}
    conditions = {entry.get("type"): entry.get("status") for entry in status.get("conditions") or ()}
    parts = [f"phase {status['phase']}"] if isinstance(status.get("phase"), str) else []
    parts += [f"{name}={value}" for name, value in sorted(conditions.items())]
    uid = obj["metadata"]["uid"]
    parts += sorted(_name(child) for child in children if _is_child(child["metadata"], uid))
    return ", ".join(parts)


def _is_child(meta: dict[str, Any], uid: str) -> bool:
    owners = meta.get("ownerReferences", ())
    return "generateName" not in meta and any(owner["uid"] == uid and owner.get("controller") for owner in owners)


def difference(expected: State, end: State) -> str:
    """The first difference of two ends, as a sentence; nothing when they are equal."""
    for name in sorted({*expected, *end}):
        if expected.get(name) != end.get(name):
            return (
                f"{name} ends with ({end.get(name, 'nothing')}), without faults with ({expected.get(name, 'nothing')})"
            )
    return ""
