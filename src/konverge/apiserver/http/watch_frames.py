"""Watch events as bytes on the wire: a line of JSON for each.

The bytes of an event depend on the served version and the form only, so they are made once and shared by all watchers
that see the same (`Event.frames`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.apiserver.http import render
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Accepted
from konverge.apiserver.request.protocols import TableMaker
from konverge.apiserver.schema.zero_values import zero
from konverge.apiserver.storage import Record
from konverge.apiserver.strategy import Obj


class Plain:
    """Objects as they are."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.key: Any = served.prefix
        self._heads = {
            type_: b'{"type":"%b","object":' % type_.encode() + served.prefix
            for type_ in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
        }

    def frame(self, type_: str, record: Record) -> bytes:
        if self._served.conversion is None:
            return b"".join((self._heads[type_], record.data[1:], b"}\n"))
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), render.plain(self._served, record))

    def bookmark(self, revision: int, annotations: Obj | None) -> bytes:
        obj = {**_empty(self._served), "metadata": mark(revision, annotations)}
        return self._heads["BOOKMARK"] + msgspec.json.encode(obj)[1:] + b"}\n"


def _empty(served: Served) -> Obj:
    """The object of a bookmark has no content: for a built-in kind it is what Go writes for an empty one."""
    if served.typing is None or not served.typing.go:
        return {}
    obj: Obj = zero(served.typing)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return obj


class Partial:
    """Metadata alone."""

    def __init__(self, served: Served, version: str) -> None:
        self._served, self._version = served, version
        self.key: Any = (served.prefix, version)

    def frame(self, type_: str, record: Record) -> bytes:
        return line(type_, render.partial(render.internal(self._served, record), self._version))

    def bookmark(self, revision: int, annotations: Obj | None) -> bytes:
        return line("BOOKMARK", render.partial({"metadata": mark(revision, annotations)}, self._version))


class Rows:
    """Tables of one row; only the first names the columns, so frames are each watcher's own."""

    key: Any = None

    def __init__(self, served: Served, maker: TableMaker, version: str, include: str) -> None:
        self._served, self._maker, self._version, self._include = served, maker, version, include
        self._first = True

    def _table(self, objects: list[Obj], revision: int) -> Obj:
        metadata = {"resourceVersion": str(revision)}
        made = render.table(self._maker, self._served, objects, metadata, self._version, self._include)
        if not self._first:
            made["columnDefinitions"] = None
        self._first = False
        return made

    def frame(self, type_: str, record: Record) -> bytes:
        return line(type_, self._table([render.internal(self._served, record)], record.revision))

    def bookmark(self, revision: int, annotations: Obj | None) -> bytes:
        made = self._table([], revision)
        obj = render.with_kind(self._served, {"metadata": mark(revision, annotations)})
        cells = ["" for _ in self._maker.columns(self._served)]
        made["rows"] = [{"cells": cells, "object": render.row_object(self._served, obj, self._version, self._include)}]
        return line("BOOKMARK", made)


Framer = Plain | Partial | Rows


def line(type_: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": type_, "object": obj}) + b"\n"


def mark(revision: int, annotations: Obj | None) -> Obj:
    metadata: Obj = {"resourceVersion": str(revision)}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


def framer(served: Served, accepted: Accepted, maker: TableMaker, include: str) -> Framer | None:
    """How events are encoded; None when the asked form has no events: no object can be shown as a list."""
    if accepted.form == "PartialObjectMetadataList":
        return None
    if accepted.form == "Table":
        return Rows(served, maker, accepted.version, include)
    return Partial(served, accepted.version) if accepted.form else Plain(served)
