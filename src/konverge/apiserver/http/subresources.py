"""Subresources that are a view or a part of the object: status, scale, and those that a kind declares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from konverge.apiserver import status
from konverge.apiserver.http import patch, reads, scale, update
from konverge.apiserver.registry import Served, Subresource
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

Handler = Callable[["Call"], Awaitable[Response]]
_SCALE: dict[str, Handler] = {"get": scale.get, "update": scale.update, "patch": scale.patch_scale}
_HANDLERS: dict[str, Handler] = {"get": reads.get, "update": update.update, "patch": patch.patch}


def handler(call: Call, served: Served, found: Subresource) -> Handler:
    """The handler of a subresource that speaks the kind itself."""
    handlers = _SCALE if found.name == "scale" else _HANDLERS
    if call.info.verb not in handlers:
        raise status.method_not_allowed()
    return handlers[call.info.verb]
