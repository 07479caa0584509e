"""Authorization: masters may do everything, kubelets what the pods on their nodes need, others what RBAC grants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.apiserver import status
from konverge.apiserver.auth.node_authorizer import NodeAuthorizer
from konverge.apiserver.auth.rbac import Decision, Rbac
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.auth.well_known import MASTERS, kubelet_of
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.request.user import User

if TYPE_CHECKING:
    from konverge.apiserver.storage import Store

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ALLOWED = Decision(True)


class Authorization:
    """Decides whether a user may do something. Upstream: union of node and RBAC authorizers."""

    def __init__(self, store: Store, *, always_allow: bool = False) -> None:
        self.rbac = Rbac(store)
        self._nodes = NodeAuthorizer(store, self.rbac)
        self._always_allow = always_allow

    def decide(self, user: User, attrs: Attributes) -> Decision:
        if self._always_allow or MASTERS in user.groups:
            return _ALLOWED
        node = kubelet_of(user.name, user.groups)
        if not node:
            return self.rbac.decide(user, attrs)
        own = self._nodes.decide(node, attrs)
        if own.allowed:
            return own
        bound = self.rbac.decide(user, attrs)
        return bound if bound.allowed else Decision(False, "\n".join(filter(None, (own.reason, bound.reason))))

    def allowed(self, user: User, attrs: Attributes) -> bool:
        return self.decide(user, attrs).allowed

    def check(self, user: User, attrs: Attributes) -> None:
        """Raises 403 unless the user may."""
        decision = self.decide(user, attrs)
        if not decision.allowed:
            raise forbidden(user, attrs, decision.reason)


def attributes_of(info: RequestInfo) -> Attributes:
    if not info.is_resource:
        return Attributes(info.verb, path=info.path, is_resource=False)
    return Attributes(
        info.verb, info.group, info.plural, info.subresource, info.namespace, info.name, selector=info.field_selector
    )


def forbidden(user: User, attrs: Attributes, reason: str) -> status.ApiError:
    """Upstream: ForbiddenStatusError, forbiddenMessage (apiserver/pkg/endpoints/handlers/responsewriters)."""
    message = f"User {quote(user.name)} cannot {attrs.verb} "
    if not attrs.is_resource:
        message += f"path {quote(attrs.path)}"
    else:
        where = f"in the namespace {quote(attrs.namespace)}" if attrs.namespace else "at the cluster scope"
        message += f"resource {quote(attrs.combined)} in API group {quote(attrs.group)} {where}"
    message = message.translate(_ESCAPES)
    error = status.forbidden(attrs.group, attrs.resource, attrs.name, f"{message}: {reason}" if reason else message)
    error.headers["X-Content-Type-Options"] = "nosniff"
    return error
