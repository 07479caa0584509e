"""The OpenAPI documents of a server, made when they are asked for and kept as long as they are true.

A change of a definition changes the documents of its own group-versions; those of all others stay. What belongs to a
kind is kept by the object that serves it (`Served`), which a change of the definition replaces. A definition may be
large, and there may be thousands: documents are made aside (`aside.py`), from what was served when they were asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from konverge.apiserver import aside
from konverge.apiserver.aggregation.documents import specifications
from konverge.apiserver.http import respond
from konverge.apiserver.openapi import builtin, custom, v2
from konverge.apiserver.registry import Served
from konverge.apiserver.request.protocols import Backend
from konverge.apiserver.strategy import Obj

T = TypeVar("T")
Key = str | int
_PER_KIND = 4096
"""Bytes of a schema that take as long as the paths of a kind."""


class Document(NamedTuple):
    body: bytes
    etag: str


class _Kept(Generic[T]):
    """Results by key, each for the kinds that it was made of.

    What is made aside is collected in another one, which takes the place of this one on the loop when it is
    complete: the work of a request that has ended goes on, beside that of the next one.
    """

    def __init__(self) -> None:
        self.results: dict[Key, tuple[list[Served], T]] = {}

    def take(self, key: Key, kinds: list[Served], known: _Kept[T], make: Callable[[], T]) -> T:
        """The result that is known for these kinds, or a new one; now it is here as well."""
        before = known.results.get(key)
        if before is None or [id(served) for served in before[0]] != [id(served) for served in kinds]:
            before = kinds, make()
        self.results[key] = before
        return before[1]


class _State(NamedTuple):
    """What is served at a generation of the registry."""

    generation: int
    kinds: dict[tuple[str, str], list[Served]]
    """The custom kinds of each group-version."""


class Documents:
    """The documents of a server."""

    def __init__(self, server: Backend) -> None:
        self._registry = server.registry
        self._aggregation = server.aggregation
        self._making = asyncio.Lock()
        self._v3: tuple[int, dict[str, Document]] = -1, {}
        self._v2: dict[bool, tuple[tuple[int, int], Document]] = {}
        self._documents: _Kept[Document] = _Kept()
        """What the v3 documents were made of."""
        self._pieces: dict[bool, _Kept[v2.Piece]] = {False: _Kept(), True: _Kept()}
        """What the v2 documents were made of; `True` for protobuf."""

    def _state(self) -> _State:
        registry = self._registry
        kinds = {
            (group, version): custom.served_in(registry, group, version)
            for group, version in custom.group_versions(registry)
        }
        return _State(registry.generation, kinds)

    async def custom(self) -> dict[str, Document]:
        """The v3 documents of custom kinds, by the names of the index."""
        async with self._making:
            if self._v3[0] != self._registry.generation:
                state = self._state()
                documents, kept = await aside.run(_size(state), _make_v3, state, self._documents)
                self._v3, self._documents = (state.generation, documents), kept
            return self._v3[1]

    async def v2(self, *, as_protobuf: bool) -> Document:
        async with self._making:
            known, generation = self._v2.get(as_protobuf), (self._registry.generation, self._aggregation.generation)
            if known is None or known[0] != generation:
                state, others = self._state(), specifications(self._aggregation)
                pieces = self._pieces[as_protobuf and not others]  # the built-in part takes long
                work = partial(_make_v2, state, pieces, others, as_protobuf)
                made, self._pieces[as_protobuf and not others] = await aside.run(aside.FROM, work)
                known = self._v2[as_protobuf] = generation, made
            return known[1]


def _make_v3(state: _State, known: _Kept[Document]) -> tuple[dict[str, Document], _Kept[Document]]:
    kept: _Kept[Document] = _Kept()
    documents: dict[str, Document] = {}
    for (group, version), kinds in state.kinds.items():

        def make(group_kinds: list[Served] = kinds) -> Document:
            return _document(custom.document(group_kinds))

        name = f"apis/{group}/{version}"
        documents[name] = kept.take(name, kinds, known, make)
    return documents, kept


def _make_v2(
    state: _State, known: _Kept[v2.Piece], others: list[Obj], as_protobuf: bool
) -> tuple[Document, _Kept[v2.Piece]]:
    """`known` has pieces of protobuf if the document is made of them: not if those of other servers are part of it."""
    kept: _Kept[v2.Piece] = _Kept()
    piece = v2.protobuf_piece if as_protobuf and not others else v2.json_piece

    def made(served: Served) -> v2.Piece:
        return kept.take(id(served), [served], known, lambda: piece(served))

    pieces = [made(served) for kinds in state.kinds.values() for served in kinds]
    if others:
        return _document(v2.merged(pieces, others, as_protobuf=as_protobuf)), kept
    return _document(v2.protobuf(pieces) if as_protobuf else v2.document(pieces)), kept


def _size(state: _State) -> int:
    return sum(_PER_KIND + served.weight for kinds in state.kinds.values() for served in kinds)


def _document(body: bytes) -> Document:
    return Document(body, respond.etag_of(body))


def index(own: dict[str, Document]) -> dict[str, str]:
    """The hash of each v3 document, by its name."""
    return dict(sorted({**builtin.index().documents, **{name: made.etag for name, made in own.items()}}.items()))
