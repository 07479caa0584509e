"""The HTML report of a check in a real browser: what it shows, by keyboard, and that nothing of others ever runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.check.report import html
from tests.check.report.outcomes import PASSWORD, outcome
from tests.real.browser import Page, a_browser, program
from tests.real.console_pages import addresses, console_errors

pytestmark = [pytest.mark.spec("K-53"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

SHOWN = "document.querySelector('#shown').innerText"


async def test_a_finding_is_drawn_and_can_be_read_by_keyboard(tmp_path: Path) -> None:
    program()  # before anything else: skips where there is none
    file = tmp_path / "index.html"
    file.write_text(html.page(outcome(), ["out/finding-1.json"], "1.0"), encoding="utf-8")
    async with a_browser(tmp_path / "profile") as browser:
        page = await Page.open(browser)
        await page.loaded(file.as_uri(), "document.querySelector('#shown svg')")
        text = str(await page.run(SHOWN))
        assert "konverge check --replay out/finding-1.json" in text
        assert "</script><img src=x" in text  # a name of others, as text
        assert PASSWORD not in str(await page.run("document.documentElement.innerHTML"))

        await page.tab_to("element.matches('svg [tabindex]')")
        await page.press("Enter")
        assert await page.run("document.querySelectorAll('svg .chosen').length") == 1

        assert await page.run("document.images.length") == 0
        assert await page.run("document.title") != "run"
        assert await page.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert console_errors(browser) == []
        assert addresses(browser) <= {""}  # the file itself, and no host
