"""Links that sign in once."""

from __future__ import annotations

import json

import pytest

from konverge import clock
from konverge.service import Service
from konverge.service.problems import Problem
from konverge.service.sign_in import MOST, VALID, SignIn
from konverge.wire.message import Headers, Request, Response
from tests.service.desk import a_desk
from tests.service.test_app import Broken

pytestmark = pytest.mark.spec("N-22")


async def post(service: Service, path: str, body: bytes = b"", token: str = "") -> Response:
    fields = {"authorization": f"Bearer {token}"} if token else {}
    return await service.handle(Request("POST", path, Headers.of(fields), body))


async def test_a_code_gives_the_token_once() -> None:
    sign_in = SignIn()
    service = Service(Broken(), sign_in=sign_in)
    body = json.dumps({"code": sign_in.code("secret", seconds=None)}).encode()
    answer = await post(service, "/sign-in", body)
    assert (answer.status, json.loads(answer.body)) == (200, {"token": "secret"})
    assert answer.headers.get("cache-control") == "no-store"
    assert (await post(service, "/sign-in", body)).status == 403


async def test_who_has_a_token_gets_a_code_for_that_token_and_no_other() -> None:
    service = Service(Broken(), sign_in=SignIn())
    made = await post(service, "/sign-in/codes", token="mine")
    assert made.status == 201
    code = json.loads(made.body)["code"]
    assert code != "mine"
    answer = await post(service, "/sign-in", json.dumps({"code": code}).encode())
    assert json.loads(answer.body) == {"token": "mine"}
    assert (await post(service, "/sign-in/codes")).status == 401


async def test_a_code_expires_unless_it_is_that_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in = SignIn()
    asked, first = sign_in.code("asked"), sign_in.code("first", seconds=None)
    later = clock.now() + VALID + 1
    monkeypatch.setattr(clock, "now", lambda: later)
    with pytest.raises(Problem):
        sign_in.exchange(asked)
    assert sign_in.exchange(first) == "first"


async def test_codes_are_bounded_and_the_oldest_go() -> None:
    sign_in = SignIn()
    codes = [sign_in.code(str(number)) for number in range(MOST + 1)]
    with pytest.raises(Problem):
        sign_in.exchange(codes[0])
    assert sign_in.exchange(codes[1]) == "1"
    assert sign_in.exchange(codes[-1]) == str(MOST)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"code": 7}', b"\xff", b'{"code": "\xc3\xa4"}'])
async def test_bad_codes_are_refused(body: bytes) -> None:
    assert (await post(Service(Broken(), sign_in=SignIn()), "/sign-in", body)).status in (400, 403)


async def test_get_is_not_a_way_in_and_without_links_there_is_no_such_path() -> None:
    with_links, without = Service(Broken(), sign_in=SignIn()), Service(Broken())
    answer = await with_links.handle(Request("GET", "/sign-in"))
    assert (answer.status, answer.headers.get("allow")) == (405, "POST")
    assert (await post(without, "/sign-in", b'{"code": "x"}')).status == 405
    async with a_desk() as desk:
        assert (await desk.send("POST", "/sign-in/codes")).status == 405
