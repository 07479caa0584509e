"""Configurations for the time of a run: what is there meanwhile, and what is left afterwards."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import ApiStatusError, Client, Conflict, InternalError, MergePatch, Static
from konverge.objects import crd_dict
from konverge.objects.kinds.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.runtime.webhooks import Conversion, Review, Webhook, Webhooks, mutating, validating
from konverge.runtime.webhooks.installing import ATTEMPTS, REMOVED_WITHIN, installed
from konverge.runtime.webhooks.places import Serving
from konverge.runtime.webhooks.server import Reviews
from konverge.wire.errors import ConnectFailed
from konverge.wire.message import Headers, Request, Response, Stream
from tests.runtime.webhooks.pools import Pool
from tests.runtime.webhooks.versions_contract import DEFINITION, VERSIONS

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-71")]

URL = "https://here"
CONFIGURATIONS = (ValidatingWebhookConfiguration, MutatingWebhookConfiguration)


@validating(Pool)
def check(review: Review[Pool]) -> None: ...


@mutating(Pool)
def default(review: Review[Pool]) -> None: ...


def at_work(client: Client, *webhooks: Webhook) -> Serving:
    served = Webhooks().add_all(webhooks or (check, default))
    return Serving(name="pools", webhooks=served, client=client, reviews=Reviews(served))


def run(client: Client, *webhooks: Webhook, url: str = URL) -> AbstractAsyncContextManager[None]:
    return installed(at_work(client, *webhooks), url, b"authority")


async def entries(client: Client) -> list[tuple[str, str | None, str | None]]:
    """(configuration, URL, caBundle) of each entry."""
    return [
        (item.metadata.name, webhook.client_config.url, webhook.client_config.ca_bundle)
        for kind in CONFIGURATIONS
        for item in (await client.list(kind)).items
        for webhook in item.webhooks
    ]


def expected(url: str) -> list[tuple[str, str, str]]:
    bundle = base64.b64encode(b"authority").decode()
    return [("pools-local", url + check.path, bundle), ("pools-local", url + default.path, bundle)]


async def test_configurations_name_the_url_and_the_authority(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    async with run(client):
        assert await entries(client) == expected(URL)
    assert await entries(client) == []
    assert caplog.text == ""


async def test_what_a_killed_process_left_is_replaced(client: Client) -> None:
    """Also where another program has changed it since, whose field it is now."""
    left = run(client, url="https://killed")
    await left.__aenter__()
    for kind in CONFIGURATIONS:
        await client.apply(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind.resource.kind,
                "metadata": {"name": "pools-local"},
                "webhooks": [
                    {
                        "name": (check if kind is ValidatingWebhookConfiguration else default).name,
                        "admissionReviewVersions": ["v1"],
                        "sideEffects": "None",
                        "timeoutSeconds": 7,
                        "clientConfig": {"url": "https://other"},
                    }
                ],
            },
            field_manager="other",
            force=True,
        )
    async with run(client):
        assert await entries(client) == expected(URL)
    assert await entries(client) == []


async def test_a_configuration_that_was_taken_over_stays(client: Client) -> None:
    async with run(client):
        later = run(client, url="https://later")
        await later.__aenter__()
    assert await entries(client) == expected("https://later")
    await later.__aexit__(None, None, None)
    assert await entries(client) == []


async def test_a_configuration_that_is_gone_already_is_nothing_to_report(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with run(client):
        for kind in CONFIGURATIONS:
            await client.delete(kind, "pools-local")
    assert caplog.text == ""


class Wire:
    """A way to the API server that can be cut, or be silent."""

    def __init__(self, server: ApiServer) -> None:
        self._transport = server.transport
        self.state = ""

    async def send(self, request: Request) -> Response:
        if self.state == "cut":
            raise ConnectFailed("the network is down")
        if self.state == "silent":
            await asyncio.Event().wait()
        return await self._transport.send(request)

    async def stream(self, request: Request) -> Stream:
        return await self._transport.stream(request)


@pytest.mark.parametrize("state", ["cut", "silent"])
async def test_the_end_does_not_need_the_api_server(
    server: ApiServer, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    wire = Wire(server)
    client = Client(wire, credentials=Static.bearer(server.token))
    loop = asyncio.get_running_loop()
    async with run(client, check):
        wire.state = state
        began = loop.time()
    assert loop.time() - began <= REMOVED_WITHIN
    assert "pools-local could not be removed: " in caplog.text
    assert "; remove it, or writes wait for a webhook that is gone" in caplog.text


async def test_a_configuration_that_changes_while_it_is_removed_stays(
    server: ApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    class Overtaken(Wire):
        async def send(self, request: Request) -> Response:
            if request.method == "DELETE":
                touched = MergePatch({"metadata": {"labels": {"touched": "yes"}}})
                await client.patch(ValidatingWebhookConfiguration, "pools-local", touched)
            return await super().send(request)

    async with run(Client(Overtaken(server), credentials=Static.bearer(server.token)), check):
        pass
    assert await entries(client) == expected(URL)[:1]
    assert "pools-local could not be removed: " in caplog.text


# ------------------------------------------------------------------ conversions


async def conversion(client: Client) -> dict[str, Any]:
    live = await client.get(CustomResourceDefinition.resource, DEFINITION)
    found: dict[str, Any] = live["spec"]["conversion"]
    return found


def by_webhook(**config: Any) -> dict[str, Any]:
    return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}


PATH = f"/convert/{DEFINITION}"
OURS = by_webhook(url=URL + PATH, caBundle=base64.b64encode(b"authority").decode())


def by_service(name: str) -> dict[str, Any]:
    return by_webhook(service={"name": name, "namespace": "default", "path": PATH, "port": 443})


DECLARED = by_service("pool-webhook")


@asynccontextmanager
async def converting(client: Client) -> AsyncIterator[None]:
    async with run(client, Conversion(*VERSIONS)):
        assert await conversion(client) == OURS
        yield


@pytest.mark.parametrize("before", [{"strategy": "None"}, by_service("mine")], ids=["none", "service"])
async def test_afterwards_a_definition_has_its_conversion_of_before(client: Client, before: dict[str, Any]) -> None:
    await client.create(crd_dict(*VERSIONS, conversion=before))
    assert await conversion(client) == before
    async with converting(client):
        pass
    assert await conversion(client) == before


class Troubled(Wire):
    """Patches are refused so many times before they are carried out."""

    def __init__(self, server: ApiServer, refusal: type[ApiStatusError], times: int) -> None:
        super().__init__(server)
        self._refusal, self._times, self._met = refusal, times, Counter[str]()

    async def send(self, request: Request) -> Response:
        if request.method == "PATCH" and self._met[request.target] < self._times:
            self._met[request.target] += 1
            code = {Conflict: 409, InternalError: 500}[self._refusal]
            refusal = {"kind": "Status", "apiVersion": "v1", "reason": self._refusal.__name__, "code": code}
            return Response(code, Headers.of({"content-type": "application/json"}), json.dumps(refusal).encode())
        return await super().send(request)


@pytest.mark.parametrize("refusal", [Conflict, InternalError])
async def test_what_passes_does_not_end_the_process(
    server: ApiServer, client: Client, refusal: type[ApiStatusError]
) -> None:
    await client.create(crd_dict(*VERSIONS))
    troubled = Client(Troubled(server, refusal, ATTEMPTS - 1), credentials=Static.bearer(server.token))
    async with run(troubled, Conversion(*VERSIONS), check):
        assert await conversion(client) == OURS
        assert await entries(client) == expected(URL)[:1]
    endless = Client(Troubled(server, refusal, ATTEMPTS), credentials=Static.bearer(server.token))
    with pytest.raises(refusal):
        await run(endless, Conversion(*VERSIONS)).__aenter__()


async def test_a_conversion_that_a_killed_process_left_becomes_the_declared_one(client: Client) -> None:
    await client.create(crd_dict(*VERSIONS, conversion=by_webhook(url="https://killed/convert")))
    async with converting(client):
        pass
    assert await conversion(client) == DECLARED


async def test_a_conversion_that_was_taken_over_stays(client: Client) -> None:
    await client.create(crd_dict(*VERSIONS))
    async with converting(client):
        later = run(client, Conversion(*VERSIONS), url="https://later")
        await later.__aenter__()
    assert (await conversion(client))["webhook"]["clientConfig"]["url"] == "https://later" + PATH
    await later.__aexit__(None, None, None)
    assert await conversion(client) == DECLARED
