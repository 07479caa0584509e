"""The console's files: small, whole, and nothing in them that the policy or a stranger could trip over."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tests.service.desk import a_desk

pytestmark = pytest.mark.spec("N-23")

FILES = {
    entry.name: entry.read_text(encoding="utf-8") for entry in files("konverge.service").joinpath("static").iterdir()
}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}


async def test_every_file_is_served_as_what_it_is_and_not_sent_twice() -> None:
    types = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    async with a_desk() as desk:
        assert (await desk.send("GET", "/", token="")).body.decode() == FILES["index.html"]
        for name, text in FILES.items():
            answer = await desk.send("GET", f"/static/{name}", token="")
            assert (answer.status, answer.body.decode()) == (200, text)
            assert answer.headers.get("content-type").startswith(types[name.rpartition(".")[2]])
            again = await desk.send("GET", f"/static/{name}", token="", if_none_match=answer.headers.get("etag"))
            assert (again.status, again.body) == (304, b"")


def test_every_file_that_a_page_names_exists() -> None:
    for name, text in FILES.items():
        for named in re.findall(r"/static/([\w.]+)", text):
            assert named in FILES, f"{name} names {named}"


def test_nothing_comes_from_a_foreign_host_and_nothing_is_inline() -> None:
    for name, text in FILES.items():
        plain = text.replace('xmlns="http://www.w3.org/2000/svg"', "")  # a name, not an address
        assert re.findall(r"(?:https?:)?//[a-z][\w.-]+\.\w+", plain) == [], name
    page = FILES["index.html"]
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []


def test_texts_never_become_markup() -> None:
    risky = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|localStorage|cookie"
    )
    for name, text in SCRIPTS.items():
        assert re.findall(risky, text) == [], name


def test_the_console_is_small() -> None:
    assert sum(len(text.encode()) for text in FILES.values()) < 60_000
