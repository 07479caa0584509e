"""Predicates: which changes are worth a reconcile. Combined by `all_of`, `any_of`, `not_`.

There are two kinds. A function of two objects, `lambda old, new: …`, gets the decoded states before and after: `old` is
None when the object was created (or was only now seen), `new` is None when it was deleted. A `ChangePredicate` gets the
`Change` itself, without any decoding: the built-in ones look at metadata only, because they are called for every event.

Upstream: controller-runtime's pkg/predicate.
"""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, overload

from konverge.cache.store import Change, ChangeType
from konverge.objects.meta import Object
from konverge.runtime.signatures import require_arguments, takes

K = TypeVar("K", bound=Object)

Test = Callable[[Change], bool]
"""A predicate as it is called for every event."""
Decode = Callable[[bytes], Any]

EXAMPLE = "lambda old, new: old is None or new is None or old.metadata.labels != new.metadata.labels"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or repr(function))


class Predicate(ABC, Generic[K]):
    """A predicate that is more than a function of two objects."""

    @abstractmethod
    def bind(self, decode: Decode) -> Test:
        """The predicate as it is called for every event of a kind, whose objects `decode` reads."""


class ChangePredicate(Predicate[Any]):
    """A predicate of the change itself, which decodes only what it asks for: for kinds with many events.

    >>> @ChangePredicate
    ... def newer_than_ten(change: Change) -> bool:
    ...     return change.latest.version > 10
    """

    def __init__(self, function: Test) -> None:
        require_arguments(function, 1, f"ChangePredicate({_name(function)})", "a function of one Change")
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, change: Change) -> bool:
        return self.function(change)

    def __repr__(self) -> str:
        return f"ChangePredicate({_name(self.function)})"

    def bind(self, decode: Decode) -> Test:
        return self.function


class Combination(Predicate[K]):
    """Several predicates as one, where some of them look at decoded objects."""

    def __init__(self, combine: Callable[[Sequence[Test]], Test], parts: Sequence[When[K]]) -> None:
        self._combine = combine
        self._parts = parts

    def bind(self, decode: Decode) -> Test:
        return self._combine([bind(part, decode) for part in self._parts])


When: TypeAlias = Callable[[K | None, K | None], bool] | Predicate[K]
"""What `when=…` takes: a function of the object before and after, a built-in predicate, or a combination."""


def check_predicate(when: When[Any] | None, what: str) -> None:
    """Refuse what cannot be a predicate. Raises TypeError, which says what to write."""
    if when is not None and not isinstance(when, Predicate):
        require_arguments(when, 2, what, f"when={EXAMPLE}")


def bind(when: When[Any], decode: Decode) -> Test:
    """The predicate as it is called for every event of a kind, whose objects `decode` reads."""
    if isinstance(when, Predicate):
        return when.bind(decode)
    counts = when

    def decoded(change: Change) -> bool:
        old, new = change.old, change.new
        return counts(None if old is None else decode(old.raw), None if new is None else decode(new.raw))

    return decoded


# ------------------------------------------------------------------ those that look at metadata only


@ChangePredicate
def generation_changed(change: Change) -> bool:
    """The spec changed, or deletion was requested; changes of status and metadata alone do not count."""
    old, new = change.old, change.new
    return old is None or new is None or old.generation != new.generation or old.uid != new.uid


@ChangePredicate
def resource_version_changed(change: Change) -> bool:
    """Anything changed: everything but a resync."""
    old, new = change.old, change.new
    return old is None or new is None or old.version != new.version


@ChangePredicate
def labels_changed(change: Change) -> bool:
    """Labels were added, removed or given other values."""
    old, new = change.old, change.new
    return old is None or new is None or old.meta.labels != new.meta.labels


@ChangePredicate
def annotations_changed(change: Change) -> bool:
    """Annotations were added, removed or given other values."""
    old, new = change.old, change.new
    return old is None or new is None or old.annotations != new.annotations


@ChangePredicate
def created(change: Change) -> bool:
    """The object was created, or was only now seen."""
    return change.type is ChangeType.ADDED


@ChangePredicate
def deleted(change: Change) -> bool:
    """The object is gone."""
    return change.type is ChangeType.DELETED


# ------------------------------------------------------------------ combinations


@overload
def all_of(*predicates: ChangePredicate) -> ChangePredicate: ...
@overload
def all_of(*predicates: When[K]) -> Predicate[K]: ...
def all_of(*predicates: Any) -> Any:
    """A change counts when it counts for each of these predicates.

    >>> all_of(generation_changed, labels_changed)
    ChangePredicate(all_of)
    """
    return _combined("all_of", lambda tests: lambda change: all(test(change) for test in tests), predicates)


@overload
def any_of(*predicates: ChangePredicate) -> ChangePredicate: ...
@overload
def any_of(*predicates: When[K]) -> Predicate[K]: ...
def any_of(*predicates: Any) -> Any:
    """A change counts when it counts for one of these predicates.

    >>> any_of(generation_changed, labels_changed)
    ChangePredicate(any_of)
    """
    return _combined("any_of", lambda tests: lambda change: any(test(change) for test in tests), predicates)


@overload
def not_(predicate: ChangePredicate) -> ChangePredicate: ...
@overload
def not_(predicate: When[K]) -> Predicate[K]: ...
def not_(predicate: Any) -> Any:
    """A change counts when it does not count for this predicate."""
    return _combined("not_", _negated, (predicate,))


def _negated(tests: Sequence[Test]) -> Test:
    (test,) = tests
    return lambda change: not test(change)


def _combined(name: str, combine: Callable[[Sequence[Test]], Test], predicates: Sequence[Any]) -> Any:
    parts = []
    for predicate in predicates:  # a loop: a comprehension would be a call of its own in some versions of Python
        parts.append(_part(predicate, name))  # noqa: PERF401
    if all(isinstance(part, ChangePredicate) for part in parts):
        test = combine([part.function for part in parts])
        test.__name__ = name
        return ChangePredicate(test)
    return Combination(combine, parts)


def _part(predicate: Any, name: str) -> Any:
    if isinstance(predicate, Predicate):
        return predicate
    if callable(predicate) and not takes(predicate, 2) and takes(predicate, 1):
        warnings.warn(
            f"{name}({_name(predicate)}) gets a function of one Change, which is deprecated: write lambda old, new: …, "
            f"or mark it with @ChangePredicate",
            DeprecationWarning,
            stacklevel=4,
        )
        return ChangePredicate(predicate)
    require_arguments(predicate, 2, f"a predicate of {name}", EXAMPLE)
    return predicate
