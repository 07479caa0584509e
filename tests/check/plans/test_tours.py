"""Changes by others, one after the other in one run; what may have led to an alarm has a run of its own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from konverge.check.campaign import Campaign, Options
from konverge.check.model import Alarm, Edit, Plan, Ref, Run, Setup, Subject
from konverge.check.oracles import judge
from konverge.check.planning import Planned
from konverge.check.plans.edits import edits
from konverge.check.plans.length import Length
from konverge.check.plans.tours import LENGTH, apart, is_tour, tours
from konverge.check.reference import Reference
from konverge.check.snapshot import Counted, Snapshot
from konverge.check.subjects import InThisProcess
from konverge.check.workload import basic
from konverge.objects import crd_dict
from konverge.runtime import Manager
from tests.check.campaign import keeper
from tests.check.oracles.test_edits import CONFIG, SANE, SERVICE


def deletion(name: str, resource: str = "/configmaps") -> Plan:
    return Plan("edits", (Edit(Ref(resource, "default", name), None, 0),))


def about(name: str) -> Alarm:
    return Alarm(oracle="state", severity="high", object=f"configmaps default/{name}", sentence="")


@pytest.mark.spec("K-124")
def test_the_first_of_every_kind_come_first_and_a_tour_is_not_long() -> None:
    configs, service = [deletion(f"c{letter}") for letter in "abcdefghijkl"], deletion("s", "/services")
    first, second = tours([*configs, service], {})
    assert len(first.perturbations) == LENGTH
    assert first.perturbations[0] == service.perturbations[0]
    assert {*first.perturbations, *second.perturbations} == {item.perturbations[0] for item in (*configs, service)}
    assert is_tour(first)
    assert not is_tour(service)


@pytest.mark.spec("K-124")
def test_what_an_alarm_is_about_is_tried_apart_and_where_that_is_not_known_everything() -> None:
    tour = Plan("edits", tuple(item for name in ("one", "two", "three") for item in deletion(name).perturbations))
    assert apart(tour, [about("two")]) == [deletion("two")]
    assert apart(tour, [about("two"), about("one")]) == [deletion("one"), deletion("two")]
    assert apart(tour, [about("two"), about("another")]) == [deletion(name) for name in ("one", "two", "three")]


@pytest.mark.spec("K-124")
def test_on_real_time_each_change_has_its_run() -> None:
    """A rest is waited for there, and several runs wait at once."""
    deletions = [
        plan
        for plan in edits(SANE)
        if any(isinstance(item, Edit) and item.patch is None for item in plan.perturbations)
    ]
    assert [[str(item.ref) for item in plan.perturbations if isinstance(item, Edit)] for plan in deletions] == [
        [SERVICE, CONFIG]
    ]
    run = msgspec.structs.replace(
        SANE.run,
        snapshots=[
            Snapshot(step=0, revision=0, records={}, counted=Counted(first=0, time=0.0, incarnation=0, requests=0))
        ],
    )
    real = [plan for plan in edits(Reference(run=run, masks=SANE.masks, varying=SANE.varying)) if plan.perturbations]
    assert all(len(plan.perturbations) == 1 for plan in real)


@pytest.mark.spec("K-124")
def test_a_tour_takes_less_time_than_its_changes_one_by_one() -> None:
    length = Length(SANE)
    SANE.run.seconds = 10.0
    tour = Plan("edits", tuple(item for name in "abcd" for item in deletion(name).perturbations))
    single = length.estimated(deletion("a")).seconds
    assert single < length.estimated(tour).seconds < 2 * single


FORBIDDEN = Edit(Ref("/namespaces", "", "default"), None, 0)
FIRST, SECOND = (Edit(Ref("/configmaps", "default", f"note-{name}"), None, 0) for name in ("first", "second"))


def checked(manager: Manager, *changes: Edit) -> tuple[list[str], list[list[str]]]:
    """What a check with one tour finds, and what was done in each of its runs."""
    done: list[list[str]] = []

    def planner(reference: Reference, only: Sequence[str], seed: int) -> Planned:
        return Planned([Plan("edits", changes)])

    def judging(run: Run, reference: Reference) -> list[Alarm]:
        if run.plan.perturbations:
            done.append(run.hit)
            assert len(run.checkpoints) == len(run.steps) + len(run.plan.perturbations)
        return judge(run, reference)

    campaign = Campaign(
        Subject(target="tests.check.campaign.keeper:wrong"),
        Setup(objects=(crd_dict(keeper.Kept),), nodes=1),
        basic([keeper.SAMPLE]),
        InThisProcess(manager),
        Options(shrink=False, repeats=0),
        planner=planner,
        judge=judging,
    )
    return [finding.sentence for finding in campaign.check().findings], done


def said(item: Edit) -> str:
    return f"{item.ref} is deleted by another client"


@pytest.mark.spec("K-124")
def test_a_tour_rests_after_each_change_and_its_finding_is_of_one() -> None:
    """What the deletion of the second leaves behind is put right by that of the first: it shows between them alone."""
    findings, done = checked(keeper.wrong, SECOND, FIRST)
    assert done == [[said(SECOND), said(FIRST)], [said(SECOND)]]
    (finding,) = findings
    assert finding.startswith("after another client deletes ConfigMap note-second, ConfigMap note-second is missing")


@pytest.mark.spec("K-124")
def test_a_tour_without_alarms_is_one_run() -> None:
    assert checked(keeper.manager, SECOND, FIRST) == ([], [[said(SECOND), said(FIRST)]])


@pytest.mark.spec("K-124")
def test_a_change_that_is_refused_does_not_end_a_tour() -> None:
    findings, done = checked(keeper.wrong, FORBIDDEN, SECOND)
    assert "refused" in done[0][0]
    assert done[0][1:] == done[1] == [said(SECOND)]
    assert len(findings) == 1
