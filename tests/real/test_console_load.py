"""The plots of the load in a real browser: on their page and on an operator's, with texts that say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.console.operators import PAGES
from tests.real.browser import a_browser, program
from tests.real.console_clusters import busy
from tests.real.console_pages import a_console, console_errors, press_button, shows, signed_in, violations, visit

pytestmark = [pytest.mark.spec("C-28"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

DRAWN = "document.querySelectorAll('.load canvas').length"
TITLES = "[...document.querySelectorAll('.load table')].map((table) => table.getAttribute('aria-label'))"
ROWS = "[...document.querySelectorAll('.load tbody th')].map((cell) => cell.innerText)"


@pytest.fixture(autouse=True)
def _browser_is_there() -> None:
    program()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_the_load_is_drawn_and_said(tmp_path: Path, dark: bool) -> None:
    async with busy() as (office, url), a_browser(tmp_path) as browser:
        page = await signed_in(browser, url, office.server.token, dark=dark, phone=dark)
        await visit(page, "#/load", f"{DRAWN} === 3")
        assert await page.run(TITLES) == [
            "Keys that wait, at most",
            "Requests per second, by verb",
            "Requests per second, by program",
        ]
        assert {"webapp", "create", "konverge"} <= set(await page.run(ROWS))
        assert await violations(page) == []
        assert await page.run("document.documentElement.scrollWidth") <= (360 if dark else 1280)
        await visit(page, "#/p/webapps", f"{DRAWN} === 1")
        assert await page.run(ROWS) == ["webapp"]
        assert await violations(page) == []
        await press_button(page, "中文")
        await page.until(shows("队列中等待的键"))
        assert console_errors(browser) == []


async def test_a_cluster_elsewhere_says_what_it_does_not_know(tmp_path: Path) -> None:
    async with a_console(tmp_path, pages=PAGES) as (office, browser, url):
        page = await signed_in(browser, url, office.server.token)
        await visit(page, "#/load", shows("cannot be seen from here"))
        await page.until(shows("counts no requests"))
        assert await page.run(DRAWN) == 0
        assert await violations(page) == []
        assert console_errors(browser) == []
