"""The certificate that a server shows, replaced while it serves: a renewal needs no restart.

A context with a new chain uses it from the next handshake on; open connections keep the old one. What cannot be used
(files half written, certificate and key of different pairs) is ignored, and files are read again later. Their content
is compared, not their times, so the swap of a link (as the kubelet does it for mounted Secrets) is noticed as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from pathlib import Path

from konverge.wire.tls import load_chain, server_context

log = logging.getLogger("konverge.certificates")

RELOAD_PERIOD = 30.0
"""Seconds. The kubelet itself needs up to two minutes to update the files of a changed Secret."""


class ShownCertificate:
    """A server's context whose certificate can be replaced. Raises ValueError when the first one cannot be used."""

    def __init__(self, certificate: bytes, key: bytes) -> None:
        self.context = server_context(certificate, key)
        self.certificate = certificate
        """The one in use (PEM)."""
        self._digest = _digest(certificate, key)

    def use(self, certificate: bytes, key: bytes) -> bool:
        """True when this is a new certificate, which is used from now on. Raises ValueError; then the old one stays."""
        digest = _digest(certificate, key)
        if digest == self._digest:
            return False
        server_context(certificate, key)  # in a new context first: a bad pair must not break the one in use
        load_chain(self.context, certificate, key)
        self.certificate = certificate
        self._digest = digest
        return True


class Certificate(ShownCertificate):
    """A certificate and its key, in two files (PEM). Raises OSError or ValueError when they cannot be used at first."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        super().__init__(*self._read())

    async def follow(self, period: float = RELOAD_PERIOD) -> None:
        """Until cancelled: reload changed files."""
        while True:
            await asyncio.sleep(period)
            self.reload()

    def reload(self) -> bool:
        """True when there is a new certificate, which is used from now on."""
        try:
            renewed = self.use(*self._read())
        except (OSError, ValueError) as error:
            log.warning(
                "the certificate in %s cannot be loaded, the previous one stays in use: %s", self._files[0], error
            )
            return False
        if renewed:
            log.info("the certificate in %s was renewed", self._files[0])
        return renewed

    def _read(self) -> tuple[bytes, bytes]:
        certificate, key = (file.read_bytes() for file in self._files)
        return certificate, key


def _digest(certificate: bytes, key: bytes) -> bytes:
    return hashlib.sha256(certificate + b"\0" + key).digest()
