"""Which pod is restarted, and which never: a rollout and healing cost neither quorum nor data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client import Conflict, NotFound
from konverge.objects import Status
from konverge.operators.nacos import names
from konverge.operators.nacos.resource import NacosStatus, UpgradeStatus
from konverge.operators.nacos.server import LEADING_GROUP, Leader, Member, Verdict, View
from konverge.operators.nacos.steps.outcome import CLUSTER, CONTINUE, Outcome, failed
from konverge.operators.nacos.steps.restarts import (
    heal_pods,
    heal_split,
    readmit,
    relist,
    replace_next,
    replace_useless,
)
from tests.operators.nacos.steps.bench import Bench, ago, server_pod
from tests.operators.nacos.steps.servers import host, list_of, verdict
from tests.operators.nacos.world import EMBEDDED, MYSQL

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-14", "N-15")]
FAILURE = failed(CLUSTER, "MembersNotUp", "a message")


def bench_of(
    replicas: int = 3, *, ready: Sequence[int] | None = None, outdated: Sequence[int] = (), phase: Any = "Running"
) -> Bench:
    bench = Bench({**EMBEDDED, "replicas": replicas}, status=NacosStatus(phase=phase, version="2.4.3"))
    bench.stateful_set()
    bench.pods(replicas, ready=ready, outdated=outdated)
    return bench


# ------------------------------------------------------------------ rollout


async def test_an_outdated_pod_that_is_not_ready_goes_first_one_by_one() -> None:
    bench = bench_of(5, ready=[0, 1, 4], outdated=[0, 2, 3, 4])
    outcome = await replace_useless(bench.state, bench.workload())
    assert bench.sent == ["delete Pod nacos-3"]
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "Replacing", True)
    assert bench.reasons == ["Normal Replacing"]
    assert bench.condition("Ready") == "False Replacing"
    assert bench.state.tools.metrics.of(bench.state.key).restarts == 1


async def test_all_of_them_go_at_once_where_the_servers_have_never_been_up() -> None:
    bench = bench_of(3, ready=[], outdated=[0, 1, 2])
    bench.status.version = ""
    await replace_useless(bench.state, bench.workload())
    assert bench.sent == ["delete Pod nacos-0", "delete Pod nacos-1", "delete Pod nacos-2"]


@pytest.mark.parametrize("why", ["all ready", "all current", "another is being deleted", "about to leave"])
async def test_none_is_useless(why: str) -> None:
    ready, outdated = {"all ready": ([0, 1, 2], [0, 1, 2]), "all current": ([0, 1], [])}.get(why, ([0, 1], [2]))
    bench = bench_of(3, ready=ready, outdated=outdated)
    if why == "another is being deleted":
        bench.objects.stored["Pod", "nacos-0"].metadata.deletion_timestamp = ago(1)
    if why == "about to leave":
        bench.state.at_size(3, 2)
    assert await replace_useless(bench.state, bench.workload()) is CONTINUE
    assert bench.sent == []


async def replaced(bench: Bench, given: Verdict, views: Sequence[View] = (), last_leader: str = "") -> Outcome:
    return await replace_next(bench.state, bench.workload(), views, given, last_leader)


async def test_followers_go_from_the_last_to_the_first_and_then_the_leader() -> None:
    bench = bench_of(3, outdated=[0, 1, 2])
    leads = verdict(3, leader="nacos-2")
    order = []
    for _ in range(3):
        outcome = await replaced(bench, leads)
        assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "RollingUpdate", True)
        order.append(bench.sent[-1])
        bench.objects.put(server_pod(int(bench.sent[-1][-1])))
    assert order == ["delete Pod nacos-1", "delete Pod nacos-0", "delete Pod nacos-2"]
    assert await replaced(bench, leads) is CONTINUE
    assert bench.reasons == ["Normal RollingUpdate"] * 3
    messages = [message for _, _, message in bench.context.events]
    assert [message.rpartition("; ")[2] for message in messages] == ["2 to go", "1 to go", "0 to go"]
    assert bench.condition("Ready") == "False RollingUpdate"
    assert bench.message("Ready") == "nacos-2 is being replaced, 0 after it"


@pytest.mark.parametrize(
    ("named", "last", "chosen"),
    [
        ({LEADING_GROUP: Leader(f"{host(2)}:7848", 1)}, "nacos-1", "nacos-1"),
        ({"another": Leader(f"{host(1)}:7848", 1)}, "nacos-2", "nacos-1"),
        ({}, "nacos-2", "nacos-1"),
        ({}, "", "nacos-2"),
    ],
)
async def test_a_leader_that_does_not_answer_itself_is_spared_too(named: Any, last: str, chosen: str) -> None:
    bench = bench_of(3, outdated=[0, 1, 2], phase="Failed")
    await replaced(bench, verdict(3, leader="", leaders=named), last_leader=last)
    assert bench.sent == [f"delete Pod {chosen}"]


async def test_a_pod_is_replaced_only_while_every_server_is_up() -> None:
    bench = bench_of(3, outdated=[0, 1, 2])
    assert await replaced(bench, verdict(3, up=[0, 1])) is CONTINUE
    assert await replaced(bench, verdict(3, split=True)) is CONTINUE
    bench.pods(3, ready=[0, 1], outdated=[0])
    assert await replaced(bench, verdict(3)) is CONTINUE
    assert bench.sent == []
    assert bench.condition("Ready") == ""


async def test_as_a_last_resort_ready_pods_are_enough() -> None:
    bench = bench_of(3, outdated=[0, 1, 2], phase="Failed")
    await replaced(bench, verdict(3, up=[], split=True, leader="", leaders={}))
    assert bench.sent == ["delete Pod nacos-2"]
    bench = bench_of(3, ready=[0, 1], outdated=[0], phase="Failed")
    assert await replaced(bench, verdict(3)) is CONTINUE


async def test_a_server_that_is_about_to_leave_is_not_replaced() -> None:
    bench = bench_of(3, outdated=[2])
    bench.state.at_size(3, 2)
    assert await replaced(bench, verdict(3)) is CONTINUE
    assert bench.sent == []


@pytest.mark.parametrize(
    ("forbidden", "older", "goes"), [(True, True, True), (True, False, False), (False, True, False)]
)
async def test_a_server_with_the_older_identity_counts_as_up(forbidden: bool, older: bool, goes: bool) -> None:
    bench = bench_of(3, outdated=[2])
    live = bench.stateful_set()
    live.spec.template.metadata.annotations = {names.SECRETS_DIGEST: "new"}
    last = bench.objects.stored["Pod", "nacos-2"]
    last.metadata.annotations = {names.SECRETS_DIGEST: "old" if older else "new"}
    await replaced(bench, verdict(3, up=[0, 1]), [View(pod="nacos-2", error="refused", forbidden=forbidden)])
    assert bench.sent == (["delete Pod nacos-2"] if goes else [])


@pytest.mark.parametrize("error", [NotFound, Conflict])
async def test_a_pod_that_is_gone_already_is_not_counted_or_reported(error: type[Exception]) -> None:
    bench = bench_of(3, outdated=[2])
    bench.objects.refused["delete Pod"] = error(Status())  # type: ignore[call-arg]
    await replaced(bench, verdict(3))
    assert bench.reasons == []
    assert bench.state.tools.metrics.of(bench.state.key).restarts == 0


# ------------------------------------------------------------------ healing


async def healed(bench: Bench, given: Verdict | None) -> list[str]:
    await heal_pods(bench.state, bench.workload(), given, FAILURE)
    return bench.sent


async def test_a_server_that_is_stuck_is_restarted_the_last_one_first() -> None:
    bench = bench_of(3, ready=[0], phase="Failed")
    assert await healed(bench, None) == ["delete Pod nacos-2"]
    assert bench.reasons == ["Warning Healing"]
    assert bench.context.events[0][2] == "nacos-2 is restarted: not ready for 600 s"


async def test_a_server_gets_time_and_is_restarted_once_in_that_time() -> None:
    bench = bench_of(3, phase="Failed")
    bench.objects.put(server_pod(1, ready=False, since=290))
    assert await healed(bench, None) == []
    bench.objects.put(server_pod(1, ready=False, since=301))
    assert await healed(bench, None) == ["delete Pod nacos-1"]
    young = server_pod(1, ready=False, since=600)
    young.metadata.creation_timestamp = ago(200)
    bench.objects.put(young)
    assert await healed(bench, None) == ["delete Pod nacos-1"], "not a second time"


@pytest.mark.parametrize("phase", ["Creating", "Running"])
async def test_nothing_is_healed_before_the_phase_is_failed(phase: str) -> None:
    assert await healed(bench_of(3, ready=[0], phase=phase), verdict(3, up=[0, 1])) == []


async def test_nothing_is_healed_while_a_pod_is_being_deleted() -> None:
    bench = bench_of(3, ready=[0], phase="Failed")
    bench.objects.stored["Pod", "nacos-0"].metadata.deletion_timestamp = ago(1)
    assert await healed(bench, verdict(3, up=[0])) == []


async def test_a_ready_server_without_a_usable_answer_is_restarted() -> None:
    assert await healed(bench_of(3, phase="Failed"), verdict(3, up=[0, 2])) == ["delete Pod nacos-1"]
    silent = verdict(3, up=[0, 2], members=verdict(3).members[::2])
    bench = bench_of(3, phase="Failed")
    assert await healed(bench, silent) == ["delete Pod nacos-1"]
    assert "useless to its cluster (MembersNotUp)" in bench.context.events[0][2]


async def test_a_server_that_the_quorum_may_need_is_not_restarted() -> None:
    assert await healed(bench_of(3, phase="Failed"), verdict(3, up=[0])) == []
    assert await healed(bench_of(3, phase="Failed"), None) == []
    assert await healed(bench_of(3, phase="Failed"), verdict(3)) == []
    bench = bench_of(3, phase="Failed")
    young = server_pod(1, since=100)
    bench.objects.put(young)
    assert await healed(bench, verdict(3, up=[0, 2])) == []


def claim(number: int, leader: int, term: int = 1, group: str = LEADING_GROUP, **more: Any) -> View:
    """A server's own entry, after that of another one."""
    own = Member(host=host(number), leaders={group: Leader(f"{host(leader)}:7848", term)}, **more)
    other = Member(host=host(9), leaders={group: Leader("elsewhere:7848", 9)})
    return View(pod=f"nacos-{number}", address=f"10.0.0.{number}", members=(other, own))


SPLIT = {"split": True, "leader": "nacos-0", "leaders": {LEADING_GROUP: Leader(f"{host(0)}:7848", 1)}}


async def split_healed(bench: Bench, views: Sequence[View], given: Verdict) -> list[str]:
    await heal_split(bench.state, bench.workload(), views, given)
    return bench.sent


async def test_of_a_split_one_that_names_the_wrong_leader_is_restarted() -> None:
    bench = bench_of(3, phase="Failed")
    views = [claim(0, 0), claim(1, 1), claim(2, 0)]
    assert await split_healed(bench, views, verdict(3, **SPLIT)) == ["delete Pod nacos-1"]
    assert bench.reasons == ["Warning Healing"]


async def test_the_last_of_several_and_only_one() -> None:
    views = [claim(0, 1), claim(1, 1), claim(2, 2)]
    assert await split_healed(bench_of(3, phase="Failed"), views, verdict(3, **SPLIT)) == ["delete Pod nacos-2"]


async def test_a_server_is_known_by_its_address_too() -> None:
    by_address = Member(host="10.0.0.1", leaders={LEADING_GROUP: Leader("10.0.0.1:7848", 1)})
    views = [claim(0, 0), View(pod="nacos-1", address="10.0.0.1", members=(by_address,)), claim(2, 0)]
    assert await split_healed(bench_of(3, phase="Failed"), views, verdict(3, **SPLIT)) == ["delete Pod nacos-1"]


@pytest.mark.parametrize(
    "why", ["no split", "not failed", "no quorum", "agree", "the leader", "young", "silent", "group"]
)
async def test_a_split_is_not_healed(why: str) -> None:
    bench = bench_of(3, phase="Running" if why == "not failed" else "Failed")
    views, given = [claim(0, 0), claim(1, 1), claim(2, 0)], verdict(3, **SPLIT)
    if why == "no split":
        given = verdict(3, **SPLIT | {"split": False})
    if why == "no quorum":
        given = verdict(3, up=[0, 1], **SPLIT)
    if why == "agree":
        views = [claim(number, 0) for number in range(3)]
    if why == "the leader":
        views = [claim(0, 1), claim(1, 0), claim(2, 0)]
    if why == "young":
        bench.objects.put(server_pod(1, since=100))
    if why == "silent":
        own = Member(host=host(1), leaders=None)
        views[1] = View(pod="nacos-1", address="10.0.0.1", members=(own,))
    if why == "group":
        views[1] = claim(1, 1, group="unknown")
    assert await split_healed(bench, views, given) == []


@given(
    ready=st.sets(st.integers(0, 4)),
    outdated=st.sets(st.integers(0, 4)),
    up=st.sets(st.integers(0, 4)),
    leader=st.integers(0, 4),
)
async def test_a_rollout_of_a_running_cluster_costs_at_most_one_server(
    ready: set[int], outdated: set[int], up: set[int], leader: int
) -> None:
    bench = bench_of(5, ready=sorted(ready), outdated=sorted(outdated))
    await replaced(bench, verdict(5, up=sorted(up), leader=f"nacos-{leader}"))
    whole = len(ready) == len(up) == 5
    followers = outdated - {leader}
    expected = max(followers or outdated, default=None) if whole else None
    assert bench.sent == ([] if expected is None else [f"delete Pod nacos-{expected}"])


# ------------------------------------------------------------------ while an upgrade is halted


def upgrading(*, outdated: Sequence[int], done: Sequence[int], may_roll: bool = True, phase: Any = "Running") -> Bench:
    """In the middle of an upgrade: servers of the old template are of the version before."""
    bench = bench_of(3, outdated=outdated, phase=phase)
    image = str(EMBEDDED["image"])
    members = [names.pod("nacos", number) for number in done]
    bench.status.upgrade = UpgradeStatus(
        from_version="2.0.4", to="2.4.3", image=image, step="Rolling", members_done=members
    )
    bench.state.image_in_force, bench.state.may_roll = image, may_roll
    return bench


@pytest.mark.spec("N-46")
@pytest.mark.parametrize(
    ("done", "may_roll", "unapplied", "outside", "restarted"),
    [
        ([2], True, False, 1, True),  # the upgrade goes on, and could replace it anyway
        ([], True, False, 1, False),  # the new version has not proved itself
        ([2], False, False, 1, False),  # halted: paused, held, or another version than promised
        ([2], True, True, 1, False),  # the template may be one that is not to be used any more
        ([2], False, False, 2, True),  # one that has the new version comes back as it was
    ],
)
async def test_who_returns_to_the_raft_groups_while_an_upgrade_is_halted(
    done: list[int], may_roll: bool, unapplied: bool, outside: int, restarted: bool
) -> None:
    bench = upgrading(outdated=[0, 1], done=done, may_roll=may_roll)
    bench.state.unapplied = FAILURE if unapplied else None
    given = verdict(3, outside=(f"nacos-{outside}",))
    outcome = await readmit(bench.state, bench.workload(), given)
    assert bench.sent == ([f"delete Pod nacos-{outside}"] if restarted else [])
    assert outcome.ends is restarted


@pytest.mark.spec("N-46")
async def test_one_that_may_not_return_does_not_keep_out_another() -> None:
    bench = upgrading(outdated=[0, 1], done=[2], may_roll=False)
    await readmit(bench.state, bench.workload(), verdict(3, outside=("nacos-1", "nacos-2")))
    assert bench.sent == ["delete Pod nacos-2"]


@pytest.mark.spec("N-46")
async def test_an_outdated_server_returns_where_no_upgrade_is_under_way() -> None:
    bench = bench_of(3, outdated=[1])
    await readmit(bench.state, bench.workload(), verdict(3, outside=("nacos-1",)))
    assert bench.sent == ["delete Pod nacos-1"]


@pytest.mark.spec("N-46")
async def test_no_server_is_restarted_for_the_raft_groups_without_its_database() -> None:
    bench = Bench({**MYSQL, "image": EMBEDDED["image"]})
    server = bench.databases.add_server("my", 3306, "mysql")
    server.add("nacos", "nacos", "word")
    bench.stateful_set()
    bench.pods(3)
    server.down = True
    outcome = await readmit(bench.state, bench.workload(), verdict(3, outside=("nacos-1",)))
    assert (outcome.kind, outcome.reason, bench.sent) == ("failed", "DatabaseUnreachable", [])
    server.down = False
    await readmit(bench.state, bench.workload(), verdict(3, outside=("nacos-1",)))
    assert bench.sent == ["delete Pod nacos-1"]


@pytest.mark.spec("N-46")
@pytest.mark.parametrize(
    ("done", "may_roll", "silent", "healed"),
    [
        ([2], True, 1, ["delete Pod nacos-1"]),
        ([], True, 1, []),
        ([2], False, 1, []),
        ([2], False, 2, ["delete Pod nacos-2"]),
    ],
)
async def test_healing_replaces_no_server_of_the_version_before(
    done: list[int], may_roll: bool, silent: int, healed: list[str]
) -> None:
    bench = upgrading(outdated=[0, 1], done=done, may_roll=may_roll, phase="Failed")
    up = [number for number in range(3) if number != silent]
    await heal_pods(bench.state, bench.workload(), verdict(3, up=up), FAILURE)
    assert bench.sent == healed


@pytest.mark.spec("N-46")
@pytest.mark.parametrize("may_roll", [True, False])
async def test_nor_does_a_split(may_roll: bool) -> None:
    bench = upgrading(outdated=[0, 1], done=[2], may_roll=may_roll, phase="Failed")
    own = Member(host=host(1), version="2.4.3", leaders={LEADING_GROUP: Leader(f"{host(2)}:7848", 2)})
    views = [View(pod="nacos-1", address="10.0.0.1", members=(own,))]
    await heal_split(bench.state, bench.workload(), views, verdict(3, split=True))
    assert bench.sent == (["delete Pod nacos-1"] if may_roll else [])


@pytest.mark.spec("N-46")
async def test_a_halt_does_not_keep_a_cluster_without_its_majority_from_healing() -> None:
    bench = upgrading(outdated=[0, 1], done=[], may_roll=False, phase="Failed")
    bench.pods(3, ready=[2], outdated=[0, 1])
    await heal_pods(bench.state, bench.workload(), None, FAILURE)
    assert bench.sent == ["delete Pod nacos-1"]


# ------------------------------------------------------------------ servers that do not follow their list


def scaled(since: float = 151.0, **spec: Any) -> Bench:
    """Four servers since a while, of which some may still list three."""
    bench = Bench({**EMBEDDED, "replicas": 4, "scaleWithoutRestarts": True, **spec})
    bench.stateful_set()
    bench.pods(4)
    bench.state.at_size(4, 4, ago(since))
    return bench


def lists(*counts: int) -> list[View]:
    """What each server lists; a negative number: it gives no answer."""
    return [
        View(pod=f"nacos-{number}", address=f"10.0.0.{number}", members=list_of(max(count, 0)))
        for number, count in enumerate(counts)
    ]


async def relisted(bench: Bench, views: Sequence[View], given: Verdict | None = None, last: str = "") -> Outcome:
    return await relist(bench.state, bench.workload(), views, given or verdict(4), last)


@pytest.mark.spec("N-47")
async def test_a_server_that_does_not_follow_is_restarted_the_leader_last() -> None:
    bench = scaled()
    outcome = await relisted(bench, lists(3, 3, 4, 3))
    assert bench.sent == ["delete Pod nacos-3"]
    assert (outcome.kind, outcome.reason, outcome.progress) == ("wait", "Relisting", True)
    assert bench.reasons == ["Normal Relisting"]
    message = "nacos-3 is restarted with its list of members: it has 3 of 4, and did not follow"
    assert outcome.message == message == bench.context.events[0][2]
    assert bench.condition("Progressing") == "True Relisting"
    bench = scaled()
    await relisted(bench, lists(3, 5, 4, 4))
    assert bench.sent == ["delete Pod nacos-1"]
    bench = scaled()
    await relisted(bench, lists(3, 4, 4, 4))
    assert bench.sent == ["delete Pod nacos-0"], "the leader when no other is left"
    bench = scaled()
    await relisted(bench, lists(4, 4, 3, 3), verdict(4, leader=""), "nacos-3")
    assert bench.sent == ["delete Pod nacos-2"]


@pytest.mark.spec("N-47")
@pytest.mark.parametrize(
    "why", ["all follow", "no time yet", "just started", "one is not up", "split", "leaving", "in the template"]
)
async def test_no_server_is_restarted_with_its_list(why: str) -> None:
    bench = scaled(149.0 if why == "no time yet" else 151.0)
    views, given = lists(4, 4, 3, 4), verdict(4)
    if why == "all follow":
        views = lists(4, 4, 4, 4)
    if why == "just started":
        bench.objects.put(server_pod(2, since=149))
    if why == "one is not up":
        given = verdict(4, up=[0, 1, 2])
    if why == "split":
        given = verdict(4, split=True)
    if why == "leaving":
        bench.state.at_size(4, 3, ago(151))
        views = lists(3, 3, 3, 4)
    if why == "in the template":
        bench = scaled(scaleWithoutRestarts=False)
    assert await relisted(bench, views, given) is CONTINUE
    assert bench.sent == []


@pytest.mark.spec("N-46", "N-47")
@pytest.mark.parametrize("may_roll", [True, False])
async def test_nor_one_that_an_upgrade_must_not_replace(may_roll: bool) -> None:
    bench = scaled()
    bench.pods(4, outdated=[2])
    image = str(EMBEDDED["image"])
    done = ["nacos-0", "nacos-1", "nacos-3"]
    bench.status.upgrade = UpgradeStatus(to="2.4.3", image=image, step="Rolling", members_done=done)
    bench.state.image_in_force, bench.state.may_roll = image, may_roll
    await relisted(bench, lists(4, 4, 3, 4))
    assert bench.sent == (["delete Pod nacos-2"] if may_roll else [])
