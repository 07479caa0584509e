"""The frame around an object: four bytes to know it by, its kind and version, and the message itself."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.protobuf import layout, reader
from konverge.apiserver.protobuf.varint import ProtobufError, fields

PREFIX = b"k8s\x00"
_TYPE, _RAW = 1, 2
_API_VERSION, _KIND = 1, 2


def decode(body: bytes) -> dict[str, Any]:
    """The object of a body. One of a kind that is not known has its kind and version alone: whoever reads them next
    refuses it in the words of the API."""
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(PREFIX):
        shown = " ".join(str(byte) for byte in PREFIX)
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{shown}]")
    if len(body) == len(PREFIX):
        raise ProtobufError("empty body")
    frame = _parts(body[len(PREFIX) :])
    about = _parts(frame.get(_TYPE, b""))
    api_version, kind = (about.get(number, b"").decode("utf-8", "replace") for number in (_API_VERSION, _KIND))
    head = {"kind": kind, "apiVersion": api_version}
    struct = layout.struct_of(api_version, kind)
    if struct is None:
        return head
    try:
        return head | reader.message(struct, frame.get(_RAW, b""))
    except ProtobufError as error:
        error.kind, error.version = kind, api_version.rpartition("/")[2]
        raise


def _parts(data: bytes) -> dict[int, bytes]:
    return {number: value for number, _, value in fields(data) if isinstance(value, bytes)}
