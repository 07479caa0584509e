"""The outcome of a reconcile in the status: codes, phases, events and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.operators.nacos.resource import NacosStatus, StatusEvent
from konverge.operators.nacos.steps.outcome import (
    CLUSTER,
    CONTINUE,
    DONE,
    PARAMETER,
    SYSTEM,
    UNKNOWN,
    Code,
    failed,
    held,
    wait,
)
from konverge.operators.nacos.steps.phase import pre_check, record_early_end, record_progress, update_status
from tests.operators.nacos.steps.bench import Bench, ago
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-04", "N-11", "N-12", "N-17")]


def bench_in(phase: Any = "Running", **status: Any) -> Bench:
    return Bench(EMBEDDED, status=NacosStatus(phase=phase, version="2.4.3", **status))


def codes(bench: Bench) -> list[tuple[int, bool, str]]:
    return [(entry.code, entry.status, entry.message) for entry in bench.status.event]


# ------------------------------------------------------------------ PreCheck


async def test_a_new_resource_is_accepted_and_the_reconcile_ends() -> None:
    bench = Bench(EMBEDDED, status=NacosStatus())
    outcome = await pre_check(bench.state)
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "Creating", True)
    assert bench.status.phase == "Creating"
    assert bench.reasons == ["Normal Creating"]
    assert [bench.condition(type) for type in ("PodsReady", "MembersVerified", "Ready", "Progressing")] == [
        "Unknown Creating",
        "Unknown Creating",
        "False Creating",
        "True Creating",
    ]
    assert await pre_check(bench.state) is CONTINUE
    assert bench.reasons == ["Normal Creating"]


@pytest.mark.parametrize("phase", ["Creating", "Running", "Failed"])
async def test_a_known_resource_goes_on(phase: str) -> None:
    bench = bench_in(phase)
    assert await pre_check(bench.state) is CONTINUE
    assert bench.status.phase == phase
    assert bench.reasons == []


async def test_an_invalid_spec_and_a_taken_name_are_the_users_mistakes() -> None:
    bench = bench_in()
    bench.context.obj.spec = {"type": "cluster", "replicas": 2}
    outcome = await pre_check(bench.state)
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", PARAMETER, "InvalidSpec")
    bench = bench_in()
    bench.objects.put(ConfigMap(metadata=ObjectMeta(name="nacos")))
    outcome = await pre_check(bench.state)
    assert (outcome.kind, outcome.code, outcome.reason) == ("failed", PARAMETER, "NotOwned")


TOKEN = {"certification": {"enabled": True, "token": "SecretKey" + "0123456789" * 6}}
REF = {"mysqlCredentialsSecretRef": {"name": "login"}}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (MYSQL, ["database.mysqlPassword"]),
        ({**MYSQL, **TOKEN}, ["database.mysqlPassword", "certification.token"]),
        ({**EMBEDDED, **TOKEN}, ["certification.token"]),
        ({**MYSQL, "database": {**MYSQL["database"], **REF}}, []),
        ({**EMBEDDED, "database": {"type": "embedded", "mysqlPassword": "unused"}}, []),
        (EMBEDDED, []),
    ],
)
async def test_plain_passwords_are_warned_of_once_for_each_spec(spec: dict[str, Any], fields: list[str]) -> None:
    bench = Bench(spec)
    await pre_check(bench.state)
    assert bench.reasons == (["Warning PlainTextPassword"] if fields else [])
    if fields:
        message = bench.context.events[0][2].removeprefix("plain text in the resource: ")
        assert [part.partition(" (")[0] for part in message.split(", ")] == fields
    bench.context.events.clear()
    bench.status.observed_generation = 7
    await pre_check(bench.state)
    assert bench.reasons == []


# ------------------------------------------------------------------ UpdateStatus


async def test_a_reconcile_that_was_done() -> None:
    bench = bench_in("Creating", failing_since=ago(60), healthy=False)
    assert await update_status(bench.state) is DONE
    status = bench.status
    assert (status.phase, status.healthy, status.failing_since) == ("Running", True, "")
    assert codes(bench) == [(200, True, "")]
    assert [bench.condition(type) for type in ("Ready", "Available", "Progressing", "Degraded")] == [
        "True Running",
        "True Running",
        "False Complete",
        "False Running",
    ]
    assert bench.reasons == ["Normal Running"]
    assert bench.context.events[0][2] == "3 of 3 servers are up, version 2.4.3"
    await update_status(bench.state)
    assert bench.reasons == ["Normal Running"], "once"
    assert len(codes(bench)) == 1


async def test_a_reconcile_that_was_not_done() -> None:
    bench = bench_in("Creating")
    bench.state.now = Bench({**EMBEDDED, "replicas": 4}).state.now
    outcome = await update_status(bench.state)
    assert (outcome.kind, outcome.reason, outcome.code) == ("wait", "Scaling", 200)
    assert outcome.message == "4 servers on the way to 3"
    bench.state.held = held("ChangeHeld", "m")
    assert await update_status(bench.state) is bench.state.held
    bench.state.unapplied = failed(SYSTEM, "r", "m")
    assert await update_status(bench.state) is bench.state.unapplied
    assert bench.status.phase == "Creating"


# ------------------------------------------------------------------ early ends


async def test_a_quiet_end_changes_nothing() -> None:
    bench = bench_in(failing_since=ago(60))
    before = bench.status.failing_since
    record_early_end(bench.state, wait("r", "m"))
    assert bench.status.failing_since == before
    assert codes(bench) == []
    assert bench.condition("Ready") == bench.condition("Degraded") == ""


async def test_progress_gives_new_patience() -> None:
    bench = bench_in("Failed", failing_since=ago(600))
    record_early_end(bench.state, wait("r", "m", progress=True))
    assert bench.status.failing_since == ""
    assert bench.condition("Degraded") == "False Progressing"
    assert bench.status.phase == "Failed", "until a reconcile is done"


@pytest.mark.parametrize("code", [PARAMETER, CLUSTER, SYSTEM, UNKNOWN])
async def test_a_failure_is_recorded_once(code: Code) -> None:
    bench = bench_in(healthy=True)
    for _ in range(3):
        record_early_end(bench.state, failed(code, "Why", "m"))
    assert codes(bench) == [(code, False, "m")]
    assert bench.reasons == ["Warning Why"]
    assert not bench.status.healthy
    assert bench.condition("Ready") == "False Why"
    assert bench.condition("Degraded") == "True Why"
    assert bench.status.failing_since != ""
    record_early_end(bench.state, failed(code, "Why", "another"))
    assert codes(bench) == [(code, False, "another")]
    assert bench.reasons == ["Warning Why"]


async def test_another_mistake_of_the_user_has_its_own_event() -> None:
    bench = bench_in()
    record_early_end(bench.state, failed(PARAMETER, "One", "m"))
    record_early_end(bench.state, failed(PARAMETER, "Two", "m"))
    assert bench.reasons == ["Warning One", "Warning Two"]
    bench = bench_in()
    record_early_end(bench.state, failed(SYSTEM, "One", "m"))
    record_early_end(bench.state, failed(SYSTEM, "Two", "m"))
    assert bench.reasons == ["Warning One"]


@pytest.mark.parametrize(
    ("code", "progressing", "type"),
    [(UNKNOWN, True, "Normal"), (CLUSTER, True, "Normal"), (SYSTEM, True, "Warning"), (UNKNOWN, False, "Warning")],
)
async def test_servers_that_start_are_no_fault(code: Code, progressing: bool, type: str) -> None:
    bench = bench_in()
    bench.since("Progressing", "True" if progressing else "False", 10)
    record_early_end(bench.state, failed(code, "Why", "m"))
    assert bench.reasons == [f"{type} Why"]


@pytest.mark.parametrize("phase", ["Creating", "Running"])
async def test_after_three_minutes_the_phase_is_failed(phase: str) -> None:
    bench = bench_in(phase, failing_since=ago(170))
    bench.status.event = [StatusEvent(code=404, message="m", last_transition_time=ago(10))]
    record_early_end(bench.state, failed(SYSTEM, "Why", "m"))
    assert bench.status.phase == phase
    assert bench.condition("Degraded") == ("True Why" if phase == "Running" else "")
    bench.status.failing_since = ago(182)
    record_early_end(bench.state, failed(SYSTEM, "Why", "m"))
    assert bench.status.phase == "Failed"
    assert bench.condition("Degraded") == "True Why"
    assert bench.reasons == ["Warning Failed"]
    record_early_end(bench.state, failed(SYSTEM, "Why", "m"))
    assert bench.reasons == ["Warning Failed"], "once"


async def test_a_long_message_is_cut() -> None:
    bench = bench_in()
    record_early_end(bench.state, failed(SYSTEM, "Why", "m" * 2000))
    assert len(bench.message("Ready")) == 1024
    record_progress(bench.state, failed(PARAMETER, "Why", "m" * 2000))
    assert len(bench.message("Stalled")) == 1024


async def test_the_list_of_events_is_short_and_the_newest_is_last() -> None:
    bench = bench_in()
    for number in range(12):
        record_early_end(bench.state, failed((SYSTEM, CLUSTER)[number % 2], "Why", f"m{number}"))
    assert [message for _, _, message in codes(bench)] == [f"m{number}" for number in range(2, 12)]
    record_early_end(bench.state, failed(SYSTEM, "Why", "m"))
    entry = bench.status.event[-1]
    assert entry.first_appear_time == entry.last_transition_time != ""


@pytest.mark.parametrize(("age", "moved"), [(50, False), (61, True)])
async def test_the_time_of_a_repeated_event_moves_each_minute(age: float, moved: bool) -> None:
    bench = bench_in()
    old = ago(age)
    bench.status.event = [StatusEvent(code=404, message="m", first_appear_time=old, last_transition_time=old)]
    record_early_end(bench.state, failed(SYSTEM, "Why", "m"))
    assert bench.status.event[0].first_appear_time == old
    assert (bench.status.event[0].last_transition_time != old) == moved
    bench = bench_in()
    bench.status.event = [StatusEvent(status=True, code=200, first_appear_time=old, last_transition_time=old)]
    await update_status(bench.state)
    assert bench.status.event[0].last_transition_time == old, "a good one does not"


async def test_a_held_edit_leaves_the_servers_running() -> None:
    bench = bench_in("Failed", failing_since=ago(600), healthy=False)
    for _ in range(2):
        record_early_end(bench.state, held("ChangeHeld", "m"))
    status = bench.status
    assert (status.phase, status.healthy, status.failing_since) == ("Running", True, "")
    assert codes(bench) == [(301, False, "m")]
    assert bench.reasons == []
    assert [bench.condition(type) for type in ("Ready", "Available", "Progressing", "Degraded")] == [
        "False ChangeHeld",
        "True Running",
        "False ChangeHeld",
        "False Running",
    ]
    assert bench.message("Available") == "3 of 3 servers are up"
    old = ago(600)
    status.event[-1].last_transition_time = old
    record_early_end(bench.state, held("ChangeHeld", "m"))
    assert status.event[-1].last_transition_time == old, "time does not make it worse"
    record_early_end(bench.state, held("ChangeHeld", "another"))
    assert codes(bench) == [(301, False, "another")]


# ------------------------------------------------------------------ kstatus


@pytest.mark.parametrize(
    ("phase", "ready", "outcome", "stalled", "reconciling"),
    [
        ("Running", "True", DONE, "False Progressing", "False Complete"),
        ("Running", "False", DONE, "False Progressing", "False Complete"),
        ("Creating", "False", wait("Why", "m"), "False Progressing", "True Why"),
        ("Running", "True", wait("Why", "m"), "False Progressing", "False Complete"),
        ("Creating", "False", failed(SYSTEM, "Why", "m"), "False Progressing", "True Why"),
        ("Failed", "False", failed(SYSTEM, "Why", "m"), "True Why", "False Stalled"),
        ("Failed", "False", wait("Why", "m"), "False Progressing", "True Why"),
        ("Creating", "False", failed(PARAMETER, "Why", "m"), "True Why", "False Stalled"),
        ("Running", "True", held("Why", "m"), "True Why", "False Stalled"),
        ("Creating", "", wait("Why", "m"), "False Progressing", "True Why"),
    ],
)
async def test_what_kstatus_reads(phase: str, ready: Any, outcome: Any, stalled: str, reconciling: str) -> None:
    bench = bench_in(phase)
    if ready:
        bench.since("Ready", ready, 10)
    record_progress(bench.state, outcome)
    assert (bench.condition("Stalled"), bench.condition("Reconciling")) == (stalled, reconciling)
    assert bench.message("Stalled") == ("m" if stalled.startswith("True") else "")
    assert bench.message("Reconciling") == ("m" if reconciling.startswith("True") else "")


async def test_ready_of_an_earlier_generation_is_not_ready() -> None:
    bench = bench_in()
    bench.since("Ready", "True", 10)
    bench.context.obj.metadata.generation = 8
    record_progress(bench.state, wait("Why", "m"))
    assert bench.condition("Reconciling") == "True Why"


@pytest.mark.parametrize("spec", [EMBEDDED, MYSQL, POSTGRES])
async def test_conditions_carry_the_generation_that_was_looked_at(spec: dict[str, Any]) -> None:
    bench = Bench(spec)
    await update_status(bench.state)
    assert {entry.observed_generation for entry in bench.status.kube_conditions} == {7}
