"""An embedded Kubernetes API server: exact on the wire, in this process or on sockets, ready in milliseconds.

async with ApiServer() as server:
    await client_over(server.transport).create(...)     # no sockets
    url = await server.listen()                         # or with them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.apiserver.server import ApiServer as ApiServer

# Lazy: parts of the server (schemas, kinds, status) are used without the whole of it.
__all__, __getattr__, __dir__ = lazy_names(__name__, {"konverge.apiserver.server": "ApiServer"})
