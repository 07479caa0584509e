"""What a pod's volumes ask of the scheduler: claims that must be bound first, or that wait to hear of a node. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from konverge.cache import Lister
from konverge.kube.placement import selector_matches
from konverge.objects.kinds.core_v1 import NodeSelector, PersistentVolume, PersistentVolumeClaim, Pod
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.sim.scheduler.state import NodeInfo

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"
CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(slots=True)
class Volumes:
    """What was found out about the claims of one pod."""

    problem: str = ""
    """Why it cannot be placed at all."""
    waiting: list[PersistentVolumeClaim] = field(default_factory=list)
    """Claims that are bound when they hear of a node."""
    places: list[NodeSelector] = field(default_factory=list)
    pinned: str = ""
    """The node that a claim is annotated with already."""

    def problems(self, node: NodeInfo) -> list[str]:
        if self.pinned and node.name != self.pinned:
            return [CONFLICT]
        return [] if all(selector_matches(place, node.node) for place in self.places) else [CONFLICT]


@dataclass(slots=True)
class Claims:
    """The caches that are asked."""

    claims: Lister[PersistentVolumeClaim]
    volumes: Lister[PersistentVolume]
    classes: Lister[StorageClass]

    def of(self, pod: Pod) -> Volumes:
        volumes = Volumes()
        for name in claim_names(pod):
            claim = self.claims.get(name, pod.metadata.namespace)
            volumes.problem = self._judge(name, claim, volumes)
            if volumes.problem:
                break
        return volumes

    def _judge(self, name: str, claim: PersistentVolumeClaim | None, volumes: Volumes) -> str:
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if claim.spec.volume_name and claim.status.phase == "Bound":
            volume = self.volumes.get(claim.spec.volume_name)
            affinity = volume.spec.node_affinity if volume is not None else None
            if affinity is not None and affinity.required is not None:
                volumes.places.append(affinity.required)
            return ""
        if not self._waits(claim):
            return _UNBOUND
        volumes.waiting.append(claim)
        volumes.pinned = claim.metadata.annotations.get(SELECTED_NODE, volumes.pinned)
        return ""

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        kind = self.classes.get(claim.spec.storage_class_name or "") if claim.spec.storage_class_name else None
        return kind is not None and kind.volume_binding_mode == "WaitForFirstConsumer"


def claim_names(pod: Pod) -> list[str]:
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return names
