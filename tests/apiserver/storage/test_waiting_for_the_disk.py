"""What happens while a write is on its way to the disk: nothing of it is seen outside, and nothing is forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer, aside
from konverge.apiserver.admission.webhooks.client import WebhookClient
from konverge.apiserver.http import writes
from konverge.apiserver.storage import sqlite as journals
from konverge.apiserver.storage.worker import Worker
from tests.apiserver.admission.hooks import RULES, VALIDATING
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.definitions import DEFINITIONS, definition
from tests.apiserver.storage.faulty_disk import FaultyDisk

pytestmark = [pytest.mark.virtual, pytest.mark.spec("T-01")]

SERVICES = "/api/v1/namespaces/default/services"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
LARGE = {f"k{number}": "v" * 50 for number in range(1_000)}


class SlowDisk:
    """A disk that answers when it is let go, or at once."""

    def __init__(self) -> None:
        self.holds = False
        self._waiting: list[Callable[[], None]] = []

    def submit(self, worker: Worker, job: Callable[[], Any], done: Callable[..., None]) -> None:
        def work() -> None:
            done(job(), None)

        if self.holds:
            self._waiting.append(work)
        else:
            asyncio.get_running_loop().call_soon(work)

    def let_go(self) -> None:
        self.holds = False
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            work()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    slow = SlowDisk()
    monkeypatch.setattr(Worker, "submit", lambda worker, job, done: slow.submit(worker, job, done))
    monkeypatch.setattr(journals, "LOG_BYTES", 64 * 1024)
    return slow


@pytest.fixture
async def api(tmp_path: Path, disk: SlowDisk) -> AsyncIterator[Api]:
    async with ApiServer(data_dir=tmp_path, disk=FaultyDisk()) as server:
        yield Api(server)
        disk.let_go()


async def test_a_definition_is_established_when_its_creation_is_answered(api: Api) -> None:
    for plural, more in (("widgets", 0), ("gadgets", 2_000)):
        properties = {f"field{number}": {"type": "string"} for number in range(more)}
        made = definition(plural, plural.title()[:-1], schema={"type": "object", "properties": properties})
        await api.call("POST", DEFINITIONS, made)
        seen = await api.call("GET", f"{DEFINITIONS}/{plural}.example.com")
        conditions = {condition["type"]: condition["status"] for condition in seen["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        await api.create("x", f"/apis/example.com/v1/namespaces/default/{plural}")


async def test_a_definition_whose_names_are_taken_is_answered_all_the_same(api: Api) -> None:
    await api.call("POST", DEFINITIONS, definition("widgets", "Widget"))
    await api.call("POST", DEFINITIONS, definition("others", "Widget"))
    seen = await api.call("GET", f"{DEFINITIONS}/others.example.com")
    assert {condition["type"]: condition["status"] for condition in seen["status"]["conditions"]} == {
        "NamesAccepted": "False",
        "Established": "False",
    }


async def test_a_service_keeps_its_address_while_the_removal_of_another_is_on_its_way(api: Api, disk: SlowDisk) -> None:
    """The last finalizer goes by an update; before that is on disk, the Service is there again with its address."""
    spec = {"clusterIP": "10.96.7.8", "ports": [{"port": 80}]}
    await api.create("s", SERVICES, metadata={"finalizers": ["example.com/f"]}, spec=spec)
    await api.call("DELETE", f"{SERVICES}/s")
    disk.holds = True
    removing = asyncio.create_task(api.patch(f"{SERVICES}/s", {"metadata": {"finalizers": None}}))
    await asyncio.sleep(1)
    creating = asyncio.create_task(api.create("s", SERVICES, spec=spec))
    await asyncio.sleep(1)
    disk.let_go()
    await asyncio.gather(removing, creating)
    refused = await api.call("POST", SERVICES, {"metadata": {"name": "t"}, "spec": spec}, expect=422)
    assert "already allocated" in refused["message"]


async def test_a_webhook_sees_nothing_that_is_not_on_disk(
    api: Api, disk: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object before the write is one that a power loss could still take back."""
    asked: list[Any] = []

    async def call(client: WebhookClient, config: Any, body: bytes, seconds: int) -> bytes:
        review = json.loads(body)
        asked.append(review["request"]["oldObject"])
        response = {"uid": review["request"]["uid"], "allowed": True}
        return json.dumps(
            {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}
        ).encode()

    monkeypatch.setattr(WebhookClient, "call", call)
    hook = {
        "name": "w.test.io",
        "clientConfig": {"url": "https://w"},
        "rules": [{**RULES[0], "operations": ["UPDATE"]}],
    }
    hook |= {"sideEffects": "None", "admissionReviewVersions": ["v1"]}
    await api.call("POST", VALIDATING, {"metadata": {"name": "w"}, "webhooks": [hook]})
    disk.holds = True
    creating = asyncio.create_task(api.create("a", data={"v": "1"}))
    await asyncio.sleep(1)
    changing = asyncio.create_task(api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": "2"}}))
    await asyncio.sleep(1)
    assert (asked, creating.done()) == ([], False)
    disk.let_go()
    await asyncio.gather(creating, changing)
    assert [old["data"] for old in asked] == [{"v": "1"}]


async def test_a_token_is_given_only_for_an_account_that_is_on_disk(api: Api, disk: SlowDisk) -> None:
    disk.holds = True
    creating = asyncio.create_task(api.create("robot", ACCOUNTS))
    await asyncio.sleep(1)
    asking = asyncio.create_task(api.call("POST", f"{ACCOUNTS}/robot/token", {}))
    await asyncio.sleep(1)
    assert not asking.done()
    disk.let_go()
    await creating
    assert (await asking)["status"]["token"]


async def test_a_large_update_that_always_loses_ends_by_its_time_limit(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins again after each conflict, as guaranteedUpdate does, until the request has no time left."""
    monkeypatch.setattr(aside, "PAUSE", 0.01)
    await api.create("a", data=LARGE)
    compared, server, lost = writes._compared, api.server, 0

    def loses(*arguments: Any) -> Any:
        nonlocal lost
        lost += 1
        server.objects.update("", "configmaps", "default", "a", lambda obj: {**obj, "binaryData": {"v": str(lost)}})
        return compared(*arguments)

    monkeypatch.setattr(writes, "_compared", loses)
    began = asyncio.get_running_loop().time()
    change = {"metadata": {"name": "a"}, "data": {**LARGE, "mine": "yes"}}
    answer = await api.send("PUT", f"{CONFIG_MAPS}/a", change, query={"timeout": "1s"})
    assert answer.status == 504
    assert asyncio.get_running_loop().time() - began == pytest.approx(1, abs=0.1)
    assert lost > 2
    monkeypatch.setattr(writes, "_compared", compared)
    present = await api.call("GET", f"{CONFIG_MAPS}/a")
    assert present["data"] == LARGE
    assert present["binaryData"] == {"v": str(lost)}
