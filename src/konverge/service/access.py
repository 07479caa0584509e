"""The caller's token, and a client that acts as the caller.

The caller's bearer token goes to the API server unchanged; the service has no rights of its own that a request could
borrow. The alternative (TokenReview, then SubjectAccessReview, then the request with the service's rights) was
rejected: it needs a service account that may do everything, repeats the cluster's decisions from outside (admission and
field-level webhooks would see the service, not the caller), and leaves time between the check and the action.

`own_nothing` makes this safe over sockets: at the API server a client certificate wins over the token, so every caller
would act as the owner of the kubeconfig.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from konverge.client import Client, Config, Static
from konverge.client.credentials import ANONYMOUS
from konverge.client.retry import RetryPolicy
from konverge.client.warnings import ServerWarning
from konverge.service.problems import unauthorized
from konverge.wire.message import Headers, Transport

AGENT = "konverge-service"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,16384}")
"""RFC 6750, with room for the largest tokens of identity providers."""
_RETRIES = RetryPolicy(retries=2, budget=3.0)
"""Few: a person waits for the answer, and can repeat the request."""


def own_nothing(config: Config) -> Config:
    """The same cluster without any credentials of ours."""
    bare = replace(config.tls, certificate_file="", certificate_data="", key_file="", key_data="")
    return replace(config, credentials=ANONYMOUS, impersonate=None, tls=bare)


def bearer(headers: Headers) -> str:
    """The token of a request. Raises a 401 that says what to send."""
    given = headers.get_all("authorization")
    scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise unauthorized(
            "send a token of the cluster: `Authorization: Bearer …`; `kubectl create token NAME` creates one for a "
            "service account"
        )
    if not _TOKEN.fullmatch(token.strip()):
        raise unauthorized("the token has characters that no token may have, or is too long")
    return token.strip()


def digest(token: str) -> bytes:
    """Identifies a token where callers are counted: the token itself is stored nowhere."""
    return hashlib.sha256(token.encode()).digest()


def client_of(token: str, transport: Transport) -> Client:
    """A client that acts as the caller. It owns nothing, so it need not be closed."""
    return Client(transport, credentials=Static.bearer(token), retry=_RETRIES, user_agent=AGENT, on_warning=_ignore)


def _ignore(warning: ServerWarning) -> None:
    """Warnings belong to the caller's request, not to the log of the service."""
