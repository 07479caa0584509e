"""The `etcd` of the drop-in: reports that it is healthy, and stores nothing.

The server has its own storage. A test suite that starts a control plane still waits for an etcd, so this program
answers its probes: with plain blocking sockets, one short connection after the other, because a probe every 100 ms is
all that ever comes and the start must cost next to nothing.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

from konverge.apiserver.envtest.flags import Flag, FlagError, parse, usage

DEFAULT_URL = "http://localhost:2379"
KNOWN = {
    "listen-client-urls": Flag("URLs to answer probes on; plain http only"),
    "advertise-client-urls": Flag("as listen-client-urls, if that is not given"),
    "listen-peer-urls": Flag("without effect: there are no peers"),
    "data-dir": Flag("without effect: nothing is stored here"),
    "unsafe-no-fsync": Flag("without effect: nothing is stored here", switch=True),
    "version": Flag("print the version and exit", switch=True),
    "help": Flag("print this text and exit", switch=True),
}
ABOUT = "Answers health probes in place of etcd, for the kube-apiserver beside it, which has its own storage."
_ANSWERS = {
    "/health": (200, b'{"health":"true","reason":""}'),
    "/livez": (200, b"ok"),
    "/readyz": (200, b"ok"),
    "/version": (200, b'{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}'),
}
_REQUEST_SECONDS = 2.0
"""The time for one request: a client that connects and sends nothing must not delay the others for longer."""
_LONGEST_REQUEST = 64 * 1024


def main(arguments: Sequence[str]) -> int:
    try:
        flags = parse(arguments, KNOWN)
        if flags.on("help", False):
            print(usage("etcd", ABOUT, KNOWN))  # noqa: T201 - a program's own output
            return 0
        if flags.on("version", False):
            print("etcd Version: 3.6.0 (Konverge)")  # noqa: T201
            return 0
        urls = flags.all("listen-client-urls") or flags.all("advertise-client-urls") or (DEFAULT_URL,)
        listener = _listen(urls[0])
    except (FlagError, OSError) as error:
        print(f"etcd: {error}", file=sys.stderr)  # noqa: T201
        return 1
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    with listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                _serve(connection)


def _leave(number: int, frame: object) -> None:
    raise SystemExit(0)


def _listen(url: str) -> socket.socket:
    parts = urlsplit(url)
    if parts.scheme != "http":
        raise FlagError(f"--listen-client-urls: {url} is not a plain http URL")
    host = parts.hostname or "localhost"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, parts.port or 2379), family=family, backlog=128)


def _serve(connection: socket.socket) -> None:
    connection.settimeout(_REQUEST_SECONDS)
    try:
        path = _path(connection)
        connection.sendall(_response(*_ANSWERS.get(path, (404, b"404 page not found\n"))))
    except OSError:
        return  # the client has gone, or takes too long


def _path(connection: socket.socket) -> str:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _LONGEST_REQUEST:
        more = connection.recv(4096)
        if not more:
            break
        head += more
    parts = head.split(b" ", 2)
    return parts[1].decode("latin-1").partition("?")[0] if len(parts) > 1 else ""


def _response(code: int, body: bytes) -> bytes:
    reason = "OK" if code == 200 else "Not Found"
    kind = "application/json" if body.startswith(b"{") else "text/plain; charset=utf-8"
    head = f"HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close"
    return f"{head}\r\n\r\n".encode() + body


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
