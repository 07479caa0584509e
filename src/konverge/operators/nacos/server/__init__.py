"""Nacos servers as the operator sees them: an HTTP client for every version's API, and a pure judgement of the answers.

    views = [View(pod=pod, address=ip, members=await servers.nodes(ip, identity=identity, timeout=5)), …]
    verdict = judge(views, replicas=3)

Pods that could not be asked are views too, with their `error`: a member counts only by its own answer.
"""

from __future__ import annotations

from konverge.operators.nacos.server.client import Connection, HttpNacosServers, over_sockets
from konverge.operators.nacos.server.judgement import LEADING_GROUP, judge
from konverge.operators.nacos.server.model import (
    PORT,
    RAFT_OFFSET,
    Identity,
    Leader,
    Member,
    NacosError,
    RaftGroup,
    Reason,
    Verdict,
    View,
)

__all__ = [
    "LEADING_GROUP",
    "PORT",
    "RAFT_OFFSET",
    "Connection",
    "HttpNacosServers",
    "Identity",
    "Leader",
    "Member",
    "NacosError",
    "RaftGroup",
    "Reason",
    "Verdict",
    "View",
    "judge",
    "over_sockets",
]
