"""The judgement rule by rule; `test_judgement.py` has the situations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from konverge.operators.nacos.server import LEADING_GROUP, Leader, Member, Verdict, View, judge
from konverge.operators.nacos.server.model import MemberStatus
from tests.operators.nacos.server.test_judgement import HOSTS, everybody, failed, member, view

pytestmark = pytest.mark.spec("N-10")


def raft(number: int) -> str:
    return f"{HOSTS[number]}:7848"


def status(verdict: Verdict, pod: str) -> MemberStatus:
    entry = verdict.of_pod(pod)
    assert entry is not None
    return entry


def with_own(number: int, **changes: Any) -> list[View]:
    """All is well, but for the own entry of one member."""
    views = everybody()
    own = tuple(replace(entry, **changes) if entry.host == HOSTS[number] else entry for entry in views[number].members)
    views[number] = msgspec.structs.replace(views[number], members=own)
    return views


# ------------------------------------------------------------------ who counts


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"state": "STARTING"}, "nacos-2 reports itself as STARTING"),
        ({"state": ""}, "nacos-2 reports itself as being in no state"),
        ({"version": None}, "nacos-2 is UP without a version: it is still starting"),
        ({"leaders": None}, "nacos-2 is UP without raft metadata: no leader yet"),
        ({"leaders": {}}, "nacos-2 is UP without raft metadata: no leader yet"),
    ],
)
def test_a_member_that_does_not_count(changes: dict[str, Any], problem: str) -> None:
    verdict = judge(with_own(2, **changes), 3)
    assert verdict.problems == (problem,)
    assert not status(verdict, "nacos-2").verified
    assert (verdict.verified, verdict.quorum, verdict.leader) == (2, True, "nacos-0")


def test_a_standalone_needs_no_raft_metadata() -> None:
    alone = View(pod="nacos-0", address="10.0.0.0", members=(Member(host="10.0.0.0", version="2.0.4"),))
    verdict = judge([alone], 1)
    assert (verdict.healthy, verdict.quorum, verdict.version, verdict.leader) == (True, True, "2.0.4", "")
    (only,) = verdict.members
    assert (only.role, only.verified, only.version, only.pod) == ("standalone", True, "2.0.4", "nacos-0")
    assert judge([msgspec.structs.replace(alone, members=(Member(host="10.0.0.0"),))], 1).problems == (
        "nacos-0 is UP without a version: it is still starting",
    )
    down = judge([View(pod="nacos-0", error="Timeout: late")], 1)
    assert down.problems == ("nacos-0: Timeout: late",)
    assert not down.quorum


def test_a_list_of_one_is_about_the_server_that_was_asked() -> None:
    verdict = judge([View(pod="nacos-0", members=(Member(host="172.17.0.2", version="2.0.4"),))], 1)
    assert verdict.healthy
    assert verdict.members[0].pod == "nacos-0"
    stranger = judge([View(pod="nacos-0", members=(member(1),)), failed(1)], 3)
    assert stranger.verified == 1


def test_a_pod_without_an_answer_is_not_taken_for_another() -> None:
    silent = View(pod="nacos-9", address="10.0.0.9", error="late", members=())
    verdict = judge([view(0, member(0)), silent], 3)
    assert verdict.of_pod("nacos-9") is None
    named = judge([*everybody()[:2], failed(2)], 3)
    assert status(named, "nacos-2").address == f"{HOSTS[2]}:8848"


def test_members_are_told_apart_by_their_ports() -> None:
    other = replace(member(0), port=8849)
    verdict = judge([view(0, other, member(0), member(1), member(2)), *everybody()[1:]], 3)
    assert status(verdict, "nacos-0").address == f"{HOSTS[0]}:8848"
    assert "nacos-0 lists 4 of 3 members" in verdict.problems


@pytest.mark.parametrize("swap", [False, True])
def test_of_two_entries_about_itself_the_better_one_counts(swap: bool) -> None:
    good, bad = member(0), replace(member(0), state="DOWN")
    entries = (bad, good) if swap else (good, bad)
    verdict = judge([view(0, *entries, member(1), member(2)), *everybody()[1:]], 3)
    assert status(verdict, "nacos-0").verified
    silent = replace(member(0), leaders=None)
    entries = (silent, good) if swap else (good, silent)
    verdict = judge([view(0, *entries, member(1), member(2)), *everybody()[1:]], 3)
    assert status(verdict, "nacos-0").verified
    unknown = replace(member(0), state="ODD")
    entries = (unknown, bad) if swap else (bad, unknown)
    assert status(judge([view(0, *entries)], 3), "nacos-0").state == "DOWN"


# ------------------------------------------------------------------ leaders


def test_a_group_without_a_leader() -> None:
    views = [view(i, *(member(j, leaders={LEADING_GROUP: Leader("", 3)}) for j in range(3))) for i in range(3)]
    verdict = judge(views, 3)
    assert verdict.problems == (f"{LEADING_GROUP} has no leader (term 3)",)
    assert (verdict.leader, verdict.split) == ("", False)
    assert {entry.role for entry in verdict.members} == {"follower"}


def test_a_leader_that_is_not_up() -> None:
    views = [*everybody(leader=2)[:2], failed(2)]
    verdict = judge(views, 3)
    assert f"{LEADING_GROUP} is led by nacos-2 (term 1), which is not up: an election is due" in verdict.problems
    assert (verdict.leader, verdict.quorum) == ("", True)
    assert verdict.leaders == {LEADING_GROUP: Leader(raft(2), 1)}
    gone = judge(everybody(leaders={LEADING_GROUP: Leader("elsewhere:7848", 1)}), 3)
    assert f"{LEADING_GROUP} is led by elsewhere:7848 (term 1), which is not up: an election is due" in gone.problems


def test_no_group_at_all() -> None:
    verdict = judge(everybody(leaders={}), 3)
    assert verdict.verified == 0
    assert "no raft group is known to any member" not in verdict.problems
    assert verdict.leaders == {}


@pytest.mark.parametrize(
    ("groups", "leader"),
    [
        ({LEADING_GROUP: 1, "nacos_config": 2, "a": 0}, "nacos-1"),
        ({"naming_persistent_service": 1, "nacos_config": 2, "a": 0}, "nacos-1"),
        ({"nacos_config": 2, "a": 0}, "nacos-2"),
        ({"b": 2, "a": 1}, "nacos-1"),
    ],
)
def test_which_groups_leader_is_the_leader(groups: dict[str, int], leader: str) -> None:
    claims = {group: Leader(raft(number), 1) for group, number in groups.items()}
    verdict = judge(everybody(leaders=claims), 3)
    assert (verdict.healthy, verdict.leader) == (True, leader)
    assert [entry.role for entry in verdict.members].count("leader") == 1
    for number in range(3):
        expected = tuple(sorted(group for group, leads in groups.items() if leads == number))
        assert status(verdict, f"nacos-{number}").leads == expected


def test_the_highest_term_wins_and_an_address_over_none() -> None:
    views = everybody(leader=0, term=1)
    views[1] = view(1, member(0), member(1, 1, 5), member(2))
    verdict = judge(views, 3)
    assert verdict.leaders == {LEADING_GROUP: Leader(raft(1), 5)}
    assert verdict.split is True, "two of them name themselves"
    views = with_own(2, leaders={LEADING_GROUP: Leader("", 1)})
    verdict = judge(views, 3)
    assert verdict.leaders == {LEADING_GROUP: Leader(raft(0), 1)}
    assert verdict.problems == (
        f"members disagree on the leader of {LEADING_GROUP}: nacos-0 (term 1), but nacos-2 names no leader (term 1)",
    )


@pytest.mark.parametrize(
    ("claims", "split"),
    [
        ([(0, 1), (0, 1), (0, 1)], False),
        ([(0, 1), (0, 1), (1, 1)], True),  # two leaders of one term
        ([(0, 2), (0, 2), (1, 1)], False),  # one that has not caught up
        ([(0, 2), (1, 1), (0, 2)], True),  # two that name themselves
        ([(1, 1), (0, 1), (0, 1)], True),
    ],
)
def test_splits(claims: list[tuple[int, int]], split: bool) -> None:
    entries = [member(number, leader, term) for number, (leader, term) in enumerate(claims)]
    assert judge([view(asked, *entries) for asked in range(3)], 3).split is split


def test_a_split_of_one_group_is_a_split() -> None:
    entries = [member(number) for number in range(3)]
    apart = [
        replace(entry, leaders={"a": Leader(raft(i), 1), **(entry.leaders or {})}) for i, entry in enumerate(entries)
    ]
    assert judge([view(asked, *apart) for asked in range(3)], 3).split


def test_each_group_has_its_own_claims() -> None:
    entries = [member(number) for number in range(3)]
    entries[1] = replace(entries[1], leaders={"nacos_config": Leader(raft(1), 9), **(entries[1].leaders or {})})
    verdict = judge([view(asked, *entries) for asked in range(3)], 3)
    assert (verdict.healthy, verdict.split) == (True, False)
    assert verdict.leaders["nacos_config"] == Leader(raft(1), 9)


# ------------------------------------------------------------------ majorities


@pytest.mark.parametrize(
    ("replicas", "up", "quorum"), [(3, 2, True), (3, 1, False), (4, 2, False), (4, 3, True), (5, 3, True)]
)
def test_a_majority_is_verified(replicas: int, up: int, quorum: bool) -> None:
    lists = [view(asked, *(member(number) for number in range(replicas))) for asked in range(up)]
    verdict = judge([*lists, *(failed(number) for number in range(up, replicas))], replicas)
    assert verdict.quorum is quorum
    lost = f"no majority of {replicas // 2 + 1} verified members: raft writes fail"
    assert (lost in verdict.problems) == (not quorum)


@pytest.mark.parametrize(
    ("state", "quorum"), [("DOWN", False), ("ISOLATION", False), ("SUSPICIOUS", True), ("UP", True)]
)
@pytest.mark.parametrize("both", [True, False])
def test_members_that_do_not_see_each_other_are_no_majority(state: str, quorum: bool, both: bool) -> None:
    views = [
        view(0, member(0), replace(member(1), state=state), member(2)),
        view(1, replace(member(0), state=state if both else "UP"), member(1), member(2)),
        failed(2),
    ]
    assert judge(views, 3).quorum is quorum


def test_the_largest_number_is_the_safe_one() -> None:
    peers = {LEADING_GROUP: frozenset(raft(number) for number in range(5))}
    three = [view(asked, *(member(number) for number in range(3))) for asked in range(2)]
    assert judge(three, 3).quorum
    assert not judge(three, 5).quorum
    listed = [view(asked, *(member(number) for number in range(5))) for asked in range(2)]
    assert not judge(listed, 3).quorum
    counted = [view(asked, *(member(number, groups=peers) for number in range(3))) for asked in range(2)]
    assert not judge(counted, 3).quorum


def test_where_the_leader_is_silent_every_peer_that_is_named_counts() -> None:
    first = {LEADING_GROUP: frozenset({raft(0), raft(1), raft(3)})}
    second = {LEADING_GROUP: frozenset({raft(0), raft(1), raft(4)})}
    entries = (member(0, 2, groups=first), member(1, 2, groups=second), member(2, 2))
    verdict = judge([view(0, *entries), view(1, *entries), failed(2)], 3)
    assert verdict.surplus == (raft(3), raft(4))
    assert not verdict.quorum, "three of the four that are named"


def test_a_peer_that_only_one_of_two_lists() -> None:
    peers = {LEADING_GROUP: frozenset(raft(number) for number in range(2))}
    both = (member(0, groups=peers), member(1, groups=peers))
    assert judge([view(0, *both), view(1, both[1])], 2).quorum, "both count each other"
    one_sided = (member(0, groups=peers), member(1, groups={}))
    assert not judge([view(0, *one_sided), view(1, one_sided[1])], 2).quorum
    unseen = (member(0, groups=peers), replace(both[1], state="DOWN"))
    assert not judge([view(0, *unseen), view(1, both[1])], 2).quorum


def test_peers_beyond_the_lists_are_surplus_unless_a_verified_member_lists_them() -> None:
    peers = {LEADING_GROUP: frozenset(raft(number) for number in range(4))}
    views = everybody(groups=peers)
    assert judge(views, 3).surplus == (raft(3),)
    stranger = View(pod="nacos-3", address="10.0.0.3", members=(replace(member(3), version=None),))
    assert judge([*views, stranger], 3).surplus == (raft(3),), "it is not verified"
    up = view(3, *(member(number, groups=peers) for number in range(4)))
    assert judge([*views, up], 4).surplus == ()


def test_members_outside_of_the_groups() -> None:
    now = {LEADING_GROUP: frozenset({raft(0), raft(1)})}
    assert judge(everybody(groups=now), 3).outside == ("nacos-2",)
    other = {"nacos_config": frozenset({raft(0)})}
    assert judge(everybody(groups=other), 3).outside == (), "no group that it is part of"
    empty = {LEADING_GROUP: frozenset[str]()}
    assert judge(everybody(groups=empty), 3).outside == ()
    alone = View(pod="nacos-0", address="", members=(replace(member(0), groups={LEADING_GROUP: frozenset({raft(1)})}),))
    assert judge([alone], 1).outside == ()


# ------------------------------------------------------------------ what is shown


def test_members_that_answer_but_not_their_peers() -> None:
    views = everybody()
    views[0] = view(0, member(0), replace(member(1), state="SUSPICIOUS"), member(2))
    views[2] = view(2, replace(member(0), state="DOWN"), replace(member(1), state="SUSPICIOUS"), member(2))
    assert judge(views, 3).problems == (
        "nacos-0 answers, but is DOWN for nacos-2",
        "nacos-1 answers, but is SUSPICIOUS for nacos-0, nacos-2",
    )


def test_own_states_are_not_reports_of_peers() -> None:
    double = view(0, member(0), replace(member(0), state="DOWN"), member(1), member(2))
    problems = judge([double, *everybody()[1:]], 3).problems
    assert problems == ("nacos-0 lists 4 of 3 members",)


def test_a_pod_that_was_not_asked() -> None:
    assert judge(everybody()[:2], 3).problems == ("2 of 3 pods were asked",)
    assert judge([], 3).problems == ("0 of 3 pods were asked",)
    assert judge(everybody(), 2).problems == tuple(f"nacos-{number} lists 3 of 2 members" for number in range(3))


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (("UP", "DOWN"), "DOWN"),
        (("SUSPICIOUS", "STARTING"), "SUSPICIOUS"),
        (("DOWN", "ODD"), "ODD"),
        (("UP", "UP"), "UP"),
    ],
)
def test_the_worst_report_about_a_member_that_was_not_asked(states: tuple[str, str], expected: str) -> None:
    views = [view(asked, member(0), member(1), replace(member(2), state=states[asked])) for asked in range(2)]
    unknown = next(entry for entry in judge(views, 3).members if entry.address == f"{HOSTS[2]}:8848")
    assert (unknown.state, unknown.pod, unknown.verified, unknown.role) == (expected, "", False, "")


def test_versions_of_members() -> None:
    versions = ("2.10.0", "2.9.0")
    views = [view(asked, member(0), member(1), replace(member(2), version=versions[asked])) for asked in range(2)]
    verdict = judge([*views, failed(2)], 3)
    assert status(verdict, "nacos-2").version == "2.10.0", "the highest that its peers know"
    assert status(verdict, "nacos-2").state == "UNREACHABLE"
    assert status(verdict, "nacos-0").version == "2.4.3"
    assert status(judge(with_own(1, version=None), 3), "nacos-1").version == ""
    nameless = [view(asked, member(0), member(1), replace(member(2), version=None)) for asked in range(2)]
    assert status(judge([*nameless, failed(2)], 3), "nacos-2").version == ""


@pytest.mark.parametrize(
    ("versions", "lowest"),
    [
        (("2.10.0", "2.9.0", "2.11.0"), "2.9.0"),
        (("2.4.3-slim", "2.4.3", "2.4.4"), "2.4.3"),
        (("3.0.0", "x", "2.0.0"), "x"),
        (("2.123456789.0", "2.1.0", "2.2.0"), "2.123456789.0"),  # no version: it would be a number without end
        (("2.12345678.0", "2.1.0", "2.2.0"), "2.1.0"),
    ],
)
def test_the_version_of_a_cluster_is_the_lowest(versions: tuple[str, ...], lowest: str) -> None:
    entries = [replace(member(number), version=version) for number, version in enumerate(versions)]
    assert judge([view(asked, *entries) for asked in range(3)], 3).version == lowest
