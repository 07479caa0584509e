"""The console's own API over sockets, in front of the embedded server and of the real one, with a kubeconfig."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.client import load_config
from konverge.client.connection import Reconnecting
from konverge.console import Console, Identity, Owner
from konverge.service.access import own_nothing
from tests.console.office import API, Browser, decoded, read_lines
from tests.explain.samples import deployment, obj
from tests.wire.websocket_client import talking

SPACE = "console-api"
MERGE = "application/merge-patch+json"
DEPLOYMENTS = f"/k8s/apis/apps/v1/namespaces/{SPACE}/deployments"
QUERY = {"kind": "apps/v1/Deployment", "namespace": SPACE, "name": "web"}


@asynccontextmanager
async def a_browser(kubeconfig: Path) -> AsyncIterator[Browser]:
    config = load_config(kubeconfig=kubeconfig)
    async with aclosing(Reconnecting(config)) as own, aclosing(Reconnecting(own_nothing(config))) as bare:
        owner = Owner(Identity(own, config.credentials, config.impersonate))
        browser = Browser(Console(bare, owner=owner, anywhere=True))
        assert (await browser.sign_in(token="a-guess")).status == 401
        assert (await browser.sign_in(token=owner.key)).status == 200
        made = await browser.send("POST", "/k8s/api/v1/namespaces", obj("Namespace", SPACE, namespace=""))
        assert made.status in (201, 409), made.body
        yield browser
        await browser.send("DELETE", f"{DEPLOYMENTS}/web")
        await browser.direct.aclose()


def web(tree: dict[str, Any]) -> dict[str, Any]:
    return next(node for node in tree["nodes"] if node["id"] == tree["root"])


@pytest.mark.spec("C-03", "C-07", "C-09")
async def test_the_api_of_the_console(either_kubeconfig: Path) -> None:
    async with a_browser(either_kubeconfig) as browser:
        made = deployment("web")
        made["metadata"]["namespace"] = SPACE
        first = decoded(await browser.send("POST", f"{DEPLOYMENTS}?fieldManager=ann", made))
        assert first["kind"] == "Deployment", first
        then = first["metadata"]["resourceVersion"]
        body = {"spec": {"replicas": 3}}
        changed = await browser.send("PATCH", f"{DEPLOYMENTS}/web?fieldManager=bob", body, content_type=MERGE)
        assert changed.status == 200
        stream = await browser.stream(f"{DEPLOYMENTS}?watch=true&resourceVersion={then}")
        assert [event["type"] for event in await read_lines(stream, 1)] == ["MODIFIED"]

        overview = await browser.get(f"{API}/overview")
        counts = {kind["kind"]: kind["count"] for kind in overview["kinds"]}
        assert counts["Deployment"] >= 1
        assert SPACE in overview["namespaces"]
        now, past = await browser.get(f"{API}/tree", **QUERY), await browser.get(f"{API}/tree", **QUERY, at=then)
        assert (web(now)["ready"], web(past)["ready"]) == ("0/3", "0/1")
        assert (await browser.get(f"{API}/why", **QUERY))["sentence"]
        story = await browser.get(f"{API}/story", **QUERY)
        said = {entry.get("who"): entry["sentence"] for entry in story["entries"]}
        assert said.get("bob", "bob last wrote spec.replicas") == "bob last wrote spec.replicas"

        async with browser.console.serving() as (_, port):
            fields = f"cookie: {browser.cookie}\r\norigin: http://x\r\n"
            target = f"{DEPLOYMENTS}?watch=true&resourceVersion={then}"
            async with talking(port, target, extra=fields) as talker:
                assert talker.status == 101
                assert json.loads((await talker.receive())[1])["type"] == "MODIFIED"
            async with talking(port, f"/k8s/api/v1/namespaces/{SPACE}/pods/none/exec", extra=fields) as talker:
                assert talker.status in (400, 404)
