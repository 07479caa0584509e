"""What the API server promises about a few ConfigMaps, as a model for the linearizability checker.

The state is the newest revision that a client can know, and each object with its revision and its value. Every value is
written once, so a value that is read tells which write it comes from. Requests and answers:

    Create(key, value)               Written(revision) | EXISTS
    Update(key, value, expected)     Written(revision) | CONFLICT | MISSING
    Delete(key, expected)            DELETED | CONFLICT | MISSING
    Get(key)                         Object(revision, value) | MISSING
    List()                           Listed(revision, {key: Object})
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.apiserver.robustness.linearizability import Operation

EXISTS, CONFLICT, MISSING, DELETED = "exists", "conflict", "missing", "deleted"
NOT_STORED = "not stored"
"""The server could not do it, and says that it has not."""


class Create(NamedTuple):
    key: str
    value: str


class Update(NamedTuple):
    key: str
    value: str
    expected: int
    """The revision that it must have; 0 for any."""


class Delete(NamedTuple):
    key: str
    expected: int


class Get(NamedTuple):
    key: str


class List(NamedTuple):
    pass


class Written(NamedTuple):
    revision: int


class Object(NamedTuple):
    revision: int
    """0 where it is not known: the write was not answered, and no read has shown it."""
    value: str


class Listed(NamedTuple):
    revision: int
    objects: dict[str, Object]


class State(NamedTuple):
    revision: int = 0
    objects: frozenset[tuple[str, Object]] = frozenset()


def step(state: State, request: Any, answer: Any) -> State | None:
    """See `check`. An answer of None: not known, and the write took effect."""
    if isinstance(request, List):
        assert isinstance(answer, Listed)
        if answer.revision < state.revision or answer.objects != dict(state.objects):
            return None
        return state._replace(revision=answer.revision)
    present = dict(state.objects).get(request.key)
    if isinstance(request, Get):
        return state if answer == (present or MISSING) else None
    refusal = _refusal(request, present)
    if answer in (EXISTS, CONFLICT, MISSING):
        return state if answer == refusal else None
    if refusal is not None:
        return None  # a success that the model would have refused; or without an answer, a write that cannot have been
    return _after(state, request, present, answer)


def _after(state: State, request: Any, present: Object | None, answer: Any) -> State | None:
    objects = state.objects if present is None else state.objects - {(request.key, present)}
    if isinstance(request, Delete):
        return state._replace(objects=objects)
    revision = answer.revision if isinstance(answer, Written) else 0
    if revision and revision <= state.revision:
        return None  # a revision is never given twice, and never goes back
    return State(revision or state.revision, objects | {(request.key, Object(revision, request.value))})


def _refusal(request: Any, present: Object | None) -> str | None:
    if isinstance(request, Create):
        return EXISTS if present is not None else None
    if present is None:
        return MISSING
    return CONFLICT if request.expected and request.expected != present.revision else None


def with_what_was_seen(
    history: Sequence[Operation], seen: dict[str, int], *, everything: bool = False
) -> list[Operation]:
    """The history without what tells nothing, and with what the values that were seen tell.

    A write without an answer whose value was seen with a revision took effect at that revision; when it returned stays
    unknown. Where `everything` that happened was seen, the others had no effect. Nor may one that the server says is
    not stored.
    """
    completed = []
    for operation in history:
        value = getattr(operation.request, "value", None)
        if operation.answer == NOT_STORED:
            assert value not in seen, f"{operation} was seen at {seen[value]}"
        elif operation.answer is not None:
            completed.append(operation)
        elif value in seen:
            completed.append(operation._replace(answer=Written(seen[value])))
        elif isinstance(operation.request, Delete) or (value is not None and not everything):
            completed.append(operation)
    return completed


def values_seen(history: Sequence[Operation]) -> dict[str, int]:
    """Value → revision, of everything that reads and lists have shown."""
    seen: dict[str, int] = {}
    for operation in history:
        answer = operation.answer
        shown = (
            answer.objects.values() if isinstance(answer, Listed) else [answer] if isinstance(answer, Object) else []
        )
        for revision, value in shown:
            assert seen.setdefault(value, revision) == revision, f"{value} was shown at {seen[value]} and at {revision}"
    return seen
