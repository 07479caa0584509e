"""PATCH: JSON patch, merge patch, strategic merge patch, apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.apiserver import status
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.http.call import Call


async def patch(call: Call) -> Response:
    raise status.method_not_allowed()
