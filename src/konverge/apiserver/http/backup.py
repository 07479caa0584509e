"""A backup of a server that runs: all objects at one revision that is on disk, as one stream.

It shows every Secret, so it is a path of its own that only an explicit rule allows; administrators have it. The objects
are gathered by reference between two turns of the loop, table by table; hashing and sending are done in small pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from konverge.apiserver import status
from konverge.apiserver.http import respond
from konverge.apiserver.request.call import Call
from konverge.apiserver.storage import Record, Store
from konverge.apiserver.storage.backup import encoded
from konverge.wire.message import Headers, Response, Sink

_TYPE = (b"content-type", b"application/octet-stream")


async def backup(call: Call) -> Response:
    if call.info.method != "GET":
        raise status.method_not_allowed()
    revision, tables = await _snapshot(call.server.store)

    async def send(sink: Sink) -> None:
        for piece in encoded(revision, _rows(tables)):
            sink.write(piece)
            await sink.drain()
            await asyncio.sleep(0)  # a reader who keeps up would leave no turn to others

    return Response(200, Headers(respond.headers(call, _TYPE)), producer=send)


async def _snapshot(store: Store) -> tuple[int, dict[str, list[Record]]]:
    while True:
        revision = store.durable
        tables = {}
        for name in list(store.tables):
            tables[name] = store.tables[name].at(revision)
            await asyncio.sleep(0)
        if store.compacted <= revision:  # else history that was needed was dropped meanwhile
            return revision, tables


def _rows(tables: dict[str, list[Record]]) -> Iterator[tuple[str, str, bytes]]:
    return ((name, record.key, record.data) for name, records in tables.items() for record in records)
