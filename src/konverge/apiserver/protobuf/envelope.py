"""The frame around an object: a prefix of four bytes, its kind and version, its message. Upstream: runtime.Unknown."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.protobuf import messages
from konverge.apiserver.protobuf.special import fields
from konverge.apiserver.protobuf.wire import ProtobufError
from konverge.apiserver.strategy import Obj
from konverge.objects.resource import Resource

PREFIX = b"k8s\x00"
DEEPEST = 300
"""Levels of an object. Real ones have some thirty; the readers after this one need stack for each level."""
_TYPE_META, _RAW = 1, 2
_API_VERSION, _KIND = 1, 2


def decode(body: bytes, expected: Resource | None = None) -> Obj:
    """The object of a body; `expected` is its kind where it names none. An object of an unknown kind has only its kind
    and version: the next reader refuses it with the API's message."""
    api_version, kind, raw = _open(body)
    if not kind and expected is not None:
        api_version, kind = expected.api_version, expected.kind
    head: Obj = {"kind": kind, "apiVersion": api_version}
    read = messages.find(api_version, kind)
    if read is None:
        return head
    version = api_version.rpartition("/")[2]
    try:
        obj = read(raw, 0, len(raw))
    except ProtobufError as error:
        raise ProtobufError(str(error), kind, version) from None
    except RecursionError:
        raise ProtobufError("proto: too many levels", kind, version) from None
    if _deeper_than(DEEPEST, obj):
        raise ProtobufError("proto: too many levels", kind, version)
    return {**obj, **head}


def _deeper_than(limit: int, value: Any) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _open(body: bytes) -> tuple[str, str, bytes]:
    """The version and kind that a body names, and the bytes of its object."""
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(PREFIX):
        shown = " ".join(map(str, PREFIX))
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{shown}]")
    if body == PREFIX:
        raise ProtobufError("empty body")
    frame = fields(body, len(PREFIX), len(body))
    meta = _bytes(frame, _TYPE_META)
    about = fields(meta, 0, len(meta))
    api_version, kind = (_bytes(about, number).decode("utf-8", "replace") for number in (_API_VERSION, _KIND))
    return api_version, kind, _bytes(frame, _RAW)


def _bytes(values: dict[int, Any], number: int) -> bytes:
    value = values.get(number, b"")
    return value if isinstance(value, bytes) else b""
