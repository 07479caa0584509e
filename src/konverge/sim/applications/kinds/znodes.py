"""A small tree of znodes, pure: what ZooKeeper's requests do to it, and the errors that they get.

Without watches, sessions of their own for ephemeral nodes, and access control: operators keep a few plain nodes.
"""

from __future__ import annotations

import struct
from typing import Any

NO_NODE, BAD_VERSION, NODE_EXISTS, NOT_EMPTY, BAD_ARGUMENTS = -101, -103, -110, -111, -8
SEQUENTIAL = 2

Obj = dict[str, Any]


class ZkError(Exception):
    """A request that fails; the code is ZooKeeper's."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Tree:
    """All znodes, in a state that is plain JSON."""

    def __init__(self, state: Obj) -> None:
        self._state = state
        state.setdefault("zxid", 0)
        state.setdefault("nodes", {"/": _node(b"", 0), "/zookeeper": _node(b"", 0)})

    @property
    def zxid(self) -> int:
        zxid: int = self._state["zxid"]
        return zxid

    @property
    def size(self) -> int:
        return len(self._nodes)

    @property
    def _nodes(self) -> dict[str, Obj]:
        nodes: dict[str, Obj] = self._state["nodes"]
        return nodes

    def create(self, path: str, data: bytes, flags: int = 0) -> str:
        """Make a node; the answer is its path, which differs for sequential ones."""
        parent = self._parent(path)
        if flags & SEQUENTIAL:
            path = f"{path}{parent['cversion']:010}"
        if path in self._nodes:
            raise ZkError(NODE_EXISTS)
        self._state["zxid"] += 1
        self._nodes[path] = _node(data, self.zxid)
        parent["cversion"] += 1
        parent["pzxid"] = self.zxid
        return path

    def delete(self, path: str, version: int = -1) -> None:
        node = self._node(path, version)
        if self.children(path):
            raise ZkError(NOT_EMPTY)
        parent = self._parent(path)
        self._state["zxid"] += 1
        del self._nodes[path]
        parent["cversion"] += 1
        parent["pzxid"] = self.zxid
        node.clear()

    def set(self, path: str, data: bytes, version: int = -1) -> None:
        node = self._node(path, version)
        self._state["zxid"] += 1
        node |= {"data": data.decode("latin-1"), "version": node["version"] + 1, "mzxid": self.zxid}

    def data(self, path: str) -> bytes:
        text: str = self._node(path)["data"]
        return text.encode("latin-1")

    def children(self, path: str) -> list[str]:
        self._node(path)
        prefix = path.rstrip("/") + "/"
        return sorted(
            name[len(prefix) :]
            for name in self._nodes
            if name.startswith(prefix) and name != "/" and "/" not in name[len(prefix) :]
        )

    def stat(self, path: str) -> bytes:
        """The Stat of a node, as it goes over the wire. Times are all zero, so that runs are alike."""
        node = self._node(path)
        return struct.pack(
            ">qqqqiiiqiiq", node["czxid"], node["mzxid"], 0, 0, node["version"], node["cversion"], 0, 0,
            len(node["data"]), len(self.children(path)), node["pzxid"],
        )  # fmt: skip

    def _node(self, path: str, version: int = -1) -> Obj:
        node = self._nodes.get(path)
        if node is None:
            raise ZkError(NO_NODE)
        if version not in (-1, node["version"]):
            raise ZkError(BAD_VERSION)
        return node

    def _parent(self, path: str) -> Obj:
        if not path.startswith("/") or path == "/" or path.endswith("/"):
            raise ZkError(BAD_ARGUMENTS)
        return self._node(path.rpartition("/")[0] or "/")


def _node(data: bytes, zxid: int) -> Obj:
    return {
        "data": data.decode("latin-1"), "version": 0, "cversion": 0, "czxid": zxid, "mzxid": zxid, "pzxid": zxid,
    }  # fmt: skip
