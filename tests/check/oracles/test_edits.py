"""Others change what the operator made, or have objects under its names: the plans, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.model import Apply, Checkpoint, Delete, Edit, Plan, Step, TimePasses
from konverge.check.oracles import judge
from konverge.check.oracles.foreign import FOREIGN, foreign
from konverge.check.plans.edits import edits
from tests.check.oracles.histories import KEY, STEPS, THING, History, obj, ref, reference

CONFIG, SERVICE = "configmaps default/a", "services default/a"
OWNER = [{"kind": "Thing", "name": "a", "uid": "uid-Thing-a"}]
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def state(**of_config: Any) -> dict[str, Any]:
    thing = obj("Thing", apiVersion="example.dev/v1", status=READY, metadata={"finalizers": ["x"]})
    metadata = {"labels": {"app": "a"}, "ownerReferences": OWNER}
    config = obj("ConfigMap", apiVersion="v1", data={"a": "1"}, metadata=metadata) | of_config
    service = obj("Service", apiVersion="v1", spec={"selector": {"app": "a"}}, metadata={"ownerReferences": OWNER})
    return {KEY: thing, CONFIG: config, SERVICE: service}


def made(**plan: Any) -> History:
    history = History(pattern="edits", **plan).change("ADDED", KEY, by="user")
    return history.change("ADDED", CONFIG).change("ADDED", SERVICE)


SANE = reference(made().rest(state()))


def has_foreign(plan: Plan, *, for_good: bool = True) -> bool:
    """Whether others have an object first, and whether they keep it."""
    steps = plan.steps or (Step("", ()),)
    return steps[0].name.startswith("others have") and for_good is not steps[-1].name.startswith("others take")


@pytest.mark.spec("K-43")
def test_each_object_is_deleted_and_its_fields_that_matter_are_changed() -> None:
    plans = list(edits(SANE))
    changes = [(str(item.ref), item.patch) for plan in plans for item in plan.perturbations if isinstance(item, Edit)]
    assert [change for change in changes if change[1] is None] == [(SERVICE, None), (CONFIG, None)]
    assert (CONFIG, {"metadata": {"ownerReferences": None}}) in changes
    assert (CONFIG, {"metadata": {"labels": {"app": None}}}) in changes
    assert (CONFIG, {"data": {"a": "changed-by-others"}}) in changes
    assert (SERVICE, {"spec": {"selector": {"app": "changed-by-others"}}}) in changes
    assert (KEY, {"metadata": {"finalizers": None}}) in changes
    assert (KEY, {"status": {"conditions": None}}) in changes
    theirs = [plan.steps[0].actions[0] for plan in plans if has_foreign(plan)]
    assert [action.object["kind"] for action in theirs if isinstance(action, Apply)] == ["ConfigMap", "Service"]


@pytest.mark.spec("K-117")
def test_what_others_have_is_there_when_the_custom_resource_is_deleted() -> None:
    plans = [plan for plan in edits(SANE) if has_foreign(plan)]
    names = [step.name for step in SANE.run.steps]
    deleted = next(step.name for step in SANE.run.steps if any(isinstance(item, Delete) for item in step.actions))
    assert plans
    for plan in plans:
        assert [step.name for step in (plan.steps or ())[1:]] == [*dict.fromkeys([*names[:2], deleted])]


@pytest.mark.spec("K-138")
def test_what_others_take_away_again_is_made_within_an_hour() -> None:
    plan, _ = (plan for plan in edits(SANE) if has_foreign(plan, for_good=False))
    assert plan.steps is not None
    (theirs,) = (item.object for item in plan.steps[0].actions if isinstance(item, Apply))
    assert plan.steps[1] == SANE.run.steps[0]
    assert plan.steps[2].actions == (Delete("v1", "ConfigMap", "default", "a"),)
    assert plan.perturbations == (TimePasses(2, 3600.0),)

    def said(*last: dict[str, Any], rested: bool = True) -> list[tuple[str, str, str]]:
        history = History(plan.steps or (), "edits")
        history.run.plan = plan
        present = {CONFIG: {**theirs, "metadata": {**theirs["metadata"], "uid": "1"}}}
        run = history.rest(present).rest({**present, KEY: obj("Thing")}).rest({KEY: obj("Thing")}).run
        run.checkpoints += [
            Checkpoint(step=f"{run.steps[2].name}, then", revision=9, time=999.0, state=item, rested=rested)
            for item in last
        ]
        return [(alarm.object, alarm.severity, alarm.field) for alarm in foreign(run, SANE)]

    assert said(state()) == []
    assert said({KEY: state()[KEY]}) == [(CONFIG, "medium", "")]
    assert said({KEY: state()[KEY]}, rested=False) == []
    assert said() == [(CONFIG, "medium", "")], "where the hour is left out"


@pytest.mark.spec("K-43")
def test_what_is_not_repaired_is_said_and_what_was_disowned_and_said_is_not() -> None:
    gone = made(perturbations=(Edit(ref(CONFIG), None, 0),)).change("DELETED", CONFIG, by="user")
    left = {key: value for key, value in state().items() if key != CONFIG}
    assert [(alarm.object, alarm.severity) for alarm in judge(gone.rest(left).run, SANE)] == [(CONFIG, "high")]

    disowning = (Edit(ref(CONFIG), {"metadata": {"ownerReferences": None}}, 0),)
    disowned = state(metadata={"name": "a", "namespace": "default", "labels": {"app": "a"}})
    silent = made(perturbations=disowning).rest(disowned).run
    assert [(alarm.field, alarm.severity) for alarm in judge(silent, SANE)] == [("metadata.ownerReferences", "low")]
    said = dict(disowned)
    said[KEY] = {**disowned[KEY], "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    assert judge(made(perturbations=disowning).rest(said).run, SANE) == []


@pytest.mark.spec("K-43")
@pytest.mark.parametrize(
    ("change", "severity"),
    [
        ({}, []),
        ({"metadata": {"name": "a", "namespace": "default", "uid": "1", "ownerReferences": OWNER}}, ["medium"]),
        ({"data": {"of-others": "no"}}, ["medium"]),
        ({"data": {"of-others": "yes", "more": "1"}}, []),
        ({"metadata": {"name": "a", "namespace": "default", "uid": "2"}}, ["high"]),
    ],
)
def test_an_object_of_others_is_not_taken(change: dict[str, Any], severity: list[str]) -> None:
    theirs: dict[str, Any] = obj("ConfigMap", apiVersion="v1", data={"of-others": "yes"}, metadata={"uid": "1"})
    step = Step(FOREIGN.format(kind="ConfigMap", name="a"), (Apply(theirs),))
    history = History((step, *STEPS[:1]), pattern="edits")
    history.run.plan = Plan("edits", steps=(step, *STEPS[:1]))
    run = history.rest({CONFIG: theirs}).rest({CONFIG: theirs | change}).run
    assert [alarm.severity for alarm in foreign(run, SANE)] == severity


@pytest.mark.spec("K-43")
def test_all_is_well_is_not_true_where_others_have_the_name() -> None:
    theirs = obj("ConfigMap", apiVersion="v1", data={"of-others": "yes"})
    step = Step(FOREIGN.format(kind="ConfigMap", name="a"), (Apply(theirs),))
    history = History((step, *STEPS[:1]), pattern="edits")
    history.run.plan = Plan("edits", steps=(step, *STEPS[:1]))
    run = history.rest({CONFIG: theirs}).rest({CONFIG: theirs, KEY: state()[KEY]}).run
    assert [(alarm.object, alarm.field) for alarm in foreign(run, SANE)] == [(KEY, "status")]


@pytest.mark.spec("K-43")
def test_a_custom_resource_that_does_not_need_what_others_have_may_be_well() -> None:
    """Several samples are there at once: only the one that would own an object of this name is kept from it."""
    other = "example.dev/things default/b"
    both = {**state(), other: obj("Thing", "b", apiVersion="example.dev/v1", status=READY)}
    second = Apply({**THING, "metadata": {"name": "b", "namespace": "default"}})
    steps = (Step("create", (*STEPS[0].actions, second)),)
    sane = reference(History(steps).change("ADDED", KEY, by="user").change("ADDED", CONFIG).rest(both))
    theirs = obj("ConfigMap", apiVersion="v1", data={"of-others": "yes"})
    mine = (Step(FOREIGN.format(kind="ConfigMap", name="a"), (Apply(theirs),)), *steps)
    history = History(mine, pattern="edits")
    history.run.plan = Plan("edits", steps=mine)
    run = history.rest({CONFIG: theirs}).rest({CONFIG: theirs, KEY: both[KEY], other: both[other]}).run
    assert [alarm.object for alarm in foreign(run, sane)] == [KEY]


@pytest.mark.spec("K-109")
@pytest.mark.parametrize(("needed", "well"), [(True, True), (False, True), (True, False)])
def test_a_name_that_a_change_makes_needless_is_not_missed(needed: bool, well: bool) -> None:
    theirs = obj("ConfigMap", apiVersion="v1", data={"of-others": "yes"})
    beside = {"example.dev/things default/b": obj("Thing", "b", apiVersion="example.dev/v1", status=READY)}
    other = {key: value for key, value in state().items() if key != CONFIG} | beside
    second = Apply({**THING, "metadata": {"name": "b", "namespace": "default"}})
    steps = (Step("create", (*STEPS[0].actions, second)), Step("grow", (Apply({**THING, "spec": {"size": 2}}),)))
    sane = History(steps).change("ADDED", KEY, by="user").change("ADDED", CONFIG).change("ADDED", SERVICE)
    refused = {**state()[KEY], "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    after = state() | beside if needed else other
    sane.rest(state() | beside).rest(after if well else {**after, KEY: refused})
    mine = (Step(FOREIGN.format(kind="ConfigMap", name="a"), (Apply(theirs),)), *steps)
    history = History(mine, pattern="edits")
    history.run.plan = Plan("edits", steps=mine)
    held = {**other, KEY: {**other[KEY], "status": {"conditions": [{"type": "Ready", "status": "False"}]}}}
    run = history.rest({CONFIG: theirs}).rest({CONFIG: theirs, **held}).rest({CONFIG: theirs, **other}).run
    found = [(alarm.step, alarm.object) for alarm in foreign(run, reference(sane))]
    assert found == ([("grow", KEY)] if needed and well else []), "nor need the other say so, which never had the name"


@pytest.mark.spec("K-75")
def test_what_comes_back_with_the_next_change_is_medium() -> None:
    steps = (STEPS[0], Step("grow", (Apply({**THING, "spec": {"size": 2}}),)), *STEPS[1:])
    left = {key: value for key, value in state().items() if key != CONFIG}

    def severities(*later: dict[str, Any]) -> list[str]:
        sane = History(steps).change("ADDED", KEY, by="user").change("ADDED", CONFIG).change("ADDED", SERVICE)
        gone = History(steps, pattern="edits", perturbations=(Edit(ref(CONFIG), None, 0),))
        gone.change("ADDED", KEY, by="user").change("ADDED", CONFIG).change("ADDED", SERVICE).rest(left)
        for expected in (state(), state(), {}, state()):
            sane.rest(expected)
        for shown in later:
            gone.rest(shown)
        return [alarm.severity for alarm in judge(gone.run, reference(sane)) if alarm.object == CONFIG]

    assert severities(state()) == ["medium"]
    assert severities() == ["high"]
    assert severities(left) == ["high"]
    assert severities(left, {}, state()) == ["high"], "a new custom resource has everything anew"


@pytest.mark.spec("K-105")
def test_an_object_that_nobody_owns_is_of_the_one_after_which_it_is_called() -> None:
    other, claim = "example.dev/things default/b", "persistentvolumeclaims default/b-data"
    things = {KEY: state()[KEY], other: obj("Thing", "b", apiVersion="example.dev/v1", status=READY)}
    second = Apply({**THING, "metadata": {"name": "b", "namespace": "default"}})
    steps = (Step("create", (*STEPS[0].actions, second)),)
    theirs = obj("PersistentVolumeClaim", "b-data", apiVersion="v1", spec={"of-others": "yes"})
    sane = reference(History(steps).change("ADDED", KEY, by="user").rest({**things, claim: theirs}))
    mine = (Step(FOREIGN.format(kind="PersistentVolumeClaim", name="b-data"), (Apply(theirs),)), *steps)
    history = History(mine, pattern="edits")
    history.run.plan = Plan("edits", steps=mine)
    run = history.rest({claim: theirs}).rest({claim: theirs, **things}).run
    assert [alarm.object for alarm in foreign(run, sane)] == [other]
