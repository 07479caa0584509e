"""Bodies of answers, field by field: what is read, where the limits are, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.operators.nacos.server import Leader, Member, NacosError
from konverge.operators.nacos.server.answers import (
    MAX_GROUPS,
    MAX_MEMBERS,
    MAX_TEXT,
    code,
    error_message,
    excerpt,
    has_token,
    members,
)
from konverge.operators.nacos.server.model import clean_host, join

pytestmark = pytest.mark.spec("N-10")


def read(*entries: dict[str, Any], **envelope: Any) -> tuple[Member, ...]:
    return members(json.dumps({"code": 200, "data": list(entries), **envelope}).encode())


def one(**entry: Any) -> Member:
    (member,) = read({"ip": "10.0.0.1", "port": 8848, **entry})
    return member


def raft(**groups: Any) -> dict[str, Any]:
    return {"raftMetaData": {"metaDataMap": groups}}


def refused(*entries: dict[str, Any], **envelope: Any) -> tuple[str, str]:
    with pytest.raises(NacosError) as wrong:
        read(*entries, **envelope)
    return wrong.value.reason, wrong.value.message


def test_a_whole_member() -> None:
    group = {"leader": "Nacos-1.h.:7848", "term": 4, "raftGroupMember": ["nacos-0.h:7848", "[::1]:7848", "broken"]}
    extended = {"version": "2.4.3", "raftPort": "7848", **raft(naming=group, other={"leader": None, "term": None})}
    assert one(ip="Nacos-0.H.", state="down", extendInfo=extended, unknown={"a": 1}) == Member(
        host="nacos-0.h",
        port=8848,
        state="DOWN",
        version="2.4.3",
        leaders={"naming": Leader("nacos-1.h:7848", 4), "other": Leader("", 0)},
        groups={"naming": frozenset({"nacos-0.h:7848", "[::1]:7848"})},
        raft_port=7848,
    )


def test_the_same_list_is_made_once_and_another_anew() -> None:
    def at(moment: int, term: int = 4) -> tuple[Member, ...]:
        return read({"ip": "a", "extendInfo": {"lastRefreshTime": moment, **raft(g={"leader": "a:1", "term": term})}})

    assert at(1) is at(2), "a time is not read"
    assert [member.leaders for member in at(3, term=5)] == [{"g": Leader("a:1", 5)}]
    long = [{"ip": f"{number}.{'h' * 200}"} for number in range(60)]
    assert read(*long) == read(*long)
    assert read(*long) is not read(*long), "a long one is not kept"


@pytest.mark.parametrize("extended", [None, {}, {"raftMetaData": None}, {"raftMetaData": {"metaDataMap": None}}])
def test_a_member_that_has_not_reported(extended: Any) -> None:
    member = one(state=None, extendInfo=extended)
    assert member == Member(host="10.0.0.1", port=8848, state="", version=None, leaders=None, groups={}, raft_port=None)
    assert one(extendInfo={"version": ""}).version is None
    assert one(extendInfo=raft()).leaders is None


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ({"ip": "a", "port": 1, "address": "b:2"}, "a:1"),
        ({"address": "b:2"}, "b:2"),
        ({"address": "b:2", "port": 3}, "b:3"),
        ({"address": "[::1]:2"}, "[::1]:2"),
        ({"address": "b:x"}, "b:0"),
    ],
)
def test_where_a_member_is(entry: dict[str, Any], address: str) -> None:
    (member,) = read(entry)
    assert member.address == address


@pytest.mark.parametrize("entry", [{}, {"ip": ""}, {"address": "b"}, {"ip": " . "}])
def test_a_member_without_an_address(entry: dict[str, Any]) -> None:
    assert refused(entry) == ("BadAnswer", "a member has no address, or an impossible one")


@pytest.mark.parametrize(
    ("port", "number"),
    [
        (7848, 7848),
        ("7848", 7848),
        (1, 1),
        (65535, 65535),
        (65536, None),
        (0, None),
        ("0", None),
        (-1, None),
        ("00001", 1),
        ("000001", None),
        ("x", None),
        ("", None),
        (None, None),
    ],
)
def test_raft_ports(port: Any, number: int | None) -> None:
    member = one(extendInfo={"raftPort": port})
    assert member.raft_port == number
    assert member.raft_address == f"10.0.0.1:{number or 7848}"


@pytest.mark.parametrize(
    ("leader", "address"), [("a:1", "a:1"), ("a", ""), (":1", ""), ("", ""), ("[::1]:7", "[::1]:7")]
)
def test_the_address_of_a_leader(leader: str, address: str) -> None:
    assert one(extendInfo=raft(g={"leader": leader, "term": 1})).leaders == {"g": Leader(address, 1)}


@pytest.mark.parametrize(
    "entry",
    [
        {"ip": "a" * (MAX_TEXT + 1)},
        {"ip": "a", "state": "b" * (MAX_TEXT + 1)},
        {"ip": "a", "extendInfo": {"version": "b" * (MAX_TEXT + 1)}},
    ],
)
def test_texts_have_a_limit(entry: dict[str, Any]) -> None:
    assert refused(entry)[0] == "BadAnswer"


def test_texts_at_their_limit() -> None:
    long = "a" * MAX_TEXT
    (member,) = read({"ip": long, "port": 1, "state": long, "extendInfo": {"version": long}})
    assert (member.host, member.state, member.version) == (long, long.upper(), long)


def test_numbers_have_a_limit() -> None:
    assert len(read(*({"ip": "a", "port": 1},) * MAX_MEMBERS)) == MAX_MEMBERS
    assert refused(*({"ip": "a", "port": 1},) * (MAX_MEMBERS + 1))[0] == "BadAnswer"
    groups = {f"g{number}": {"leader": "a:1"} for number in range(MAX_GROUPS)}
    assert len(one(extendInfo=raft(**groups)).leaders or ()) == MAX_GROUPS
    assert refused({"ip": "a", "extendInfo": raft(**groups, more={})})[0] == "BadAnswer"
    peers = [f"p{number}:1" for number in range(MAX_MEMBERS)]
    assert len(one(extendInfo=raft(g={"raftGroupMember": peers})).groups["g"]) == MAX_MEMBERS
    assert refused({"ip": "a", "extendInfo": raft(g={"raftGroupMember": [*peers, "x:1"]})})[0] == "BadAnswer"


@pytest.mark.parametrize("given", [0, 200, None])
def test_codes_of_success(given: int | None) -> None:
    assert len(read({"ip": "a", "port": 1}, code=given)) == 1


def test_codes_of_failure() -> None:
    assert refused(code=500, message="no\n leader") == ("ServerError", "the server answered code 500: no leader")
    assert refused(data=None)[0] == "BadAnswer"
    assert read() == ()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"data": 1}', b"\xff", b'{"data":' + b"[" * 100_000])
def test_what_is_no_list_of_members(body: bytes) -> None:
    with pytest.raises(NacosError) as wrong:
        members(body)
    assert wrong.value.reason == "BadAnswer"


def test_a_body_at_its_limit() -> None:
    body = json.dumps({"data": []}).encode()
    assert members(body + b" " * ((1 << 20) - len(body))) == ()
    with pytest.raises(NacosError, match="larger than 1 MiB") as wrong:
        members(body + b" " * ((1 << 20) + 1 - len(body)))
    assert wrong.value.reason == "BadAnswer"


# ------------------------------------------------------------------ other answers


@pytest.mark.parametrize(
    ("body", "expected"),
    [(b'{"code": 0}', 0), (b'{"code": 409, "x": 1}', 409), (b"{}", None), (b"<", None), (b"\xff", None)],
)
def test_codes(body: bytes, expected: int | None) -> None:
    assert code(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [(b'{"accessToken": "t"}', True), (b'{"accessToken": ""}', False), (b"{}", False), (b"[]", False), (b"no", False)],
)
def test_tokens(body: bytes, expected: bool) -> None:
    assert has_token(body) is expected


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"message": "no  leader"}', "no leader"),
        (b"{}", ""),
        (b"caused:\n an error", "caused: an error"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b" " * 200 + b"late", "late"),
        (b" " * 640 + b"too late", ""),
    ],
)
def test_messages_of_errors(body: bytes, text: str) -> None:
    assert error_message(body) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, ""),
        (" a\x00b\tc\n", "a b c"),
        ("x" * 160, "x" * 160),
        ("x" * 161, "x" * 160 + "…"),
    ],
)
def test_an_excerpt_is_one_short_line(text: str | None, line: str) -> None:
    assert excerpt(text) == line


def test_hosts_and_ports() -> None:
    assert [join("a", 1), join("::1", "2")] == ["a:1", "[::1]:2"]
    assert [clean_host(" [FD00::1] "), clean_host("A.b.")] == ["fd00::1", "a.b"]
    assert str(NacosError("Gone", "text")) == "Gone: text"
    member = Member(host="a", groups={"g": frozenset({"x:1"}), "h": frozenset({"y:1"})})
    assert (member.address, member.raft_address, member.peers) == ("a:8848", "a:7848", {"x:1", "y:1"})
    assert Member(host="a").peers == frozenset()
