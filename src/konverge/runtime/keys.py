"""What a request may be: by default the namespace and name of an object, else any frozen struct of the author's."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from konverge.runtime.result import Request


class FrozenDataclass(Protocol):
    """A dataclass; that it is frozen is checked when the controller is declared."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


AnyRequest: TypeAlias = tuple[Any, ...] | msgspec.Struct | FrozenDataclass
"""What a mapping may return: a `Request` (which is a tuple), or the controller's own key. A name alone is a mistake."""


def check_key_type(key: type[Any], controller: str) -> None:
    """Refuse a class whose values could change while they are in a queue."""
    if key is Request or _is_frozen(key):
        return
    raise TypeError(
        f"key={getattr(key, '__name__', key)} of the controller {controller} can be changed: make it a frozen struct, "
        f"`class {getattr(key, '__name__', 'MyKey')}(msgspec.Struct, frozen=True)`, or a frozen dataclass"
    )


def _is_frozen(key: Any) -> bool:
    if not isinstance(key, type):
        return False
    if issubclass(key, msgspec.Struct):
        return key.__struct_config__.frozen and key.__struct_config__.eq
    if dataclasses.is_dataclass(key):
        parameters: Any = key.__dataclass_params__  # type: ignore[attr-defined]
        return bool(parameters.frozen and parameters.eq)
    return issubclass(key, tuple) and hasattr(key, "_fields")


def checked(request: Any, key: type[Any] = Request) -> Any:
    """A request as an author's function gave it. Anything else would fail far from where it came from."""
    if not isinstance(request, key):
        how = "Request(namespace, name)" if key is Request else f"{key.__name__}(…)"
        raise TypeError(f"{request!r} is not a {'Request' if key is Request else key.__name__}: return {how}")
    if key is not Request:
        _require_hash(request)
    return request


def _require_hash(request: Hashable) -> None:
    try:
        hash(request)
    except TypeError as error:
        raise TypeError(f"{request!r} cannot be a request: {error}; use tuples in place of lists") from None
