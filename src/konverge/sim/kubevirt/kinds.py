"""The foreign kinds as their own controllers see them: metadata is typed, spec and status are plain data.

They are apart from the classes that operators have for the same kinds: what an operator leaves out or misspells must
not be what the simulation leaves out as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

from konverge.client import Client, MergePatch, NotFound
from konverge.client.patches import difference
from konverge.objects import times
from konverge.objects.meta import Object
from konverge.objects.resource import Resource

Obj = dict[str, Any]
K = TypeVar("K", bound=Object)
T = TypeVar("T", bound="Foreign")
OVER = ("Succeeded", "Failed")
"""The last phases of instances, migrations and snapshots."""

KUBEVIRT = "kubevirt.io"
SNAPSHOT = "snapshot.kubevirt.io"
CDI = "cdi.kubevirt.io"
NMSTATE = "nmstate.io"


class Foreign(Object):
    """The base: what is inside is as the API has it."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class KubeVirt(Foreign):
    resource = Resource(KUBEVIRT, "v1", "KubeVirt", "kubevirts")


class VirtualMachine(Foreign):
    resource = Resource(KUBEVIRT, "v1", "VirtualMachine", "virtualmachines")


class Instance(Foreign):
    """A VirtualMachineInstance."""

    resource = Resource(KUBEVIRT, "v1", "VirtualMachineInstance", "virtualmachineinstances")


class Migration(Foreign):
    """A VirtualMachineInstanceMigration."""

    resource = Resource(KUBEVIRT, "v1", "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations")


class Snapshot(Foreign):
    """A VirtualMachineSnapshot."""

    resource = Resource(SNAPSHOT, "v1beta1", "VirtualMachineSnapshot", "virtualmachinesnapshots")


class SnapshotContent(Foreign):
    """A VirtualMachineSnapshotContent: what a snapshot keeps."""

    resource = Resource(SNAPSHOT, "v1beta1", "VirtualMachineSnapshotContent", "virtualmachinesnapshotcontents")


class Restore(Foreign):
    """A VirtualMachineRestore."""

    resource = Resource(SNAPSHOT, "v1beta1", "VirtualMachineRestore", "virtualmachinerestores")


class DataVolume(Foreign):
    resource = Resource(CDI, "v1beta1", "DataVolume", "datavolumes")


class DataSource(Foreign):
    resource = Resource(CDI, "v1beta1", "DataSource", "datasources")


class NetworkAttachment(Foreign):
    """A NetworkAttachmentDefinition."""

    resource = Resource("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions")


class NodePolicy(Foreign):
    """A NodeNetworkConfigurationPolicy."""

    resource = Resource(
        NMSTATE, "v1", "NodeNetworkConfigurationPolicy", "nodenetworkconfigurationpolicies", namespaced=False
    )


class NodeState(Foreign):
    """A NodeNetworkState."""

    resource = Resource(NMSTATE, "v1beta1", "NodeNetworkState", "nodenetworkstates", namespaced=False)


class Enactment(Foreign):
    """A NodeNetworkConfigurationEnactment: one policy on one node."""

    resource = Resource(
        NMSTATE, "v1beta1", "NodeNetworkConfigurationEnactment", "nodenetworkconfigurationenactments", namespaced=False
    )


# ------------------------------------------------------------------ plain data


def condition(status: Obj, name: str) -> Obj:
    """The condition of a type, or nothing."""
    return next((entry for entry in status.get("conditions", []) if entry["type"] == name), {})


def is_true(status: Obj, name: str) -> bool:
    return bool(condition(status, name).get("status") == "True")


def set_condition(status: Obj, name: str, value: str | bool, reason: str = "", message: str = "") -> None:
    """`lastTransitionTime` moves with the status alone."""
    present = condition(status, name)
    word = value if isinstance(value, str) else str(value)
    made: Obj = {"type": name, "status": word}
    made |= {key: text for key, text in (("reason", reason), ("message", message)) if text}
    same = present.get("status") == word
    made["lastTransitionTime"] = present["lastTransitionTime"] if same else times.now()
    others = [entry for entry in status.get("conditions", []) if entry["type"] != name]
    status["conditions"] = sorted([*others, made], key=lambda entry: str(entry["type"]))


def drop_condition(status: Obj, name: str) -> None:
    if condition(status, name):
        status["conditions"] = [entry for entry in status["conditions"] if entry["type"] != name]


def record_phase(status: Obj, phase: str) -> None:
    """Into the next phase, and when that was."""
    status["phase"] = phase
    stamp = {"phase": phase, "phaseTransitionTimestamp": times.now()}
    status["phaseTransitionTimestamps"] = [*status.get("phaseTransitionTimestamps", []), stamp]


async def live(client: Client, kind: type[K], name: str, namespace: str) -> K | None:
    """The object as the server has it now."""
    try:
        return await client.get(kind, name, namespace)
    except NotFound:
        return None


async def patch(client: Client, obj: K, body: Obj, *, subresource: str = "") -> K:
    """A merge patch of just this object: not of another one that has its name by now."""
    meta = obj.metadata
    guarded = MergePatch({**body, "metadata": {**body.get("metadata", {}), "uid": meta.uid}})
    return await client.patch(type(obj), meta.name, guarded, meta.namespace, subresource=subresource)


async def save(client: Client, obj: Foreign, before: Obj, *, main: bool = False) -> None:
    """Write the status as the difference to what it was; with `main` on the object itself, as a VMI has it."""
    changed = difference(before, obj.status)
    if changed:
        await patch(client, obj, {"status": changed}, subresource="" if main else "status")


def kept(obj: Foreign) -> Obj:
    """The status as it is now, to take the difference from."""
    return deepcopy(obj.status)


def reference(obj: Object, *, controller: bool = True) -> Obj:
    return {
        "apiVersion": obj.api_version,
        "kind": obj.kind,
        "name": obj.metadata.name,
        "uid": obj.metadata.uid,
        "controller": controller,
        "blockOwnerDeletion": True,
    }


def label_value(name: str) -> str:
    """A name as the value of a label, which is shorter than names may be."""
    return name[:63].rstrip("-._")


async def without_finalizer(client: Client, obj: Object, *names: str) -> None:
    """Take these finalizers off, if they are there."""
    left = [finalizer for finalizer in obj.metadata.finalizers if finalizer not in names]
    if len(left) != len(obj.metadata.finalizers):
        await _set_finalizers(client, obj, left)


async def with_finalizers(client: Client, obj: Object, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in obj.metadata.finalizers]
    if missing:
        await _set_finalizers(client, obj, [*obj.metadata.finalizers, *missing])


async def _set_finalizers(client: Client, obj: Object, names: list[str]) -> None:
    """Guarded: a list is replaced as a whole, and others have finalizers too."""
    meta = obj.metadata
    guard = {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": names}
    done = await client.patch(type(obj), meta.name, MergePatch({"metadata": guard}), meta.namespace)
    meta.resource_version, meta.finalizers = done.metadata.resource_version, names
