"""Faults of the application: met a few times in the step that they are for, and over by the rest after it."""

from __future__ import annotations

import pytest

from konverge.check.differences import Masks
from konverge.check.gate.core import Gate
from konverge.check.gate.perturbers import perturber_for
from konverge.check.gate.recorder import Recorder
from konverge.check.model import ApplicationFault, Plan, Run, Step
from konverge.check.plans import all_plans
from konverge.check.reference import Reference
from konverge.sim.applications import Applications
from konverge.sim.cluster import Cluster
from tests.sim.applications.support import running, simulated
from tests.sim.applications.test_servers import HTTP, asked

pytestmark = pytest.mark.spec("K-68")


def gate_of(cluster: Cluster, applications: Applications) -> tuple[Gate, list[str]]:
    gate = Gate(cluster.server.handle, Recorder(cluster.server.store))
    gate.applications = applications
    notes: list[str] = []
    gate.note = notes.append
    return gate, notes


async def test_a_fault_begins_with_its_step_and_ends_when_it_was_met() -> None:
    async with simulated(HTTP) as (cluster, applications):
        gate, notes = gate_of(cluster, applications)
        failing = perturber_for(ApplicationFault("api", "error", 1))
        assert failing is not None
        gate.add(failing)
        address = (await running(cluster, "web")).status.pod_ip or ""
        assert (await asked(address, "GET", "/pods/1"))[0] == 200
        assert not failing.between(0)
        assert failing.holds
        assert [(await asked(address, "GET", "/pods/1"))[0] for _ in range(3)] == [500, 500, 200]
        assert (failing.done, failing.holds) == (True, False)
        assert notes == ["api fails (error)"]
        assert not await failing.rested(1)


async def test_a_fault_of_the_first_step_that_is_not_met_ends_at_the_rest_after_it() -> None:
    async with simulated(HTTP) as (cluster, applications):
        gate, _ = gate_of(cluster, applications)
        failing = perturber_for(ApplicationFault("api", "cut", 0))
        assert failing is not None
        gate.add(failing)
        assert applications.servers["api"].fault == "cut"
        assert not await failing.rested(-1)
        assert await failing.rested(0)
        assert (applications.servers["api"].fault, failing.done) == ("", False)


async def test_a_server_that_is_not_there_never_fails() -> None:
    async with simulated(HTTP) as (cluster, applications):
        gate, _ = gate_of(cluster, applications)
        for fault in (ApplicationFault("other", "cut", 0), ApplicationFault("api", "sing", 0)):
            failing = perturber_for(fault)
            assert failing is not None
            gate.add(failing)
            assert (failing.holds, failing.done) == (False, False)


def test_plans_fail_servers_in_the_steps_in_which_they_were_asked() -> None:
    steps = tuple(Step(name, ()) for name in ("create", "grow", "delete"))
    run = Run(plan=Plan("reference", ()), seed=0, steps=steps, applications={"zk": (-1, 0, 2), "idle": ()})
    plans = all_plans(Reference(run=run, masks=Masks()), only={"application"})
    found = {(item.server, item.fault, item.step) for plan in plans for item in plan.perturbations}  # type: ignore[union-attr]
    assert found == {("zk", fault, step) for fault in ("error", "cut") for step in (0, 2)}
