"""Caches of metadata, of a projection and behind a transform, filled by the real kube-apiserver."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from konverge.cache import CacheSpec, Informer, Key
from konverge.client import Client, MergePatch, load_config
from konverge.client.call import Call
from konverge.objects.kinds.core_v1 import Namespace, Secret
from konverge.objects.meta import Object, ObjectMeta
from konverge.wire.message import Response, Stream
from tests.real.clients.waiting import LIMIT
from tools.control_plane import ControlPlane


class SecretType(Object):
    """A Secret without its content."""

    resource = Secret.resource
    type: str = ""


def sizes(secret: dict[str, Any]) -> dict[str, Any]:
    secret["data"] = {name: str(len(value)) for name, value in secret.get("data", {}).items()}
    return secret


class Counting:
    """What a cache was sent, in bytes."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.near, self.received = inner, inner.near, 0

    async def call(self, call: Call) -> Response:
        response: Response = await self._inner.call(call)
        self.received += len(response.body)
        return response

    async def stream(self, call: Call) -> Stream:
        return _CountedStream(await self._inner.stream(call), self)


class _CountedStream:
    def __init__(self, inner: Stream, counting: Counting) -> None:
        self._inner, self._counting = inner, counting
        self.status, self.headers = inner.status, inner.headers

    async def __aiter__(self) -> Any:
        async for chunk in self._inner:
            self._counting.received += len(chunk)
            yield chunk

    async def read(self) -> bytes:
        return await self._inner.read()

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.mark.spec("R-55", "R-57")
@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
@pytest.mark.parametrize(
    ("options", "fields", "small"),
    [
        ({"metadata_only": True}, {"metadata"}, True),
        ({"projection": SecretType}, {"apiVersion", "kind", "metadata", "type"}, False),
        ({"transform": sizes}, {"apiVersion", "kind", "metadata", "type", "data"}, False),
    ],
    ids=["metadata", "projection", "transform"],
)
async def test_a_partial_cache_follows_the_real_server(
    real_server: ControlPlane,
    request: pytest.FixtureRequest,
    options: dict[str, Any],
    fields: set[str],
    small: bool,
    streaming: bool,
) -> None:
    """The first state, then an update, a creation and a deletion."""
    space = "partial-" + request.node.callspec.id.replace("_", "-")
    content = {"k": "eHh4" * 5_000}

    def secret(name: str) -> Secret:
        return Secret(metadata=ObjectMeta(name=name, namespace=space, labels={"app": "web"}), data=content)

    async with Client.connect(load_config(kubeconfig=real_server.kubeconfig)) as client:
        await client.create(Namespace(metadata=ObjectMeta(name=space)))
        for name in ("gone", "kept"):
            await client.create(secret(name))
        caller = Counting(client.caller)
        spec = CacheSpec(resource=Secret.resource, namespaces=(space,), streaming=streaming, **options)
        informer = Informer(caller, spec)
        running = asyncio.create_task(informer.run())
        async with asyncio.timeout(LIMIT):
            await informer.synced.wait()
            await client.patch(Secret, "kept", MergePatch({"metadata": {"labels": {"app": "new"}}}), space)
            await client.delete(Secret, "gone", space)
            last = await client.create(secret("made"))
            await informer.wait_for_version(Key(space, "made"), int(last.metadata.resource_version))
        cached = dict(informer.items())
        assert {key.name for key in cached} == {"kept", "made"}
        for record in cached.values():
            assert set(msgspec.json.decode(record.raw)) == fields
            assert len(record.raw) < 1_000
        assert cached[Key(space, "kept")].meta.labels == {"app": "new"}
        assert (caller.received < 10_000) is small, "of metadata the content is not even sent"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
