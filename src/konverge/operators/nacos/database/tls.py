"""TLS contexts for databases, in the five modes of libpq."""

from __future__ import annotations

import ssl

from konverge.operators.nacos.database.contract import Tls
from konverge.operators.nacos.database.errors import DatabaseError


class _Context(ssl.SSLContext):
    """Asks for, and verifies, another name than that of the host: drivers know only the host they connect to."""

    expected = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return super().wrap_bio(incoming, outgoing, server_side, self.expected or server_hostname, session)


def context(tls: Tls) -> ssl.SSLContext | None:
    """None where nothing is to be encrypted."""
    if tls.mode == "disable":
        return None
    made = _Context(ssl.PROTOCOL_TLS_CLIENT)
    made.expected = tls.server_name
    made.check_hostname = tls.mode == "verify-full"
    if tls.mode in ("prefer", "require"):
        made.verify_mode = ssl.CERT_NONE
    elif tls.ca:
        _trust(made, tls.ca)
    else:
        made.load_default_certs()
    return made


def _trust(made: ssl.SSLContext, ca: str) -> None:
    try:
        made.load_verify_locations(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        text = "the CA for the database is not a bundle of certificates in PEM: put the certificate into the Secret"
        raise DatabaseError("InvalidTarget", text) from error
