"""The client of content and servers that refuse, fail, lack an API or answer nonsense: no cluster, no real server."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos.content.api import ConfigKey, ContentApi, Login, Tokens, digest
from konverge.operators.nacos.content.place import secret_value
from konverge.operators.nacos.server import HttpNacosServers, Identity, NacosError, answers
from konverge.wire import ConnectionLost, Request, Response

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-31")]
KEY = ConfigKey("public", "DEFAULT_GROUP", "app.yaml")
IN_DEV = ConfigKey("dev", "DEFAULT_GROUP", "app.yaml")
V1, V3 = "/nacos/v1/cs/configs", "/nacos/v3/admin/cs/config"
LOGIN = Login("nacos", "word")


def good(data: Any = True) -> bytes:
    return msgspec.json.encode({"code": 0, "message": "success", "data": data})


class Servers:
    """Answers by the path, one after the other; the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = {}
        self.requests: list[Request] = []
        self.asked: list[str] = []
        """Addresses."""
        self.away: set[str] = set()

    def say(self, path: str, *answers: Any) -> None:
        """A status, a body (of a good answer), or both."""
        made = [(a, b"") if isinstance(a, int) else (200, a) if isinstance(a, bytes) else a for a in answers]
        self.answers[path] = [Response(status, body=body) for status, body in made]

    def connect(self, address: str, port: int) -> Any:
        self.asked.append(address)
        return self

    async def send(self, request: Request) -> Response:
        if self.asked[-1] in self.away:
            raise ConnectionLost("reset by peer")
        self.requests.append(request)
        left = self.answers.get(urlsplit(request.target).path, [Response(404, body=b"<html>")])
        return left.pop(0) if len(left) > 1 else left[0]

    async def aclose(self) -> None: ...

    def api(self, *addresses: str, **options: Any) -> ContentApi:
        servers = HttpNacosServers(self.connect)
        given = {"uid": "1", "third": False, "tokens": Tokens(), **options}
        return ContentApi(servers=servers, addresses=addresses or ("10.0.0.1",), **given)

    @property
    def targets(self) -> list[str]:
        return [f"{request.method} {urlsplit(request.target).path}" for request in self.requests]


async def refused(awaitable: Any) -> tuple[str, str]:
    with pytest.raises(NacosError) as caught:
        await awaitable
    return caught.value.reason, caught.value.message


# ------------------------------------------------------------------ which server, which API


async def test_a_server_that_cannot_be_reached_is_passed_over() -> None:
    servers = Servers()
    servers.say(V1, b"true")
    servers.away = {"10.0.0.1"}
    await servers.api("10.0.0.1", "10.0.0.2", "10.0.0.3").publish(KEY, "a", "text", "")
    assert servers.asked == ["10.0.0.1", "10.0.0.2"]
    servers.away = {"10.0.0.1", "10.0.0.2"}
    reason, message = await refused(servers.api("10.0.0.1", "10.0.0.2").delete_config(KEY))
    assert (reason, "10.0.0.2" in message) == ("Unreachable", True), "the last one is named"
    assert await refused(ContentApi(
        servers=HttpNacosServers(servers.connect), uid="", addresses=(), third=False, tokens=Tokens()
    ).namespaces()) == ("Unreachable", "no server is ready")  # fmt: skip


async def test_what_a_server_refuses_is_not_asked_of_the_next() -> None:
    servers = Servers()
    servers.say(V1, (500, b"no space left"))
    error = await refused(servers.api("10.0.0.1", "10.0.0.2").publish(KEY, "a", "text", ""))
    assert error == ("ServerError", "10.0.0.1: HTTP 500 'no space left'")
    assert servers.asked == ["10.0.0.1"]


@pytest.mark.parametrize("gone", [405, 410, 501, 404])
@pytest.mark.parametrize("third", [False, True])
async def test_the_other_api_is_asked_where_one_is_gone(gone: int, third: bool) -> None:
    first, second = (V3, V1) if third else (V1, V3)
    servers = Servers()
    servers.say(first, gone)
    servers.say(second, good() if second == V3 else b"true")
    await servers.api(third=third).publish(IN_DEV, "ä b", "text", "for all")
    assert servers.targets == [f"POST {first}", f"POST {second}"]
    forms = [parse_qs((request.body or b"").decode()) for request in servers.requests]
    old = {"dataId": ["app.yaml"], "group": ["DEFAULT_GROUP"], "tenant": ["dev"]}
    new = {"dataId": ["app.yaml"], "groupName": ["DEFAULT_GROUP"], "namespaceId": ["dev"]}
    written = {"content": ["ä b"], "type": ["text"], "desc": ["for all"]}
    assert forms == [{**(new if third else old), **written}, {**(old if third else new), **written}]
    servers.say(second, gone)
    assert await refused(servers.api(third=third).publish(KEY, "a", "text", "")) == (
        "Gone",
        f"the server has no {V1} or {V3} (HTTP {gone})",
    )


@pytest.mark.parametrize("body", [good(None).replace(b"0", b"20004"), b"config data not exist"])
async def test_a_404_about_the_content_is_an_answer(body: bytes) -> None:
    servers = Servers()
    servers.say(V3, (404, body))
    if b"20004" in body:
        assert await servers.api(third=True).config(KEY) is None
    else:
        assert (await refused(servers.api(third=True).config(KEY)))[0] == "BadAnswer"
    assert servers.targets == [f"GET {V3}"], "the other API is not asked"


# ------------------------------------------------------------------ signing in


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_leads_to_a_sign_in_and_the_token_is_kept(status: int) -> None:
    servers = Servers()
    servers.say(V1, status, b"true")
    servers.say("/nacos/v1/auth/login", b'{"accessToken": "t1"}')
    tokens = Tokens()
    api = servers.api(login=LOGIN, tokens=tokens)
    await api.publish(KEY, "a", "text", "")
    assert servers.targets == [f"POST {V1}", "POST /nacos/v1/auth/login", f"POST {V1}"]
    login = servers.requests[1]
    assert parse_qs((login.body or b"").decode()) == {"username": ["nacos"], "password": ["word"]}
    assert tokens.get("1") == "t1"
    for request, token in zip(servers.requests, ("", "", "t1"), strict=True):
        assert request.headers.get("accessToken", "") == token
        assert request.headers.get("authorization", "") == (f"Bearer {token}" if token else "")
    await api.publish(KEY, "b", "text", "")
    assert servers.targets[3:] == [f"POST {V1}"], "the token is known"


@pytest.mark.parametrize(
    "answer",
    [(403, b"unknown user!"), (500, b'{"accessToken": "t"}'), (200, b"{}"), (200, b"not json"), (200, b"[1]")],
    ids=["refused", "failed", "without a token", "nonsense", "another form"],
)
async def test_a_sign_in_that_fails_leaves_the_refusal(answer: tuple[int, bytes]) -> None:
    servers = Servers()
    servers.say(V1, (403, b'{"code": 403, "message": "authorization failed!"}'))
    servers.say("/nacos/v1/auth/login", answer)
    tokens = Tokens()
    error = await refused(servers.api(login=LOGIN, tokens=tokens).publish(KEY, "a", "text", ""))
    assert error == (
        "Forbidden",
        "10.0.0.1 refused (HTTP 403 'authorization failed!'); "
        "its administrator must be in adminCredentialsSecretRef, with a plain password",
    )
    assert servers.targets == [f"POST {V1}", "POST /nacos/v1/auth/login"]
    assert tokens.get("1") == ""


async def test_without_an_administrator_a_refusal_is_one() -> None:
    servers = Servers()
    servers.say(V1, (401, b"who are you"))
    api = servers.api(identity=Identity("key", "value"))
    assert (await refused(api.delete_config(KEY)))[0] == "Forbidden"
    assert servers.targets == [f"DELETE {V1}"]
    assert servers.requests[0].headers.get("key") == "value"


def test_tokens_are_kept_for_the_latest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tokens, "LIMIT", 2)
    tokens = Tokens()
    for uid in "abac":
        tokens.keep(uid, f"token of {uid}")
    assert [tokens.get(uid) for uid in "abc"] == ["token of a", "", "token of c"]
    tokens.keep("a", "another")
    assert [tokens.get(uid) for uid in "ac"] == ["another", "token of c"]


# ------------------------------------------------------------------ what answers mean


@pytest.mark.parametrize("body", [b"true", b" true\n", good(True), good("an id"), good().replace(b"0", b"200", 1)])
async def test_a_write_that_worked(body: bytes) -> None:
    servers = Servers()
    servers.say(V1, body)
    await servers.api().publish(KEY, "a", "text", "")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"false", "false"),
        (b'{"code": 0, "message": "success", "data": false}', "success"),
        (b'{"code": 22000, "message": "no\\n such namespace", "data": true}', "no such namespace"),
        (b'{"code": 500, "data": "text"}', "no reason given"),
    ],
)
async def test_a_write_that_did_not(body: bytes, why: str) -> None:
    servers = Servers()
    servers.say(V1, body)
    message = f"configuration public/DEFAULT_GROUP/app.yaml was not published: {why}"
    assert await refused(servers.api().publish(KEY, "a", "text", "")) == ("ServerError", message)


async def test_what_a_server_says_about_a_password_is_not_repeated() -> None:
    servers = Servers()
    servers.say("/nacos/v1/auth/users", b'{"code": 500, "message": "hidden is too short"}', (500, b"hidden"))
    api = servers.api()
    assert await refused(api.create_user("ann", "hidden")) == (
        "ServerError",
        "user ann was not created: no reason given",
    )
    assert await refused(api.set_password("ann", "hidden")) == ("ServerError", "10.0.0.1: HTTP 500 ''")


@pytest.mark.parametrize(
    "body",
    [b"", b"  ", b"null", b'{"dataId": "a", "content": null}', b'{"code": 20004, "message": "no such"}'],
)
async def test_a_configuration_that_is_not_there(body: bytes) -> None:
    servers = Servers()
    servers.say(V1, body)
    assert await servers.api().config(KEY) is None
    assert parse_qs(urlsplit(servers.requests[0].target).query) == {
        "dataId": ["app.yaml"],
        "group": ["DEFAULT_GROUP"],
        "show": ["all"],
    }


async def test_nonsense_is_no_absence() -> None:
    servers = Servers()
    servers.say(V1, b"<html>", b"[1, 2]", b'"' + b"x" * answers.MAX_BODY + b'"')
    assert (await refused(servers.api().config(KEY)))[0] == "BadAnswer"
    assert "is not a configuration" in (await refused(servers.api().config(KEY)))[1]
    assert "larger than 1 MiB" in (await refused(servers.api().config(KEY)))[1]


async def test_the_namespace_without_an_id_is_the_public_one() -> None:
    servers = Servers()
    spaces = [{"namespace": "", "namespaceShowName": "public"}, {"namespace": "dev", "configCount": 3}]
    servers.say("/nacos/v1/console/namespaces", good(spaces))
    listed = await servers.api().namespaces()
    assert {space: (n.namespace_show_name, n.config_count) for space, n in listed.items()} == {
        "public": ("public", 0),
        "dev": ("", 3),
    }


async def test_of_the_history_only_what_may_be_it_is_read() -> None:
    servers = Servers()
    wanted = digest("wanted")
    rows = [{"id": "1", "md5": digest("other")}, {"id": 2, "md5": ""}, {"id": "3", "md5": wanted}, {"id": "4"}]
    servers.say("/nacos/v3/admin/cs/history/list", good({"pageItems": rows}))
    stored = good({"dataId": "a", "content": "changed"}), good(None), good({"dataId": "a", "content": "wanted"})
    servers.say("/nacos/v3/admin/cs/history", *stored)
    assert await servers.api(third=True).earlier_content(KEY, wanted) == "wanted"
    asked = [parse_qs(urlsplit(request.target).query) for request in servers.requests]
    assert [form["nid"] for form in asked[1:]] == [["2"], ["3"], ["4"]]
    assert (asked[0]["pageNo"], asked[0]["pageSize"], asked[0]["search"]) == (["1"], ["100"], ["accurate"])


async def test_rows_of_others_are_left_out() -> None:
    """Servers before 2.0.4 list everything, whatever is asked for."""
    servers = Servers()
    rows = [
        {"username": "ann", "role": "readers", "resource": "a", "action": "r"},
        {"username": "bob", "role": "writers", "resource": "b", "action": "w"},
    ]
    for what in ("users", "roles", "permissions"):
        servers.say(f"/nacos/v1/auth/{what}", msgspec.json.encode({"pageItems": rows}))
    api = servers.api()
    assert [await api.has_user(name) for name in ("ann", "an")] == [True, False]
    assert [await api.has_role(role) for role in ("readers", "read")] == [True, False]
    assert [await api.roles_of(name) for name in ("ann", "an")] == [{"readers"}, set()]
    assert [await api.permissions_of(role) for role in ("writers", "write")] == [{("b", "w")}, set()]
    query = parse_qs(urlsplit(servers.requests[0].target).query)
    assert query == {"search": ["accurate"], "pageNo": ["1"], "pageSize": ["500"], "username": ["ann"]}
    servers.say("/nacos/v1/auth/users", b'{"pageItems": null}')
    assert not await api.has_user("ann")
    servers.say("/nacos/v1/auth/users", b"{}")
    assert await refused(api.has_user("ann")) != ("", ""), "a list that is not there is no empty one"


@pytest.mark.parametrize(
    ("value", "read"),
    [(base64.b64encode(b"word").decode(), "word"), ("", ""), ("*", ""), (base64.b64encode(b"\xff").decode(), "")],
)
def test_what_a_secret_says(value: str, read: str) -> None:
    secret = Secret(metadata=ObjectMeta(name="a"), data={"key": value})
    assert secret_value(secret, "key") == read
    assert secret_value(secret, "other") == ""
    assert secret_value(None, "key") == ""
