"""Others beside the operator: another custom resource, and notes on what it made. The plans, and what is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from konverge.check.model import Apply, Delete, Plan, Step
from konverge.check.oracles import judge
from konverge.check.oracles.company import NOTES, neighbours, notes
from konverge.check.plans.company import NAMESPACE, NOTE
from konverge.check.plans.edits import edits
from tests.check.oracles.histories import KEY, STEPS, THING, History, obj, reference
from tests.check.small import CONFIGS, SECRETS, THINGS, Api, Caches, Small
from tests.check.small import delete as small_delete
from tests.check.small import reference as reference_of_small
from tests.check.small import run as run_small
from tests.check.small import thing as small_thing

CONFIG, OTHER_CONFIG = "configmaps default/a", "configmaps default/a-other"
OTHER = "example.dev/things default/a-other"
SETS = "apps/statefulsets default/a-other"


def config(name: str = "a", uid: str = "", **more: Any) -> dict[str, Any]:
    owner = [{"kind": "Thing", "name": name, "uid": f"uid-Thing-{name}"}]
    metadata = {"ownerReferences": owner, **({"uid": uid} if uid else {}), **more}
    return obj("ConfigMap", name, apiVersion="v1", data={"a": "1"}, metadata=metadata)


def thing(name: str = "a") -> dict[str, Any]:
    return obj("Thing", name, apiVersion="example.dev/v1")


SANE = reference(
    History().change("ADDED", KEY, by="user").change("ADDED", CONFIG).rest({KEY: thing(), CONFIG: config()})
)
PLANS = [plan for plan in edits(SANE) if plan.steps is not None]
BESIDE = next(plan for plan in PLANS if plan.steps and plan.steps[0].name == "another Thing")
AWAY = next(plan for plan in PLANS if plan.steps and plan.steps[0].name == "another Thing in another namespace")
NOTED = next(plan for plan in PLANS if plan.steps and plan.steps[1].name == NOTES)


@pytest.mark.spec("K-55")
def test_another_custom_resource_is_there_while_the_first_is_made_and_deleted() -> None:
    first, *rest = BESIDE.steps or ()
    (action,) = first.actions
    assert isinstance(action, Apply)
    assert action.object == {**THING, "metadata": {"name": "a-other", "namespace": "default"}}
    assert tuple(rest) == STEPS[:2]


@pytest.mark.spec("K-122")
@pytest.mark.parametrize(
    ("kinds", "doubled"),
    [
        (("Thing", "Backup", "Policy", "Address"), ["another Thing", "another Backup"]),
        (("Address", "Thing", "Backup"), ["another Thing", "another Backup"]),
        (("Address",), ["another Address"]),
    ],
)
def test_each_kind_that_owns_something_has_another_beside_it(kinds: Sequence[str], doubled: list[str]) -> None:
    """Each has a controller of its own; what owns nothing has nothing to lose, and what refers to another would be a
    rival there, wherever it is in the list."""
    specs = {"Address": {"of": "a"}}
    samples = tuple(
        Apply(
            {
                "apiVersion": "example.dev/v1",
                "kind": kind,
                "metadata": {"name": "a", "namespace": "default"},
                "spec": specs.get(kind, {"size": 1}),
            }
        )
        for kind in kinds
    )
    owned = config()
    owners = [{"kind": kind, "name": "a", "uid": f"uid-{kind}-a"} for kind in ("Backup", "Address")]
    owned["metadata"]["ownerReferences"] = owners
    state = {f"example.dev/{kind.lower()}s default/a": obj(kind, "a", apiVersion="example.dev/v1") for kind in kinds}
    history = History((Step("create", samples), *STEPS[1:])).change("ADDED", KEY, by="user").change("ADDED", CONFIG)
    plans = [plan for plan in edits(reference(history.rest({**state, CONFIG: owned}))) if plan.steps]
    begun = [plan.steps[0].name for plan in plans if plan.steps]
    assert [name for name in begun if name.startswith("another") and "namespace" not in name] == doubled


LOGIN = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "default"}}
CLASS = {"apiVersion": "example.dev/v1", "kind": "Class", "metadata": {"name": "fast"}}
PLACED = {**LOGIN, "kind": "StorageClass", "apiVersion": "storage.k8s.io/v1"}
"""Of the whole cluster, which a sample does not say: the state does."""


def delete(sample: dict[str, Any]) -> Delete:
    metadata = sample["metadata"]
    return Delete(sample["apiVersion"], sample["kind"], metadata.get("namespace", ""), metadata["name"])


def company(*samples: dict[str, Any], between: Sequence[Step] = ()) -> dict[str, tuple[Step, ...]]:
    """The plans with others beside samples, by the kind of plan."""
    create = Step("create", tuple(map(Apply, samples)))
    steps = (create, *between, Step("delete", tuple(map(delete, reversed(samples)))), STEPS[2])
    of_cluster = obj("StorageClass", "login", apiVersion="storage.k8s.io/v1")
    del of_cluster["metadata"]["namespace"]
    state = {KEY: thing(), CONFIG: config(), "storage.k8s.io/storageclasses login": of_cluster}
    history = History(steps).change("ADDED", KEY, by="user").change("ADDED", CONFIG).rest(state)
    plans = [plan.steps for plan in edits(reference(history)) if plan.steps]
    return {steps[0].name: steps for steps in plans if steps[0].name.startswith("another")}


def rotated(sample: dict[str, Any]) -> Step:
    return Step("rotate", (Apply({**sample, "data": {"password": "Yg=="}}),))


@pytest.mark.spec("K-147")
def test_another_custom_resource_has_what_it_refers_to_and_keeps_it() -> None:
    """Without it, its operator would wait until the first one comes; and be right to act when it goes again."""
    grow = Step("grow", (Apply({**THING, "spec": {"size": 2}}),), about="spec.size")
    plans = company(THING, LOGIN, CLASS, between=(rotated(LOGIN), grow, Step("shrink", STEPS[0].actions)))
    first, *rest = plans["another Thing"]
    assert first.actions == (Apply(LOGIN), Apply({**THING, "metadata": {"name": "a-other", "namespace": "default"}}))
    assert rest == [
        Step("create", (Apply(THING), Apply(CLASS))),
        grow,
        Step("delete", (delete(CLASS), delete(THING))),
    ]


@pytest.mark.spec("K-147")
def test_the_same_elsewhere_have_what_is_of_the_whole_cluster_and_keep_it() -> None:
    plans = company(LOGIN, THING, PLACED, CLASS, between=(rotated(LOGIN), rotated(CLASS)))
    first, *rest = plans["another Thing in another namespace"]
    here: list[dict[str, Any]] = [LOGIN, THING]
    moved = [{**sample, "metadata": {**sample["metadata"], "namespace": NAMESPACE}} for sample in here]
    namespace, *there = (action.object for action in first.actions if isinstance(action, Apply))
    assert namespace["kind"] == "Namespace"
    assert there == [PLACED, CLASS, *moved]
    assert rest == [
        Step("create", (Apply(LOGIN), Apply(THING))),
        rotated(LOGIN),
        Step("delete", (delete(THING), delete(LOGIN))),
    ]
    (_, *rest) = company(CLASS, THING, between=(rotated(CLASS),))["another Thing in another namespace"]
    assert [step.name for step in rest] == ["create", "delete"], "what is for both is not changed"


@pytest.mark.spec("K-147")
def test_an_operator_that_writes_down_what_a_secret_has_leaves_others_alone() -> None:
    """It makes the object at once, and changes it when the Secret comes or goes."""

    async def reconcile(api: Api, caches: Caches) -> None:
        for name, owner in caches[THINGS].items():
            seen = {"data": {"seen": str(sorted(caches[SECRETS]))}}
            if await api.get(CONFIGS, name) is None:
                reference = {
                    "apiVersion": "demo.dev/v1",
                    "kind": "Thing",
                    "name": name,
                    "uid": owner["metadata"]["uid"],
                }
                body = {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": name, "ownerReferences": [reference]},
                }
                await api.create(CONFIGS, {**body, **seen})
            await api.patch(CONFIGS, name, seen)

    def small() -> Small:
        return Small(reconcile, watches=(THINGS, SECRETS))

    login = Apply(LOGIN)
    steps = (
        Step("create", (Apply(small_thing()), login)),
        Step("delete", (*small_delete().actions, delete(LOGIN))),
    )
    sane = reference_of_small(small, steps)
    plan = next(plan for plan in edits(sane) if plan.steps and plan.steps[0].name == "another Thing")
    beside = run_small(small, steps, plan)
    assert {"default/a", "default/a-other"} <= {name.partition(" ")[2] for name in beside.checkpoints[1].state}
    assert judge(beside, sane) == []


def history_of(plan: Plan) -> History:
    history = History(plan.steps or (), plan.pattern)
    history.run.plan = plan
    return history


def beside() -> History:
    state = {OTHER: thing("a-other"), OTHER_CONFIG: config("a-other", uid=f"uid of {OTHER_CONFIG}")}
    return history_of(BESIDE).rest(state)


@pytest.mark.spec("K-55")
def test_what_belongs_to_another_custom_resource_is_neither_deleted_nor_changed() -> None:
    assert list(neighbours(beside().change("DELETED", CONFIG).rest().run, SANE)) == []
    (alarm,) = neighbours(beside().change("DELETED", OTHER_CONFIG).rest().run, SANE)
    assert (alarm.object, alarm.severity, alarm.step) == (OTHER_CONFIG, "medium", "create")
    by_cluster = beside().change("DELETED", OTHER_CONFIG, by="cluster").rest()
    assert list(neighbours(by_cluster.run, SANE)) == []  # what the operator led to is said of what it deleted
    by_finalizer = beside().change("MODIFIED", OTHER_CONFIG, ("metadata.deletionTimestamp", None, "now"))
    (alarm,) = neighbours(by_finalizer.change("DELETED", OTHER_CONFIG, by="cluster").rest().run, SANE)
    assert alarm.object == OTHER_CONFIG
    written = {**config("a-other", uid=f"uid of {OTHER_CONFIG}"), "data": {"a": "2"}}
    (alarm,) = neighbours(beside().rest({OTHER_CONFIG: written}).run, SANE)
    assert (alarm.object, alarm.field, alarm.severity) == (OTHER_CONFIG, "data.a", "medium")


@pytest.mark.spec("K-55")
def test_a_set_of_another_custom_resource_that_is_deleted_is_worse() -> None:
    owner = [{"kind": "Thing", "name": "a-other", "uid": "uid-Thing-a-other"}]
    sets = obj("StatefulSet", "a-other", metadata={"uid": f"uid of {SETS}", "ownerReferences": owner})
    history = history_of(BESIDE).rest({OTHER: thing("a-other"), SETS: sets})
    (alarm,) = judge(history.change("DELETED", SETS).rest().run, SANE)
    assert (alarm.oracle, alarm.object, alarm.severity) == ("foreign", SETS, "high")


RECORD, FAR = "configmaps default/a-record", f"example.dev/things {NAMESPACE}/a"


def record(content: str, uid: str = f"uid of {RECORD}") -> dict[str, Any]:
    return obj("ConfigMap", "a-record", apiVersion="v1", data={"a": content}, metadata={"uid": uid})


def away(content: str = "2") -> History:
    """A Thing elsewhere, for which the operator has made a record in its own namespace."""
    far = obj("Thing", apiVersion="example.dev/v1", metadata={"namespace": NAMESPACE})
    history = history_of(AWAY).change("ADDED", RECORD)
    return history.rest({FAR: far, RECORD: record(content)})


def alone(content: str) -> Any:
    """The reference, with the record that the first has by itself."""
    history = History().change("ADDED", KEY, by="user").change("ADDED", RECORD)
    return reference(history.rest({KEY: thing(), RECORD: record(content)}))


@pytest.mark.spec("K-137")
def test_the_same_custom_resources_are_there_in_another_namespace_first() -> None:
    first, *rest = AWAY.steps or ()
    namespace, far = (action.object for action in first.actions if isinstance(action, Apply))
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", NAMESPACE)
    assert far == {**THING, "metadata": {"name": "a", "namespace": NAMESPACE}}
    assert tuple(rest) == STEPS[:2]
    cluster = {**THING, "metadata": {"name": "a"}}
    history = History((Step("create", (Apply(cluster),)), *STEPS[1:])).change("ADDED", CONFIG)
    plans = edits(reference(history.rest({KEY: thing(), CONFIG: config()})))
    assert [plan for plan in plans if plan.steps and "namespace" in plan.steps[0].name] == []


@pytest.mark.spec("K-137")
def test_what_was_made_for_another_is_not_deleted_with_the_first() -> None:
    far = away().run.checkpoints[0].state[FAR]
    here = {FAR: far, RECORD: record("2")}
    deleted = away().rest(here).change("DELETED", RECORD)
    (alarm,) = neighbours(deleted.rest({FAR: far}).run, alone("1"))
    assert (alarm.object, alarm.severity, alarm.field, alarm.step) == (RECORD, "medium", "", "delete")
    made_again = away().rest(here).change("DELETED", RECORD).rest({FAR: far, RECORD: record("2", "another")})
    assert [alarm.object for alarm in neighbours(made_again.run, alone("1"))] == [RECORD], "as if it were the first's"
    replaced = away().change("DELETED", RECORD).rest({FAR: far, RECORD: record("2", "another")})
    assert list(neighbours(replaced.run, alone("1"))) == []
    assert (
        list(neighbours(away().rest(here).change("DELETED", RECORD, by="user").rest({FAR: far}).run, alone("1"))) == []
    )
    leaves = {**far, "metadata": {**far["metadata"], "deletionTimestamp": "now"}}
    for gone in ({}, {FAR: leaves}):
        assert list(neighbours(away().rest(here).change("DELETED", RECORD).rest(gone).run, alone("1"))) == []
    pod = "pods default/a-record"
    ended = history_of(AWAY).change("ADDED", pod).rest({FAR: far, pod: record("2")}).rest(here)
    assert list(neighbours(ended.change("DELETED", pod).rest({FAR: far}).run, alone("1"))) == []


@pytest.mark.spec("K-137")
def test_what_was_made_for_another_is_not_overwritten_with_what_is_for_the_first_alone() -> None:
    far = away().run.checkpoints[0].state[FAR]
    (alarm,) = neighbours(away("2").rest({FAR: far, RECORD: record("1")}).run, alone("1"))
    assert (alarm.object, alarm.severity, alarm.field, alarm.step) == (RECORD, "medium", "data.a", "create")
    of_both = away("2").rest({FAR: far, RECORD: record("1 and 2")})
    assert list(neighbours(of_both.run, alone("1"))) == []
    assert list(neighbours(away("1").rest({FAR: far, RECORD: record("1")}).run, alone("1"))) == []


@pytest.mark.spec("K-55")
def test_notes_are_put_on_everything_and_stay() -> None:
    assert NOTED.steps is not None
    assert [step.name for step in NOTED.steps] == ["create", NOTES]
    (action,) = NOTED.steps[1].actions
    assert isinstance(action, Apply)
    assert action.object["metadata"] == {"name": "a", "namespace": "default", "annotations": {NOTE: "kept"}}

    plan = Plan("edits", steps=(*NOTED.steps, Step("change", ())))

    def history(**of_config: Any) -> History:
        made = history_of(plan).rest({CONFIG: config()})
        return made.rest({CONFIG: config(annotations={NOTE: "kept"})}).rest({CONFIG: config(**of_config)})

    assert list(notes(history(annotations={NOTE: "kept", "other": "x"}).run, SANE)) == []
    assert list(notes(history(uid="made again").run, SANE)) == []
    (alarm,) = notes(history().run, SANE)
    assert (alarm.object, alarm.severity, alarm.step) == (CONFIG, "medium", "change")
