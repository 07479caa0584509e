"""`kind: zookeeper`: the client protocol over one tree for all servers of the ensemble, and the four-letter words.

Enough for operators that keep a few nodes (connect, create, exists, get, set, children, delete, ping, close). The first
server that came is the leader. Fault `error`: every request fails with a system error; `wrong`: no node is shown.
"""

from __future__ import annotations

import asyncio
import struct
from enum import IntEnum

from konverge.sim.applications.application import CUT, ERROR, REFUSE, SLOW, WRONG, Application, Member
from konverge.sim.applications.kinds.znodes import NO_NODE, Tree, ZkError


class Op(IntEnum):
    """The operations of ZooKeeper's protocol (upstream: ZooDefs.OpCode)."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET = 4
    SET = 5
    GET_ACL = 6
    CHILDREN = 8
    SYNC = 9
    PING = 11
    CHILDREN_2 = 12
    CREATE_2 = 15
    AUTH = 100
    WATCHES = 101
    CLOSE = -11


_WRITES = (Op.CREATE, Op.CREATE_2, Op.DELETE, Op.SET)
SYSTEM_ERROR, UNIMPLEMENTED = -1, -6
_WORDS = ("ruok", "mntr", "srvr", "stat", "conf", "isro", "envi", "cons")
_VERSION = "3.6.3"
_LONGEST = 1024 * 1024


class ZooKeeper(Application):
    """An ensemble."""

    ports = (2181,)
    faults = (REFUSE, SLOW, CUT, ERROR, WRONG)

    @property
    def tree(self) -> Tree:
        return Tree(self.state)

    async def serve(self, member: Member, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(4)
        if first.decode("latin-1") in _WORDS:
            writer.write(self.word(member, first.decode("latin-1")).encode())
            return
        request = await reader.readexactly(min(int.from_bytes(first, "big"), _LONGEST))
        (timeout,) = struct.unpack_from(">i", request, 12)
        session = struct.pack(">iiq", 0, timeout, 0x100000001) + _buffer(bytes(16)) + b"\0"
        writer.write(_framed(session))
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            if size > _LONGEST:
                return
            request = await reader.readexactly(size)
            xid, operation = struct.unpack_from(">ii", request)
            error, body = self._answer(member, operation, request[8:])
            writer.write(_framed(struct.pack(">iqi", xid, self.tree.zxid, error) + body))
            await writer.drain()
            if operation == Op.CLOSE:
                return

    def _answer(self, member: Member, operation: int, body: bytes) -> tuple[int, bytes]:
        if operation in (Op.PING, Op.CLOSE, Op.AUTH, Op.WATCHES):
            return 0, b""
        if member.fault == ERROR:
            return SYSTEM_ERROR, b""
        if member.fault == WRONG:
            return NO_NODE, b""
        try:
            answer = _operate(self.tree, operation, _Reader(body))
        except ZkError as error:
            return error.code, b""
        if operation in _WRITES:
            self.changed()
        return 0, answer

    # -------------------------------------------------------------- four-letter words

    def word(self, member: Member, word: str) -> str:
        """The answer to a four-letter word."""
        if member.fault in (ERROR, WRONG):
            return "This ZooKeeper instance is not currently serving requests\n"
        if word == "ruok":
            return "imok"
        if word == "isro":
            return "rw"
        mode = self._mode(member)
        if word == "mntr":
            lines = {"version": _VERSION, "server_state": mode, "znode_count": self.tree.size}
            if mode == "leader":
                lines |= {"followers": len(self.members) - 1, "synced_followers": len(self.members) - 1}
            return "".join(f"zk_{name}\t{value}\n" for name, value in lines.items())
        return (
            f"Zookeeper version: {_VERSION}\nZxid: 0x{self.tree.zxid:x}\nMode: {mode}\nNode count: {self.tree.size}\n"
        )

    def _mode(self, member: Member) -> str:
        if len(self.members) == 1:
            return "standalone"
        return "leader" if next(iter(self.members.values()), None) is member else "follower"


def _operate(tree: Tree, operation: int, request: _Reader) -> bytes:
    path = request.text()
    match operation:
        case Op.CREATE | Op.CREATE_2:
            data = request.buffer()
            for _ in range(max(request.number(), 0)):
                request.number(), request.text(), request.text()
            path = tree.create(path, data, request.number())
            return _buffer(path.encode()) + (tree.stat(path) if operation == Op.CREATE_2 else b"")
        case Op.DELETE:
            tree.delete(path, request.number())
            return b""
        case Op.EXISTS:
            return tree.stat(path)
        case Op.GET:
            return _buffer(tree.data(path)) + tree.stat(path)
        case Op.SET:
            data = request.buffer()
            tree.set(path, data, request.number())
            return tree.stat(path)
        case Op.GET_ACL:
            stat = tree.stat(path)
            return struct.pack(">ii", 1, 31) + _buffer(b"world") + _buffer(b"anyone") + stat
        case Op.CHILDREN | Op.CHILDREN_2:
            names = tree.children(path)
            listed = struct.pack(">i", len(names)) + b"".join(_buffer(name.encode()) for name in names)
            return listed + (tree.stat(path) if operation == Op.CHILDREN_2 else b"")
        case Op.SYNC:
            return _buffer(path.encode())
    raise ZkError(UNIMPLEMENTED)


class _Reader:
    """Reads jute's records. Raises ValueError on what is cut off."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def number(self) -> int:
        if self._place + 4 > len(self._data):
            raise ValueError("a request is cut off")
        (number,) = struct.unpack_from(">i", self._data, self._place)
        self._place += 4
        return int(number)

    def buffer(self) -> bytes:
        size = max(self.number(), 0)
        if self._place + size > len(self._data):
            raise ValueError("a request is cut off")
        self._place += size
        return self._data[self._place - size : self._place]

    def text(self) -> str:
        return self.buffer().decode()


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
