"""The web console in a real browser, used by keyboard."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.operators.nacos.resource import Nacos
from tests.real.browser import Browser, Page, a_browser, program
from tests.service.desk import ALL, READ, SPACE, Desk, a_desk

pytestmark = [pytest.mark.spec("N-23"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(240)]

SIGN_IN = "document.querySelector('#token')"
LIVE = "document.querySelector('#live').textContent === 'live'"


@pytest.fixture(autouse=True)
def _browser_is_there() -> None:
    program()


@asynccontextmanager
async def a_console(tmp_path: Path) -> AsyncIterator[tuple[Desk, Browser, str]]:
    """An API server, the service on a socket, a browser."""
    async with a_desk() as desk, desk.service.serving() as (host, port), a_browser(tmp_path) as browser:
        yield desk, browser, f"http://{host}:{port}"


async def signed_in(browser: Browser, url: str, token: str, *, dark: bool = False) -> Page:
    page = await Page.open(browser, dark=dark)
    await page.loaded(url, SIGN_IN)
    await page.tab_to("element.id === 'token'")
    await page.type(token)
    await page.press("Enter")
    await page.until("!document.querySelector('#out').hidden")
    return page


def console_errors(browser: Browser) -> list[Any]:
    """What the browser itself finds wrong: errors of scripts, refusals by the policy, foreign hosts."""
    errors: list[Any] = []
    for message in browser.events:
        entry = message.get("params", {}).get("entry", {})
        expected = entry.get("source") == "network"  # a refusal by the service is no fault of the page
        if message["method"] == "Log.entryAdded" and entry["level"] == "error" and not expected:
            errors.append(entry["text"])
        if message["method"] == "Runtime.exceptionThrown":
            errors.append(message["params"]["exceptionDetails"])
    return errors


def addresses(browser: Browser) -> set[str]:
    sent = [event["params"] for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    asked = [parameters["request"]["url"] for parameters in sent]
    return {url.split("/")[2] for url in asked if not url.startswith(("data:", "about:"))}


async def fill(page: Page, label: str, text: str) -> None:
    """Tab to the input of a label, and type over what is there."""
    await page.tab_to(f"element.labels && [...element.labels].some((label) => label.innerText === {json.dumps(label)})")
    await page.run("document.activeElement.select && document.activeElement.select()")
    await page.type(text)


async def choose(page: Page, label: str, value: str) -> None:
    """Tab to a select; the keys that open it are the operating system's, so its value is set as they would set it."""
    await page.tab_to(f"element.labels && [...element.labels].some((label) => label.innerText === {json.dumps(label)})")
    await page.run(
        f"(document.activeElement.value = {json.dumps(value)}, "
        "document.activeElement.dispatchEvent(new Event('change', {bubbles: true})))"
    )


async def button(page: Page, text: str) -> None:
    await page.tab_to(f"element.tagName === 'BUTTON' && element.innerText === {json.dumps(text)}")
    await page.press("Enter")


async def test_the_list_is_live_and_markup_in_messages_is_text(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (desk, browser, url):
        page = await signed_in(browser, url, desk.token)
        await page.until(LIVE)
        await desk.create("shop")
        await page.until("document.querySelector('.phase')?.innerText === 'Pending'")
        evil = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
        condition = {"type": "Ready", "status": "False", "reason": "No", "message": evil}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = {"status": {"phase": "Failed", "kubeConditions": [condition]}}
        await desk.admin.patch(Nacos, "shop", MergePatch(status), SPACE, subresource="status")
        await page.until("document.querySelector('.phase.bad')?.innerText === 'Failed'")
        assert evil in await page.text()
        await page.run("location.hash = '#/default/shop'")
        await page.until("document.querySelector('dd .phase.bad')")
        assert evil in await page.text()
        assert await page.run("document.querySelectorAll('main img, main b').length") == 0
        assert "owned" not in await page.run("document.title")
        await desk.send("DELETE", f"{ALL}/shop")
        await page.until("document.querySelector('main').innerText.includes('gone')")
        assert console_errors(browser) == []


async def test_the_form_shows_each_error_at_its_field(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (desk, browser, url):
        page = await signed_in(browser, url, desk.token)
        await page.run("location.hash = '#/new'")
        await page.until("document.querySelectorAll('main select option').length > 9")
        await fill(page, "Name", "shop")
        await choose(page, "Type", "cluster")
        await fill(page, "Servers", "2")
        await choose(page, "Database", "mysql")
        await button(page, "Create")
        await page.until("document.querySelectorAll('.wrong').length === 3")
        wrong = await page.run(
            "[...document.querySelectorAll('[aria-invalid]')].map((element) => element.dataset.path)"
        )
        assert wrong == ["spec.replicas", "spec.database.mysqlHost", "spec.database.mysqlCredentialsSecretRef"]
        described = "document.getElementById(document.activeElement.getAttribute('aria-describedby')).innerText"
        assert "at least 3 replicas" in await page.run(described)
        await fill(page, "Servers", "3")
        await fill(page, "Host", "mysql.default.svc")
        await fill(page, "Secret with username and password", "db")
        await button(page, "Create")
        await page.until("location.hash === '#/default/shop'")
        made = await desk.admin.get(Nacos, "shop", SPACE)
        assert (made.spec.replicas, made.spec.database.mysql_host) == (3, "mysql.default.svc")
        assert console_errors(browser) == []


async def test_the_page_reports_a_bad_token_and_missing_permissions(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (desk, browser, url):
        reader = await desk.account("reader", *READ)
        await desk.create("shop")
        page = await Page.open(browser)
        await page.loaded(url, SIGN_IN)
        await page.tab_to("element.id === 'token'")
        await page.type("wrong")
        await page.press("Enter")
        await page.until("document.querySelector('[role=alert]')?.innerText.includes('does not accept the token')")
        await page.tab_to("element.id === 'token'")
        await page.type(reader)
        await page.press("Enter")
        await page.until("document.querySelector('main').innerText.includes('enter one above')")
        await fill(page, "Namespace", SPACE)
        await page.press("Enter")
        await page.until("document.querySelector('main td a')?.innerText === 'shop'")
        await page.run("location.hash = '#/default/shop'")
        await page.until("!document.querySelector('section[aria-label=Change]').hidden")
        await fill(page, "Servers", "1")
        await button(page, "Scale")
        await page.until("document.querySelector('[role=alert]')?.innerText.includes('cannot patch')")
        await page.run("document.querySelector('#out').click()")
        await page.until(SIGN_IN)
        assert await page.run("sessionStorage.length") == 0
        assert console_errors(browser) == []


async def test_light_and_dark_are_both_readable(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (desk, browser, url):
        await desk.create("shop")
        for dark in (False, True):
            page = await signed_in(browser, url, desk.token, dark=dark)
            await page.until("document.querySelector('main td a')")
            ratios = await page.run(_CONTRAST)
            assert ratios
            assert min(ratios) >= 4.5  # WCAG 2, level AA
            darkness = await page.run("getComputedStyle(document.body).backgroundColor")
            assert (darkness == "rgb(255, 255, 255)") is not dark


_CONTRAST = """
(() => {
  const numbers = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const part = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = (color) => { const [r, g, b] = numbers(color).map(part); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (element) => getComputedStyle(element).backgroundColor;
  const transparent = (element) => behind(element) === 'rgba(0, 0, 0, 0)';
  const ground = (element) => (transparent(element) ? ground(element.parentElement) : light(behind(element)));
  const chosen = document.querySelectorAll('main td, main th, main a, .phase, .who span, button:not([hidden]), label');
  return [...chosen].filter((element) => element.innerText.trim()).map((element) => {
    const [a, b] = [light(getComputedStyle(element).color), ground(element)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
})()
"""
