"""The migration of stored objects, on a resource whose versions differ only in their names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Invalid, JsonPatch, NotFound, Static
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.runtime.webhooks import migrate_stored_versions
from konverge.runtime.webhooks.stored_versions import KNOWN_AFTER
from konverge.wire.message import Request, Response, Stream

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-75")]

NAME = "lamps.example.com"


class Interrupted:
    """A way to the API server on which something happens before the first patch of a lamp."""

    def __init__(self, server: ApiServer, event: Callable[[], Awaitable[Any]]) -> None:
        self._transport, self._event = server.transport, event
        self._happened = False

    async def send(self, request: Request) -> Response:
        if request.method == "PATCH" and "/lamps/" in request.target and not self._happened:
            self._happened = True
            await self._event()
        return await self._transport.send(request)

    async def stream(self, request: Request) -> Stream:
        return await self._transport.stream(request)


async def define(client: Client, scope: str = "Namespaced") -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": n, "served": True, "storage": n == "v1", "schema": schema} for n in ("v1", "v2")]
    names = {"plural": "lamps", "singular": "lamp", "kind": "Lamp"}
    spec = {"group": "example.com", "scope": scope, "names": names, "versions": versions}
    obj = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME}}
    await client.create({**obj, "spec": spec})


async def create(client: Client, *names: str, namespace: str = "default") -> None:
    for name in names:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        await client.create({"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": metadata})


async def store(client: Client, number: int) -> None:
    storage = [{"op": "replace", "path": f"/spec/versions/{n}/storage", "value": n == number} for n in range(2)]
    await client.patch(CustomResourceDefinition, NAME, JsonPatch(storage))


async def store_second(client: Client) -> None:
    await store(client, 1)


async def stored(client: Client) -> list[str]:
    return (await client.get(CustomResourceDefinition, NAME)).status.stored_versions


@pytest.mark.parametrize(("scope", "namespace"), [("Namespaced", "default"), ("Cluster", "")])
async def test_objects_are_counted_and_the_list_is_trimmed(client: Client, scope: str, namespace: str) -> None:
    await define(client, scope)
    await create(client, "a", "b", "c", namespace=namespace)
    assert await migrate_stored_versions(client, NAME) == 0, "there is one version"
    await store_second(client)
    assert await stored(client) == ["v1", "v2"]
    assert await migrate_stored_versions(client, NAME) == 3
    assert await stored(client) == ["v2"]


async def test_without_objects_only_the_list_is_trimmed(client: Client) -> None:
    await define(client)
    await store_second(client)
    assert await migrate_stored_versions(client, NAME) == 0
    assert await stored(client) == ["v2"]


async def test_an_object_that_is_deleted_meanwhile_is_left_out(server: ApiServer, client: Client) -> None:
    await define(client)
    await create(client, "a", "b", "c")
    await store_second(client)

    async def delete() -> None:
        await client.delete("lamps.example.com", "a", "default")

    interrupted = Client(Interrupted(server, delete), credentials=Static.bearer(server.token))
    assert await migrate_stored_versions(interrupted, NAME) == 2
    assert await stored(client) == ["v2"]


async def test_a_definition_that_is_changed_meanwhile_keeps_its_list(server: ApiServer, client: Client) -> None:
    await define(client)
    await create(client, "a")
    await store_second(client)

    async def back() -> None:
        await store(client, 0)

    interrupted = Client(Interrupted(server, back), credentials=Static.bearer(server.token))
    with pytest.raises(Invalid):
        await migrate_stored_versions(interrupted, NAME)
    assert await stored(client) == ["v1", "v2"]


async def test_a_stored_version_that_was_another_one_for_a_while_keeps_the_list(
    server: ApiServer, client: Client
) -> None:
    """What was created in that while is stored in the other version, and may be behind in the list of objects."""
    await define(client)
    await create(client, "b")
    await store_second(client)

    async def there_and_back() -> None:
        await store(client, 0)
        await create(client, "a")
        await store_second(client)

    interrupted = Client(Interrupted(server, there_and_back), credentials=Static.bearer(server.token))
    with pytest.raises(Invalid):
        await migrate_stored_versions(interrupted, NAME)
    assert await stored(client) == ["v1", "v2"]
    assert await migrate_stored_versions(client, NAME) == 2
    assert await stored(client) == ["v2"]


class LearnsLate:
    """A way to an API server that stores by the definition as it was, until it has learned of the change.

    What it does with a patch without a change until then is nothing.
    """

    def __init__(self, server: ApiServer, seconds: float) -> None:
        self._transport = server.transport
        self._known = asyncio.get_running_loop().time() + seconds
        self.stored: list[str] = []

    async def send(self, request: Request) -> Response:
        if request.method == "PATCH" and "/lamps/" in request.target:
            if asyncio.get_running_loop().time() < self._known:
                return await self._transport.send(Request("GET", request.target, request.headers))
            self.stored.append(request.target.rpartition("/")[2])
        return await self._transport.send(request)

    async def stream(self, request: Request) -> Stream:
        return await self._transport.stream(request)


async def test_an_api_server_that_learns_late_of_the_definition_stores_all_the_same(
    server: ApiServer, client: Client
) -> None:
    await define(client)
    await create(client, "a", "b")
    await store_second(client)
    late = LearnsLate(server, KNOWN_AFTER)
    assert await migrate_stored_versions(Client(late, credentials=Static.bearer(server.token)), NAME) == 2
    assert late.stored == ["a", "b"]


async def test_a_version_that_is_not_served_any_more_is_not_an_object_that_was_deleted(
    server: ApiServer, client: Client
) -> None:
    await define(client)
    await create(client, "a")
    await store_second(client)

    async def end_serving() -> None:
        served = {"op": "replace", "path": "/spec/versions/1/served", "value": False}
        await client.patch(CustomResourceDefinition, NAME, JsonPatch([served]))

    interrupted = Client(Interrupted(server, end_serving), credentials=Static.bearer(server.token))
    with pytest.raises(NotFound) as caught:
        await migrate_stored_versions(interrupted, NAME)
    assert caught.value.kind_missing
    assert await stored(client) == ["v1", "v2"]
