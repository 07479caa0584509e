"""Users grant only what they have: the check on writes of roles and bindings, the last of the mutating plugins.

A user who may `escalate` a role, or `bind` it, is free to do so; others must hold every right that they give.
Upstream: pkg/registry/rbac/*/policybased/storage.go, escalation_check.go.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from konverge.apiserver import aside, status
from konverge.apiserver.admission.plugin import Kind, Mutating, Step
from konverge.apiserver.auth.authorization import Authorization
from konverge.apiserver.auth.coverage import TooManyParts, missing
from konverge.apiserver.auth.rbac import GROUP, MissingRole, RoleRef
from konverge.apiserver.auth.rules import Attributes, Rule, merged, quoted
from konverge.apiserver.auth.well_known import MASTERS
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.apiserver.request.user import User

_EVERYTHING = [Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",))]
_RULE = 100
"""Bytes of a rule, about: checking it takes as long as a text of that size."""
_COLLECTED = ("ownerReferences", "finalizers", "managedFields", "selfLink")
"""Metadata that the garbage collector changes: it must be able to, whatever rights the role holds. selfLink counts for
nothing."""


class Grants(Mutating):
    """Checks writes of `rbac.authorization.k8s.io`."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    def admit(self, kind: Kind) -> Step | None:
        return self._check if kind.group == GROUP and kind.operation in ("CREATE", "UPDATE") else None

    def _check(self, request: AdmissionRequest) -> Awaitable[None] | None:
        if request.obj is None or MASTERS in request.user.groups or _collector_only(request.obj, request.old):
            return None
        if request.served.resource.plural in ("roles", "clusterroles"):
            return self._check_role(request, request.obj)
        return self._check_binding(request, request.obj)

    async def _check_role(self, request: AdmissionRequest, role: Obj) -> None:
        """Upstream: RoleEscalationAuthorized, hasAggregationRule."""
        info, plural = request.call.info, request.served.resource.plural
        escalate = Attributes("escalate", GROUP, plural, "", info.namespace, info.name)
        if self._authorization.allowed(request.user, escalate):
            return
        granted = await aside.run(request.size, lambda: [Rule.of(rule) for rule in role.get("rules") or ()])
        await self._check_held(request, granted)
        aggregates = _aggregates(role) or _aggregates(request.old or {})
        if aggregates and await self._problem(request.user, request.namespace, _EVERYTHING):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise status.forbidden(GROUP, plural, role["metadata"].get("name", ""), why)

    async def _check_binding(self, request: AdmissionRequest, binding: Obj) -> None:
        """Upstream: BindingAuthorized."""
        ref = binding.get("roleRef") or {}
        kind, name, namespace = ref.get("kind", ""), ref.get("name", ""), request.namespace
        if kind not in ("Role", "ClusterRole"):
            raise status.plain_500(f"unsupported role reference kind: {quote(kind)}")
        bind = Attributes("bind", ref.get("apiGroup", ""), f"{kind.lower()}s", "", namespace, name)
        if self._authorization.allowed(request.user, bind):
            return
        try:
            rules = self._authorization.rbac.rules(RoleRef(kind, namespace if kind == "Role" else "", name))
        except MissingRole:
            raise status.not_found(GROUP, request.served.resource.plural, name) from None
        await self._check_held(request, rules)

    async def _check_held(self, request: AdmissionRequest, rules: list[Rule]) -> None:
        problem = await self._problem(request.user, request.namespace, rules)
        if problem:
            name = request.new["metadata"].get("name", "")
            raise status.forbidden(GROUP, request.served.resource.plural, name, problem)

    async def _problem(self, user: User, namespace: str, rules: list[Rule]) -> str:
        """Upstream: ConfirmNoEscalation (pkg/registry/rbac/validation)."""
        held, problems = await self._authorization.rbac.rules_of(user, namespace)
        size = _RULE * (len(held) + len(rules))
        try:
            lines = await aside.run(size, _lacking, held, rules)
        except TooManyParts as error:
            return str(error)
        if not lines:
            return ""
        who = f"user {quote(user.name)} (groups={quoted(user.groups)})"
        message = f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"
        return f"{message}; resolution errors: [{' '.join(problems)}]" if problems else message


def _lacking(held: list[Rule], granted: list[Rule]) -> str:
    """The rights that are granted and not held, a line for each rule."""
    aside.expect(sum(len(rule.verbs) * len(rule.resources) * len(rule.api_groups) for rule in granted))
    return "\n".join(sorted({str(rule) for rule in merged(missing(held, granted))}))


def _aggregates(role: Obj) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _collector_only(obj: Obj, old: Obj | None) -> bool:
    """Whether an update changes nothing but what the garbage collector changes. Upstream: IsOnlyMutatingGCFields."""
    return old is not None and _without_collected(obj) == _without_collected(old)


def _without_collected(obj: Obj) -> Obj:
    kept = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTED}
    return {**obj, "metadata": kept}
