"""Who may ask the console: sessions, links, tokens, and pages of other origins."""

from __future__ import annotations

import pytest

from konverge import clock
from konverge.client import Static
from konverge.console import Console, Identity, Owner
from konverge.console.sessions import LIFE, MOST, Sessions
from konverge.service.problems import Problem
from konverge.wire.in_process import Direct
from konverge.wire.message import Headers, Request
from tests.console.office import API, HOST, Browser, an_office, decoded

pytestmark = pytest.mark.spec("C-01")

PODS = "/k8s/api/v1/namespaces/default/pods"
PATHS = (f"{API}/session", f"{API}/overview", f"{API}/tree?kind=v1/Pod&name=a", f"{API}/why", f"{API}/pages", PODS)


async def test_a_token_begins_a_session_whose_cookie_scripts_cannot_read() -> None:
    async with an_office() as office:
        other = office.another()
        answer = await other.sign_in(token=office.server.token)
        assert (answer.status, decoded(answer)["user"]) == (200, "admin")
        cookie = answer.headers.get("set-cookie")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert office.server.token not in cookie
        assert office.server.token not in answer.body.decode()
        assert (await other.send("GET", PODS)).status == 200


async def test_without_a_session_every_path_is_refused_in_one_form() -> None:
    async with an_office() as office:
        stranger = office.another()
        for path in PATHS:
            answer = await stranger.send("GET", path)
            assert answer.status == 401, path
            said = decoded(answer)
            assert (said["reason"], said["code"], bool(said["error"])) == ("Unauthorized", 401, True)
        assert (await stranger.send("GET", PODS, cookie=f"{office.console.sessions.cookie}=guess")).status == 401


async def test_a_token_that_the_cluster_does_not_accept_begins_nothing() -> None:
    async with an_office() as office:
        before = len(office.console.sessions)
        for token in ("wrong", "", "two words", "line\nbreak", "\N{SNOWMAN}"):
            answer = await office.another().sign_in(token=token)
            assert answer.status == 401, token
            assert "set-cookie" not in answer.headers
        assert len(office.console.sessions) == before


async def test_a_link_signs_in_once() -> None:
    async with an_office() as office:
        code = office.links.code(office.server.token)
        assert (await office.another().sign_in(code=code)).status == 200
        assert (await office.another().sign_in(code=code)).status == 403
        assert (await office.another().sign_in(code="never")).status == 403


async def test_signing_out_ends_the_session_on_the_server() -> None:
    async with an_office() as office:
        answer = await office.send("DELETE", f"{API}/session")
        assert "Max-Age=0" in answer.headers.get("set-cookie")
        assert (await office.send("GET", PODS)).status == 401  # the same cookie, sent again


async def test_a_session_ends_when_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_office() as office:
        present = clock.monotonic()
        monkeypatch.setattr(clock, "monotonic", lambda: present + LIFE - 1)
        assert (await office.send("GET", f"{API}/pages")).status == 200
        monkeypatch.setattr(clock, "monotonic", lambda: present + 2 * LIFE - 2)
        assert (await office.send("GET", f"{API}/pages")).status == 200
        monkeypatch.setattr(clock, "monotonic", lambda: present + 3 * LIFE)
        assert (await office.send("GET", f"{API}/pages")).status == 401


async def test_sessions_are_bounded_and_the_longest_unused_goes() -> None:
    async with an_office() as office:
        sessions = Sessions(office.server.transport)
        made = [await sessions.begin(office.server.token) for _ in range(2)]

        def has(cookie: str) -> bool:
            try:
                sessions.find(Request("GET", "/", Headers.of({"cookie": cookie})))
            except Problem:
                return False
            return True

        cookies = [sessions.set_cookie(session).partition(";")[0] for session in made]
        assert has(cookies[0])
        for _ in range(MOST - 1):
            await sessions.begin(office.server.token)
        assert (has(cookies[0]), has(cookies[1]), len(sessions)) == (True, False, MOST)


async def test_a_program_sends_its_token_and_needs_no_cookie_or_header() -> None:
    async with an_office() as office:
        token = await office.account("reader", "list")
        fields = Headers.of({"authorization": f"Bearer {token}"})
        direct = Direct(office.console.handle)
        assert (await direct.send(Request("GET", PODS, fields))).status == 200
        body = b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}'
        refused = await direct.send(Request("POST", PODS, fields, body))
        assert (refused.status, decoded(refused)["reason"]) == (403, "Forbidden")
        assert "reader" in decoded(refused)["message"]  # the cluster's own answer: it knows who asked


async def test_the_owner_of_a_kubeconfig_signs_in_by_a_key_that_is_no_token_of_the_cluster() -> None:
    async with an_office() as office:
        owner = Owner(Identity(office.server.transport, Static.bearer(office.server.token)))
        browser = Browser(Console(office.server.transport, owner=owner))
        assert (await browser.sign_in(token="guess")).status == 401
        assert decoded(await browser.sign_in(token=owner.key))["user"] == "admin"
        assert (await browser.send("GET", PODS)).status == 200
        assert (await office.another().sign_in(token=owner.key)).status == 401
        assert owner.key not in repr(owner)


@pytest.mark.spec("C-02")
@pytest.mark.parametrize(
    "foreign",
    [
        {"origin": "http://evil.example.com"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
async def test_pages_of_other_origins_get_nothing_although_browsers_send_the_cookie(foreign: dict[str, str]) -> None:
    async with an_office() as office:
        for path in PATHS:
            answer = await office.send("GET", path, **foreign)
            assert (answer.status, decoded(answer)["reason"]) == (403, "Forbidden"), path
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.spec("C-02")
async def test_a_write_needs_the_header_that_other_origins_cannot_send() -> None:
    async with an_office() as office:
        for method, path in (("POST", PODS), ("DELETE", f"{PODS}/a"), ("POST", f"{API}/session")):
            answer = await office.send(method, path, {}, x_konverge_console="", origin="")
            assert answer.status == 403, (method, path)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
        path = "/k8s/api/v1/namespaces/default/configmaps"
        assert (await office.send("POST", path, body, x_konverge_console="")).status == 403
        assert (await office.send("POST", path, body)).status == 201


@pytest.mark.spec("C-02")
async def test_a_name_that_only_leads_to_this_machine_is_refused() -> None:
    async with an_office() as office:
        for host in ("evil.example.com", "evil.example.com:8083", "127.0.0.1.evil.example.com"):
            assert (await office.send("GET", PODS, host=host, origin="")).status == 421
        for host in (HOST, "localhost:1", "[::1]:8083"):
            assert (await office.send("GET", PODS, host=host, origin="")).status == 200
    async with an_office(anywhere=True) as office:
        assert (await office.send("GET", PODS, host="console.example.com")).status == 200


async def test_a_console_that_is_reached_by_https_has_a_cookie_for_https_alone() -> None:
    async with an_office(secure=True) as office:
        cookie = (await office.another().sign_in(token=office.server.token)).headers.get("set-cookie")
        assert cookie.startswith("__Host-")
        assert "; Secure" in cookie


async def test_two_consoles_on_one_machine_do_not_overwrite_each_others_cookie() -> None:
    async with an_office() as one, an_office() as other:
        assert one.cookie.partition("=")[0] != other.cookie.partition("=")[0]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"token": 7}', b"\xff"])
async def test_a_body_that_cannot_be_read_is_refused(body: bytes) -> None:
    async with an_office() as office:
        answer = await office.send("POST", f"{API}/session", body)
        assert answer.status in (400, 401)


async def test_replicas_know_a_session_of_each_other() -> None:
    async with an_office(stateless=True, secure=True) as one:
        other = Browser(Console(one.server.transport, stateless=True, secure=True))
        other.cookie = one.cookie
        assert (await other.send("GET", PODS)).status == 200
        assert decoded(await other.send("GET", f"{API}/session"))["user"] == "admin"
        other.cookie = one.cookie.partition("=")[0] + "=wrong"
        assert (await other.send("GET", PODS)).status == 401
        assert (await other.send("GET", f"{API}/session")).status == 401
        for value in ("", "two words", "a" * 4000):
            other.cookie = f"{one.console.sessions.cookie}={value}"
            assert (await other.send("GET", f"{API}/session")).status == 401
        assert (await other.sign_in(token="a" * 3900)).status in (400, 401)


async def test_a_code_is_made_for_whoever_has_a_token() -> None:
    async with an_office() as office:
        fields = Headers.of({"authorization": f"Bearer {office.server.token}"})
        made = await Direct(office.console.handle).send(Request("POST", "/sign-in/codes", fields))
        assert made.status == 201
        assert (await office.another().sign_in(code=decoded(made)["code"])).status == 200
        assert (await Direct(office.console.handle).send(Request("POST", "/sign-in/codes"))).status == 401
