"""Types that are encoded otherwise than they look in JSON: times, quantities, raw JSON, schemas."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from konverge.apiserver.protobuf.wire import ProtobufError, length, signed, skip, varint
from konverge.objects.durations import format_duration

Read = Callable[[bytes, int, int], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO = -62_135_596_800
"""The seconds of the zero time, which is the beginning of the year 1."""


def fields(data: bytes, at: int, end: int) -> dict[int, Any]:
    """The fields of a small message: numbers as they are, the rest as bytes; of repeated ones the last."""
    values: dict[int, Any] = {}
    while at < end:
        key, at = varint(data, at, end)
        if key & 7 == 2:
            start, at = length(data, at, end)
            values[key >> 3] = data[start:at]
        elif key & 7 == 0:
            values[key >> 3], at = varint(data, at, end)
        else:
            at = skip(data, at, end, key & 7)
    return values


def _moment(data: bytes, at: int, end: int) -> datetime | None:
    """A time; None for the zero time, and for an empty message."""
    values = fields(data, at, end)
    seconds, nanoseconds = signed(values.get(1, 0)), values.get(2, 0) & 0xFFFFFFFF
    if not values or (seconds == _ZERO and not nanoseconds):
        return None
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise ProtobufError("Time.MarshalJSON: year outside of range [0,9999]") from None
    return moment.replace(microsecond=nanoseconds // 1000 % 1_000_000)


def time(data: bytes, at: int, end: int) -> str | None:
    moment = _moment(data, at, end)
    return None if moment is None else f"{moment.year:04}{moment:-%m-%dT%H:%M:%S}Z"


def micro_time(data: bytes, at: int, end: int) -> str | None:
    moment = _moment(data, at, end)
    return None if moment is None else f"{moment.year:04}{moment:-%m-%dT%H:%M:%S.%f}Z"


def duration(data: bytes, at: int, end: int) -> str:
    return format_duration(signed(fields(data, at, end).get(1, 0)))


def quantity(data: bytes, at: int, end: int) -> str:
    text: bytes = fields(data, at, end).get(1, b"0")
    return text.decode("utf-8", "replace") or "0"


def int_or_string(data: bytes, at: int, end: int) -> int | str:
    values = fields(data, at, end)
    if values.get(1, 0):
        text: bytes = values.get(3, b"")
        return text.decode("utf-8", "replace")
    return signed(values.get(2, 0))


def raw(data: bytes, at: int, end: int) -> Any:
    """JSON within the message."""
    text = fields(data, at, end).get(1)
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtobufError(f"json: {error}") from None


SPECIAL: dict[str, Read] = {
    "time": time,
    "microtime": micro_time,
    "duration": duration,
    "quantity": quantity,
    "intOrString": int_or_string,
    "raw": raw,
}


def schema_or(kind: str, schema: Read) -> Read:
    """A schema, or what may stand in its place: a bool, a list of schemas, a list of strings."""

    def read(data: bytes, at: int, end: int) -> Any:
        single: Any = None
        listed: list[Any] = []
        allowed = False
        number = 2 if kind == "schemaOrBool" else 1
        while at < end:
            key, at = varint(data, at, end)
            if key & 7 == 0:
                value, at = varint(data, at, end)
                allowed = bool(value)
            elif key & 7 == 2:
                start, at = length(data, at, end)
                if key >> 3 == number:
                    single = schema(data, start, at)
                elif kind == "schemaOrStrings":
                    listed.append(data[start:at].decode("utf-8", "replace"))
                else:
                    listed.append(schema(data, start, at))
            else:
                at = skip(data, at, end, key & 7)
        if single is not None:
            return single
        return allowed if kind == "schemaOrBool" else listed

    return read
