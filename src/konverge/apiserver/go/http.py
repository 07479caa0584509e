"""Go's net/http and client-go's rest: why a request to a webhook failed."""

from __future__ import annotations

import re
import socket
import ssl

import msgspec

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.go.x509 import refusal
from konverge.wire.errors import ConnectionLost, ProtocolError
from konverge.wire.message import Response

_REASONS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "{body}",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    503: "the server is currently unable to handle the request",
}


async def transport_failure(error: BaseException, address: str, server_name: str) -> str:
    """What went wrong before there was an answer."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: x509: {await refusal(cause, address, server_name)}"
        if isinstance(cause, socket.gaierror):
            return f"dial tcp: lookup {address.rpartition(':')[0]}: no such host"
        if isinstance(cause, ConnectionRefusedError):
            return f"dial tcp {_dialled(cause, address)}: connect: connection refused"
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return "context deadline exceeded"
    if any(isinstance(cause, ConnectionLost) for cause in causes):
        return "EOF"
    if any(isinstance(cause, ProtocolError) for cause in causes):
        return f"net/http: HTTP/1.x transport connection broken: {error}"
    return str(error)


_DIALLED = re.compile(r"Connect call failed \('([^']+)', (\d+)")


def _dialled(error: OSError, address: str) -> str:
    """The address behind a name, as Go shows it."""
    found = _DIALLED.findall(str(error))
    if not found:
        return address
    host, port = found[-1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _causes(error: BaseException | None) -> list[BaseException]:
    causes: list[BaseException] = []
    while error is not None and len(causes) < 8:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes


# upstream: transformResponse (client-go rest/request.go) and NewGenericServerResponse (apimachinery api/errors)
def http_failure(response: Response) -> str:
    """What an answer other than 200 means: the message of its Status, else that of its code."""
    try:
        answer = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        answer = None
    if isinstance(answer, dict) and answer.get("kind") == "Status" and answer.get("message"):
        return str(answer["message"])
    media = response.headers.get("content-type")
    is_text = not media or media.startswith("text/")  # upstream: isTextResponse
    body = response.body.decode("utf-8", "replace").strip() if is_text else "unknown"
    if response.status in _REASONS:
        return _REASONS[response.status].format(body=body)
    if response.status >= 500:
        return f"an error on the server ({quote(body or 'unknown')}) has prevented the request from succeeding"
    return f"the server responded with the status code {response.status} but did not return more information"
