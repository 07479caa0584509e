"""How many servers a StatefulSet has at a moment: it grows at once, and shrinks one server at a time."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import times
from konverge.objects.kinds.core_v1 import EnvVar
from konverge.operators.nacos import names
from konverge.operators.nacos.resource import NodeCondition
from konverge.operators.nacos.server import NacosError
from konverge.operators.nacos.steps.state import MEMBERS_VERIFIED
from konverge.operators.nacos.steps.stateful_set import listed_since, next_size, size_of
from tests.operators.nacos.steps.bench import Bench, ago
from tests.operators.nacos.steps.servers import Servers, list_of
from tests.operators.nacos.world import EMBEDDED, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-08")]


def of_size(replicas: int) -> dict[str, Any]:
    return {**EMBEDDED, "replicas": replicas, "allowSmallClusters": True}


def up(bench: Bench, *numbers: int) -> None:
    bench.status.conditions = [
        NodeCondition(pod_name=f"nacos-{number}", status="true" if number in numbers else "false")
        for number in range(5)
    ]


def shrinking(present: int, listed: int, desired: int) -> tuple[Bench, Servers]:
    """A cluster on the way from `present` servers to `desired`, whose servers list `listed`."""
    servers = Servers()
    bench = Bench(of_size(desired), servers=servers)
    bench.stateful_set(of_size(listed), replicas=present)
    bench.pods(present)
    up(bench, *range(present))
    bench.status.leader = "nacos-1"
    return bench, servers


async def test_without_a_stateful_set_the_servers_that_still_run_are_kept() -> None:
    bench = Bench(of_size(3))
    assert await next_size(bench.state) == (3, 3)
    bench.pods(5)
    assert await next_size(bench.state) == (5, 5)
    for pod in bench.pods(5)[3:]:
        pod.metadata.deletion_timestamp = ago(1)
    assert await next_size(bench.state) == (3, 3)
    bench.pods(2)
    assert await next_size(bench.state) == (3, 3)


async def test_a_standalone_has_one_server_whatever_runs() -> None:
    bench = Bench(STANDALONE)
    bench.pods(3)
    assert await next_size(bench.state) == (1, 1)
    bench.stateful_set(of_size(3))
    assert await next_size(bench.state) == (1, 1)


@pytest.mark.parametrize(("present", "desired"), [(3, 5), (3, 3), (1, 4)])
async def test_a_cluster_grows_at_once(present: int, desired: int) -> None:
    bench = Bench(of_size(desired))
    bench.stateful_set(of_size(present))
    assert await next_size(bench.state) == (desired, desired)
    bench.state.grow_later = True
    assert await next_size(bench.state) == (present, present)


async def test_the_first_step_of_shrinking_is_a_list_without_the_last_server() -> None:
    bench, servers = shrinking(5, 5, 3)
    assert await next_size(bench.state) == (5, 5), "not while the members are not verified"
    bench.since(MEMBERS_VERIFIED, "True", 10)
    assert await next_size(bench.state) == (5, 4)
    assert servers.removed == []


async def test_the_second_step_removes_the_last_server_from_the_raft_groups() -> None:
    bench, servers = shrinking(5, 4, 3)
    assert await next_size(bench.state) == (4, 4)
    assert servers.removed == [("10.0.0.1", "nacos-4.nacos-headless.default.svc.cluster.local:7848")], "by the leader"


async def test_a_server_that_cannot_be_removed_stays() -> None:
    bench, servers = shrinking(5, 4, 3)
    servers.unremovable = NacosError("Timeout", "no answer")
    assert await next_size(bench.state) == (5, 4)
    assert bench.state.cannot_leave == "nacos-4 cannot leave yet: no answer"


@pytest.mark.parametrize("fault", ["not ready", "outdated", "missing", "not up", "unseen"])
async def test_a_server_leaves_only_when_all_others_are_up_with_the_new_list(fault: str) -> None:
    bench, servers = shrinking(5, 4, 3)
    if fault == "not ready":
        bench.pods(5, ready=[0, 1, 2, 4])
    if fault == "outdated":
        bench.pods(5, outdated=[0])
    if fault == "missing":
        del bench.objects.stored["Pod", "nacos-2"]
    if fault == "not up":
        up(bench, 0, 1, 2, 4)
    if fault == "unseen":
        live = bench.objects.stored["StatefulSet", "nacos"]
        live.metadata.generation = 4
    assert await next_size(bench.state) == (5, 4)
    assert servers.removed == []


@pytest.mark.parametrize("fault", ["not ready", "outdated", "not up"])
async def test_the_last_server_itself_need_not_be_up(fault: str) -> None:
    bench, servers = shrinking(5, 4, 3)
    if fault == "not ready":
        bench.pods(5, ready=range(4))
    if fault == "outdated":
        bench.pods(5, outdated=[4])
    if fault == "not up":
        up(bench, 0, 1, 2, 3)
    assert await next_size(bench.state) == (4, 4)
    assert len(servers.removed) == 1


async def test_a_failed_cluster_loses_a_useless_server_at_once() -> None:
    bench, servers = shrinking(5, 5, 3)
    bench.status.phase = "Failed"
    assert await next_size(bench.state) == (5, 5)
    bench.pods(5, ready=range(4))
    assert await next_size(bench.state) == (4, 4)
    del bench.objects.stored["Pod", "nacos-4"]
    assert await next_size(bench.state) == (4, 4)
    bench.status.phase = "Running"
    assert await next_size(bench.state) == (5, 5)
    assert servers.removed == []


async def test_the_list_is_read_from_the_servers_own_container() -> None:
    bench = Bench(of_size(4))
    live = bench.stateful_set(replicas=5)
    assert size_of(live, bench.state.desired) == (5, 4)
    (container,) = live.spec.template.spec.containers
    container.name = "other"
    assert size_of(live, bench.state.desired) == (5, 5)
    container.name = "nacos"
    container.env = [EnvVar(name="NACOS_REPLICAS"), EnvVar(name="OTHER", value="2")]
    assert size_of(live, bench.state.desired) == (5, 5)
    live.spec.replicas = None
    assert size_of(live, bench.state.desired) == (4, 4)


# ------------------------------------------------------------------ a list that running servers follow


def following(present: int, listed: int, desired: int, lists: dict[int, int]) -> tuple[Bench, Servers]:
    """The same with servers that read their list from a file; `lists` says how many members each answers."""
    bench, servers = shrinking(present, listed, desired)
    bench.context.obj.spec["scaleWithoutRestarts"] = True
    bench.state.desired = bench.state.now = bench.read()
    bench.stateful_set({**of_size(listed), "scaleWithoutRestarts": True}, replicas=present)
    servers.members = {f"10.0.0.{number}": list_of(count) for number, count in lists.items()}
    return bench, servers


@pytest.mark.spec("N-47")
@pytest.mark.parametrize(
    ("lists", "leaves"),
    [
        ({0: 4, 1: 4, 2: 4, 3: 4, 4: 5}, True),
        ({0: 4, 1: 4, 2: 4, 3: 4}, True),  # the last one is not asked
        ({0: 4, 1: 4, 2: 5, 3: 4, 4: 5}, False),
        ({0: 4, 1: 4, 2: 3, 3: 4, 4: 5}, False),
        ({0: 4, 1: 4, 2: 4}, False),  # one gives no answer
    ],
)
async def test_a_server_leaves_when_all_others_have_taken_up_the_list(lists: dict[int, int], leaves: bool) -> None:
    bench, servers = following(5, 4, 3, lists)
    assert await next_size(bench.state) == ((4, 4) if leaves else (5, 4))
    assert len(servers.removed) == leaves
    assert "10.0.0.4" not in {address for address, *_ in servers.asked}


@pytest.mark.spec("N-47")
async def test_servers_with_the_list_in_their_template_are_not_asked() -> None:
    bench, servers = shrinking(5, 4, 3)
    assert await next_size(bench.state) == (4, 4)
    assert servers.asked == []


@pytest.mark.spec("N-47")
def test_the_list_in_the_file_is_read_from_the_annotation() -> None:
    bench, _ = following(5, 4, 3, {})
    live = bench.stateful_set(replicas=5)
    for text, expected in (("4", 4), ("0", 5), ("", 5), ("x", 5)):
        live.metadata.annotations[names.LISTED] = text
        assert size_of(live, bench.state.desired) == (5, expected)
    del live.metadata.annotations[names.LISTED]
    assert size_of(live, bench.state.desired) == (5, 5)


@pytest.mark.spec("N-47")
def test_since_when_a_list_is_there() -> None:
    bench, _ = following(5, 4, 3, {})
    live = bench.stateful_set()
    before = ago(500)
    live.metadata.annotations = {names.LISTED: "4", names.LISTED_SINCE: before}
    assert listed_since(live, 4) == before
    assert listed_since(live, 5) == times.now()
    live.metadata.annotations[names.LISTED_SINCE] = ""
    assert listed_since(live, 4) == times.now()
    live.metadata.annotations = {}
    assert listed_since(live, 4) == times.now() == listed_since(None, 4)
