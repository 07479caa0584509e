"""Role-based access control over the stored roles and bindings.

Bindings are indexed by subject (a user or a group), for the cluster and for each namespace; roles are compiled when
they are first needed. Both follow the store: a change drops the compiled role, or replaces the binding in the index.
The index is built on first use: most servers only ever meet their administrator, for whom it is not needed.

Upstream: plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation/rule.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver.auth.rules import Attributes, Rule
from konverge.apiserver.auth.well_known import account_user
from konverge.apiserver.field_errors import aggregate
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.storage import Record
from konverge.apiserver.storage.records import Event

if TYPE_CHECKING:
    from konverge.apiserver.request.user import User
    from konverge.apiserver.storage import Store

GROUP = "rbac.authorization.k8s.io"


class RoleRef(msgspec.Struct, frozen=True):
    """A role that is referred to: `namespace` is "" for a ClusterRole."""

    kind: str
    namespace: str
    name: str


class Subject(msgspec.Struct, frozen=True, gc=False):
    """A subject of a binding, as it stands there."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class _Binding(msgspec.Struct, frozen=True):
    """What counts of a stored binding. It is decoded as this: a binding may have ten thousands of subjects."""

    role: dict[str, str] = msgspec.field(default_factory=dict, name="roleRef")
    subjects: tuple[Subject, ...] | None = None


class _Role(msgspec.Struct, frozen=True):
    """What counts of a stored role: without rules it says `null`, as an aggregated one does until it is filled."""

    rules: list[Rule] | None = None


class Grant(msgspec.Struct, frozen=True):
    """A binding with one of its subjects."""

    order: tuple[str, int]
    """The name of the binding, and which of its subjects this is."""
    role: RoleRef
    namespace: str
    """Of the binding; "" for one of the cluster."""
    subject: Subject

    @property
    def description(self) -> str:
        """How reviews name the grant. Upstream: describeSubject."""
        binding, subject, name = self.order[0], self.subject, self.subject.name
        kind, shown = (
            ("RoleBinding", f"{binding}/{self.namespace}") if self.namespace else ("ClusterRoleBinding", binding)
        )
        if subject.kind == "ServiceAccount":
            name = f"{name}/{subject.namespace or self.namespace}"
        bound = f"{kind} {quote(shown)} of {self.role.kind} {quote(self.role.name)}"
        return f"{bound} to {subject.kind} {quote(name)}"


class MissingRole(Exception):
    """A binding refers to a role that is not there."""


class Decision(msgspec.Struct):
    allowed: bool
    reason: str = ""


_Grants = dict[tuple[str, str], dict[str, dict[str, Grant]]]
"""By ("u" for users or "g" for groups, namespace), then by the name of the subject, then by binding."""
_ROLES_AT_ONCE = 256


class Rbac:
    """The authorizer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._roles: dict[RoleRef, list[Rule]] = {}
        self._grants: _Grants | None = None

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

    async def rules_of(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """All rules that apply to a user in a namespace, and the errors met on the way. Upstream: RulesFor.

        There may be thousands of roles: others take their turn in between.
        """
        rules: list[Rule] = []
        problems: list[str] = []
        for number, grant in enumerate(self._grants_of(user, namespace), 1):
            if not number % _ROLES_AT_ONCE:
                await asyncio.sleep(0)
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
        return msgspec.json.decode(record.data, type=_Role).rules or []

    def _grants_of(self, user: User, namespace: str) -> Iterator[Grant]:
        """The grants of a user, each binding once: those of the cluster, then those of the namespace."""
        index = self._indexed()
        for scope in ("", namespace) if namespace else ("",):
            users, groups = index.get(("u", scope), {}), index.get(("g", scope), {})
            bound = [groups[group] for group in user.groups if group in groups]
            grants: dict[str, Grant] = {}
            for of_subject in [users.get(user.name, {}), *bound]:
                for binding, grant in of_subject.items():
                    if binding not in grants or grant.order < grants[binding].order:
                        grants[binding] = grant
            yield from sorted(grants.values(), key=lambda grant: grant.order)

    # --- the index

    def _indexed(self) -> _Grants:
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
        for kind, subject, grant in _grants(record):
            subjects = self._grants.setdefault((kind, record.namespace), {})
            subjects.setdefault(subject, {}).setdefault(record.name, grant)

    def _unbind(self, record: Record) -> None:
        assert self._grants is not None
        for kind, subject, _ in _grants(record):
            subjects = self._grants.get((kind, record.namespace), {})
            grants = subjects.get(subject)
            if grants is not None:
                grants.pop(record.name, None)
                if not grants:
                    del subjects[subject]


def _grants(record: Record) -> Iterator[tuple[str, str, Grant]]:
    """(whether users or groups, name of the subject, grant) of a binding."""
    binding = msgspec.json.decode(record.data, type=_Binding)
    kind, namespace = binding.role.get("kind", ""), record.namespace
    role = RoleRef(kind, namespace if kind == "Role" else "", binding.role.get("name", ""))
    for position, subject in enumerate(binding.subjects or ()):
        if subject.kind == "ServiceAccount":
            of = subject.namespace or namespace
            place = ("u", account_user(of, subject.name)) if of else None
        else:
            letter = _LETTERS.get(subject.kind)
            place = (letter, subject.name) if letter else None
        if place is not None:
            yield *place, Grant((record.name, position), role, namespace, subject)


_LETTERS = {"User": "u", "Group": "g"}
