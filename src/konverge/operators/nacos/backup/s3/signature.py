"""AWS Signature Version 4 of requests to S3; pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY = hashlib.sha256(b"").hexdigest()
"""The digest of no body."""
_UNRESERVED = "-_.~"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is secret is not shown."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is signed."""

    method: str
    host: str
    """With the port, where it is not that of the scheme."""
    path: str
    """Not encoded."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further ones, by names in lower case."""
    digest: str = EMPTY
    """The SHA-256 of the body."""


def encoded_path(path: str) -> str:
    """S3 encodes a path once, unlike other services."""
    return quote(path, safe="/" + _UNRESERVED)


def encoded_query(query: Mapping[str, str]) -> str:
    """
    >>> encoded_query({"prefix": "a/b", "list-type": "2", "acl": ""})
    'acl=&list-type=2&prefix=a%2Fb'
    """
    pairs = sorted((quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED)) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed_headers(request: Request, credentials: Credentials, region: str, moment: datetime) -> dict[str, str]:
    """The headers that the request has to be sent with. `moment` is in UTC."""
    stamp = f"{moment:%Y%m%dT%H%M%SZ}"
    headers = {
        **request.headers,
        "host": request.host,
        "x-amz-content-sha256": request.digest,
        "x-amz-date": stamp,
    }
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        (
            request.method,
            encoded_path(request.path),
            encoded_query(request.query),
            *(f"{name}:{' '.join(headers[name].split())}" for name in sorted(headers)),
            "",
            names,
            request.digest,
        )
    )
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = _key(credentials.secret_key, stamp[:8], region)
    value = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    scheme = f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={value}"
    return {**headers, "authorization": scheme}


def _key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
