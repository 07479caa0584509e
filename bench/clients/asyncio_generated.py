"""kubernetes_asyncio and the official client's aio package: the same generator, so the same program."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from bench._workers import measure_from_here, measure_to_here, on_uvloop, serve
from bench.clients import manifest, names, spread


class Peer:
    def __init__(self, package: str, kubeconfig: str) -> None:
        self.client: Any = import_module(f"{package}.client")
        self.config: Any = import_module(f"{package}.config")
        self.watching: Any = import_module(f"{package}.watch")
        self.kubeconfig = kubeconfig

    async def open(self) -> None:
        await self.config.load_kube_config(self.kubeconfig)
        self.api = self.client.ApiClient()
        core, apps = self.client.CoreV1Api(self.api), self.client.AppsV1Api(self.api)
        self.creates = {"ConfigMap": core.create_namespaced_config_map, "Deployment": apps.create_namespaced_deployment}
        self.reads = {"ConfigMap": core.read_namespaced_config_map, "Deployment": apps.read_namespaced_deployment}
        self.lists = {"ConfigMap": core.list_namespaced_config_map, "Deployment": apps.list_namespaced_deployment}

    def prepare_create(self, kind: str, namespace: str, count: int) -> None:
        self.objects = [manifest(kind, name, namespace) for name in names(count)]

    async def create(self, kind: str, namespace: str, count: int) -> None:
        async def create(wanted: Any) -> None:
            assert (await self.creates[kind](namespace, wanted)).metadata.uid

        await spread(self.objects, create)

    async def get(self, kind: str, namespace: str, count: int) -> None:
        async def get(name: str) -> None:
            assert (await self.reads[kind](name, namespace)).metadata.name == name

        await spread(names(count), get)

    async def list(self, kind: str, namespace: str, count: int, times: int) -> None:
        for _ in range(times):
            listed = await self.lists[kind](namespace, label_selector="app.kubernetes.io/part-of=bench")
            assert sum(item.metadata.name != "" for item in listed.items) == count

    async def watch(self, kind: str, namespace: str, events: int, **since: str) -> None:
        seen = 0
        async with self.watching.Watch().stream(self.lists[kind], namespace, **since) as stream:
            async for event in stream:
                seen += event["object"].metadata.name != ""
                if seen == 1:
                    measure_from_here()
                if seen == events:
                    measure_to_here()
                    return

    async def close(self) -> None:
        await self.api.close()


if __name__ == "__main__":
    run = on_uvloop()
    peer = Peer(sys.argv[2], sys.argv[1])
    run(peer.open())
    serve(peer, run)
