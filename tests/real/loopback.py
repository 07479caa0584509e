"""Programs of others that serve webhooks on loopback: they run, they listen, and a server is told where they are."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.control_plane import HOST

PATIENCE = 90.0


@contextmanager
def running(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A program until the block ends. What it is told by the environment is all that it finds there."""
    told = os.environ if environment is None else environment
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=dict(told)
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


async def listening(process: subprocess.Popen[bytes], port: int, ca_file: Path) -> None:
    """Wait for its first handshake."""
    trust = ssl.create_default_context(cafile=str(ca_file))
    async with asyncio.timeout(PATIENCE):
        while True:
            assert process.poll() is None, f"{process.args!r} has ended"
            try:
                _, writer = await asyncio.open_connection(HOST, port, ssl=trust)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            writer.close()
            return


def on_loopback(configuration: dict[str, Any], port: int, ca_file: Path) -> dict[str, Any]:
    """A configuration of webhooks whose service is on this port."""
    for hook in configuration["webhooks"]:
        path = hook["clientConfig"].pop("service").get("path", "")
        hook["clientConfig"] |= {
            "url": f"https://{HOST}:{port}{path}",
            "caBundle": base64.b64encode(ca_file.read_bytes()).decode(),
        }
    return configuration
