"""Role-based access control over the stored roles and bindings.

Bindings are indexed by subject (a user or a group), for the cluster and for each namespace; roles are compiled when
they are first needed. Both follow the store: a change drops the compiled role, or replaces the binding in the index.
The index is built on first use: most servers only ever meet their administrator, for whom it is not needed.

Upstream: plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation/rule.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver.auth.rules import Attributes, Rule
from konverge.apiserver.auth.well_known import account_user
from konverge.apiserver.field_errors import aggregate
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.storage import Record
from konverge.apiserver.storage.records import Event
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.request.user import User
    from konverge.apiserver.storage import Store

GROUP = "rbac.authorization.k8s.io"


class RoleRef(msgspec.Struct, frozen=True):
    """A role that is referred to: `namespace` is "" for a ClusterRole."""

    kind: str
    namespace: str
    name: str


class Grant(msgspec.Struct, frozen=True):
    """A binding with one of its subjects."""

    order: tuple[str, int]
    role: RoleRef
    description: str
    """How reviews name the grant."""


class MissingRole(Exception):
    """A binding refers to a role that is not there."""


class Decision(msgspec.Struct):
    allowed: bool
    reason: str = ""


class Rbac:
    """The authorizer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._roles: dict[RoleRef, list[Rule]] = {}
        self._grants: dict[tuple[str, str], dict[str, Grant]] | None = None
        """By (namespace, subject), then by binding. A subject is `u:NAME` or `g:NAME`."""

    # --- questions

    def decide(self, user: User, attrs: Attributes) -> Decision:
        """Upstream: RBACAuthorizer.Authorize."""
        problems: list[str] = []
        for grant in self._grants_of(user, attrs.namespace):
            try:
                rules = self.rules(grant.role)
            except MissingRole as error:
                problems.append(str(error))
                continue
            for rule in rules:
                if rule.allows(attrs):
                    return Decision(True, f"RBAC: allowed by {grant.description}")
        return Decision(False, f"rbac: RBAC: {aggregate(problems)}" if problems else "")

    def rules_of(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """All rules that apply to a user in a namespace, and the errors met on the way. Upstream: RulesFor."""
        rules: list[Rule] = []
        problems: list[str] = []
        for grant in self._grants_of(user, namespace):
            try:
                rules += self.rules(grant.role)
            except MissingRole as error:
                problems.append(str(error))
        return rules, problems

    def rules(self, role: RoleRef) -> list[Rule]:
        rules = self._roles.get(role)
        if rules is None:
            self._indexed()  # from now on changes are followed, so what is compiled here stays up to date
            rules = self._roles[role] = self._compiled(role)
        return rules

    def _compiled(self, role: RoleRef) -> list[Rule]:
        table, key = ("roles", f"{role.namespace}/{role.name}") if role.kind == "Role" else ("clusterroles", role.name)
        record = self._store.durable_record(f"{GROUP}/{table}", key)  # one that is not on disk may yet be taken back
        if record is None:
            raise MissingRole(f"{role.kind.lower()}.{GROUP} {quote(role.name)} not found")
        return [Rule.of(rule) for rule in record.decode().get("rules") or ()]

    def _grants_of(self, user: User, namespace: str) -> Iterator[Grant]:
        """The grants of a user, each binding once: those of the cluster, then those of the namespace."""
        index = self._indexed()
        subjects = [f"u:{user.name}", *(f"g:{group}" for group in user.groups)]
        for scope in ("", namespace) if namespace else ("",):
            grants: dict[str, Grant] = {}
            for subject in subjects:
                for binding, grant in index.get((scope, subject), {}).items():
                    if binding not in grants or grant.order < grants[binding].order:
                        grants[binding] = grant
            yield from sorted(grants.values(), key=lambda grant: grant.order)

    # --- the index

    def _indexed(self) -> dict[tuple[str, str], dict[str, Grant]]:
        if self._grants is None:
            self._grants = {}
            for plural in ("clusterrolebindings", "rolebindings"):
                table = self._store.table(f"{GROUP}/{plural}")
                for record in table.at(self._store.durable):
                    self._bind(record)
                self._store.subscribe(table.name, self._binding_changed)
            for plural in ("clusterroles", "roles"):
                self._store.subscribe(f"{GROUP}/{plural}", self._role_changed)
        return self._grants

    def _role_changed(self, event: Event) -> None:
        record = event.shown
        kind = "Role" if record.namespace else "ClusterRole"
        self._roles.pop(RoleRef(kind, record.namespace, record.name), None)

    def _binding_changed(self, event: Event) -> None:
        if event.old is not None:
            self._unbind(event.old)
        if event.record is not None:
            self._bind(event.record)

    def _bind(self, record: Record) -> None:
        assert self._grants is not None
        for subject, grant in _grants(record):
            self._grants.setdefault((record.namespace, subject), {}).setdefault(record.name, grant)

    def _unbind(self, record: Record) -> None:
        assert self._grants is not None
        for subject, _ in _grants(record):
            grants = self._grants.get((record.namespace, subject))
            if grants is not None:
                grants.pop(record.name, None)
                if not grants:
                    del self._grants[record.namespace, subject]


def _grants(record: Record) -> Iterator[tuple[str, Grant]]:
    binding = record.decode()
    ref = binding.get("roleRef") or {}
    role = RoleRef(ref.get("kind", ""), record.namespace if ref.get("kind") == "Role" else "", ref.get("name", ""))
    kind, shown = ("RoleBinding", f"{record.name}/{record.namespace}") if record.namespace else ("", record.name)
    head = f"{kind or 'ClusterRoleBinding'} {quote(shown)} of {role.kind} {quote(role.name)} to "
    for position, subject in enumerate(binding.get("subjects") or ()):
        key = _subject(subject, record.namespace)
        if key:
            description = head + _described(subject, record.namespace)
            yield key, Grant((record.name, position), role, description)


def _subject(subject: Obj, namespace: str) -> str:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return f"u:{name}"
    if kind == "Group":
        return f"g:{name}"
    namespace = subject.get("namespace") or namespace
    return f"u:{account_user(namespace, name)}" if kind == "ServiceAccount" and namespace else ""


def _described(subject: Obj, namespace: str) -> str:
    """Upstream: describeSubject."""
    name = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{subject.get('kind')} {quote(name)}"
