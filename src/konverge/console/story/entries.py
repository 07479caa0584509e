"""`Entry`: one line of a story, from a write, an event, a reconcile, or what an object says of itself. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from konverge.explain.model import Ref
from konverge.explain.reading import Obj, at, items, mapping, moment, text
from konverge.explain.texts import shorten
from konverge.explain.world import count_of, last_seen, message_of
from konverge.objects.resource import Resource
from konverge.runtime.story.differences import between
from konverge.runtime.story.model import FieldChange, ReconcileStory

IN_SENTENCE = 2
"""Changed fields that a sentence names."""
IN_RECONCILE = 20
"""Changed fields that a reconcile lists."""
_SERVER = "kube-apiserver"


class Named(msgspec.Struct, frozen=True, rename="camel"):
    """The object that an entry is about."""

    api_version: str
    kind: str
    resource: str
    """Its plural; empty where only the kind is known, as of events."""
    namespace: str
    name: str

    @classmethod
    def of(cls, resource: Resource, namespace: str, name: str) -> Named:
        return cls(resource.api_version, resource.kind, resource.plural, namespace, name)

    def __str__(self) -> str:
        return str(Ref(self.kind, self.name))


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What happened at one moment."""

    at: str
    type: str
    """created, changed, deleted, event or reconcile."""
    object: Named
    sentence: str
    revision: int | None = None
    who: str = ""
    difference: list[FieldChange] = []
    more: int = 0
    """Changed fields that are not listed."""
    level: str = ""
    """Of an event: Normal or Warning."""
    count: int = 1
    """How often an event was seen."""
    duration: float | None = None
    """Seconds that a reconcile took."""
    result: str = ""
    number: int = 0
    """Of the controller's reconciles, since its start."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """A write is known by its revision, however it was learned of."""
        if self.revision:
            return (self.revision, self.type, self.object)
        return (self.at, self.type, self.object, self.sentence, self.number)

    @property
    def seconds(self) -> float:
        """The moment, in seconds since the epoch."""
        return moment({"at": self.at}, "at") or 0.0


def time_text(seconds: float) -> str:
    """
    >>> time_text(0.25)
    '1970-01-01T00:00:00.250000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# ------------------------------------------------------------------ writes


def of_change(named: Named, old: Obj | None, new: Obj | None, revision: int, seconds: float) -> Entry | None:
    """The entry of a write; None when nothing that people see has changed."""
    if old is None or new is None:
        who = writers(old, new)
        verb = "created" if old is None else "deleted"
        by = f"{who} {verb} {named}" if who else f"{named} was {verb}"
        return Entry(at=time_text(seconds), type=verb, object=named, sentence=by, revision=revision, who=who)
    changes, more = between(named.kind, old, new)
    if not changes:
        return None
    who = writers(old, new, status=all(change.path.startswith("status") for change in changes))
    return Entry(
        at=time_text(seconds),
        type="changed",
        object=named,
        sentence=f"{who or 'a writer'} changed {_fields(changes, more)}",
        revision=revision,
        who=who,
        difference=changes,
        more=more,
    )


def _fields(changes: list[FieldChange], more: int) -> str:
    shown = [shorten(str(change), 80) for change in changes[:IN_SENTENCE]]
    left = len(changes) - len(shown) + more
    return ", ".join(shown) + (f" and {left} more" if left else "")


def writers(old: Obj | None, new: Obj | None, *, status: bool = False) -> str:
    """Who made a write, by the managed fields; `status`: it changed nothing but the status.

    A writer's entry gains fields or a time; that of a writer who only lost fields to another does not. Within one
    second a writer's entry may stay as it was: then it is the latest one for this part of the object.
    """
    if new is None:
        return ""
    before = {_manager(entry): entry for entry in items(old, "metadata", "managedFields")}
    entries = items(new, "metadata", "managedFields")
    fresh = [entry for entry in entries if _has_gained(entry, before.get(_manager(entry)))] if before else entries
    if not fresh or (old is not None and not before):
        fresh = [entry for entry in entries if (text(entry, "subresource") == "status") is status] or entries
    latest = max((text(entry, "time") for entry in fresh), default="")
    names = [text(entry, "manager") for entry in fresh if text(entry, "time") == latest]
    return " and ".join(dict.fromkeys(name for name in names if name))


def _manager(entry: Obj) -> tuple[str, ...]:
    """What identifies an entry. Upstream: BuildManagerIdentifier (structured-merge-diff)."""
    return tuple(text(entry, key) for key in ("manager", "operation", "apiVersion", "subresource"))


def _has_gained(entry: Obj, before: Obj | None) -> bool:
    if before is None or text(entry, "time") != text(before, "time"):
        return True
    return not _is_part(mapping(entry, "fieldsV1"), mapping(before, "fieldsV1"))


def _is_part(fields: Obj, whole: Obj) -> bool:
    return all(key in whole and _is_part(mapping(value), mapping(whole[key])) for key, value in fields.items())


def of_managers(named: Named, obj: Obj) -> Iterator[Entry]:
    """What an object says of its own past: when it was created, and who wrote which fields last."""
    created = text(obj, "metadata", "creationTimestamp")
    if created:
        yield Entry(at=created, type="created", object=named, sentence=f"{named} was created")
    for entry in items(obj, "metadata", "managedFields"):
        if text(entry, "time") in ("", created):
            continue
        paths = list(_paths(mapping(entry, "fieldsV1"), ""))
        who = text(entry, "manager")
        shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        sentence = f"{who or _SERVER} last wrote {shown or 'it'}"
        yield Entry(at=text(entry, "time"), type="changed", object=named, sentence=sentence, who=who)


def _paths(fields: Any, path: str, depth: int = 0) -> Iterator[str]:
    """The fields of fieldsV1, down to the second level: `f:spec` → `f:replicas` is spec.replicas."""
    below = [key for key in mapping(fields) if key.startswith("f:")]
    if not below or depth >= 2:
        if path:
            yield path
        return
    for key in below:
        yield from _paths(fields[key], f"{path}.{key[2:]}" if path else key[2:], depth + 1)


# ------------------------------------------------------------------ events and reconciles


def of_event(event: Obj) -> Entry:
    """An event that a program recorded about an object."""
    about = mapping(event, "involvedObject")
    place = (text(about, "namespace"), text(about, "name"))
    source = (
        text(event, "source", "component") or text(event, "reportingComponent") or text(event, "reportingController")
    )
    times = count_of(event)
    seen = f" (seen {times} times)" if times > 1 else ""
    return Entry(
        at=time_text(last_seen(event)),
        type="event",
        object=Named(text(about, "apiVersion"), text(about, "kind"), "", *place),
        sentence=f"{text(event, 'reason')}: {shorten(message_of(event))}{seen}",
        who=source,
        level=text(event, "type"),
        count=times,
    )


def of_reconcile(story: ReconcileStory, resource: Resource, shown: Collection[tuple[str, str]]) -> Entry:
    """One reconcile of a controller; `shown` are the apiVersions and kinds whose changes the reader may see."""
    reasons = "; ".join(shorten(cause.text, 80) for cause in story.reasons[:2]) or "no reason is known"
    count = len(story.writes)
    writes = f", {count} write{'s' if count > 1 else ''}" if count else ""
    end = f"failed: {story.error_type}: {shorten(story.error)}" if story.error else _ENDS.get(story.outcome, "done")
    if story.requeue_after and not story.error:
        end = f"comes back after {story.requeue_after:.3g} s"
    return Entry(
        at=story.began,
        type="reconcile",
        object=Named.of(resource, story.namespace, story.name),
        sentence=f"{story.controller} reconciled ({reasons}){writes}: {end}",
        who=story.controller,
        duration=story.seconds,
        result="error" if story.error else story.outcome,
        difference=[
            change for write in story.writes if (write.api_version, write.kind) in shown for change in write.changes
        ][:IN_RECONCILE],
        number=story.number,
    )


_ENDS = {"done": "done", "requeue": "comes back", "gone": "the object was gone"}


def ordered(entries: Iterable[Entry], most: int) -> list[Entry]:
    """The latest so many, the earliest first, each once."""
    unique = {entry.identity: entry for entry in entries}
    chosen = sorted(unique.values(), key=lambda entry: (entry.seconds, entry.revision or 0))
    return chosen[-most:]


def is_ready(pod: Obj) -> bool:
    return any(
        text(entry, "type") == "Ready" and text(entry, "status") == "True"
        for entry in items(pod, "status", "conditions")
    ) and not at(pod, "metadata", "deletionTimestamp")
