"""Pages of the console in a real browser: signing in, finding things as people find them, and axe."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.console.office import Office, an_office
from tests.real.browser import Browser, Page, a_browser

AXE = Path(__file__).parents[2] / "console" / "node_modules" / "axe-core" / "axe.min.js"
SIGN_IN = "document.querySelector('#token')"
EDITOR = "document.querySelector('.editor')?.shadowRoot?.querySelector('.cm-content')"
MAIN = "document.querySelector('main').innerText"


@asynccontextmanager
async def a_console(folder: Path, **options: Any) -> AsyncIterator[tuple[Office, Browser, str]]:
    """An API server, a console on a socket, a browser."""
    async with (
        an_office(**options) as office,
        office.console.serving() as (host, port),
        a_browser(folder) as browser,
    ):
        yield office, browser, f"http://{host}:{port}"


async def signed_in(browser: Browser, url: str, token: str, *, dark: bool = False, phone: bool = False) -> Page:
    """A page on which a token was typed, as people do it."""
    page = await Page.open(browser, dark=dark)
    size = (360, 740) if phone else (1280, 800)
    await page.do(
        "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=phone
    )
    await page.loaded(url, SIGN_IN)
    await page.tab_to("element.id === 'token'")
    await page.type(token)
    await page.press("Enter")
    await page.until("document.querySelector('#out')")
    return page


async def visit(page: Page, fragment: str, condition: str) -> None:
    """Go to an address of the console and wait for a condition, which the page before it may have met as well."""
    await page.run(
        f"new Promise((done) => {{ const there = new URL({json.dumps(fragment)}, location.href).hash; "
        "if (location.hash === there) return done(); "
        "addEventListener('hashchange', () => done(), {once: true}); location.hash = there; })"
    )
    await page.until(f"Boolean({condition})")


def shows(text: str, selector: str = "main") -> str:
    """The condition that a part of the page shows a text."""
    return f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(text)})"


async def press_button(page: Page, text: str) -> None:
    """Tab to a button, as soon as it can be pressed, and press Enter."""
    await page.until(
        "[...document.querySelectorAll('button:not([disabled])')].some((button) => "
        f"button.innerText === {json.dumps(text)})"
    )
    await page.tab_to(f"element.tagName === 'BUTTON' && element.innerText === {json.dumps(text)}")
    await page.press("Enter")


async def fill(page: Page, label: str, text: str) -> None:
    """Tab to the input of a label, as soon as it is there, and type over what it has."""
    is_it = f"element.labels && [...element.labels].some((label) => label.innerText.trim() === {json.dumps(label)})"
    await page.until(f"[...document.querySelectorAll('input, textarea')].some((element) => {is_it})")
    await page.tab_to(is_it)
    await page.run("document.activeElement.select && document.activeElement.select()")
    await page.type(text)


async def choose(page: Page, label: str, value: str) -> None:
    """Tab to a select; the keys that open it are the operating system's, so its value is set as they would set it."""
    is_it = (
        "element.tagName === 'SELECT' && [...element.labels].some((label) => "
        f"label.innerText.trim().startsWith({json.dumps(label)}))"
    )
    await page.until(f"[...document.querySelectorAll('select')].some((element) => {is_it})")
    await page.tab_to(is_it)
    await page.run(
        f"(document.activeElement.value = {json.dumps(value)}, "
        "document.activeElement.dispatchEvent(new Event('change', {bubbles: true})))"
    )


async def replace_in_editor(page: Page, old: str, new: str) -> None:
    """Select a text in the editor as a mouse would, and type another, once it can be edited."""
    await page.until("Boolean(document.querySelector('.editor').shadowRoot.activeElement)")
    await page.run(f"""(() => {{
      const content = {EDITOR};
      content.focus();
      const lines = [...content.querySelectorAll('.cm-line')];
      const line = lines.find((entry) => entry.innerText.includes({json.dumps(old)}));
      const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
      let node;
      while ((node = walker.nextNode())) {{
        const at = node.data.indexOf({json.dumps(old)});
        if (at >= 0) {{ getSelection().setBaseAndExtent(node, at, node, at + {len(old)}); return; }}
      }}
      throw new Error('no such text');
    }})()""")
    await page.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    await page.type(new)


async def violations(page: Page) -> list[Any]:
    """What axe finds wrong with the page as it is now."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make console-test` installs it, where there is node")
    await page.run(f"{AXE.read_text()};0")
    result: list[Any] = await page.run(
        "axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations.map("
        "(violation) => [violation.id, violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]))"
    )
    return result


def console_errors(browser: Browser) -> list[Any]:
    """What the browser itself finds wrong: errors of scripts, refusals by the policy, foreign hosts."""
    errors: list[Any] = []
    for message in browser.events:
        entry = message.get("params", {}).get("entry", {})
        expected = entry.get("source") == "network"  # a refusal by the server is no fault of the page
        if message["method"] == "Log.entryAdded" and entry["level"] == "error" and not expected:
            errors.append(entry["text"])
        if message["method"] == "Runtime.exceptionThrown":
            errors.append(message["params"]["exceptionDetails"])
    return errors


def addresses(browser: Browser) -> set[str]:
    """The hosts that pages asked."""
    sent = [event["params"] for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    asked = [parameters["request"]["url"] for parameters in sent]
    return {url.split("/")[2] for url in asked if not url.startswith(("data:", "about:", "blob:"))}
