"""Who asks, and a client that is them.

The caller's bearer token goes to the API server as it is; the service has no rights of its own that a request could
borrow. The other way (TokenReview, then SubjectAccessReview, then the request with the service's rights) was not
taken: it needs a service account that may do everything, repeats the cluster's decisions from outside (admission and
field-level webhooks would see the service, not the person), and leaves a moment between the question and the deed.

`own_nothing` is what makes this safe over sockets: a client certificate would go before the token at the API server,
and every caller would be whoever wrote the kubeconfig.
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
_PATIENCE = RetryPolicy(retries=2, budget=3.0)
"""A person waits for the answer, and can press the button again."""


def own_nothing(config: Config) -> Config:
    """The way to a cluster without anything that says who we are."""
    bare = replace(config.tls, certificate_file="", certificate_data="", key_file="", key_data="")
    return replace(config, credentials=ANONYMOUS, impersonate=None, tls=bare)


def bearer(headers: Headers) -> str:
    """The token of a request. Raises a 401 that says what to send."""
    given = headers.get_all("authorization")
    scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise unauthorized(
            "send a token of the cluster: `Authorization: Bearer …`; `kubectl create token NAME` makes one for a "
            "service account"
        )
    if not _TOKEN.fullmatch(token.strip()):
        raise unauthorized("the token holds characters that no token has, or is too long")
    return token.strip()


def digest(token: str) -> bytes:
    """What stands for a token where callers are counted: the token itself is kept nowhere."""
    return hashlib.sha256(token.encode()).digest()


def client_of(token: str, transport: Transport) -> Client:
    """A client that is the caller. It owns nothing, so it need not be closed."""
    return Client(transport, credentials=Static.bearer(token), retry=_PATIENCE, user_agent=AGENT, on_warning=_unheard)


def _unheard(warning: ServerWarning) -> None:
    """Warnings are for the caller's request; the log of the service is the wrong place for them."""
