"""The front end's files: a fixed table, a strict policy, nothing from other hosts."""

from __future__ import annotations

import gzip

import pytest

from konverge.console import static_files
from konverge.wire.message import Headers, Request, Response
from tests.console.office import API, an_office

pytestmark = pytest.mark.spec("C-06")


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        "/index.html": ("text/html; charset=utf-8", b"<!doctype html>", '"1"'),
        "/assets/app.js": ("text/javascript; charset=utf-8", b"go()", '"2"'),
    }
    monkeypatch.setattr(static_files, "table", lambda: table)


async def test_pages_come_without_a_session_and_under_a_strict_policy() -> None:
    async with an_office() as office:
        stranger = office.another()
        for path in ("/", "/index.html", "/assets/app.js", "/?x=1"):
            answer = await stranger.send("GET", path)
            assert answer.status == 200, path
            policy = dict(
                part.strip().split(" ", 1) for part in answer.headers.get("content-security-policy").split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
            assert answer.headers.get("x-content-type-options") == "nosniff"


async def test_files_are_revalidated_each_time() -> None:
    async with an_office() as office:
        for path in ("/", "/assets/app.js"):
            page = await office.send("GET", path)
            assert page.headers.get("cache-control") == "no-cache"
            again = await office.send("GET", path, if_none_match=page.headers.get("etag"))
            assert (again.status, again.body) == (304, b"")


@pytest.mark.spec("C-35")
async def test_files_are_compressed_for_those_who_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    script = b"go();" * 1000
    monkeypatch.setattr(static_files, "table", lambda: {"/app.js": ("text/javascript", script, '"2"')})
    async with an_office() as office:
        for accepted in ("gzip, deflate, br", "br;q=1.0, GZIP; q=0.5"):
            packed = await office.send("GET", "/app.js", accept_encoding=accepted)
            assert packed.headers.get("content-encoding") == "gzip"
            assert gzip.decompress(packed.body) == script
            assert len(packed.body) < len(script) / 10
        for accepted in ("", "br", "gzip;q=0, br"):
            plain = await office.send("GET", "/app.js", accept_encoding=accepted)
            assert "content-encoding" not in plain.headers
            assert plain.body == script
        assert plain.headers.get("vary") == packed.headers.get("vary") == "Accept-Encoding"
        assert plain.headers.get("etag") != packed.headers.get("etag")  # other bytes
        again = await office.send("GET", "/app.js", accept_encoding="gzip", if_none_match=packed.headers.get("etag"))
        assert (again.status, again.body) == (304, b"")


async def test_no_path_leads_to_the_disk() -> None:
    async with an_office() as office:
        for path in ("/../app.py", "/assets/../../app.py", "/static/index.html", "/etc/passwd", "/assets/"):
            assert (await office.send("GET", path)).status == 404, path


async def test_every_answer_restricts_what_browsers_do_with_it() -> None:
    async with an_office() as office:
        for path in ("/nowhere", f"{API}/nothing", f"{API}/session", "/k8s/api/v1/pods", "/k8s/api/v1/pods/none"):
            headers = (await office.send("GET", path)).headers
            assert "sandbox" in headers.get("content-security-policy"), path
            assert headers.get("x-frame-options") == "DENY"
            assert headers.get("referrer-policy") == "no-referrer"
            assert headers.get("cross-origin-resource-policy") == "same-origin"
            assert "access-control-allow-origin" not in headers
            assert headers.get("cache-control") == "no-store" or path.startswith("/k8s")


async def test_methods_and_paths_that_are_not_there_are_said() -> None:
    async with an_office() as office:
        assert (await office.send("POST", f"{API}/tree", {})).status == 405
        assert (await office.send("PUT", "/", {})).status == 404


async def test_what_the_console_does_not_know_the_service_answers() -> None:
    asked: list[str] = []

    async def service(request: Request) -> Response:
        asked.append(request.target)
        return Response(200, Headers.of({"content-security-policy": "default-src 'self'"}))

    async with an_office(service=service) as office:
        for path in ("/api/v1/instances", "/docs", "/healthz"):
            answer = await office.send("GET", path)
            assert answer.headers.get_all("content-security-policy") == ["default-src 'self'"]
        await office.send("GET", "/")
        await office.send("GET", f"{API}/nothing")
    assert asked == ["/api/v1/instances", "/docs", "/healthz"]
