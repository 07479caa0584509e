"""The management service of the Nacos operator: REST in front of `Nacos` resources, for people without kubectl.

It uses the wire layer and the client, and stores nothing: each request goes to the API server with the caller's own
token (`access.py`), so the cluster decides who may do what, and its audit log names the caller.

    service = Service(transport)            # any `Transport` to an API server
    async with service.serving("127.0.0.1", 8082) as address: ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.service.app import Service as Service
    from konverge.service.options import Catalogue as Catalogue
    from konverge.service.options import ServiceOptions as ServiceOptions

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.service.app": "Service",
        "konverge.service.options": "Catalogue ServiceOptions",
    },
)
