"""JSON and plain data to models and back.

Decoders are made once per class. `Quantity` is the only type that msgspec does not know, so these functions (and not
msgspec's own) are the way in and out. Plain data goes through JSON, because a part of a model may be JSON (its
managedFields). An empty `status` is not sent: it belongs to the status subresource, and sending it in an apply would
claim it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from konverge.objects.meta import Object
from konverge.objects.quantity import Quantity, parse

_T = TypeVar("_T")

_EMPTY_STATUS = b'"status":{}}'


def encode_hook(value: Any) -> Any:
    """What msgspec should encode in place of a type that it does not know."""
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form; give a model, a Quantity or plain data")


def decode_hook(wanted: type[Any], value: Any) -> Any:
    """A value of a type that msgspec does not know, from decoded JSON."""
    if wanted is Quantity:
        if type(value) is str:
            return parse(value.strip())
        if type(value) is int or type(value) is float:
            return Quantity(value)
    raise ValueError(f"Expected a `{wanted.__name__}`, got `{type(value).__name__}`")


_encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
_decode = msgspec.json.Decoder().decode
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(cls: type[_T]) -> msgspec.json.Decoder[_T]:
    """The decoder of a class, made at its first use and kept."""
    known = _decoders.get(cls)
    if known is None:
        known = _decoders[cls] = msgspec.json.Decoder(cls, dec_hook=decode_hook)
    return known


def from_json(cls: type[_T], data: bytes | bytearray | memoryview | str) -> _T:
    """A model from JSON. Raises `msgspec.ValidationError` with the path of what does not fit."""
    return decoder(cls).decode(data)


def to_json(value: Any) -> bytes:
    """A model or plain data as compact JSON."""
    data = _encode(value)
    if data.endswith(_EMPTY_STATUS) and isinstance(value, Object):
        return data[: -len(_EMPTY_STATUS)].rstrip(b",") + b"}"
    return data


def from_dict(cls: type[_T], data: Mapping[str, Any]) -> _T:
    """A model from plain data with the names of the wire."""
    return decoder(cls).decode(_encode(data))


def to_builtins(value: Any) -> Any:
    """A value of any type that a model may hold, as plain data."""
    return msgspec.to_builtins(value, enc_hook=encode_hook)


def validate(value: _T) -> _T:
    """A copy that has passed the checks of decoding: constructing a model in Python checks nothing."""
    return from_json(type(value), _encode(value))


def to_dict(value: Any) -> dict[str, Any]:
    """A model as plain data with the names of the wire; nothing in it is shared with the model."""
    data: dict[str, Any] = _decode(_encode(value))
    if data.get("status") == {} and isinstance(value, Object):
        del data["status"]
    return data
