"""Where the versions of Nacos keep what we ask for.

    2.0 – 2.5   v1 on the main port; v2 beside it from 2.2 on
    3.x         v3 on the main port, the console on 8080; v1 and v2 answer 410 Gone

The order of asking is v1, v2, v3, since v1 tells both lines apart by itself: it answers, or it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Question = Literal["nodes", "state", "readiness", "login", "admin", "raft"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The paths of one version. An empty path: this version has none."""

    name: str
    nodes: str
    state: str = ""
    readiness: str = ""
    """One that tells by the HTTP status or by the code in its body, on the main port."""
    login: str = ""
    admin: str = ""
    raft: str = ""
    """Operations on raft groups."""

    def path(self, question: Question) -> str:
        path: str = getattr(self, question)
        return path


V1 = Api(
    name="v1",
    nodes="/nacos/v1/core/cluster/nodes",
    state="/nacos/v1/console/server/state",
    readiness="/nacos/v1/console/health/readiness",
    login="/nacos/v1/auth/login",
    admin="/nacos/v1/auth/users/admin",
    raft="/nacos/v1/core/ops/raft",
)
V2 = Api(name="v2", nodes="/nacos/v2/core/cluster/node/list", readiness="/nacos/v2/console/health/readiness")
V3 = Api(
    name="v3",
    nodes="/nacos/v3/admin/core/cluster/node/list",
    state="/nacos/v3/admin/core/state",
    readiness="/nacos/v3/admin/core/state/readiness",
    login="/nacos/v3/auth/user/login",
    admin="/nacos/v3/auth/user/admin",
    raft="/nacos/v3/admin/core/ops/raft",
)
ALL = (V1, V2, V3)
ABSENT = frozenset((404, 405, 410, 501))
"""How servers say that they have no such path: 410 for an older API, 404 and 501 for one they never had."""
