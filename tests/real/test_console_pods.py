"""Logs and a terminal of a pod that is a real process, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.office import in_front_of
from tests.real.browser import Page, a_browser, program
from tests.real.console_pages import (
    console_errors,
    fill,
    press_button,
    shows,
    signed_in,
    violations,
    visit,
)
from tests.sim.processes.support import is_running, process_cluster, script, until

pytestmark = [pytest.mark.spec("C-22"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

TALKS = """
import sys, time
print("<img src=x onerror=document.title='owned'> \\x1b[31mred\\x1b[0m", flush=True)
number = 0
while True:
    number += 1
    print("line", number, flush=True)
    time.sleep(0.2)
"""
POD = "#/o/-/v1/pods/default/talks"
SCREEN = "document.querySelector('.terminal').shadowRoot?.querySelector('.xterm-rows')?.innerText"


@pytest.fixture(autouse=True)
def _browser_is_there() -> None:
    program()


async def keys(page: Page, line: str) -> None:
    """Type a line key by key, as terminals want it, and Enter."""
    for character in line:
        await page.do("Input.dispatchKeyEvent", type="keyDown", key=character, text=character)
        await page.do("Input.dispatchKeyEvent", type="keyUp", key=character)
    await page.press("Enter")


async def test_a_log_is_followed_and_searched_and_a_terminal_answers(tmp_path: Path) -> None:
    async with (
        process_cluster() as cluster,
        in_front_of(cluster.server, cluster.client) as office,
        office.console.serving() as (host, port),
        a_browser(tmp_path) as browser,
    ):
        await cluster.client.create(script("talks", TALKS))
        await until(cluster.client, "talks", is_running)
        page = await signed_in(browser, f"http://{host}:{port}", office.server.token)
        await visit(page, f"{POD}?tab=logs", shows("line 3", ".log"))
        log = await page.text(".log")
        assert "<img src=x onerror=document.title='owned'> red" in log  # a text, and without the terminal's colours
        assert await page.run("document.querySelectorAll('.log img').length") == 0
        await page.until(shows("line 9", ".log"))  # followed
        assert await violations(page) == []
        await fill(page, "Search in the log", "onerror")
        await page.until(shows("1 lines"))
        await visit(page, f"{POD}?tab=terminal", "document.querySelector('.terminal-tab')")
        await page.run("document.querySelector('main').focus()")
        await fill(page, "Command", "/bin/sh")
        await press_button(page, "Connect")
        await page.until("Boolean(document.querySelector('.terminal[data-open=true]'))")
        await keys(page, "echo $((6 * 7))-answer")
        await page.until(f"{SCREEN}?.includes('42-answer')")
        assert await violations(page) == []
        await keys(page, "exit 3")
        await page.until("Boolean(document.querySelector('.terminal[data-open=false]'))")
        assert "owned" not in await page.run("document.title")
        assert console_errors(browser) == []
