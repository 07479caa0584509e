"""The pod in which an instance runs, and what it needs from the cluster. Pure.

It is an ordinary pod: the cluster's scheduler finds its node, annotates waiting claims with it and says why when there
is none, and claims are in use for as long as it lives. Upstream: pkg/virt-controller/services/template.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Any

from konverge.cache.record import Meta, Record
from konverge.objects.codec import decoder
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.objects.quantity import Quantity
from konverge.runtime import Request
from konverge.runtime.context import Caches
from konverge.sim.kubelet.behaviour import ANNOTATION
from konverge.sim.kubevirt.controller import under
from konverge.sim.kubevirt.kinds import DataVolume, Instance, Obj, label_value, reference

IMAGE = "quay.io/kubevirt/virt-launcher:v1.8.0"
TARGET = "kubevirt.io/migrationJobUID"
"""The label of a pod that an instance moves to."""
CREATED_BY = "kubevirt.io/created-by"
NODE = "kubevirt.io/nodeName"
"""The label of an instance that says where it is."""
BINDS_ONLY = "kubevirt.io/ephemeral-provisioning"
"""The label of a pod that is there to have claims bound, and does nothing else."""
OVERHEAD = 220 << 20
_CPU_RATIO = 10
_PLACING = (
    "nodeSelector",
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "schedulerName",
    "affinity",
    "dnsPolicy",
    "dnsConfig",
)


def claims_of(spec: Obj) -> dict[str, str]:
    """By volume: the claim that it is in."""
    claims = {}
    for volume in spec.get("volumes", []):
        if "persistentVolumeClaim" in volume:
            claims[volume["name"]] = str(volume["persistentVolumeClaim"]["claimName"])
        elif "dataVolume" in volume:
            claims[volume["name"]] = str(volume["dataVolume"]["name"])
    return claims


def data_volumes_of(spec: Obj) -> list[str]:
    """Those that it names as such; a claim that a DataVolume fills is only a claim to KubeVirt."""
    return [str(volume["dataVolume"]["name"]) for volume in spec.get("volumes", []) if "dataVolume" in volume]


def attachments_of(spec: Obj, namespace: str) -> list[tuple[str, str]]:
    """Namespace and name of the network attachments that it names."""
    attachments = []
    for network in spec.get("networks", []):
        if "multus" in network:
            place, _, name = str(network["multus"]["networkName"]).rpartition("/")
            attachments.append((place or namespace, name))
    return attachments


_IN_VOLUMES = (
    ("cloudInitNoCloud", "secretRef", "name"),
    ("cloudInitNoCloud", "networkDataSecretRef", "name"),
    ("cloudInitConfigDrive", "secretRef", "name"),
    ("cloudInitConfigDrive", "networkDataSecretRef", "name"),
    ("sysprep", "secret", "name"),
    ("secret", "secretName"),
)
_IN_CREDENTIALS = tuple((key, "source", "secret", "secretName") for key in ("sshPublicKey", "userPassword"))


def secrets_of(spec: Obj) -> list[str]:
    """The Secrets without which its pod does not start."""
    names = [_dig(volume, path) for volume in spec.get("volumes", []) for path in _IN_VOLUMES]
    names += [_dig(credential, path) for credential in spec.get("accessCredentials", []) for path in _IN_CREDENTIALS]
    return list(dict.fromkeys(name for name in names if name))


def _dig(obj: Obj, path: Iterable[str]) -> str:
    value: Any = obj
    for key in path:
        value = (value or {}).get(key)
    return str(value or "")


def by_claim(record: Record, meta: Meta) -> Iterable[str]:
    """Index: the claims of an instance."""
    return tuple(f"{meta.namespace}/{name}" for name in claims_of(decoder(Instance).decode(record.raw).spec).values())


def by_attachment(record: Record, meta: Meta) -> Iterable[str]:
    """Index: the network attachments of an instance."""
    spec = decoder(Instance).decode(record.raw).spec
    return tuple(f"{place}/{name}" for place, name in attachments_of(spec, meta.namespace))


def users(claim: PersistentVolumeClaim | DataVolume, caches: Caches) -> Iterable[Request]:
    """The instances that use a claim; a DataVolume has the name of its claim. By the index `claim`."""
    return under(caches, Instance, "claim", f"{claim.metadata.namespace}/{claim.metadata.name}")


def is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def stays(stop: float) -> str:
    """The behaviour of a launcher: it runs until it is stopped, although its pod is not restarted."""
    return f"runs, stop {stop:.3f}s"


def pod_for(instance: Instance, behaviour: str, *, labels: Obj | None = None, away_from: str = "") -> Obj:
    """The launcher pod; `away_from` is the node that it must not be on."""
    spec, meta = instance.spec, instance.metadata
    own = {"kubevirt.io": "virt-launcher", CREATED_BY: meta.uid, "vm.kubevirt.io/name": label_value(meta.name)}
    container: Obj = {"name": "compute", "image": IMAGE, "resources": _resources(spec)}
    made: Obj = {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": int(spec.get("terminationGracePeriodSeconds", 180)) + 15,
        "volumes": [_volume(name, claim) for name, claim in claims_of(spec).items()],
        **{key: spec[key] for key in _PLACING if key in spec},
    }
    if away_from:
        made["affinity"] = {**made.get("affinity", {}), **_elsewhere(away_from)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"virt-launcher-{meta.name}-",
            "namespace": meta.namespace,
            "labels": {**meta.labels, **own, **(labels or {})},
            "annotations": {ANNOTATION: behaviour},
            "ownerReferences": [reference(instance)],
        },
        "spec": made,
    }


def binder_for(instance: Instance, claims: Iterable[str]) -> Obj:
    """A pod whose only use is that these claims hear of a node."""
    made = pod_for(instance, stays(0), labels={BINDS_ONLY: "true"})
    made["spec"]["volumes"] = [_volume(name, name) for name in claims]
    made["spec"]["terminationGracePeriodSeconds"] = 0
    return made


def _volume(name: str, claim: str) -> Obj:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def _resources(spec: Obj) -> Obj:
    domain = spec["domain"]
    cpu = domain.get("cpu", {})
    count = int(cpu.get("sockets", 1)) * int(cpu.get("cores", 1)) * int(cpu.get("threads", 1))
    memory = ceil(float(Quantity(str(domain.get("memory", {}).get("guest", "1Gi")))))
    asked = (domain.get("resources") or {}).get("requests") or {}
    devices: dict[str, int] = {}
    for device in (*domain["devices"].get("gpus", []), *domain["devices"].get("hostDevices", [])):
        devices[device["deviceName"]] = devices.get(device["deviceName"], 0) + 1
    counted = {name: str(number) for name, number in devices.items()}
    requests = {"cpu": asked.get("cpu") or f"{1000 * count // _CPU_RATIO}m", "memory": str(memory + OVERHEAD)}
    return {"requests": {**requests, **counted}, **({"limits": counted} if counted else {})}


def _elsewhere(node: str) -> Obj:
    term = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
