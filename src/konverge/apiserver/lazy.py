"""Handlers that are imported when the first request asks for them: a server that starts pays only for what is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call
    from konverge.wire.message import Response

Route = Callable[["Call"], Awaitable["Response"]]


def route(module: str, name: str) -> Route:
    """The handler `name` of a module that is not imported yet."""

    async def handler(call: Call) -> Response:
        found: Route = getattr(import_module(module), name)
        return await found(call)

    return handler
