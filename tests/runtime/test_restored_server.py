"""A server that is restored from a backup while clients know its later state: caches list again, operators go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config, WatchLimits
from konverge.apiserver.storage.restore import restore
from konverge.cache import CacheSpec, Change, Informer
from konverge.client import Client, Static
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Manager
from konverge.wire.errors import ConnectFailed
from konverge.wire.message import Request, Response, Stream, Transport
from tests.apiserver.api import Api
from tests.runtime.objects import config_map, secret

pytestmark = pytest.mark.virtual

OFTEN = Config(watch=WatchLimits(bookmark_every=5.0))
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Address:
    """Where the server is: after a restart another one, in between none."""

    def __init__(self) -> None:
        self.server: ApiServer | None = None

    async def stop(self) -> None:
        """First no client finds it any more, then it ends: a stopped one in the same process would still answer."""
        assert self.server is not None
        server, self.server = self.server, None
        await server.stop()

    def _transport(self) -> Transport:
        if self.server is None:
            raise ConnectFailed("refused")
        return self.server.transport

    async def send(self, request: Request) -> Response:
        return await self._transport().send(request)

    async def stream(self, request: Request) -> Stream:
        return await self._transport().stream(request)


def client_of(address: Address) -> Client:
    return Client(address, credentials=Static.bearer("admin"))


async def restored(backup: Path, folder: Path) -> ApiServer:
    """A server with the state of a backup."""
    restore(backup, folder)
    server = ApiServer(token="admin", data_dir=folder, config=OFTEN)
    await server.start()
    return server


async def versions(informer: Informer) -> dict[str, int]:
    return {f"{key.namespace}/{key.name}": record.version for key, record in informer.items()}


async def listed(client: Client) -> dict[str, int]:
    items = await client.list(ConfigMap, "default")
    return {f"default/{item.metadata.name}": int(item.metadata.resource_version) for item in items}


@pytest.mark.spec("T-07", "R-08")
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("away", [0.0, 30.0])
async def test_a_cache_equals_the_restored_state(tmp_path: Path, streaming: bool, away: float) -> None:
    address = Address()
    client = client_of(address)
    address.server = server = ApiServer(token="admin", config=OFTEN)
    await server.start()
    for name in ("kept", "changed", "deleted"):
        await client.create(config_map(name))
    (tmp_path / "backup").write_bytes((await Api(server).send("GET", "/konverge/v1/backup")).body)
    await client.delete(ConfigMap, "deleted", "default")
    await client.create(config_map("late"))
    await client.apply(config_map("changed", v="2"), field_manager="test")

    spec = CacheSpec(resource=ConfigMap.resource, namespaces=("default",), streaming=streaming)
    informer = Informer(client.caller, spec)
    changes: list[Change] = []
    informer.add_handler(changes.append)
    running = asyncio.create_task(informer.run())
    await informer.synced.wait()
    await asyncio.sleep(1)  # it watches
    assert await versions(informer) == await listed(client)
    changes.clear()

    await address.stop()
    await asyncio.sleep(away)
    address.server = again = await restored(tmp_path / "backup", tmp_path / "data")
    await asyncio.sleep(away + 5)  # the back-off of a client, no timeout of a watch
    names = {"default/kept", "default/changed", "default/deleted"}
    assert names <= (await versions(informer)).keys()
    assert "default/late" not in await versions(informer)
    assert await versions(informer) == await listed(client)
    seen = {change.key.name: (change.old is None, change.new is None) for change in changes}
    assert seen["late"] == (False, True)
    assert seen["deleted"] == (True, False)
    assert seen["changed"] == (False, False)
    await client.create(config_map("new"))
    await asyncio.sleep(1)
    assert "default/new" in await versions(informer)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await again.stop()


@pytest.mark.spec("T-07")
async def test_bookmarks_and_events_never_go_back(tmp_path: Path) -> None:
    server = ApiServer(token="admin", config=OFTEN)
    await server.start()
    api = Api(server)
    (tmp_path / "backup").write_bytes((await api.send("GET", "/konverge/v1/backup")).body)
    for number in range(20):
        await api.create(f"n{number}")
    seen = []
    for round_ in range(2):
        start = (await api.call("GET", CONFIG_MAPS))["metadata"]["resourceVersion"]
        async with api.watch(resourceVersion=start, allowWatchBookmarks="true") as watch:
            await api.create(f"new-{round_}")
            events = [await watch.next() for _ in range(3)]
        assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "BOOKMARK"]
        seen += [int(start), *(int(event["object"]["metadata"]["resourceVersion"]) for event in events)]
        await server.stop()
        server = await restored(tmp_path / "backup", tmp_path / f"data-{round_}")
        api = Api(server)
    assert seen == sorted(seen)
    assert seen[4] > seen[3]
    await server.stop()


@pytest.mark.spec("T-07")
async def test_an_operator_on_a_restored_server_goes_on_at_once(tmp_path: Path) -> None:
    """It acts on what is missing again, and on what is created then."""

    async def reconcile(ctx: Context[Secret]) -> None:
        await ctx.apply(config_map(ctx.request.name))

    address = Address()
    client = client_of(address)
    address.server = server = ApiServer(token="admin", config=OFTEN)
    await server.start()
    await client.create(secret("old"))
    (tmp_path / "backup").write_bytes((await Api(server).send("GET", "/konverge/v1/backup")).body)
    for number in range(30):
        await client.create(secret(f"late-{number}"))
    async with Manager(client).add(Controller(Secret, reconcile, owns=[ConfigMap])).running():
        await asyncio.sleep(5)
        assert {"default/old", "default/late-3"} <= (await listed(client)).keys()
        await address.stop()
        address.server = again = await restored(tmp_path / "backup", tmp_path / "data")
        await client.create(secret("new"))
        await asyncio.sleep(5)
        assert {"default/old", "default/new"} <= (await listed(client)).keys()
    await again.stop()
