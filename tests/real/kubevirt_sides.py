"""virt-controller and virt-api on one server, and the simulated KubeVirt on another: for the same stories.

virt-api hears every write of virt-controller, which has the name of its service account for that. `kubevirt.handling`
says what the virt-handlers of two nodes would say about a guest that moves, and `snapshotting` what a CSI driver would
say about a snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from konverge.client import BadRequest, Client, MergePatch, NotFound, load_config
from konverge.objects import times
from konverge.objects.resource import Resource
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.real import kubevirt
from tests.real.cdi import DRIVER, storage
from tests.real.embedded import embedded_server
from tests.real.kubevirt import Obj
from tests.real.loopback import PATIENCE
from tests.sim.kubevirt.conftest import SPACE, VOLUME_SNAPSHOTS, kinds_of_volume_snapshots
from tests.sim.kubevirt.test_snapshots import SNAPSHOT

VOLUME_SNAPSHOT = Resource(VOLUME_SNAPSHOTS, "v1", "VolumeSnapshot", "volumesnapshots")


@asynccontextmanager
async def real_side(folder: Path) -> AsyncIterator[Client]:
    installed = kubevirt.printed(kubevirt.programs("virt-controller", "virt-api", "kubevirt-definitions"))
    place = folder / "real"
    place.mkdir()
    with embedded_server(place) as kubeconfig:
        async with kubevirt.cluster(kubeconfig) as client:
            await _prepare(client)
            await kubevirt.install(client, installed)
            handler = load_config(kubeconfig=str(kubevirt.as_part(kubeconfig, "handler")))
            async with kubevirt.webhooks(client, kubeconfig, place, installed), Client.connect(handler) as handlers:
                with kubevirt.controller(kubevirt.as_part(kubeconfig, "controller"), place):
                    async with kubevirt.handling(handlers), snapshotting(client):
                        await _configured(client)
                        yield client


@asynccontextmanager
async def simulated_side(folder: Path) -> AsyncIterator[Client]:
    place = folder / "simulated"
    place.mkdir()
    with embedded_server(place) as kubeconfig:
        async with kubevirt.cluster(kubeconfig) as client:
            await _prepare(client)
            async with SimulatedKubeVirt(client, parts=["kubevirt", "snapshot"], timings=QUICK):
                yield client


def snapshot_of(name: str, machine_name: str) -> Obj:
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": machine_name}
    return {
        "apiVersion": f"{SNAPSHOT.group}/v1beta1",
        "kind": SNAPSHOT.kind,
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"source": source},
    }


@asynccontextmanager
async def snapshotting(client: Client) -> AsyncIterator[None]:
    """A snapshot of a volume is there as soon as it is asked for."""

    async def take() -> None:
        async for event in client.watch(VOLUME_SNAPSHOT, ""):
            if event.type == "ADDED" and not (event.object.get("status") or {}).get("readyToUse"):
                meta = event.object["metadata"]
                status = {"readyToUse": True, "creationTime": times.now(), "restoreSize": "10Gi"}
                with suppress(NotFound):
                    await client.patch(
                        VOLUME_SNAPSHOT,
                        meta["name"],
                        MergePatch({"status": status}),
                        meta["namespace"],
                        subresource="status",
                    )

    task = asyncio.create_task(take())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _configured(client: Client) -> None:
    """virt-api hears of the gates in the KubeVirt object in its own time."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.create(snapshot_of("probe", "nobody"), resource=SNAPSHOT, dry_run=True)
                return
            except BadRequest:  # "snapshot feature gate not enabled"
                await asyncio.sleep(0.1)


async def _prepare(client: Client) -> None:
    """Storage that can take snapshots: virt-controller looks for it when it starts."""
    await kubevirt.define(client, kinds_of_volume_snapshots())
    for made in storage():
        await client.create(made)
    meta = {"name": "fast"}
    await client.create(
        {
            "apiVersion": f"{VOLUME_SNAPSHOTS}/v1",
            "kind": "VolumeSnapshotClass",
            "metadata": meta,
            "driver": DRIVER,
            "deletionPolicy": "Delete",
        }
    )
