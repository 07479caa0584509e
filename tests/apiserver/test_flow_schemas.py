"""The conditions of FlowSchemas."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.apiserver.api import Api

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


async def condition(api: Api, path: str) -> dict[str, Any]:
    await asyncio.sleep(0)
    obj = await api.call("GET", path)
    (only,) = obj["status"]["conditions"]
    return {key: value for key, value in only.items() if key != "lastTransitionTime"}


async def test_a_flow_schema_knows_whether_its_level_exists(api: Api) -> None:
    spec = {"priorityLevelConfiguration": {"name": "mine"}, "matchingPrecedence": 500}
    await api.call("POST", f"{FLOW}/flowschemas", {"metadata": {"name": "s"}, "spec": spec})
    assert (await condition(api, f"{FLOW}/flowschemas/s"))["status"] == "True"
    level = {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}
    await api.call("POST", f"{FLOW}/prioritylevelconfigurations", {"metadata": {"name": "mine"}, "spec": level})
    dangling = await condition(api, f"{FLOW}/flowschemas/s")
    assert (dangling["type"], dangling["status"], dangling["reason"]) == ("Dangling", "False", "Found")
    before = api.server.store.revision
    await asyncio.sleep(0)
    assert api.server.store.revision == before  # settled
