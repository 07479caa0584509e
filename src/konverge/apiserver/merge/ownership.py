"""How a change moves the ownership of fields.

The writer that changes a field takes it from the other managers; the writer that removes one takes it from all of them.
An apply does neither silently: where another manager owns a field and the values differ, that is a conflict, unless the
apply is forced. Upstream: structured-merge-diff merge/update.go.
"""

from __future__ import annotations

from konverge.apiserver.merge import field_set
from konverge.apiserver.merge.field_set import FieldSet, Path
from konverge.apiserver.merge.managed_entries import Entry, Managers
from konverge.apiserver.merge.owner import Owner, Unconvertible, View
from konverge.apiserver.merge.typed import Comparison, compare
from konverge.apiserver.schema.node import Kind, TypeNode
from konverge.apiserver.strategy import Obj


class Conflicts(Exception):
    """Fields that other managers own and an apply would change."""

    def __init__(self, conflicts: list[tuple[Entry, Path]]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


def moved(
    managers: Managers, old: Obj, new: Obj, owner: Owner, myself: str, *, force: bool
) -> tuple[Managers, Comparison]:
    """The other managers' entries after a change from `old` to `new`, and the change. Raises Conflicts, Unconvertible.

    Upstream: Updater.update.
    """
    views = _Views(old, new, owner)
    change = views.change(owner.api_version)
    assert change is not None
    left: Managers = {}
    conflicts: list[tuple[Entry, Path]] = []
    for identity, entry in managers.items():
        if identity == myself:
            left[identity] = entry
            continue
        seen = views.change(entry.api_version)
        if seen is None:
            continue
        taken = field_set.intersection(entry.fields, field_set.union(seen.modified, seen.added))
        if taken and not force:
            conflicts += [(entry, path) for path in field_set.paths(taken)]
        fields = field_set.difference(field_set.difference(entry.fields, taken), seen.removed)
        if fields:
            left[identity] = entry._replace(fields=fields)
    if conflicts:
        raise Conflicts(sorted(conflicts, key=lambda conflict: conflict[0].identity))
    return left, change


class _Views:
    """The change as each version of the API sees it."""

    def __init__(self, old: Obj, new: Obj, owner: Owner) -> None:
        self._old = old
        self._new = new
        self._owner = owner
        self._seen: dict[str, Comparison | None] = {}

    def change(self, api_version: str) -> Comparison | None:
        if api_version not in self._seen:
            self._seen[api_version] = self._compare(api_version)
        return self._seen[api_version]

    def _compare(self, api_version: str) -> Comparison | None:
        owner = self._owner
        before, after = self._view(self._old, api_version, "old"), self._view(self._new, api_version, "new")
        if before is None or after is None:
            return None
        comparison = compare(after[0], before[1], after[1])
        if not owner.node.go and api_version != owner.api_version:  # upstream: GetResetFields of custom resources
            return comparison
        return Comparison(*(owner.may_own(fields) for fields in comparison))

    def _view(self, obj: Obj, api_version: str, which: str) -> View | None:
        try:
            return self._owner.view(obj, self._owner.api_version, api_version)
        except Unconvertible as error:
            raise error.during(f"failed to convert {which} object") from None


# upstream: Updater.reconcileManagedFieldsWithSchemaChanges, ReconcileFieldSetWithSchema (typed/reconcile_schema.go)
def reconciled(managers: Managers, live: Obj, owner: Owner) -> Managers:
    """Entries brought in line with a schema in which something has become atomic since they were written.

    Entries of versions that are not known any more are left out. Raises Unconvertible. Types of Go do not change.
    """
    if owner.node.go:
        return managers
    entries = {}
    for identity, entry in managers.items():
        seen = owner.view(live, owner.api_version, entry.api_version)
        if seen is not None:
            fields = _reconciled(seen[0], entry.fields)
            entries[identity] = entry if fields is entry.fields else entry._replace(fields=fields)
    return entries


def _reconciled(node: TypeNode, fields: FieldSet) -> FieldSet:
    out: FieldSet | None = None
    for element, below in fields.items():
        child = _child(node, element) if below else None
        if child is None:
            continue
        whole = child.atomic and child.kind is not Kind.ANY
        kept = {} if whole else _reconciled(child, below)
        if kept is not below:
            out = dict(fields) if out is None else out
            out[element] = kept
    return fields if out is None else out


def _child(node: TypeNode, element: str) -> TypeNode | None:
    if element.startswith("f:") and node.kind is not Kind.LIST:
        return node.child(element[2:])
    return node.element if element.startswith(("k:", "v:")) and node.kind is Kind.LIST else None
