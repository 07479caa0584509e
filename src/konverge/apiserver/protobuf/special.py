"""Types whose JSON form is not that of their fields: times, quantities, numbers or texts, raw JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from konverge.apiserver.protobuf.varint import ProtobufError, Value, fields, signed
from konverge.objects.durations import format_duration
from konverge.objects.times import format_micro_time, format_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _numbered(data: bytes) -> dict[int, Value]:
    return {number: value for number, _, value in fields(data)}


def _whole(found: dict[int, Value], number: int) -> int:
    value = found.get(number, 0)
    if not isinstance(value, int):
        raise ProtobufError(f"proto: wrong wireType = 2 for field {number}")
    return signed(value)


def _text(found: dict[int, Value], number: int, default: bytes = b"") -> str:
    return _bytes(found, number, default).decode("utf-8", "replace")


def _bytes(found: dict[int, Value], number: int, default: bytes = b"") -> bytes:
    value = found.get(number, default)
    if not isinstance(value, bytes):
        raise ProtobufError(f"proto: wrong wireType = 0 for field {number}")
    return value


def _moment(data: bytes) -> datetime | None:
    """No bytes at all are the zero time, which JSON has as null."""
    if not data:
        return None
    found = _numbered(data)
    try:
        return _EPOCH + timedelta(seconds=_whole(found, 1), microseconds=_whole(found, 2) // 1000)
    except OverflowError:
        raise ProtobufError("proto: a time outside of the years 1 to 9999") from None


def time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else format_time(moment)


def micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else format_micro_time(moment)


def duration(data: bytes) -> str:
    return format_duration(_whole(_numbered(data), 1))


def quantity(data: bytes) -> str:
    return _text(_numbered(data), 1, b"0") or "0"


def int_or_string(data: bytes) -> int | str:
    found = _numbered(data)
    return _text(found, 3) if _whole(found, 1) else _whole(found, 2)


def raw_json(data: bytes) -> Any:
    """JSON inside of protobuf; what is no JSON is found by whoever reads the object."""
    raw = _bytes(_numbered(data), 1)
    return msgspec.Raw(raw) if raw else None


def strings(data: bytes) -> list[str]:
    """A list that is a message of its own, because protobuf has no maps of lists."""
    return [value.decode("utf-8", "replace") for _, _, value in fields(data) if isinstance(value, bytes)]


READERS: dict[str, Callable[[bytes], Any]] = {
    "strings": strings,
    "apimachinery/pkg/apis/meta/v1.Time": time,
    "apimachinery/pkg/apis/meta/v1.MicroTime": micro_time,
    "apimachinery/pkg/apis/meta/v1.Duration": duration,
    "apimachinery/pkg/apis/meta/v1.FieldsV1": raw_json,
    "apimachinery/pkg/api/resource.Quantity": quantity,
    "apimachinery/pkg/util/intstr.IntOrString": int_or_string,
    "apimachinery/pkg/runtime.RawExtension": raw_json,
    "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": raw_json,
}
