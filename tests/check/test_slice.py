"""A crash after every write of a small operator, in process: the state at every rest is that of the reference."""

from __future__ import annotations

import pytest

from konverge.check.in_process import run_in_process
from konverge.check.model import Plan, Run, Setup, Subject, Task, decode_run, decode_task, encode
from konverge.check.plans.crash import crashes
from konverge.check.reference import Reference, reference_of
from konverge.check.workload import basic
from konverge.operators.catalog import find

OPERATOR = find("webapp")
SETUP = Setup(objects=tuple(OPERATOR.definitions()), nodes=1)
STEPS = basic(OPERATOR.sample_objects()[:1])


def run(plan: Plan, seed: int = 0) -> Run:
    task = Task(subject=Subject(target="webapp"), setup=SETUP, steps=STEPS, plan=plan, seed=seed)
    return run_in_process(decode_task(encode(task)), OPERATOR.controllers)


@pytest.fixture(scope="module")
def reference() -> Reference:
    return reference_of(run(Plan("reference")), run(Plan("reference"), seed=1))


@pytest.mark.spec("K-01")
def test_writes_are_recorded_with_what_they_changed(reference: Reference) -> None:
    places = [exchange.place for exchange in reference.run.exchanges if exchange.place is not None]
    assert [place.resource for place in places if place.verb == "create"] == ["apps/deployments", "/services"] * 2
    assert "metadata.finalizers" in {place.change for place in places if place.verb == "patch"}
    writers = {change.moment.resource: change.writer for change in reference.run.changes if not change.differences}
    assert writers["apps/deployments"] == "operator"
    assert writers["apps/replicasets"] == "cluster"
    assert writers["apps.konverge.dev/webapps"] == "user"


@pytest.mark.spec("K-02")
def test_a_crash_ends_the_operator_at_its_place_and_another_starts(reference: Reference) -> None:
    plan = next(plan for plan in crashes(reference) if "deployments" in str(plan.perturbations[0]))
    crashed = run(plan)
    assert not crashed.missed
    assert crashed.hit == ["crash after create apps/deployments default/hello"]
    creates = [exchange for exchange in crashed.exchanges if exchange.resource == "apps/deployments"]
    assert creates[0].error == "crash after it"
    assert creates[0].status == 0  # never answered
    assert {exchange.incarnation for exchange in crashed.exchanges} == {1, 2}
    assert crashed.checkpoints[-1].state.keys() >= {"apps/deployments default/hello", "services default/hello"}


@pytest.mark.spec("K-01")
def test_a_run_survives_the_way_from_a_worker(reference: Reference) -> None:
    assert decode_run(encode(reference.run)) == reference.run


def test_the_same_seed_gives_the_same_run() -> None:
    first, again = run(Plan("reference"), seed=3), run(Plan("reference"), seed=3)
    for item in (first, again):
        item.seconds = item.cpu = 0.0
    assert encode(first) == encode(again)
