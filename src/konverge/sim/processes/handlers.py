"""Probes and lifecycle hooks, really made: HTTP, TCP, gRPC, commands.

Upstream: pkg/probe and pkg/kubelet/lifecycle.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from konverge.apiserver.kubernetes_version import MINOR_VERSION
from konverge.objects.kinds.core_v1 import Container, GRPCAction, HTTPGetAction, LifecycleHandler, Probe
from konverge.sim.processes import grpc_health
from konverge.wire import ClientLimits, ConnectionPool, Headers, Request, TlsOptions, WireError, routes

SHOWN = 1024
"""Bytes of an answer or output that an event quotes."""

_NONSENSE = (ValueError, OverflowError)
"""What hosts, ports, paths and headers that cannot be used raise: a pod may name any text."""

Runner = Callable[[Sequence[str], float], Awaitable[tuple[int, bytes]]]
"""Runs a command in the container's environment for at most so many seconds: exit code and output."""


class HandlerError(Exception):
    """The probe or hook failed; the message is the kubelet's."""


async def probe(action: Probe, spec: Container, address: str, run: Runner) -> None:
    """Raises HandlerError."""
    seconds = float(action.timeout_seconds or 1)
    if action.grpc is not None:
        await _health(address, action.grpc, seconds)
    else:
        await _act(action, spec, address, run, seconds, f"kube-probe/{MINOR_VERSION}")


async def hook(action: LifecycleHandler, spec: Container, address: str, run: Runner, seconds: float) -> None:
    """Raises HandlerError."""
    if action.sleep is not None:
        await asyncio.sleep(min(action.sleep.seconds, seconds))
    else:
        await _act(action, spec, address, run, seconds, f"kube-lifecycle/{MINOR_VERSION}")


async def _act(
    action: Probe | LifecycleHandler, spec: Container, address: str, run: Runner, seconds: float, agent: str
) -> None:
    """What probes and hooks have in common; the API server lets only one of them be set."""
    if action.exec is not None:
        await _command(action.exec.command, seconds, run)
    elif action.http_get is not None:
        await _http(action.http_get, spec, address, seconds, agent)
    elif action.tcp_socket is not None:
        await _connect(action.tcp_socket.host or address, port_number(action.tcp_socket.port, spec), seconds)


def port_number(port: int | str, spec: Container) -> int:
    """A port by its number or name. Raises HandlerError."""
    text = str(port)
    if text.isdigit():
        return int(text)
    for declared in spec.ports:
        if declared.name == text:
            return declared.container_port
    raise HandlerError(f"couldn't find port: {text}")


async def _command(command: Sequence[str], seconds: float, run: Runner) -> None:
    code, output = await run(command, seconds)
    if code != 0:
        raise HandlerError(output[:SHOWN].decode("utf-8", "replace").strip() or f"command exited with {code}")


async def _connect(host: str, port: int, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            _, writer = await routes.open_connection(host, port)
    except TimeoutError:
        raise HandlerError(f"dial tcp {host}:{port}: i/o timeout") from None
    except OSError as error:
        raise HandlerError(f"dial tcp {host}:{port}: connect: {_error_text(error)}") from None
    except _NONSENSE as error:
        raise HandlerError(f"dial tcp {host}:{port}: {error}") from None
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


# upstream: pkg/probe/grpc/grpc.go
async def _health(host: str, action: GRPCAction, seconds: float) -> None:
    place = f"{host}:{action.port}"
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await routes.open_connection(host, action.port)
            try:
                agent = f"kube-probe/{MINOR_VERSION}"
                state = await grpc_health.check(reader, writer, place, action.service or "", agent)
            finally:
                writer.close()
    except TimeoutError:
        raise HandlerError(f'timeout: failed to connect service "{place}" within {seconds:g}s') from None
    except OSError as error:
        raise HandlerError(f'error: failed to connect service at "{place}": {_error_text(error)}') from None
    except (grpc_health.NoAnswer, *_NONSENSE) as error:
        raise HandlerError(f"error: health rpc probe failed: {error}") from None
    if state != grpc_health.SERVING:
        raise HandlerError(f'service unhealthy (responded with "{state}")')


async def _http(action: HTTPGetAction, spec: Container, address: str, seconds: float, agent: str) -> None:
    scheme = (action.scheme or "HTTP").lower()
    host, port = action.host or address, port_number(action.port, spec)
    path = action.path or "/"
    path = path if path.startswith("/") else f"/{path}"
    status = await _get(scheme, host, port, path, _fields(action, agent), seconds)
    if not 200 <= status < 400:
        raise HandlerError(f"HTTP probe failed with statuscode: {status}")


def _fields(action: HTTPGetAction, agent: str) -> Headers:
    headers = Headers()
    for http_header in action.http_headers:
        headers.add(http_header.name, http_header.value)
    for name, value in (("user-agent", agent), ("accept", "*/*")):
        if name not in headers:
            headers.add(name, value)
    return headers


async def _get(scheme: str, host: str, port: int, path: str, headers: Headers, seconds: float) -> int:
    url = f"{scheme}://{host}:{port}"
    tls = TlsOptions(insecure=True) if scheme == "https" else None
    limits = ClientLimits(body=10 * 1024)
    try:
        async with asyncio.timeout(seconds), ConnectionPool(url, tls=tls, limits=limits) as pool:
            stream = await pool.stream(Request("GET", path, headers))
            try:
                return stream.status
            finally:
                await stream.aclose()
    except TimeoutError:
        raise HandlerError(f'Get "{url}{path}": context deadline exceeded') from None
    except WireError as error:
        cause = error.__cause__
        message = f"dial tcp {host}:{port}: connect: {_error_text(cause)}" if isinstance(cause, OSError) else str(error)
        raise HandlerError(f'Get "{url}{path}": {message}') from None
    except _NONSENSE as error:
        raise HandlerError(f'Get "{url}{path}": {error}') from None


def _error_text(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
