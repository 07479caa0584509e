"""`World`: what an explanation is made from: objects by name, owner and label, with the events about them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from konverge.explain.model import Link, Ref, group_of
from konverge.explain.reading import Obj, items, labels, mapping, moment, number, text, texts
from konverge.objects.codec import to_dict
from konverge.objects.labels import Labels, Selector
from konverge.objects.meta import Object

KindKey = tuple[str, str]
"""A group and a kind."""
Place = tuple[str, str, str]
"""A group, a kind and a namespace; an empty one is all of them."""
EVENT_KINDS: frozenset[KindKey] = frozenset((("", "Event"), ("events.k8s.io", "Event")))


class World:
    """A cluster, or the part of it that was read.

    >>> world = World([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop"}}])
    >>> [ref.name for ref in world.of_kind("Pod", "shop")]
    ['web-0']
    """

    def __init__(
        self,
        objects: Iterable[Obj | Object],
        *,
        now: float = 0.0,
        listed: Collection[Place] | None = None,
        with_status: Collection[KindKey] = (),
    ) -> None:
        """`now` is the cluster's time, in seconds since the epoch; without it no age is known.

        `listed` says what was read wholly, as (group, kind, namespace), all namespaces if that is empty: of those alone
        is known what does not exist. None: `objects` are everything. `with_status` are the kinds whose objects are
        expected to have a status.
        """
        self.now = now
        self.with_status = frozenset(with_status)
        self._listed = None if listed is None else set(listed)
        self._absent: set[Ref] = set()
        self._selections: set[tuple[str, str]] = set()
        self._objects: dict[Ref, Obj] = {}
        self._by_uid: dict[str, Ref] = {}
        self._by_kind: dict[tuple[str, str, str], list[Ref]] = defaultdict(list)
        self._everywhere: dict[KindKey, list[Ref]] = defaultdict(list)
        self._owned: dict[str, list[Ref]] = defaultdict(list)
        self._events: dict[tuple[str, str, str], dict[tuple[str, str, str], Obj]] = defaultdict(dict)
        self._labelled: dict[tuple[str, str, str], list[Ref]] = defaultdict(list)
        self.add(objects)

    def add(
        self,
        objects: Iterable[Obj | Object],
        *,
        listed: Iterable[Place] = (),
        absent: Iterable[Ref] = (),
        selections: Iterable[tuple[str, str]] = (),
    ) -> None:
        """More objects, and more of which it is known what there is and what there is not.

        `selections` are namespaces and label selectors of which all pods were read.
        """
        for obj in objects:
            self._add(to_dict(obj) if isinstance(obj, Object) else obj)
        if self._listed is not None:
            self._listed.update(listed)
        self._absent.update(absent)
        self._selections.update(selections)

    def _add(self, obj: Any) -> None:
        if not isinstance(obj, dict):
            return
        ref = Ref.of(obj)
        if not ref.kind or not ref.name:
            return
        if (ref.group, ref.kind) in EVENT_KINDS:
            self._add_event(obj)
            return
        before = self._objects.get(ref)
        self._objects[ref] = obj
        if before is None:
            self._by_kind[ref.group, ref.kind, ref.namespace].append(ref)
            self._everywhere[ref.group, ref.kind].append(ref)
        elif mapping(before, "metadata") == mapping(obj, "metadata"):
            return  # read twice
        uid = text(obj, "metadata", "uid")
        if uid:
            self._by_uid[uid] = ref
        for owner in items(obj, "metadata", "ownerReferences"):
            if text(owner, "uid"):
                self._owned[text(owner, "uid")].append(ref)
        if ref.kind == "Pod" and not ref.group:
            for key, value in labels(obj, "metadata", "labels").items():
                self._labelled[ref.namespace, key, value].append(ref)

    def _add_event(self, event: Obj) -> None:
        about = mapping(event, "involvedObject") or mapping(event, "regarding")
        key = (text(about, "kind"), text(about, "namespace"), text(about, "name"))
        meta = mapping(event, "metadata")
        identity = (text(meta, "namespace"), text(meta, "name"), text(meta, "uid"))
        self._events[key][identity] = event  # read again, it may have been seen more often

    # -------------------------------------------------------------- reading

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Ref]:
        return iter(self._objects)

    def get(self, ref: Ref) -> Obj | None:
        return self._objects.get(ref)

    def by_uid(self, uid: str) -> Ref | None:
        return self._by_uid.get(uid)

    def of_kind(self, kind: str, namespace: str = "", group: str = "") -> list[Ref]:
        """Those in a namespace; without one, all."""
        if namespace:
            return self._by_kind.get((group, kind, namespace), [])
        return self._everywhere.get((group, kind), [])

    def knows(self, kind: str, namespace: str = "", group: str = "") -> bool:
        """All objects of a kind (in a namespace) were read."""
        return self._listed is None or not {(group, kind, ""), (group, kind, namespace)}.isdisjoint(self._listed)

    def knows_pods(self, namespace: str, selector: Selector) -> bool:
        """All pods that a selector selects were read."""
        return self.knows("Pod", namespace) or (namespace, str(selector)) in self._selections

    def is_missing(self, ref: Ref) -> bool:
        """It is known not to exist. What was not read is not missing."""
        if not ref.kind or not ref.name or ref in self._objects:
            return False
        return ref in self._absent or self.knows(ref.kind, ref.namespace, ref.group)

    def owned(self, ref: Ref) -> list[Ref]:
        """What has this very object as an owner."""
        uid = text(self._objects.get(ref), "metadata", "uid")
        return [child for child in dict.fromkeys(self._owned.get(uid, ())) if child != ref] if uid else []

    def owners(self, ref: Ref) -> list[Ref]:
        """Its owners, as far as they are known."""
        references = items(self._objects.get(ref), "metadata", "ownerReferences")
        known = (self._by_uid.get(text(owner, "uid")) for owner in references)
        return [owner for owner in known if owner is not None and owner != ref]

    def pods(self, namespace: str, selector: Selector) -> list[Ref]:
        """The pods of a namespace that a selector selects; for one that selects everything, all."""
        if selector.empty:
            return self.of_kind("Pod", namespace)
        exact = [(term.key, value) for term in selector.requirements if (value := selector.exact(term.key)) is not None]
        lists = [self._labelled.get((namespace, key, value), []) for key, value in exact]
        candidates = min(lists, key=len) if lists else self.of_kind("Pod", namespace)
        return [ref for ref in dict.fromkeys(candidates) if selector.matches(self._labels(ref))]

    def _labels(self, ref: Ref) -> Labels:
        return labels(self._objects[ref], "metadata", "labels")

    def age(self, written: Any, *path: str) -> float | None:
        """Seconds since a time that an object has; None where it or the present is not known."""
        then = moment(written, *path)
        return None if then is None or not self.now else self.now - then

    def is_older(self, obj: Obj, seconds: float, *path: str) -> bool:
        """Whether so much time has passed; of what has no time, it is taken for granted."""
        age = self.age(obj, *(path or ("metadata", "creationTimestamp")))
        return age is None or age >= seconds

    # -------------------------------------------------------------- events

    def warnings(self, ref: Ref, *reasons: str) -> list[Obj]:
        """The Warning events about this very object with one of these reasons (or any), the latest first."""
        uid = text(self._objects.get(ref), "metadata", "uid")
        events = [
            event
            for event in self._events.get((ref.kind, ref.namespace, ref.name), {}).values()
            if text(event, "type") != "Normal"
            and (not reasons or text(event, "reason") in reasons)
            and _about(event) in ("", uid)
        ]
        return sorted(events, key=last_seen, reverse=True)

    def events(self, ref: Ref) -> list[Obj]:
        """All events about an object, the earliest first."""
        uid = text(self._objects.get(ref), "metadata", "uid")
        events = self._events.get((ref.kind, ref.namespace, ref.name), {})
        return sorted((event for event in events.values() if _about(event) in ("", uid) or not uid), key=last_seen)


def _about(event: Obj) -> str:
    return text(mapping(event, "involvedObject") or mapping(event, "regarding"), "uid")


def message_of(event: Obj) -> str:
    return text(event, "message") or text(event, "note")


def count_of(event: Obj) -> int:
    """How often it was seen."""
    series = number(event, "series", "count")
    return max(series, number(event, "count"), number(event, "deprecatedCount"), 1)


_TIMES = (
    ("series", "lastObservedTime"),
    ("lastTimestamp",),
    ("deprecatedLastTimestamp",),
    ("eventTime",),
    ("metadata", "creationTimestamp"),
)


def last_seen(event: Obj) -> float:
    """When it was seen last, in seconds since the epoch."""
    return max((then for path in _TIMES if (then := moment(event, *path)) is not None), default=0.0)


def first_seen(event: Obj) -> float:
    paths = (("firstTimestamp",), ("deprecatedFirstTimestamp",), ("eventTime",), ("metadata", "creationTimestamp"))
    return min((then for path in paths if (then := moment(event, *path)) is not None), default=0.0)


def reference(value: Any, namespace: str, relation: str, default_kind: str = "") -> Link | None:
    """A link to what an object reference names: `{apiVersion, kind, namespace, name}`, or a part of it."""
    kind, name = text(value, "kind") or default_kind, text(value, "name")
    if not kind or not name:
        return None
    group = text(value, "apiGroup") or group_of(text(value, "apiVersion"))
    return Link(relation, Ref(kind, name, text(value, "namespace") or namespace, group))


def finalizers(obj: Obj) -> list[str]:
    return texts(obj, "metadata", "finalizers")
