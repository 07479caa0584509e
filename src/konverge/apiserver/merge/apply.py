"""Server-side apply: the merged object and its managedFields, or why not.

    merged = live + applied - what this manager applied last time, does not apply any more, and no other manager owns

Upstream: Updater.Apply (structured-merge-diff merge/update.go) behind the managers of
apimachinery/pkg/util/managedfields/internal. The result is compared with the stored object; equal ones leave everything
as it is, the times in managedFields too.
"""

from __future__ import annotations

import msgspec

from konverge.apiserver import nesting, status
from konverge.apiserver.equality import equal
from konverge.apiserver.go import json_pieces
from konverge.apiserver.go.json import cannot_unmarshal, html_safe
from konverge.apiserver.merge import field_set
from konverge.apiserver.merge.combine import merge
from konverge.apiserver.merge.creation import blank
from konverge.apiserver.merge.elements import TypedError
from konverge.apiserver.merge.field_set import FieldSet
from konverge.apiserver.merge.managed_entries import APPLY, Entry, EntryError, Managers, decode, encode
from konverge.apiserver.merge.managed_fields import bare, stripped, tracked
from konverge.apiserver.merge.owner import Owner, Unconvertible
from konverge.apiserver.merge.ownership import Conflicts, moved, reconciled
from konverge.apiserver.merge.pruning import pruned
from konverge.apiserver.merge.typed import compare, fields_of, validate
from konverge.apiserver.schema import object_meta
from konverge.apiserver.schema.decode import Decoded, DecodeError, duplicates, from_patched, may_repeat
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.status import ApiError
from konverge.apiserver.strategy import Obj

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_ANNOTATION_BYTES = 256 * 1024
"""Of all annotations together. Upstream: TotalAnnotationSizeLimitB (apimachinery/pkg/api/validation)."""
_KUBECTL = "kubectl"


def read(body: bytes) -> Decoded:
    """An applied configuration, YAML or JSON; `strict` has its repeated keys. Raises 400."""
    obj = _read_json(body)
    if obj is not None:
        return Decoded(obj, ())
    from konverge.apiserver.go import yaml  # not cheap, and most of what is applied is JSON

    try:
        value, repeated = yaml.parse(body)
    except yaml.YamlError as error:
        # Upstream notices one step later that a text which looks like JSON is not YAML.
        json_like = body.lstrip().startswith(b"{")
        where = "decoding patch: error converting YAML to JSON" if json_like else "encoding patch"
        raise status.bad_request(f"error {where}: {error}") from None
    if value is not None and not isinstance(value, dict):
        text = cannot_unmarshal(value, "value of type map[string]interface {}")
        raise status.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {text}")
    return Decoded(value or {}, repeated)


def _read_json(body: bytes) -> Obj | None:
    """JSON is YAML, and most clients send it: no need for the slow way, unless there may be a repeated key in it."""
    if not body.startswith(b"{"):
        return None
    try:
        value: Obj = json_pieces.decode_as_go(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return None if nesting.is_too_deep(body) or (may_repeat(body, value) and duplicates(body)) else value


def warnings(configuration: Decoded, validation: str) -> list[str]:
    """What to warn of once an apply has succeeded; raises 400 where fieldValidation is Strict."""
    if not configuration.strict or validation == "Ignore":
        return []
    if validation == "Strict":
        lines = "\n".join(f"  {line}" for line in configuration.strict)
        problem = f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
        raise status.bad_request(f"error strict decoding patch: {problem}")
    return list(configuration.strict)


def apply(live: Obj | None, applied: Obj, owner: Owner, *, force: bool = False) -> Obj:
    """The object after an apply, with its managedFields; not defaulted yet. Raises 400, 409 and 500."""
    check_kind(applied, owner)
    stored = blank(owner) if live is None else live
    try:
        managers = decode(stored.get("metadata", {}).get("managedFields"))
    except EntryError as error:
        raise status.plain_500(f"failed to decode managed fields: {error}") from None
    current = bare(stored)
    if not managers and live is not None:
        managers = _before_first_apply(current, owner)
    try:
        merged, managers = _with_client_side_apply(current, applied, managers, owner, force)
    except Conflicts as conflicts:
        raise conflict(conflicts) from None
    except Unconvertible as error:
        raise status.plain_500(str(error)) from None
    if owner.manager == _KUBECTL:
        merged = _with_last_applied(merged, applied)
    metadata = {**(merged.get("metadata") or {})}
    if managers:
        metadata["managedFields"] = encode(managers)
    return {**merged, "metadata": metadata}


def check_kind(applied: Obj, owner: Owner) -> None:
    group, _, version = str(applied.get("apiVersion") or "").rpartition("/")
    given = f"{group}/{version}, Kind={applied.get('kind') or ''}"
    if given != owner.gvk:
        raise status.bad_request(f"invalid object type: {given}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise status.bad_request("metadata.managedFields must be nil")


# upstream: skipNonAppliedManager.Apply (skipnonapplied.go)
def _before_first_apply(current: Obj, owner: Owner) -> Managers:
    """What is there already gets an owner, so that the first apply meets conflicts instead of overwriting it."""
    try:
        return tracked({}, None, current, msgspec.structs.replace(owner, manager="before-first-apply"))
    except (TypedError, Unconvertible) as error:
        raise status.plain_500(f"failed to create manager for existing fields: {error}") from None


def _with_client_side_apply(
    current: Obj, applied: Obj, managers: Managers, owner: Owner, force: bool
) -> tuple[Obj, Managers]:
    """kubectl may take over, without conflicts, what it once applied on the client's side.

    Upstream: lastAppliedManager.Apply (lastappliedmanager.go).
    """
    try:
        return _merged(current, applied, managers, owner, force)
    except Conflicts as conflicts:
        allowed = _last_applied_fields(current, owner) if owner.manager == _KUBECTL else None
        if allowed is None:
            raise
        left = [(entry, path) for entry, path in conflicts.conflicts if not field_set.has(allowed, path)]
        if left:
            raise Conflicts(left) from None
    return _merged(current, applied, managers, owner, True)


def _merged(current: Obj, applied: Obj, managers: Managers, owner: Owner, force: bool) -> tuple[Obj, Managers]:
    node = owner.node
    _check_types(node, current, applied, owner)
    managers = reconciled(managers, current, owner)
    fields = owner.may_own(fields_of(node, applied))
    mine = Entry(owner.manager, APPLY, owner.api_version, owner.subresource, None, fields)
    last = managers.get(mine.identity)
    mine = mine._replace(time=last.time if last else None)
    managers = {**managers, mine.identity: mine}
    merged: Obj = merge(node, current, applied)
    if last is not None and _may_lose(last, fields, managers, owner):
        try:
            merged = pruned(merged, managers, last, owner)
        except Unconvertible as error:
            raise error.during("failed to prune fields") from None
    managers, _ = moved(managers, current, merged, owner, mine.identity, force=force)
    unchanged = equal(merged, current)
    managers = _settled(managers, mine.identity, None if unchanged else owner.now)
    return (merged if unchanged else _typed(merged, applied, owner)), managers


def _may_lose(last: Entry, fields: FieldSet, managers: Managers, owner: Owner) -> bool:
    """Whether something of the last configuration has to go: what is not in this one, or not in another version."""
    versions = {last.api_version, *(entry.api_version for entry in managers.values())}
    return versions != {owner.api_version} or bool(field_set.difference(last.fields, fields))


# upstream: stripMetaManager.Apply, managedFieldsUpdater.Apply
def _settled(managers: Managers, mine: str, time: str | None) -> Managers:
    """The applier's own entry without what is never owned, and with the time of the change if there was one."""
    entry = managers[mine]
    fields = stripped(entry.fields)
    if not fields:
        return {identity: other for identity, other in managers.items() if identity != mine}
    return {**managers, mine: entry._replace(fields=fields, time=time or entry.time)}


def _check_types(node: TypeNode, current: Obj, applied: Obj, owner: Owner) -> None:
    given = applied.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {owner.gvk}"
    what = "patch"
    try:
        validate(node, applied)
        if not node.go:  # what is stored of a built-in kind has been decoded by its type
            what = "live"
            validate(node, current, repeated=True)
    except TypedError as error:
        raise status.plain_500(f"failed to create typed {what} object ({where}): {error}") from None


def _typed(merged: Obj, applied: Obj, owner: Owner) -> Obj:
    """A built-in object as Go writes it; of a custom resource only metadata is a Go struct."""
    try:
        if owner.node.go:
            return from_patched(owner.node, merged).obj
        return {**merged, "metadata": from_patched(object_meta(), merged.get("metadata") or {}).obj}
    except DecodeError as error:
        metadata = applied.get("metadata") or {}
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {owner.gvk}"
        text = f"unable to convert unstructured object to {owner.gvk}: {error}"
        raise status.plain_500(f"failed to convert new object ({where}) to proper version: {text}") from None


# upstream: lastAppliedManager.allowedConflictsFromLastApplied
def _last_applied_fields(current: Obj, owner: Owner) -> FieldSet | None:
    """The fields of kubectl's annotation that still have the values it gave them; None without an annotation."""
    text = (current.get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED)
    if not text:
        return None
    try:
        last = msgspec.json.decode(text)
        if not isinstance(last, dict) or last.get("apiVersion") != owner.api_version:
            return None
        validate(owner.node, last)
        applied = fields_of(owner.node, last)
        change = compare(owner.node, last, current)
    except (msgspec.DecodeError, TypedError):
        return None
    for fields in (change.modified, change.added, change.removed):
        applied = field_set.difference(applied, fields)
    return applied


def _with_last_applied(merged: Obj, applied: Obj) -> Obj:
    """Keep kubectl's annotation, where there is one, in step with what is applied. Upstream:
    lastAppliedUpdater.Apply."""
    metadata = merged.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return merged
    text = html_safe(msgspec.json.encode(_without_annotation(applied), order="deterministic").decode()) + "\n"
    changed = {**annotations, LAST_APPLIED: text}
    if sum(len(key.encode()) + len(value.encode()) for key, value in changed.items()) > _MOST_ANNOTATION_BYTES:
        del changed[LAST_APPLIED]
    return {**merged, "metadata": {**metadata, "annotations": changed}}


def _without_annotation(applied: Obj) -> Obj:
    metadata = applied.get("metadata") or {}
    annotations = metadata.get("annotations")
    if not annotations:
        return applied
    kept = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**applied, "metadata": {**metadata, "annotations": kept}}


def conflict(conflicts: Conflicts) -> ApiError:
    """409 with a cause for each field. Upstream: NewConflictError (conflict.go)."""
    shown = [(str(entry), field_set.show(path)) for entry, path in conflicts.conflicts]
    causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": at} for who, at in shown]
    if len(shown) == 1:
        text = f"1 conflict: conflict with {shown[0][0]}: {shown[0][1]}"
    else:
        lines: list[str] = []
        for index, (who, at) in enumerate(shown):
            if index == 0 or shown[index - 1][0] != who:
                lines.append(f"conflicts with {who}:")
            lines.append(f"- {at}")
        text = f"{len(shown)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", f"Apply failed with {text}", {"causes": causes})
