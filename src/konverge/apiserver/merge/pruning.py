"""What an apply removes: what its manager applied last time, does not apply any more, and no other manager owns.

The last configuration may have been of another version of the API than this one, and so may be the entries of the other
managers: each set of fields is held against the object in its own version. What a conversion loses on the way is lost,
as upstream. Upstream: Updater.prune, addBackOwnedItems, addBackDanglingItems (structured-merge-diff merge/update.go).
"""

from __future__ import annotations

from konverge.apiserver.merge import field_set
from konverge.apiserver.merge.combine import without
from konverge.apiserver.merge.field_set import FieldSet
from konverge.apiserver.merge.managed_entries import Entry, Managers
from konverge.apiserver.merge.owner import Owner, Unconvertible, View
from konverge.apiserver.merge.typed import fields_of
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Obj


def pruned(merged: Obj, managers: Managers, last: Entry, owner: Owner) -> Obj:
    """Without what the manager applied last time, unless a manager owns it now. Raises Unconvertible."""
    version = last.api_version
    seen = _view(owner, merged, owner.api_version, version, "merged object to last applied version")
    if seen is None:
        return merged
    node, whole = seen
    last_fields = field_set.with_named(last.fields, node)
    try:
        left, left_version = _with_owned(whole, _without(node, whole, last_fields), version, managers, owner)
    except Unconvertible as error:
        raise error.during("failed add back owned items") from None
    try:
        back = _view(owner, left, left_version, version, "pruned object to last applied version")
    except Unconvertible as error:
        raise error.during("failed add back dangling items") from None
    if back is not None:
        gone = field_set.difference(_everything(node, whole), _everything(node, back[1]))
        whole = _without(node, whole, field_set.intersection(gone, last_fields))
    result = owner.view(whole, version, owner.api_version)
    assert result is not None
    return result[1]


def _with_owned(merged: Obj, left: Obj, version: str, managers: Managers, owner: Owner) -> tuple[Obj, str]:
    """What is left, together with what managers own, and the version in which it comes out."""
    owned: dict[str, FieldSet] = {}
    for entry in managers.values():
        owned[entry.api_version] = field_set.union(owned.get(entry.api_version, {}), entry.fields)
    # The version of what is left comes first: a conversion may need a field that is added back.
    for other in sorted(owned, key=lambda name: (name != version, name)):
        whole = _view(owner, merged, version, other, f"merged object at version {other}")
        rest = _view(owner, left, version, other, f"pruned object at version {other}")
        if whole is None or rest is None:
            continue
        node, merged = whole
        version = other
        kept = field_set.union(_everything(node, rest[1]), field_set.with_named(owned[other], node))
        left = _without(node, merged, field_set.difference(_everything(node, merged), kept))
    return left, version


def _everything(node: TypeNode, obj: Obj) -> FieldSet:
    return field_set.with_named(fields_of(node, obj), node)


def _without(node: TypeNode, obj: Obj, fields: FieldSet) -> Obj:
    result: Obj = without(node, obj, fields) or {}
    return result


def _view(owner: Owner, obj: Obj, source: str, target: str, what: str) -> View | None:
    try:
        return owner.view(obj, source, target)
    except Unconvertible as error:
        raise error.during(f"failed to convert {what}") from None
