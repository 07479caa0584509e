"""Simulated servers among themselves, judged as the operator judges real ones."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from konverge import clock
from konverge.operators.nacos.server import LEADING_GROUP, Verdict, View, answers, judge
from konverge.sim.nacos import bodies
from konverge.sim.nacos.disk import Disk
from konverge.sim.nacos.ensemble import Ensemble
from konverge.sim.nacos.member import Member, Phase, Timings
from konverge.sim.nacos.settings import Settings, read_settings, version_of

AUTH = {"NACOS_AUTH_TOKEN": "t", "NACOS_AUTH_IDENTITY_KEY": "k", "NACOS_AUTH_IDENTITY_VALUE": "v"}


def _settings(number: int, size: int = 3, version: str = "2.4.3", **env: str) -> Settings:
    listed = " ".join(f"nacos-{i}.nacos-headless.default.svc.cluster.local:8848" for i in range(size))
    variables = {"NACOS_SERVERS": listed, **AUTH, **env}
    image = f"nacos/nacos-server:v{version}"
    return read_settings("default", f"nacos-{number}", f"uid-{number}", f"127.1.0.{number + 1}", image, variables)


class Play:
    """An ensemble with an operator that asks."""

    def __init__(self, seed: int = 1, size: int = 3, version: str = "2.4.3", **env: str) -> None:
        self.ensemble = Ensemble(clock.seeded(seed))
        self.settings = [_settings(number, size, version, **env) for number in range(size)]
        self.members: dict[str, Member] = {}
        self.disks: dict[str, Disk] = {}
        self.now = 0.0

    def start(self, *pods: str) -> None:
        for settings in self.settings:
            if not pods or settings.pod in pods:
                disk = self.disks.setdefault(settings.pod, Disk())
                self.members[settings.pod] = self.ensemble.start(settings, self.now, disk)

    def kill(self, *pods: str) -> None:
        for pod in pods:
            self.ensemble.stop(self.members.pop(pod), self.now)

    def after(self, seconds: float) -> Verdict:
        self.now += seconds
        self.ensemble.advance(self.now)
        return judge([self._view(setting) for setting in self.settings], len(self.settings))

    def _view(self, settings: Settings) -> View:
        member = self.members.get(settings.pod)
        if member is None or not member.open or member.frozen:
            return View(pod=settings.pod, address=settings.ip, error="Unreachable: refused")
        listed = bodies.members(self.ensemble, member)
        body = msgspec.json.encode(bodies.result(listed, code=200, message=None))
        return View(pod=settings.pod, address=settings.ip, members=answers.members(body))

    def up(self) -> Verdict:
        """All started, and settled."""
        self.start()
        return self.after(90)

    def states(self, of: str, by: str) -> tuple[str, int]:
        address = next(setting.address for setting in self.settings if setting.pod == of)
        return self.ensemble.entry(self.members[by], address)[:2]


@pytest.mark.spec("N-18")
@pytest.mark.parametrize("version", ["2.1.1", "2.4.3", "3.0.3"])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_cluster_comes_up_with_one_leader(version: str, size: int) -> None:
    verdict = Play(size=size, version=version).up()
    assert verdict.healthy, verdict.problems
    assert verdict.version == version
    assert verdict.leader


@pytest.mark.spec("N-18")
def test_a_killed_follower_is_suspicious_after_two_seconds_and_down_after_ten() -> None:
    play = Play()
    leader = play.up().leader
    follower, other = sorted({"nacos-0", "nacos-1", "nacos-2"} - {leader})
    play.kill(follower)
    seen = [(play.after(1.0), play.states(follower, by=other))[1][0] for _ in range(14)]
    assert seen[:2] == ["UP", "UP"]
    assert seen[2:9] == ["SUSPICIOUS"] * 7
    assert seen[9:] == ["DOWN"] * 5
    assert play.after(0).leader == leader


def test_older_servers_call_a_dead_peer_down_at_once() -> None:
    play = Play(version="2.1.1")
    leader = play.up().leader
    follower = "nacos-0" if leader != "nacos-0" else "nacos-1"
    play.kill(follower)
    play.after(3)
    assert play.states(follower, by=leader) == ("DOWN", 1)


def test_a_frozen_peer_is_noticed_later() -> None:
    play = Play()
    leader = play.up().leader
    follower = "nacos-0" if leader != "nacos-0" else "nacos-1"
    play.ensemble.freeze(play.members[follower], play.now)
    play.after(7)
    assert play.states(follower, by=leader)[0] == "UP"
    play.after(2)
    assert play.states(follower, by=leader)[0] == "SUSPICIOUS"
    play.after(7)
    assert play.states(follower, by=leader)[0] == "DOWN"


@pytest.mark.spec("N-18")
def test_a_killed_leader_is_still_named_for_seconds_and_then_replaced() -> None:
    play = Play()
    before = play.up()
    play.kill(before.leader)
    at_once = play.after(1)
    assert at_once.quorum
    assert at_once.leader == ""
    assert any("which is not up" in problem for problem in at_once.problems)
    later = play.after(11)
    assert later.leader not in ("", before.leader)
    assert later.leaders[LEADING_GROUP].term > before.leaders[LEADING_GROUP].term


def test_without_a_majority_the_old_leader_stays_in_the_metadata() -> None:
    play = Play()
    before = play.up()
    survivor = next(pod for pod in sorted(play.members) if pod != before.leader)
    play.kill(*(set(play.members) - {survivor}))
    verdict = play.after(60)
    assert not verdict.quorum
    assert verdict.leader == ""
    assert play.members[survivor].beliefs[LEADING_GROUP] == before.leaders[LEADING_GROUP]
    assert not play.ensemble.has_database(play.members[survivor])


def test_a_restarted_member_knows_nothing_of_its_peers_at_first() -> None:
    play = Play()
    leader = play.up().leader
    follower = "nacos-0" if leader != "nacos-0" else "nacos-1"
    play.kill(follower)
    play.after(30)
    play.start(follower)
    while not play.members[follower].open:
        play.after(0.5)
    state, _, version, leaders = play.ensemble.entry(play.members[follower], play.members[leader].address)
    assert (state, version, leaders) == ("UP", None, None)
    assert play.after(10).healthy


def test_a_split_leaves_two_servers_that_claim_to_lead_until_it_heals() -> None:
    play = Play()
    old = play.up().leader
    addresses = {pod: member.address for pod, member in play.members.items()}
    play.ensemble.cut([addresses.pop(old)], addresses.values(), play.now)
    apart = play.after(20)
    assert apart.split
    assert apart.quorum
    assert apart.leader not in ("", old)
    play.ensemble.heal(play.now)
    assert play.after(15).healthy


def test_a_3x_server_that_is_alone_gives_up_and_a_2x_server_waits() -> None:
    for version, phase, code in (("3.0.3", Phase.ENDED, 1), ("2.4.3", Phase.WAITING, None)):
        play = Play(version=version)
        play.start("nacos-0")
        member = play.members["nacos-0"]
        play.after(120)
        assert (member.phase, member.exit_code) == (phase, code)


def test_a_database_of_its_own_lets_a_server_open_without_a_leader() -> None:
    play = Play(SPRING_DATASOURCE_PLATFORM="mysql", MYSQL_SERVICE_HOST="db")
    play.start("nacos-0")
    verdict = play.after(120)
    assert play.members["nacos-0"].open
    assert "nacos_config" not in play.settings[0].groups
    assert not verdict.quorum


def test_an_image_of_3x_without_its_secrets_ends() -> None:
    play = Play(version="3.0.3", NACOS_AUTH_TOKEN="")
    play.start("nacos-0")
    play.after(2)
    assert play.members["nacos-0"].exit_code == 255


def test_a_grown_cluster_needs_the_new_list_everywhere() -> None:
    """As in reality the list is static: pods learn of new members when they are started again."""
    play = Play(size=3)
    play.up()
    play.settings = [_settings(number, 5) for number in range(5)]
    play.start("nacos-3", "nacos-4")
    mixed = play.after(120)
    assert not mixed.healthy
    assert any("lists 3 of 5" in problem for problem in mixed.problems)
    for pod in ("nacos-0", "nacos-1", "nacos-2"):
        play.kill(pod)
        play.start(pod)
        play.after(120)
    assert play.after(120).healthy, play.after(0).problems


@example([("freeze", 0, 1.0), ("start", 0, 5.0), ("kill", 2, 1.0)], 365)  # it led a later term than the one that thaws
@given(st.lists(st.tuples(st.sampled_from(["kill", "start", "freeze", "thaw", "cut", "heal"]), st.integers(0, 2),
                          st.floats(0.1, 90)), max_size=12), st.integers(0, 1000))  # fmt: skip
def test_terms_grow_and_leaders_have_a_majority_under_random_faults(
    story: list[tuple[str, int, float]], seed: int
) -> None:
    play = Play(seed=seed, version="2.4.3")
    play.up()
    terms: dict[tuple[str, str], int] = {}
    for act, number, seconds in story:
        _perform(play, act, f"nacos-{number}")
        play.after(seconds)
        _check(play, terms)
    play.ensemble.heal(play.now)
    for member in play.members.values():
        play.ensemble.freeze(member, play.now, frozen=False)
    play.start(*({setting.pod for setting in play.settings} - play.members.keys()))
    verdict = play.after(200)
    assert verdict.healthy, verdict.problems


def _perform(play: Play, act: str, pod: str) -> None:
    member = play.members.get(pod)
    if act == "start" and member is None:
        play.start(pod)
    elif act == "heal":
        play.ensemble.heal(play.now)
    elif member is not None and act == "kill":
        play.kill(pod)
    elif member is not None and act in ("freeze", "thaw"):
        play.ensemble.freeze(member, play.now, frozen=act == "freeze")
    elif member is not None and act == "cut":
        others = [setting.address for setting in play.settings if setting.pod != pod]
        play.ensemble.cut([member.address], others, play.now)


def _check(play: Play, terms: dict[tuple[str, str], int]) -> None:
    leaders: dict[tuple[str, int], str] = {}
    for pod, member in play.members.items():
        for group, belief in member.beliefs.items():
            assert belief.term >= terms.get((pod, group), 0)
            terms[pod, group] = belief.term
            assert leaders.setdefault((group, belief.term), belief.address) == belief.address


def _values(texts: Iterable[str]) -> list[str]:
    return [version_of(text) for text in texts]


def test_versions_come_from_the_tag() -> None:
    images = ("nacos/nacos-server:v2.4.3-slim", "r.io:5000/nacos/nacos-server:3.1.0@sha256:1", "nacos-server:latest")
    assert _values(images) == ["2.4.3", "3.1.0", "3.0.3"]


def test_the_timings_can_be_chosen() -> None:
    ensemble = Ensemble(clock.seeded(0), Timings(boot=(1.0, 1.0)))
    member = ensemble.start(_settings(0, MODE="standalone"), 0.0, Disk())
    ensemble.advance(1.5)
    assert member.open


def test_a_server_that_left_counts_until_it_is_removed() -> None:
    """Seen on a real 2.1.1: shorter lists alone do not make the raft groups smaller."""
    play = Play(size=3)
    play.up()
    play.settings = [_settings(number, 2) for number in range(2)]
    for pod in ("nacos-0", "nacos-1"):
        play.kill(pod)
        play.start(pod)
        play.after(120)
    play.kill("nacos-2")
    verdict = play.after(30)
    assert verdict.healthy, verdict.problems
    assert verdict.surplus == ("nacos-2.nacos-headless.default.svc.cluster.local:7848",)
    gone = verdict.surplus[0].replace(":7848", ":8848")
    assert play.ensemble.remove_peer(play.members["nacos-0"], gone, play.now)
    assert play.after(1).surplus == ()


def test_a_removed_server_stays_out_until_it_restarts() -> None:
    play = Play(size=4)
    play.up()
    last = play.members["nacos-3"]
    assert play.ensemble.remove_peer(play.members["nacos-0"], last.address, play.now)
    play.after(60)
    assert all(last.address not in play.members[f"nacos-{number}"].peers for number in range(3))
    play.kill("nacos-3")
    play.start("nacos-3")
    assert play.after(120).healthy
    assert all(last.address in member.peers for member in play.members.values())


@pytest.mark.parametrize("seed", range(8))
def test_an_election_never_undoes_a_change_of_the_peers(seed: int) -> None:
    """One that missed a newcomer cannot become the leader of those that know it."""
    play = Play(seed=seed, size=3)
    play.up()
    missing = play.members["nacos-2"].address
    others = [play.members[pod].address for pod in ("nacos-0", "nacos-1")]
    play.ensemble.cut([missing], others, play.now)
    play.after(30)
    play.settings = [*play.settings, _settings(3, 4)]
    newcomer = play.settings[-1]
    play.ensemble.cut([missing], [newcomer.address], play.now)
    play.start("nacos-3")
    play.after(120)
    assert newcomer.address in play.members["nacos-0"].peers
    play.ensemble.heal(play.now)
    play.after(60)
    for pod in ("nacos-0", "nacos-1"):
        play.kill(pod)
        play.start(pod)
        play.after(120)
    assert all(newcomer.address in member.peers for member in play.members.values())


def test_a_removed_server_has_no_vote() -> None:
    """It still knows its peers, but they do not count it: with half of them gone there is no majority."""
    play = Play(size=4)
    play.up()
    removed = play.members["nacos-3"]
    assert play.ensemble.remove_peer(play.members["nacos-0"], removed.address, play.now)
    play.after(30)
    play.kill("nacos-1", "nacos-2")
    play.after(60)
    groups = play.members["nacos-0"].settings.groups
    assert all(play.ensemble.leader_of(play.members["nacos-0"], group) is None for group in groups)
    play.start("nacos-1")
    play.after(120)
    assert all(play.ensemble.leader_of(play.members["nacos-0"], group) is not None for group in groups)


def test_a_leader_can_be_removed_and_the_others_go_on_without_waiting_for_it() -> None:
    """Seen on a real 2.1.1: there is another one at once; the old one goes on naming itself in its term."""
    play = Play(size=3)
    before = play.up()
    old = play.members[before.leader]
    asked = next(member for pod, member in play.members.items() if pod != before.leader)
    assert play.ensemble.remove_peer(asked, old.address, play.now)
    after = play.after(3)
    assert after.leader not in ("", before.leader)
    assert after.leaders[LEADING_GROUP].term > before.leaders[LEADING_GROUP].term
    assert old.beliefs[LEADING_GROUP] == before.leaders[LEADING_GROUP]
    assert (after.outside, after.surplus) == ((before.leader,), ())
    assert play.ensemble.remove_peer(old, old.address, play.now), "asked itself, it finds that there is nothing to do"
    assert all(len(member.peers) == 2 for member in play.members.values())


def test_followers_go_on_naming_a_leader_that_was_removed() -> None:
    """Seen on a real 2.1.1: what they name is what their routing table had when they began to follow the next one."""
    play = Play(size=3)
    before = play.up()
    old = play.members[before.leader]
    asked = next(member for pod, member in play.members.items() if pod != before.leader)
    play.ensemble.remove_peer(asked, old.address, play.now)
    leader = play.after(60).leader
    names = {pod: member.named[LEADING_GROUP] for pod, member in play.members.items() if member is not old}
    assert old.address not in names.pop(leader)
    (behind,) = names.values()
    assert old.address in behind


def test_a_change_of_the_peers_is_kept_by_its_voters_and_reaches_the_others_later() -> None:
    """One that was away during a removal cannot undo it by winning an election."""
    play = Play(size=5)
    play.up()
    gone = play.settings[4].address
    play.kill("nacos-0", "nacos-4")
    play.after(30)
    assert play.ensemble.remove_peer(play.members["nacos-1"], gone, play.now)
    play.start("nacos-0")
    play.after(120)
    assert gone not in play.members["nacos-0"].peers
    play.kill("nacos-1", "nacos-2", "nacos-3")
    play.start("nacos-1", "nacos-2", "nacos-3")
    play.after(120)
    assert all(gone not in member.peers for member in play.members.values())


def test_a_removal_fails_without_a_leader_and_does_no_harm_when_repeated() -> None:
    play = Play(size=3)
    play.up()
    gone = play.settings[2].address
    play.kill("nacos-1", "nacos-2")
    play.after(30)
    assert not play.ensemble.remove_peer(play.members["nacos-0"], gone, play.now)
    assert gone in play.members["nacos-0"].peers
    play.start("nacos-1")
    play.after(120)
    for _ in range(2):
        assert play.ensemble.remove_peer(play.members["nacos-0"], gone, play.now)
        assert play.after(1).surplus == ()


def test_an_older_leader_steps_down_when_one_comes_back_that_has_seen_a_later_term() -> None:
    play = Play(size=3)
    first = play.up()
    play.ensemble.freeze(play.members[first.leader], play.now)
    second = play.after(30)
    assert second.leader not in ("", first.leader)
    play.kill(second.leader)
    play.ensemble.freeze(play.members[first.leader], play.now, frozen=False)
    play.after(60)
    play.start(second.leader)
    last = play.after(120)
    assert last.healthy, last.problems
    assert last.leaders[LEADING_GROUP].term >= second.leaders[LEADING_GROUP].term


def address(number: int) -> str:
    return f"nacos-{number}.nacos-headless.default.svc.cluster.local:8848"


@pytest.mark.spec("N-47")
def test_a_server_follows_its_list_when_the_kubelet_updates_it() -> None:
    play = Play(size=4)
    play.up()
    file = [address(number) for number in range(4)]
    for member in play.members.values():
        play.ensemble.follow(member, lambda: file)
    del file[3]
    play.after(29)
    assert {len(member.listed) for member in play.members.values()} == {4}, "not at once"
    play.after(61)
    first = [play.members[f"nacos-{number}"] for number in range(3)]
    assert [member.listed for member in first] == [tuple(file)] * 3
    assert [member.peers for member in first] == [set(file)] * 3, "the one that left was removed"
    assert all(address(3) not in member.contacts for member in first)
    assert play.members["nacos-3"].listed == (*file, address(3)), "a server keeps itself in its list"
    file.append(address(3))
    play.after(90)
    assert {len(member.listed) for member in play.members.values()} == {4}
    assert address(3) not in play.members["nacos-0"].peers, "it joins when it starts"


@pytest.mark.spec("N-47")
def test_which_lists_are_not_followed() -> None:
    play = Play(size=3)
    play.up()
    file: list[str] = []
    member, frozen = play.members["nacos-0"], play.members["nacos-1"]
    for follower in (member, frozen):
        play.ensemble.follow(follower, lambda: file)
    play.after(100)
    assert len(member.listed) == 3, "an empty file is none"
    play.ensemble.freeze(frozen, play.now)
    file += [address(number) for number in range(5)]
    play.kill("nacos-0")
    play.after(100)
    assert len(member.listed) == 3, "an ended process reads nothing"
    assert len(frozen.listed) == 3
    play.ensemble.freeze(frozen, play.now, frozen=False)
    play.after(90)
    assert len(frozen.listed) == 5, "later"
    assert frozen.peers == {address(number) for number in range(3)}, "new members join by themselves"
