"""The life of a pod as a list of moments: the machine alone, without clock and API."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.kubelet.behaviour import behaviours
from konverge.sim.kubelet.machine import PodMachine, recover
from konverge.sim.kubelet.status import patch, wanted
from tests.sim.conftest import pod

BEGIN = 1_767_225_600.0
PROBE = {
    "tcpSocket": {"port": 80},
    "periodSeconds": 10,
    "failureThreshold": 3,
    "successThreshold": 1,
    "timeoutSeconds": 1,
}


def machine(made: Pod) -> PodMachine:
    return PodMachine(made, behaviours(made), BEGIN)


def described(pod_machine: PodMachine, at: float) -> str:
    """Phase, ready, restarts and reason of the first container, `at` seconds after the beginning."""
    pod_machine.advance(BEGIN + at)
    status = wanted(pod_machine, "127.0.1.1", "127.1.0.1")
    first = status["containerStatuses"][0]
    ready = next(c["status"] for c in status["conditions"] if c["type"] == "Ready")
    state = first["state"]
    why = state.get("waiting", state.get("terminated", {})).get("reason", "running")
    return f"{status['phase']} {ready} {first['restartCount']} {why}"


def story(made: Pod, *moments: float) -> list[str]:
    lifecycle = machine(made)
    return [described(lifecycle, at) for at in moments]


def with_probes(script: str = "", **probes: dict[str, Any]) -> Pod:
    return pod("web", script, containers=[{"name": "main", "image": "app:1", **probes}])


@pytest.mark.spec("S-16")
def test_a_crash_loop_backs_off_as_kubelet_does() -> None:
    assert story(pod("web", "crash-loop after 5s"), 0, 5, 6, 11, 12, 20, 21, 26, 27, 45, 46) == [
        "Running True 0 running",
        "Running False 0 Error",
        "Running True 1 running",
        "Running False 1 Error",
        "Running False 1 CrashLoopBackOff",
        "Running False 1 CrashLoopBackOff",
        "Running True 2 running",
        "Running False 2 Error",
        "Running False 2 CrashLoopBackOff",
        "Running False 2 CrashLoopBackOff",
        "Running True 3 running",
    ]


def test_the_backoff_ends_at_five_minutes_and_a_long_run_forgives() -> None:
    lifecycle = machine(pod("web", "crash-loop after 1s"))
    lifecycle.advance(BEGIN + 7200)
    assert lifecycle.mains["main"].backoff == 300
    calm = machine(pod("web", "exit 1 after 15m"))
    calm.advance(BEGIN + 7200)
    assert calm.mains["main"].restarts == 7
    assert calm.mains["main"].backoff == 10


def test_an_image_that_cannot_be_pulled() -> None:
    assert story(pod("web", "image-pull-error"), 0, 2, 10, 12, 30) == [
        "Pending False 0 ErrImagePull",
        "Pending False 0 ImagePullBackOff",
        "Pending False 0 ErrImagePull",
        "Pending False 0 ImagePullBackOff",
        "Pending False 0 ErrImagePull",
    ]


@pytest.mark.parametrize(
    ("policy", "script", "end"),
    [
        ("Never", "exit 0 after 5s", "Succeeded False 0 Completed"),
        ("Never", "exit 3 after 5s", "Failed False 0 Error"),
        ("OnFailure", "exit 0 after 5s", "Succeeded False 0 Completed"),
        ("OnFailure", "exit 3 after 5s 2 times", "Running True 2 running"),
        ("Always", "exit 0 after 5s 1 time", "Running True 1 running"),
    ],
)
def test_what_follows_an_exit_depends_on_the_restart_policy(policy: str, script: str, end: str) -> None:
    assert story(pod("web", script, restartPolicy=policy), 0, 600) == ["Running True 0 running", end]


def test_init_containers_run_one_after_the_other() -> None:
    made = pod(
        "web",
        "first: exit 0 after 5s; second: exit 1 after 2s 1 time",
        initContainers=[{"name": "first", "image": "a"}, {"name": "second", "image": "b"}],
    )
    lifecycle = machine(made)
    assert described(lifecycle, 4) == "Pending False 0 PodInitializing"
    status = wanted(lifecycle, "", "")
    assert [list(each["state"]) for each in status["initContainerStatuses"]] == [["running"], ["waiting"]]
    initialized = next(each for each in status["conditions"] if each["type"] == "Initialized")
    assert initialized["message"] == "containers with incomplete status: [first second]"
    assert described(lifecycle, 7) == "Pending False 0 PodInitializing"  # the second has failed once
    assert described(lifecycle, 8) == "Pending False 0 PodInitializing"  # and runs again, for good
    assert lifecycle.inits["second"].restarts == 1


@pytest.mark.spec("S-57")
@pytest.mark.parametrize(("inits", "reason"), [(["first"], "PodInitializing"), ([], "ContainerCreating")])
def test_who_is_about_to_begin_waits_with_the_reason_of_its_pod(inits: list[str], reason: str) -> None:
    script = "pull 3s; first: pull 2s, exit 0 after 5s" if inits else "pull 3s"
    made = pod("web", script, initContainers=[{"name": name, "image": "a"} for name in inits])
    lifecycle = machine(made)
    assert described(lifecycle, 1) == f"Pending False 0 {reason}"
    status = wanted(lifecycle, "", "")
    states = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    assert [each["state"] for each in states] == [{"waiting": {"reason": reason}}] * (len(inits) + 1)
    assert described(lifecycle, 9) == ("Pending False 0 PodInitializing" if inits else "Running True 0 running")
    assert described(lifecycle, 11) == "Running True 0 running"


def test_a_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    made = pod("web", "first: exit 1", restartPolicy="Never", initContainers=[{"name": "first", "image": "a"}])
    assert story(made, 0) == ["Failed False 0 PodInitializing"]


def ruled(policy: str, operator: str = "In", *codes: int, **more: Any) -> dict[str, Any]:
    """A container with a policy of its own and, where codes are given, a rule about them."""
    rules = [{"action": "Restart", "exitCodes": {"operator": operator, "values": list(codes)}}] if codes else []
    return {"name": "main", "image": "app:1", "restartPolicy": policy, "restartPolicyRules": rules, **more}


@pytest.mark.spec("S-78")
@pytest.mark.parametrize(
    ("own", "script", "end"),
    [
        (ruled("Never", "In", 7, 42), "exit 42 1 time", "Running True 1 running"),
        (ruled("Never", "In", 42), "exit 41 1 time", "Failed False 0 Error"),
        (ruled("Never", "NotIn", 42), "exit 41 1 time", "Running True 1 running"),
        (ruled("Never", "NotIn", 42), "exit 42 1 time", "Failed False 0 Error"),
        (ruled("OnFailure", "In", 0), "exit 0 1 time", "Running True 1 running"),
        (ruled("OnFailure", "In", 42), "exit 1 1 time", "Running True 1 running"),
        (ruled("OnFailure", "In", 42), "exit 0 1 time", "Succeeded False 0 Completed"),
        (ruled("Always", "NotIn", 0), "exit 0 1 time", "Running True 1 running"),
        (ruled("Never"), "exit 1 1 time", "Failed False 0 Error"),
    ],
)
def test_rules_about_exit_codes_go_before_the_policy(own: dict[str, Any], script: str, end: str) -> None:
    for policy in ("Always", "Never"):
        assert story(pod("web", script, restartPolicy=policy, containers=[own]), 600) == [end]


@pytest.mark.spec("S-78")
def test_one_of_several_rules_is_enough() -> None:
    own = ruled("Never", "In", 7)
    own["restartPolicyRules"] += ruled("Never", "In", 42)["restartPolicyRules"]
    assert story(pod("web", "exit 42 1 time", containers=[own]), 600) == ["Running True 1 running"]


@pytest.mark.spec("S-78")
def test_no_rule_brings_back_what_was_asked_to_end() -> None:
    lifecycle = machine(pod("web", "runs, ignore-term", containers=[ruled("Never", "In", 137)]))
    lifecycle.terminate(BEGIN + 10, 5)
    assert described(lifecycle, 600) == "Failed False 0 Error"
    assert lifecycle.gone


@pytest.mark.spec("S-78")
@pytest.mark.parametrize(
    ("policy", "own", "script", "restarts", "end"),
    [
        ("Always", ruled("Never"), "exit 1 1 time", 0, "Failed False 0 PodInitializing"),
        ("Never", ruled("OnFailure"), "exit 1 1 time", 1, "Pending False 0 PodInitializing"),
        ("Always", ruled("Never", "In", 42), "exit 42 1 time", 1, "Pending False 0 PodInitializing"),
        ("Always", ruled("Never", "In", 42), "exit 41 1 time", 0, "Failed False 0 PodInitializing"),
        ("Always", ruled("Never", "In", 0), "exit 0", 0, "Running True 0 running"),
    ],
)
def test_an_init_container_has_a_policy_and_rules_of_its_own(
    policy: str, own: dict[str, Any], script: str, restarts: int, end: str
) -> None:
    made = pod("web", f"first: {script}; main: runs", restartPolicy=policy, initContainers=[{**own, "name": "first"}])
    lifecycle = machine(made)
    assert described(lifecycle, 600) == end  # a second run does not end
    assert lifecycle.inits["first"].restarts == restarts


def test_sidecars_start_before_and_end_after_the_rest() -> None:
    made = pod(
        "job",
        "main: exit 0 after 10s; proxy: slow-start 3s",
        restartPolicy="Never",
        initContainers=[{"name": "proxy", "image": "a", "restartPolicy": "Always"}],
    )
    lifecycle = machine(made)
    assert described(lifecycle, 2) == "Pending False 0 PodInitializing"
    assert described(lifecycle, 3) == "Running True 0 running"
    assert described(lifecycle, 13) == "Succeeded False 0 Completed"
    assert lifecycle.inits["proxy"].over


@pytest.mark.spec("S-78")
def test_a_sidecar_that_ends_well_runs_again() -> None:
    lifecycle = machine(
        pod("web", "proxy: exit 0 after 5s 1 time", initContainers=[{**ruled("Always"), "name": "proxy"}])
    )
    lifecycle.advance(BEGIN + 600)
    assert lifecycle.inits["proxy"].restarts == 1


def test_a_sidecar_waits_for_what_takes_its_time_to_end() -> None:
    sidecar = {"name": "proxy", "image": "a", "restartPolicy": "Always"}
    lifecycle = machine(pod("web", "main: stop 10s", initContainers=[sidecar]))
    lifecycle.terminate(BEGIN + 1.0, 30.0)
    lifecycle.advance(BEGIN + 10.0)
    assert not lifecycle.inits["proxy"].over
    lifecycle.advance(BEGIN + 11.0)
    assert lifecycle.inits["proxy"].over
    assert lifecycle.gone


def test_readiness_comes_with_the_first_probe_that_succeeds() -> None:
    made = with_probes("ready after 12s", readinessProbe={**PROBE, "initialDelaySeconds": 5})
    assert story(made, 0, 12, 14, 15) == [
        "Running False 0 running",
        "Running False 0 running",
        "Running False 0 running",
        "Running True 0 running",
    ]


def test_readiness_is_lost_when_enough_probes_have_failed() -> None:
    made = with_probes("unready after 1m", readinessProbe=PROBE)
    assert story(made, 0, 60, 79, 80)[1:] == [
        "Running True 0 running",
        "Running True 0 running",
        "Running False 0 running",
    ]


def test_a_startup_probe_holds_the_others_back_and_kills_what_is_too_slow() -> None:
    startup = {**PROBE, "failureThreshold": 3}
    fast = with_probes("ready after 15s", startupProbe=startup, readinessProbe=PROBE, livenessProbe=PROBE)
    assert story(fast, 19, 20) == ["Running False 0 running", "Running True 0 running"]
    slow = with_probes("ready after 5m", startupProbe=startup, livenessProbe=PROBE)
    assert story(slow, 19, 20, 21) == [
        "Running False 0 running",
        "Running False 0 Error",
        "Running False 1 running",
    ]


def test_a_failing_liveness_probe_restarts_the_container() -> None:
    made = with_probes("unhealthy after 30s", livenessProbe=PROBE)
    lifecycle = machine(made)
    assert described(lifecycle, 49) == "Running True 0 running"
    assert described(lifecycle, 51) == "Running True 1 running"
    assert lifecycle.mains["main"].last is not None
    assert lifecycle.mains["main"].last.code == 137


def test_a_healthy_pod_has_nothing_to_do_ever_again() -> None:
    made = with_probes("", startupProbe=PROBE, readinessProbe=PROBE, livenessProbe=PROBE)
    assert machine(made).advance(BEGIN + 1) == inf


def test_the_active_deadline_fails_the_pod() -> None:
    lifecycle = machine(pod("web", activeDeadlineSeconds=30))
    assert described(lifecycle, 29) == "Running True 0 running"
    lifecycle.advance(BEGIN + 30)
    status = wanted(lifecycle, "", "")
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


@pytest.mark.parametrize(
    ("script", "grace", "ends", "code"),
    [("", 30, 0, 0), ("stop 5s", 30, 5, 0), ("ignore-term", 30, 30, 137), ("stop 1m", 10, 10, 137)],
)
def test_grace_periods(script: str, grace: float, ends: float, code: int) -> None:
    lifecycle = machine(pod("web", script))
    lifecycle.advance(BEGIN + 10)
    lifecycle.terminate(BEGIN + 10, grace)
    due = lifecycle.advance(BEGIN + 10)
    if ends:
        assert (due, lifecycle.gone) == (BEGIN + 10 + ends, False)
        lifecycle.advance(due)
    assert lifecycle.gone
    run = lifecycle.mains["main"].end
    assert run is not None
    assert (run.code, run.ended) == (code, BEGIN + 10 + ends)


def test_less_grace_the_second_time_shortens_it() -> None:
    lifecycle = machine(pod("web", "ignore-term"))
    lifecycle.terminate(BEGIN, 30)
    lifecycle.terminate(BEGIN + 5, 10)
    assert lifecycle.advance(BEGIN + 5) == BEGIN + 10


def test_a_readiness_gate_is_part_of_ready() -> None:
    made = pod("web", readinessGates=[{"conditionType": "example.com/ok"}])
    lifecycle = machine(made)
    lifecycle.advance(BEGIN)
    ready = next(each for each in wanted(lifecycle, "", "")["conditions"] if each["type"] == "Ready")
    assert ready["reason"] == "ReadinessGatesNotReady"
    assert 'gate "example.com/ok" does not exist' in ready["message"]


SCRIPTS = st.sampled_from(
    [
        "",
        "crash-loop after 5s",
        "exit 0 after 40s",
        "never-ready",
        "ready after 33s",
        "image-pull-error",
        "slow-start 12s",
    ]
)


@settings(deadline=None)
@given(
    script=SCRIPTS,
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    stops=st.lists(st.integers(0, 2000), max_size=6),
)
def test_it_does_not_matter_how_often_the_machine_is_looked_at(script: str, policy: str, stops: list[int]) -> None:
    made = pod("web", script, restartPolicy=policy)
    often, once = machine(made), machine(made)
    for stop in sorted(stops):
        often.advance(BEGIN + stop)
    assert described(often, 2000) == described(once, 2000)
    assert wanted(often, "", "") == wanted(once, "", "")


@settings(deadline=None)
@given(script=SCRIPTS, policy=st.sampled_from(["Always", "OnFailure", "Never"]), at=st.integers(0, 300))
def test_another_kubelet_goes_on_where_the_first_one_ended(script: str, policy: str, at: int) -> None:
    made = pod("web", script, restartPolicy=policy)
    first = machine(made)
    first.advance(BEGIN + at)
    status = wanted(first, "127.0.1.1", "127.1.0.1")

    made = from_dict(Pod, {**to_dict(made), "status": status})
    second = recover(made, behaviours(made), BEGIN + at)
    second.advance(BEGIN + at)
    shown = wanted(second, "127.0.1.1", "127.1.0.1")
    assert shown["phase"] == status["phase"]
    assert [each["restartCount"] for each in shown["containerStatuses"]] == [
        each["restartCount"] for each in status["containerStatuses"]
    ]


def test_nothing_is_written_when_all_is_as_it_should_be() -> None:

    made = pod("web")
    lifecycle = machine(made)
    lifecycle.advance(BEGIN)
    status = wanted(lifecycle, "127.0.1.1", "127.1.0.1")
    first = patch(made, status, BEGIN)
    assert first is not None
    again = from_dict(Pod, {**to_dict(made), "status": first["status"]})
    assert patch(again, status, BEGIN + 60) is None
