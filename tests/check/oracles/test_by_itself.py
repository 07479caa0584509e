"""What an operator does by itself while an hour passes is a note; what holds data or serves users stays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.check.model import Alarm, Checkpoint, Crash, Perturbation, Place, Run, TimePasses
from konverge.check.oracles import judge
from konverge.check.oracles.by_itself import lowered
from tests.check.oracles.histories import KEY, STEPS, History, obj, reference
from tests.check.small import SECRETS, THINGS, Api, Caches, Small, create
from tests.check.small import reference as reference_of_small
from tests.check.small import run as run_small

HOUR = TimePasses(0, 3600.0)
AWAY = TimePasses(0, 90.0, away=True)
CRASH = Crash(Place("create", "/configmaps", "default", "a"))
CONFIG, JOB, POD = "configmaps default/a", "batch/jobs default/a", "pods default/a"
SET, CLAIM, SERVICE = "apps/statefulsets default/a", "persistentvolumeclaims default/a", "services default/a"
SECRET, DAEMONS = "secrets default/a", "apps/daemonsets default/a"
KINDS = {CONFIG: "ConfigMap", JOB: "Job", POD: "Pod", SET: "StatefulSet", CLAIM: "PersistentVolumeClaim"}

Happens = tuple[Any, ...]


def made(key: str, owner: str = "", **more: Any) -> dict[str, Any]:
    owners = {"ownerReferences": [{"uid": f"uid of {owner}"}]} if owner else {}
    return obj(KINDS.get(key, "Other"), **{"spec": {}, **more}, metadata={"uid": f"uid of {key}", **owners})


def begun(state: dict[str, Any], *perturbations: Perturbation) -> History:
    """The first step: everything in the state is the operator's, but pods."""
    history = History(STEPS[:2], "time", perturbations=perturbations).change("ADDED", KEY, by="user")
    for key in state:
        history.change("ADDED", key, by="cluster" if key == POD else "operator")
    return history.rest({KEY: obj("Thing", apiVersion="example.dev/v1"), **state})


def hour(
    before: dict[str, Any],
    after: dict[str, Any],
    *happens: Happens,
    perturbations: tuple[Perturbation, ...] = (HOUR,),
    later: tuple[Happens, ...] = (),
) -> Run:
    """A run in which something happens by itself after the first step, or in the second."""
    history = begun(before, *perturbations)
    thing = {KEY: obj("Thing", apiVersion="example.dev/v1")}
    for by, kind, key, *differences in happens:
        history.change(kind, key, *differences, by=by)
        history.run.changes[-1].step = 0
    history.run.checkpoints.append(
        Checkpoint(step="create, then", revision=len(history.run.changes), time=history.time, state={**thing, **after})
    )
    for by, kind, key, *differences in later:
        history.change(kind, key, *differences, by=by)
    return history.rest(after).run


def after_an_hour(before: dict[str, Any], *more: Any, **how: Any) -> list[tuple[str, str, str, str]]:
    """What is said of such a run."""
    alarms = judge(hour(before, *more, **how), reference(begun(before).rest(before)))
    return [(alarm.oracle, alarm.object, alarm.field, alarm.severity) for alarm in alarms]


MORE = {CONFIG: made(CONFIG)}
"""What is there once more has come by itself."""


@pytest.mark.spec("K-148")
@pytest.mark.parametrize(
    ("perturbations", "severity"),
    [((HOUR,), "low"), ((HOUR, TimePasses(0, 60.0)), "low"), ((AWAY,), "high"), ((HOUR, CRASH), "high"), ((), "high")],
)
def test_what_a_schedule_makes_is_a_note_where_nothing_else_goes_wrong(
    perturbations: tuple[Perturbation, ...], severity: str
) -> None:
    made_then = ("operator", "ADDED", CONFIG)
    said = after_an_hour({}, MORE, made_then, perturbations=perturbations)
    assert said == [("state", CONFIG, "", severity)]


@pytest.mark.spec("K-148")
def test_other_oracles_say_of_it_what_they_say() -> None:
    run = hour({}, MORE, ("operator", "ADDED", CONFIG))
    alarms = [
        Alarm(oracle=oracle, severity="medium", object=CONFIG, sentence="") for oracle in ("needless writes", "status")
    ]
    assert lowered(alarms, run) == alarms


@pytest.mark.spec("K-148")
def test_what_is_made_before_or_after_the_wait_is_none() -> None:
    """The last change before it and the first one after it are not by themselves."""
    assert after_an_hour({}, MORE, later=(("operator", "ADDED", CONFIG),)) == [("state", CONFIG, "", "high")]
    other = {CONFIG: made(CONFIG, data={"a": "2"})}
    said = after_an_hour({CONFIG: made(CONFIG, data={"a": "1"})}, other)
    assert said == [("state", CONFIG, "data.a", "high")], "made by the last change before it"


@pytest.mark.spec("K-148")
@pytest.mark.parametrize(("key", "severity"), [(CONFIG, "medium"), (SECRET, "high")])
def test_what_lives_for_half_an_hour_is_a_note_when_it_goes(key: str, severity: str) -> None:
    said = after_an_hour({key: made(key)}, {}, ("operator", "DELETED", key))
    assert set(said) == {("state", key, "", "low"), ("deletion", key, "", "low")}
    gone = ("operator", "MODIFIED", key, ("metadata.deletionTimestamp", "<absent>", "now"))
    said = after_an_hour({key: made(key)}, {}, gone, ("cluster", "DELETED", key))
    assert {severity for _, _, _, severity in said} == {"low"}, "with a finalizer"
    said = after_an_hour({key: made(key)}, {}, ("cluster", "DELETED", key))
    assert set(said) == {("state", key, "", "high"), ("deletion", key, "", severity)}
    again = {key: made(key, data={"a": "1"})}
    said = after_an_hour({key: made(key)}, again, ("operator", "DELETED", key), ("operator", "ADDED", key))
    assert set(said) == {("state", key, "data", "low"), ("deletion", key, "", "low")}


@pytest.mark.spec("K-148")
@pytest.mark.parametrize(
    ("key", "severity"),
    [(SET, "high"), (CLAIM, "high"), ("apps/deployments default/a", "high"), (DAEMONS, "medium"), (SERVICE, "medium")],
)
def test_what_holds_data_or_serves_users_has_no_lifetime(key: str, severity: str) -> None:
    gone, comes = ("operator", "DELETED", key), ("operator", "ADDED", key)
    there = {key: made(key, spec={"a": 1})}
    said = after_an_hour(there, {}, gone)
    assert set(said) == {("state", key, "", "high"), ("deletion", key, "", severity)}
    said = after_an_hour(there, {key: made(key, spec={"a": 2})}, gone, comes)
    assert set(said) == {("state", key, "spec.a", "high"), ("deletion", key, "", severity)}
    assert after_an_hour({}, there, comes) == [("state", key, "", "low")], "one that was not there takes nothing away"
    assert after_an_hour({}, there, comes, gone, comes) == [("state", key, "", "low")], "nor does it when it goes"


@pytest.mark.spec("K-148")
def test_what_the_cluster_makes_of_it_is_a_note_as_well() -> None:
    """Jobs of a CronJob, and what belongs to what was made or deleted."""
    running = made(POD, owner=JOB)
    both = {JOB: made(JOB), POD: running}
    happens = (("cluster", "ADDED", JOB), ("cluster", "ADDED", POD))
    assert {(key, severity) for _, key, _, severity in after_an_hour({}, both, *happens)} == {
        (JOB, "low"),
        (POD, "low"),
    }
    gone = after_an_hour(both, {}, ("cluster", "DELETED", JOB), ("cluster", "DELETED", POD))
    assert {(key, severity) for _, key, _, severity in gone} == {(JOB, "low"), (POD, "low")}
    lost = {CONFIG: made(CONFIG), SET: made(SET, owner=CONFIG)}
    said = after_an_hour(lost, {}, ("operator", "DELETED", CONFIG), ("cluster", "DELETED", SET))
    assert {(key, severity) for _, key, _, severity in said} == {(CONFIG, "low"), (SET, "high")}
    alone = after_an_hour({}, {POD: running}, ("cluster", "ADDED", POD))
    assert alone == [("state", POD, "", "high")]


TOKEN = ("data.token", "b2xk", "bmV3")


@pytest.mark.spec("K-148")
def test_a_token_that_is_refreshed_is_a_note() -> None:
    def secret(token: str, **metadata: Any) -> dict[str, Any]:
        return {SECRET: obj("Secret", data={"token": token}, metadata={"uid": f"uid of {SECRET}", **metadata})}

    valid = ("metadata.annotations.until", "noon", "evening")
    before = secret("b2xk", annotations={"until": "noon"})
    after = secret("bmV3", annotations={"until": "evening"})
    said = after_an_hour(before, after, ("operator", "MODIFIED", SECRET, TOKEN, valid))
    assert set(said) == {
        ("secrets", SECRET, "data.token", "low"),
        ("state", SECRET, "data.token", "low"),
        ("state", SECRET, "metadata.annotations.until", "low"),
    }
    told = after_an_hour(before, after, ("operator", "MODIFIED", SECRET, valid))
    assert ("state", SECRET, "data.token", "high") in told, "this it did not write"
    later = ("operator", "MODIFIED", SECRET, TOKEN)
    late = after_an_hour(before, after, ("operator", "MODIFIED", SECRET, valid), later=(later,))
    assert ("secrets", SECRET, "data.token", "high") in late
    by_cluster = after_an_hour(before, after, ("cluster", "MODIFIED", SECRET, TOKEN))
    assert ("state", SECRET, "data.token", "high") in by_cluster
    stuck = secret("b2xk", annotations={"until": "noon"}, deletionTimestamp="now")
    begins = ("metadata.deletionTimestamp", "<absent>", "now")
    said = after_an_hour(before, stuck, ("operator", "MODIFIED", SECRET, begins))
    assert ("state", SECRET, "metadata.deletionTimestamp", "high") in said
    config = {CONFIG: made(CONFIG, data={"token": "b2xk"})}, {CONFIG: made(CONFIG, data={"token": "bmV3"})}
    said = after_an_hour(*config, ("operator", "MODIFIED", CONFIG, TOKEN))
    assert said == [("state", CONFIG, "data.token", "high")]


@pytest.mark.spec("K-148")
def test_an_operator_that_refreshes_a_token_has_nothing_above_low() -> None:
    async def reconcile(api: Api, caches: Caches) -> None:
        if "a" not in caches[THINGS]:
            return
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
        if await api.get(SECRETS, "token") is None:
            await api.create(SECRETS, {**secret, "data": {"token": "b2xk"}})
        await asyncio.sleep(1800)
        await api.patch(SECRETS, "token", {"data": {"token": "bmV3"}})

    def small() -> Small:
        return Small(reconcile)

    def of(run: Run) -> set[tuple[str, str]]:
        return {(alarm.oracle, alarm.severity) for alarm in judge(run, sane)}

    steps = (create("create"),)
    sane = reference_of_small(small, steps)
    hour = run_small(small, steps, plan=History(STEPS, "time", perturbations=(HOUR,)).run.plan)
    assert of(hour) == {("secrets", "low"), ("state", "low")}
