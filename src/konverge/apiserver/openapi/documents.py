"""The OpenAPI documents of a server, made when they are asked for and kept as long as they are true.

A change of a definition changes the documents of its own group-versions; those of all others stay. What belongs to a
kind is kept by the object that serves it (`Served`), which a change of the definition replaces. A definition may be
large, and there may be thousands: documents are made aside (`aside.py`), from what was served when they were asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from konverge.apiserver import aside
from konverge.apiserver.http import respond
from konverge.apiserver.openapi import builtin, custom, v2
from konverge.apiserver.registry import Served
from konverge.apiserver.request.protocols import Backend

T = TypeVar("T")
Key = str | int
_PER_KIND = 4096
"""Bytes of a schema that take as long as the paths of a kind."""


class Document(NamedTuple):
    body: bytes
    etag: str


class _Kept:
    """Results by key, each for the kinds that it was made of."""

    def __init__(self) -> None:
        self._results: dict[Key, tuple[list[Served], object]] = {}

    def get(self, key: Key, kinds: list[Served], make: Callable[[], T]) -> T:
        known = self._results.get(key)
        if known is None or [id(served) for served in known[0]] != [id(served) for served in kinds]:
            known = self._results[key] = kinds, make()
        result: T = known[1]  # type: ignore[assignment]
        return result

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget all others."""
        self._results = {key: self._results[key] for key in keys}


class _State(NamedTuple):
    """What is served at a generation of the registry."""

    generation: int
    kinds: dict[tuple[str, str], list[Served]]
    """The custom kinds of each group-version."""


class Documents:
    """The documents of a server."""

    def __init__(self, server: Backend) -> None:
        self._registry = server.registry
        self._making = asyncio.Lock()
        self._v3: tuple[int, dict[str, Document]] = -1, {}
        self._v2: dict[bool, tuple[int, Document]] = {}
        self._kept: dict[str, _Kept] = {}

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
                self._v3 = state.generation, await aside.run(_size(state), self._make_v3, state)
            return self._v3[1]

    async def v2(self, *, as_protobuf: bool) -> Document:
        async with self._making:
            known = self._v2.get(as_protobuf)
            if known is None or known[0] != self._registry.generation:
                state = self._state()
                made = await aside.run(aside.FROM, self._make_v2, state, as_protobuf)  # the built-in part takes long
                known = self._v2[as_protobuf] = state.generation, made
            return known[1]

    def _make_v3(self, state: _State) -> dict[str, Document]:
        kept = self._kept.setdefault("v3", _Kept())
        documents: dict[str, Document] = {}
        for (group, version), kinds in state.kinds.items():

            def make(group_kinds: list[Served] = kinds) -> Document:
                return _document(custom.document(group_kinds))

            name = f"apis/{group}/{version}"
            documents[name] = kept.get(name, kinds, make)
        kept.keep(documents)
        return documents

    def _make_v2(self, state: _State, as_protobuf: bool) -> Document:
        kept = self._kept.setdefault(f"v2 {as_protobuf}", _Kept())
        every = [served for kinds in state.kinds.values() for served in kinds]
        piece = v2.protobuf_piece if as_protobuf else v2.json_piece

        def made(served: Served) -> v2.Piece:
            return kept.get(id(served), [served], lambda: piece(served))

        pieces = [made(served) for served in every]
        kept.keep(map(id, every))
        return _document(v2.protobuf(pieces) if as_protobuf else v2.document(pieces))


def _size(state: _State) -> int:
    return sum(_PER_KIND + served.weight for kinds in state.kinds.values() for served in kinds)


def _document(body: bytes) -> Document:
    return Document(body, respond.etag_of(body))


def index(own: dict[str, Document]) -> dict[str, str]:
    """The hash of each v3 document, by its name."""
    return dict(sorted({**builtin.index().documents, **{name: made.etag for name, made in own.items()}}.items()))
