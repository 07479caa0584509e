"""The console for everyone: axe, phones, Chinese, dark; the API away and back; ten thousand rows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from konverge.cli.install_objects import install_definitions
from konverge.console.operators import PAGES
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace
from konverge.objects.meta import ObjectMeta
from konverge.operators.catalog import find
from tests.console.office import an_office
from tests.real.browser import Page, a_browser, program
from tests.real.console_pages import (
    SIGN_IN,
    a_console,
    console_errors,
    shows,
    signed_in,
    violations,
    visit,
)

pytestmark = [pytest.mark.spec("C-25"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

SETTINGS = "#/o/-/v1/configmaps/default/settings"
ADDRESSES = {
    "#/": "document.querySelector('.overview')",
    "#/k/-/v1/configmaps": "document.querySelector('.grid-body a')",
    SETTINGS: "document.querySelector('#tab-summary')",
    f"{SETTINGS}?tab=tree": "document.querySelector('.node, .outline li')",
    f"{SETTINGS}?tab=why": "document.querySelector('.verdict')",
    f"{SETTINGS}?tab=story": "document.querySelector('.story, .problem')",
    f"{SETTINGS}?tab=yaml": "document.querySelector('.editor')?.shadowRoot?.querySelector('.cm-line')",
    f"{SETTINGS}?tab=events": "document.querySelector('#panel .quiet')",
    "#/new/-/v1/configmaps": "document.querySelector('.editor')?.shadowRoot?.querySelector('.cm-content')",
    "#/create/nacos": "document.querySelector('.create')",
    "#/p/nacos": "document.querySelector('.operator .quiet')",
    "#/simulation": "document.querySelector('main h1')",
    "#/nowhere": "document.querySelector('main h1')",
}

CUT = """[...document.querySelectorAll(
  'button, .button, th, td, dt, dd, h1, h2, h3, legend, label, .crumbs, [role=columnheader], [role=tab], nav > ul a'
)].filter((element) => element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.outerHTML.slice(0, 200))"""
"""Elements whose text is wider than they are. Names of objects and kinds are not among them: they are of any length."""


@pytest.fixture(autouse=True)
def _browser_is_there() -> None:
    program()


def settings() -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="settings", namespace="default", labels={"app": "a"}), data={"a": "b"})


async def prepare(office: Any) -> None:
    await install_definitions(office.admin, [find("nacos")])
    await office.admin.create(settings())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
async def test_axe_finds_nothing_on_any_page(tmp_path: Path, dark: bool, phone: bool) -> None:
    async with a_console(tmp_path, pages=PAGES) as (office, browser, url):
        await prepare(office)
        page = await Page.open(browser, dark=dark)
        await page.loaded(url, SIGN_IN)
        assert await violations(page) == []
        page = await signed_in(browser, url, office.server.token, dark=dark, phone=phone)
        for fragment, condition in ADDRESSES.items():
            await visit(page, fragment, condition)
            assert await violations(page) == [], fragment
            width = await page.run("document.documentElement.scrollWidth")
            assert width <= (360 if phone else 1280), fragment  # nothing is cut off, nothing scrolls sideways
        background = await page.run("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") is not dark
        assert console_errors(browser) == []


async def test_dialogs_are_reached_and_left_by_keyboard_and_axe_finds_nothing_in_them(tmp_path: Path) -> None:
    async with a_console(tmp_path, pages=PAGES) as (office, browser, url):
        await prepare(office)
        page = await signed_in(browser, url, office.server.token)
        await page.until("document.querySelector('.overview')")
        for key, what in (("?", "dl.shortcuts"), ("g", "#palette")):
            await page.do("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
            await page.until(f"document.querySelector('dialog[open] {what}')")
            assert await violations(page) == [], key
            await page.press("Escape")
            await page.until("!document.querySelector('dialog')")
        await page.do("Input.dispatchKeyEvent", type="keyDown", key="g", text="g")
        await page.until("document.activeElement.matches('dialog input')")
        await page.type("cm settings")
        await page.until("document.querySelector('#palette [aria-selected=true]')?.innerText.includes('ConfigMap')")
        await page.press("Enter")
        await page.until("document.querySelector('.grid-body a')?.innerText === 'settings'")
        assert "search=settings" in await page.run("location.hash")


async def test_the_language_and_the_theme_are_switched_and_kept(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        page = await signed_in(browser, url, office.server.token)
        await page.until(shows("Overview", "h1"))
        await page.run("[...document.querySelectorAll('header button')].find((b) => b.innerText === '中文').click()")
        await page.until(shows("总览", "h1"))
        assert await page.run("document.documentElement.lang") == "zh-CN"
        await page.run("document.querySelector('header button[title]').click()")
        await page.until("document.documentElement.dataset.theme === 'dark'")
        assert await violations(page) == []
        await page.loaded(url, shows("总览", "h1"))
        assert await page.run("document.documentElement.dataset.theme") == "dark"


@pytest.mark.spec("C-36")
@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
async def test_no_chinese_text_is_cut_on_any_page(tmp_path: Path, phone: bool) -> None:
    async with a_console(tmp_path, pages=PAGES) as (office, browser, url):
        await prepare(office)
        page = await Page.open(browser)
        width = 360 if phone else 1280
        await page.do("Emulation.setDeviceMetricsOverride", width=width, height=740, deviceScaleFactor=1, mobile=phone)
        await page.loaded(url, SIGN_IN)
        await page.run("[...document.querySelectorAll('button')].find((b) => b.innerText === '中文').click()")
        await page.until(shows("登录", "h1"))
        assert await page.run(CUT) == []
        await page.run("document.querySelector('#token').focus()")
        await page.type(office.server.token)
        await page.press("Enter")
        await page.until("document.querySelector('#out')")
        for fragment, condition in ADDRESSES.items():
            await visit(page, fragment, condition)
            assert await page.run(CUT) == [], fragment
            assert await page.run("document.documentElement.scrollWidth") <= width, fragment
        await visit(page, SETTINGS, "document.querySelector('.actions .danger-text')")
        await page.run("document.querySelector('.actions .danger-text').click()")
        await page.until("document.querySelector('dialog[open] form')")
        assert await page.run(CUT) == []


@pytest.mark.spec("C-26")
async def test_the_server_away_is_a_banner_that_goes_and_nothing_is_missed(tmp_path: Path) -> None:
    async with an_office() as office, a_browser(tmp_path) as browser:
        await office.admin.create(settings())
        async with office.console.serving() as (host, port):
            url = f"http://{host}:{port}"
            page = await signed_in(browser, url, office.server.token)
            await visit(page, "#/k/-/v1/configmaps?namespace=default", "document.querySelector('.connection.live')")
        await page.until("Boolean(document.querySelector('.banner'))")
        assert "settings" in await page.text()  # the last known state stays
        other = settings()
        other.metadata.name = "later"
        await office.admin.create(other)
        await office.admin.delete(ConfigMap, "settings", "default")
        async with office.console.serving(host, port):
            await page.until("!document.querySelector('.banner')")
            await page.until(
                "[...document.querySelectorAll('.grid-body a')].map((a) => a.innerText).join() === 'later'"
            )
            await page.until("Boolean(document.querySelector('.connection.live'))")
            assert console_errors(browser) == []
            await page.do("Page.close")


@pytest.mark.spec("C-21")
async def test_a_watch_that_expired_lists_again(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.admin.create(settings())
        page = await Page.open(browser)
        await page.loaded(url, SIGN_IN)
        # The first watch is answered as by a server that has forgotten where it was.
        await page.run(
            "(() => { const real = window.fetch; let lists = 0; window.lists = () => lists; let expired = false; "
            "window.fetch = (address, options) => { const text = String(address); "
            "if (text.includes('/configmaps') && !text.includes('watch=')) lists++; "
            "if (text.includes('/configmaps') && text.includes('watch=') && !expired) { expired = true; "
            "const event = {type: 'ERROR', object: {kind: 'Status', code: 410, message: 'too old'}}; "
            "return Promise.resolve(new Response(JSON.stringify(event) + '\\n', {status: 200})); } "
            "return real(address, options); }; })()"
        )
        await page.run("document.querySelector('#token').focus()")
        await page.type(office.server.token)
        await page.press("Enter")
        await page.until("document.querySelector('#out')")
        await visit(page, "#/k/-/v1/configmaps?namespace=default", "window.lists() === 2")
        await page.until("document.querySelector('.connection.live')")
        other = settings()
        other.metadata.name = "later"
        await office.admin.create(other)
        await page.until("[...document.querySelectorAll('.grid-body a')].some((a) => a.innerText === 'later')")
        assert console_errors(browser) == []


@pytest.mark.spec("C-21")
async def test_ten_thousand_rows_are_few_elements_and_little_memory(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.admin.create(Namespace(metadata=ObjectMeta(name="many")))
        for start in range(0, 10000, 500):
            async with asyncio.TaskGroup() as group:
                for number in range(start, start + 500):
                    meta = ObjectMeta(name=f"map-{number:05}", namespace="many", labels={"n": str(number)})
                    group.create_task(office.admin.create(ConfigMap(metadata=meta, data={"a": "b"})))
        page = await signed_in(browser, url, office.server.token)
        await visit(page, "#/k/-/v1/configmaps?namespace=many", shows("10000 of 10000"))
        rows = "document.querySelectorAll('.grid-body .grid-row').length"
        assert await page.run(rows) < 60
        await page.run("document.querySelector('.grid').scrollTop = 1e9")
        await page.until("document.querySelector('.grid').innerText.includes('map-09999')")
        assert await page.run(rows) < 60
        await page.run("document.querySelector('.grid-body a[tabindex=\"0\"]').focus()")
        await page.do("Input.dispatchKeyEvent", type="keyDown", key="End", code="End", windowsVirtualKeyCode=35)
        await page.until("document.activeElement.innerText === 'map-09999'")
        await page.do("HeapProfiler.collectGarbage")
        heap = await page.do("Runtime.getHeapUsage")
        assert heap["usedSize"] < 20e6, "the rows as JavaScript objects"
        assert await browser.memory() < 150e6, "all that the page takes"
        assert console_errors(browser) == []
