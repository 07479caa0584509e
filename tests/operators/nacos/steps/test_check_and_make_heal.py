"""CheckKind and CheckNacos: what they read, what they conclude, and the first administrator."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.codec import to_json
from konverge.operators.nacos.server import Identity, Leader, Member, NacosError, RaftGroup
from konverge.operators.nacos.steps.check_and_make_heal import (
    LONGEST_TEXT,
    MOST_GROUPS,
    _raft_group,
    check_and_make_heal,
)
from konverge.operators.nacos.steps.outcome import CLUSTER, CONTINUE, UNKNOWN, Outcome, failed
from tests.operators.nacos.steps.bench import Bench, ago, server_pod
from tests.operators.nacos.steps.servers import Servers, host, list_of
from tests.operators.nacos.world import EMBEDDED, POSTGRES, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-09", "N-10")]


def bench_of(
    replicas: int = 3, *, settled: bool = True, spec: dict[str, Any] | None = None, **pods: Any
) -> tuple[Bench, Servers]:
    servers = Servers()
    bench = Bench({**(spec or EMBEDDED), "replicas": replicas}, servers=servers)
    bench.stateful_set()
    bench.pods(replicas, **pods)
    for number in range(replicas):
        servers.members[f"10.0.0.{number}"] = list_of(replicas)
    if settled:
        for type in ("PodsReady", "MembersVerified", "Ready"):
            bench.since(type, "True", 60)
    return bench, servers


def summary(outcome: Outcome) -> tuple[str, int, str]:
    return outcome.kind, outcome.code, outcome.reason


# ------------------------------------------------------------------ CheckKind


async def test_no_stateful_set() -> None:
    bench, servers = bench_of()
    del bench.objects.stored["StatefulSet", "nacos"]
    assert summary(await check_and_make_heal(bench.state)) == ("failed", UNKNOWN, "StatefulSetMissing")
    assert servers.asked == []


async def test_a_stateful_set_of_another_size() -> None:
    bench, _ = bench_of()
    bench.stateful_set(replicas=2)
    outcome = await check_and_make_heal(bench.state)
    assert summary(outcome) == ("failed", UNKNOWN, "ReplicasDiffer")
    assert outcome.message == "StatefulSet nacos has 2 replicas, 3 are desired"


async def test_a_change_that_the_controller_has_not_seen() -> None:
    bench, _ = bench_of()
    bench.objects.stored["StatefulSet", "nacos"].metadata.generation = 4
    assert summary(await check_and_make_heal(bench.state)) == ("wait", 200, "ChangeUnseen")


async def test_all_pods_have_to_exist_while_the_workload_changes() -> None:
    bench, _ = bench_of(settled=False)
    del bench.objects.stored["Pod", "nacos-2"]
    outcome = await check_and_make_heal(bench.state)
    assert summary(outcome) == ("failed", UNKNOWN, "PodsMissing")
    assert outcome.message == "2 pods exist, 3 are desired"
    assert bench.condition("PodsReady") == bench.condition("Available") == "False PodsMissing"
    bench, _ = bench_of()
    del bench.objects.stored["Pod", "nacos-2"]
    assert (await check_and_make_heal(bench.state)).code == CLUSTER, "later the servers are asked"


@pytest.mark.parametrize(
    ("replicas", "ready", "enough"), [(3, 2, True), (3, 1, False), (4, 2, True), (5, 3, True), (5, 2, False)]
)
async def test_half_of_the_pods_are_enough(replicas: int, ready: int, enough: bool) -> None:
    bench, _ = bench_of(replicas, settled=False, ready=range(ready))
    outcome = await check_and_make_heal(bench.state)
    if enough:
        assert summary(outcome) == ("wait", 200, "PodsReady")
        assert bench.condition("PodsReady") == "True EnoughReady"
        assert outcome.message == f"{ready} of {replicas} pods are ready"
    else:
        assert summary(outcome) == ("failed", UNKNOWN, "PodsNotReady")
        assert bench.condition("PodsReady") == "False PodsNotReady"
        assert bench.condition("Available") == "False PodsNotReady"
        assert f"{ready} of {(replicas + 1) // 2} needed" in outcome.message
        assert f"nacos-{ready} is not ready" in outcome.message
        assert "nacos-0" not in outcome.message


async def test_a_standalone_needs_its_pod() -> None:
    bench, _ = bench_of(1, spec=STANDALONE, settled=False, ready=[])
    assert summary(await check_and_make_heal(bench.state)) == ("failed", UNKNOWN, "PodsNotReady")


# ------------------------------------------------------------------ CheckNacos


async def test_all_servers_are_asked_with_the_identity() -> None:
    spec = {**EMBEDDED, "identitySecretRef": {"name": "identity"}}
    bench, servers = bench_of(spec=spec)
    bench.secret("identity", identity_key="key", identity_value="value")
    assert await check_and_make_heal(bench.state) is CONTINUE
    identity = Identity("key", "value")
    assert servers.asked == [(f"10.0.0.{number}", 8848, identity, 5.0) for number in range(3)]


async def test_what_the_servers_say_is_in_the_status() -> None:
    bench, _ = bench_of()
    bench.status.version = ""
    bench.objects.stored["Pod", "nacos-1"].spec.node_name = "node-a"  # type: ignore[attr-defined]
    assert await check_and_make_heal(bench.state) is CONTINUE
    status = bench.status
    assert (status.version, status.leader) == ("2.4.3", "nacos-0")
    assert bench.condition("Available") == "True Quorum"
    assert [(node.type, node.status, node.pod_name) for node in status.conditions] == [
        ("leader", "true", "nacos-0"),
        ("follower", "true", "nacos-1"),
        ("follower", "true", "nacos-2"),
    ]
    node = status.conditions[1]
    assert (node.instance, node.host_ip, node.node_name) == ("10.0.0.1", "10.1.0.1", "node-a")
    assert (node.reason, node.message) == ("", "")


@pytest.mark.spec("N-63")
async def test_hostile_raft_groups_make_a_status_that_can_be_kept() -> None:
    """Names, terms and their number come from servers; a cluster that disagrees on them is not healthy, no more."""
    bench, servers = bench_of()
    leader = Leader(f"{host(0)}:7848", 3)
    odd = {f"{number:03}<script>" + "x" * 1000: leader for number in range(MOST_GROUPS + 1)}
    terms = {"000": Leader(f"{host(0)}:7848", 2**70), "0000": Leader(f"{host(0)}:7848", -5)}
    for number in range(3):
        servers.members[f"10.0.0.{number}"] = list_of(3, leaders={**odd, **terms}, groups={})
    assert await check_and_make_heal(bench.state) is CONTINUE
    groups = bench.status.raft_groups
    assert len(groups) == MOST_GROUPS == 100
    assert [(group.name, group.term) for group in groups[:2]] == [("000", 2**63 - 1), ("0000", 0)]
    assert (len(groups[2].name), groups[2].name[:11]) == (LONGEST_TEXT, "000<script>")
    assert LONGEST_TEXT == 512
    assert len(to_json(groups)) < 200_000


@pytest.mark.spec("N-63")
def test_the_name_of_a_leader_is_cut_too() -> None:
    """That of a pod is short, but a server without a known pod is named by its own address."""
    group = _raft_group(RaftGroup(name="g", leader="x" * 600, term=1, peers=3, problem=""))
    assert (group.leader, group.agreed) == ("x" * LONGEST_TEXT, True)


@pytest.mark.spec("N-63")
async def test_a_long_disagreement_is_cut() -> None:
    bench, servers = bench_of()
    name = "g" * 600
    lists = [list_of(3, leaders={name: Leader(f"{host(min(number, 1))}:7848", 3 - number)}) for number in range(3)]
    members = tuple(lists[number][number] for number in range(3))
    for number in range(3):
        servers.members[f"10.0.0.{number}"] = members
    assert (await check_and_make_heal(bench.state)).code == CLUSTER
    (group,) = bench.status.raft_groups
    assert (group.agreed, len(group.message), len(group.name)) == (False, 512, 512)
    assert group.message.startswith("members disagree on the leader of ggg")


async def test_a_standalone_leads_itself() -> None:
    bench, servers = bench_of(1, spec=STANDALONE)
    servers.members["10.0.0.0"] = (Member(host="10.0.0.0", version="2.0.4"),)
    assert await check_and_make_heal(bench.state) is CONTINUE
    assert [node.type for node in bench.status.conditions] == ["leader"]


async def test_the_first_time_that_all_agree_ends_the_reconcile() -> None:
    bench, _ = bench_of()
    bench.status.kube_conditions = []
    assert summary(await check_and_make_heal(bench.state)) == ("wait", 200, "PodsReady")
    outcome = await check_and_make_heal(bench.state)
    assert summary(outcome) == ("wait", 200, "MembersVerified")
    assert outcome.message == "3 servers are up, the leader is nacos-0"
    assert bench.condition("MembersVerified") == "True AllUp"


async def test_a_server_without_an_answer() -> None:
    bench, servers = bench_of()
    servers.members["10.0.0.2"] = NacosError("Timeout", "did not answer")
    outcome = await check_and_make_heal(bench.state)
    assert summary(outcome) == ("failed", CLUSTER, "MembersNotUp")
    assert "nacos-2: Timeout: did not answer" in outcome.message
    assert bench.condition("MembersVerified") == "False MembersNotUp"
    assert bench.condition("Available") == "True Quorum"
    assert bench.message("Available") == "2 of 3 servers are up"
    node = bench.status.conditions[2]
    assert (node.type, node.status) == ("follower", "false")
    assert bench.status.version == "2.4.3"


async def test_a_server_that_is_not_up() -> None:
    bench, servers = bench_of()
    members = list(list_of(3))
    members[1] = Member(host=host(1), state="STARTING", version="2.4.3", leaders=members[1].leaders)
    servers.members["10.0.0.1"] = tuple(members)
    outcome = await check_and_make_heal(bench.state)
    assert outcome.reason == "MembersNotUp"
    node = bench.status.conditions[1]
    assert (node.status, node.reason, node.message) == ("false", "STARTING", "STARTING, not verified")


async def test_a_majority_that_is_lost() -> None:
    bench, servers = bench_of()
    for number in (1, 2):
        servers.members[f"10.0.0.{number}"] = NacosError("Timeout", "did not answer")
    bench.status.version, bench.status.leader = "2.4.3", "nacos-1"
    outcome = await check_and_make_heal(bench.state)
    assert summary(outcome) == ("failed", CLUSTER, "QuorumLost")
    assert bench.condition("Available") == "False NoQuorum"
    assert bench.status.leader == ""
    bench, servers = bench_of(1, spec=STANDALONE)
    servers.members = {}
    assert (await check_and_make_heal(bench.state)).reason == "MembersNotUp", "one server has no majority"


async def test_servers_that_name_different_leaders() -> None:
    bench, servers = bench_of()
    for number in range(3):
        split = list(list_of(3))
        own = {group: leader._replace(address=f"{host(number)}:7848") for group, leader in split[0].leaders.items()}  # type: ignore[union-attr]
        split[number] = Member(host=host(number), version="2.4.3", leaders=own)
        servers.members[f"10.0.0.{number}"] = tuple(split)
    assert (await check_and_make_heal(bench.state)).reason == "LeaderSplit"


async def test_many_problems_are_counted() -> None:
    bench, servers = bench_of(9)
    servers.members = {}
    outcome = await check_and_make_heal(bench.state)
    assert outcome.message.count("Unreachable") == 6
    assert outcome.message.endswith("; and 4 more"), "nine servers, and the majority"


async def test_a_server_that_left_and_is_still_counted() -> None:
    bench, servers = bench_of()
    left = frozenset(f"{host(number)}:7848" for number in range(4))
    for number in range(3):
        servers.members[f"10.0.0.{number}"] = list_of(3, groups={"naming_persistent_service_v2": left})
    servers.unremovable = NacosError("ServerError", "no leader")
    outcome = await check_and_make_heal(bench.state)
    assert summary(outcome) == ("failed", CLUSTER, "PeersLeft")
    assert outcome.message == "nacos-3 left and still counts for the majority: no leader"
    bench.pods(3, outdated=[2])
    await check_and_make_heal(bench.state)
    assert bench.sent == [], "no other pod is taken away before"
    servers.unremovable = None
    assert (await check_and_make_heal(bench.state)).reason == "PeerRemoved"


async def test_pods_that_cannot_be_asked() -> None:
    bench, servers = bench_of(3, ready=[0, 1])
    outcome = await check_and_make_heal(bench.state)
    assert [address for address, *_ in servers.asked] == ["10.0.0.0", "10.0.0.1"]
    assert "nacos-2: not ready" in outcome.message
    assert [node.pod_name for node in bench.status.conditions] == ["nacos-0", "nacos-1"]
    bench, servers = bench_of(3)
    homeless = server_pod(2)
    homeless.status.pod_ip = None
    bench.objects.put(homeless)
    outcome = await check_and_make_heal(bench.state)
    assert "nacos-2: has no address yet" in outcome.message
    assert len(servers.asked) == 2
    assert bench.status.conditions[2].instance == ""


async def test_a_leader_that_cannot_be_asked_is_named_by_its_pod() -> None:
    bench, servers = bench_of(3, ready=[0, 1])
    claims = {"naming_persistent_service_v2": Leader("10.0.0.2:7848", 3)}
    members = tuple(Member(host=f"10.0.0.{number}", version="2.4.3", leaders=claims) for number in range(3))
    servers.members = {f"10.0.0.{number}": members for number in range(2)}
    outcome = await check_and_make_heal(bench.state)
    assert "is led by nacos-2 (term 3), which is not up" in outcome.message


# ------------------------------------------------------------------ the order of the parts


@pytest.mark.parametrize(("age", "settled", "asks"), [(5, False, False), (13, False, True), (5, True, True)])
async def test_a_fresh_verdict_is_not_asked_for_again(age: float, settled: bool, asks: bool) -> None:
    bench, servers = bench_of(settled=False)
    bench.since("PodsReady", "True", 60)
    bench.since("MembersVerified", "True", age)
    if settled:
        bench.since("Ready", "True", 60)
    assert await check_and_make_heal(bench.state) is CONTINUE
    assert bool(servers.asked) == asks


async def test_a_verdict_that_was_not_good_is_not_fresh() -> None:
    bench, servers = bench_of(settled=False)
    bench.since("PodsReady", "True", 60)
    bench.since("MembersVerified", "False", 1)
    await check_and_make_heal(bench.state)
    assert servers.asked


async def test_an_outdated_pod_that_is_not_ready_goes_before_anything_is_asked() -> None:
    bench, servers = bench_of(3, ready=[0, 1], outdated=[2])
    assert (await check_and_make_heal(bench.state)).reason == "Replacing"
    assert bench.sent == ["delete Pod nacos-2"]
    assert servers.asked == []


async def test_an_outdated_pod_goes_when_all_servers_are_up() -> None:
    bench, _ = bench_of(3, outdated=[0, 1])
    assert (await check_and_make_heal(bench.state)).reason == "RollingUpdate"
    assert bench.sent == ["delete Pod nacos-1"], "nacos-0 leads"


@pytest.mark.parametrize("ready", [range(3), range(2)])
async def test_nothing_is_rolled_while_a_change_cannot_be_written(ready: Any) -> None:
    bench, _ = bench_of(3, ready=ready, outdated=[2])
    bench.state.unapplied = failed(CLUSTER, "Why", "m")
    await check_and_make_heal(bench.state)
    assert bench.sent == []


async def test_servers_with_the_older_identity_do_not_stop_its_rollout() -> None:
    spec = {**EMBEDDED, "identitySecretRef": {"name": "identity"}}
    bench, servers = bench_of(3, spec=spec, outdated=[0, 1])
    bench.secret("identity", identity_key="key", identity_value="value")
    live = bench.objects.stored["StatefulSet", "nacos"]
    live.spec.template.metadata.annotations = {"nacos.io/secrets-digest": "new"}  # type: ignore[attr-defined]
    for number in (0, 1):
        servers.members[f"10.0.0.{number}"] = NacosError("Forbidden", "another identity")
    await check_and_make_heal(bench.state)
    assert bench.sent == ["delete Pod nacos-1"]


async def test_the_last_known_leader_goes_last() -> None:
    bench, servers = bench_of(3, outdated=[1, 2])
    bench.status.leader, bench.status.phase = "nacos-2", "Failed"
    servers.members = {}
    await check_and_make_heal(bench.state)
    assert bench.sent == ["delete Pod nacos-1"]


async def test_a_stuck_pod_is_healed_by_either_check() -> None:
    bench, _ = bench_of(3, ready=[0])
    bench.status.phase = "Failed"
    assert (await check_and_make_heal(bench.state)).reason == "PodsNotReady"
    assert bench.sent == ["delete Pod nacos-2"]
    bench, servers = bench_of(3)
    bench.status.phase = "Failed"
    servers.members["10.0.0.1"] = NacosError("Timeout", "did not answer")
    assert (await check_and_make_heal(bench.state)).reason == "MembersNotUp"
    assert bench.sent == ["delete Pod nacos-1"]


async def test_a_server_outside_of_the_groups_is_readmitted() -> None:
    bench, servers = bench_of(3)
    without = frozenset(f"{host(number)}:7848" for number in range(2))
    for number in range(3):
        servers.members[f"10.0.0.{number}"] = list_of(3, groups={"naming_persistent_service_v2": without})
    assert (await check_and_make_heal(bench.state)).reason == "Readmitting"
    assert bench.sent == ["delete Pod nacos-2"]


# ------------------------------------------------------------------ the first administrator


ADMIN: dict[str, Any] = {**EMBEDDED, "adminCredentialsSecretRef": {"name": "admin"}}


def with_admin(spec: dict[str, Any] = ADMIN, **values: str) -> tuple[Bench, Servers]:
    bench, servers = bench_of(spec=spec)
    bench.secret("admin", **(values or {"password": "word"}))
    return bench, servers


async def test_the_first_administrator_is_created_once() -> None:
    bench, servers = with_admin()
    assert await check_and_make_heal(bench.state) is CONTINUE
    assert servers.passwords == [("create", "10.0.0.0", "word")]
    assert bench.condition("AdminRotated") == "True Bootstrapped"
    assert bench.reasons == ["Normal AdminCreated"]
    admin = bench.status.admin
    assert (admin.username, admin.last_result, admin.last_message) == ("nacos", "Success", "created by the servers")
    assert admin.last_rotate_time == ago(0)
    await check_and_make_heal(bench.state)
    assert len(servers.passwords) == 1


async def test_an_administrator_who_exists() -> None:
    bench, servers = with_admin()
    servers.has_admin, servers.accepted = True, "word"
    await check_and_make_heal(bench.state)
    assert servers.passwords == [("create", "10.0.0.0", "word"), ("nacos", "10.0.0.0", "word")]
    assert bench.condition("AdminRotated") == "True Bootstrapped"
    assert bench.status.admin.last_message == "existed already"
    assert bench.reasons == []


async def test_an_administrator_with_another_password() -> None:
    bench, servers = with_admin()
    servers.has_admin, servers.accepted = True, "another"
    assert await check_and_make_heal(bench.state) is CONTINUE
    assert bench.condition("AdminRotated") == "False PasswordDiffers"
    assert bench.status.admin.last_result == ""


async def test_an_administrator_who_could_not_be_created() -> None:
    bench, servers = with_admin()
    servers.admin_error = NacosError("ServerError", "no leader")
    assert await check_and_make_heal(bench.state) is CONTINUE
    assert bench.condition("AdminRotated") == "False ServerError"
    assert bench.message("AdminRotated") == "no leader"


async def test_no_password_for_the_administrator() -> None:
    bench, servers = with_admin(passwordHash="$2a$10$hash")
    assert await check_and_make_heal(bench.state) is CONTINUE
    assert bench.condition("AdminRotated") == "False PasswordMissing"
    assert servers.passwords == []


@pytest.mark.parametrize(
    "spec",
    [
        EMBEDDED,
        {**EMBEDDED, "adminCredentialsSecretRef": {"name": ""}},
        {**ADMIN, "image": "nacos/nacos-server:v2.3.2"},
        {**POSTGRES, "adminCredentialsSecretRef": {"name": "admin"}},
    ],
)
async def test_no_administrator_is_created(spec: dict[str, Any]) -> None:
    bench, servers = with_admin(spec)
    bench.status.version = "2.3.2"
    assert await check_and_make_heal(bench.state) is CONTINUE
    assert servers.passwords == []
    assert bench.condition("AdminRotated") == ""


async def test_the_version_without_a_default_user_is_the_first_to_need_one() -> None:
    bench, servers = with_admin({**ADMIN, "image": "nacos/nacos-server:v2.4.0"})
    await check_and_make_heal(bench.state)
    assert servers.passwords
