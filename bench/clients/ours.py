"""Konverge."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import Any

from bench._workers import measure_from_here, measure_to_here, on_uvloop, serve
from bench.clients import manifest, names, spread
from konverge.client import Client, load_config
from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap

KINDS: dict[str, Any] = {"ConfigMap": ConfigMap, "Deployment": Deployment}


class Peer:
    def __init__(self, kubeconfig: str) -> None:
        self.client = Client.connect(load_config(kubeconfig=kubeconfig, environ={}))

    def prepare_create(self, kind: str, namespace: str, count: int) -> None:
        self.objects = [from_dict(KINDS[kind], manifest(kind, name, namespace)) for name in names(count)]

    async def create(self, kind: str, namespace: str, count: int) -> None:
        async def create(wanted: Any) -> None:
            assert (await self.client.create(wanted)).metadata.uid

        await spread(self.objects, create)

    async def get(self, kind: str, namespace: str, count: int) -> None:
        async def get(name: str) -> None:
            assert (await self.client.get(KINDS[kind], name, namespace=namespace)).metadata.name == name

        await spread(names(count), get)

    async def list(self, kind: str, namespace: str, count: int, times: int) -> None:
        for _ in range(times):
            listed = await self.client.list(KINDS[kind], namespace, label_selector="app.kubernetes.io/part-of=bench")
            assert sum(item.metadata.name != "" for item in listed) == count

    async def watch(self, kind: str, namespace: str, events: int, **since: str) -> None:
        seen = 0
        async with aclosing(self.client.watch(KINDS[kind], namespace, **since)) as watching:
            async for event in watching:
                seen += event.object.metadata.name != ""
                if seen == 1:
                    measure_from_here()
                if seen == events:
                    measure_to_here()
                    return

    async def close(self) -> None:
        await self.client.aclose()


if __name__ == "__main__":
    serve(Peer(sys.argv[1]), on_uvloop())
