"""Undesired deletions and recreations."""

from __future__ import annotations

import pytest

from konverge.check.model import Edit, Lag, Moment, Perturbation, Step, TimePasses
from konverge.check.oracles.deletions import deletions
from tests.check.oracles.histories import History, obj, ref, reference

SET, CLAIM, POD = "apps/statefulsets default/db", "persistentvolumeclaims default/data-db-0", "pods default/db-0"


def created(history: History) -> History:
    return history.change("ADDED", SET).change("ADDED", CLAIM, by="cluster").change("ADDED", POD, by="cluster")


@pytest.mark.spec("K-32")
def test_an_object_that_is_deleted_and_made_again_is_said() -> None:
    sane = reference(created(History()).rest())
    run = created(History()).change("DELETED", SET).change("ADDED", SET).rest().run
    (alarm,) = deletions(run, sane)
    assert (alarm.object, alarm.severity, alarm.expected, alarm.actual) == (SET, "high", 0, 1)


@pytest.mark.spec("K-32")
def test_what_the_reference_deletes_as_well_or_others_delete_is_no_alarm() -> None:
    both = [
        created(History()).rest().change("DELETED", SET).change("DELETED", CLAIM, by="cluster").rest() for _ in "ab"
    ]
    assert list(deletions(both[0].run, reference(both[1]))) == []
    sane = reference(created(History()).rest())
    pods = created(History()).change("DELETED", POD, by="cluster").change("ADDED", POD, by="cluster").rest()
    assert list(deletions(pods.run, sane)) == []
    by_user = created(History(perturbations=(Edit(ref(SET), None, 0),))).change("DELETED", SET, by="user")
    assert list(deletions(by_user.change("DELETED", SET, by="cluster").rest().run, sane)) == []


OUTAGE = TimePasses(0, 90.0, away=True)
LAGS = Lag("example.dev/things", Moment("DELETED", "example.dev/things", "default", "a"))


@pytest.mark.spec("K-32")
@pytest.mark.parametrize("late", [OUTAGE, LAGS])
def test_what_is_made_for_an_owner_whose_deletion_comes_late_may_be_collected(late: Perturbation) -> None:
    """After an outage the watches come back one after the other: the children's may be ahead of the owner's."""
    config = "configmaps default/db"
    sane = reference(History().change("ADDED", config).rest().change("DELETED", config, by="cluster").rest())

    def history(perturbation: Perturbation, by: str = "cluster") -> History:
        made = History(pattern="time", perturbations=(perturbation,)).change("ADDED", config).rest()
        return made.change("DELETED", config, by="cluster").change("ADDED", config).change("DELETED", config, by=by)

    assert list(deletions(history(late).rest().run, sane)) == []
    (alarm,) = deletions(history(late, by="operator").change("DELETED", config).rest().run, sane)
    assert (alarm.object, alarm.actual) == (config, 2)


@pytest.mark.spec("K-32")
def test_what_goes_with_its_owner_may_be_made_once_more_before_the_owner_is_seen_to_be_gone() -> None:
    config = "configmaps default/db"

    def gone(*writers: str) -> History:
        history = History(pattern="crash").change("ADDED", config).rest()
        for number, by in enumerate(writers):
            history = (history.change("ADDED", config) if number else history).change("DELETED", config, by=by)
        return history.rest()

    sane = reference(gone("cluster"))
    assert list(deletions(gone("cluster", "cluster").run, sane)) == []
    for writers in (("cluster", "operator"), ("operator", "cluster")):
        (alarm,) = deletions(gone(*writers).run, sane)
        assert (alarm.expected, alarm.actual) == (1, 2)
    (alarm,) = deletions(gone("cluster", "cluster").run, reference(gone("operator")))
    assert alarm.object == config
    (alarm,) = deletions(gone("cluster", "cluster").run, reference(gone()))  # it stays in the reference
    assert (alarm.expected, alarm.actual) == (0, 2)


@pytest.mark.spec("K-32")
def test_a_deletion_by_the_operator_itself_counts_for_pods_too() -> None:
    sane = reference(created(History()).rest())
    (alarm,) = deletions(created(History()).change("DELETED", POD).rest().run, sane)
    assert (alarm.object, alarm.severity) == (POD, "medium")


@pytest.mark.spec("K-32")
@pytest.mark.parametrize(("pattern", "severity"), [("stale", "high"), ("crash", "medium")])
def test_a_delete_without_precondition_on_an_old_view_is_worse(pattern: str, severity: str) -> None:
    sane = reference(created(History()).rest())
    history = created(History(pattern=pattern))  # type: ignore[arg-type]
    run = history.change("DELETED", POD).request("delete", POD, effective=True).rest().run
    (alarm,) = deletions(run, sane)
    assert alarm.severity == severity


@pytest.mark.spec("K-131")
def test_what_the_reference_does_not_have_in_a_step_may_go() -> None:
    steps = tuple(Step(name, ()) for name in ("create", "up", "down", "up again"))

    def history(step: int | None) -> History:
        history = History(steps)
        for number in range(len(steps)):
            if number in (1, 3):
                history.change("ADDED", CLAIM, by="cluster")
            if number == step:  # in others it is made too early, or once more
                history.change("ADDED", CLAIM, by="cluster").change("DELETED", CLAIM)
            if number == 2:
                history.change("DELETED", CLAIM)
            history.rest()
        return history

    sane = reference(history(None))
    assert [len(list(deletions(history(step).run, sane))) for step in range(4)] == [0, 1, 1, 1]


@pytest.mark.spec("K-131")
def test_what_was_there_before_the_operator_is_there_in_every_step() -> None:
    steps = tuple(Step(name, ()) for name in ("create", "change", "more", "delete"))

    def history(step: int) -> History:
        history = History(steps)
        for number in range(len(steps)):
            if number == step:
                history.change("DELETED", SET)
            history.rest()
        return history

    sane = reference(history(2))
    assert [len(list(deletions(history(step).run, sane))) for step in range(4)] == [1, 1, 0, 0]


DELETION = ("metadata.deletionTimestamp", None, "2026-01-01T00:00:00Z")


@pytest.mark.spec("K-120")
@pytest.mark.parametrize(("pattern", "severity"), [("stale", "high"), ("crash", "low")])
def test_a_pod_that_the_operator_deletes_with_grace_is_deleted_by_it(pattern: str, severity: str) -> None:
    """The kubelet takes it away in the end."""
    sane = reference(created(History()).rest())

    def gone(by: str) -> History:
        history = created(History(pattern=pattern))  # type: ignore[arg-type]
        asked = history.change("MODIFIED", POD, DELETION, by=by).request("delete", POD, effective=by == "operator")
        return asked.change("DELETED", POD, by="cluster").rest()

    (alarm,) = deletions(gone("operator").run, sane)
    assert (alarm.object, alarm.severity) == (POD, severity)
    assert list(deletions(gone("cluster").run, sane)) == []


@pytest.mark.spec("K-120")
def test_what_the_user_deletes_is_not_deleted_by_the_operator_that_lets_it_go() -> None:
    sane = reference(created(History()).rest())
    asked = created(History()).change("MODIFIED", SET, DELETION, by="user").change("DELETED", SET, by="operator")
    assert list(deletions(asked.rest().run, sane)) == []


@pytest.mark.spec("K-32")
def test_another_uid_at_the_next_rest_is_said() -> None:
    steps = History().run.steps
    steps = (steps[0], steps[0].__class__("change", ()), *steps[1:])

    def history(second: str) -> History:
        one = obj("PersistentVolumeClaim", metadata={"uid": "1"})
        return History(steps).rest({CLAIM: one}).rest({CLAIM: obj("PersistentVolumeClaim", metadata={"uid": second})})

    sane = reference(history("1"))
    assert list(deletions(history("1").run, sane)) == []
    assert [(alarm.object, alarm.step) for alarm in deletions(history("2").run, sane)] == [(CLAIM, "change")]


VOLUME = "persistentvolumes pvc-1"


@pytest.mark.spec("K-100")
@pytest.mark.parametrize(
    ("used", "late", "by", "alarms"),
    [
        (False, True, "operator", []),
        (True, True, "operator", [CLAIM]),  # the new custom resource's pod has it by then
        (False, False, "operator", [CLAIM, VOLUME]),  # it was made for the new custom resource
        (False, True, "cluster", []),
    ],
)
def test_a_claim_that_was_left_over_by_chance_may_go_as_long_as_no_pod_uses_it(
    used: bool, late: bool, by: str, alarms: list[str]
) -> None:
    """An operator that has let a custom resource go makes its StatefulSet once more; a claim of that stays behind."""

    def history(*, stale: bool) -> History:
        made = created(History(pattern="stale")).rest().change("DELETED", CLAIM, by="cluster")
        for number in range(2):
            if number == (0 if late else 1):
                made.change("ADDED", CLAIM, by="cluster").change("ADDED", VOLUME, by="cluster")
            if not number:
                made.rest()
        for change in made.run.changes:
            if change.moment.type == "ADDED" and change.revision > 3:
                change.uid += " that is new"
        if stale and used:
            made.change("ADDED", POD, by="cluster")
        if stale:
            for key, writer in ((CLAIM, by), (VOLUME, "cluster")):
                made.change("DELETED", key, by=writer)
                made.run.changes[-1].uid += " that is new"
        return made.change("ADDED", POD, by="cluster").rest()

    said = deletions(history(stale=True).run, reference(history(stale=False)))
    assert [alarm.object for alarm in said] == alarms
