"""Requests about custom kinds to a server in process."""

from __future__ import annotations

import json
from typing import Any

from tests.apiserver.api import MERGE, Api
from tests.apiserver.crd.recordings import DEFINITIONS, Row, summary

JSON_PATCH = "application/json-patch+json"


async def answer(api: Api, method: str, path: str, body: Any = None, **more: Any) -> Row:
    response = await api.send(method, path, body, **more)
    return summary(response.status, json.loads(response.body), response.headers.get_all("warning"))


async def patched(api: Api, path: str, patch: Any) -> Row:
    media = JSON_PATCH if isinstance(patch, list) else MERGE
    return await answer(api, "PATCH", path, patch, content_type=media, query={"dryRun": "All"})


async def define(api: Api, definition: Row) -> None:
    """Create a definition and wait for its kind to be served."""
    name = definition["metadata"]["name"]
    async with api.watch(DEFINITIONS, fieldSelector=f"metadata.name={name}") as watch:
        await api.call("POST", DEFINITIONS, definition)
        while not established((await watch.next())["object"]):
            continue


def established(definition: Row) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
