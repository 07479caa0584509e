"""The embedded database of simulated servers: raft replicates it, and it is on their disks."""

from __future__ import annotations

import pytest

from konverge.sim.nacos.ensemble import CONFIG
from tests.sim.nacos.test_ensemble import Play

KEY = ("public", "DEFAULT_GROUP", "app.properties")


def write(play: Play, pod: str, content: str) -> bool:
    return play.ensemble.write(play.members[pod], lambda data: data.configs.update({KEY: content}))


def contents(play: Play) -> dict[str, str | None]:
    return {pod: member.data.configs.get(KEY) for pod, member in sorted(play.members.items())}


@pytest.mark.spec("S-24")
@pytest.mark.parametrize("pod", ["nacos-0", "nacos-1", "nacos-2"])
def test_what_is_written_anywhere_is_on_all_members(pod: str) -> None:
    play = Play()
    play.up()
    assert write(play, pod, "a")
    assert set(contents(play).values()) == {"a"}


def test_nothing_is_written_without_a_leader() -> None:
    play = Play()
    play.up()
    play.kill("nacos-1", "nacos-2")
    play.after(30)
    assert not write(play, "nacos-0", "a")
    assert contents(play) == {"nacos-0": None}


@pytest.mark.spec("S-24")
@pytest.mark.parametrize("seed", range(4))
def test_a_member_without_its_data_joins_as_empty_and_receives_it(seed: int) -> None:
    play = Play(seed=seed)
    play.up()
    write(play, "nacos-0", "a")
    play.kill("nacos-1")
    del play.disks["nacos-1"]
    play.start("nacos-1")
    assert contents(play)["nacos-1"] is None
    assert play.after(120).healthy
    assert contents(play) == {"nacos-0": "a", "nacos-1": "a", "nacos-2": "a"}


@pytest.mark.spec("S-24")
@pytest.mark.parametrize("seed", range(8))
def test_a_member_without_data_is_not_elected_by_one_that_has_it(seed: int) -> None:
    play = Play(seed=seed)
    play.up()
    write(play, "nacos-0", "a")
    play.kill("nacos-0", "nacos-1", "nacos-2")
    del play.disks["nacos-1"]
    play.start("nacos-0", "nacos-1")
    play.after(200)
    leader = play.ensemble.leader_of(play.members["nacos-1"], CONFIG)
    assert leader is play.members["nacos-0"]
    assert contents(play) == {"nacos-0": "a", "nacos-1": "a"}


def test_where_all_disks_are_lost_the_data_is_lost() -> None:
    play = Play()
    play.up()
    write(play, "nacos-0", "a")
    play.kill("nacos-0", "nacos-1", "nacos-2")
    play.disks.clear()
    play.start()
    assert play.after(200).healthy
    assert set(contents(play).values()) == {None}


def test_a_member_that_was_cut_off_catches_up_when_it_is_back() -> None:
    play = Play()
    leader = play.up().leader
    follower, other = sorted({"nacos-0", "nacos-1", "nacos-2"} - {leader})
    there = [play.members[pod].address for pod in (leader, other)]
    play.ensemble.cut([play.members[follower].address], there, play.now)
    assert write(play, other, "b")
    assert contents(play)[follower] is None
    play.ensemble.heal(play.now)
    play.after(1)
    assert set(contents(play).values()) == {"b"}
