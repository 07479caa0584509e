"""A play: a simulated cluster with KubeVirt and the rest on it, and machines to put into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from konverge.client import Client, MergePatch, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Event, PersistentVolumeClaim
from konverge.objects.meta import ObjectMeta
from konverge.objects.resource import Resource
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import SimulatedKubeVirt
from konverge.sim.kubevirt.faults import CONFIG_MAP

SPACE = "default"
VM = Resource("kubevirt.io", "v1", "VirtualMachine", "virtualmachines")
VMI = Resource("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")
VMIM = Resource("kubevirt.io", "v1", "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations")
DV = Resource("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes")
NAD = Resource("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions")
VOLUME_SNAPSHOTS = "snapshot.storage.k8s.io"
USUAL = ("cdi", "multus", "kubevirt")
CONTROLLERS = ("garbage-collector", "pvc-protection", "pv-protection", "podgc")
Obj = dict[str, Any]


def data_volume(name: str, size: str = "10Gi", *, kind: str = "standard", **more: Any) -> Obj:
    source = more.pop("source", {"http": {"url": "http://images/debian.qcow2"}})
    desired = {"storageClassName": kind, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": name, "namespace": SPACE, **more.pop("metadata", {})},
        "spec": {"source": source, "pvc": desired, **more},
    }


def claim(name: str, size: str = "10Gi", *, kind: str = "standard", mode: str = "ReadWriteOnce") -> Obj:
    spec = {"storageClassName": kind, "accessModes": [mode], "resources": {"requests": {"storage": size}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": spec,
    }


def machine(name: str = "web-vm", *claims: str, **more: Any) -> Obj:
    """A VirtualMachine with disks on these claims; `networks` names attachments, by network."""
    networks = more.pop("networks", {})
    interfaces = [{"name": "default", "masquerade": {}}, *({"name": network, "bridge": {}} for network in networks)]
    named = [{"name": item, "multus": {"networkName": nad}} for item, nad in networks.items()]
    template = {
        "domain": {
            "cpu": {"sockets": 2},
            "memory": {"guest": "2Gi"},
            "devices": {
                "disks": [{"name": item, "disk": {"bus": "virtio"}} for item in claims],
                "interfaces": interfaces,
            },
        },
        "networks": [{"name": "default", "pod": {}}, *named],
        "volumes": [{"name": item, "persistentVolumeClaim": {"claimName": item}} for item in claims],
        **more.pop("template", {}),
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": SPACE, **more.pop("metadata", {})},
        "spec": {"runStrategy": "Always", "template": {"metadata": {}, "spec": template}, **more},
    }


def nad(name: str) -> Obj:
    config = '{"cniVersion": "0.3.1", "name": "lan", "type": "bridge", "bridge": "br-lan"}'
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "k8s.cni.cncf.io/v1", "kind": NAD.kind, "metadata": meta, "spec": {"config": config}}


def kinds_of_volume_snapshots() -> list[Obj]:
    """Definitions of what a cluster has that can take snapshots of volumes."""
    scopes = {"VolumeSnapshot": "Namespaced", "VolumeSnapshotContent": "Cluster", "VolumeSnapshotClass": "Cluster"}
    return [_of_volumes(kind, scopes[kind]) for kind in scopes]


def _of_volumes(kind: str, scope: str) -> Obj:
    """One of the kinds of snapshots of volumes: anything goes."""
    plural = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": free}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes-csi/external-snapshotter/pull/814"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{VOLUME_SNAPSHOTS}", "annotations": approved},
        "spec": {
            "group": VOLUME_SNAPSHOTS,
            "scope": scope,
            "names": names,
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


class Play:
    """A cluster with everything on it, and short ways to look at it."""

    def __init__(self, cluster: Cluster, kubevirt: SimulatedKubeVirt) -> None:
        self.cluster = cluster
        self.kubevirt = kubevirt

    @property
    def client(self) -> Client:
        return self.cluster.client

    async def after(self, seconds: float) -> None:
        await self.cluster.clock.advance(seconds)

    async def get(self, kind: Resource, name: str = "web-vm", namespace: str = SPACE) -> Obj:
        return await self.client.get(kind, name, namespace if kind.namespaced else "")

    async def find(self, kind: Resource, name: str = "web-vm") -> Obj | None:
        try:
            return await self.get(kind, name)
        except NotFound:
            return None

    async def status(self, kind: Resource, name: str = "web-vm") -> Obj:
        """Empty when there is no such object."""
        obj: Obj = (await self.find(kind, name) or {}).get("status", {})
        return obj

    async def phase(self, kind: Resource, name: str = "web-vm") -> str:
        return str((await self.status(kind, name)).get("phase", ""))

    async def shown(self, name: str = "web-vm") -> str:
        return str((await self.status(VM, name)).get("printableStatus", ""))

    async def bound(self, name: str) -> str:
        return (await self.client.get(PersistentVolumeClaim, name, SPACE)).status.phase or ""

    async def patch(self, kind: Resource, name: str, body: Obj, **options: Any) -> Obj:
        obj: Obj = await self.client.patch(kind, name, MergePatch(body), SPACE if kind.namespaced else "", **options)
        return obj

    async def until(self, kind: Resource, name: str, *phases: str, limit: float = 600.0) -> list[str]:
        """Seconds pass until the last of these phases; all the phases that were seen on the way."""
        seen = [await self.phase(kind, name)]
        for _ in range(int(limit * 4)):
            if seen[-1] == phases[-1]:
                return seen
            await self.after(0.25)
            now = await self.phase(kind, name)
            if now != seen[-1]:
                seen.append(now)
        raise AssertionError(f"{kind.kind} {name} is {seen[-1]} after {limit:g} s; it was {seen}")

    async def faults(self, **switches: str) -> None:
        """Set the ConfigMap of faults; keys are as `vm` or `vm.web-vm`."""
        made = ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, namespace=SPACE), data=switches)
        await self.client.apply(made, field_manager="test", force=True)

    async def events(self, reason: str) -> list[str]:
        result = await self.client.list(Event, SPACE, field_selector=f"reason={reason}")
        return [item.message or "" for item in result]


def condition(status: Obj, name: str) -> tuple[str, str]:
    """Status and reason."""
    obj: Obj = next((item for item in status.get("conditions", []) if item["type"] == name), {})
    return obj.get("status", ""), obj.get("reason", "")


@asynccontextmanager
async def playing(*, nodes: int = 3, parts: Collection[str] = USUAL, **options: Any) -> AsyncIterator[Play]:
    """Not all parts, unless asked for: each takes its time to install."""
    async with (
        Cluster(nodes=nodes, controllers=CONTROLLERS) as cluster,
        SimulatedKubeVirt(cluster, parts=parts, **options) as kubevirt,
    ):
        yield Play(cluster, kubevirt)
