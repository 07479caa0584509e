"""The cluster's side of the pod network: addresses, namespaces of pods, and sockets that reach them.

    async with PodNetwork.at_work("10.96.0.0/16") as network:
        place = await network.attach("10.244.0.2")
        sock = await network.connect("10.244.0.2", 80)

A socket belongs to the network namespace in which it was made, whoever uses it. So the keeper makes sockets, hands them
over, and everything else is done in this process: connections to pods, the proxies of Services, the answers to names.
"""

from __future__ import annotations

import array
import asyncio
import ipaddress
import json
import logging
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from konverge.sim.network import POD_BLOCKS, Addresses
from konverge.wire import routes

log = logging.getLogger("konverge.sim.podnet")

KEEPER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("keeper.py")))
CONNECT_TIME = 30.0
PROBE_TIME = 30.0
_MOST_DESCRIPTORS = 4


class NoPodNetwork(OSError):
    """This machine does not allow it; the text says why."""


@dataclass(frozen=True, slots=True)
class NetworkPlace:
    """Where the processes of a pod enter its network: descriptors of the namespaces."""

    network: int
    user: int | None
    """To be entered first, where we are not root."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        return (self.network,) if self.user is None else (self.network, self.user)

    def options(self) -> dict[str, Any]:
        return {"network": self.network, "network_user": self.user}


class _Channel:
    """Requests to the keeper and its answers, which come in the same order."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._waiting: deque[asyncio.Future[list[int]]] = deque()
        self._closed = self._began = False
        ours.setblocking(False)
        asyncio.get_running_loop().add_reader(ours.fileno(), self._arrived)

    async def first(self) -> list[int]:
        """What the keeper says when it has begun. Raises OSError."""
        said = await self._expected()
        self._began = True
        return said

    async def ask(self, request: dict[str, Any], *descriptors: int) -> list[int]:
        """The descriptors of the answer, which are the caller's. Raises OSError."""
        if self._closed:
            raise _gone()
        socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
        return await self._expected()

    async def _expected(self) -> list[int]:
        answer: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        return await answer

    def _arrived(self) -> None:
        with suppress(BlockingIOError, InterruptedError):
            data, descriptors = _received(self._socket)
            if not data:
                if self._began:
                    log.error("the keeper of the pod network has ended; no pod gets a network any more")
                self.close()
                return
            answer, said = self._waiting.popleft(), json.loads(data)
            if answer.done():  # who asked was cancelled
                for descriptor in descriptors:
                    os.close(descriptor)
            elif "error" in said:
                answer.set_exception(OSError(said["errno"], said["error"]))
            else:
                answer.set_result(descriptors)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(_gone())


def _gone() -> OSError:
    return OSError("the pod network has ended")


def _received(sock: socket.socket) -> tuple[bytes, list[int]]:
    """A message and its descriptors, which no other program inherits."""
    descriptors = array.array("i")
    room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * descriptors.itemsize)
    data, ancillary, _, _ = sock.recvmsg(65536, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, part in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(part[: len(part) - len(part) % descriptors.itemsize])
    return data, list(descriptors)


@contextmanager
def _keeper(gateway: str, services: str) -> Iterator[socket.socket]:
    """Our end of the socket to a keeper that has just been started; it ends with the block."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            process = subprocess.Popen(
                [*KEEPER, str(theirs.fileno()), gateway, services], pass_fds=(theirs.fileno(),), env={}, cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        try:
            yield ours
        finally:
            ours.close()
            process.wait()


class PodNetwork:
    """A network that is at work."""

    def __init__(self, channel: _Channel, block: ipaddress.IPv4Network, user: int | None) -> None:
        self.block = block
        self.gateway = str(block[1])
        """The address at which pods see the cluster itself: the last hop, and who answers for names."""
        self._channel = channel
        self._user = user
        *_, nodes = block.subnets(prefixlen_diff=2)
        self._addresses = Addresses(str(block[2]), last=str(nodes[0] - 1))
        self._nodes = Addresses(str(nodes[1]), last=str(nodes[-2]))
        self._places: dict[str, asyncio.Task[NetworkPlace]] = {}

    @classmethod
    @asynccontextmanager
    async def at_work(cls, services: str) -> AsyncIterator[PodNetwork]:
        """With a way to its pods for all of this process. Raises NoPodNetwork. `services` is the Services' range."""
        taken = ipaddress.ip_network(services)
        free = (block for block in POD_BLOCKS if not block.overlaps(taken) and not routes.is_taken(block))
        block = next(free, None)
        if sys.platform != "linux" or block is None:
            raise NoPodNetwork("there are no network namespaces" if block else "all blocks of addresses are taken")
        with _keeper(str(block[1]), services) as ours:
            channel = _Channel(ours)
            try:
                try:
                    descriptors = await channel.first()
                except OSError as error:
                    raise NoPodNetwork(str(error.strerror or error)) from error
                network = cls(channel, block, descriptors[0] if descriptors else None)
                with routes.route(block, network.connect):
                    try:
                        yield network
                    finally:
                        network._let_go()
            finally:
                channel.close()

    def _let_go(self) -> None:
        for making in self._places.values():
            if making.done():
                _let_go(making)
        self._places.clear()
        if self._user is not None:
            os.close(self._user)

    # -------------------------------------------------------------- pods

    def address(self, uid: str, known: str = "") -> str:
        """The address of a pod; the one that it is known to have, if that is of this network."""
        if uid not in self._addresses.holders() and self.has(known):
            self._addresses.keep(uid, known)
        return self._addresses.of(uid)

    def has(self, address: str) -> bool:
        """Whether it is of this network."""
        try:
            return ipaddress.ip_address(address) in self.block
        except ValueError:
            return False

    async def attach(self, uid: str) -> NetworkPlace:
        """The network of a pod, which all of its containers share. Raises OSError."""
        if uid not in self._places:  # containers start at the same time
            making = asyncio.create_task(self._make(self._addresses.of(uid)), name=f"network of pod {uid}")
            self._places[uid] = making
        return await self._made(uid)

    async def _made(self, holder: str) -> NetworkPlace:
        try:
            return await asyncio.shield(self._places[holder])
        except OSError:
            self._places.pop(holder, None)  # the next one tries again
            raise

    async def _make(self, address: str) -> NetworkPlace:
        [descriptor] = await self._channel.ask({"attach": address})
        return NetworkPlace(descriptor, self._user)

    async def detach(self, uid: str) -> None:
        """The pod is gone, and all of its processes are."""
        making = self._places.pop(uid, None)
        with suppress(OSError):
            if making is not None:
                os.close((await making).network)
                await self._channel.ask({"detach": self._addresses.of(uid)})
        self._addresses.release(uid)

    # -------------------------------------------------------------- nodes

    def node_address(self, name: str, known: str = "") -> str:
        """The address of a node; the one that it is known to have, if that is of this network."""
        if name not in self._nodes.holders() and self.has(known):
            self._nodes.keep(name, known)
        return self._nodes.of(name)

    def nodes(self) -> frozenset[str]:
        """Those that have an address here."""
        return frozenset(self._nodes.holders())

    async def attach_node(self, name: str) -> NetworkPlace:
        """The network of a node, for pods that ask for it and for its ports. Made when it is needed. Raises OSError."""
        holder = _node(name)
        if holder not in self._places:
            making = asyncio.create_task(self._make(self.node_address(name)), name=f"network of {holder}")
            self._places[holder] = making
        return await self._made(holder)

    def forget_node(self, name: str) -> None:
        """The node is gone. Its network goes with what still runs or listens there."""
        making = self._places.pop(_node(name), None)
        if making is not None:
            making.add_done_callback(_let_go)
        self._nodes.release(name)

    # -------------------------------------------------------------- sockets

    async def make_socket(self, kind: str, bind: tuple[str, int] | None = None, *, node: str = "") -> socket.socket:
        """One of the cluster's network namespace or of a node's, `tcp` or `udp`. Raises OSError."""
        where = [(await self.attach_node(node)).network] if node else []
        [descriptor] = await self._channel.ask({"socket": kind, "bind": bind}, *where)
        sock = socket.socket(fileno=descriptor)
        sock.setblocking(False)
        return sock

    async def connect(self, address: str, port: int) -> socket.socket:
        """A connection to a pod. Raises OSError."""
        sock = await self.make_socket("tcp")
        try:
            async with asyncio.timeout(CONNECT_TIME):
                await asyncio.get_running_loop().sock_connect(sock, (address, port))
        except BaseException:
            sock.close()
            raise
        return sock


def _let_go(made: asyncio.Task[NetworkPlace]) -> None:
    if not made.cancelled() and made.exception() is None:
        os.close(made.result().network)


def _node(name: str) -> str:
    """As a holder of a place: no pod's uid has a space."""
    return f"node {name}"


def why_no_network() -> str:
    """Why pods cannot have a network of their own on this machine; empty if they can. Tries it."""
    if sys.platform != "linux":
        return f"{sys.platform} has no network namespaces"
    try:
        with _keeper(str(POD_BLOCKS[0][1]), "10.96.0.0/16") as ours:
            ours.settimeout(PROBE_TIME)
            said = _said(ours)
            if not said:
                ours.send(json.dumps({"attach": str(POD_BLOCKS[0][2])}).encode())
                said = _said(ours)
            return said
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


def _said(ours: socket.socket) -> str:
    """What went wrong; descriptors are not wanted."""
    data, descriptors = _received(ours)
    for descriptor in descriptors:
        os.close(descriptor)
    return str(json.loads(data).get("error", "")) if data else "the trial ended early"
