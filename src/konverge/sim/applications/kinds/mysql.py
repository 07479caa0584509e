"""`kind: mysql`: the handshake and text queries, as far as operators ask a MySQL, a Galera node or a ProxySQL.

    with:
      version: 8.0.27-18.1
      answers:
        - {query: "*FROM mysql_servers*", columns: [status], rows: [[ONLINE]]}

Every user is let in. Statements that change something succeed; users and global variables that they set are kept.
Queries are answered by the first of `answers` that matches, then by what every server knows (`@@version`, `@@hostname`,
`@@read_only`, wsrep's state), else by no rows. `before: pxc` is for a proxy in front of the server of that name: it has
the hostname of the first of those. Prepared statements are refused: drivers interpolate when asked to. Fault `error`:
every query fails; `wrong`: every query finds no rows.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Sequence
from fnmatch import fnmatchcase

from konverge.sim.applications.application import CUT, ERROR, REFUSE, SLOW, WRONG, Application, Member, Obj

VERSION = "8.0.27-18.1"
_QUIT, _INIT_DB, _QUERY, _PING = 1, 2, 3, 14
_CAPABILITIES = 0x00000001 | 0x00000008 | 0x00000200 | 0x00002000 | 0x00008000 | 0x00080000
"""Long passwords, a database at connect, protocol 4.1, transactions, secure connection, plugins for authentication."""
_AUTOCOMMIT = 0x0002
_UTF8 = 33
_VAR_STRING = 0xFD
_LONGEST = 1024 * 1024
_USER = re.compile(r"(?:CREATE|ALTER) USER (?:IF NOT EXISTS )?'([^']*)'@'[^']*' IDENTIFIED BY '([^']*)'", re.IGNORECASE)
_GLOBAL = re.compile(r"SET GLOBAL (\w+)\s*=\s*(\S+)", re.IGNORECASE)
_READS = ("SELECT", "SHOW", "DESCRIBE", "EXPLAIN")

Rows = tuple[Sequence[str], Sequence[Sequence[str]]]


class MySql(Application):
    """One cluster of servers, with one set of users."""

    ports = (3306, 33062)
    faults = (REFUSE, SLOW, CUT, ERROR, WRONG)

    async def serve(self, member: Member, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version = str(member.settings.get("version", VERSION))
        writer.write(_packet(0, _greeting(version)))
        await writer.drain()
        number, _ = await _read(reader)
        writer.write(_packet(number + 1, _OK))
        while True:
            await writer.drain()
            _, command = await _read(reader)
            if not command or command[0] == _QUIT:
                return
            writer.write(_numbered(self._answer(member, command[0], command[1:].decode("utf-8", "replace"))))

    def _answer(self, member: Member, command: int, text: str) -> list[bytes]:
        if member.fault == ERROR:
            return [_error(1105, "HY000", "the stand-in was asked to fail")]
        if command in (_PING, _INIT_DB):
            return [_OK]
        if command != _QUERY:
            return [_error(1047, "08S01", "the stand-in answers text queries alone")]
        if not text.lstrip().upper().startswith(_READS):
            self._change(text)
            return [_OK]
        columns, rows = self._read_rows(member, " ".join(text.split()))
        return _result_set(columns, [] if member.fault == WRONG else rows)

    # -------------------------------------------------------------- what it knows

    def _change(self, text: str) -> None:
        user, variable = _USER.search(text), _GLOBAL.search(text)
        if user is not None:
            self.state.setdefault("users", {})[user[1]] = user[2]
        if variable is not None:
            self.state.setdefault("variables", {})[variable[1].lower()] = variable[2].rstrip(";")
        if user is not None or variable is not None:
            self.changed()

    def _read_rows(self, member: Member, text: str) -> Rows:
        for answer in member.settings.get("answers") or ():
            if fnmatchcase(text.lower(), str(answer["query"]).lower()):
                return _texts(answer)
        variable = re.match(r"select @@(?:global\.)?(\w+)", text, re.IGNORECASE)
        if variable is not None:
            name = variable[1].lower()
            value = self._variable(member, name)
            return [name], [] if value is None else [[value]]
        if "wsrep_local_state_comment" in text.lower():
            return ["Variable_name", "Value"], [["wsrep_local_state_comment", "Synced"]]
        return ["value"], []

    def _variable(self, member: Member, name: str) -> str | None:
        own = {
            "version": str(member.settings.get("version", VERSION)),
            "hostname": self._hostname(member),
            "read_only": "0",
            "max_allowed_packet": str(_LONGEST),
        }
        known: Obj = self.state.get("variables") or {}
        return known.get(name, own.get(name))

    def _hostname(self, member: Member) -> str:
        behind = str(member.settings.get("before", ""))
        names = sorted(other.name for other in self.members.values() if other.server == behind)
        return names[0] if names else member.name


def _texts(answer: Obj) -> Rows:
    return [str(name) for name in answer["columns"]], [
        [str(value) for value in row] for row in answer.get("rows") or ()
    ]


# ------------------------------------------------------------------ packets


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Number and content of the next packet. Raises ValueError on one that is too long."""
    head = await reader.readexactly(4)
    size = int.from_bytes(head[:3], "little")
    if size > _LONGEST:
        raise ValueError(f"a packet has at most {_LONGEST} bytes here")
    return head[3], await reader.readexactly(size)


def _packet(number: int, data: bytes) -> bytes:
    return len(data).to_bytes(3, "little") + bytes((number % 256,)) + data


def _numbered(packets: Sequence[bytes]) -> bytes:
    return b"".join(_packet(number, data) for number, data in enumerate(packets, 1))


def _greeting(version: str) -> bytes:
    """HandshakeV10 with mysql_native_password; the salt is the same each time: no one is refused."""
    salt = b"stand-in-for-a-mysql"
    low, high = _CAPABILITIES & 0xFFFF, _CAPABILITIES >> 16
    head = b"\x0a" + version.encode() + b"\0" + struct.pack("<I", 1) + salt[:8] + b"\0"
    middle = struct.pack("<HBHHB", low, _UTF8, _AUTOCOMMIT, high, len(salt) + 1) + bytes(10)
    return head + middle + salt[8:] + b"\0mysql_native_password\0"


_OK = b"\0\0\0" + struct.pack("<HH", _AUTOCOMMIT, 0)
_EOF = b"\xfe" + struct.pack("<HH", 0, _AUTOCOMMIT)


def _error(code: int, state: str, message: str) -> bytes:
    return b"\xff" + struct.pack("<H", code) + b"#" + state.encode() + message.encode()


def _result_set(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bytes]:
    """Texts only, which drivers convert."""
    definitions = [_column(name) for name in columns]
    lines = [b"".join(_text(value) for value in row) for row in rows]
    return [bytes((len(columns),)), *definitions, _EOF, *lines, _EOF]


def _column(name: str) -> bytes:
    names = b"".join(_text(text) for text in ("def", "", "", "", name, name))
    return names + b"\x0c" + struct.pack("<HIBHBH", _UTF8, 1024, _VAR_STRING, 0, 0, 0)


def _text(value: str) -> bytes:
    """A string with its length in front."""
    data = value.encode()
    if len(data) < 251:
        return bytes((len(data),)) + data
    return b"\xfc" + struct.pack("<H", len(data)) + data
