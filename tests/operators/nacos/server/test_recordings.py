"""Every recorded answer of a real server (2.1.1, 2.4.3 with embedded storage and on PostgreSQL, 3.0.3) and its verdict.

A recording is the list of one node; the nodes that were alive then are given the same list, each believed about itself
only, and the others could not be asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from konverge.operators.nacos.server import LEADING_GROUP, Verdict, View, answers, judge

ANSWERS = Path(__file__).parents[1] / "answers"
ALL = (8848, 8858, 8868)
DEAD = "Unreachable: refused"


class Case(NamedTuple):
    alive: tuple[int, ...] = ALL
    leader: int | None = None
    problems: tuple[str, ...] = ()
    """Texts that the problems must contain; none means a healthy cluster."""


CASES = {
    "2.1.1-after-election-old-leader-down": Case((8848, 8868), 8848, ("8858: Unreachable",)),
    "2.1.1-all-up": Case(leader=8858),
    "2.1.1-follower-down": Case((8858, 8868), 8858, ("8848: Unreachable",)),
    "2.1.1-follower-frozen-suspicious": Case((8848, 8868), 8848, ("8858: Unreachable",)),
    "2.1.1-leader-just-killed-still-up": Case((8848, 8868), None, ("nacos-8858 (term 1), which is not up",)),
    "2.1.1-mid-election-old-leader-suspicious": Case((8848, 8868), None, ("nacos-8858 (term 1), which is not up",)),
    "2.1.1-mid-election-survivors-disagree": Case(
        (8848, 8868), 8848, ("disagree on the leader of naming_persistent_service_v2", "names nacos-8858 (term 1)")
    ),
    "2.1.1-quorum-lost": Case((8848,), None, ("no majority of 2",)),
    "2.1.1-restarted-node-own-view": Case((8848,), None, ("no majority of 2", "which is not up")),
    "2.1.1-standalone-no-raft": Case((8848,)),
    "2.1.1-starting-peers-up-without-version": Case(ALL, None, ("8858 is UP without a version", "no majority")),
    "2.4.3-after-election-old-leader-down": Case((8848, 8868), 8848, ("8858: Unreachable",)),
    "2.4.3-all-up": Case(leader=8858),
    "2.4.3-follower-down": Case((8858, 8868), 8858, ("8848: Unreachable",)),
    "2.4.3-follower-suspicious": Case(
        (8858, 8868), 8858, ("nacos_config is led by nacos-8848 (term 1), which is not up",)
    ),
    "2.4.3-groups-have-different-leaders": Case(leader=8848),
    "2.4.3-leader-just-killed-still-up": Case((8848, 8868), None, ("nacos-8858 (term 2), which is not up",)),
    "2.4.3-mid-election-old-leader-suspicious": Case((8848, 8868), None, ("nacos-8858 (term 1), which is not up",)),
    "2.4.3-mid-election-survivors-disagree": Case(
        (8848, 8868), 8848, ("disagree on the leader of naming_persistent_service_v2",)
    ),
    "2.4.3-old-leader-back-stale-term": Case((8848, 8868), 8848, ("8858: Unreachable",)),
    "2.4.3-pg-after-election-old-leader-down": Case((8858, 8868), 8858, ("8848: Unreachable",)),
    "2.4.3-pg-all-up": Case(leader=8848),
    "2.4.3-pg-follower-down": Case((8848, 8868), 8848, ("8858: Unreachable",)),
    "2.4.3-pg-follower-suspicious": Case((8848, 8868), 8848, ("8858: Unreachable",)),
    "2.4.3-pg-groups-have-different-leaders": Case(leader=8858),
    "2.4.3-pg-mid-election-old-leader-suspicious": Case((8868,), None, ("no majority of 2",)),
    "2.4.3-pg-starting-peers-up-without-version": Case(ALL, None, ("8868 is UP without a version", "no majority")),
    "2.4.3-quorum-lost": Case((8848,), None, ("no majority of 2",)),
    "2.4.3-restarted-node-own-view": Case((8848,), None, ("no majority of 2",)),
    "2.4.3-standalone": Case((8848,), 8848),
    "2.4.3-starting-peers-up-without-version": Case(ALL, None, ("8848 is UP without a version", "no majority")),
    "3.0.3-after-election-old-leader-down": Case((8858, 8868), 8858, ("8848: Unreachable",)),
    "3.0.3-all-up": Case(leader=8848),
    "3.0.3-follower-down": Case((8848, 8868), 8848, ("8858: Unreachable",)),
    "3.0.3-follower-frozen-suspicious": Case((8858, 8868), 8858, ("8848: Unreachable",)),
    "3.0.3-follower-suspicious": Case((8848, 8868), 8848, ("8858: Unreachable",)),
    "3.0.3-groups-have-different-leaders": Case(leader=8858),
    "3.0.3-leader-just-killed-still-up": Case((8858, 8868), None, ("nacos-8848 (term 1), which is not up",)),
    "3.0.3-mid-election-old-leader-suspicious": Case((8858, 8868), None, ("nacos-8848 (term 1), which is not up",)),
    "3.0.3-old-leader-back-stale-term": Case((8858, 8868), 8858, ("8848: Unreachable",)),
    "3.0.3-quorum-lost": Case((8858,), None, ("no majority of 2",)),
    "3.0.3-standalone": Case((8848,), 8848),
}


def _verdict(name: str, case: Case) -> Verdict:
    members = answers.members((ANSWERS / f"{name}.json").read_bytes())
    views = [
        View(pod=f"nacos-{member.port}", address="127.0.0.1", port=member.port, members=members)
        if member.port in case.alive
        else View(pod=f"nacos-{member.port}", address="127.0.0.1", port=member.port, error=DEAD)
        for member in members
    ]
    return judge(views, len(members))


def test_every_recording_has_a_case() -> None:
    assert sorted(CASES) == sorted(path.stem for path in ANSWERS.glob("*.json"))


@pytest.mark.spec("N-10")
@pytest.mark.parametrize("name", CASES)
def test_a_recorded_answer_gets_its_verdict(name: str) -> None:
    case = CASES[name]
    verdict = _verdict(name, case)
    problems = "\n".join(verdict.problems)
    assert verdict.healthy == (not case.problems), problems
    assert all(expected in problems for expected in case.problems), problems
    assert verdict.leader == (f"nacos-{case.leader}" if case.leader else "")
    assert not verdict.split
    assert verdict.version == name.partition("-")[0] or not verdict.verified
    assert verdict.quorum == ("no majority" not in problems)


@pytest.mark.parametrize(
    "name", ["2.4.3-groups-have-different-leaders", "2.4.3-pg-groups-have-different-leaders", "2.4.3-all-up"]
)
def test_each_group_has_its_own_leader(name: str) -> None:
    verdict = _verdict(name, CASES[name])
    assert len({leader.address for leader in verdict.leaders.values()}) > 1
    led = {group: member.pod for member in verdict.members for group in member.leads}
    assert sorted(led) == sorted(verdict.leaders)
    assert led[LEADING_GROUP] == verdict.leader
    assert [member.role for member in verdict.members].count("leader") == 1


def test_a_database_of_its_own_needs_no_config_group() -> None:
    verdict = _verdict("2.4.3-pg-all-up", CASES["2.4.3-pg-all-up"])
    assert "nacos_config" not in verdict.leaders
    assert verdict.healthy


def test_a_standalone_server_has_no_followers() -> None:
    verdict = _verdict("2.1.1-standalone-no-raft", CASES["2.1.1-standalone-no-raft"])
    assert [member.role for member in verdict.members] == ["standalone"]
    assert verdict.quorum
    assert verdict.leaders == {}
