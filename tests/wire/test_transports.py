"""What a transport is asked after its end."""

from __future__ import annotations

import asyncio
import ssl

from konverge.wire.transports import unsent_bytes


async def test_a_tls_transport_that_was_closed_twice_holds_nothing() -> None:
    loop = asyncio.get_running_loop()
    from asyncio.sslproto import SSLProtocol

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    protocol = SSLProtocol(loop, asyncio.Protocol(), context, None, server_side=False, server_hostname="a")  # type: ignore[arg-type]
    transport = protocol._get_app_transport()
    transport.close()
    transport.close()
    assert unsent_bytes(transport) == 0
