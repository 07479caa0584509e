"""What the steps read from pods and their StatefulSet."""

from __future__ import annotations

import pytest

from konverge.objects.kinds.core_v1 import ContainerState, ContainerStateWaiting, ContainerStatus, Pod, PodCondition
from konverge.objects.meta import OwnerReference
from konverge.operators.nacos import names
from konverge.operators.nacos.steps.pods import (
    Workload,
    is_ready,
    ordinal_of,
    pods_of,
    read_workload,
    ready_for,
    unready_for,
    why_not_ready,
)
from tests.operators.nacos.steps.bench import NEW, OLD, Bench, ago, server_pod
from tests.operators.nacos.world import EMBEDDED

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-09")]


def waiting(pod: Pod, reason: str | None, message: str | None = None, *, init: bool = False) -> Pod:
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    statuses = [ContainerStatus(name="a"), ContainerStatus(name="b", state=state)]
    if init:
        pod.status.init_container_statuses = statuses
    else:
        pod.status.container_statuses = statuses
    return pod


def terminating(pod: Pod) -> Pod:
    pod.metadata.deletion_timestamp = ago(1)
    return pod


async def test_a_pod_is_ready_by_its_condition_unless_it_is_being_deleted() -> None:
    pod = server_pod(0)
    pod.status.conditions = [PodCondition(type="Initialized", status="False"), *pod.status.conditions]
    assert is_ready(pod)
    assert not is_ready(terminating(server_pod(0)))
    assert not is_ready(server_pod(0, ready=False))
    assert not is_ready(Pod())
    unknown = server_pod(0)
    unknown.status.conditions[0].status = "Unknown"
    assert not is_ready(unknown)


async def test_how_long_a_pod_is_ready_or_not() -> None:
    assert ready_for(server_pod(0, since=40)) == pytest.approx(40, abs=1)
    assert ready_for(server_pod(0, ready=False, since=40)) == 0
    assert unready_for(server_pod(0, ready=False, since=40)) == pytest.approx(40, abs=1)
    assert unready_for(server_pod(0, since=40)) == 0
    without = server_pod(0, ready=False, since=40)
    without.status.conditions = []
    assert unready_for(without) == pytest.approx(41, abs=1), "since it was created"
    pending = server_pod(0, ready=False)
    pending.status.phase = "Pending"
    assert unready_for(pending) == 0


@pytest.mark.parametrize("init", [False, True])
@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("ImagePullBackOff", "no such image", "nacos-0: ImagePullBackOff: no such image"),
        ("CrashLoopBackOff", None, "nacos-0: CrashLoopBackOff"),
        ("ContainerCreating", None, "nacos-0 is not ready"),
        ("PodInitializing", "soon", "nacos-0 is not ready"),
        (None, "soon", "nacos-0 is not ready"),
    ],
)
async def test_a_container_that_waits(reason: str | None, message: str | None, expected: str, init: bool) -> None:
    pod = waiting(server_pod(0, ready=False, since=40), reason, message, init=init)
    assert why_not_ready(pod) == expected
    running = expected == "nacos-0 is not ready"
    assert unready_for(pod) == (pytest.approx(40, abs=1) if running else 0), "another pod would wait for the same"


async def test_why_a_pod_is_not_ready() -> None:
    assert why_not_ready(server_pod(0)) == ""
    assert why_not_ready(terminating(server_pod(0))) == "nacos-0 is being deleted"
    pod = server_pod(0, ready=False)
    scheduled = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes")
    pod.status.conditions = [*pod.status.conditions, scheduled]
    assert why_not_ready(pod) == "nacos-0: Unschedulable: 0/3 nodes"
    scheduled.message = None
    assert why_not_ready(pod) == "nacos-0: Unschedulable: no node takes it"
    scheduled.status = "True"
    assert why_not_ready(pod) == "nacos-0 is not ready"
    pod.status.conditions = [PodCondition(type="Initialized", status="False", reason="r")]
    assert why_not_ready(pod) == "nacos-0 is not ready"


@pytest.mark.parametrize(("name", "number"), [("nacos-0", 0), ("a-b-12", 12), ("nacos", -1), ("nacos-x", -1)])
def test_the_number_of_a_server(name: str, number: int) -> None:
    assert ordinal_of(name) == number


async def test_which_pods_are_outdated() -> None:
    bench = Bench(EMBEDDED)
    live = bench.stateful_set()
    pods = bench.pods(3, outdated=[0, 1])
    terminating(pods[1])
    unlabelled = server_pod(3)
    del unlabelled.metadata.labels["controller-revision-hash"]
    bench.objects.put(unlabelled)

    def outdated() -> list[str]:
        return [pod.metadata.name for pod in Workload(live, pods_of(bench.state)).outdated]

    assert outdated() == ["nacos-0"]
    live.status.observed_generation = 2
    assert not Workload(live, []).observed
    assert outdated() == [], "not before the controller has seen the current template"
    live.status.observed_generation = 4
    assert outdated() == ["nacos-0"]
    live.status.observed_generation = None
    assert outdated() == ["nacos-0"]
    live.status.update_revision = None
    assert outdated() == []
    assert Workload(None, pods).outdated == []
    assert not Workload(None, pods).observed


async def test_whether_all_pods_are_of_one_template() -> None:
    bench = Bench(EMBEDDED)
    live = bench.stateful_set()
    pods = bench.pods(3, outdated=[0])
    assert not Workload(live, pods).of_one_template
    assert Workload(live, pods[1:]).of_one_template
    assert Workload(live, []).of_one_template
    terminating(pods[0])
    assert not Workload(live, pods).of_one_template, "it serves until it is gone"
    live.status.observed_generation = 2
    assert not Workload(live, pods[1:]).of_one_template, "not before the controller has seen the current template"
    assert not Workload(None, pods[1:]).of_one_template


async def test_which_pods_have_older_secrets() -> None:
    bench = Bench(EMBEDDED)
    live = bench.stateful_set()
    live.spec.template.metadata.annotations = {names.SECRETS_DIGEST: "new", "other": "x"}
    pods = bench.pods(4, outdated=[0, 1, 2])
    for pod, digest in zip(pods, ("new", "old", None, "old"), strict=True):
        pod.metadata.annotations = {names.SECRETS_DIGEST: digest} if digest else {"other": "y"}
    assert Workload(live, pods).with_older_secrets == {"nacos-1", "nacos-2"}
    assert Workload(None, pods).with_older_secrets == set()


async def test_only_pods_of_the_stateful_set_are_servers() -> None:
    bench = Bench(EMBEDDED)
    owners = [("StatefulSet", "nacos"), ("StatefulSet", "other"), ("Job", "nacos"), None]
    for pod, owner in zip(bench.pods(4), owners, strict=True):
        if owner is not None:
            kind, name = owner
            pod.metadata.owner_references = [
                OwnerReference(api_version="apps/v1", kind=kind, name=name, uid="u", controller=True)
            ]
    assert [pod.metadata.name for pod in pods_of(bench.state)] == ["nacos-0", "nacos-3"]


async def test_servers_are_in_the_order_of_their_numbers_and_counted() -> None:
    bench = Bench(EMBEDDED)
    bench.stateful_set()
    bench.objects.put(*(server_pod(number, ready=number != 2) for number in (10, 2, 1)))
    by_hand = server_pod(0)
    by_hand.metadata.name = "nacos-debug"
    bench.objects.put(by_hand)
    workload = await read_workload(bench.state)
    assert [pod.metadata.name for pod in workload.pods] == ["nacos-1", "nacos-2", "nacos-10"]
    assert (bench.status.replicas, bench.status.ready_replicas) == (3, 2)
    assert bench.status.selector == "app=nacos,middleware=nacos,component=nacos"
    pod = workload.pod("nacos-2")
    assert pod is not None
    assert pod.metadata.labels["controller-revision-hash"] == NEW != OLD
    assert workload.pod("nacos-0") is None
