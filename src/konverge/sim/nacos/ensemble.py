"""All simulated servers and what happens between them: elections, reports, splits. Pure: time and chance are given.

Events wait in a heap and `advance(now)` runs those that are due, in order; in between nothing ticks. What a server
reports about a peer is computed on request, from the time since which that peer answers, or does not.

A candidate needs the votes of a majority of its raft peers, from members that it reaches, that know it and that follow
no active leader: so splits and one-sided lists fail as they do on real servers. The list of members that a server shows
is that of its start, or of a file that it follows; at first it is also the list of its raft peers. But the peers are
kept on disk like the terms: a new server that finds their leader is admitted, and one that left counts until it is
removed, as seen on real servers. A server that is removed while it runs stays out until it restarts. So is the embedded
database: a server whose disk was lost joins as an empty one and receives the data of its leader; where most disks were
lost at once, the data is lost too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import count, product
from math import inf
from random import Random

from konverge.operators.nacos.server import Leader
from konverge.sim.nacos.disk import Data, Disk
from konverge.sim.nacos.member import Contact, Member, Phase, Span, Timings
from konverge.sim.nacos.settings import Settings

CONFIG = "nacos_config"


class Ensemble:
    """The servers that run now, by address."""

    def __init__(self, rng: Random, timings: Timings | None = None) -> None:
        self.timings = timings or Timings()
        self.members: dict[str, Member] = {}
        self.now = 0.0
        self._rng = rng
        self._cuts: set[frozenset[str]] = set()
        """Pairs of addresses that do not reach each other."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._candidates: set[tuple[Member, str]] = set()
        """Members that will stand for election in a group."""

    # -------------------------------------------------------------- time

    def advance(self, now: float) -> None:
        """Run all events up to now."""
        while self._events and self._events[0][0] <= now:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = max(self.now, now)

    @property
    def due(self) -> float:
        """The time of the next event."""
        return self._events[0][0] if self._events else inf

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), event))

    def _draw(self, span: Span) -> float:
        return self._rng.uniform(*span)

    # -------------------------------------------------------------- processes

    def start(self, settings: Settings, now: float, disk: Disk) -> Member:
        """A container began to run, with what is on its disk."""
        self.advance(now)
        before = self.members.get(settings.address)
        if before is not None:
            self.stop(before, now)
        member = self.members[settings.address] = Member(settings, now, disk)
        if settings.refusal:
            self._after(1.0, lambda: self._exit(member, 255))
            return member
        boot = self._draw(self.timings.boot)
        self._after(boot * self.timings.ports_open, lambda: self._connect(member))
        self._after(boot, lambda: self._booted(member))
        return member

    def stop(self, member: Member, now: float) -> None:
        """The process ended, or was killed."""
        self._take_reports(now)
        member.phase = Phase.ENDED
        if self.members.get(member.address) is member:
            del self.members[member.address]
        self._reconsider()

    def freeze(self, member: Member, now: float, *, frozen: bool = True) -> None:
        self._take_reports(now)
        member.frozen = frozen
        self._reconsider()

    def cut(self, some: Iterable[str], others: Iterable[str], now: float) -> None:
        """Members of the two sets of addresses do not reach each other."""
        self._take_reports(now)
        self._cuts |= {frozenset(pair) for pair in product(some, others)}
        self._reconsider()

    def remove_peer(self, member: Member, address: str, now: float) -> bool:
        """Remove an address from the raft groups that this member knows. False: a group has no leader to do it.

        It looks for the leaders among its peers, so a member that was itself removed can do it as well.
        """
        self.advance(now)
        removed = self._remove_peer(member, address)
        self._reconsider()
        return removed

    def _remove_peer(self, member: Member, address: str) -> bool:
        leaders = {group: self._active_leader(member, group) for group in member.settings.groups}
        for leader in leaders.values():
            if leader is not None and address in leader.peers:
                self._change(leader, lambda peers: peers.discard(address))
        for group, leader in leaders.items():
            if leader is not None and leader.address == address:
                self._hand_over(leader, group)
        return None not in leaders.values()

    def follow(self, member: Member, read: Callable[[], Iterable[str]]) -> None:
        """Its list of members is a file that its kubelet updates now and then: `read` has the present content."""

        def look() -> None:
            if member.phase is Phase.ENDED:
                return
            if member.open and not member.frozen:
                self._relist(member, read())
            self._after(self._draw(self.timings.mounts), look)

        self._after(self._draw(self.timings.mounts), look)

    def _relist(self, member: Member, addresses: Iterable[str]) -> None:
        """FileConfigMemberLookup and JRaftServer.peerChange: a server keeps itself in the list, adds no peer to its
        raft groups (a new one does that itself), and removes those that left the list. An empty file is none.
        """
        addresses = list(addresses)
        listed = tuple(dict.fromkeys([*addresses, member.address]))
        if not addresses or set(listed) == set(member.listed):
            return
        gone = [address for address in member.listed if address not in listed]
        member.listed = listed
        for address in gone:
            member.contacts.pop(address, None)
            self._remove_peer(member, address)
        self._reconsider()

    def _hand_over(self, leader: Member, group: str) -> None:
        """A leader that is removed asks another member to stand at once; no election timeout has to pass."""
        others = [peer for peer in self.members.values() if peer.address in leader.peers and self.reach(leader, peer)]
        if others:
            chosen = self._rng.choice(others)
            self._after(self._draw(self.timings.news), lambda: self._stand(chosen, group))

    def _change(self, leader: Member, change: Callable[[set[str]], None]) -> None:
        """The peers change, for all members that the leader reaches."""
        voters = self._voters(leader)
        number = 1 + max(voter.disk.changes for voter in voters)
        for voter in voters:
            voter.routes = (self.now + self.timings.routes, frozenset(voter.peers))
            change(voter.peers)
            voter.named = dict.fromkeys(voter.settings.groups, frozenset(voter.peers))
            voter.disk.changes = number

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
        self._open_ports()
        if member.phase is Phase.WAITING and member.settings.line >= (3,):
            self._after(self.timings.early_exit, lambda: self._give_up(member))

    def _give_up(self, member: Member) -> None:
        if member.phase is Phase.WAITING:
            self._exit(member, 1)

    def _exit(self, member: Member, code: int) -> None:
        if member.phase is not Phase.ENDED:
            member.exit_code = code
            self.stop(member, self.now)

    def _open_ports(self) -> None:
        """The HTTP port opens when the database can be read; an embedded database is read through its leader."""
        for member in self.members.values():
            if member.phase is Phase.WAITING and not member.frozen and self.has_database(member):
                member.phase, member.serving_since = Phase.SERVING, self.now

    def has_database(self, member: Member) -> bool:
        """Whether raft lets it read its database."""
        settings = member.settings
        return settings.standalone or not settings.embedded or self.leader_of(member, CONFIG) is not None

    def write(self, member: Member, change: Callable[[Data], None]) -> bool:
        """Change the embedded database. False: it has no leader to do it."""
        if member.settings.standalone:
            change(member.data)
            return True
        leader = self.leader_of(member, CONFIG)
        if leader is None:
            return False
        change(leader.data)
        leader.data.written = (leader.beliefs[CONFIG].term, leader.data.written[1] + 1)
        for voter in self._voters(leader):
            if self.leader_of(voter, CONFIG) is leader:
                self._replicate(leader, voter)
        return True

    def _replicate(self, leader: Member, member: Member) -> None:
        """A follower has what its leader has: one that starts without data receives all of it."""
        if member.data.written != leader.data.written:
            member.disk.data = leader.data.copy()

    # -------------------------------------------------------------- reachability and leadership

    def reach(self, member: Member, other: Member) -> bool:
        cut = frozenset((member.address, other.address)) in self._cuts
        return member is other or (member.alive and other.alive and not cut)

    def _voters(self, candidate: Member) -> list[Member]:
        """The members that can vote for it, itself included: they reach each other and have each other as peers."""
        return [
            other
            for other in self.members.values()
            if other.address in candidate.peers and candidate.address in other.peers and self.reach(candidate, other)
        ]

    def _within_reach(self, member: Member) -> list[Member]:
        """The members that it knows or that know it: a leader contacts all of its peers, whatever their lists say."""
        return [
            other
            for other in self.members.values()
            if (other.address in member.peers or member.address in other.peers) and self.reach(member, other)
        ]

    def _majority(self, member: Member, votes: int) -> bool:
        return votes >= len(member.peers) // 2 + 1

    def _leads(self, member: Member, group: str) -> bool:
        """It is the leader, has a majority of voters, and none of them has seen a later term."""
        belief = member.beliefs.get(group)
        if not member.alive or belief is None or belief.address != member.settings.raft_address:
            return False
        voters = self._voters(member)
        # Terms are on disk: a member that comes back from a later term makes the leader of an older one step down.
        terms = (voter.term(group) for voter in voters)
        return self._majority(member, len(voters)) and all(term <= belief.term for term in terms)

    def leader_of(self, member: Member, group: str) -> Member | None:
        """The leader that it follows, if that one is active and within reach."""
        belief = member.beliefs.get(group)
        if belief is None or not member.alive:
            return None
        for other in self._within_reach(member):
            named = other.settings.raft_address == belief.address and member.address in other.peers
            if named and self._leads(other, group):
                return other if other.beliefs[group].term == belief.term else None
        return None

    # -------------------------------------------------------------- elections

    def _reconsider(self) -> None:
        """Something changed: contacts begin or end, leaders are lost or found."""
        for member in list(self.members.values()):
            self._update_contacts(member)
            if not member.alive:
                continue
            for group in member.settings.groups:
                leader = self.leader_of(member, group)
                if leader is None:
                    self._seek_leader(member, group)
                elif group == CONFIG:
                    self._replicate(leader, member)
        self._open_ports()

    def _seek_leader(self, member: Member, group: str) -> None:
        leader = self._active_leader(member, group)
        if leader is not None:
            if member.address not in leader.peers:
                if group in member.beliefs:
                    return  # a process joins once: a member that was removed stays out
                self._change(leader, lambda peers: peers.add(member.address))
            self._announce(member, leader, group)
        elif (member, group) not in self._candidates:
            self._candidates.add((member, group))
            self._after(self._draw(self.timings.election), lambda: self._stand(member, group))

    def _active_leader(self, member: Member, group: str) -> Member | None:
        """The leader within reach with the highest term, whether the member follows it or not."""
        leaders = [other for other in self._within_reach(member) if self._leads(other, group)]
        return max(leaders, key=lambda leader: leader.beliefs[group].term, default=None)

    def _announce(self, member: Member, leader: Member, group: str) -> None:
        """The member learns of the leader, a little later."""
        belief = leader.beliefs[group]

        def learn() -> None:
            # A member that has voted in a later term ignores the leader of an older one.
            if member.term(group) <= belief.term and self.reach(member, leader):
                self._follow(member, leader)
                self._believe(member, group, belief)
                if group == CONFIG:
                    self._replicate(leader, member)
                self._open_ports()

        self._after(self._draw(self.timings.news), learn)

    def _follow(self, member: Member, leader: Member) -> None:
        """Adopt its peers, unless another group's leader has changed them since."""
        if leader.disk.changes >= member.disk.changes:
            member.disk.peers = set(leader.peers)
            member.disk.changes = leader.disk.changes

    def _stand(self, member: Member, group: str) -> None:
        self._candidates.discard((member, group))
        if self.members.get(member.address) is not member or not member.alive:
            return
        if self.leader_of(member, group) is not None:
            return
        votes = [voter for voter in self._voters(member) if voter is member or self._would_vote(voter, member, group)]
        if not self._majority(member, len(votes)) or any(self._leads(voter, group) for voter in votes):
            return
        term = 1 + max(voter.term(group) for voter in votes)
        for voter in votes:
            voter.disk.terms[group] = term  # no member votes twice in a term
        self._believe(member, group, Leader(member.settings.raft_address, term))
        self._reconsider()

    def _would_vote(self, voter: Member, candidate: Member, group: str) -> bool:
        behind = candidate.disk.changes < voter.disk.changes
        if group == CONFIG:
            behind = (candidate.data.written, candidate.disk.changes) < (voter.data.written, voter.disk.changes)
        return not behind and self.leader_of(voter, group) is None

    def _believe(self, member: Member, group: str, leader: Leader) -> None:
        member.disk.terms[group] = leader.term
        member.believe(group, leader, self.now)
        member.name_peers(group, self.now)

    # -------------------------------------------------------------- reports

    def _update_contacts(self, member: Member) -> None:
        """Note which peers begin or cease to answer."""
        if not member.connected or member.frozen:
            return
        for address in member.listed:
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

    def _take_reports(self, now: float) -> None:
        """Before a contact may end: members remember the reports of their peers up to now."""
        self.advance(now)
        for member in self.members.values():
            for address, contact in member.contacts.items():
                self._take_report(member, contact, self.members.get(address))

    def _take_report(self, member: Member, contact: Contact, peer: Member | None) -> None:
        """Members report about themselves once both are open."""
        if contact.answers and peer is not None and peer.open and member.open:
            begin = max(contact.since, peer.serving_since, member.serving_since) + contact.lag
            if self.now >= begin:
                contact.version = peer.settings.version
                contact.leaders = peer.reported(self.now - contact.lag) or contact.leaders

    def entry(self, member: Member, address: str) -> tuple[str, int, str | None, dict[str, Leader] | None]:
        """A server's entry about a member: state, failed probes, version, raft metadata."""
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
