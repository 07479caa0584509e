"""Server-side apply across versions: answers recorded from kube-apiserver."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.admission.hooks import webhook_server
from tests.apiserver.api import Api
from tests.apiserver.crd import applied_versions as versions
from tests.apiserver.crd.recordings import DEFINITIONS, Row, document
from tests.apiserver.crd.served import define

RECORDED = document("applied_versions.json")


async def _answer(api: Api, step: versions.Step, group: str, live: Row) -> Row:
    method, path, body, media, query = versions.exchange(step, group, "default", lambda path: live)
    response = await api.send(method, path, body, content_type=media, query=query)
    return versions.seen(response.status, json.loads(response.body))


async def _drop(api: Api, definition: Row, version: str) -> None:
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    live = await api.call("GET", path)
    kept = [entry for entry in live["spec"]["versions"] if entry["name"] != version]
    await api.call("PUT", path, {**live, "spec": {**live["spec"], "versions": kept}})


@pytest.mark.spec("S-29")
@pytest.mark.parametrize("name", versions.SEQUENCES)
@pytest.mark.parametrize("form", versions.FORMS)
async def test_versions_are_applied_as_upstream(api: Api, form: str, name: str) -> None:
    storage, by_webhook = versions.FORMS[form]
    webhook = versions.Webhook()
    async with webhook_server() as hooks:
        hooks.replies["convert"] = webhook
        place = {"url": f"{hooks.url}/convert", "caBundle": hooks.bundle} if by_webhook else None
        definition = versions.definition("a", storage, place)
        await define(api, definition)
        group, answers = definition["spec"]["group"], []
        for step in versions.SEQUENCES[name]:
            if step[0] == "webhook":
                webhook.fails = step[1] == "fails"
            elif step[0] == "drop":
                await _drop(api, definition, step[1])
            else:
                live: Any = None
                if step[0] == "put":
                    read = await api.send("GET", f"/apis/{group}/{step[1]}/namespaces/default/boxes/a")
                    live = json.loads(read.body)
                answers.append(await _answer(api, step, group, live))
    assert answers == RECORDED[f"{form}: {name}"]
