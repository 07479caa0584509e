"""Raft groups: who is removed from them, by whom, and who is restarted to come back."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.operators.nacos.server import Identity, NacosError
from konverge.operators.nacos.steps.outcome import CONTINUE
from konverge.operators.nacos.steps.peers import remove_departed, retire
from konverge.operators.nacos.steps.restarts import readmit
from tests.operators.nacos.steps.bench import Bench, ago, server_pod
from tests.operators.nacos.steps.servers import Servers, host, verdict
from tests.operators.nacos.world import EMBEDDED

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-14")]


def bench_of(replicas: int = 3, **pods: Any) -> tuple[Bench, Servers]:
    servers = Servers()
    spec = {**EMBEDDED, "replicas": replicas, "identitySecretRef": {"name": "identity"}}
    bench = Bench(spec, servers=servers)
    bench.secret("identity", identity_key="key", identity_value="value")
    bench.stateful_set()
    bench.pods(replicas, **pods)
    bench.status.leader = "nacos-1"
    return bench, servers


def raft(number: int) -> str:
    return f"{host(number)}:7848"


async def test_the_leader_removes_a_server_that_leaves() -> None:
    bench, servers = bench_of(4)
    assert await retire(bench.state, bench.workload(), 3)
    assert servers.removed == [("10.0.0.1", raft(3))]
    assert servers.identities == [Identity("key", "value")]
    assert bench.state.cannot_leave == ""


async def test_a_server_is_not_asked_to_remove_itself() -> None:
    bench, servers = bench_of(4)
    bench.status.leader = "nacos-3"
    assert await retire(bench.state, bench.workload(), 3)
    assert [address for address, _ in servers.removed] == ["10.0.0.0"]


async def test_why_a_server_cannot_leave() -> None:
    bench, servers = bench_of(4)
    servers.unremovable = NacosError("ServerError", "no leader")
    assert not await retire(bench.state, bench.workload(), 3)
    assert bench.state.cannot_leave == "nacos-3 cannot leave yet: no leader"


async def test_servers_that_left_are_removed_from_the_groups() -> None:
    bench, servers = bench_of(3)
    outcome = await remove_departed(bench.state, bench.workload(), verdict(3, surplus=(raft(3), raft(4))))
    assert servers.removed == [("10.0.0.1", raft(3)), ("10.0.0.1", raft(4))]
    assert (outcome.kind, outcome.reason) == ("wait", "PeerRemoved")
    assert outcome.message.startswith("nacos-3, nacos-4 left")
    assert bench.condition("MembersVerified") == "Unknown PeerRemoved"
    assert bench.reasons == ["Normal PeerRemoved"]


async def test_only_a_server_that_is_up_is_asked() -> None:
    bench, servers = bench_of(3)
    bench.status.leader = "nacos-0"
    await remove_departed(bench.state, bench.workload(), verdict(3, up=[1, 2], surplus=(raft(3),)))
    assert [address for address, _ in servers.removed] == ["10.0.0.1"]
    bench, servers = bench_of(3, ready=[2])
    await remove_departed(bench.state, bench.workload(), verdict(3, surplus=(raft(3),)))
    assert [address for address, _ in servers.removed] == ["10.0.0.2"]
    bench, servers = bench_of(3)
    unknown = verdict(3, surplus=(raft(3),), members=verdict(3).members[2:])
    await remove_departed(bench.state, bench.workload(), unknown)
    assert [address for address, _ in servers.removed] == ["10.0.0.2"]


async def test_a_removal_that_fails_is_said_and_the_reconcile_goes_on() -> None:
    bench, servers = bench_of(3)
    servers.unremovable = NacosError("ServerError", "no leader")
    assert await remove_departed(bench.state, bench.workload(), verdict(3, surplus=(raft(3),))) is CONTINUE
    assert bench.state.cannot_leave == "nacos-3 left and still counts for the majority: no leader"
    assert bench.reasons == []


@pytest.mark.parametrize(
    ("peer", "quorum"),
    [
        (raft(2), True),  # a server that is to be there
        (raft(3), False),  # without a majority the groups cannot change
        ("other-3.other-headless.default.svc.cluster.local:7848", True),
        ("10.0.0.77:7848", True),  # an address may be that of a server that was replaced
        ("nacos-03.nacos-headless:7848", True),
        ("nacos.example:7848", True),
    ],
)
async def test_who_is_not_removed(peer: str, quorum: bool) -> None:
    bench, servers = bench_of(3)
    given = verdict(3, surplus=(peer,), quorum=quorum)
    assert await remove_departed(bench.state, bench.workload(), given) is CONTINUE
    assert servers.removed == []


async def test_a_server_whose_pod_is_still_there_is_not_removed() -> None:
    bench, servers = bench_of(3)
    bench.objects.put(server_pod(3))
    assert await remove_departed(bench.state, bench.workload(), verdict(3, surplus=(raft(3),))) is CONTINUE
    assert servers.removed == []
    bench.state.at_size(4, 4)
    del bench.objects.stored["Pod", "nacos-3"]
    assert await remove_departed(bench.state, bench.workload(), verdict(3, surplus=(raft(3),))) is CONTINUE
    assert servers.removed == []


async def test_a_server_outside_of_the_groups_is_restarted() -> None:
    bench, _ = bench_of(3)
    outcome = await readmit(bench.state, bench.workload(), verdict(3, outside=("nacos-1", "nacos-2")))
    assert bench.sent == ["delete Pod nacos-1"], "one at a time"
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "Readmitting", True)
    assert bench.condition("Progressing") == "True Readmitting"
    assert bench.reasons == ["Normal Readmitting"]


@pytest.mark.parametrize(
    ("since", "reason", "restarted"), [(25, "", False), (31, "", True), (200, "Readmitting", False)]
)
async def test_a_server_outside_gets_time_and_more_after_a_restart(since: float, reason: str, restarted: bool) -> None:
    bench, _ = bench_of(3)
    bench.objects.put(server_pod(1, since=since))
    if reason:
        bench.since("Progressing", "True", 100, reason)
    await readmit(bench.state, bench.workload(), verdict(3, outside=("nacos-1",)))
    assert bench.sent == (["delete Pod nacos-1"] if restarted else [])


async def test_a_second_restart_comes_when_the_first_did_not_help() -> None:
    bench, _ = bench_of(3)
    bench.objects.put(server_pod(1, since=301))
    bench.since("Progressing", "True", 400, "Readmitting")
    await readmit(bench.state, bench.workload(), verdict(3, outside=("nacos-1",)))
    assert bench.sent == ["delete Pod nacos-1"]


@pytest.mark.parametrize("why", ["no quorum", "another is being deleted", "about to leave", "not ready", "inside"])
async def test_a_server_outside_is_not_restarted(why: str) -> None:
    bench, _ = bench_of(3, ready=[0, 2] if why == "not ready" else None)
    if why == "another is being deleted":
        bench.objects.stored["Pod", "nacos-0"].metadata.deletion_timestamp = ago(1)
    if why == "about to leave":
        bench.state.at_size(3, 1)
    outside = ("nacos-7",) if why == "inside" else ("nacos-1",)
    given = verdict(3, outside=outside, quorum=why != "no quorum")
    assert await readmit(bench.state, bench.workload(), given) is CONTINUE
    assert bench.sent == []
