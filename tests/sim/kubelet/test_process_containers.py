"""Containers that are real processes, without any process: orders go out, reports come in, time is a number."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.kubelet.machine import PodMachine, recover
from konverge.sim.kubelet.process_containers import LiveContainer, Look, Start, Stop
from konverge.sim.kubelet.status import wanted
from tests.sim.conftest import pod

pytestmark = pytest.mark.spec("S-16")


def machine(**spec: Any) -> PodMachine:
    made = pod("web", **spec)
    return PodMachine(
        made, {}, 0.0, [init_container.name for init_container in (*made.spec.init_containers, *made.spec.containers)]
    )


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "app:1", **fields}


def launch(pod_machine: PodMachine, t: float, name: str = "main") -> LiveContainer:
    pod_machine.advance(t)
    assert Start(name) in pod_machine.orders()
    result = pod_machine.live[name]
    result.launched(t, pod_machine.spec(name))
    return result


def answer(pod_machine: PodMachine, look: Look, t: float, well: bool) -> None:
    pod_machine.notes += pod_machine.live[look.container].probed(
        look, t, t, well, "no", pod_machine.spec(look.container)
    )


def test_a_container_runs_when_its_process_does_and_not_before() -> None:
    lifecycle = machine()
    assert lifecycle.advance(0.0) == inf
    assert lifecycle.phase == "Pending"
    assert lifecycle.orders() == [Start("main")]
    lifecycle.live["main"].launched(2.0, lifecycle.spec("main"))
    assert lifecycle.phase == "Running"
    assert lifecycle.live["main"].ready
    assert lifecycle.orders() == []


@pytest.mark.spec("S-57")
def test_who_is_about_to_begin_waits_with_the_reason_of_its_pod() -> None:
    lifecycle = machine(initContainers=[container("first")])

    def reasons() -> list[str]:
        status = wanted(lifecycle, "", "")
        states = [each["state"] for each in (*status["initContainerStatuses"], *status["containerStatuses"])]
        return [state["waiting"]["reason"] if "waiting" in state else next(iter(state)) for state in states]

    lifecycle.advance(0.0)
    assert reasons() == ["PodInitializing", "PodInitializing"]
    launch(lifecycle, 1.0, "first").exited(2.0, 0)
    lifecycle.advance(2.0)
    assert reasons() == ["terminated", "PodInitializing"], "its process is being started"
    alone = machine()
    alone.advance(0.0)
    assert wanted(alone, "", "")["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}


def test_a_process_that_ends_runs_again_and_then_backs_off() -> None:
    lifecycle = machine()
    main = launch(lifecycle, 0.0)
    main.exited(5.0, 3)
    assert lifecycle.advance(5.0) == 6.0
    main = launch(lifecycle, 6.0)
    assert (main.restarts, main.last and main.last.code) == (1, 3)
    main.exited(7.0, 137)
    assert lifecycle.advance(8.0) == 17.0
    assert main.reason == "CrashLoopBackOff"
    assert lifecycle.orders() == []
    launch(lifecycle, 17.0)


@pytest.mark.parametrize(
    ("policy", "code", "phase"), [("Never", 0, "Succeeded"), ("Never", 1, "Failed"), ("OnFailure", 0, "Succeeded")]
)
def test_a_process_that_need_not_run_again_ends_its_pod(policy: str, code: int, phase: str) -> None:
    lifecycle = machine(restartPolicy=policy)
    launch(lifecycle, 0.0).exited(1.0, code)
    assert lifecycle.advance(10.0) == inf
    assert lifecycle.phase == phase


def test_probes_are_ordered_in_their_rhythm_and_judged_by_their_thresholds() -> None:
    probe = {"periodSeconds": 5, "initialDelaySeconds": 3, "failureThreshold": 2, "successThreshold": 1}
    lifecycle = machine(containers=[container(readinessProbe={**probe, "tcpSocket": {"port": 80}})])
    main = launch(lifecycle, 0.0)
    assert lifecycle.advance(0.0) == 3.0
    look = Look("main", "readiness", 1)
    assert lifecycle.advance(3.0) == inf  # until there is an answer
    assert lifecycle.orders() == [look]
    answer(lifecycle, look, 3.5, True)
    assert main.ready
    assert lifecycle.advance(3.5) == 8.5
    for t in (8.5, 13.5):
        lifecycle.advance(t)
        assert lifecycle.orders() == [look]
        assert main.ready
        answer(lifecycle, look, t, False)
    assert not main.ready
    assert [note.message for note in lifecycle.notes if note.reason == "Unhealthy"] == [
        "Readiness probe failed: no"
    ] * 2


def test_a_failed_liveness_stops_the_process_and_its_end_begins_another_run() -> None:
    probe = {"periodSeconds": 1, "failureThreshold": 1, "exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 4}
    lifecycle = machine(containers=[container(livenessProbe=probe)])
    main = launch(lifecycle, 0.0)
    lifecycle.advance(0.0)
    [look] = lifecycle.orders()
    assert isinstance(look, Look)
    answer(lifecycle, look, 0.5, False)
    assert lifecycle.orders() == [Stop("main", 4.5)]
    assert lifecycle.phase == "Running"
    answer(lifecycle, look, 0.6, False)  # too late to matter
    main.exited(1.0, 143)
    launch(lifecycle, 2.0)
    assert main.restarts == 1


def test_a_startup_probe_comes_before_the_others() -> None:
    probe = {"tcpSocket": {"port": 1}}
    lifecycle = machine(containers=[container(startupProbe=probe, readinessProbe=probe)])
    main = launch(lifecycle, 0.0)
    lifecycle.advance(0.0)
    [look] = lifecycle.orders()
    assert look == Look("main", "startup", 1)
    answer(lifecycle, Look("main", "startup", 1), 1.0, True)
    assert main.up
    assert not main.ready
    lifecycle.advance(1.0)
    assert lifecycle.orders() == [Look("main", "readiness", 1)]


def test_deletion_orders_the_end_and_waits_for_it() -> None:
    lifecycle = machine()
    main = launch(lifecycle, 0.0)
    lifecycle.terminate(10.0, 30.0)
    lifecycle.terminate(11.0, 30.0)
    assert lifecycle.orders() == [Stop("main", 40.0)]
    assert not lifecycle.gone
    lifecycle.terminate(12.0, 5.0)
    assert lifecycle.orders() == [Stop("main", 15.0)]
    main.exited(13.0, 143)
    assert lifecycle.gone
    assert lifecycle.advance(100.0) == inf
    assert sum(note.reason == "Killing" for note in lifecycle.notes) == 1


@pytest.mark.spec("S-78")
def test_a_rule_runs_a_process_again_unless_it_was_asked_to_end() -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [143]}}]
    lifecycle = machine(containers=[container(restartPolicy="Never", restartPolicyRules=rules)])
    launch(lifecycle, 0.0).exited(5.0, 143)
    main = launch(lifecycle, 6.0)
    lifecycle.terminate(10.0, 30.0)
    main.exited(11.0, 143)
    assert lifecycle.advance(100.0) == inf
    assert Start("main") not in lifecycle.orders()


def test_deletion_during_the_start_calls_it_off() -> None:
    lifecycle = machine()
    lifecycle.advance(0.0)
    lifecycle.orders()
    lifecycle.terminate(1.0, 30.0)
    assert lifecycle.orders() == [Stop("main", 1.0)]
    assert lifecycle.gone


def test_what_cannot_be_started_says_why_and_is_tried_again() -> None:
    lifecycle = machine()
    lifecycle.advance(0.0)
    lifecycle.orders()
    main = lifecycle.live["main"]
    notes = main.refused("CreateContainerConfigError", 'configmap "c" not found', 2.0)
    assert [note.message for note in notes] == ['Error: configmap "c" not found']
    assert lifecycle.advance(1.0) == 2.0
    status = wanted(lifecycle, "127.0.1.0", "127.1.0.1")
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    launch(lifecycle, 2.0)


def test_init_containers_go_first_and_a_sidecar_stays() -> None:
    inits = [container("setup"), container("proxy", restartPolicy="Always")]
    lifecycle = machine(initContainers=inits, restartPolicy="Never")
    setup = launch(lifecycle, 0.0, "setup")
    assert lifecycle.advance(0.0) == inf
    setup.exited(1.0, 0)
    proxy = launch(lifecycle, 1.0, "proxy")
    main = launch(lifecycle, 2.0)
    lifecycle.advance(5.0)
    main.exited(5.0, 0)
    lifecycle.advance(5.0)
    assert lifecycle.orders() == [Stop("proxy", 35.0)]
    proxy.exited(6.0, 143)
    lifecycle.advance(6.0)
    assert lifecycle.phase == "Succeeded"


def test_of_a_pod_that_is_deleted_sidecars_end_last_and_in_turn() -> None:
    inits = [container(name, restartPolicy="Always") for name in ("first", "second")]
    lifecycle = machine(initContainers=inits)
    first, second, main = (launch(lifecycle, 0.0, name) for name in ("first", "second", "main"))
    lifecycle.terminate(5.0, 30.0)
    assert lifecycle.orders() == [Stop("main", 35.0)]
    main.exited(9.0, 0)
    lifecycle.advance(9.0)
    assert lifecycle.orders() == [Stop("second", 35.0)]
    lifecycle.advance(34.0)
    second.exited(34.0, 0)
    lifecycle.advance(34.0)
    assert lifecycle.orders() == [Stop("first", 36.0)], "at least two seconds"
    first.exited(35.0, 0)
    lifecycle.advance(35.0)
    assert lifecycle.gone


def test_a_sidecar_that_ends_while_its_pod_does_is_not_started_again() -> None:
    lifecycle = machine(initContainers=[container("proxy", restartPolicy="Always")])
    proxy, main = launch(lifecycle, 0.0, "proxy"), launch(lifecycle, 0.0)
    lifecycle.terminate(5.0, 30.0)
    proxy.exited(6.0, 1)
    lifecycle.advance(20.0)
    assert lifecycle.orders() == [Stop("main", 35.0)]
    main.exited(21.0, 0)
    assert lifecycle.gone


def test_a_deadline_stops_the_processes_with_the_pods_grace() -> None:
    lifecycle = machine(activeDeadlineSeconds=10, terminationGracePeriodSeconds=7)
    main = launch(lifecycle, 0.0)
    assert lifecycle.advance(0.0) == 10.0
    lifecycle.advance(10.0)
    assert lifecycle.orders() == [Stop("main", 17.0)]
    main.exited(11.0, 143)
    assert lifecycle.phase == "Failed"


def test_processes_of_a_kubelet_that_ended_count_as_lost() -> None:
    lifecycle = machine()
    launch(lifecycle, 0.0)
    whole = to_dict(lifecycle.pod)
    whole["status"] = wanted(lifecycle, "127.0.1.0", "127.1.0.1")
    again = recover(from_dict(Pod, whole), {}, 50.0, ["main"])
    main = again.live["main"]
    assert main.end is not None
    assert (main.end.code, main.end.reason) == (255, "Unknown")
    launch(again, 51.0)
    assert main.restarts == 1
