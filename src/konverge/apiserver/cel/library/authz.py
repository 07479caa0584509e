"""The authorizer of admission expressions: `authorizer.group('').resource('pods').check('create').allowed()`.

Permissions are not decided here: the caller that evaluates an expression passes an `Authorizer` with a function that
decides. Upstream: apiserver/pkg/cel/library/authz.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import msgspec

_SA_GROUPS = ("system:serviceaccounts", "system:authenticated")


@dataclass(frozen=True, slots=True)
class Decision:
    cel_name: ClassVar[str] = "kubernetes.authorization.Decision"
    allowed: bool
    reason: str = ""
    error: str = ""


class Query(msgspec.Struct, frozen=True):
    """A user and a verb on a path or on a resource."""

    user: str
    groups: tuple[str, ...]
    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


Decide = Callable[[Query], Decision]


@dataclass(frozen=True, slots=True)
class Authorizer:
    cel_name: ClassVar[str] = "kubernetes.authorization.Authorizer"
    user: str
    groups: tuple[str, ...]
    decide: Decide = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Check:
    query: Query
    decide: Decide = field(compare=False)


class PathCheck(_Check):
    cel_name: ClassVar[str] = "kubernetes.authorization.PathCheck"


class GroupCheck(_Check):
    cel_name: ClassVar[str] = "kubernetes.authorization.GroupCheck"


class ResourceCheck(_Check):
    cel_name: ClassVar[str] = "kubernetes.authorization.ResourceCheck"


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    groups = (*_SA_GROUPS[:1], f"system:serviceaccounts:{namespace}", *_SA_GROUPS[1:])
    return replace(authorizer, user=f"system:serviceaccount:{namespace}:{name}", groups=groups)


def _refine(member: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def refine(check: ResourceCheck, value: str) -> ResourceCheck:
        changes: dict[str, Any] = {member: value}
        return replace(check, query=msgspec.structs.replace(check.query, **changes))

    return refine


def _check(check: _Check, verb: str) -> Decision:
    return check.decide(msgspec.structs.replace(check.query, verb=verb))


def _selector(check: ResourceCheck, text: str) -> ResourceCheck:
    return check  # RBAC, the only authorizer here, does not look at selectors


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "authorizer_path": lambda a, path: PathCheck(Query(a.user, a.groups, "", path=path), a.decide),
    "authorizer_group": lambda a, group: GroupCheck(Query(a.user, a.groups, "", group=group), a.decide),
    "authorizer_serviceaccount": _service_account,
    "groupcheck_resource": lambda check, name: ResourceCheck(
        msgspec.structs.replace(check.query, resource=name), check.decide
    ),
    "resourcecheck_subresource": _refine("subresource"),
    "resourcecheck_namespace": _refine("namespace"),
    "resourcecheck_name": _refine("name"),
    "authorizer_fieldselector": _selector,
    "authorizer_labelselector": _selector,
    "pathcheck_check": _check,
    "resourcecheck_check": _check,
    "decision_allowed": lambda decision: decision.allowed,
    "decision_reason": lambda decision: decision.reason,
    "decision_error": lambda decision: decision.error,
    "decision_errored": lambda decision: bool(decision.error),
}
