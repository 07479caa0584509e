"""Programs inside the networks of pods, for tests without containers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge.sim.podnet.network import NetworkPlace, PodNetwork, why_no_network

WHY_NOT = why_no_network()
possible = pytest.mark.skipif(bool(WHY_NOT), reason=f"pods cannot have a network of their own here: {WHY_NOT}")
SERVICES = "10.96.0.0/16"

_ENTER = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in sys.argv[1].split(","):
    if libc.setns(int(number), 0):
        raise OSError(ctypes.get_errno(), "setns")
"""
_SERVES = """
server = socket.create_server((sys.argv[2], int(sys.argv[3])))
print("ready", flush=True)
while True:
    connection, client = server.accept()
    said = connection.recv(100)
    connection.sendall(f"{sys.argv[4]} heard {said.decode()} of {client[0]}".encode())
    connection.close()
"""
_ECHOES = """
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[2], int(sys.argv[3])))
print("ready", flush=True)
while True:
    said, client = sock.recvfrom(100)
    sock.sendto(sys.argv[4].encode() + b" heard " + said, client)
"""
ASKS = """
with socket.create_connection((sys.argv[2], int(sys.argv[3])), timeout=20) as sock:
    sock.sendall(b"a question")
    sock.shutdown(socket.SHUT_WR)
    print(sock.makefile().read())
"""
HEARS = """
with socket.create_connection((sys.argv[2], int(sys.argv[3])), timeout=20) as sock:
    print(sock.recv(1))
"""
ASKS_BY_UDP = """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.settimeout(20)
    sock.connect((sys.argv[2], int(sys.argv[3])))
    for _ in range(2):
        sock.send(b"a question")
        print(sock.recv(100).decode())
"""
SAYS = "exec(sys.argv[2])"


def _command(place: NetworkPlace, script: str, *arguments: str | int) -> list[str]:
    numbers = ",".join(str(number) for number in reversed(place.descriptors))
    return [sys.executable, "-I", "-S", "-c", _ENTER + script, numbers, *map(str, arguments)]


async def inside(place: NetworkPlace, script: str, *arguments: str | int) -> str:
    """What a script says that runs in a pod's network; the last line of its error where it fails."""
    process = await asyncio.create_subprocess_exec(
        *_command(place, script, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=place.descriptors,
    )
    said, error = await process.communicate()
    return (said if process.returncode == 0 else error.strip().splitlines()[-1]).decode().strip()


@asynccontextmanager
async def serving(place: NetworkPlace, address: str, port: int, name: str, *, udp: bool = False) -> AsyncIterator[None]:
    """Something that listens in a pod's network."""
    process = await asyncio.create_subprocess_exec(
        *_command(place, _ECHOES if udp else _SERVES, address, port, name),
        stdout=subprocess.PIPE,
        pass_fds=place.descriptors,
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        await process.communicate()


async def asked(network: PodNetwork, address: str, port: int) -> str:
    """What a server in a pod answers to the cluster itself."""
    reader, writer = await asyncio.open_connection(sock=await network.connect(address, port))
    writer.write(b"a question")
    writer.write_eof()
    said = await reader.read()
    writer.close()
    await writer.wait_closed()
    return said.decode()
