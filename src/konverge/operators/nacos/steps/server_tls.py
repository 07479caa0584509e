"""The part of MakeEnsure that is about the servers' own certificate: one that no server could start with is refused.

Servers read it when they start, and exit where they cannot: what is wrong must be found before a restart. A certificate
that is renewed is part of the digest of Secrets, which restarts the servers one by one.
"""

from __future__ import annotations

import ssl

from konverge.operators.nacos.children.server_tls import CERTIFICATE, KEY
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, Outcome, StepError, failed
from konverge.operators.nacos.steps.secrets import read_secret, value_of
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.wire.tls import server_context

TLS_FAILED = "TlsFailed"
_PKCS8 = "-----BEGIN PRIVATE KEY-----"


async def check_server_tls(state: ReconcileState) -> Outcome:
    """Fails where nothing of the desired change can be written; the servers that run are to be looked after."""
    tls = state.desired.spec.tls
    if tls is None:
        return CONTINUE
    name = tls.secret_ref.name
    try:
        secret = await read_secret(state, name)
        certificate, key = value_of(secret, CERTIFICATE), value_of(secret, KEY)
    except StepError as error:
        return error.outcome
    if _PKCS8 not in key:
        message = (
            f"the key in secret {name} is not PKCS #8, and servers read no other: with cert-manager set "
            "privateKey.encoding: PKCS8, else use `openssl pkcs8 -topk8 -nocrypt`"
        )
        return failed(PARAMETER, TLS_FAILED, message)
    try:
        server_context(certificate.encode(), key.encode())
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", "") or "not PEM"
        message = f"certificate and key in secret {name} do not work together ({reason}): put a matching pair there"
        return failed(PARAMETER, TLS_FAILED, message)
    return CONTINUE
