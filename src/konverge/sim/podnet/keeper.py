"""Keeps the network of a cluster's pods: a process of its own, in a network namespace where nothing else is.

Run as a script, on the standard library alone:

    keeper.py DESCRIPTOR GATEWAY SERVICES

It talks over a socket whose other end only the cluster has. Each request is a JSON object and so is its answer, which
may come with descriptors:

    {"attach": ADDRESS}                       a network namespace for a pod, joined to ours by a pair of interfaces
    {"detach": ADDRESS}                       no way to it any more; namespace and interfaces go with its last process
    {"socket": KIND, "bind": [ADDRESS, PORT]} a socket of our namespace ("tcp" or "udp"), bound if that is wanted; of
                                              another namespace, if the request comes with a descriptor of it

Nodes have such namespaces as well as pods. The `eth0` of each has its address and one neighbour, GATEWAY, who is we:
packets between pods are routed here. All of SERVICES, the range of the Services' addresses, is ours too, so whatever of
it is listened on is reached by every pod.

Nothing has a name in the file system or on the host's network: when the other end of the socket is closed, however the
cluster has ended, this process ends, and the kernel removes its namespace and all interfaces. Without root it has a
user namespace as well, which is the first thing in its first answer; who wants to enter a pod's network enters that
one before.
"""

# A script for which each import counts.
# ruff: noqa: PTH123

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import Any

_NEWUSER, _NEWNET = 0x10000000, 0x40000000
_GET_LINK, _NEW_LINK, _NEW_ADDRESS, _NEW_ROUTE, _DEL_ROUTE, _ERROR = 18, 16, 20, 24, 25, 2
_REQUEST, _ACK, _EXCLUSIVE, _CREATE = 1, 4, 0x200, 0x400
_IFNAME, _LINKINFO, _NET_NS_FD, _INFO_KIND, _INFO_DATA, _VETH_PEER = 3, 18, 28, 1, 2, 1
_ADDRESS, _LOCAL = 1, 2
_DESTINATION, _OUT, _GATEWAY = 1, 4, 5
_UP = 1
_LOOPBACK = 1
"""The index of `lo`, which is the first interface of every namespace."""
_MAIN, _LOCAL_TABLE, _BOOT, _UNIVERSE, _LINK, _HOST, _UNICAST, _LOCAL_ROUTE = 254, 255, 3, 0, 253, 254, 1, 2
_KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}

libc = ctypes.CDLL(None, use_errno=True)


def _call(what: str, result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


# ------------------------------------------------------------------ netlink


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute of a message, filled up to the next multiple of four bytes."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _interface(index: int, flags: int = 0) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, flags)


def _route(to: str, scope: int, table: int, kind: int) -> bytes:
    address, _, length = to.partition("/")
    head = struct.pack("=BBBBBBBBI", socket.AF_INET, int(length or 32), 0, 0, table, _BOOT, scope, kind, 0)
    return head + attribute(_DESTINATION, socket.inet_aton(address))


class Interfaces:
    """The interfaces, addresses and routes of the namespace in which this is made, wherever it is used."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self._number = 0

    def close(self) -> None:
        self._socket.close()

    def index(self, name: str) -> int:
        answer = self._ask(f"find {name}", _GET_LINK, 0, _interface(0) + attribute(_IFNAME, name.encode() + b"\0"))
        return int(struct.unpack_from("=i", answer, 4)[0])

    def bring_up(self, index: int) -> None:
        self._ask("bring an interface up", _NEW_LINK, _ACK, _interface(index, _UP))

    def add_pair(self, name: str, peer: str, namespace: int) -> None:
        """Two interfaces, of which what goes into one comes out of the other; the peer is in another namespace."""
        there = _interface(0) + attribute(_IFNAME, peer.encode() + b"\0")
        there += attribute(_NET_NS_FD, struct.pack("=I", namespace))
        data = attribute(_INFO_KIND, b"veth") + attribute(_INFO_DATA, attribute(_VETH_PEER, there))
        body = _interface(0) + attribute(_IFNAME, name.encode() + b"\0") + attribute(_LINKINFO, data)
        self._ask("make a pair of interfaces (veth)", _NEW_LINK, _ACK | _CREATE | _EXCLUSIVE, body)

    def add_address(self, index: int, address: str) -> None:
        packed = socket.inet_aton(address)
        head = struct.pack("=BBBBi", socket.AF_INET, 32, 0, _UNIVERSE, index)
        body = head + attribute(_LOCAL, packed) + attribute(_ADDRESS, packed)
        self._ask(f"add the address {address}", _NEW_ADDRESS, _ACK | _CREATE, body)

    def add_route(self, index: int, to: str, *, scope: int, table: int = _MAIN, kind: int = _UNICAST) -> None:
        """To a network (`10.0.0.0/8`) or an address behind an interface."""
        body = _route(to, scope, table, kind) + attribute(_OUT, struct.pack("=i", index))
        self._ask(f"add a route to {to}", _NEW_ROUTE, _ACK | _CREATE, body)

    def remove_route(self, to: str, *, scope: int) -> None:
        self._ask(f"remove the route to {to}", _DEL_ROUTE, _ACK, _route(to, scope, _MAIN, _UNICAST))

    def add_default_route(self, index: int, gateway: str) -> None:
        head = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, _MAIN, _BOOT, _UNIVERSE, _UNICAST, 0)
        body = head + attribute(_GATEWAY, socket.inet_aton(gateway)) + attribute(_OUT, struct.pack("=i", index))
        self._ask("add the default route", _NEW_ROUTE, _ACK | _CREATE, body)

    def _ask(self, what: str, kind: int, flags: int, body: bytes) -> bytes:
        """The body of the answer, for a request that has one. Raises OSError."""
        self._number += 1
        self._socket.send(struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | flags, self._number, 0) + body)
        answer = self._socket.recv(65536)
        if struct.unpack_from("=H", answer, 4)[0] == _ERROR:
            number = -struct.unpack_from("=i", answer, 16)[0]
            if number:
                raise OSError(number, f"{what}: {os.strerror(number)}")
        return answer[16:]


def set_variable(name: str, value: str) -> None:
    """Of the kernel, for the namespace that we are in. Some systems close these files; then it stays as it is."""
    with suppress(OSError), open(f"/proc/sys/net/{name}", "w") as file:
        file.write(value)


# ------------------------------------------------------------------ namespaces


def leave_host() -> int | None:
    """Into a new network namespace; and into a new user namespace without root, of which a descriptor is given."""
    if os.geteuid() == 0:
        _call("unshare a network namespace", libc.unshare(_NEWNET))
        return None
    user, group = os.geteuid(), os.getegid()
    _call("unshare a user and a network namespace", libc.unshare(_NEWUSER | _NEWNET))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return os.open("/proc/self/ns/user", os.O_RDONLY)


class Network:
    """Our namespace, and the ways from it to those of pods."""

    def __init__(self, gateway: str, services: str) -> None:
        """In a namespace that is new."""
        self._gateway = gateway
        self._here = os.open("/proc/self/ns/net", os.O_RDONLY)
        self._interfaces = Interfaces()
        self._count = 0
        set_variable("ipv6/conf/default/disable_ipv6", "1")
        set_variable("ipv4/ip_forward", "1")
        with open("/proc/sys/net/ipv4/ip_forward") as file:
            if file.read().strip() != "1":
                raise OSError(errno.EROFS, "net.ipv4.ip_forward cannot be set: /proc/sys is read-only")
        self._interfaces.bring_up(_LOOPBACK)
        self._interfaces.add_address(_LOOPBACK, gateway)
        self._interfaces.add_route(_LOOPBACK, services, scope=_HOST, table=_LOCAL_TABLE, kind=_LOCAL_ROUTE)

    def attach(self, address: str) -> int:
        """A new network namespace for a pod; the caller closes it."""
        pod = inner = None
        try:
            _call("unshare a network namespace", libc.unshare(_NEWNET))
            try:
                inner, pod = os.open("/proc/self/ns/net", os.O_RDONLY), Interfaces()
                set_variable("ipv6/conf/default/disable_ipv6", "1")
                set_variable("ipv4/ip_unprivileged_port_start", "0")  # a container's root has no capability
                group = os.getegid()
                set_variable("ipv4/ping_group_range", f"{group} {group}" if os.geteuid() else "0 2147483647")
            finally:
                _call("return", libc.setns(self._here, _NEWNET))
            self._join(address, inner, pod)
        except BaseException:
            if inner is not None:
                os.close(inner)
            raise
        finally:
            if pod is not None:
                pod.close()
        return inner

    def _join(self, address: str, inner: int, pod: Interfaces) -> None:
        self._count += 1
        name = f"pod{self._count}"
        self._interfaces.add_pair(name, "eth0", inner)
        ours = self._interfaces.index(name)
        self._interfaces.add_address(ours, self._gateway)
        self._interfaces.bring_up(ours)
        pod.bring_up(_LOOPBACK)
        theirs = pod.index("eth0")
        pod.add_address(theirs, address)
        pod.bring_up(theirs)
        pod.add_route(theirs, self._gateway, scope=_LINK)
        pod.add_default_route(theirs, self._gateway)
        self._interfaces.add_route(ours, address, scope=_LINK)

    def detach(self, address: str) -> None:
        """The interface is left to the kernel, which takes a while to remove one, and does so without us."""
        with suppress(OSError):  # the route may have gone with it
            self._interfaces.remove_route(address, scope=_LINK)

    def socket(self, kind: str, bind: list[Any] | None, namespace: int | None = None) -> int:
        """The caller closes it. Of our namespace, or of another one."""
        if namespace is None:
            return self._socket(kind, bind)
        _call("enter a network namespace", libc.setns(namespace, _NEWNET))
        try:
            return self._socket(kind, bind)
        finally:
            _call("return", libc.setns(self._here, _NEWNET))

    def _socket(self, kind: str, bind: list[Any] | None) -> int:
        made = socket.socket(socket.AF_INET, _KINDS[kind])
        try:
            if bind is not None:
                if kind == "tcp":
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                made.bind((str(bind[0]), int(bind[1])))
        except BaseException:
            made.close()
            raise
        return made.detach()


# ------------------------------------------------------------------ requests


def _carry_out(network: Network, request: dict[str, Any], namespaces: list[int]) -> list[int]:
    if "attach" in request:
        return [network.attach(request["attach"])]
    if "detach" in request:
        network.detach(request["detach"])
        return []
    return [network.socket(request["socket"], request.get("bind"), *namespaces)]


def _answer(channel: socket.socket, descriptors: list[int], error: OSError | None = None) -> None:
    text = {} if error is None else {"error": str(error.strerror or error), "errno": error.errno}
    with suppress(OSError):
        socket.send_fds(channel, [json.dumps(text).encode()], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


def serve(channel: socket.socket, gateway: str, services: str) -> None:
    """Until the other end is closed."""
    try:
        user = leave_host()
        network = Network(gateway, services)
    except OSError as error:
        _answer(channel, [], error)
        return
    _answer(channel, [] if user is None else [user])
    while True:
        data, namespaces, _, _ = socket.recv_fds(channel, 65536, 1)
        if not data:
            return
        try:
            _answer(channel, _carry_out(network, json.loads(data), namespaces))
        except OSError as error:
            _answer(channel, [], error)
        except (TypeError, ValueError, OverflowError) as error:  # one pod's nonsense, not the end of all networks
            _answer(channel, [], OSError(errno.EINVAL, str(error)))
        for namespace in namespaces:
            os.close(namespace)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    main()
