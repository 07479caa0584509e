"""The management service of the Nacos operator: REST in front of `Nacos` resources, for people without kubectl.

It stands on the wire layer and on the client, and keeps nothing: each request is made at the API server with the
caller's own token (`access.py`), so the cluster decides who may do what, and its audit log names who did it.

    service = Service(transport)            # any `Transport` to an API server
    async with service.serving("127.0.0.1", 8082) as address: ...
"""

from __future__ import annotations

from konverge.service.app import Service as Service
from konverge.service.catalogue import Catalogue as Catalogue
from konverge.service.options import ServiceOptions as ServiceOptions

__all__ = ["Catalogue", "Service", "ServiceOptions"]
