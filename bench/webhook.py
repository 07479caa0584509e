"""Validating webhooks side by side: ours and controller-runtime's answer the same reviews.

Each is a process of its own and has the same certificate. A client like the API server's keeps connections open and
sends reviews of creates and updates (HTTP/1.1 over TLS), some of which are refused. What counts is the CPU time of the
webhook's process for a review, user and system; rounds are interleaved.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import sys
import tempfile
from collections import defaultdict
from operator import attrgetter
from pathlib import Path
from typing import Any

from bench._operator import PEERS, Peer
from bench._progress import turns
from bench._report import Bar, Figure, Report
from konverge.wire import x509
from konverge.wire.errors import WireError
from konverge.wire.message import Headers, Request
from konverge.wire.pool import ConnectionPool
from konverge.wire.tls import TlsOptions

CONNECTIONS = 8
"""Reviews under way at once, each on a connection of its own."""
SETTLE = 500
"""Reviews before anything is measured: connections are open, code is warm."""
TICKS = os.sysconf("SC_CLK_TCK")
METRIC = "CPU of a review"

_OURS = PEERS / "konverge" / "webhook.py"
_GO = PEERS / "go-controller-runtime" / "bin" / "webhook"
KONVERGE = Peer("konverge", (sys.executable, str(_OURS)), _OURS)
CONTROLLER_RUNTIME = Peer("controller-runtime", (str(_GO),), _GO)


def run(*, quick: bool = False) -> Report:
    rounds, reviews = (2, 3000) if quick else (5, 20000)
    report = Report(
        "webhook", f"validating webhooks: {reviews} reviews over {CONNECTIONS} connections, {rounds} rounds"
    )
    peers = [peer for peer in (KONVERGE, CONTROLLER_RUNTIME) if peer.needs.exists()]
    with tempfile.TemporaryDirectory() as folder:
        measured = asyncio.run(_measure(Path(folder), peers, rounds, reviews))
    report.figures += [Figure.of(METRIC, peer, values, "µs") for peer, values in measured.items()]
    if CONTROLLER_RUNTIME in peers:
        report.bars.append(Bar(METRIC, 0.5, CONTROLLER_RUNTIME.name))
    else:
        report.notes.append("not built, so not measured: controller-runtime (make bench-peers)")
    return report


async def _measure(folder: Path, peers: list[Peer], rounds: int, reviews: int) -> dict[str, list[float]]:
    authority = x509.authority("bench")
    certificate, key = x509.issue(authority, "127.0.0.1", x509.FOR_SERVERS, hosts=("127.0.0.1",)).pem
    (folder / "tls.crt").write_bytes(certificate)
    (folder / "tls.key").write_bytes(key)
    measured: dict[str, list[float]] = defaultdict(list)
    for peer in turns("webhook", rounds, peers, attrgetter("name")):
        measured[peer.name].append(await _turn(peer, folder, authority.pem[0], reviews))
    return measured


async def _turn(peer: Peer, folder: Path, authority: bytes, reviews: int) -> float:
    """Microseconds of CPU for a review."""
    port = _free_port()
    environment = {**os.environ, "BENCH_CERTS": str(folder), "BENCH_PORT": str(port)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = await asyncio.create_subprocess_exec(*peer.command, env=environment, stderr=asyncio.subprocess.DEVNULL)
    pool = ConnectionPool(f"https://127.0.0.1:{port}", tls=TlsOptions(ca_data=authority, server_name="127.0.0.1"))
    try:
        await _ready(pool)
        await _send(pool, SETTLE)
        before = _cpu(process.pid)
        await _send(pool, reviews)
        return (_cpu(process.pid) - before) / reviews * 1e6
    finally:
        await pool.aclose()
        process.terminate()
        await process.wait()


async def _ready(pool: ConnectionPool) -> None:
    for _ in range(600):
        try:
            await pool.send(_requests()[0][0])
            return
        except (WireError, OSError, ssl.SSLError):
            await asyncio.sleep(0.05)
    raise RuntimeError("the webhook does not answer")


async def _send(pool: ConnectionPool, reviews: int) -> None:
    """So many reviews, over all connections; every answer is looked at."""
    requests, left = _requests(), iter(range(reviews))

    async def work() -> None:
        for number in left:
            request, allowed = requests[number % len(requests)]
            response = await pool.send(request)
            verdict = b'"allowed":true' if allowed else b'"allowed":false'
            if response.status != 200 or verdict not in response.body:
                raise RuntimeError(f"not the expected answer: {response.status} {response.body[:500]!r}")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(work())


def _requests() -> list[tuple[Request, bool]]:
    """What the API server would send, with the verdict that is expected."""
    made = []
    for number in range(10):
        new, old = _bench(number, 5), _bench(number, 3) if number % 2 else None
        if number == 9:
            new = _bench(number, 1)  # it shrinks
        made.append((_request(_review(number, new, old)), number != 9))
    return made


def _request(review: dict[str, Any]) -> Request:
    headers = {"accept": "application/json, */*", "content-type": "application/json"}
    headers |= {"user-agent": "kube-apiserver-admission", "accept-encoding": "gzip"}
    body = json.dumps(review, separators=(",", ":")).encode()
    return Request("POST", "/validate?timeout=10s", Headers.of(headers), body, timeout=30.0)


def _review(number: int, new: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any]:
    kind = {"group": "bench.konverge.dev", "version": "v1", "kind": "Bench"}
    resource = {"group": "bench.konverge.dev", "version": "v1", "resource": "benches"}
    operation = "CREATE" if old is None else "UPDATE"
    options = {"kind": "CreateOptions" if old is None else "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
    request = {
        "uid": f"705ab4f5-6393-11e8-b7cc-42010a80{number:04d}",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": new["metadata"]["name"],
        "namespace": "bench",
        "operation": operation,
        "userInfo": {
            "username": "system:serviceaccount:bench:operator",
            "uid": "8d9c4f1c-47e6-4a51-a6a1-3d8f3f1b9b3c",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:bench", "system:authenticated"],
        },
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": options | {"fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _bench(number: int, replicas: int) -> dict[str, Any]:
    fields = {
        "f:spec": {".": {}, "f:payload": {}, "f:replicas": {}},
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
    }
    entry: dict[str, Any] = {"manager": "kubectl", "operation": "Update", "apiVersion": "bench.konverge.dev/v1"}
    entry |= {"time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}
    metadata = {
        "name": f"bench-{number}",
        "namespace": "bench",
        "uid": f"1d0f8f5e-0000-4000-8000-{number:012d}",
        "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "bench", "app.kubernetes.io/managed-by": "konverge"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{" + "x" * 400 + "}"},
        "managedFields": [entry, entry | {"manager": "operator", "subresource": "status"}],
    }
    spec = {"payload": "p" * 200, "replicas": replicas}
    status = {"phase": "Ready", "observedGeneration": 2}
    return {
        "apiVersion": "bench.konverge.dev/v1",
        "kind": "Bench",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return sum(int(field) for field in fields[11:13]) / TICKS
