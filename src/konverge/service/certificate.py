"""The certificate that the service shows, taken up anew when its files change: renewals need no restart.

A context that is given another chain shows it from the next handshake on; connections that are open keep theirs. What
cannot be used (half written, certificate and key of different pairs) is left where it is and looked at again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from pathlib import Path

from konverge.wire.tls import load_chain, server_context

log = logging.getLogger("konverge.service")

LOOK_PERIOD = 30.0
"""Seconds between two looks. The kubelet itself needs up to two minutes to bring a changed Secret."""


class Certificate:
    """A certificate and its key, in two files (PEM). Raises OSError or ValueError when they cannot be used at first."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        chain = self._read()
        self.context = server_context(*chain)
        self._shown = _digest(chain)

    async def follow(self) -> None:
        """Until cancelled: take up what changes."""
        while True:
            await asyncio.sleep(LOOK_PERIOD)
            self.look()

    def look(self) -> bool:
        """Whether there was a new certificate, and it is shown from now on."""
        try:
            chain = self._read()
            found = _digest(chain)
            if found == self._shown:
                return False
            server_context(*chain)  # in a context of its own first: a bad pair must not spoil the one in use
        except (OSError, ValueError) as error:
            log.warning("the certificate in %s cannot be taken up, the one before stays: %s", self._files[0], error)
            return False
        load_chain(self.context, *chain)
        self._shown = found
        log.info("the certificate in %s was renewed", self._files[0])
        return True

    def _read(self) -> tuple[bytes, bytes]:
        certificate, key = (file.read_bytes() for file in self._files)
        return certificate, key


def _digest(chain: tuple[bytes, bytes]) -> bytes:
    return hashlib.sha256(b"\0".join(chain)).digest()
