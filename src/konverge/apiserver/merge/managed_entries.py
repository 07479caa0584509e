"""`metadata.managedFields`: reading and writing its entries.

Inside, an entry is known by its identity: manager, operation and subresource, and for updates the version too (an
applier keeps its one entry when it changes versions). The identity is a JSON text, since it is also what entries and
conflicts are sorted by. Upstream: apimachinery/pkg/util/managedfields/internal/managedfields.go.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from konverge.apiserver.equality import equal
from konverge.apiserver.go.json import encode as go_json
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.merge.field_set import FieldSet, FieldSetError, canonical, ordered
from konverge.apiserver.strategy import Obj
from konverge.objects.text_cache import remembered

UPDATE, APPLY = "Update", "Apply"


class Entry(NamedTuple):
    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str | None
    fields: FieldSet

    @property
    def identity(self) -> str:
        version = self.api_version if self.operation == UPDATE else ""
        return _identity(self.manager, self.operation, version, self.subresource)

    def __str__(self) -> str:
        """How a conflict names the manager. Upstream: printManager (managedfields/internal/conflict.go)."""
        shown = quote(self.manager)
        if self.subresource:
            shown += f" with subresource {quote(self.subresource)}"
        return f"{shown} using {self.api_version}" if self.operation == UPDATE else shown


@remembered(1024)
def _identity(*values: str) -> str:
    names = ("manager", "operation", "apiVersion", "subresource")
    return "{" + ",".join(f'"{name}":{go_json(text)}' for name, text in zip(names, values, strict=True) if text) + "}"


Managers = dict[str, Entry]


class EntryError(ValueError):
    """managedFields that cannot be read."""


def decode(entries: Any) -> Managers:
    """The entries by identity. Raises EntryError."""
    managers: Managers = {}
    for index, raw in enumerate(entries or ()):
        entry = _decode_entry(index, raw)
        managers[entry.identity] = entry
    return managers


def _decode_entry(index: int, raw: Any) -> Entry:
    operation, version, fields_type = (raw.get(name, "") for name in ("operation", "apiVersion", "fieldsType"))
    if operation not in (APPLY, UPDATE):
        raise EntryError("operation must be `Apply` or `Update`")
    if not version:
        raise EntryError("apiVersion must not be empty")
    if not fields_type:
        raise EntryError(f"missing fieldsType in managed fields entry {index}")
    if fields_type != "FieldsV1":
        raise EntryError(f'invalid fieldsType "{fields_type}" in managed fields entry {index}')
    try:
        fields = canonical(raw.get("fieldsV1") or {})
    except FieldSetError as error:
        raise EntryError(f"error decoding set: {error}") from None
    return Entry(raw.get("manager", ""), operation, version, raw.get("subresource", ""), raw.get("time"), fields)


def encode(managers: Managers) -> list[Obj]:
    """managedFields as they are written: appliers first, then by time. Upstream: sortEncodedManagedFields."""
    entries = sorted(
        managers.values(), key=lambda e: (e.operation, e.time or "", e.manager, e.api_version, e.subresource)
    )
    return [encode_entry(entry) for entry in entries]


def encode_entry(entry: Entry) -> Obj:
    out: Obj = {}
    if entry.manager:
        out["manager"] = entry.manager
    out["operation"] = entry.operation
    out["apiVersion"] = entry.api_version
    if entry.time is not None:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = ordered(entry.fields)
    if entry.subresource:
        out["subresource"] = entry.subresource
    return out


def is_reset(entries: Any) -> bool:
    """An empty list, or one empty entry: the client wants no tracking any more. Upstream: isResetManagedFields."""
    return entries in ([], [{}])


# upstream: IgnoreManagedFieldsTimestampsTransformer (apiserver endpoints/handlers/fieldmanager/equality.go)
def keep_times(old: Obj, new: Obj) -> None:
    """Undo new times in managedFields when nothing else of the object has changed, so that it is no change at all."""
    before, after = old["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not after or len(before) != len(after) or before == after:
        return
    if _timeless(before) != _timeless(after):
        return
    bare_old, bare_new = ({**obj["metadata"], "managedFields": None} for obj in (old, new))
    if bare_old == bare_new and equal({**old, "metadata": None}, {**new, "metadata": None}):
        new["metadata"]["managedFields"] = before


def _timeless(entries: list[Obj]) -> list[Obj]:
    return [{**entry, "time": None} for entry in entries]
