"""Decides what several servers' lists of members amount to. Pure, and the order of the views does not matter.

What is believed, learned from real servers (2.1.1, 2.4.3, 3.0.3):

- `UP` without a version is only a guess, and a peer's entry may be stale for ten seconds and more: a member counts
  (`verified`) when it answered itself, and lists itself as UP with a version and raft metadata. A standalone server may
  have no raft metadata.
- Raft metadata is never cleared. After the loss of a majority the survivor still names the old leader, so the majority
  is counted among verified members that see each other, and a leader counts only when it is one of them.
- Every raft group elects on its own: different groups with different leaders are normal. Per group the highest term
  among verified members' own entries wins; members that name another leader have not caught up, or are cut off.
- Which groups there are depends on version and storage (`nacos_config` with embedded storage only): whatever the
  members have is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from konverge.operators.nacos.server import groups
from konverge.operators.nacos.server.model import DOWN, SUSPICIOUS, UP, Leader, Member, View, clean_host
from konverge.operators.nacos.server.verdict import Role, Standing, Verdict

LEADING_GROUP = "naming_persistent_service_v2"
"""Whose leader is called the leader of the cluster."""
_OLDER_GROUPS = ("naming_persistent_service", "nacos_config")
_UNSEEN = (DOWN, "ISOLATION")
_BADNESS = {UP: 1, "STARTING": 2, SUSPICIOUS: 3, "ISOLATION": 4, DOWN: 5}


def judge(views: Sequence[View], replicas: int) -> Verdict:
    """The verdict on a cluster of that many members. Give a view for every pod, with its error where it has one."""
    evidence = _gather(views, replicas)
    leaders, split, quarrels = _elect(evidence)
    counted = groups.counted(evidence.verified.values(), leaders)
    needed = _needed(evidence, counted, replicas)
    quorum = _quorum(evidence, needed)
    leader = _leading(leaders) if quorum else None
    outside = _outside(evidence, leaders)
    problems = [*_missing(evidence, replicas), *_unseen(evidence), *quarrels]
    problems += [f"{name} is not counted by the raft groups: it was taken out of them" for name in outside]
    if not quorum and evidence.views and not evidence.standalone:
        problems.append(f"no majority of {needed} verified members: raft writes fail")
    return Verdict(
        healthy=not problems,
        quorum=quorum,
        split=split,
        version=_version(evidence),
        leader=evidence.leading_pod(leader),
        leaders=leaders,
        standings=tuple(_standing(evidence, address, leaders, leader) for address in sorted(evidence.addresses)),
        surplus=_surplus(evidence, counted),
        outside=outside,
        problems=tuple(dict.fromkeys(problems)),
    )


@dataclass(frozen=True, slots=True)
class _Evidence:
    """All answers, put in order."""

    views: tuple[View, ...]
    own: Mapping[str, Member]
    """What pods say of themselves, by pod."""
    pods: Mapping[str, str]
    """By member address."""
    addresses: frozenset[str]
    verified: Mapping[str, Member]
    """Own entries that count, by member address."""
    standalone: bool

    def name(self, address: str) -> str:
        return self.pods.get(address, address)

    def name_of_raft(self, raft: str) -> str:
        found = (one.address for view in self.views for one in view.members if one.raft_address == raft)
        return self.name(min(found, default=raft))

    def leading_pod(self, leader: Leader | None) -> str:
        """Empty when the leader is not up."""
        led = leader is not None and any(one.raft_address == leader.address for one in self.verified.values())
        return self.name_of_raft(leader.address) if leader is not None and led else ""


def _gather(views: Sequence[View], replicas: int) -> _Evidence:
    ordered = tuple(sorted(views, key=lambda view: (view.asked, view.address, view.port, repr(view))))
    own: dict[str, Member] = {}
    pods: dict[str, str] = {}
    for view in ordered:
        entry = _own_entry(view)
        if entry is not None:
            own.setdefault(view.asked, entry)
            pods.setdefault(entry.address, view.asked)
    for view in ordered:  # a pod that did not answer is known by what its peers call it
        if view.asked not in own and (entry := _own_entry(view, _everybody(ordered))) is not None:
            pods.setdefault(entry.address, view.asked)
    standalone = replicas == 1
    return _Evidence(
        views=ordered,
        own=own,
        pods=pods,
        addresses=frozenset(one.address for one in _everybody(ordered)),
        verified={one.address: one for one in own.values() if _counts(one, standalone)},
        standalone=standalone,
    )


def _everybody(views: Iterable[View]) -> list[Member]:
    return [one for view in views for one in view.members]


def _own_entry(view: View, members: Iterable[Member] | None = None) -> Member | None:
    """The entry of the pod that was asked: by its address, or by the first label of its host name."""
    address, name = clean_host(view.address), view.asked.lower()
    candidates = [
        one
        for one in (view.members if members is None else members)
        if one.port == view.port and (one.host == address or one.host.partition(".")[0] == name)
    ]
    if not candidates and members is None and len(view.members) == 1:
        return view.members[0]  # a list of one can only be about the one that was asked
    return min(candidates, key=_order, default=None)


def _order(member: Member) -> tuple[str, int, bool, str]:
    return member.address, _BADNESS.get(member.state, 9), member.leaders is None, repr(member)


def _counts(member: Member, standalone: bool) -> bool:
    return member.state == UP and bool(member.version) and (standalone or bool(member.leaders))


# --- leaders ------------------------------------------------------------------------------------------------------


def _elect(evidence: _Evidence) -> tuple[dict[str, Leader], bool, list[str]]:
    """The leader of each group, whether there are several, and what is wrong with them."""
    leaders: dict[str, Leader] = {}
    split, problems = False, []
    groups = sorted({group for one in evidence.verified.values() for group in one.leaders or ()})
    for group in groups:
        claims = {
            at: one.leaders[group] for at, one in evidence.verified.items() if one.leaders and group in one.leaders
        }
        leaders[group] = best = max(claims.values(), key=lambda claim: (claim.term, bool(claim.address), claim.address))
        split = split or _is_split(evidence, claims, best)
        problems += _quarrels(evidence, group, claims, best)
    if not groups and evidence.verified and not evidence.standalone:
        problems.append("no raft group is known to any member")
    return leaders, split, problems


def _is_split(evidence: _Evidence, claims: Mapping[str, Leader], best: Leader) -> bool:
    same_term = {claim.address for claim in claims.values() if claim.term == best.term and claim.address}
    crowned = {address for address, claim in claims.items() if claim.address == evidence.verified[address].raft_address}
    return len(same_term) > 1 or len(crowned) > 1


def _quarrels(evidence: _Evidence, group: str, claims: Mapping[str, Leader], best: Leader) -> list[str]:
    if not best.address:
        return [f"{group} has no leader (term {best.term})"]
    name = evidence.name_of_raft(best.address)
    if best.address not in {one.raft_address for one in evidence.verified.values()}:
        return [f"{group} is led by {name} (term {best.term}), which is not up: an election is due"]
    others = [
        f"{evidence.name(address)} names {evidence.name_of_raft(claim.address) or 'nobody'} (term {claim.term})"
        for address, claim in sorted(claims.items())
        if claim.address != best.address
    ]
    return (
        [f"members disagree on the leader of {group}: {name} (term {best.term}), but {', '.join(others)}"]
        if others
        else []
    )


def _leading(leaders: Mapping[str, Leader]) -> Leader | None:
    for group in (LEADING_GROUP, *_OLDER_GROUPS):
        if group in leaders:
            return leaders[group]
    return leaders[min(leaders)] if leaders else None


# --- majority -----------------------------------------------------------------------------------------------------


def _needed(evidence: _Evidence, counted: groups.Groups, replicas: int) -> int:
    """While a cluster grows or shrinks, wish, lists and raft groups differ: the largest number is the safe one."""
    listed = (len(view.members) for view in evidence.views)
    return max([replicas, *listed, *(len(peers) for peers in counted.values())]) // 2 + 1


def _surplus(evidence: _Evidence, counted: groups.Groups) -> tuple[str, ...]:
    pods = {evidence.pods[address] for address in evidence.verified}
    listed = {one.raft_address for view in evidence.views if view.asked in pods for one in view.members}
    return tuple(sorted(frozenset().union(*counted.values()) - listed))


def _outside(evidence: _Evidence, leaders: Mapping[str, Leader]) -> tuple[str, ...]:
    if evidence.standalone:
        return ()
    found = groups.outside(evidence.verified.values(), leaders)
    return tuple(sorted(evidence.name(one.address) for one in found))


def _quorum(evidence: _Evidence, needed: int) -> bool:
    sees = {address: _seen_by(evidence, address) for address in evidence.verified}
    companies = (sum(_together(evidence, sees, address, other) for other in sees) for address in sees)
    return max(companies, default=0) >= needed


def _seen_by(evidence: _Evidence, address: str) -> dict[str, bool]:
    """Those in a member's list, and whether it reaches them."""
    pod = evidence.pods[address]
    view = next(view for view in evidence.views if view.asked == pod and view.members)
    return {one.address: one.state not in _UNSEEN for one in view.members}


def _together(evidence: _Evidence, sees: Mapping[str, Mapping[str, bool]], one: str, other: str) -> bool:
    """Whether two members see each other.

    Lists are static, and while a cluster grows or shrinks they differ. Of a peer in its raft groups that is not in its
    list a member says nothing: then the other's word has to do.
    """
    words = [sees[at].get(about) for at, about in ((one, other), (other, one))]
    if None not in words:
        return all(words)
    known = all(
        evidence.verified[about].raft_address in evidence.verified[at].peers
        for at, about in ((one, other), (other, one))
    )
    return known and True in words and False not in words


# --- what is wrong with members -----------------------------------------------------------------------------------


def _missing(evidence: _Evidence, replicas: int) -> list[str]:
    problems = [f"{view.asked}: {view.error}" for view in evidence.views if view.error]
    for view in evidence.views:
        if view.error:
            continue
        if len(view.members) != replicas:
            problems.append(f"{view.asked} lists {len(view.members)} of {replicas} members")
        entry = evidence.own.get(view.asked)
        if entry is None:
            problems.append(f"{view.asked} does not list itself: its name or address is not in the list of members")
        elif entry.address not in evidence.verified:
            problems.append(f"{view.asked} is {_shortcoming(entry)}")
    asked = len({view.asked for view in evidence.views})
    if asked < replicas:
        problems.append(f"{asked} of {replicas} pods were asked")
    return problems


def _shortcoming(entry: Member) -> str:
    if entry.state != UP:
        return f"{entry.state or 'in no state'} by its own word"
    return (
        "UP without a version: it is still starting" if not entry.version else "UP without raft metadata: no leader yet"
    )


def _unseen(evidence: _Evidence) -> list[str]:
    """Members that answer, but not their peers."""
    problems = []
    for address in sorted(evidence.verified):
        against: dict[str, list[str]] = {}
        for view in evidence.views:
            for one in view.members:
                if one.address == address and one.state != UP and evidence.pods.get(address) != view.asked:
                    against.setdefault(one.state, []).append(view.asked)
        for state, pods in sorted(against.items()):
            problems.append(f"{evidence.name(address)} answers, but is {state} for {', '.join(dict.fromkeys(pods))}")
    return problems


def _version(evidence: _Evidence) -> str:
    known = {one.version for one in evidence.verified.values() if one.version}
    return min(known, key=_parts, default="")


def _parts(version: str) -> tuple[list[int], str]:
    numbers = (part for part in version.replace("-", ".").split("."))
    return [int(part) if part.isdecimal() and len(part) < 9 else -1 for part in numbers], version


def _standing(evidence: _Evidence, address: str, leaders: Mapping[str, Leader], leader: Leader | None) -> Standing:
    pod = evidence.pods.get(address, "")
    entry = evidence.own.get(pod)
    heard = [one for one in _everybody(evidence.views) if one.address == address]
    worst = max(heard, key=lambda one: (_BADNESS.get(one.state, 9), one.state))
    state = entry.state if entry is not None else "UNREACHABLE" if pod else worst.state
    versions = [one.version for one in heard if one.version]
    return Standing(
        address=address,
        pod=pod,
        state=state,
        verified=address in evidence.verified,
        version=entry.version or "" if entry is not None else max(versions, key=_parts, default=""),
        role=_role(evidence, address, leader),
        leads=tuple(sorted(group for group, one in leaders.items() if one.address == worst.raft_address)),
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
