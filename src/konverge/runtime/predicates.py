"""Predicates: which changes are worth a reconcile. Plain functions of a `Change`, combined by `all_of`, `any_of`,
`not_`.

They are called for every event, so they look at metadata only, and decode it only when they have to.

Upstream: controller-runtime's pkg/predicate.
"""

from __future__ import annotations

from collections.abc import Callable

from konverge.cache.store import Change, ChangeType

Predicate = Callable[[Change], bool]


def generation_changed(change: Change) -> bool:
    """The spec changed, or deletion was requested; changes of status and metadata alone do not count."""
    old, new = change.old, change.new
    return old is None or new is None or old.generation != new.generation or old.uid != new.uid


def resource_version_changed(change: Change) -> bool:
    """Anything changed: everything but a resync."""
    old, new = change.old, change.new
    return old is None or new is None or old.version != new.version


def labels_changed(change: Change) -> bool:
    """Labels were added, removed or given other values."""
    old, new = change.old, change.new
    return old is None or new is None or old.meta.labels != new.meta.labels


def annotations_changed(change: Change) -> bool:
    """Annotations were added, removed or given other values."""
    old, new = change.old, change.new
    return old is None or new is None or old.annotations != new.annotations


def created(change: Change) -> bool:
    return change.type is ChangeType.ADDED


def deleted(change: Change) -> bool:
    return change.type is ChangeType.DELETED


def all_of(*predicates: Predicate) -> Predicate:
    """A change counts when it counts for each of these predicates."""
    return lambda change: all(predicate(change) for predicate in predicates)


def any_of(*predicates: Predicate) -> Predicate:
    """A change counts when it counts for one of these predicates.

    >>> any_of(generation_changed, labels_changed)  # doctest: +ELLIPSIS
    <function any_of...>
    """
    return lambda change: any(predicate(change) for predicate in predicates)


def not_(predicate: Predicate) -> Predicate:
    """A change counts when it does not count for this predicate."""
    return lambda change: not predicate(change)
