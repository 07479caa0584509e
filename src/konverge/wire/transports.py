"""What asyncio's transports are asked, with answers at any time of their life."""

from __future__ import annotations

import asyncio


def unsent_bytes(transport: asyncio.WriteTransport) -> int:
    """Bytes that wait to be sent. A TLS transport that was closed twice has forgotten its protocol: it holds none."""
    try:
        return transport.get_write_buffer_size()
    except AttributeError:  # upstream: asyncio's _SSLProtocolTransport.close
        return 0
