"""Records as answers: objects, lists, metadata alone, tables.

The plain form is the stored bytes behind a constant prefix. The others are made from the decoded object.
Upstream: apiserver/pkg/endpoints/handlers/response.go.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from konverge.apiserver import field_errors, status
from konverge.apiserver.http import negotiate
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Accepted, Call
from konverge.apiserver.request.protocols import TableMaker
from konverge.apiserver.storage import Record
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Producer, Sink

STREAM_FROM = 512 * 1024
STREAM_PIECE = 128 * 1024
"""Lists of so many bytes or more are sent in pieces of about so many bytes."""
_GZIP = 31
"""What zlib calls the gzip format."""


def plain(served: Served, record: Record) -> bytes:
    """One object as JSON."""
    if served.conversion is None:
        return served.prefix + record.data[1:]
    return msgspec.json.encode(restored(served, record))


def restored(served: Served, record: Record) -> Obj:
    """One object as a dict, in the version that is served, with its kind."""
    obj = record.decode()
    if served.conversion is not None:
        obj = served.conversion.from_storage(obj)
    return with_kind(served, obj)


def internal(served: Served, record: Record) -> Obj:
    """One object as tables and metadata are made from it: a built-in kind is not converted for them."""
    return restored(served, record) if served.custom else with_kind(served, record.decode())


def with_kind(served: Served, obj: Obj) -> Obj:
    return {"kind": served.resource.kind, "apiVersion": served.resource.api_version, **obj}


def item(served: Served, record: Record) -> bytes:
    """One item of a list that is served in another form than it is stored: with its kind only if it is custom."""
    if served.custom:
        return plain(served, record)
    assert served.conversion is not None
    return msgspec.json.encode(served.conversion.from_storage(record.decode()))


def list_head(served: Served, metadata: Obj) -> bytes:
    return (
        f'{{"kind":"{served.list_kind}","apiVersion":"{served.resource.api_version}",'
        f'"metadata":{msgspec.json.encode(metadata).decode()},"items":['
    ).encode()


def items(served: Served, records: Sequence[Record]) -> list[bytes]:
    if served.custom and served.conversion is None:
        prefix = served.prefix
        return [prefix + record.data[1:] for record in records]
    if served.conversion is None:
        return [record.data for record in records]
    return [item(served, record) for record in records]


def list_of(served: Served, records: Sequence[Record], metadata: Obj) -> bytes:
    """A whole list: the stored bytes, joined."""
    return b"".join((list_head(served, metadata), b",".join(items(served, records)), b"]}"))


def list_stream(served: Served, records: Sequence[Record], metadata: Obj, *, gzip: bool = False) -> Producer:
    """A long list, piece by piece: other requests get their turn, and the list is never in memory as a whole."""

    async def produce(sink: Sink) -> None:
        compressor = zlib.compressobj(1, wbits=_GZIP) if gzip else None
        head = list_head(served, metadata)
        for part in _parts(records):
            piece = head + b",".join(items(served, part))
            sink.write(piece if compressor is None else compressor.compress(piece))
            head = b","
            await sink.drain()
        sink.write(b"]}" if compressor is None else compressor.compress(b"]}") + compressor.flush())

    return produce


def _parts(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    start = size = 0
    for end, record in enumerate(records, 1):
        size += len(record.data)
        if size >= STREAM_PIECE:
            yield records[start:end]
            start, size = end, 0
    if start < len(records):
        yield records[start:]


_WITHOUT_ROWS = "apiextensions.k8s.io/customresourcedefinitions"
# The real server adds this annotation when it converts a whole DaemonSet to v1; metadata alone is not converted.
_MADE_BY_CONVERSION = {"DaemonSet": "deprecated.daemonset.template.generation"}


def partial(obj: Obj, version: str) -> Obj:  # upstream: asPartialObjectMetadata (endpoints/handlers/response.go)
    """An object's metadata alone."""
    metadata, made = obj.get("metadata", {}), _MADE_BY_CONVERSION.get(obj.get("kind", ""))
    if made in metadata.get("annotations", ()):
        rest = {name: text for name, text in metadata["annotations"].items() if name != made}
        metadata = {name: value for name, value in metadata.items() if name != "annotations"}
        metadata |= {"annotations": rest} if rest else {}
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


def unstored(call: Call, obj: Obj) -> Obj:
    """An object that is answered and not stored, such as a review: whole, or its metadata alone."""
    negotiate.check_form(call.accepted, call.resource.go_type, listed=False)
    return partial(obj, call.accepted.version) if call.accepted.form else obj


def include_object(call: Call) -> str:
    """How much of each object a table's rows carry."""
    wanted = (call.query.get("includeObject") or [""])[0]
    if wanted not in ("", "Metadata", "None", "Object"):
        error = field_errors.invalid("includeObject", wanted, "must be 'Metadata', 'Object', 'None', or empty")
        raise status.bad_request(f"Unable to convert to Table as requested: {error}")
    return wanted or "Metadata"


def table(
    maker: TableMaker,
    served: Served,
    objects: Sequence[Obj],
    metadata: Obj,
    version: str,
    include: str,
    listed: bool = False,
) -> Obj:
    """Objects as rows under the kind's columns."""
    rows = maker.rows(served, objects, listed=listed)
    for row, obj in zip(rows, objects, strict=True):
        row["object"] = row_object(served, obj, version, include)
    answer: Obj = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
    answer["columnDefinitions"] = maker.columns(served)
    # The real server's table of definitions begins as nil in Go.
    answer["rows"] = rows or (None if served.table == _WITHOUT_ROWS and listed else rows)
    return answer


def row_object(served: Served, obj: Obj, version: str, include: str) -> Any:
    if include == "None":
        return None
    if include != "Object":
        return partial(obj, version)
    converted = served.conversion is not None and not served.custom
    return served.conversion.from_storage(obj) if converted and served.conversion is not None else obj


def in_form(call: Call, served: Served, record: Record, accepted: Accepted) -> Any:
    """One object in a form other than the plain one."""
    obj = internal(served, record)
    if accepted.form == "Table":
        metadata = {"resourceVersion": str(record.revision)}
        return table(call.server.tables, served, [obj], metadata, accepted.version, include_object(call))
    return partial(obj, accepted.version)
