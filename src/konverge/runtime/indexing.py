"""Index functions: under which values the cache finds an object. They are the author's functions of the object.

A function of one argument gets the decoded object. One of two gets the cache's record and its metadata, without any
decoding (`konverge.cache.store.IndexFunction`): for kinds with many events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from konverge.cache.record import Meta, Record
from konverge.cache.store import IndexFunction
from konverge.objects.codec import decoder
from konverge.objects.meta import Object
from konverge.runtime.signatures import require_arguments, takes

K = TypeVar("K", bound=Object)

EXAMPLE = "lambda obj: [obj.metadata.name]"


class Index(msgspec.Struct, Generic[K], frozen=True):
    """An index of a cached kind, which `ctx.indexed` reads: the values under which each object is found.

    Index(Secret, "type", lambda secret: [secret.type or "Opaque"])
    """

    kind: type[K]
    name: str
    values: Callable[[K], Iterable[str]]

    def __post_init__(self) -> None:
        what = f"the function of Index({getattr(self.kind, '__name__', self.kind)}, {self.name!r})"
        require_arguments(self.values, 1, what, EXAMPLE)


Indexes: TypeAlias = (
    Sequence[Index[Any]] | Mapping[type[Object], Mapping[str, IndexFunction | Callable[[Any], Iterable[str]]]]
)
"""What `indexes=…` takes: a list of indexes, or kind -> name -> function."""


@dataclass(frozen=True, slots=True)
class ObjectIndex:
    """An index function of decoded objects, for the cache. Equal ones are one index in a cache that is shared."""

    function: Callable[[Any], Iterable[str]]
    form: type[Any]
    """The class of what the cache keeps, which the function gets."""
    decode: Callable[[bytes], Any] = field(compare=False, repr=False)

    def __call__(self, record: Record, meta: Meta) -> Iterable[str]:
        return self.function(self.decode(record.raw))


def of_form(function: IndexFunction, form: type[Any]) -> IndexFunction:
    """The same index for a cache that keeps another class of the objects: a projection, or metadata only."""
    if not isinstance(function, ObjectIndex) or function.form is form:
        return function
    return ObjectIndex(function.function, form, decoder(form).decode)


def index_functions(declared: Indexes) -> dict[type[Object], dict[str, IndexFunction]]:
    """The indexes of a controller, as the cache takes them. Raises TypeError for what cannot be an index function."""
    functions: dict[type[Object], dict[str, IndexFunction]] = {}
    if isinstance(declared, Mapping):
        for kind, named in declared.items():
            functions[kind] = {name: _of_cache(kind, name, function) for name, function in named.items()}
        return functions
    for index in declared:
        if not isinstance(index, Index):
            raise TypeError(f"indexes=[…] has {index!r}: write Index(Secret, 'type', lambda secret: [secret.type])")
        named = functions.setdefault(index.kind, {})
        if index.name in named:
            raise ValueError(f"the index {index.name!r} of {index.kind.__name__} is declared twice: rename one of them")
        named[index.name] = _of_cache(index.kind, index.name, index.values)
    return functions


def _of_cache(kind: type[Object], name: str, function: Any) -> IndexFunction:
    if isinstance(function, ObjectIndex):
        return function
    raw = callable(function) and takes(function, 2) and not takes(function, 1)
    require_arguments(function, 2 if raw else 1, f"the index function {name!r} of {kind.__name__}", EXAMPLE)
    if raw:
        of_record: IndexFunction = function
        return of_record
    return ObjectIndex(function, kind, decoder(kind).decode)
