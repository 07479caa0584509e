"""An embedded Kubernetes API server: exact on the wire, in this process or on sockets, ready in milliseconds.

async with ApiServer() as server:
    await client_over(server.transport).create(...)     # no sockets
    url = await server.listen()                         # or with them
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.apiserver.server import ApiServer as ApiServer

__all__ = ["ApiServer"]


def __getattr__(name: str) -> Any:
    """Parts of the server (schemas, kinds, status) are used without the whole of it."""
    if name != "ApiServer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from konverge.apiserver.server import ApiServer

    return ApiServer
