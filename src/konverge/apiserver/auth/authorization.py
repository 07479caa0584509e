"""Authorization: masters may do all, kubelets what their role says, everybody else what is bound to them.

The real server's node authorizer also looks at which pods run on a kubelet's node before it hands out secrets; here
kubelets get the whole of the `system:node` role. Who simulates nodes trusts them.
"""

from __future__ import annotations

from konverge.apiserver import status
from konverge.apiserver.auth.names import MASTERS, NODES, node_of
from konverge.apiserver.auth.rbac import Decision, MissingRole, Rbac, RoleRef
from konverge.apiserver.auth.rules import Ask
from konverge.apiserver.fielderrors import quote
from konverge.apiserver.http.request_info import RequestInfo
from konverge.apiserver.http.seams import User

_NODE_ROLE = RoleRef("ClusterRole", "", "system:node")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ALLOWED = Decision(True)


class Authorization:
    """Tells whether a user may do something."""

    def __init__(self, rbac: Rbac, *, always_allow: bool = False) -> None:
        self.rbac = rbac
        self._always_allow = always_allow

    def decide(self, user: User, ask: Ask) -> Decision:
        if self._always_allow or MASTERS in user.groups:
            return _ALLOWED
        if NODES in user.groups and node_of(user.name) and self._node_may(ask):
            return _ALLOWED
        return self.rbac.decide(user, ask)

    def _node_may(self, ask: Ask) -> bool:
        try:
            return any(rule.allows(ask) for rule in self.rbac.rules(_NODE_ROLE))
        except MissingRole:
            return False

    def allowed(self, user: User, ask: Ask) -> bool:
        return self.decide(user, ask).allowed

    def check(self, user: User, ask: Ask) -> None:
        """Raises 403 unless the user may."""
        decision = self.decide(user, ask)
        if not decision.allowed:
            raise forbidden(user, ask, decision.reason)


def ask_of(info: RequestInfo) -> Ask:
    if not info.is_resource:
        return Ask(info.verb, path=info.path, is_resource=False)
    return Ask(info.verb, info.group, info.plural, info.subresource, info.namespace, info.name)


def forbidden(user: User, ask: Ask, reason: str) -> status.ApiError:
    """What is refused to whom; a reason follows if there is one."""
    words = f"User {quote(user.name)} cannot {ask.verb} "
    if not ask.is_resource:
        words += f"path {quote(ask.path)}"
    else:
        where = f"in the namespace {quote(ask.namespace)}" if ask.namespace else "at the cluster scope"
        words += f"resource {quote(ask.combined)} in API group {quote(ask.group)} {where}"
    words = words.translate(_ESCAPES)
    error = status.forbidden(ask.group, ask.resource, ask.name, f"{words}: {reason}" if reason else words)
    error.headers["X-Content-Type-Options"] = "nosniff"
    return error
