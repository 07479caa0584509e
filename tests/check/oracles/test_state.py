"""The state at every rest beside that of the reference."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.model import Apply, Change, Checkpoint, Moment, OperatorAway, Plan, Ref, Run, Step
from konverge.check.oracles.state import state
from konverge.check.reference import Reference, reference_of
from tests.check.oracles.histories import History, obj
from tests.check.oracles.histories import reference as the_reference

STEPS = (Step("create", (Apply({"kind": "Thing"}),)), Step("grow", (Apply({"kind": "Thing", "spec": 1}),)))


def stateful_set(replicas: int, ready: int = 3, **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "generation": replicas, **metadata},
        "spec": {"replicas": replicas},
        "status": {"readyReplicas": ready},
    }


def pod(name: str, phase: str = "Running") -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": name}, "status": {"phase": phase}}


def run(*states: dict[str, Any], made: tuple[str, ...] = ("apps/statefulsets default/db",), seed: int = 0) -> Run:
    return Run(
        plan=Plan("crash") if seed else Plan("reference"),
        seed=seed,
        steps=STEPS,
        checkpoints=[
            Checkpoint(step=step.name, revision=number, time=0.0, state=item)
            for number, (step, item) in enumerate(zip(STEPS, states, strict=False))
        ],
        changes=[_made(key) for key in made],
    )


def _made(key: str) -> Change:
    resource, _, name = key.partition(" ")
    namespace, _, name = name.partition("/")
    ref = Ref(resource if "/" in resource else f"/{resource}", namespace, name)
    moment = Moment("ADDED", ref.resource, namespace, name)
    return Change(revision=1, time=0.0, moment=moment, ref=ref, uid="", writer="operator")


def reference(*states: dict[str, Any], **more: Any) -> Reference:
    return reference_of(run(*states, **more), run(*states, **more))


KEY = "apps/statefulsets default/db"


@pytest.mark.spec("K-95")
@pytest.mark.parametrize("where", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({"lastSourceUpdateTimestamp": "1794940057241"}, []),
        ({"example.dev/owner-rv": "17"}, []),
        ({"checksum/config": "5"}, ["low"]),
        ({"lastSourceUpdateTimestamp": "1794940057241", "team": "shop"}, ["medium"]),
        ({"checksum/config": "5", "team": "shop"}, ["medium"]),
    ],
)
def test_a_map_that_only_one_object_has_is_what_is_in_it(
    where: str, notes: dict[str, str], expected: list[str]
) -> None:
    """An operator's first label or annotation makes the map: nobody misses an empty one."""
    sane = reference({KEY: stateful_set(3, **{where: notes})})
    bare = run({KEY: stateful_set(3)}, seed=1)
    assert [alarm.severity for alarm in state(bare, sane)] == expected
    assert [
        alarm.severity
        for alarm in state(run(sane.run.checkpoints[0].state, seed=1), reference(bare.checkpoints[0].state))
    ] == expected


@pytest.mark.spec("K-130")
@pytest.mark.parametrize(("key", "severity"), [(KEY, "medium"), ("pods default/db-0", "high")])
def test_labels_count_less_where_nothing_is_selected_by_them(key: str, severity: str) -> None:
    sane = reference({key: stateful_set(3, labels={"app": "db", "of": "a"})})
    other = run({key: stateful_set(3, labels={"app": "db", "of": "b"})}, seed=1)
    assert [(alarm.field, alarm.severity) for alarm in state(other, sane)] == [("metadata.labels.of", severity)]


@pytest.mark.spec("K-31")
def test_a_field_that_stays_wrong_is_said_once_with_the_step_at_which_it_began() -> None:
    sane = reference({KEY: stateful_set(1)}, {KEY: stateful_set(3)})
    alarms = list(state(run({KEY: stateful_set(1)}, {KEY: stateful_set(1)}, seed=1), sane))
    assert [(alarm.field, alarm.step, alarm.severity) for alarm in alarms] == [("spec.replicas", "grow", "high")]
    both = list(state(run({KEY: stateful_set(2)}, {KEY: stateful_set(2)}, seed=1), sane))
    assert [alarm.step for alarm in both] == ["create"]


@pytest.mark.spec("K-31")
def test_missing_and_surplus_objects_are_said() -> None:
    sane = reference({KEY: stateful_set(1)})
    assert [alarm.actual for alarm in state(run({}, seed=1), sane)] == [0]
    twice = {KEY: stateful_set(1), "configmaps default/left": {"kind": "ConfigMap", "metadata": {"name": "left"}}}
    made = (KEY, "configmaps default/left")
    assert [alarm.object for alarm in state(run(twice, seed=1, made=made), sane)] == ["configmaps default/left"]


@pytest.mark.spec("K-31")
def test_of_what_the_cluster_derives_only_pods_claims_and_jobs_are_counted() -> None:
    sane = reference({KEY: stateful_set(1), "pods default/db-0": pod("db-0")})
    revision = {"kind": "ControllerRevision", "metadata": {"name": "db-5d8f9c6b7"}}
    more = {
        KEY: stateful_set(1),
        "pods default/db-0": pod("db-0"),
        "apps/controllerrevisions default/db-5d8f9c6b7": revision,
        "pods default/db-1": pod("db-1", "Failed"),
    }
    assert list(state(run(more, seed=1), sane)) == []
    surplus = {KEY: stateful_set(1), "pods default/db-0": pod("db-0"), "pods default/db-1": pod("db-1")}
    assert [alarm.object for alarm in state(run(surplus, seed=1), sane)] == ["pods default/db-1"]
    assert [alarm.object for alarm in state(run({KEY: stateful_set(1)}, seed=1), sane)] == ["pods default/db-0"]


@pytest.mark.spec("K-31")
def test_an_object_that_is_deleted_for_ever_differs() -> None:
    sane = reference({KEY: stateful_set(1)})
    ending = run({KEY: stateful_set(1, deletionTimestamp="2026-01-01T00:00:00Z")}, seed=1)
    assert [alarm.field for alarm in state(ending, sane)] == ["metadata.deletionTimestamp"]


@pytest.mark.spec("K-31")
def test_states_after_other_steps_are_not_compared() -> None:
    sane = reference({KEY: stateful_set(1)}, {KEY: stateful_set(3)})
    other = run({KEY: stateful_set(7)}, seed=1)
    other.steps = (Step("create", (Apply({"kind": "Thing", "spec": 7}),)),)
    assert list(state(other, sane)) == []


@pytest.mark.spec("K-30")
def test_what_varies_between_two_references_is_masked_and_said() -> None:
    one, other = run({KEY: stateful_set(1, ready=1)}), run({KEY: stateful_set(1, ready=2)})
    sane = reference_of(one, other)
    assert sane.varying == ("apps/statefulsets:status.readyReplicas",)
    assert list(state(run({KEY: stateful_set(1, ready=0)}, seed=1), sane)) == []
    lonely = reference_of(run({KEY: stateful_set(1)}), run({}))
    assert lonely.unsteady == {KEY}
    assert list(state(run({}, seed=1), lonely)) == []


@pytest.mark.spec("K-31", "K-14")
def test_after_states_that_passed_unseen_a_field_may_be_as_it_was_before_them() -> None:
    """Scaled up and down, and the operator cannot scale down: who has seen neither is where it was."""
    thing = {"kind": "Thing", "metadata": {"name": "a"}}

    def gone_by(last: int, *, blind: bool, size: int = 0) -> Run:
        wanted = ("create", {**thing, "spec": 0}), ("grow", {**thing, "spec": 1}), ("shrink", {**thing, "spec": size})
        steps = tuple(Step(name, (Apply(obj),)) for name, obj in wanted)
        made = run({KEY: stateful_set(1)}, {KEY: stateful_set(1 if blind else 3)}, seed=1)
        made.steps = steps
        made.checkpoints[1].blind = blind
        made.checkpoints.append(
            Checkpoint(step="shrink", revision=9, time=0.0, state={KEY: stateful_set(last, generation=1)})
        )
        return made

    sane = Reference(run=gone_by(3, blind=False), masks=reference().masks)
    assert list(state(gone_by(1, blind=True), sane)) == []
    assert [alarm.field for alarm in state(gone_by(2, blind=True), sane)] == ["spec.replicas"]
    assert [alarm.field for alarm in state(gone_by(1, blind=False), sane)] == ["spec.replicas"]
    other = Reference(run=gone_by(3, blind=False, size=2), masks=sane.masks)
    shown = state(gone_by(1, blind=True, size=2), other)
    assert [alarm.field for alarm in shown] == ["spec.replicas"], "the user asks for something else"


@pytest.mark.spec("K-31", "K-14")
def test_a_reference_that_is_held_by_what_passed_unseen_is_not_compared() -> None:
    def gone_by(replicas: int, reconciled: str, *, blind: bool) -> Run:
        thing = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "a"}}
        conditions = [{"type": "Reconciled", "status": reconciled}]
        made = run({KEY: stateful_set(1)}, {KEY: stateful_set(replicas)}, seed=1)
        made.steps = tuple(Step(step.name, (Apply(thing),)) for step in STEPS)
        made.checkpoints[0].blind = blind
        made.checkpoints[1].state["example.dev/things a"] = {**thing, "status": {"conditions": conditions}}
        return made

    def fields(actual: str, expected: str) -> list[str]:
        held = Reference(run=gone_by(1, expected, blind=False), masks=reference().masks)
        return [alarm.field for alarm in state(gone_by(3, actual, blind=True), held) if "replicas" in alarm.field]

    assert fields("True", "False") == []
    assert fields("True", "True") == fields("False", "True") == ["spec.replicas"]


@pytest.mark.spec("K-31", "K-43")
def test_what_others_asked_for_counts_less_and_claims_least() -> None:
    pods = {"pods db-0": pod("db-0"), "pods db-1": pod("db-1")}
    claims = {f"persistentvolumeclaims {name}": {"metadata": {"name": name}} for name in ("d-0", "d-1")}
    kept = {"secrets default/key-1": {"metadata": {"name": "key-1"}}}  # its owner was taken from it
    more = {KEY: stateful_set(2), **pods, **claims, **kept}
    fewer = {key: obj for key, obj in more.items() if not key.endswith("-1")} | {KEY: stateful_set(1)}
    sane, edited = reference(fewer), run(more, seed=1, made=(KEY, *kept))
    edited.plan = Plan("edits")
    said = {alarm.object: alarm.severity for alarm in state(edited, sane) if alarm.field in ("", "spec.replicas")}
    medium = dict.fromkeys((KEY, "pods db-1", *kept), "medium")
    assert said == {**medium, "persistentvolumeclaims d-1": "low"}
    edited.plan = Plan("crash")
    assert {alarm.severity for alarm in state(edited, sane) if alarm.field in ("", "spec.replicas")} == {"high"}
    gone = run(fewer, seed=1)
    gone.plan = Plan("edits")
    missing = [alarm for alarm in state(gone, reference(more)) if not alarm.field]
    assert {alarm.severity for alarm in missing} == {"high"}


@pytest.mark.spec("K-72")
@pytest.mark.parametrize(
    ("writer", "step", "missed"),
    [("cluster", 1, []), ("cluster", 0, ["delete", "create again"]), ("operator", 1, ["delete", "create again"])],
)
def test_what_the_cluster_made_of_a_deleted_custom_resource_by_chance_is_not_missed(
    writer: Any, step: int, missed: list[str]
) -> None:
    """A claim that is made too late to be deleted with the others is left over in one run and not in another."""
    key = "persistentvolumeclaims default/data-a-0"
    left, fresh = (obj("PersistentVolumeClaim", "data-a-0", spec={"size": size}) for size in (2, 1))

    def history(after: dict[str, Any], again: dict[str, Any]) -> History:
        made = History()
        for number, state_ in enumerate(({}, after, again)):
            if number == step:
                made.change("ADDED", key, by=writer)
                made.run.changes[-1].uid = left["metadata"]["uid"]
            made.rest(state_)
        return made

    sane = the_reference(history({key: left}, {key: left}))
    assert [alarm.step for alarm in state(history({}, {key: fresh}).run, sane)] == missed
    surplus = list(state(history({key: left}, {key: left}).run, the_reference(history({}, {}))))
    assert [alarm.step for alarm in surplus] == ["delete"], "what only the run leaves over is said"


@pytest.mark.spec("K-91")
@pytest.mark.parametrize(
    ("note", "severity"),
    [
        ("example.dev/resource-hash", "low"),
        ("example.dev/Checksum", "low"),
        ("x.dev/last-applied", "low"),
        ("x.dev/owner", "medium"),
    ],
)
def test_a_digest_that_differs_is_a_note(note: str, severity: str) -> None:
    def states(value: str) -> dict[str, Any]:
        return {KEY: stateful_set(3, annotations={"a": "1", note: value})}

    alarms = list(state(run(states("2"), states("2"), seed=1), reference(states("1"), states("1"))))
    assert [(alarm.field, alarm.severity) for alarm in alarms] == [(f"metadata.annotations.{note}", severity)]


@pytest.mark.spec("K-111")
@pytest.mark.parametrize(
    ("away", "reason", "severity"),
    [
        ((1, 1), "AlreadyExists", "low"),
        ((0, 0), "AlreadyExists", "medium"),
        ((1, 1), "Broken", "medium"),
    ],
    ids=["away during the deletion", "back by then", "another reason"],
)
def test_what_nobody_cleaned_up_outside_may_keep_a_custom_resource_out(
    away: tuple[int, int], reason: str, severity: str
) -> None:
    key = "example.dev/things default/a"

    def thing(status: str, why: str) -> dict[str, Any]:
        shown = {"conditions": [{"type": "Ready", "status": status, "reason": why}]}
        return {key: obj("Thing", apiVersion="example.dev/v1", status=shown)}

    def history(last: dict[str, Any], **plan: Any) -> History:
        made = History(**plan).change("ADDED", key, by="user")
        return made.rest(thing("True", "Applied")).rest({}).rest(last)

    sane = the_reference(history(thing("True", "Applied")))
    perturbed = history(thing("False", reason), perturbations=(OperatorAway(*away),)).run
    found = {alarm.field: alarm.severity for alarm in state(perturbed, sane)}
    assert found["status.conditions[Ready].status"] == severity
