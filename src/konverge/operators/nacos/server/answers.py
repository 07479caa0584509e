"""Reads the bodies of answers. They come from outside: whatever they hold, the result is a value or a NacosError.

Members look the same in every API and version; only the envelope around them differs (`code` 200 in v1, 0 in v2 and
v3). The HTTP status of these answers is not reliable, so the code is read too. Unknown fields are skipped.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from konverge.operators.nacos.server.model import Leader, Member, NacosError, clean_host, join

MAX_BODY = 1 << 20
"""A member takes about 2 KB in recorded answers, so this is room for some 500 of them."""
MAX_MEMBERS = 256
MAX_GROUPS = 64
MAX_TEXT = 512
"""Characters of a host, a version or a state."""
GOOD = (0, 200)
"""Codes of success: of v2 and v3, and of v1."""
_EXCERPT = 160
_LONGEST_KNOWN = 8 << 10
"""Bytes of a list that is remembered: that of six members."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


class _Group(msgspec.Struct, rename="camel"):
    leader: str | None = None
    term: int | None = 0
    raft_group_member: tuple[str, ...] | None = None


class _Raft(msgspec.Struct, rename="camel"):
    meta_data_map: dict[str, _Group] | None = None


class _Extended(msgspec.Struct, rename="camel"):
    version: str | None = None
    raft_port: int | str | None = None
    raft_meta_data: _Raft | None = None


class _Member(msgspec.Struct, rename="camel"):
    ip: str = ""
    port: int = 0
    address: str = ""
    state: str | None = None
    extend_info: _Extended | None = None


_decode = msgspec.json.Decoder(list[_Member]).decode


class _Members(msgspec.Struct):
    code: int | None = None
    message: str | None = None
    data: list[_Member] | None = None


class _Envelope(msgspec.Struct):
    """Of v2 and v3, and Spring's own for errors (`status`, `error`, `message`)."""

    code: int | None = None
    message: str | None = None
    data: Any = None


def members(body: bytes) -> tuple[Member, ...]:
    """The list of members of any version."""
    answer = _read(body, _Members, "a list of members")
    if answer.code is not None and answer.code not in GOOD:
        raise NacosError("ServerError", f"the server answered code {answer.code}: {excerpt(answer.message)}")
    if answer.data is None:
        raise NacosError("BadAnswer", "the answer has no list of members; is there a proxy in between?")
    if len(answer.data) > MAX_MEMBERS:
        raise NacosError(
            "BadAnswer", f"the answer lists {len(answer.data)} members; more than {MAX_MEMBERS} are not read"
        )
    listed = _encode(answer.data)
    return _known(listed) if len(listed) <= _LONGEST_KNOWN else _made(answer.data)


@lru_cache(1024)
def _known(listed: bytes) -> tuple[Member, ...]:
    """Servers repeat themselves: nearly every answer is that of half a minute ago, but for times that are not read."""
    return _made(_decode(listed))


def _made(data: list[_Member]) -> tuple[Member, ...]:
    peers = _Peers()
    return tuple(_member(raw, peers) for raw in data)


def _member(raw: _Member, peers: _Peers) -> Member:
    host, port = _host_and_port(raw)
    extended = raw.extend_info or _Extended()
    version = extended.version or None
    state = (raw.state or "").upper()
    if max(len(host), len(version or ""), len(state)) > MAX_TEXT or not host:
        raise NacosError("BadAnswer", "a member has no address, or an impossible one")
    return Member(
        host=host,
        port=port,
        state=state,
        version=version,
        leaders=_leaders(extended.raft_meta_data, peers),
        groups=_groups(extended.raft_meta_data, peers),
        raft_port=_port(extended.raft_port),
    )


def _host_and_port(raw: _Member) -> tuple[str, int]:
    host, port = raw.ip, raw.port
    if not host:
        host, _, digits = raw.address.rpartition(":")
        port = port or _port(digits) or 0
    return clean_host(host), port


def _port(value: int | str | None) -> int | None:
    text = str(value or "")
    return int(text) if text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65536 else None


def _leaders(raft: _Raft | None, peers: _Peers) -> dict[str, Leader] | None:
    if raft is None or not raft.meta_data_map:
        return None
    if len(raft.meta_data_map) > MAX_GROUPS:
        raise NacosError("BadAnswer", f"a member has {len(raft.meta_data_map)} raft groups; Nacos has six")
    return {
        group: Leader(peers.address(data.leader or ""), data.term or 0) for group, data in raft.meta_data_map.items()
    }


def _groups(raft: _Raft | None, peers: _Peers) -> dict[str, frozenset[str]]:
    known = (raft.meta_data_map or {}) if raft is not None else {}
    return {group: peers.listed(data.raft_group_member) for group, data in known.items() if data.raft_group_member}


class _Peers:
    """The raft addresses of one answer. Each group of each member lists the same few: each is read once."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        self._lists: dict[tuple[str, ...], frozenset[str]] = {}

    def address(self, text: str) -> str:
        known = self._addresses.get(text)
        if known is None:
            known = self._addresses[text] = _raft_address(text)
        return known

    def listed(self, texts: tuple[str, ...]) -> frozenset[str]:
        known = self._lists.get(texts)
        if known is None:
            if len(texts) > MAX_MEMBERS:
                raise NacosError(
                    "BadAnswer", f"a group has {len(texts)} raft peers; more than {MAX_MEMBERS} are not read"
                )
            known = self._lists[texts] = frozenset(map(self.address, texts)) - {""}
        return known


def _raft_address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    return join(clean_host(host), port) if colon and host else ""


def code(body: bytes) -> int | None:
    """The code of an envelope; None when there is none."""
    envelope = _decoded(body, _Envelope)
    return envelope.code if envelope is not None else None


def has_token(body: bytes) -> bool:
    """Whether a login was answered with a token."""
    return bool((_decoded(body, dict[str, Any]) or {}).get("accessToken"))


def error_message(body: bytes) -> str:
    """The text of an error for people: the message of an envelope, or the body itself."""
    envelope = _decoded(body, _Envelope)
    return excerpt(envelope.message if envelope is not None else body[: _EXCERPT * 4].decode("utf-8", "replace"))


def excerpt(text: str | None) -> str:
    """One line of at most 160 characters.

    >>> excerpt("no\\n such   thing")
    'no such thing'
    """
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text or "").strip()
    return line if len(line) <= _EXCERPT else line[:_EXCERPT] + "…"


def _read(body: bytes, form: type[T], what: str) -> T:
    if len(body) > MAX_BODY:
        raise NacosError("BadAnswer", f"the answer is larger than {MAX_BODY >> 20} MiB, so it is not {what}")
    try:
        return msgspec.json.decode(body, type=form)
    except _UNREADABLE as error:
        raise NacosError("BadAnswer", f"the answer is not {what}: {excerpt(str(error))}") from error


def _decoded(body: bytes, form: type[T]) -> T | None:
    """None for a body of another form."""
    try:
        return msgspec.json.decode(body, type=form)
    except _UNREADABLE:
        return None
