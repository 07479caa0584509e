"""`Entry`: one line of a story, from a write, an event, a reconcile, or what an object says of itself. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from math import inf
from typing import Any

import msgspec

from konverge.console.story.reasons import why_it_ran
from konverge.explain.model import Ref
from konverge.explain.reading import Obj, at, items, mapping, moment, text, walk
from konverge.explain.sentences import Sentence, parts, say, several
from konverge.explain.texts import shorten
from konverge.explain.world import count_of, last_seen, message_of
from konverge.objects.resource import Resource
from konverge.runtime.story.differences import between
from konverge.runtime.story.model import FieldChange, ReconcileStory

IN_SENTENCE = 2
"""Changed fields that a sentence names."""
IN_FIELD = 80
"""Characters of one of them."""
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

    @property
    def spoken(self) -> Sentence:
        return Ref(self.kind, self.name).named


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What happened at one moment."""

    at: str
    type: str
    """created, changed, deleted, event or reconcile."""
    object: Named
    sentence: str
    parts: Any
    """The same as data, so that a page can say it in another language."""
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

    @classmethod
    def of(cls, sentence: Sentence, **values: Any) -> Entry:
        """An entry with this sentence."""
        return cls(sentence=str(sentence), parts=parts(sentence), **values)

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
        sentence = _created(named, who) if old is None else _deleted(named)
        return Entry.of(sentence, at=time_text(seconds), type=verb, object=named, revision=revision, who=who)
    changes, more = between(named.kind, old, new)
    if not changes:
        return None
    who = writers(old, new, status=all(change.path.startswith("status") for change in changes))
    return Entry.of(
        say("{who} changed {fields}", who=who or say("a writer"), fields=_fields(changes, more)),
        at=time_text(seconds),
        type="changed",
        object=named,
        revision=revision,
        who=who,
        difference=changes,
        more=more,
    )


def _created(named: Named, who: str) -> Sentence:
    if who:
        return say("{who} created {object}", who=who, object=named.spoken)
    return say("{object} was created", object=named.spoken)


def _deleted(named: Named) -> Sentence:
    """The managed fields of an object that is gone do not say who deleted it."""
    return say("{object} was deleted", object=named.spoken)


def _fields(changes: list[FieldChange], more: int) -> str:
    shown = several([_field(change) for change in changes[:IN_SENTENCE]])
    left = len(changes[IN_SENTENCE:]) + more
    return say("{names} and {count} more", names=shown, count=left) if left else shown


def _field(change: FieldChange) -> str:
    text = str(change)
    if len(text) > IN_FIELD:
        return shorten(text, IN_FIELD)
    if change.hidden:
        return say("{path} changed (hidden)", path=change.path)
    return say("{path} removed", path=change.path) if change.new is msgspec.UNSET else text


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
    """What an object says of its own past: when it was created and by whom, and who wrote which fields last."""
    created, creation = text(obj, "metadata", "creationTimestamp"), _creation(obj)
    if created:
        who = text(creation, "manager")
        yield Entry.of(_said_created(named, obj, creation), at=created, type="created", object=named, who=who)
    for entry in items(obj, "metadata", "managedFields"):
        if not text(entry, "time") or entry is creation:
            continue
        paths = list(_paths(mapping(entry, "fieldsV1"), ""))
        who = text(entry, "manager")
        sentence = say("{who} last wrote {fields}", who=who or _SERVER, fields=_paths_text(paths))
        yield Entry.of(sentence, at=text(entry, "time"), type="changed", object=named, who=who)


def _creation(obj: Obj) -> Obj | None:
    """The entry of the managed fields that creating the object made; None where its manager wrote again since, which
    moves the time of an entry.

    The server sets that time beside the creationTimestamp, so the two can lie on both sides of a full second. A
    controller may have written within that second too: who created an object named most of its fields.
    """
    created = moment(obj, "metadata", "creationTimestamp")
    at_birth = [
        entry
        for entry in _whole_writes(obj)
        if created is not None and abs((moment(entry, "time") or 0.0) - created) <= 1
    ]
    return max(at_birth, key=lambda entry: sum(1 for _ in walk(mapping(entry, "fieldsV1"))), default=None)


def _whole_writes(obj: Obj) -> list[Obj]:
    """The entries of writes to the object itself: through a subresource, such as its status, nothing is created."""
    entries = items(obj, "metadata", "managedFields")
    return [entry for entry in entries if text(entry, "manager") and not text(entry, "subresource")]


def _said_created(named: Named, obj: Obj, creation: Obj | None) -> Sentence:
    if creation is not None:
        return say(
            "{who} created {object} (by its managed fields: {operation})",
            who=text(creation, "manager"),
            object=named.spoken,
            operation=text(creation, "operation"),
        )
    oldest = min(_whole_writes(obj), key=lambda entry: moment(entry, "time") or inf, default=None)
    if oldest is None:
        return _created(named, "")
    return say(
        "{object} was created; the oldest entry of its managed fields is of {who} ({operation}, {time})",
        object=named.spoken,
        who=text(oldest, "manager"),
        operation=text(oldest, "operation"),
        time=text(oldest, "time"),
    )


def _paths_text(paths: list[str]) -> str:
    shown = ", ".join(paths[:3])
    if len(paths) > 3:
        return say("{names} and {count} more", names=shown, count=len(paths) - 3)
    return shown or say("it")


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
    sentence = say("{reason}: {message}", reason=text(event, "reason"), message=shorten(message_of(event)))
    if times > 1:
        sentence = say("{text} (seen {count} times)", text=sentence, count=times)
    return Entry.of(
        sentence,
        at=time_text(last_seen(event)),
        type="event",
        object=Named(text(about, "apiVersion"), text(about, "kind"), "", *place),
        who=source,
        level=text(event, "type"),
        count=times,
    )


def of_reconcile(story: ReconcileStory, resource: Resource, shown: Collection[tuple[str, str]]) -> Entry:
    """One reconcile of a controller; `shown` are the apiVersions and kinds whose changes the reader may see."""
    return Entry.of(
        say("{what}: {end}", what=_reconciled(story), end=_end(story)),
        at=story.began,
        type="reconcile",
        object=Named.of(resource, story.namespace, story.name),
        who=story.controller,
        duration=story.seconds,
        result="error" if story.error else story.outcome,
        difference=[
            change for write in story.writes if (write.api_version, write.kind) in shown for change in write.changes
        ][:IN_RECONCILE],
        number=story.number,
    )


def _reconciled(story: ReconcileStory) -> Sentence:
    sentence = say("{who} reconciled ({reasons})", who=story.controller, reasons=why_it_ran(story.reasons))
    count = len(story.writes)
    if count == 1:
        return say("{text}, 1 write", text=sentence)
    return say("{text}, {count} writes", text=sentence, count=count) if count else sentence


def _end(story: ReconcileStory) -> Sentence:
    if story.error:
        return say("failed: {detail}", detail=f"{story.error_type}: {shorten(story.error)}")
    if story.requeue_after:
        return say("comes back after {seconds} s", seconds=f"{story.requeue_after:.3g}")
    return _ENDS.get(story.outcome, _ENDS["done"])


_ENDS = {"done": say("done"), "requeue": say("comes back"), "gone": say("the object was gone")}


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
