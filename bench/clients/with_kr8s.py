"""kr8s, asynchronous (its synchronous side drives the same code from a thread)."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import kr8s.asyncio
from kr8s.asyncio.objects import ConfigMap, Deployment

from bench._workers import measure_from_here, measure_to_here, on_uvloop, serve
from bench.clients import manifest, names, spread

KINDS: dict[str, Any] = {"ConfigMap": ConfigMap, "Deployment": Deployment}
PLURALS = {"ConfigMap": "configmaps", "Deployment": "deployments.apps"}


class Peer:
    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig

    async def open(self) -> None:
        warnings.simplefilter("ignore", UserWarning)  # "Kubernetes version … is not supported"
        self.api = await kr8s.asyncio.api(kubeconfig=self.kubeconfig)

    async def prepare_create(self, kind: str, namespace: str, count: int) -> None:
        made = [KINDS[kind](manifest(kind, name, namespace), api=self.api) for name in names(count)]
        self.objects = [await wanted for wanted in made]

    async def create(self, kind: str, namespace: str, count: int) -> None:
        async def create(wanted: Any) -> None:
            await wanted.create()
            assert wanted.metadata.uid

        await spread(self.objects, create)

    async def get(self, kind: str, namespace: str, count: int) -> None:
        async def get(name: str) -> None:
            assert (await KINDS[kind].get(name, namespace=namespace, api=self.api)).metadata.name == name

        await spread(names(count), get)

    async def list(self, kind: str, namespace: str, count: int, times: int) -> None:
        for _ in range(times):
            listed = 0
            labels = {"app.kubernetes.io/part-of": "bench"}
            async for item in self.api.get(PLURALS[kind], namespace=namespace, label_selector=labels):
                listed += item.metadata.name != ""
            assert listed == count

    async def watch(self, kind: str, namespace: str, events: int, resource_version: str | None = None) -> None:
        seen = 0
        async for _, item in self.api.watch(PLURALS[kind], namespace=namespace, since=resource_version):
            seen += item.metadata.name != ""
            if seen == 1:
                measure_from_here()
            if seen == events:
                measure_to_here()
                return


if __name__ == "__main__":
    run = on_uvloop()
    peer = Peer(sys.argv[1])
    run(peer.open())
    serve(peer, run)
