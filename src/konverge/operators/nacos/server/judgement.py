"""Decides what several servers' lists of members amount to. Pure, and the order of the views does not matter.

The rules, learned from real servers (2.1.1, 2.4.3, 3.0.3):

- `UP` without a version is only a guess, and a peer's entry may be stale for ten seconds and more: a member counts
  (`verified`) when it answered itself, and lists itself as UP with a version and raft metadata. A standalone server may
  have no raft metadata.
- Raft metadata is never cleared. After the loss of a majority the survivor still names the old leader, so the majority
  is counted among verified members that see each other, and a leader counts only when it is one of them.
- Every raft group elects on its own: different groups with different leaders are normal. Per group the highest term
  among verified members' own entries wins; members that name another leader have not caught up, or are cut off.
- Which groups there are depends on version and storage (`nacos_config` with embedded storage only): all groups that
  the members have are looked at.
- Which peers a group counts is known to its leader alone. A follower's list is as old as its routing table was when it
  last began to follow a leader: on a real 2.1.1 it kept naming a server that had been removed while it led the group.
  Where the leader does not answer, every peer that is named counts: the largest number is the safe one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from konverge.operators.nacos.server.model import (
    DOWN,
    SUSPICIOUS,
    UP,
    Leader,
    Member,
    MemberStatus,
    RaftGroup,
    Role,
    Verdict,
    View,
    clean_host,
)

LEADING_GROUP = "naming_persistent_service_v2"
"""The raft group whose leader is called the leader of the cluster."""
_Groups = Mapping[str, frozenset[str]]
_OLDER_GROUPS = ("naming_persistent_service", "nacos_config")
_UNSEEN = (DOWN, "ISOLATION")
_SEVERITY = {UP: 1, "STARTING": 2, SUSPICIOUS: 3, "ISOLATION": 4, DOWN: 5}


def judge(views: Sequence[View], replicas: int) -> Verdict:
    """The verdict on a cluster of that many members. Give a view for every pod, with its error where it has one."""
    evidence = _gather(views, replicas)
    leaders, split, disagreements = _elect(evidence)
    counted = _counted(evidence.verified.values(), leaders)
    needed = _needed(evidence, counted, replicas)
    quorum = _quorum(evidence, needed)
    leader = _leading(leaders) if quorum else None
    outside = _outside(evidence, leaders)
    no_majority = "" if quorum else f"no majority of {needed} verified members: raft writes fail"
    problems = [*_missing(evidence, replicas), *_unseen(evidence), *disagreements.values()]
    problems += [f"{name} is not counted by the raft groups: it was removed from them" for name in outside]
    if no_majority and evidence.views and not evidence.standalone:
        problems.append(no_majority)
    return Verdict(
        healthy=not problems,
        quorum=quorum,
        split=split,
        version=_version(evidence),
        leader=evidence.leading_pod(leader),
        leaders=leaders,
        groups=tuple(
            RaftGroup(
                name=group,
                leader=evidence.leading_pod(best) if quorum else "",
                term=best.term,
                peers=len(counted.get(group, ())),
                problem=no_majority or disagreements.get(group, ""),
            )
            for group, best in leaders.items()
        ),
        members=tuple(_member_status(evidence, address, leaders, leader) for address in sorted(evidence.addresses)),
        surplus=_surplus(evidence, counted),
        outside=outside,
        problems=tuple(dict.fromkeys(problems)),
    )


class _Evidence(msgspec.Struct, frozen=True):
    """All answers, sorted."""

    views: tuple[View, ...]
    own: Mapping[str, Member]
    """The entries of pods about themselves, by pod."""
    pods: Mapping[str, str]
    """By member address."""
    addresses: frozenset[str]
    verified: Mapping[str, Member]
    """Own entries that count, by member address."""
    standalone: bool
    by_raft: Mapping[str, str]
    """Member addresses, by raft address."""
    raft_up: frozenset[str]
    """The raft addresses of verified members."""

    def name(self, address: str) -> str:
        return self.pods.get(address, address)

    def name_of_raft(self, raft: str) -> str:
        return self.name(self.by_raft.get(raft, raft))

    def leading_pod(self, leader: Leader | None) -> str:
        """Empty when the leader is not up."""
        if leader is None or leader.address not in self.raft_up:
            return ""
        return self.name_of_raft(leader.address)


def _gather(views: Sequence[View], replicas: int) -> _Evidence:
    ordered = _ordered(views)
    members = _all_members(ordered)
    own: dict[str, Member] = {}
    pods: dict[str, str] = {}
    for view in ordered:
        entry = _own_entry(view)
        if entry is not None:
            own.setdefault(view.pod, entry)
            pods.setdefault(entry.address, view.pod)
    for view in ordered:  # a pod that did not answer is identified by its peers' entries
        if view.pod not in own and (entry := _own_entry(view, members)) is not None:
            pods.setdefault(entry.address, view.pod)
    standalone = replicas == 1
    verified = {member.address: member for member in own.values() if _counts(member, standalone)}
    return _Evidence(
        views=ordered,
        own=own,
        pods=pods,
        addresses=frozenset(member.address for member in members),
        verified=verified,
        standalone=standalone,
        by_raft={member.raft_address: member.address for member in sorted(members, key=_address, reverse=True)},
        raft_up=frozenset(member.raft_address for member in verified.values()),
    )


def _ordered(views: Sequence[View]) -> tuple[View, ...]:
    """In an order that does not depend on the one in which they are given."""
    known = {(view.pod, view.address, view.port): view for view in views}
    if len(known) == len(views):
        return tuple(known[key] for key in sorted(known))
    return tuple(sorted(views, key=lambda view: (view.pod, view.address, view.port, repr(view))))


def _address(member: Member) -> str:
    return member.address


def _all_members(views: Iterable[View]) -> list[Member]:
    return [member for view in views for member in view.members]


def _own_entry(view: View, members: Iterable[Member] | None = None) -> Member | None:
    """The entry of the pod that was asked: by its address, or by the first label of its host name."""
    address, name = clean_host(view.address), view.pod.lower()
    candidates = [
        member
        for member in (view.members if members is None else members)
        if member.port == view.port and (member.host == address or member.host.partition(".")[0] == name)
    ]
    if not candidates and members is None and len(view.members) == 1:
        return view.members[0]  # a list with one entry can only be about the server that was asked
    return min(candidates, key=_order) if len(candidates) > 1 else next(iter(candidates), None)


def _order(member: Member) -> tuple[str, int, bool, str]:
    return member.address, _SEVERITY.get(member.state, 9), member.leaders is None, repr(member)


def _counts(member: Member, standalone: bool) -> bool:
    return member.state == UP and bool(member.version) and (standalone or bool(member.leaders))


# --- leaders ------------------------------------------------------------------------------------------------------


def _elect(evidence: _Evidence) -> tuple[dict[str, Leader], bool, dict[str, str]]:
    """The leader of each group, by name; whether any group has several, and by group the problem with them."""
    leaders: dict[str, Leader] = {}
    problems: dict[str, str] = {}
    split = False
    groups = sorted({group for member in evidence.verified.values() for group in member.leaders or ()})
    for group in groups:
        claims = {
            address: member.leaders[group]
            for address, member in evidence.verified.items()
            if member.leaders and group in member.leaders
        }
        leaders[group] = best = max(claims.values(), key=lambda claim: (claim.term, bool(claim.address), claim.address))
        split = split or _is_split(evidence, claims, best)
        if problem := _disagreement(evidence, group, claims, best):
            problems[group] = problem
    return leaders, split, problems


def _is_split(evidence: _Evidence, claims: Mapping[str, Leader], best: Leader) -> bool:
    same_term = {claim.address for claim in claims.values() if claim.term == best.term and claim.address}
    self_named = {
        address for address, claim in claims.items() if claim.address == evidence.verified[address].raft_address
    }
    return len(same_term) > 1 or len(self_named) > 1


def _disagreement(evidence: _Evidence, group: str, claims: Mapping[str, Leader], best: Leader) -> str:
    """Empty when all who have the group name one leader, and that is up."""
    if not best.address:
        return f"{group} has no leader (term {best.term})"
    name = evidence.name_of_raft(best.address)
    if best.address not in evidence.raft_up:
        return f"{group} is led by {name} (term {best.term}), which is not up: an election is due"
    others = [
        f"{evidence.name(address)} names {evidence.name_of_raft(claim.address) or 'no leader'} (term {claim.term})"
        for address, claim in sorted(claims.items())
        if claim.address != best.address
    ]
    if not others:
        return ""
    return f"members disagree on the leader of {group}: {name} (term {best.term}), but {', '.join(others)}"


def _leading(leaders: Mapping[str, Leader]) -> Leader | None:
    for group in (LEADING_GROUP, *_OLDER_GROUPS):
        if group in leaders:
            return leaders[group]
    return leaders[min(leaders)] if leaders else None


# --- majority -----------------------------------------------------------------------------------------------------


def _needed(evidence: _Evidence, counted: _Groups, replicas: int) -> int:
    """While a cluster grows or shrinks, spec, lists and raft groups differ: the largest number is the safe one."""
    listed = (len(view.members) for view in evidence.views)
    return max([replicas, *listed, *(len(peers) for peers in counted.values())]) // 2 + 1


def _counted(members: Collection[Member], leaders: Mapping[str, Leader]) -> _Groups:
    """By group, the raft addresses of its peers."""
    groups = {group for member in members for group in member.groups}
    named = {group: frozenset().union(*(member.groups.get(group, ()) for member in members)) for group in groups}
    return named | _peers_by_leader(members, leaders)


def _peers_by_leader(members: Collection[Member], leaders: Mapping[str, Leader]) -> dict[str, frozenset[str]]:
    """By group, the peers that its leader lists."""
    return {
        group: peers
        for member in members
        for group, peers in member.groups.items()
        if peers and group in leaders and leaders[group].address == member.raft_address
    }


def _surplus(evidence: _Evidence, counted: _Groups) -> tuple[str, ...]:
    pods = {evidence.pods[address] for address in evidence.verified}
    listed = {member.raft_address for view in evidence.views if view.pod in pods for member in view.members}
    return tuple(sorted(frozenset().union(*counted.values()) - listed))


def _outside(evidence: _Evidence, leaders: Mapping[str, Leader]) -> tuple[str, ...]:
    """Members that a group's leader does not count, though they consider themselves part of it."""
    if evidence.standalone:
        return ()
    lists = _peers_by_leader(evidence.verified.values(), leaders)
    return tuple(
        sorted(
            evidence.name(member.address)
            for member in evidence.verified.values()
            if any(
                group in (member.leaders or ()) and member.raft_address not in peers for group, peers in lists.items()
            )
        )
    )


def _quorum(evidence: _Evidence, needed: int) -> bool:
    sees = {address: _seen_by(evidence, address) for address in evidence.verified}
    sizes = (sum(_see_each_other(evidence, sees, address, other) for other in sees) for address in sees)
    return max(sizes, default=0) >= needed


def _seen_by(evidence: _Evidence, address: str) -> dict[str, bool]:
    """The members in a member's list, and whether it reaches them."""
    pod = evidence.pods[address]
    view = next(view for view in evidence.views if view.pod == pod and view.members)
    return {member.address: member.state not in _UNSEEN for member in view.members}


def _see_each_other(evidence: _Evidence, sees: Mapping[str, Mapping[str, bool]], first: str, second: str) -> bool:
    """Whether two members see each other.

    Lists are static, and while a cluster grows or shrinks they differ. A member reports nothing about a peer in its
    raft groups that is not in its list: then the report of the other one alone decides.
    """
    pairs = ((first, second), (second, first))
    reports = [sees[member].get(peer) for member, peer in pairs]
    if None not in reports:
        return all(reports)
    known = all(evidence.verified[peer].raft_address in evidence.verified[member].peers for member, peer in pairs)
    return known and True in reports and False not in reports


# --- what is wrong with members -----------------------------------------------------------------------------------


def _missing(evidence: _Evidence, replicas: int) -> list[str]:
    problems = [f"{view.pod}: {view.error}" for view in evidence.views if view.error]
    for view in evidence.views:
        if view.error:
            continue
        if len(view.members) != replicas:
            problems.append(f"{view.pod} lists {len(view.members)} of {replicas} members")
        entry = evidence.own.get(view.pod)
        if entry is None:
            problems.append(f"{view.pod} does not list itself: its name or address is not in the list of members")
        elif entry.address not in evidence.verified:
            problems.append(f"{view.pod} {_why_not_verified(entry)}")
    asked = len({view.pod for view in evidence.views})
    if asked < replicas:
        problems.append(f"{asked} of {replicas} pods were asked")
    return problems


def _why_not_verified(entry: Member) -> str:
    if entry.state != UP:
        return f"reports itself as {entry.state or 'being in no state'}"
    if not entry.version:
        return "is UP without a version: it is still starting"
    return "is UP without raft metadata: no leader yet"


def _unseen(evidence: _Evidence) -> list[str]:
    """Members that answer the operator, but not their peers."""
    problems = []
    for address in sorted(evidence.verified):
        pods_by_state: dict[str, list[str]] = {}
        for view in evidence.views:
            for member in view.members:
                if member.address == address and member.state != UP and evidence.pods.get(address) != view.pod:
                    pods_by_state.setdefault(member.state, []).append(view.pod)
        for state, pods in sorted(pods_by_state.items()):
            problems.append(f"{evidence.name(address)} answers, but is {state} for {', '.join(dict.fromkeys(pods))}")
    return problems


def _version(evidence: _Evidence) -> str:
    versions = {member.version for member in evidence.verified.values() if member.version}
    return min(versions, key=_parts, default="")


def _parts(version: str) -> tuple[list[int], str]:
    numbers = (part for part in version.replace("-", ".").split("."))
    return [int(part) if part.isdecimal() and len(part) < 9 else -1 for part in numbers], version


def _member_status(
    evidence: _Evidence, address: str, leaders: Mapping[str, Leader], leader: Leader | None
) -> MemberStatus:
    pod = evidence.pods.get(address, "")
    entry = evidence.own.get(pod)
    entries = [member for member in _all_members(evidence.views) if member.address == address]
    worst = max(entries, key=lambda member: (_SEVERITY.get(member.state, 9), member.state))
    state = entry.state if entry is not None else "UNREACHABLE" if pod else worst.state
    versions = [member.version for member in entries if member.version]
    return MemberStatus(
        address=address,
        pod=pod,
        state=state,
        verified=address in evidence.verified,
        version=entry.version or "" if entry is not None else max(versions, key=_parts, default=""),
        role=_role(evidence, address, leader),
        leads=tuple(sorted(group for group, claim in leaders.items() if claim.address == worst.raft_address)),
    )


def _role(evidence: _Evidence, address: str, leader: Leader | None) -> Role:
    member = evidence.verified.get(address)
    if member is None:
        return ""
    if evidence.standalone:
        return "standalone"
    if leader is None:
        return ""
    return "leader" if leader.address == member.raft_address else "follower"
