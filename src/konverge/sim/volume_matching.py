"""Which volume a claim takes: its own, or the smallest free one that will do. Pure.

The binder asks for claims that are bound at once, the scheduler for those that wait for a pod: it asks node by node.

Upstream: k8s.io/component-helpers/storage/volume, findMatchingVolumes (pkg/scheduler/framework/plugins/volumebinding).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from konverge.kube.placement import selector_matches
from konverge.objects.kinds.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from konverge.objects.labels import from_selector
from konverge.objects.quantity import Quantity

_PROVISIONED_FROM = (None, "", "snapshot.storage.k8s.io")
"""The groups of sources that a provisioner copies itself; others are a volume populator's."""


def is_populated(claim: PersistentVolumeClaim) -> bool:
    source = claim.spec.data_source_ref
    return source is not None and source.api_group not in _PROVISIONED_FROM


def claim_names(pod: Pod) -> list[str]:
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return names


def own_volume(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> PersistentVolume | None:
    return next((volume for volume in volumes if _is_for(volume, claim)), None)


def on_node(
    claims: Iterable[PersistentVolumeClaim], volumes: Sequence[PersistentVolume], node: Node
) -> dict[str, PersistentVolume]:
    """What claims of one namespace would take on a node, each another volume, the smallest claims first."""
    taken: dict[str, PersistentVolume] = {}
    left = {volume.metadata.name: volume for volume in volumes if _reaches(node, volume)}
    for claim in sorted(claims, key=lambda claim: requested(claim) or Quantity(0)):
        volume = own_volume(claim, volumes) or smallest(claim, left.values())
        if volume is not None and left.pop(volume.metadata.name, None) is not None:
            taken[claim.metadata.name] = volume
    return taken


def smallest(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> PersistentVolume | None:
    """The smallest free volume that will do. Upstream: FindMatchingVolume (k8s.io/component-helpers/storage/volume)."""
    fitting = [volume for volume in volumes if volume.spec.claim_ref is None and _will_do(volume, claim)]
    return min(fitting, key=lambda volume: (_size(volume), volume.metadata.name), default=None)


def _reaches(node: Node, volume: PersistentVolume) -> bool:
    """Whether pods on a node can use a volume. Upstream: CheckNodeAffinity."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    return required is None or selector_matches(required, node)


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Made for this claim, or reserved for its name, or named by it."""
    owner = volume.spec.claim_ref
    if owner is None:
        return claim.spec.volume_name == volume.metadata.name
    same = (owner.namespace, owner.name) == (claim.metadata.namespace, claim.metadata.name)
    return same and owner.uid in (None, "", claim.metadata.uid)


def _will_do(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    spec, asked = volume.spec, claim.spec
    amount = requested(claim)
    return (
        not asked.volume_name
        and volume.metadata.deletion_timestamp is None
        and (spec.storage_class_name or "") == (asked.storage_class_name or "")
        and (spec.volume_mode or "Filesystem") == (asked.volume_mode or "Filesystem")
        and set(asked.access_modes) <= set(spec.access_modes)
        and (amount is None or _size(volume) >= amount)
        and (asked.selector is None or from_selector(asked.selector).matches(volume.metadata.labels))
    )


def _size(volume: PersistentVolume) -> Quantity:
    return volume.spec.capacity.get("storage", Quantity(0))


def requested(claim: PersistentVolumeClaim) -> Quantity | None:
    return claim.spec.resources.requests.get("storage") if claim.spec.resources else None
