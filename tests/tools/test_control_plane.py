"""Ports for programs that are started later."""

from __future__ import annotations

import socket

import pytest

from tools.control_plane import HOST, free_port


def test_a_free_port_is_kept_for_the_server_that_will_listen_there() -> None:
    port = free_port()
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind((HOST, port))
    with socket.create_server((HOST, port)) as server:  # with SO_REUSEADDR, as every server does it
        assert server.getsockname()[1] == port
