"""The stand-in for etcd answers probes."""

from __future__ import annotations

import socket
import threading

import pytest

from konverge.apiserver.envtest import etcd


@pytest.mark.parametrize(
    ("path", "code", "body"),
    [
        ("/health", 200, '"health":"true"'),
        ("/health?serializable=true", 200, "true"),
        ("/v3/kv/range", 404, "not found"),
    ],
)
def test_etcd_answers_probes(path: str, code: int, body: str) -> None:
    near, far = socket.socketpair()
    serving = threading.Thread(target=etcd._serve, args=(far,))
    with near, far:
        serving.start()
        near.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n".encode())
        near.sendall(b"\r\n")  # a request may come in pieces
        serving.join()
        answer = near.recv(4096).decode()
    assert answer.startswith(f"HTTP/1.1 {code} ")
    assert body in answer


def test_a_client_that_goes_away_does_no_harm() -> None:
    near, far = socket.socketpair()
    near.close()
    with far:
        etcd._serve(far)
