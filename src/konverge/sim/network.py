"""Addresses: every pod and node has one of its own in the loopback range, so that a simulated server can really listen.

Nodes are 127.0.1.0 and up, pods 127.1.0.1 and up, load balancers 127.255.0.1 and up. What is in a pod network has an
address of `POD_BLOCKS` instead, which no interface of this machine has (`konverge.sim.podnet`). Systems
that have 127.0.0.1 alone (macOS) give all pods that one: `Addresses(shared="127.0.0.1")`. Clusters that run beside each
other on one machine and listen take different blocks of pods: `claimed_block`.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

NODES = "127.0.1.0"
PODS = "127.1.0.1"
BALANCERS = "127.255.0.1"
BLOCKS = range(1, 255)
"""The second numbers of the blocks that pods can be in: 127.1.0.0/16 and so on."""
POD_BLOCKS = tuple(ipaddress.IPv4Network(f"10.{number}.0.0/16") for number in range(244, 255))
"""What addresses in pod networks can be of. They mean nothing outside of the cluster; clusters in one process take
different ones, so that an address says which of them is meant."""
CLAIM = 10250
"""A block is taken by the process that holds this port of its last address. It is the port of kubelets."""


@contextmanager
def claimed_block() -> Iterator[str]:
    """The first address of a block that no other process of this machine has, until the end of the `with` block."""
    with socket.socket() as claim:
        for number in BLOCKS:
            try:
                claim.bind((f"127.{number}.255.254", CLAIM))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
            yield f"127.{number}.0.1"
            return
        yield PODS  # all are taken: the first to listen gets an error


def in_pod_network(address: str) -> bool:
    """Whether it is an address that only pod networks have."""
    try:
        return any(ipaddress.IPv4Address(address) in block for block in POD_BLOCKS)
    except ValueError:
        return False


class Addresses:
    """Hands out addresses from one start on; what is given back is used again when all have had their turn."""

    def __init__(self, first: str, *, last: str = "", shared: str = "") -> None:
        self._next = int(ipaddress.IPv4Address(first))
        self._first = self._next
        self._end = int(ipaddress.IPv4Address(last)) + 1 if last else None
        self._shared = shared
        self._held: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, holder: str) -> str:
        """The address of a holder, the same each time."""
        of = self._held.get(holder)
        if of is None:
            of = self._shared or self._free()
            self.keep(holder, of)
        return of

    def keep(self, holder: str, address: str) -> None:
        """An address that is in use already, or asked for."""
        self._held[holder] = address
        self._taken.add(address)

    def release(self, holder: str) -> None:
        address = self._held.pop(holder, None)
        if address is not None and address != self._shared:
            self._taken.discard(address)

    def holders(self) -> Iterable[str]:
        return self._held.keys()

    def _free(self) -> str:
        while True:
            address = str(ipaddress.IPv4Address(self._next))
            self._next += 1
            if self._next & 0xFFFFFF == 0xFF0000 or self._next == self._end:  # the end of the range: start over
                self._next = self._first
            if address not in self._taken and not address.endswith((".0", ".255")):
                return address
