"""A real browser, driven by its own protocol over two pipes: no driver program, no port, no library.

`Page` has what the tests of the console do as people do it: open a page, press keys, read what is shown. Waiting is
done in the page, by its own observers.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tools import real_packages

_FLAGS = (
    "--headless",
    "--no-sandbox",  # as root there is none; the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-extensions",
    "--remote-debugging-pipe",
)
_LIMIT = 180.0
"""Seconds for one command; waiting for something on a page is one."""
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "Backspace": (8, "")}


def program() -> str:
    """The browser; skips where there is none."""
    path = real_packages.browser()
    return str(path) if path else pytest.skip(real_packages.advice(["chromium-headless-shell"]))


def _private(process: int) -> int:
    """Bytes of a process that no other has."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


class Refused(AssertionError):
    """The browser refused a command; the text is its own."""


class Browser:
    """A running browser, and the commands to it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._next = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.events: list[dict[str, Any]] = []
        """Events of the pages, in order: what their consoles and networks did."""

    async def do(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        answer = self._waiting[self._next] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps(message).encode() + b"\0")
        async with asyncio.timeout(_LIMIT):
            reply = await answer
        if "error" in reply:
            raise Refused(f"{method}: {reply['error']}")
        result: dict[str, Any] = reply["result"]
        return result

    async def memory(self) -> int:
        """Bytes that the process of a page has for itself: objects, document and engine, without what processes share.

        Of the largest one, since a browser keeps an empty one ready for the next page.
        """
        processes = (await self.do("SystemInfo.getProcessInfo"))["processInfo"]
        return max(_private(process["id"]) for process in processes if process["type"] == "renderer")

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """Until the browser ends."""
        while True:
            try:
                message = json.loads((await reader.readuntil(b"\0"))[:-1])
            except asyncio.IncompleteReadError:
                return
            waiting = self._waiting.pop(message.get("id", 0), None)
            if waiting is None:
                self.events.append(message)
            elif not waiting.done():
                waiting.set_result(message)


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    @classmethod
    async def open(cls, browser: Browser, *, dark: bool = False) -> Page:
        target = await browser.do("Target.createTarget", url="about:blank")
        attached = await browser.do("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = cls(browser, attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            await page.do(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await page.do("Emulation.setEmulatedMedia", features=[scheme])
        return page

    async def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._browser.do(method, self._session, **parameters)

    async def go(self, url: str) -> None:
        reply = await self.do("Page.navigate", url=url)
        assert "errorText" not in reply, reply

    async def run(self, script: str) -> Any:
        """The value of an expression, awaited."""
        reply = await self.do("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in reply:
            raise Refused(json.dumps(reply["exceptionDetails"])[:1000])
        return reply["result"].get("value")

    async def until(self, condition: str) -> Any:
        """Wait until an expression is true, evaluated whenever the page changes; its value.

        And now and then: an editor lives in a shadow root, whose changes are not those of the page.
        """
        return await self.run(
            "new Promise((done) => { const look = () => { let value = null; "
            f"try {{ value = {condition}; }} catch (error) {{ value = null; }} "
            "if (value) { observer.disconnect(); clearInterval(timer); done(value); } }; "
            "const observer = new MutationObserver(look); const timer = setInterval(look, 100); "
            "observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true}); "
            "look(); })"
        )

    async def loaded(self, url: str, condition: str) -> None:
        """Open a URL and wait for a condition in the new document."""
        await self.go(url)
        while True:
            try:
                await self.until(condition)
                return
            except Refused:  # the document changed meanwhile
                continue

    async def text(self, selector: str = "main") -> str:
        return str(await self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    async def press(self, key: str, *, shift: bool = False) -> None:
        code, text = KEYS[key]
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        await self.do("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        await self.do("Input.dispatchKeyEvent", type="keyUp", **common)

    async def type(self, text: str) -> None:
        await self.do("Input.insertText", text=text)

    async def tab_to(self, condition: str) -> None:
        """Press Tab until the focused `element` fits: what Tab cannot reach cannot be used by keyboard."""
        for _ in range(80):
            if await self.run(f"((element) => Boolean({condition}))(document.activeElement)"):
                return
            await self.press("Tab")
        raise AssertionError(f"no Tab leads to {condition}")


@asynccontextmanager
async def a_browser(profile: Path) -> AsyncIterator[Browser]:
    browser_reads, we_write = os.pipe()
    we_read, browser_writes = os.pipe()
    process = await _start(profile, browser_reads, browser_writes)
    os.close(browser_reads)
    os.close(browser_writes)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=64 << 20)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(we_read, "rb", 0)
    )
    out, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(we_write, "wb", 0))
    browser = Browser(asyncio.StreamWriter(out, protocol, None, loop))
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(browser.listen(reader), name="browser")
        try:
            yield browser
        finally:
            process.kill()
            await process.wait()
            listening.cancel()
            out.close()
            transport.close()


async def _start(profile: Path, reads: int, writes: int) -> asyncio.subprocess.Process:
    """With the pipes as descriptors 3 and 4, where the browser looks for them."""
    return await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        f'exec "$0" "$@" 3<&{reads} 4>&{writes}',
        program(),
        *_FLAGS,
        f"--user-data-dir={profile}",
        pass_fds=(reads, writes),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
