"""Whom the raft groups of a cluster count, whatever its lists of members say. Pure.

Only a group's leader can be believed. A follower's word is as old as its routing table was when it last began to follow
somebody: on a real 2.1.1 it went on naming a server for as long as anybody looked, after that server had been removed
while it led the group. Where the leader does not answer, everybody who is named counts: the safe number is the largest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from konverge.operators.nacos.server.model import Leader, Member

Groups = Mapping[str, frozenset[str]]


def counted(members: Collection[Member], leaders: Mapping[str, Leader]) -> Groups:
    """By group, the raft addresses that it consists of."""
    words = _words_of_leaders(members, leaders)
    named = {group for one in members for group in one.groups}
    everybody = {group: frozenset().union(*(one.groups.get(group, ()) for one in members)) for group in named}
    return everybody | words


def outside(members: Collection[Member], leaders: Mapping[str, Leader]) -> list[Member]:
    """Those that a group's leader does not count, though they take themselves for members of it."""
    words = _words_of_leaders(members, leaders)
    return [
        one
        for one in members
        if any(group in (one.leaders or ()) and one.raft_address not in peers for group, peers in words.items())
    ]


def _words_of_leaders(members: Collection[Member], leaders: Mapping[str, Leader]) -> dict[str, frozenset[str]]:
    return {
        group: peers
        for one in members
        for group, peers in one.groups.items()
        if peers and group in leaders and leaders[group].address == one.raft_address
    }
