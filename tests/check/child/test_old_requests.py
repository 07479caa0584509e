"""Versions that are gone, as an old client asks for them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.check.old_requests import OldApis
from konverge.wire.in_process import Direct
from konverge.wire.message import Headers, Request, Response

PLURAL = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"
BUDGET = {
    "apiVersion": "policy/v1beta1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


def member(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def as_protobuf(name: str) -> bytes:
    """A PodDisruptionBudget of v1beta1 as Go clients encode it: metadata and spec.maxUnavailable (a number)."""
    raw = member(1, member(1, name.encode())) + member(2, member(3, bytes([1 << 3, 0, 2 << 3, 1])))
    return b"k8s\x00" + member(1, member(1, b"policy/v1beta1") + member(2, b"PodDisruptionBudget")) + member(2, raw)


class Old:
    """An old client of a server."""

    def __init__(self, server: ApiServer) -> None:
        self._transport = Direct(OldApis(server.handle))
        self._token = server.token

    def request(self, method: str, target: str, body: bytes = b"", kind: str = "application/json") -> Request:
        headers = {"authorization": f"Bearer {self._token}", "accept-encoding": "gzip", "content-type": kind}
        return Request(method, target, Headers([(k.encode(), v.encode()) for k, v in headers.items()]), body)

    async def send(self, method: str, target: str, body: bytes = b"", kind: str = "application/json") -> Response:
        return await self._transport.send(self.request(method, target, body, kind))

    async def get(self, target: str) -> Any:
        return json.loads((await self.send("GET", target)).body)

    async def first_event(self, target: str) -> Any:
        stream = await self._transport.stream(self.request("GET", target))
        try:
            async for chunk in stream:
                return json.loads(chunk.splitlines()[0])
        finally:
            await stream.aclose()


@pytest.mark.spec("K-09")
def test_an_old_version_is_served_from_the_new_one() -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            old = Old(server)
            created = await old.send("POST", PLURAL, json.dumps(BUDGET).encode())
            assert created.status == 201
            assert json.loads(created.body)["apiVersion"] == "policy/v1beta1"
            protobuf = await old.send("POST", PLURAL, as_protobuf("coded"), "application/vnd.kubernetes.protobuf")
            assert (protobuf.status, json.loads(protobuf.body)["metadata"]["name"]) == (201, "coded")
            stored = server.objects.get("policy", "poddisruptionbudgets", "default", "coded")
            assert stored is not None
            assert stored["spec"]["maxUnavailable"] == 1
            listed = await old.get(PLURAL)
            assert listed["apiVersion"] == "policy/v1beta1"
            assert [item["metadata"]["name"] for item in listed["items"]] == ["coded", "web"]
            event = await old.first_event(f"{PLURAL}?watch=true&resourceVersion=0")
            assert event["object"]["apiVersion"] == "policy/v1beta1"
            today = await old.get(PLURAL.replace("v1beta1", "v1") + "/web")
            assert today["apiVersion"] == "policy/v1"

    asyncio.run(scenario())


@pytest.mark.spec("K-09")
def test_discovery_lists_old_versions_after_those_of_today() -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            old = Old(server)
            groups = {group["name"]: group for group in (await old.get("/apis"))["groups"]}
            assert [item["version"] for item in groups["policy"]["versions"]] == ["v1", "v1beta1"]
            assert groups["policy"]["preferredVersion"]["version"] == "v1"
            assert (await old.get("/apis/policy"))["versions"][-1]["groupVersion"] == "policy/v1beta1"
            resources = await old.get("/apis/policy/v1beta1")
            assert resources["groupVersion"] == "policy/v1beta1"
            assert "poddisruptionbudgets" in {item["name"] for item in resources["resources"]}

    asyncio.run(scenario())


@pytest.mark.spec("K-09")
def test_without_it_the_api_server_has_no_old_version() -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            plain = Old(server)
            request = plain.request("GET", PLURAL)
            assert (await server.transport.send(request)).status == 404

    asyncio.run(scenario())
