"""What admission sees of requests that go through to pods and nodes: the same on both servers."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.admission.hooks import VALIDATING, webhook_server
from tests.real.sides import NAMESPACE, Side, our_side, real_side_of
from tools.control_plane import ControlPlane

POD = f"/api/v1/namespaces/{NAMESPACE}/pods/web"
REQUESTS = [
    ("GET", f"{POD}/exec?command=sh&command=-c&stdin=true&stdout=1&tty=false&container=main"),
    ("POST", f"{POD}/exec?command=ls"),
    ("GET", f"{POD}/attach?stdin=true&container=main"),
    ("GET", f"{POD}/portforward?ports=80&ports=443"),
    ("GET", f"{POD}/portforward"),
    ("GET", f"{POD}/portforward?ports=80,443"),
    *(("GET", f"{POD}/portforward?ports={text}") for text in ("many", "-1", "65536", "80,")),
    ("GET", f"{POD}/proxy/some/path"),
    ("PUT", f"{POD}/proxy/"),
    ("GET", f"{POD}/proxy"),
    ("POST", f"/api/v1/namespaces/{NAMESPACE}/services/web:80/proxy/x/"),
    ("GET", "/api/v1/nodes/lost/proxy/pods"),
    ("POST", f"{POD}/exec?command=ls&dryRun=All"),
    ("GET", f"{POD}/log"),
]
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["*/*"], "operations": ["CONNECT"]}]


async def asked(side: Side) -> tuple[list[Any], list[Any]]:
    """What a webhook that refuses was asked, and what the server answered."""
    async with webhook_server() as hooks:
        hook = hooks.hook("deny", lambda request: {"allowed": False, "status": {"message": "no way in"}}, rules=RULES)
        await asyncio.to_thread(side.send, "POST", VALIDATING, {"metadata": {"name": "connect"}, "webhooks": [hook]})
        try:
            while not hooks.asked:  # the real server learns of a configuration a little later
                await asyncio.to_thread(side.send, "GET", f"{POD}/attach")
            hooks.asked.clear()
            answers = []
            for method, target in REQUESTS:
                status, body = await asyncio.to_thread(side.send, method, target)
                answers.append((method, target, status, body.get("message"), body.get("reason")))
        finally:
            await asyncio.to_thread(side.send, "DELETE", f"{VALIDATING}/connect")
        return [{**request, "uid": "", "userInfo": {}} for _, request in hooks.asked], answers


@pytest.mark.spec("S-13")
async def test_both_servers_ask_before_they_connect(real_server: ControlPlane, tmp_path: Path) -> None:
    with our_side(tmp_path) as embedded, closing(real_side_of(real_server)) as real:
        theirs, ours = await asked(real), await asked(embedded)
    for mine, its in zip(ours[0] + ours[1], theirs[0] + theirs[1], strict=True):
        assert mine == its
    assert len(ours[0]) == 11
