"""Requests to groups that another server answers. They were authenticated and authorized here, as all are.

Upstream: proxyHandler (kube-aggregator/pkg/apiserver/handler_proxy.go).
"""

from __future__ import annotations

import ssl

from konverge.apiserver.aggregation.connections import Connections, identified
from konverge.apiserver.aggregation.registered import Remote
from konverge.apiserver.go.http import transport_failure
from konverge.apiserver.http import respond
from konverge.apiserver.request.call import Call
from konverge.wire.errors import WireError
from konverge.wire.message import Request, Response
from konverge.wire.reverse_proxy import end_to_end, is_upgrade, of_fields, streamed, upgraded, without_body

_OURS = ("authorization", "impersonate-", "x-remote-", "accept-encoding")
"""Fields that are for this server, by their beginnings: a client must not set its own identity."""


_REDIRECT = "the backend attempted to redirect this request, which is not permitted"
"""A client would follow with its credentials. Upstream: UpgradeAwareHandler.RejectForwardingRedirects."""


async def pass_on(connections: Connections, remote: Remote, call: Call) -> Response:
    """The answer of the server behind, as it comes."""
    if not remote.available:
        return _unavailable(call, "service unavailable")
    request = call.request
    fields = [field for field in end_to_end(request.headers) if not field[0].startswith(_OURS)]
    fields += identified(call.user)
    fields.append(("x-forwarded-for", request.peer.address.rpartition(":")[0] or request.peer.address))
    try:
        address = connections.address(remote)
    except LookupError:
        return _unavailable(call, "service unavailable")
    fields.append(("host", address))
    inner = Request(request.method, request.target, of_fields(fields), request.body)
    try:
        pool = await connections.pool(remote)
        if is_upgrade(request):
            return await upgraded(pool, inner, request, _kept_open)
        stream = await pool.stream(inner)
    except (WireError, OSError, ssl.SSLError) as error:
        why = await transport_failure(error, address, remote.server_name)
        return _unavailable(call, f"error trying to reach service: {why}")
    if 300 <= stream.status < 400 and stream.headers.get("location"):
        await stream.aclose()
        return respond.answer_text(call, 502, _REDIRECT)
    headers = of_fields(end_to_end(stream.headers))
    headers.raw.extend(call.flow_headers)
    return await without_body(request, stream, headers) or streamed(stream, headers, _kept_open)


async def _kept_open() -> None:
    """The connection goes back to its pool by itself."""


def _unavailable(call: Call, text: str) -> Response:
    return respond.answer_text(call, 503, f"{text}\n")
