"""lightkube, synchronous and asynchronous."""

from __future__ import annotations

import sys
from typing import Any

from lightkube import AsyncClient, Client, KubeConfig
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap

from bench._workers import measure_from_here, measure_to_here, on_uvloop, serve
from bench.clients import manifest, names, spread

KINDS: dict[str, Any] = {"ConfigMap": ConfigMap, "Deployment": Deployment}
LABELS = {"app.kubernetes.io/part-of": "bench"}


def prepared(kind: str, namespace: str, count: int) -> list[Any]:
    return [KINDS[kind].from_dict(manifest(kind, name, namespace)) for name in names(count)]


class Peer:
    def __init__(self, kubeconfig: str) -> None:
        self.client = Client(config=KubeConfig.from_file(kubeconfig), trust_env=False)

    def prepare_create(self, kind: str, namespace: str, count: int) -> None:
        self.objects = prepared(kind, namespace, count)

    def create(self, kind: str, namespace: str, count: int) -> None:
        for wanted in self.objects:
            assert self.client.create(wanted).metadata.uid

    def get(self, kind: str, namespace: str, count: int) -> None:
        for name in names(count):
            assert self.client.get(KINDS[kind], name, namespace=namespace).metadata.name == name

    def list(self, kind: str, namespace: str, count: int, times: int) -> None:
        for _ in range(times):
            listed = self.client.list(KINDS[kind], namespace=namespace, labels=LABELS)
            assert sum(item.metadata.name != "" for item in listed) == count

    def watch(self, kind: str, namespace: str, events: int, **since: str) -> None:
        seen = 0
        for _, item in self.client.watch(KINDS[kind], namespace=namespace, **since):
            seen += item.metadata.name != ""
            if seen == 1:
                measure_from_here()
            if seen == events:
                measure_to_here()
                return


class AsyncPeer:
    def __init__(self, kubeconfig: str) -> None:
        self.client = AsyncClient(config=KubeConfig.from_file(kubeconfig), trust_env=False)

    def prepare_create(self, kind: str, namespace: str, count: int) -> None:
        self.objects = prepared(kind, namespace, count)

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
            listed = 0
            async for item in self.client.list(KINDS[kind], namespace=namespace, labels=LABELS):
                listed += item.metadata.name != ""
            assert listed == count

    async def watch(self, kind: str, namespace: str, events: int, **since: str) -> None:
        seen = 0
        async for _, item in self.client.watch(KINDS[kind], namespace=namespace, **since):
            seen += item.metadata.name != ""
            if seen == 1:
                measure_from_here()
            if seen == events:
                measure_to_here()
                return

    async def close(self) -> None:
        await self.client.close()


async def made(kubeconfig: str) -> AsyncPeer:
    """Its connections belong to the loop that it is made on."""
    return AsyncPeer(kubeconfig)


if __name__ == "__main__":
    if sys.argv[2] == "async":
        run = on_uvloop()
        serve(run(made(sys.argv[1])), run)
    else:
        serve(Peer(sys.argv[1]))
