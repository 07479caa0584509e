"""All simulated servers and what goes on between them: elections, reports, splits. Pure: time and chance are given.

Events wait in a heap and `advance(now)` lets happen what is due, in order; in between nothing ticks. What a server
says of a peer is worked out when it is asked, from the moment since which that peer answers, or does not.

A candidate needs the votes of a majority of its raft peers, from members that can be reached, know it and follow no
leader that is at work: so splits and one-sided lists go wrong in the ways they really do. The list of members that a
server shows is static, and first of all what its raft groups consist of. But those are kept on disk like the terms: a
newcomer that finds their leader is taken in, and one that left counts until it is removed, as seen on real servers. Who
is removed while it runs stays out until it starts anew.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from math import inf
from random import Random

from konverge.operators.nacos.server import Leader
from konverge.sim.nacos.member import Contact, Member, Phase
from konverge.sim.nacos.settings import Settings
from konverge.sim.nacos.timings import Span, Timings

CONFIG = "nacos_config"


class Ensemble:
    """The servers that run now, by address."""

    def __init__(self, rng: Random, timings: Timings | None = None) -> None:
        self.timings = timings or Timings()
        self.members: dict[str, Member] = {}
        self.now = 0.0
        self._rng = rng
        self._terms: dict[tuple[str, str], int] = {}
        """By address and group: what is on disk."""
        self._peers: dict[str, set[str]] = {}
        """By address, the same."""
        self._changes: dict[str, int] = {}
        """By address, the same: how many changes of the peers it has seen. Nobody votes for one that has seen fewer."""
        self._cuts: set[frozenset[str]] = set()
        """Pairs of addresses between which nothing gets through."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._standing: set[tuple[Member, str]] = set()
        """Members that will stand for election in a group, and have not yet."""

    # -------------------------------------------------------------- time

    def advance(self, now: float) -> None:
        """Let everything up to now happen."""
        while self._events and self._events[0][0] <= now:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
        self.now = max(self.now, now)

    @property
    def due(self) -> float:
        """When something happens by itself."""
        return self._events[0][0] if self._events else inf

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), happen))

    def _draw(self, span: Span) -> float:
        return self._rng.uniform(*span)

    # -------------------------------------------------------------- processes

    def start(self, settings: Settings, now: float) -> Member:
        """A container began to run."""
        self.advance(now)
        before = self.members.get(settings.address)
        if before is not None:
            self.stop(before, now)
        peers = self._peers.setdefault(settings.address, set(settings.members))
        member = self.members[settings.address] = Member(settings, now, peers=peers)
        if settings.refusal:
            self._after(1.0, lambda: self._exit(member, 255))
            return member
        boot = self._draw(self.timings.boot)
        self._after(boot * self.timings.ports_open, lambda: self._connect(member))
        self._after(boot, lambda: self._booted(member))
        return member

    def stop(self, member: Member, now: float) -> None:
        """It ended, or was ended."""
        self._settle_accounts(now)
        member.phase = Phase.ENDED
        if self.members.get(member.address) is member:
            del self.members[member.address]
        self._reconsider()

    def freeze(self, member: Member, now: float, *, frozen: bool = True) -> None:
        self._settle_accounts(now)
        member.frozen = frozen
        self._reconsider()

    def cut(self, some: Iterable[str], others: Iterable[str], now: float) -> None:
        """Nothing gets through between these addresses and those."""
        self._settle_accounts(now)
        far = list(others)
        self._cuts |= {frozenset((one, other)) for one in some for other in far}
        self._reconsider()

    def remove_peer(self, member: Member, address: str, now: float) -> bool:
        """Take an address out of the raft groups of which this member knows. False: there is no leader to do it.

        It looks for the leaders among its peers, so one that was itself removed can do it as well.
        """
        self.advance(now)
        leaders = {group: self._at_work(member, group) for group in member.settings.groups}
        for leader in leaders.values():
            if leader is not None and address in leader.peers:
                self._change(leader, lambda peers: peers.discard(address))
        for group, leader in leaders.items():
            if leader is not None and leader.address == address:
                self._hand_over(leader, group)
        self._reconsider()
        return None not in leaders.values()

    def _hand_over(self, leader: Member, group: str) -> None:
        """A leader that is removed tells one of the others to stand at once, and is not waited for."""
        others = [one for one in self.members.values() if one.address in leader.peers and self.reach(leader, one)]
        if others:
            chosen = self._rng.choice(others)
            self._after(self._draw(self.timings.news), lambda: self._stand(chosen, group))

    def _change(self, leader: Member, change: Callable[[set[str]], None]) -> None:
        """The peers change, for all that the leader reaches."""
        voters = self._voters(leader)
        number = 1 + max(self._changes.get(one.address, 0) for one in voters)
        for one in voters:
            one.routes = (self.now + self.timings.routes, frozenset(one.peers))
            change(one.peers)
            one.named = dict.fromkeys(one.settings.groups, frozenset(one.peers))
            self._changes[one.address] = number

    def heal(self, now: float) -> None:
        self.advance(now)
        self._cuts.clear()
        self._reconsider()

    def _connect(self, member: Member) -> None:
        if member.phase is not Phase.ENDED:
            member.connected = True
            self._reconsider()

    def _booted(self, member: Member) -> None:
        if member.phase is Phase.ENDED:
            return
        member.phase = Phase.WAITING
        self._open_what_may()
        if member.phase is Phase.WAITING and member.settings.line >= (3,):
            self._after(self.timings.early_exit, lambda: self._give_up(member))

    def _give_up(self, member: Member) -> None:
        if member.phase is Phase.WAITING:
            self._exit(member, 1)

    def _exit(self, member: Member, code: int) -> None:
        if member.phase is not Phase.ENDED:
            member.exit_code = code
            self.stop(member, self.now)

    def _open_what_may(self) -> None:
        """The HTTP port opens when the database can be read, and an embedded one is read through its leader."""
        for member in self.members.values():
            if member.phase is Phase.WAITING and not member.frozen and self.has_database(member):
                member.phase, member.serving_since = Phase.SERVING, self.now

    def has_database(self, member: Member) -> bool:
        """As far as raft is concerned."""
        settings = member.settings
        return settings.standalone or not settings.embedded or self.leader_of(member, CONFIG) is not None

    # -------------------------------------------------------------- who reaches whom

    def reach(self, one: Member, other: Member) -> bool:
        return one is other or (one.alive and other.alive and frozenset((one.address, other.address)) not in self._cuts)

    def _voters(self, candidate: Member) -> list[Member]:
        """Those whose votes it asks for and who would hear of it, itself included: they have each other as peers."""
        return [
            one
            for one in self.members.values()
            if one.address in candidate.peers and candidate.address in one.peers and self.reach(candidate, one)
        ]

    def _within_reach(self, member: Member) -> list[Member]:
        """Those that it knows or that know it: a leader speaks to all of its peers, whatever is in their lists."""
        return [
            one
            for one in self.members.values()
            if (one.address in member.peers or member.address in one.peers) and self.reach(member, one)
        ]

    def _majority(self, member: Member, votes: int) -> bool:
        return votes >= len(member.peers) // 2 + 1

    def _leads(self, member: Member, group: str) -> bool:
        """It is the leader, has a majority behind it and nobody there has seen a later term."""
        belief = member.beliefs.get(group)
        if not member.alive or belief is None or belief.address != member.settings.raft_address:
            return False
        behind = self._voters(member)
        # Terms are on disk: who was killed in a later one makes the leader of an older one step down when it is back.
        seen = (self._terms.get((one.address, group), 0) for one in behind)
        return self._majority(member, len(behind)) and all(term <= belief.term for term in seen)

    def leader_of(self, member: Member, group: str) -> Member | None:
        """The leader that it follows, if that one is at work and within reach."""
        belief = member.beliefs.get(group)
        if belief is None or not member.alive:
            return None
        for one in self._within_reach(member):
            if one.settings.raft_address == belief.address and member.address in one.peers and self._leads(one, group):
                return one if one.beliefs[group].term == belief.term else None
        return None

    # -------------------------------------------------------------- elections

    def _reconsider(self) -> None:
        """Something changed: contacts begin or end, leaders are missed or found."""
        for member in list(self.members.values()):
            self._look_around(member)
            if not member.alive:
                continue
            for group in member.settings.groups:
                if self.leader_of(member, group) is None:
                    self._seek_leader(member, group)
        self._open_what_may()

    def _seek_leader(self, member: Member, group: str) -> None:
        leader = self._at_work(member, group)
        if leader is not None:
            if member.address not in leader.peers:
                if group in member.beliefs:
                    return  # a process asks for its place once: one that is removed stays out
                self._change(leader, lambda peers: peers.add(member.address))
            self._tell(member, leader, group)
        elif (member, group) not in self._standing:
            self._standing.add((member, group))
            self._after(self._draw(self.timings.election), lambda: self._stand(member, group))

    def _at_work(self, member: Member, group: str) -> Member | None:
        """The leader that it could find, whomever it follows."""
        found = [one for one in self._within_reach(member) if self._leads(one, group)]
        return max(found, key=lambda one: one.beliefs[group].term, default=None)

    def _tell(self, member: Member, leader: Member, group: str) -> None:
        news = leader.beliefs[group]

        def hear() -> None:
            # Who has voted in a later term does not listen to the leader of an older one.
            if self._terms.get((member.address, group), 0) <= news.term and self.reach(member, leader):
                self._follow(member, leader)
                self._believe(member, group, news)
                self._open_what_may()

        self._after(self._draw(self.timings.news), hear)

    def _follow(self, member: Member, leader: Member) -> None:
        """Take over its peers, unless another group's leader has changed them since."""
        seen = self._changes.get(leader.address, 0)
        if seen >= self._changes.get(member.address, 0):
            member.peers.clear()
            member.peers.update(leader.peers)
            self._changes[member.address] = seen

    def _stand(self, member: Member, group: str) -> None:
        self._standing.discard((member, group))
        if self.members.get(member.address) is not member or not member.alive:
            return
        if self.leader_of(member, group) is not None:
            return
        votes = [one for one in self._voters(member) if one is member or self._would_vote(one, member, group)]
        if not self._majority(member, len(votes)) or any(self._leads(one, group) for one in votes):
            return
        term = 1 + max(self._terms.get((one.address, group), 0) for one in votes)
        for one in votes:
            self._terms[one.address, group] = term  # nobody votes twice in a term
        self._believe(member, group, Leader(member.settings.raft_address, term))
        self._reconsider()

    def _would_vote(self, one: Member, candidate: Member, group: str) -> bool:
        behind = self._changes.get(candidate.address, 0) < self._changes.get(one.address, 0)
        return not behind and self.leader_of(one, group) is None

    def _believe(self, member: Member, group: str, leader: Leader) -> None:
        self._terms[member.address, group] = leader.term
        member.believe(group, leader, self.now)
        member.name_peers(group, self.now)

    # -------------------------------------------------------------- reports

    def _look_around(self, member: Member) -> None:
        """Note which peers begin or cease to answer."""
        if not member.connected or member.frozen:
            return
        for address in member.settings.members:
            if address == member.address:
                continue
            peer = self.members.get(address)
            answers = peer is not None and self.reach(member, peer)
            contact = member.contacts.get(address)
            if contact is None:
                contact = member.contacts[address] = Contact(self.now, answers, lag=self._draw(self.timings.report))
            elif contact.answers != answers:
                contact.since, contact.answers = self.now, answers
            contact.silent = peer is not None and peer.connected and not answers

    def _settle_accounts(self, now: float) -> None:
        """Before a contact may end: what peers have told by now is what will be remembered of them."""
        self.advance(now)
        for member in self.members.values():
            for address, contact in member.contacts.items():
                self._take_report(member, contact, self.members.get(address))

    def _take_report(self, member: Member, contact: Contact, peer: Member | None) -> None:
        """Members talk about themselves once both are open."""
        if contact.answers and peer is not None and peer.open and member.open:
            begin = max(contact.since, peer.serving_since, member.serving_since) + contact.lag
            if self.now >= begin:
                contact.version = peer.settings.version
                contact.leaders = peer.reported(self.now - contact.lag) or contact.leaders

    def entry(self, member: Member, address: str) -> tuple[str, int, str | None, dict[str, Leader] | None]:
        """What a server says of a member: state, failed probes, version, raft metadata."""
        if address == member.address:
            return "UP", 0, member.settings.version, dict(member.beliefs) or None
        contact = member.contacts.get(address)
        if contact is None:
            return "UP", 0, None, None
        self._take_report(member, contact, self.members.get(address))
        state, failures = self._state(member, contact)
        return state, failures, contact.version, contact.leaders

    def _state(self, member: Member, contact: Contact) -> tuple[str, int]:
        if contact.answers:
            return "UP", 0
        old = member.settings.line < (2, 2)
        silent = self.timings.silent_before_2_2 if old else self.timings.silent
        first, between = silent if contact.silent else self.timings.refused
        elapsed = self.now - max(contact.since, member.serving_since)
        if elapsed < first:
            return "UP", 0
        failures = 1 + int((elapsed - first) / between)
        down = failures > self.timings.failures_allowed or (old and not contact.silent)
        return "DOWN" if down else "SUSPICIOUS", failures
