"""Crashes, finalizers, orphans, secrets, permissions, leaders, and our own invariants."""

from __future__ import annotations

import pytest

from konverge.check.model import Edit, Exit, LeaderLost, Place, Plan
from konverge.check.oracles import judge
from konverge.check.oracles.crash import crash
from konverge.check.oracles.finalizers import finalizers, orphans
from konverge.check.oracles.leader import leader
from konverge.check.oracles.permissions import permissions
from konverge.check.oracles.secrets import secrets
from tests.check.oracles.histories import KEY, History, obj, ref, reference

SECRET = "secrets default/a"
SANE = reference(History().rest())


@pytest.mark.spec("K-36")
@pytest.mark.parametrize(
    ("ends", "severity"),
    [(["exit status 1"], ["medium"]), (["exit status 1"] * 3, ["high"]), (["panic: nil"], ["high"])],
)
def test_an_operator_that_ends_by_itself(ends: list[str], severity: list[str]) -> None:
    run = History().rest().run
    run.exits = [Exit(incarnation=n, step=0, time=0.0, code=1, error=text) for n, text in enumerate(ends)]
    assert [alarm.severity for alarm in crash(run, SANE)] == severity


@pytest.mark.spec("K-36")
def test_an_end_on_purpose_is_none_and_a_panic_that_was_caught_is_one() -> None:
    run = History().rest().run
    run.exits = [Exit(incarnation=1, step=0, time=0.0, error="E1116 leader election lost")]
    assert list(crash(run, SANE)) == []
    run.log = ["1: all is well", "1: Traceback (most recent call last):", "1:   File 'a.py'", "1: KeyError: 'spec'"]
    assert [alarm.sentence.endswith("KeyError: 'spec'") for alarm in crash(run, SANE)] == [True]
    run.log = ["1: Traceback (most recent call last):", "1: ApiException: (409)"]
    assert list(crash(run, SANE)) == []
    run.log = ["2: panic: runtime error: invalid memory address or nil pointer dereference [recovered]"]
    assert len(list(crash(run, SANE))) == 1


@pytest.mark.spec("K-36")
def test_a_panic_that_ends_a_program_and_is_in_its_log_is_said_once() -> None:
    run = History().rest().run
    said = "panic: Malformed version: none"
    run.exits = [Exit(incarnation=1, step=0, time=0.0, code=2, error=f"it ended with exit code 2: {said}")]
    run.log = [f"1: {said} [recovered]", f"1: \t{said}"]
    [alarm] = crash(run, SANE)
    assert (alarm.severity, alarm.field, alarm.step) == ("high", said, "create")


@pytest.mark.spec("K-37")
def test_a_deleted_resource_that_stays_is_said_and_not_twice() -> None:
    sane = reference(History().rest({KEY: obj("Thing")}).rest())
    held = obj("Thing", metadata={"finalizers": ["example.dev/x"], "deletionTimestamp": "2026-01-01T00:00:00Z"})
    run = History().rest({KEY: obj("Thing")}).rest({KEY: held}).run
    assert list(finalizers(sane.run, sane)) == []
    assert [(alarm.oracle, alarm.step) for alarm in judge(run, sane)] == [("finalizers", "delete")]


@pytest.mark.spec("K-37")
@pytest.mark.parametrize(
    ("spec", "said"), [({"deletionProtection": True}, 0), ({"deletionProtection": False}, 1), ({"protect": True}, 1)]
)
def test_what_the_user_protects_from_deletion_may_stay(spec: dict[str, bool], said: int) -> None:
    held = obj("Thing", metadata={"finalizers": ["example.dev/x"]}, spec=spec)
    sane = reference(History().rest({KEY: held}).rest({KEY: held}))
    assert len(list(finalizers(sane.run, sane))) == said


@pytest.mark.spec("K-38")
@pytest.mark.parametrize(("policy", "severity"), [("Retain", "low"), ("Delete", "medium")])
def test_what_the_user_asks_to_keep_is_a_note(policy: str, severity: str) -> None:
    thing = obj("Thing", spec={"disks": [{"name": "a", "deletePolicy": policy}]})
    volume = "cdi.example/volumes default/a"
    history = History().change("ADDED", KEY, by="user").change("ADDED", volume).rest({KEY: thing})
    sane = reference(history.rest({volume: {"kind": "Volume", "metadata": {"name": "a", "uid": f"uid of {volume}"}}}))
    assert [alarm.severity for alarm in orphans(sane.run, sane)] == [severity]


@pytest.mark.spec("K-38")
def test_what_outlives_the_resource_without_an_owner_is_said() -> None:
    def left(kind: str, key: str, *, owner: str = "", by: str = "operator") -> list[tuple[str, str]]:
        history = History().change("ADDED", KEY, by="user").change("ADDED", key, by=by).rest({KEY: obj("Thing")})
        owners = {"ownerReferences": [{"uid": owner}]} if owner else {}
        kept = {"metadata": {"name": "a", "uid": f"uid of {key}", **owners}, "kind": kind}
        sane = reference(history.rest({key: kept, "things x": obj("Other", "x")}))
        return [(alarm.object, alarm.severity) for alarm in orphans(sane.run, sane)]

    assert left("ConfigMap", "configmaps default/a") == [("configmaps default/a", "medium")]
    assert left("PersistentVolumeClaim", "persistentvolumeclaims default/a")[0][1] == "low"
    assert left("ConfigMap", "configmaps default/a", owner="uid-Other-x") == []
    assert left("ConfigMap", "configmaps default/a", owner="gone")[0][1] == "medium"
    assert left("ConfigMap", "configmaps default/a", by="cluster") == []


@pytest.mark.spec("K-39")
def test_a_generated_password_that_changes_is_said() -> None:
    sane = reference(History().change("ADDED", SECRET).rest())
    new = ("data.password", "b2xk", "bmV3")
    run = History().change("ADDED", SECRET).change("MODIFIED", SECRET, new, incarnation=2).rest().run
    assert [(alarm.severity, alarm.field) for alarm in secrets(run, sane)] == [("high", "data.password")]
    first = ("data.password", "<absent>", "bmV3")
    assert list(secrets(History().change("ADDED", SECRET).change("MODIFIED", SECRET, first).rest().run, sane)) == []
    usual = reference(History().change("ADDED", SECRET).change("MODIFIED", SECRET, new).rest())
    assert list(secrets(run, usual)) == []
    repaired = History(perturbations=(Edit(ref(SECRET), {}, 0),)).change("MODIFIED", SECRET, new).rest().run
    assert list(secrets(repaired, sane)) == []


@pytest.mark.spec("K-40")
def test_what_the_account_may_not_do_is_said_once() -> None:
    message = 'services is forbidden: User "x" cannot create resource "services" in API group ""'
    history = History().request("create", "services default/a", status=403, error=message)
    run = history.request("create", "services default/b", status=403, error=message).rest().run
    assert [alarm.field for alarm in permissions(run, SANE)] == ["create services"]
    quota = History().request("create", "pods default/a", status=403, error="exceeded quota: small").rest().run
    assert list(permissions(quota, SANE)) == []


@pytest.mark.spec("K-41")
def test_a_write_of_an_operator_that_lost_its_lease_is_said() -> None:
    lost = (LeaderLost(Place("create", "/services", "default", "a")),)
    history = History(pattern="leader", perturbations=lost).request("create", "services default/a", effective=True)
    run = history.request("update", "services default/a", effective=True).rest().run
    assert list(leader(run, SANE)) == []
    run.exchanges[0].incarnation = 2  # the next has begun, and the first still writes
    assert [alarm.severity for alarm in leader(run, SANE)] == ["high"]
    run.plan = Plan("crash")
    assert list(leader(run, SANE)) == []


@pytest.mark.spec("K-42")
def test_a_violation_of_our_invariants_is_our_own_defect() -> None:
    run = History().rest().run
    run.violations = ["at revision 5: pod default/a was recreated while the old one still runs"] * 2
    (alarm,) = judge(run, SANE)
    assert (alarm.oracle, alarm.object) == ("konverge", "konverge")


@pytest.mark.spec("K-42")
def test_a_run_that_says_nothing_raises_no_alarm() -> None:
    run = History().rest().run
    run.violations, run.missed = ["at revision 5: x"], True
    assert judge(run, SANE) == []
