"""The console of `konverge up`: it listens before it is made."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from konverge.cli.up_console import Opening, Shown, console_of
from konverge.console import Page
from konverge.runtime import Manager
from konverge.service.sign_in import SignIn
from konverge.sim import Cluster
from konverge.wire.message import Headers, Request

pytestmark = [pytest.mark.blocking, pytest.mark.spec("C-43")]


def shown_of(cluster: Cluster) -> Shown:
    return Shown(cluster, Manager(cluster.client, name="konverge"), (), "https://127.0.0.1:1", "here", 0)


def asked(path: str = "/") -> Request:
    return Request("GET", path, Headers.of({"host": "127.0.0.1"}), b"")


async def test_requests_at_the_same_time_make_it_once_and_pages_from_before_are_shown() -> None:
    async with Cluster(nodes=0) as cluster:
        opening = Opening(shown_of(cluster), SignIn())
        opening.show_pages(
            [Page(name="early", title="Early", api_version="a.dev/v1", kind="Early", resource="earlies")]
        )
        assert opening._parts is None
        answers = await asyncio.gather(*(opening.handle(asked()) for _ in range(3)), opening.open())
        assert [answer.status for answer in answers if answer is not None] == [200, 200, 200]
        parts = opening._parts
        assert parts is not None
        assert "early" in {page.name for page in parts.console.pages}
        opening.show_pages([])
        assert "early" not in {page.name for page in parts.console.pages}
        await opening.open()
        assert opening._parts is parts
        await opening.close()
        assert "konverge.console.load" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_one_that_nobody_asked_for_ends_unmade() -> None:
    async with Cluster(nodes=0) as cluster:
        opening = Opening(shown_of(cluster), SignIn())
        await opening.close()
        assert opening._parts is None


@pytest.mark.parametrize("wanted", [True, False])
async def test_it_has_an_address_and_a_file_for_others_before_it_is_made(wanted: bool, tmp_path: Path) -> None:
    async with Cluster(nodes=0) as cluster, console_of(shown_of(cluster), tmp_path, wanted) as places:
        await places.open() if not wanted else None
        assert bool(places.url) == bool(places.link) == wanted
        assert list(tmp_path.iterdir()) == ([tmp_path / "console.token"] if wanted else [])
        if wanted:
            assert stat.S_IMODE((tmp_path / "console.token").stat().st_mode) == 0o600
            reader, writer = await asyncio.open_connection("127.0.0.1", int(places.url.rpartition(":")[2]))
            writer.write(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
