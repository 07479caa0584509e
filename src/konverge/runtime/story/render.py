"""From what was noted to what is shown. All the work is here, when it is asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from konverge.client.call import METHODS, WRITES
from konverge.objects.resource import Resource
from konverge.runtime.reasons import Changed
from konverge.runtime.story.differences import between, of_patch
from konverge.runtime.story.entry import CallNote, Entry, Shortened
from konverge.runtime.story.model import Cause, EventNote, FieldChange, Read, ReconcileStory, Write


def reconcile(entry: Entry, controller: str, kind: Resource, epoch: float) -> ReconcileStory:
    """`epoch` is the time at which the loop's clock was 0."""
    namespace, name = name_of(entry.key)
    calls = [note for note in entry.calls if note.seconds >= 0]
    reads = [_read(*parts) for parts in entry.reads]
    reads += [_live(note) for note in calls if note.verb not in WRITES]
    return ReconcileStory(
        controller=controller,
        kind=kind.kind,
        api_version=kind.api_version,
        namespace=namespace,
        name=name,
        number=entry.number,
        began=time_text(epoch + entry.began),
        seconds=round(entry.seconds, 6),
        waited=round(entry.waited, 6),
        outcome=_outcome(entry),
        requeue_after=entry.result.requeue_after,
        error=entry.error,
        error_type=entry.error_type,
        place=entry.place,
        reasons=[cause(reason) for reason in entry.reasons],
        reads=reads,
        writes=[_write(note) for note in calls if note.verb in WRITES],
        events=[EventNote(type=t, reason=r, message=m, kind=k, name=n) for t, r, m, k, n in entry.events],
        left_out=entry.left_out,
    )


def name_of(key: Any) -> tuple[str, str]:
    """Namespace and name of a request; one that is not of an object is named by its text."""
    name = getattr(key, "name", None)
    return (str(getattr(key, "namespace", "")), str(name)) if isinstance(name, str) else ("", str(key))


def time_text(seconds: float) -> str:
    """
    >>> time_text(0.25)
    '1970-01-01T00:00:00.250000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _outcome(entry: Entry) -> str:
    if entry.error:
        return "error"
    if entry.gone:
        return "gone"
    if entry.result.requeue_after > 0:
        return "requeueAfter"
    return "requeue" if entry.result.requeue else "done"


# ------------------------------------------------------------------ reasons


def cause(reason: object) -> Cause:
    """
    >>> from konverge.runtime.reasons import Timer
    >>> cause(Timer(30.0))
    Cause(type='timer', text='asked to come back after 30 s', kind='', namespace='', name='', fields=[], more_fields=0)
    """
    if isinstance(reason, Changed):
        return _changed(reason)
    if isinstance(reason, Shortened):
        kind, _, rest = reason.partition(" ")
        namespace, _, name = rest.partition(" ")[0].rpartition("/")
        return Cause(type=rest.split(" ")[1], text=str(reason), kind=kind, namespace=namespace, name=name)
    return Cause(type=type(reason).__name__.lower(), text=str(reason))


def _changed(reason: Changed) -> Cause:
    change = reason.change
    fields: list[FieldChange] = []
    more = 0
    if change.old is not None and change.new is not None and not change.initial:
        fields, more = between(reason.kind, msgspec.json.decode(change.old.raw), msgspec.json.decode(change.new.raw))
    return Cause(
        type="listed" if change.initial else change.type.value,
        text=str(reason),
        kind=reason.kind,
        namespace=change.key.namespace,
        name=change.key.name,
        fields=fields,
        more_fields=more,
    )


# ------------------------------------------------------------------ reads and writes


def _read(kind: Any, namespace: str, name: str, count: int) -> Read:
    named = kind.resource.kind
    if count < 0:
        return Read(kind=named, namespace=namespace, name=name)
    return Read(kind=named, namespace=namespace, query=name, count=count)


def _live(note: CallNote) -> Read:
    kind = note.path if note.resource is None else note.resource.kind
    return Read(
        kind=kind,
        namespace=note.namespace,
        name=note.name,
        source="live",
        seconds=round(note.seconds, 6),
        error=note.error,
    )


def _write(note: CallNote) -> Write:
    kind, api_version = (note.resource.kind, note.resource.api_version) if note.resource else (note.path, "")
    changes, more = _changes(note, kind)
    return Write(
        method=METHODS[note.verb],
        kind=kind,
        api_version=api_version,
        namespace=note.namespace,
        name=note.name or _name_in(note.body),
        subresource=note.subresource,
        seconds=round(note.seconds, 6),
        status=note.status,
        error=note.error,
        resource_version=note.version,
        dry_run=note.dry_run,
        changes=changes,
        more_changes=more,
        not_kept=note.large,
    )


def _changes(note: CallNote, kind: str) -> Any:
    if note.verb in ("delete", "deletecollection"):
        return [], 0
    if note.after and note.before is not None:
        return between(kind, msgspec.json.decode(note.before.raw), msgspec.json.decode(note.after))
    return of_patch(kind, note.content_type, note.body, note.before) if note.body else ([], 0)


def _name_in(body: bytes) -> str:
    """Of an object that was created."""
    try:
        metadata = msgspec.json.decode(body).get("metadata") or {}
    except (msgspec.DecodeError, AttributeError):
        return ""
    return str(metadata.get("name") or metadata.get("generateName") or "")
