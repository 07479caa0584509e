"""The judgement where recordings do not reach: several points of view, scaling, names, and anything at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.operators.nacos.server import LEADING_GROUP, Leader, Member, View, judge

HOSTS = [f"nacos-{i}.nacos-headless.default.svc.cluster.local" for i in range(5)]


def member(number: int, leader: int | None = 0, term: int = 1, **changes: object) -> Member:
    leaders = None if leader is None else {LEADING_GROUP: Leader(f"{HOSTS[leader]}:7848", term)}
    made = Member(host=HOSTS[number], version="2.4.3", leaders=leaders, raft_port=7848)
    return replace(made, **changes)  # type: ignore[arg-type]


def view(asked: int, *members: Member) -> View:
    return View(pod=f"nacos-{asked}", address=f"10.0.0.{asked}", members=members)


def failed(asked: int) -> View:
    return View(pod=f"nacos-{asked}", address=f"10.0.0.{asked}", error="Timeout: 10.0.0.1:8848 did not answer")


def everybody(**changes: object) -> list[View]:
    return [view(asked, *(member(i, **changes) for i in range(3))) for asked in range(3)]  # type: ignore[arg-type]


@pytest.mark.spec("N-10")
def test_all_well_by_host_names() -> None:
    verdict = judge(everybody(), 3)
    assert (verdict.healthy, verdict.leader, verdict.version) == (True, "nacos-0", "2.4.3")
    assert [member.role for member in verdict.members] == ["leader", "follower", "follower"]
    assert [member.pod for member in verdict.members] == ["nacos-0", "nacos-1", "nacos-2"]


def test_all_well_by_addresses() -> None:
    def by_address(number: int) -> Member:
        return member(number, host=f"10.0.0.{number}", leaders={LEADING_GROUP: Leader("10.0.0.2:7848", 4)})

    verdict = judge([view(asked, *(by_address(i) for i in range(3))) for asked in range(3)], 3)
    assert (verdict.healthy, verdict.leader) == (True, "nacos-2")


def test_a_peers_word_does_not_count() -> None:
    views = [everybody()[0], everybody()[1], failed(2)]
    verdict = judge(views, 3)
    assert verdict.quorum
    assert not verdict.healthy
    lost = verdict.of_pod("nacos-2")
    assert lost is not None
    assert (lost.state, lost.verified, lost.role) == ("UNREACHABLE", False, "")


def test_pods_that_were_not_asked_are_a_problem() -> None:
    verdict = judge(everybody()[:2], 3)
    assert verdict.problems == ("2 of 3 pods were asked",)


def test_a_member_that_has_not_caught_up_with_the_term() -> None:
    views = everybody(leader=1, term=2)
    views[2] = view(2, member(0, 1, 2), member(1, 1, 2), member(2, 0, 1))
    verdict = judge(views, 3)
    assert (verdict.healthy, verdict.leader, verdict.split) == (False, "nacos-1", False)
    assert "nacos-2 names nacos-0 (term 1)" in verdict.problems[0]


def test_stale_entries_of_peers_do_not_matter() -> None:
    views = everybody(leader=1, term=2)
    views[0] = view(0, member(0, 1, 2), member(1, 0, 1), member(2, None, version=None))
    assert judge(views, 3).healthy


def test_two_leaders_are_a_split() -> None:
    views = [
        view(0, member(0, 0, 1), member(1, 0, 1, state="DOWN"), member(2, 0, 1, state="DOWN")),
        view(1, member(0, 0, 1, state="DOWN"), member(1, 1, 2), member(2, 1, 2)),
        view(2, member(0, 0, 1, state="DOWN"), member(1, 1, 2), member(2, 1, 2)),
    ]
    verdict = judge(views, 3)
    assert (verdict.split, verdict.quorum, verdict.leader) == (True, True, "nacos-1")
    assert "nacos-0 answers, but is DOWN for nacos-1, nacos-2" in verdict.problems


def test_three_that_each_know_only_themselves_are_no_cluster() -> None:
    verdict = judge([view(i, member(i, i)) for i in range(3)], 3)
    assert verdict.split
    assert not verdict.quorum
    assert "nacos-0 lists 1 of 3 members" in verdict.problems


def test_a_leader_alone_is_no_leader() -> None:
    verdict = judge([everybody()[0], failed(1), failed(2)], 3)
    assert (verdict.leader, verdict.quorum) == ("", False)
    assert [member.role for member in verdict.members] == ["", "", ""]


def test_growing_needs_the_larger_majority() -> None:
    views = [view(asked, *(member(i) for i in range(5))) for asked in range(2)]
    assert not judge(views, 3).quorum
    assert not judge(views, 5).quorum


def test_raft_groups_that_are_larger_than_the_cluster_have_the_larger_majority() -> None:
    peers = frozenset(f"{host}:7848" for host in HOSTS)
    views = everybody(groups={LEADING_GROUP: peers})
    whole = judge(views, 3)
    assert whole.healthy
    assert whole.surplus == tuple(sorted(f"{host}:7848" for host in HOSTS[3:]))
    assert not judge([*views[:2], failed(2)], 3).quorum


def test_only_the_leader_of_a_group_knows_its_peers() -> None:
    """On a real 2.1.1 the followers kept naming a server that had been removed while it led."""
    now = frozenset(f"{host}:7848" for host in HOSTS[:3])
    before = now | {f"{HOSTS[3]}:7848"}
    lists = [now, before, before]
    views = [view(i, *(member(j, groups={LEADING_GROUP: lists[j]}) for j in range(3))) for i in range(3)]
    verdict = judge(views, 3)
    assert (verdict.healthy, verdict.surplus, verdict.outside) == (True, (), ())
    headless = judge([failed(0), *views[1:]], 3)
    assert headless.surplus == (f"{HOSTS[3]}:7848",), "without the leader's answer the safe number counts"
    assert not headless.quorum


def test_a_server_that_was_removed_from_the_groups_is_not_healthy() -> None:
    now = frozenset(f"{host}:7848" for host in HOSTS[:2])
    verdict = judge(everybody(groups={LEADING_GROUP: now}), 3)
    assert (verdict.healthy, verdict.quorum, verdict.outside) == (False, True, ("nacos-2",))
    assert verdict.problems == ("nacos-2 is not counted by the raft groups: it was removed from them",)
    without = judge(everybody(groups={}), 3)
    assert (without.healthy, without.outside) == (True, ()), "older servers do not say whom they count"
    old = [view(i, *(member(j, groups={LEADING_GROUP: now} if j else {}) for j in range(3))) for i in range(3)]
    assert judge(old, 3).outside == (), "a follower's list makes no member an outsider"


def test_lists_that_differ_while_a_cluster_shrinks_do_not_part_its_raft_groups() -> None:
    peers = frozenset(f"{host}:7848" for host in HOSTS[:4])
    short = [view(asked, *(member(i, groups={LEADING_GROUP: peers}) for i in range(3))) for asked in range(2)]
    last = view(3, *(member(i, groups={LEADING_GROUP: peers}) for i in range(4)))
    rolling = judge([*short, failed(2), last], 4)
    assert rolling.quorum, "three of four peers, though two of them no longer list the third"
    apart = view(3, *(member(i, groups={LEADING_GROUP: peers}, state="UP" if i == 3 else "DOWN") for i in range(4)))
    assert not judge([*short, failed(2), apart], 4).quorum
    strangers = [view(asked, member(asked, groups={LEADING_GROUP: peers})) for asked in range(3)]
    assert not judge(strangers, 4).quorum, "no member lists another"


def test_the_lowest_version_of_an_upgrade() -> None:
    views = everybody()
    views[0] = view(0, *(replace(member(i), version="2.10.0") for i in range(3)))
    assert judge(views, 3).version == "2.4.3"


def test_a_final_dot_is_the_same_member() -> None:
    from konverge.operators.nacos.server import answers

    raw = b'{"data":[{"ip":"Nacos-0.nacos-headless.default.svc.cluster.local.","port":8848,"state":"UP"}]}'
    assert answers.members(raw)[0].host == HOSTS[0]


def test_a_server_that_does_not_list_itself() -> None:
    verdict = judge([view(4, *(member(i) for i in range(3)))], 3)
    assert any("nacos-4 does not list itself" in problem for problem in verdict.problems)


def test_no_views_at_all() -> None:
    verdict = judge([], 3)
    assert (verdict.healthy, verdict.quorum, verdict.leader) == (False, False, "")


leaders = st.none() | st.dictionaries(
    st.sampled_from([LEADING_GROUP, "nacos_config", "x"]),
    st.builds(Leader, st.sampled_from(["", *(f"{host}:7848" for host in HOSTS), "nonsense"]), st.integers(0, 4)),
    max_size=3,
)
members = st.builds(
    Member,
    host=st.sampled_from([*HOSTS, "10.0.0.1", "", "::1"]),
    port=st.sampled_from([8848, 8849]),
    state=st.sampled_from(["UP", "DOWN", "SUSPICIOUS", "", "STARTING"]),
    version=st.sampled_from([None, "2.4.3", "3.0.3", "x-y.²"]),
    leaders=leaders,
    raft_port=st.none() | st.just(7848),
    groups=st.dictionaries(
        st.sampled_from([LEADING_GROUP, "nacos_config"]),
        st.frozensets(st.sampled_from([f"{host}:7848" for host in HOSTS])),
    ),
)
views = st.lists(
    st.builds(
        View,
        pod=st.sampled_from([f"nacos-{i}" for i in range(5)]),
        address=st.sampled_from(["10.0.0.1", "", "::1"]),
        members=st.lists(members, max_size=5).map(tuple),
        error=st.sampled_from(["", "Timeout: late"]),
    ),
    max_size=5,
)


@given(views, st.integers(1, 5), st.randoms(use_true_random=False))
def test_any_views_have_one_verdict_in_every_order(views: list[View], replicas: int, chance: object) -> None:
    verdict = judge(views, replicas)
    shuffled = list(views)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert judge(shuffled, replicas) == verdict
    assert verdict.healthy == (not verdict.problems)
    assert not verdict.healthy or (verdict.quorum and verdict.verified == replicas)
    assert not verdict.leader or verdict.quorum


# ------------------------------------------------------------------ raft groups

OTHER = "nacos_config"


def with_groups(number: int, **claims: tuple[int | None, int]) -> Member:
    """A member that names these leaders, by group; None: no leader."""
    leaders = {
        group: Leader("" if leader is None else f"{HOSTS[leader]}:7848", term)
        for group, (leader, term) in claims.items()
    }
    peers = frozenset(f"{host}:7848" for host in HOSTS[:3])
    return member(number, leaders=leaders, groups=dict.fromkeys(claims, peers))


def group_views(*claims: dict[str, tuple[int | None, int]]) -> list[View]:
    """A view for each member, all with the same list."""
    members = [with_groups(number, **claim) for number, claim in enumerate(claims)]
    return [view(number, *members) for number in range(len(claims))]


@pytest.mark.spec("N-63")
def test_each_group_has_a_leader_a_term_and_its_peers() -> None:
    claim: dict[str, tuple[int | None, int]] = {LEADING_GROUP: (0, 3), OTHER: (2, 7)}
    verdict = judge(group_views(claim, claim, claim), 3)
    assert [(group.name, group.leader, group.term, group.peers, group.problem) for group in verdict.groups] == [
        (OTHER, "nacos-2", 7, 3, ""),
        (LEADING_GROUP, "nacos-0", 3, 3, ""),
    ]


@pytest.mark.spec("N-63")
def test_only_the_group_that_they_disagree_on_has_a_problem() -> None:
    agreed: dict[str, tuple[int | None, int]] = {LEADING_GROUP: (0, 3), OTHER: (2, 7)}
    verdict = judge(group_views(agreed, {**agreed, OTHER: (None, 6)}, agreed), 3)
    other, leading = verdict.groups
    assert (leading.leader, leading.problem) == ("nacos-0", "")
    assert (other.leader, other.term) == ("nacos-2", 7)
    assert other.problem == (
        "members disagree on the leader of nacos_config: nacos-2 (term 7), but nacos-1 names no leader (term 6)"
    )
    assert other.problem in verdict.problems


@pytest.mark.spec("N-63")
def test_a_leader_that_is_not_up_leads_nothing() -> None:
    claim: dict[str, tuple[int | None, int]] = {LEADING_GROUP: (2, 3)}
    verdict = judge([*group_views(claim, claim, claim)[:2], failed(2)], 3)
    (group,) = verdict.groups
    assert (verdict.quorum, group.leader, group.term) == (True, "", 3)
    assert group.problem == f"{LEADING_GROUP} is led by nacos-2 (term 3), which is not up: an election is due"


@pytest.mark.spec("N-63")
def test_without_a_majority_each_group_says_so() -> None:
    claim: dict[str, tuple[int | None, int]] = {LEADING_GROUP: (0, 3), OTHER: (None, 7)}
    verdict = judge([group_views(claim, claim, claim)[0], failed(1), failed(2)], 3)
    assert [group.leader for group in verdict.groups] == ["", ""]
    assert {group.problem for group in verdict.groups} == {"no majority of 2 verified members: raft writes fail"}


@pytest.mark.spec("N-63")
def test_older_servers_do_not_say_whom_a_group_counts() -> None:
    (group,) = judge(everybody(groups={}), 3).groups
    assert (group.leader, group.peers, group.problem) == ("nacos-0", 0, "")
