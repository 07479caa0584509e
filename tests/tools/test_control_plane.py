"""Ports for programs that are started later."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from tools.control_plane import HOST, free_port

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_a_free_port_is_given_to_nobody_else() -> None:
    ports = [free_port() for _ in range(3)]
    assert len(set(ports)) == 3
    if RANGE.exists():  # what the system gives to those who ask for any port, or connect
        assert max(ports) < int(RANGE.read_text().split()[0])
    with socket.create_server((HOST, ports[0])) as server:
        assert server.getsockname()[1] == ports[0]


def test_a_port_that_is_taken_is_left_out() -> None:
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # if another has it, it is taken as well
            taken.bind((HOST, free_port() + 1))
            taken.listen()
        port = free_port()
        with socket.create_server((HOST, port)):
            pass
