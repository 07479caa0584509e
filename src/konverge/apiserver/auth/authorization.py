"""Authorization: masters may do all, kubelets what the pods on their nodes need, everybody what is bound to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.apiserver import status
from konverge.apiserver.auth.node_authorizer import NodeAuthorizer
from konverge.apiserver.auth.rbac import Decision, Rbac
from konverge.apiserver.auth.rules import Ask
from konverge.apiserver.auth.well_known import MASTERS, kubelet_of
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.request.user import User

if TYPE_CHECKING:
    from konverge.apiserver.storage import Store

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ALLOWED = Decision(True)


class Authorization:
    """Tells whether a user may do something."""

    def __init__(self, store: Store, *, always_allow: bool = False) -> None:
        self.rbac = Rbac(store)
        self._nodes = NodeAuthorizer(store, self.rbac)
        self._always_allow = always_allow

    def decide(self, user: User, ask: Ask) -> Decision:
        if self._always_allow or MASTERS in user.groups:
            return _ALLOWED
        node = kubelet_of(user.name, user.groups)
        if not node:
            return self.rbac.decide(user, ask)
        own = self._nodes.decide(node, ask)
        if own.allowed:
            return own
        bound = self.rbac.decide(user, ask)
        return bound if bound.allowed else Decision(False, "\n".join(filter(None, (own.reason, bound.reason))))

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
    return Ask(
        info.verb, info.group, info.plural, info.subresource, info.namespace, info.name, selector=info.field_selector
    )


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
