"""From an object to the bytes of an answer: JSON or YAML, indented for people, compressed when large."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver.http import negotiate
from konverge.apiserver.http.negotiate import Accepted
from konverge.wire.message import LOCAL_PEER, Headers, Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

# Below this the real server does not compress: the time would cost more than the bytes.
GZIP_FROM = 128 * 1024

_CONTENT_TYPE = {
    negotiate.JSON: (b"content-type", b"application/json"),
    negotiate.YAML: (b"content-type", b"application/yaml"),
}
GZIPPED = ((b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding"))
_CACHE = (b"cache-control", b"no-cache, private")


def encode(obj: Any, accepted: Accepted) -> bytes:
    """An object in the form of the answer."""
    if accepted.media == negotiate.YAML:
        return _yaml(obj)
    data = msgspec.json.encode(obj)
    return msgspec.json.format(data, indent=2) if accepted.pretty else data + b"\n"


def reformat(data: bytes, accepted: Accepted) -> bytes:
    """JSON bytes, as stored, in the form of the answer."""
    if accepted.media == negotiate.YAML:
        return _yaml(msgspec.json.decode(data))
    return msgspec.json.format(data, indent=2) if accepted.pretty else data


def _yaml(obj: Any) -> bytes:
    import yaml  # few clients ask for YAML, and the import is not cheap

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(obj, Dumper=dumper, default_flow_style=False, allow_unicode=True)
    return text.encode()


def headers(call: Call, content_type: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """The fields of every answer."""
    found = [(b"audit-id", call.audit_id.encode("latin-1", "replace")), _CACHE, content_type]
    found += [(b"warning", text.encode("utf-8")) for text in call.warning_headers()]
    found += call.server.flow_headers
    return found


def whole(call: Call, code: int, body: bytes, media: str = negotiate.JSON) -> Response:
    """An answer whose body is complete."""
    content_type = _CONTENT_TYPE.get(media) or (b"content-type", media.encode("latin-1"))
    return Response(code, Headers(headers(call, content_type)), body)


def text(call: Call, code: int, body: str) -> Response:
    return Response(code, Headers(headers(call, (b"content-type", b"text/plain; charset=utf-8"))), body.encode())


_HERE = ("127.", "::1:", "::ffff:127.", LOCAL_PEER.address)


def wants_gzip(call: Call) -> bool:
    """Whether a large answer is to be compressed: not for a client on this machine, to whom bytes cost nothing."""
    accepted = call.request.headers.get("accept-encoding")
    return "gzip" in accepted and not call.request.peer.address.startswith(_HERE)


async def compressed(call: Call, response: Response) -> Response:
    """Compress a large answer for a client that can read it; off the loop, as it takes long."""
    if len(response.body) > GZIP_FROM and response.producer is None and wants_gzip(call):
        response.body = await asyncio.to_thread(gzip.compress, response.body, 1)
        response.headers.raw.extend(GZIPPED)
    return response
