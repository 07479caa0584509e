"""A fast pace: the waits that pods ask for are left out, what scripts say is not."""

from __future__ import annotations

import pytest

from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.kubelet import status
from konverge.sim.kubelet.behaviour import behaviours
from konverge.sim.kubelet.machine import PodMachine, recover
from konverge.sim.kubelet.pace import FAST, NORMAL, Pace
from tests.sim.conftest import pod

pytestmark = pytest.mark.spec("K-66")

BEGIN = 1000.0
PROBE = {"exec": {"command": ["x"]}, "initialDelaySeconds": 20, "periodSeconds": 30, "successThreshold": 3}


def probed(behaviour: str = "") -> Pod:
    container = {"name": "main", "image": "app:1", "readinessProbe": PROBE}
    return pod("web", behaviour, containers=[container], terminationGracePeriodSeconds=600)


def machine(made: Pod, pace: Pace) -> PodMachine:
    return PodMachine(made, behaviours(made), BEGIN, pace=pace)


def is_ready(made: PodMachine, after: float) -> bool:
    made.advance(BEGIN + after)
    return made.mains["main"].ready


def test_probes_wait_for_nothing() -> None:
    assert is_ready(machine(probed(), FAST), 0)
    slow = machine(probed(), NORMAL)
    assert [is_ready(slow, after) for after in (0, 79, 80)] == [False, False, True]


def test_scripts_keep_their_times() -> None:
    made = machine(probed("ready after 5s"), FAST)
    assert [is_ready(made, after) for after in (0, 4, 6)] == [False, False, True]


def test_a_pod_that_must_be_killed_is_killed_soon() -> None:
    for pace, gone in ((FAST, True), (NORMAL, False)):
        made = machine(probed("ignore-term"), pace)
        made.advance(BEGIN)
        made.terminate(BEGIN + 1, 600.0)
        made.advance(BEGIN + 2)
        assert made.gone is gone


def test_real_processes_keep_their_probes_and_their_grace() -> None:
    made = PodMachine(probed(), {}, BEGIN, ["main"], FAST)
    assert made.spec("main").readiness_probe == probed().spec.containers[0].readiness_probe
    assert made.grace == 600.0


def test_a_changed_probe_is_followed() -> None:
    made = machine(probed(), FAST)
    changed = probed()
    changed.spec.containers[0].image = "app:2"
    made.update(changed, behaviours(changed), BEGIN + 1)
    probe = made.spec("main").readiness_probe
    assert probe is not None
    assert (made.spec("main").image, probe.initial_delay_seconds, probe.period_seconds) == ("app:2", 0, 1)
    assert recover(changed, {}, BEGIN, pace=FAST).spec("main").readiness_probe == probe


def test_a_container_may_be_shown_as_older_also_after_a_restart_of_the_kubelet() -> None:
    made = probed("started 15s ago")
    first = machine(made, FAST)
    first.advance(BEGIN)
    shown = status.wanted(first, "127.0.1.1", "127.1.0.1")
    assert shown["containerStatuses"][0]["state"]["running"]["startedAt"] == status.time(BEGIN - 15)
    again = recover(from_dict(Pod, {**to_dict(made), "status": shown}), behaviours(made), BEGIN + 5, pace=FAST)
    again.advance(BEGIN + 5)
    assert status.wanted(again, "127.0.1.1", "127.1.0.1")["containerStatuses"] == shown["containerStatuses"]
