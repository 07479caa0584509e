"""Signing in, the overview and the tables of the console, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from tests.real.browser import Page, program
from tests.real.console_pages import (
    SIGN_IN,
    a_console,
    addresses,
    console_errors,
    fill,
    shows,
    signed_in,
    visit,
)

pytestmark = [pytest.mark.spec("C-21"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

MAPS = "#/k/-/v1/configmaps?namespace=default"
ROWS = "[...document.querySelectorAll('.grid-body a')].map((link) => link.innerText)"
LIVE = "document.querySelector('.connection.live')"


@pytest.fixture(autouse=True)
def _browser_is_there() -> None:
    program()


def config_map(name: str, **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default", labels=labels), data={"key": "value"})


@pytest.mark.spec("C-26")
async def test_a_link_signs_in_once_and_leads_to_the_overview(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        link = f"{url}/#sign-in={office.links.code(office.server.token)}"
        page = await Page.open(browser)
        await page.loaded(link, "document.querySelector('.overview')")
        assert "sign-in" not in await page.run("location.href")
        await page.run("document.querySelector('#out').click()")
        await page.until(SIGN_IN)
        other = await Page.open(browser)
        await other.loaded(link, "document.querySelector('[role=alert].problem')")
        assert "was used" in await other.text("[role=alert].problem")


@pytest.mark.spec("C-26")
async def test_a_bad_token_is_refused_and_a_session_that_ends_leads_back_to_its_place(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.admin.create(config_map("settings"))
        page = await Page.open(browser)
        await page.loaded(f"{url}/{MAPS}", SIGN_IN)
        await page.tab_to("element.id === 'token'")
        await page.type("wrong")
        await page.press("Enter")
        await page.until("document.querySelector('[role=alert].problem')")
        await page.run("document.querySelector('#token').value = ''")
        await page.tab_to("element.id === 'token'")
        await page.type(office.server.token)
        await page.press("Enter")
        await page.until(shows("settings"))  # the page that was asked for
        for cookie in (await page.do("Network.getAllCookies"))["cookies"]:
            await page.do("Network.deleteCookies", name=cookie["name"], url=url)
        await page.run("document.querySelector('nav a').click()")
        await page.until(SIGN_IN)
        await page.run("document.querySelector('#token').focus()")
        await page.type(office.server.token)
        await page.press("Enter")
        await page.until("document.querySelector('.overview')")
        await page.run("document.querySelector('#out').click()")
        await page.until(SIGN_IN)
        assert await page.run("Object.keys(sessionStorage).length") == 0
        assert office.server.token not in await page.run("JSON.stringify({...localStorage})")
        assert console_errors(browser) == []


async def test_a_table_is_live_and_is_searched_sorted_and_walked_by_keyboard(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        for name in ("alpha", "beta", "gamma"):
            await office.admin.create(config_map(name, tier="a" if name == "alpha" else "b"))
        page = await signed_in(browser, url, office.server.token)
        await visit(page, MAPS, LIVE)
        await page.until(f"({ROWS}).join().includes('alpha,beta,gamma')")
        assert "Data" in await page.text(".grid-head")  # a column of the server's Table
        await office.admin.create(config_map("delta", tier="b"))
        await page.until(f"({ROWS}).includes('delta')")
        await office.admin.delete(ConfigMap, "beta", "default")
        await page.until(f"!({ROWS}).includes('beta')")
        await office.admin.patch(ConfigMap, "gamma", MergePatch({"data": {"more": "1", "most": "2"}}), "default")
        await page.until(
            "document.querySelector('[aria-rowindex] a[data-row]').closest('.grid-body').innerText.match(/gamma\\s+3/)"
        )
        await fill(page, "Search", "ta")
        await page.until(f"({ROWS}).join() === 'delta'")
        assert "search=ta" in await page.run("location.hash")
        await fill(page, "Search", "")
        await page.run(
            "(document.activeElement.value = '', "
            "document.activeElement.dispatchEvent(new Event('input', {bubbles: true})))"
        )
        await fill(page, "Labels", "tier=b")
        await page.press("Enter")
        await page.until(f"({ROWS}).join() === 'delta,gamma'")
        await page.tab_to("element.matches('.sort') && element.innerText.startsWith('Name')")
        await page.press("Enter")
        await page.press("Enter")
        await page.until(f"({ROWS}).join() === 'gamma,delta'")
        await page.tab_to("element.dataset.row === '0'")
        await page.do(
            "Input.dispatchKeyEvent", type="keyDown", key="ArrowDown", code="ArrowDown", windowsVirtualKeyCode=40
        )
        await page.until("document.activeElement.innerText === 'delta'")
        await page.press("Enter")
        await page.until("document.querySelector('h1')?.innerText === 'delta'")
        assert addresses(browser) == {url.removeprefix("http://")}
        assert console_errors(browser) == []


async def test_one_without_the_right_to_list_everything_chooses_a_namespace(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.admin.create(config_map("settings"))
        reader = await office.account("reader", "get", "list", "watch", resources=("configmaps",))
        page = await signed_in(browser, url, reader)
        await visit(page, "#/k/-/v1/configmaps", shows("enter one above"))
        await fill(page, "Namespace", "default")
        await page.press("Enter")
        await page.until(f"({ROWS}).includes('settings')")
        assert console_errors(browser) == []
