"""Links that sign in once."""

from __future__ import annotations

import json

import pytest

from konverge import clock
from konverge.service.problems import Problem
from konverge.service.sign_in import MOST, VALID, SignIn
from konverge.wire.message import Headers, Request, Response

pytestmark = pytest.mark.spec("N-22")


def ask(sign_in: SignIn, token: str = "", method: str = "POST") -> Response:
    fields = {"authorization": f"Bearer {token}"} if token else {}
    return sign_in.answer(Request(method, "/sign-in/codes", Headers.of(fields)))


def test_a_code_gives_the_token_once() -> None:
    sign_in = SignIn()
    code = sign_in.code("secret", seconds=None)
    assert sign_in.exchange(code) == "secret"
    with pytest.raises(Problem) as refused:
        sign_in.exchange(code)
    assert refused.value.details.status == 403


def test_who_has_a_token_gets_a_code_for_that_token_and_no_other() -> None:
    sign_in = SignIn()
    made = ask(sign_in, "mine")
    assert made.status == 201
    code = json.loads(made.body)["code"]
    assert code != "mine"
    assert sign_in.exchange(code) == "mine"
    for token, method, status in (("", "POST", 401), ("mine", "GET", 405)):
        with pytest.raises(Problem) as refused:
            ask(sign_in, token, method)
        assert refused.value.details.status == status


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


@pytest.mark.parametrize("code", ["", "never", "\N{SNOWMAN}"])
def test_bad_codes_are_refused(code: str) -> None:
    sign_in = SignIn()
    sign_in.code("secret")
    with pytest.raises(Problem):
        sign_in.exchange(code)
