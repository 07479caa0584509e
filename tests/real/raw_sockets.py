"""A server process and plain sockets to it: requests without a client that would correct them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.control_plane import Process


@dataclass
class Server:
    process: Process
    port: int
    token: str

    @property
    def megabytes(self) -> float:
        return self.process.resident_bytes() / 2**20

    async def open(self, *, receive_buffer: int = 0) -> Connection:
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        return Connection(*await asyncio.open_connection(sock=sock), self.token)


@dataclass
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self.token}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)

    async def head(self) -> int:
        """The status of an answer, with its head read."""
        lines = await self.reader.readuntil(b"\r\n\r\n")
        self.length = next(
            (int(line.split(b":")[1]) for line in lines.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        return int(lines.split()[1])

    async def ask(self, method: str, path: str, obj: Any = None) -> tuple[int, Any]:
        self.send(method, path, b"" if obj is None else json.dumps(obj).encode())
        status = await self.head()
        return status, json.loads(await self.reader.readexactly(self.length))

    async def events(self) -> AsyncIterator[Any]:
        """The events of a watch; each chunk of ours has whole lines."""
        while (size := int(await self.reader.readline() or b"0", 16)) > 0:
            data = await self.reader.readexactly(size + 2)
            for line in data.splitlines():
                if line:
                    yield json.loads(line)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):  # a server that hung up first
            await self.writer.wait_closed()


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Server]:
    """`konverge apiserver` without TLS; a failure in its log fails the test."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    command = [sys.executable, "-m", "konverge.cli.main", "apiserver", "--no-tls", "--kubeconfig", str(kubeconfig)]
    with log.open("wb") as errors:
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=errors)
    with process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready.startswith(b"ready "), log.read_text()
            token = json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]
            yield Server(Process("konverge", process, log), int(ready.rpartition(b":")[2]), token)
        finally:
            process.terminate()
    assert "failed" not in log.read_text()
