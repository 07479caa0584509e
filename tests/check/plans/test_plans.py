"""Plans from a reference: which there are, and in which order."""

from __future__ import annotations

import msgspec
import pytest

from konverge.check.model import (
    Apply,
    Change,
    Checkpoint,
    Crash,
    Delete,
    Edit,
    Exchange,
    Moment,
    OperatorAway,
    Place,
    Plan,
    Ref,
    Refuse,
    Run,
    Stale,
    Step,
)
from konverge.check.plans import all_plans, derive
from konverge.check.plans.crash import crashes
from konverge.check.plans.errors import errors
from konverge.check.plans.order import ranked
from konverge.check.reference import Reference, reference_of


def written(*places: Place, guarded: bool = False) -> Reference:
    """A reference in which the operator wrote at these places."""
    exchanges = [
        Exchange(
            number=number,
            incarnation=1,
            verb=place.verb,
            resource=place.resource,
            namespace=place.namespace,
            name=place.name,
            status=200,
            began=0.0,
            revision=number,
            revisions=(number + 1,),
            place=place,
            guarded=guarded,
        )
        for number, place in enumerate(places)
    ]
    run = Run(plan=Plan("reference"), seed=0, steps=(), exchanges=exchanges, seconds=2.0)
    return reference_of(run, run)


def place(verb: str, resource: str, change: str = "", occurrence: int = 1, name: str = "a") -> Place:
    return Place(verb, resource, "default", name, change, occurrence)


CREATE = place("create", "/configmaps")
STATUS = place("update", "demo.dev/things/status", "status.ready")
DELETE = place("delete", "apps/statefulsets")


def crashed_after(plans: list[Plan]) -> list[Place]:
    made = [item for plan in plans for item in plan.perturbations if isinstance(item, Crash)]
    return [item.place for item in made if item.when == "after"]


@pytest.mark.spec("K-11")
def test_every_effective_write_is_followed_by_a_crash_and_a_step_begins_with_one() -> None:
    plans = list(crashes(written(CREATE, STATUS, DELETE)))
    assert crashed_after(plans) == [CREATE, STATUS, DELETE]
    assert [plan.perturbations for plan in plans if plan.perturbations[0].when == "before"] == [  # type: ignore[union-attr]
        (Crash(CREATE, "before"),)
    ]


@pytest.mark.spec("K-125")
def test_a_crash_comes_before_what_an_application_may_know_already() -> None:
    """A password is set there before the Secret has it, and data are removed there before the finalizer goes."""
    secret, gone = (
        place("update", "/secrets", "data.password"),
        place("patch", "demo.dev/things", "metadata.finalizers"),
    )
    plans = list(crashes(written(CREATE, secret, STATUS, gone)))
    assert [plan.perturbations for plan in plans if plan.perturbations[0].when == "before"] == [  # type: ignore[union-attr]
        (Crash(item, "before"),) for item in (CREATE, secret, gone)
    ]
    assert crashed_after(plans) == [CREATE, secret, STATUS, gone]


@pytest.mark.spec("K-11")
def test_a_change_that_repeats_too_often_is_tried_first_and_last() -> None:
    repeated = [place("update", "demo.dev/things/status", "status.phase", number) for number in range(1, 8)]
    few = [place("patch", "/services", "spec.ports", number) for number in range(1, 4)]
    reference = written(*repeated, *few)
    assert crashed_after(list(crashes(reference))) == [repeated[0], repeated[6], *few]
    assert "5 writes" in derive(reference).left_out[0]


@pytest.mark.spec("K-11")
def test_plans_come_by_value_one_of_every_kind_first() -> None:
    configs = [place("create", "/configmaps", name=name) for name in "abc"]
    plans = all_plans(written(*configs, STATUS, DELETE), only={"crash"})
    after = crashed_after([plan for plan in plans if len(plan.perturbations) == 1])
    assert after == [DELETE, configs[0], STATUS, configs[1], configs[2]]


@pytest.mark.spec("K-11")
def test_pairs_of_crashes_come_last_and_belong_to_the_seed() -> None:
    places = [place("create", "/configmaps", name=f"n{number}") for number in range(20)]
    reference = written(*places)
    plans = all_plans(reference, only={"crash"}, seed=3)
    sizes = [len(plan.perturbations) for plan in plans]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 2
    assert plans == all_plans(reference, only={"crash"}, seed=3)
    assert plans != all_plans(reference, only={"crash"}, seed=4)


@pytest.mark.spec("K-11")
def test_patterns_that_are_not_asked_for_give_no_plans_and_all_have_an_estimate() -> None:
    reference = written(CREATE, DELETE)
    assert {plan.pattern for plan in all_plans(reference, only={"errors"})} == {"errors"}
    assert {"crash", "errors"} <= {plan.pattern for plan in all_plans(reference)}
    assert all(plan.seconds >= 2.0 for plan in all_plans(reference))


@pytest.mark.spec("K-11")
def test_every_kind_of_write_meets_each_error_once() -> None:
    again = place("create", "/configmaps", name="b")
    update = place("update", "/configmaps", "data")
    made = [item for plan in errors(written(CREATE, again, update)) for item in plan.perturbations]
    single = [(item.place, item.answer) for item in made if isinstance(item, Refuse) and item.times == 1]
    assert single == [
        (CREATE, "lost"),
        (CREATE, "error"),
        (update, "conflict"),
        (update, "lost"),
        (update, "error"),
    ]


@pytest.mark.spec("K-11")
def test_reads_fail_but_not_those_of_the_client_itself() -> None:
    reference = written(CREATE)
    reference.run.reads = {"get /secrets": 9, "list apps/statefulsets": 1, "get /api": 1, "watch /pods": 3}
    reads = [item for plan in errors(reference) for item in plan.perturbations if item.place.verb in ("get", "list")]  # type: ignore[union-attr]
    assert [(item.place.resource, item.place.occurrence) for item in reads] == [  # type: ignore[union-attr]
        ("/secrets", 1),
        ("/secrets", 5),
        ("apps/statefulsets", 1),
    ]


@pytest.mark.spec("K-116")
def test_plans_end_one_step_after_what_they_disturb_and_the_first_of_a_kind_is_whole_after_them() -> None:
    steps = tuple(Step(f"s{number}", ()) for number in range(5))
    places = [place("create", "/configmaps", name=name) for name in "abc"]
    reference = written(*places)
    reference.run.steps = steps
    reference.run.checkpoints = [
        Checkpoint(step=step.name, revision=0, time=10.0 * (number + 1), state={}) for number, step in enumerate(steps)
    ]
    reference.run.changes = [
        Change(
            revision=number + 1,
            time=0.0,
            moment=Moment("ADDED", "/configmaps", "default", item.name),
            ref=Ref("/configmaps", "default", item.name),
            uid="",
            writer="operator",
            step=step,
        )
        for number, (item, step) in enumerate(zip(places, (0, 1, 4), strict=True))
    ]
    plans = [plan for plan in all_plans(reference, only={"crash"}) if isinstance(plan.perturbations[0], Crash)]
    single = [plan for plan in plans if len(plan.perturbations) == 1]
    first, second, third = ((Crash(item),) for item in places)
    made = [(plan.perturbations, plan.first) for plan in single if plan.perturbations in (first, second, third)]
    assert made == [(first, 2), (second, 3), (third, 0), (first, 0)], "what is disturbed in the last step ends with it"
    assert single == plans[: len(single)], "pairs come after them"
    short, whole = (plan for plan in single if plan.perturbations == first)
    assert short.seconds < whole.seconds


@pytest.mark.spec("K-116")
def test_only_what_can_show_later_is_run_to_the_end() -> None:
    steps = tuple(Step(f"s{number}", ()) for number in range(5))
    reference = written(CREATE)
    reference.run.steps = steps
    ref = Ref("/configmaps", "default", "a")
    moment = Moment("ADDED", "/configmaps", "default", "a")
    reference.run.changes = [
        Change(revision=1, time=0.0, moment=moment, ref=ref, uid="", writer="operator", step=0),
    ]
    plans = all_plans(reference, only={"crash", "errors"})
    whole = {type(item) for plan in plans if not plan.first for item in plan.perturbations}
    assert Refuse in {type(item) for plan in plans for item in plan.perturbations}
    assert Crash in whole
    assert Refuse not in whole


@pytest.mark.spec("K-19")
def test_the_operator_is_away_when_something_is_deleted_first_of_all() -> None:
    sample = {"apiVersion": "demo.dev/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "default"}}
    delete = Delete("demo.dev/v1", "Thing", "default", "a")
    names = ("create", "grow", "shrink", "grow more", "delete", "create again")
    steps = tuple(Step(name, (delete,) if name == "delete" else (Apply(sample),)) for name in names)
    rests = [Checkpoint(step=name, revision=1, time=1.0, state={}) for name in names]
    run = msgspec.structs.replace(written(CREATE).run, steps=steps, checkpoints=rests)
    plans = all_plans(reference_of(run, run), only=["crash"])
    away = [(plan.perturbations[0], plan.first) for plan in plans if isinstance(plan.perturbations[0], OperatorAway)]
    assert away[0] == (OperatorAway(4, 4), 0)  # and the step after it, which is the last
    several = [item for item in away if item[0].last > item[0].step]
    assert several == [(OperatorAway(0, 4), 5), (OperatorAway(1, 4), 5)]
    assert away.index(several[0]) == 1, "the first of each kind, before the second of any"
    assert {item[0].step for item in away if item[0].last == item[0].step} == {0, 1, 2, 4}
    assert all(plan.pattern == "crash" and plan.seconds > 0 for plan in plans)


@pytest.mark.spec("K-118")
def test_deletions_by_others_come_before_changes_of_fields() -> None:
    services, machines = (Ref(resource, "default", "a") for resource in ("/services", "kubevirt.io/virtualmachines"))
    changed = Plan("edits", (Edit(services, {"spec": {"selector": {"app": "b"}}}, 0),))
    deleted = Plan("edits", (Edit(machines, None, 0),))
    assert [plan for _, plan in ranked([changed, deleted])] == [deleted, changed]


@pytest.mark.spec("K-118")
def test_objects_of_other_owners_are_another_kind() -> None:
    """Another controller looks after them."""
    mine, same, other = (Plan("edits", (Edit(Ref("/services", "default", name), None, 0),)) for name in "abc")
    owners = {Ref("/services", "default", name): kind for name, kind in (("a", "Shop"), ("b", "Shop"), ("c", "Place"))}
    assert [(rank, plan) for rank, plan in ranked([mine, same, other], owners)] == [(1, mine), (1, other), (2, same)]
    assert [rank for rank, _ in ranked([mine, same, other])] == [1, 2, 3]


@pytest.mark.spec("K-118")
def test_who_controls_an_object_is_known_from_the_first_rest() -> None:
    refs = [Ref("/services", "default", name) for name in "abc"]

    def service(name: str) -> dict[str, object]:
        kind = "Place" if name == "c" else "Shop"
        owners = [
            {"kind": "Noted", "name": "x", "uid": "n"},
            {"kind": kind, "name": name, "uid": name, "controller": True},
        ]
        metadata = {"name": name, "namespace": "default", "ownerReferences": owners}
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}

    def made(ref: Ref) -> Change:
        moment = Moment("ADDED", ref.resource, ref.namespace, ref.name)
        return Change(revision=1, time=0.0, moment=moment, ref=ref, uid="", writer="operator")

    run = written(CREATE).run
    run.steps = (Step("create", ()),)
    state = {f"services default/{ref.name}": service(ref.name) for ref in refs}
    run.checkpoints = [Checkpoint(step="create", revision=9, time=1.0, state=state, rested=True)]
    run.changes = [made(ref) for ref in refs]
    plans = all_plans(reference_of(run, run), only={"edits"})
    deleted = [
        item.ref.name for plan in plans for item in plan.perturbations if isinstance(item, Edit) and not item.patch
    ]
    assert deleted == ["a", "c", "b"]


@pytest.mark.spec("K-11")
def test_old_views_of_different_changes_are_of_different_kinds() -> None:
    """A view from before a deletion is tried before the second of a change of the size, whatever comes back."""
    back = Moment("ADDED", "apps/statefulsets", "default", "db", occurrence=2)
    sizes = [Moment("MODIFIED", "demo.dev/things", "default", "a", "spec.size", number) for number in (1, 2)]
    deletion = Moment("MODIFIED", "demo.dev/things", "default", "a", "metadata.deletionTimestamp")
    plans = [Plan("stale", (Stale("demo.dev/things", since, back),)) for since in (*sizes, deletion)]
    assert [(rank, plans.index(plan)) for rank, plan in ranked(plans)] == [(1, 0), (1, 2), (2, 1)]


@pytest.mark.spec("K-93")
def test_what_is_of_others_comes_before_edits_and_behind_crashes_around_a_deletion() -> None:
    deletion = Plan("crash", (Crash(Place("delete", "apps/statefulsets", "default", "db")),))
    edit = Plan("edits", (Edit(Ref("/secrets", "default", "a"), None, 0),))
    notes = Plan("edits", steps=(Step("create", ()), Step("others put notes on what the operator made", ())))
    others = Plan("edits", steps=(Step("others have Secret a", ()), Step("create", ())))
    beside = Plan("edits", steps=(Step("another Thing", ()), Step("create", ())))
    plans = [Plan("edits", steps=()), notes, edit, others, beside, deletion]
    assert [plan for _, plan in ranked(plans)] == [deletion, notes, others, beside, edit, plans[0]]
