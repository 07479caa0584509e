"""Kinds with versions that a webhook converts, on the real server and on ours."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.apiserver.admission.hooks import WebhookServer, webhook_server
from tests.apiserver.crd import applied_versions as versions
from tests.apiserver.crd.recordings import DEFINITIONS, Row
from tests.real.sides import NAMESPACE, Side


class Hook:
    """The webhook of both servers, on a loop and a thread of its own."""

    def __init__(self, server: WebhookServer, webhook: versions.Webhook) -> None:
        self.place = {"url": f"{server.url}/convert", "caBundle": server.bundle}
        self.webhook = webhook


@contextmanager
def running_hook() -> Iterator[Hook]:
    started, stop = threading.Event(), asyncio.Event()
    hooks: list[Hook] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with webhook_server() as server:
            server.replies["convert"] = webhook = versions.Webhook()
            hooks.append(Hook(server, webhook))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait(60)
    try:
        yield hooks[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def _box(side: Side, group: str, version: str, name: str) -> tuple[int, Any]:
    body = {"apiVersion": f"{group}/{version}", "kind": "Box", "metadata": {"name": name}}
    code, answer = side.send("POST", f"/apis/{group}/{version}/namespaces/{NAMESPACE}/boxes", body, dryRun="All")
    return code, answer


def define(side: Side, definition: Row) -> None:
    """Until objects can be made in every version."""
    code, answer = side.send("POST", DEFINITIONS, definition)
    assert code == 201, answer
    for version in ("v0", "v1", "v2"):
        while _box(side, definition["spec"]["group"], version, "probe")[0] != 201:
            time.sleep(0.05)
