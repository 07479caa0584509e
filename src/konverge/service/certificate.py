"""The certificate of the service, reloaded when its files change: a renewal needs no restart.

A context with a new chain uses it from the next handshake on; open connections keep the old one. Files that cannot be
used (half written, certificate and key of different pairs) are ignored and read again later.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from pathlib import Path

from konverge.wire.tls import load_chain, server_context

log = logging.getLogger("konverge.service")

RELOAD_PERIOD = 30.0
"""Seconds. The kubelet itself needs up to two minutes to update the files of a changed Secret."""


class Certificate:
    """A certificate and its key, in two files (PEM). Raises OSError or ValueError when they cannot be used at first."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        chain = self._read()
        self.context = server_context(*chain)
        self._digest = _digest(chain)

    async def follow(self) -> None:
        """Until cancelled: reload changed files."""
        while True:
            await asyncio.sleep(RELOAD_PERIOD)
            self.reload()

    def reload(self) -> bool:
        """True when there is a new certificate, which is used from now on."""
        try:
            chain = self._read()
            digest = _digest(chain)
            if digest == self._digest:
                return False
            server_context(*chain)  # in a new context first: a bad pair must not break the one in use
        except (OSError, ValueError) as error:
            log.warning(
                "the certificate in %s cannot be loaded, the previous one stays in use: %s", self._files[0], error
            )
            return False
        load_chain(self.context, *chain)
        self._digest = digest
        log.info("the certificate in %s was renewed", self._files[0])
        return True

    def _read(self) -> tuple[bytes, bytes]:
        certificate, key = (file.read_bytes() for file in self._files)
        return certificate, key


def _digest(chain: tuple[bytes, bytes]) -> bytes:
    return hashlib.sha256(b"\0".join(chain)).digest()
