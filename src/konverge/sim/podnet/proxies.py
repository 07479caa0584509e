"""What listens on the addresses of Services and the ports of nodes, and passes connections and datagrams on.

A Service's port is listened on while something is behind it, so that one without endpoints refuses connections. Where
a backend is not of the pod network (the API server, a simulated server, whatever a hand-made EndpointSlice names) it is
reached from this machine.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

from konverge import clock
from konverge.sim.loop import end
from konverge.sim.podnet.network import PodNetwork
from konverge.sim.podnet.services import Backend, Behind, Front

log = logging.getLogger("konverge.sim.podnet")

BACKLOG = 1024
ATTEMPTS = 3
"""How many backends are tried for a connection."""
IDLE = 120.0
"""Seconds after which a client of UDP that says nothing more is forgotten."""
_WAITING = 64
"""Datagrams that are held until the way to their backend is open."""
_AT_ONCE = struct.pack("ii", 1, 0)

Key = tuple[str, str]
"""Namespace and name of a Service; nothing and the uid of a pod, for its ports of the node."""
Opening = Callable[[Backend], Awaitable[socket.socket]]


class Work:
    """What is under way, also of Services that are gone: connections live on, as those that a kernel passes on do."""

    def __init__(self) -> None:
        self.clients: set[_Client] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        await end(self._tasks)
        for client in list(self.clients):
            client.hang_up()


class Balancer:
    """Chooses backends for clients."""

    def __init__(self, behind: Behind) -> None:
        self.behind = behind
        self._kept: dict[str, tuple[Backend, float]] = {}

    def order(self, client: str, now: float) -> list[Backend]:
        """The backends in the order in which they are to be tried."""
        backends = list(self.behind.backends)
        clock.rng().shuffle(backends)
        if self.behind.affinity:
            backend, until = self._kept.get(client, (backends[0], 0.0))
            if until > now and backend in backends:
                backends.remove(backend)
                backends.insert(0, backend)
        return backends[:ATTEMPTS]

    def keep(self, client: str, backend: Backend, now: float) -> None:
        """The client has been served by this one."""
        if self.behind.affinity:
            self._kept[client] = backend, now + self.behind.affinity


# ------------------------------------------------------------------ TCP


class _Side(asyncio.Protocol):
    """One end of a connection that is passed on: what it hears, the other end says."""

    def __init__(self, other: _Side | None = None) -> None:
        self.other = other
        self.transport: asyncio.Transport
        self._early: list[bytes] = []
        """What it heard before there was another end."""
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def link(self, other: _Side) -> None:
        self.other = other
        other.transport.write(b"".join(self._early))
        if self._ended:
            other.transport.write_eof()
        else:
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.transport.write(data)
        else:
            self._early.append(data)
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        self._ended = True
        if self.other is not None:
            if self.other._ended:
                self.other.transport.close()
                return False
            self.other.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None:
            if error is None:
                self.other.transport.close()
            else:
                refuse(self.other.transport)


def refuse(transport: asyncio.Transport) -> None:
    """End a connection as a port does where nothing listens."""
    sock = transport.get_extra_info("socket")
    if sock is not None and not transport.is_closing():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    transport.abort()


class _Client(_Side):
    """The side that connected to the Service."""

    def __init__(self, listener: TcpListener) -> None:
        super().__init__()
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._listener.accepted(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.work.clients.discard(self)
        super().connection_lost(error)

    def hang_up(self) -> None:
        self.transport.abort()
        if self.other is not None:
            self.other.transport.abort()


class TcpListener:
    """One port of a Service."""

    def __init__(self, balancer: Balancer, connect: Opening, work: Work) -> None:
        self.work = work
        self._balancer = balancer
        self._connect = connect
        self._server: asyncio.Server

    async def open(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Client(self), sock=sock, backlog=BACKLOG)

    def accepted(self, client: _Client) -> None:
        self.work.clients.add(client)
        self.work.begin(self._link(client), "connection to a Service")

    async def _link(self, client: _Client) -> None:
        loop, peer = asyncio.get_running_loop(), client.transport.get_extra_info("peername")
        address = peer[0] if peer else ""
        for backend in self._balancer.order(address, loop.time()):
            try:
                sock = await self._connect(backend)
            except OSError as error:
                log.debug("backend %s:%s: %s", *backend, error)
                continue
            _, other = await loop.create_connection(lambda: _Side(client), sock=sock)
            self._balancer.keep(address, backend, loop.time())
            if client.transport.is_closing():
                other.transport.close()
                return
            client.link(other)
            return
        refuse(client.transport)

    def change(self, behind: Behind) -> None:
        """For connections from now on."""
        self._balancer.behind = behind

    def close(self) -> None:
        """Accept no more connections; those that are open go on."""
        self._server.close()


# ------------------------------------------------------------------ UDP


class _Flow(asyncio.DatagramProtocol):
    """The datagrams of one client, on a socket of their own: what comes back there is for it."""

    def __init__(self, listener: UdpListener, client: tuple[str, int]) -> None:
        self._listener = listener
        self._client = client
        self._transport: asyncio.DatagramTransport | None = None
        self._waiting: list[bytes] = []
        self.backend: Backend | None = None
        self.used = asyncio.get_running_loop().time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        for data in self._waiting:
            self._transport.sendto(data)
        self._waiting.clear()

    def send(self, data: bytes) -> None:
        self.used = asyncio.get_running_loop().time()
        if self._transport is not None:
            self._transport.sendto(data)
        elif len(self._waiting) < _WAITING:
            self._waiting.append(data)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.used = asyncio.get_running_loop().time()
        self._listener.answer(data, self._client)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class UdpListener(asyncio.DatagramProtocol):
    """One port of a Service."""

    def __init__(self, balancer: Balancer, connect: Opening, work: Work) -> None:
        self._balancer = balancer
        self._connect = connect
        self._work = work
        self._transport: asyncio.DatagramTransport
        self._flows: dict[tuple[str, int], _Flow] = {}
        self._sweep: asyncio.TimerHandle | None = None

    def change(self, behind: Behind) -> None:
        """Clients whose backend is gone get another one with their next datagram."""
        self._balancer.behind = behind
        self._forget(lambda flow: flow.backend is not None and flow.backend not in behind.backends)

    async def open(self, sock: socket.socket) -> None:
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, sock=sock)
        self._look_later()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        flow = self._flows.get(addr)
        if flow is None:
            flow = self._flows[addr] = _Flow(self, addr)
            self._work.begin(self._open_flow(flow, addr), "datagrams to a Service")
        flow.send(data)

    async def _open_flow(self, flow: _Flow, client: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        flow.backend = self._balancer.order(client[0], loop.time())[0]
        try:
            sock = await self._connect(flow.backend)
        except OSError as error:
            log.debug("backend %s:%s: %s", *flow.backend, error)
            self._flows.pop(client, None)
            return
        await loop.create_datagram_endpoint(lambda: flow, sock=sock)
        self._balancer.keep(client[0], flow.backend, loop.time())

    def answer(self, data: bytes, client: tuple[str, int]) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(data, client)

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._forget(lambda flow: flow.used + IDLE < loop.time())
        self._sweep = loop.call_later(IDLE, self._look_later)

    def _forget(self, which: Callable[[_Flow], bool]) -> None:
        for client, flow in list(self._flows.items()):
            if which(flow):
                del self._flows[client]
                flow.close()

    def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._forget(lambda flow: True)
        self._transport.abort()


# ------------------------------------------------------------------ all of them


class Proxies:
    """The listeners of all Services, and of pods that ask for ports of their node."""

    def __init__(self, network: PodNetwork) -> None:
        self._network = network
        self._work = Work()
        self._listeners: dict[Key, dict[Front, TcpListener | UdpListener]] = {}

    async def set(self, service: Key, wanted: Mapping[Front, Behind]) -> None:
        """What is behind a Service from now on."""
        listeners = self._listeners.setdefault(service, {})
        for front in listeners.keys() - wanted.keys():
            listeners.pop(front).close()
        for front, behind in wanted.items():
            if front not in listeners:
                await self._open(service, front, behind)
            else:
                listeners[front].change(behind)

    async def _open(self, service: Key, front: Front, behind: Behind) -> None:
        balancer = Balancer(behind)
        made = (
            TcpListener(balancer, self._tcp, self._work)
            if front.protocol == "tcp"
            else UdpListener(balancer, self._udp, self._work)
        )
        try:
            sock = await self._network.make_socket(front.protocol, (front.address, front.port), node=front.node)
        except OSError as error:
            what = "%s:%s of %s cannot be listened on: %s"
            log.warning(what, front.address, front.port, front.node or "a Service", error.strerror)
            return
        await made.open(sock)
        if service in self._listeners:
            self._listeners[service][front] = made
        else:  # it is gone meanwhile
            made.close()

    def forget(self, service: Key) -> None:
        """The Service is gone."""
        for listener in self._listeners.pop(service, {}).values():
            listener.close()

    async def aclose(self) -> None:
        for service in list(self._listeners):
            self.forget(service)
        await self._work.aclose()

    async def _tcp(self, backend: Backend) -> socket.socket:
        if self._network.has(backend[0]):
            return await self._network.connect(*backend)
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        return await _connected(sock, backend)

    async def _udp(self, backend: Backend) -> socket.socket:
        inside = self._network.has(backend[0])
        sock = await self._network.make_socket("udp") if inside else socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        return await _connected(sock, backend)


async def _connected(sock: socket.socket, backend: Backend) -> socket.socket:
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, backend)
    except BaseException:
        sock.close()
        raise
    return sock
