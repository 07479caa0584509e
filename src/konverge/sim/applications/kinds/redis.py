"""`kind: redis`: servers of one replication and their sentinels, as far as operators steer them (RESP).

    servers:
      - {kind: redis, server: redis, labels: {app.kubernetes.io/component: redis}, with: {follows: 127.0.0.1 6379}}
      - {kind: redis, server: sentinel, labels: {app.kubernetes.io/component: sentinel}, with: {role: sentinel}}

`follows` is the `replicaof` of the configuration with which servers start. With `failover: true` the sentinels do their
work at once: when no server is a master, the first by name becomes it, and the sentinels watch it from then on. Data
itself is not kept. Fault `error`: every command fails; `wrong`: every server says that it follows one that is away.
"""

from __future__ import annotations

import asyncio
from typing import Any

from konverge.sim.applications.application import CUT, ERROR, REFUSE, SLOW, WRONG, Application, Member, Obj

NAME = "mymaster"
REDIS_PORT, SENTINEL_PORT = 6379, 26379
_MOST_WORDS, _LONGEST_WORD = 1024, 1024 * 1024
_OK = b"+OK\r\n"


class Redis(Application):
    """One replication: masters, followers and sentinels."""

    ports = (REDIS_PORT,)
    faults = (REFUSE, SLOW, CUT, ERROR, WRONG)

    # -------------------------------------------------------------- members

    def joined(self, member: Member) -> None:
        uid = member.pod["metadata"]["uid"]
        known = self._servers.get(member.name)
        if known is None or known["uid"] != uid or known["address"] != member.address:
            self._servers[member.name] = self._started(member, uid)
        self._fail_over(member)
        self.changed()

    def _started(self, member: Member, uid: str) -> Obj:
        """A server as its configuration file starts it."""
        sentinel = member.settings.get("role") == "sentinel"
        default = "127.0.0.1 6379" if sentinel else ""
        host, _, port = str(member.settings.get("follows", default)).partition(" ")
        return {
            "uid": uid, "address": member.address, "sentinel": sentinel, "host": host,
            "port": port or str(REDIS_PORT), "config": {},
        }  # fmt: skip

    def left(self, member: Member) -> None:
        self._servers.pop(member.name, None)
        self._fail_over(member)
        self.changed()

    def _fail_over(self, member: Member) -> None:
        if not any(other.settings.get("failover") for other in (member, *self.members.values())):
            return
        redises = {name: server for name, server in sorted(self._servers.items()) if not server["sentinel"]}
        if not redises or any(not server["host"] for server in redises.values()):
            return
        master = next(iter(redises.values()))
        master["host"] = ""
        for server in self._servers.values():
            if server is not master and (server["sentinel"] or server["host"] != "127.0.0.1"):
                server["host"] = master["address"]

    @property
    def _servers(self) -> dict[str, Obj]:
        servers: dict[str, Obj] = self.state.setdefault("servers", {})
        return servers

    # -------------------------------------------------------------- commands

    async def serve(self, member: Member, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while words := await _command(reader):
            writer.write(self._answer(member, words))
            await writer.drain()
            if words[0].upper() == "QUIT":
                return

    def _answer(self, member: Member, words: list[str]) -> bytes:
        if member.fault == ERROR:
            return b"-ERR the stand-in was asked to fail\r\n"
        server = self._servers.get(member.name)
        if server is None:
            return b"-LOADING Redis is loading the dataset in memory\r\n"
        match [words[0].upper(), *words[1:]]:
            case ["PING"]:
                return b"+PONG\r\n"
            case ["AUTH" | "SELECT" | "QUIT" | "SHUTDOWN" | "CLIENT", *_]:
                return _OK
            case ["INFO", *section]:
                return _bulk(self._info(member, server, section[0].lower() if section else "all"))
            case ["ROLE"]:
                return _array(["sentinel" if server["sentinel"] else "slave" if server["host"] else "master"])
            case ["CONFIG", action, *rest]:
                return self._configure(server["config"], action.upper(), rest)
            case ["SLAVEOF" | "REPLICAOF", host, port]:
                server["host"], server["port"] = ("", str(REDIS_PORT)) if host.upper() == "NO" else (host, port)
                self.changed()
                return _OK
            case ["SENTINEL", action, *rest] if server["sentinel"]:
                return self._sentinel(server, action.lower(), rest)
        return f"-ERR unknown command '{words[0]}'\r\n".encode()

    def _configure(self, config: Obj, action: str, rest: list[str]) -> bytes:
        if action == "SET" and len(rest) == 2:
            config[rest[0]] = rest[1]
            self.changed()
            return _OK
        if action == "GET" and rest:
            return _array([rest[0], config[rest[0]]] if rest[0] in config else [])
        return _OK if action in ("REWRITE", "RESETSTAT") else b"-ERR unknown CONFIG subcommand\r\n"

    def _sentinel(self, server: Obj, action: str, rest: list[str]) -> bytes:
        match [action, *rest]:
            case ["monitor", name, host, port, *_] if name == NAME:
                server["host"], server["port"] = host, port
            case ["remove", _]:
                server["host"] = ""
            case ["set", _, *pairs]:
                server["config"] |= dict(zip(pairs[::2], pairs[1::2], strict=False))
            case ["reset", *_]:
                self.changed()
                return b":1\r\n"
            case ["master", _] if server["host"]:
                pairs = ["name", NAME, "ip", server["host"], "port", server["port"], "flags", "master"]
                return _array(pairs)
            case ["get-master-addr-by-name", _] if server["host"]:
                return _array([server["host"], server["port"]])
            case _:
                return b"-ERR No such master with that name\r\n"
        self.changed()
        return _OK

    # -------------------------------------------------------------- what INFO shows

    def _info(self, member: Member, server: Obj, section: str) -> str:
        lines: dict[str, Any] = {}
        if section in ("all", "server", "default"):
            lines |= {"redis_version": "6.2.6", "redis_mode": "sentinel" if server["sentinel"] else "standalone"}
        if server["sentinel"] and section in ("all", "sentinel", "default"):
            lines |= {"sentinel_masters": int(bool(server["host"]))}
            if server["host"]:
                lines |= {"master0": self._watched(server)}
        if not server["sentinel"] and section in ("all", "replication", "default"):
            lines |= self._replication(member, server)
        return "".join(f"{name}:{value}\r\n" for name, value in lines.items())

    def _watched(self, sentinel: Obj) -> str:
        servers = self._servers.values()
        master = self._at(sentinel["host"])
        status = "ok" if master is not None and not master["host"] else "odown"
        followers = sum(not server["sentinel"] and server["host"] == sentinel["host"] for server in servers)
        sentinels = sum(server["sentinel"] and server["host"] == sentinel["host"] for server in servers)
        address = f"{sentinel['host']}:{sentinel['port']}"
        return f"name={NAME},status={status},address={address},slaves={followers},sentinels={sentinels}"

    def _replication(self, member: Member, server: Obj) -> Obj:
        if member.fault == WRONG:
            return {
                "role": "slave",
                "master_host": "127.0.0.1",
                "master_port": REDIS_PORT,
                "master_link_status": "down",
            }
        if not server["host"]:
            followers = [other for other in self._servers.values() if other["host"] == server["address"]]
            return {"role": "master", "connected_slaves": sum(not other["sentinel"] for other in followers)}
        linked = self._at(server["host"]) is not None
        return {
            "role": "slave",
            "master_host": server["host"],
            "master_port": server["port"],
            "master_link_status": "up" if linked else "down",
            "master_sync_in_progress": 0,
            "connected_slaves": 0,
        }

    def _at(self, address: str) -> Obj | None:
        servers = self._servers.values()
        return next((server for server in servers if not server["sentinel"] and server["address"] == address), None)


# ------------------------------------------------------------------ RESP


async def _command(reader: asyncio.StreamReader) -> list[str]:
    """The words of the next command; none at the end of the connection. Raises ValueError."""
    line = (await reader.readline()).strip()
    if not line:
        return []
    if not line.startswith(b"*"):
        return line.decode("utf-8", "replace").split()
    words = []
    for _ in range(min(int(line[1:]), _MOST_WORDS)):
        size = int((await reader.readline()).strip()[1:])
        if not 0 <= size <= _LONGEST_WORD:
            raise ValueError(f"a word has at most {_LONGEST_WORD} bytes here")
        words.append((await reader.readexactly(size + 2))[:-2].decode("utf-8", "replace"))
    return words


def _bulk(text: str) -> bytes:
    data = text.encode()
    return b"$%d\r\n%s\r\n" % (len(data), data)


def _array(texts: list[str]) -> bytes:
    return b"*%d\r\n%s" % (len(texts), b"".join(_bulk(text) for text in texts))
