"""Subresources that are a view or a part of the object: status, scale, and those that a kind declares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from konverge.apiserver import status
from konverge.apiserver.http import patch, reads, update
from konverge.apiserver.registry import Served, Subresource
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.http.call import Call

Handler = Callable[["Call"], Awaitable[Response]]
_HANDLERS: dict[str, Handler] = {"get": reads.get, "update": update.update, "patch": patch.patch}


def handler(call: Call, served: Served, found: Subresource) -> Handler:
    """The handler of a subresource that speaks the kind itself."""
    if call.info.verb not in _HANDLERS:
        raise status.method_not_allowed()
    return _HANDLERS[call.info.verb]
