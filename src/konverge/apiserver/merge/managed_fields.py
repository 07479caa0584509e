"""managedFields of a create, an update or a patch.

What the writer changed since the stored object becomes its own. Tracking starts with the creation of an object; an
object that has lost it (the client may reset managedFields) is not tracked again before its first apply.

Upstream: apimachinery/pkg/util/managedfields/internal/fieldmanager.go.
"""

from __future__ import annotations

from contextlib import suppress

from konverge.apiserver.merge import creation, field_set
from konverge.apiserver.merge.elements import TypedError
from konverge.apiserver.merge.managed_entries import (
    UPDATE,
    Entry,
    EntryError,
    Managers,
    decode,
    encode,
    encode_entry,
    is_reset,
)
from konverge.apiserver.merge.owner import Owner, Unconvertible
from konverge.apiserver.merge.ownership import moved, reconciled
from konverge.apiserver.strategy import Obj

MOST_UPDATERS = 10
"""More entries of updates than this are merged into `ancient-changes`, oldest first.

Upstream: DefaultMaxUpdateManagers.
"""

# Never owned: identity, and what the server sets. Upstream: stripSet (stripmeta.go).
_STRIPPED = field_set.of(
    *((f"f:{name}",) for name in creation.IDENTITY),
    ("f:metadata",),
    *(("f:metadata", f"f:{name}") for name in creation.SERVER_SET),
)
_CURRENT = "current-operation"


def update(live: Obj | None, new: Obj, owner: Owner) -> None:  # upstream: FieldManager.UpdateNoErrors
    """Set `new.metadata.managedFields` for a write by `owner`; `live` is None for a creation."""
    metadata = new["metadata"]
    if live is None and "managedFields" not in metadata:
        _created(new, owner)
        return
    managers = _present(live, new, owner)
    given = metadata.pop("managedFields", None)
    if live is not None and not managers:
        return
    try:
        managers = tracked(managers, live, new, owner)
    except (TypedError, Unconvertible):
        # It does not conform to its type, or has no form in another version: keep what is known rather than lose it.
        kept = given if live is None else live["metadata"].get("managedFields")
        if kept:
            metadata["managedFields"] = kept
        return
    if managers:
        metadata["managedFields"] = encode(managers)


def _created(new: Obj, owner: Owner) -> None:
    try:
        fields = creation.owned(new, owner)
    except TypedError:
        return
    if fields:
        manager = owner.manager or "unknown"
        entry = Entry(manager, UPDATE, owner.api_version, owner.subresource, owner.now, fields)
        new["metadata"]["managedFields"] = [encode_entry(entry)]


def _present(live: Obj | None, new: Obj, owner: Owner) -> Managers:
    """The entries before this write. A client may write them directly, but not through a subresource."""
    stored = live["metadata"].get("managedFields") if live is not None else None
    given = new["metadata"].get("managedFields")
    if not owner.subresource and given is not None:
        if is_reset(given):
            return {}
        with suppress(EntryError):
            if managers := decode(given):
                return managers
    try:
        return decode(stored)
    except EntryError:
        return {}


def tracked(managers: Managers, live: Obj | None, new: Obj, owner: Owner) -> Managers:
    """The entries after an update. Raises TypedError and Unconvertible. Upstream: Updater.Update."""
    before = creation.blank(owner) if live is None else bare(live)
    managers = reconciled(managers, before, owner)
    left, change = moved(managers, before, bare(new), owner, _CURRENT, force=True)
    own = stripped(owner.may_own(field_set.union(change.modified, change.added)))
    if own:
        entry = Entry(owner.manager or "unknown", UPDATE, owner.api_version, owner.subresource, owner.now, own)
        previous = left.get(entry.identity)
        if previous is not None:
            entry = entry._replace(fields=field_set.union(own, previous.fields))
        left[entry.identity] = entry
    return _capped(left)


def stripped(fields: field_set.FieldSet) -> field_set.FieldSet:
    """Without what is never owned."""
    return field_set.difference(fields, _STRIPPED)


def bare(obj: Obj) -> Obj:
    """An object without its managedFields."""
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _capped(managers: Managers) -> Managers:  # upstream: capManagersManager.capUpdateManagers (capmanagers.go)
    """Merge the oldest updates of a version into one entry until there are few enough."""
    updates = [identity for identity, entry in managers.items() if entry.operation == UPDATE]
    excess = len(updates) - MOST_UPDATERS
    if excess <= 0:
        return managers
    updates.sort(key=lambda identity: (managers[identity].time or "", identity))
    first_of_version: dict[str, str] = {}
    merged: dict[str, list[field_set.FieldSet]] = {}
    for identity in updates:
        if excess <= 0:
            break
        entry = managers[identity]
        bucket = Entry("ancient-changes", UPDATE, entry.api_version, "", entry.time, entry.fields)
        first = first_of_version.setdefault(entry.api_version, identity)
        if first == identity:
            continue
        if identity == bucket.identity:  # an older entry came first: upstream merges it into itself and deletes it
            merged.pop(identity, None)
            del managers[identity]
            excess -= 1
            continue
        if bucket.identity not in merged:
            merged[bucket.identity] = [(managers.get(bucket.identity) or managers.pop(first)).fields]
        merged[bucket.identity].append(entry.fields)
        managers[bucket.identity] = bucket
        del managers[identity]
        excess -= 1
    for identity, sets in merged.items():
        managers[identity] = managers[identity]._replace(fields=field_set.union_all(sets))
    return managers
