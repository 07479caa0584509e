"""TLS settings as data, turned into contexts once.

Certificates come as files or as PEM bytes (kubeconfigs carry both). The ssl module loads a client key from a path
only, so bytes pass through a file in memory, or one that only this user may read, which is gone when the call returns.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """How a client trusts a server and shows itself. PEM bytes win over files."""

    ca_file: str = ""
    ca_data: bytes = b""
    certificate_file: str = ""
    certificate_data: bytes = b""
    key_file: str = ""
    key_data: bytes = field(default=b"", repr=False)
    server_name: str = ""
    """The name to ask for and to verify, when it is not the host of the URL."""
    insecure: bool = False
    """Trust any certificate. For a laptop, never for production."""

    def context(self) -> ssl.SSLContext:
        """Certificates are judged as Go judges them: `ssl.create_default_context` refuses more since Python 3.13, such
        as the many private authorities without an Authority Key Identifier.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.hostname_checks_common_name = False
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            _trust(context, self.ca_file, self.ca_data)
        if self.certificate_data or self.certificate_file:
            certificate = self.certificate_data or Path(self.certificate_file).read_bytes()
            key = self.key_data or (Path(self.key_file).read_bytes() if self.key_file else b"")
            load_chain(context, certificate, key)
        return context


def server_context(
    certificate: bytes, key: bytes, *, client_ca: bytes = b"", require_client: bool = False
) -> ssl.SSLContext:
    """A server's context from PEM bytes. With `client_ca` clients may, or must, show a certificate signed by it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # each costs the server far more than the client
    context.set_alpn_protocols(["http/1.1"])
    load_chain(context, certificate, key)
    if client_ca:
        _load_authorities(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED if require_client else ssl.CERT_OPTIONAL
    return context


def load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate chain and its key from PEM bytes; an empty key means that it is in the same PEM."""
    with _passing_file() as (file, path):
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(path, password="")  # without a password an encrypted key would ask the terminal


@contextmanager
def _passing_file() -> Iterator[tuple[IO[bytes], str]]:
    """A file in memory where the system has such: a key does not reach a disk, and a pod may have none to write to."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        with os.fdopen(os.memfd_create("konverge-pem", os.MFD_CLOEXEC), "wb") as file:
            yield file, f"/proc/self/fd/{file.fileno()}"
        return
    import tempfile  # needed by few, and slow to import

    with tempfile.NamedTemporaryFile(prefix="konverge-", suffix=".pem") as file:  # made with mode 0600
        yield file, file.name


def peer_ended_tls(transport: asyncio.Transport | None) -> bool:
    """Whether the peer has ended TLS properly. Event loops do not report it; the TLS session does: reading returns the
    end and does not wait."""
    session = cast("ssl.SSLObject | None", transport.get_extra_info("ssl_object")) if transport else None
    try:
        return session is not None and session.read(1) == b""
    except ssl.SSLError:
        return False


def _trust(context: ssl.SSLContext, file: str, data: bytes) -> None:
    """Each certificate in the list is trusted, as in Go, be it an authority or the server's own: envtest gives
    webhooks the latter."""
    if not data and not file:
        context.load_default_certs()
        return
    _load_authorities(context, data or Path(file).read_bytes())


def _load_authorities(context: ssl.SSLContext, pem: bytes) -> None:
    text = pem.decode("ascii", "ignore")  # only comments between certificates are anything else
    context.load_verify_locations(cadata=text)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
