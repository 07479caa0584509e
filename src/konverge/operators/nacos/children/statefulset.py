"""The StatefulSet.

All pods at once (`Parallel`): an embedded cluster opens its port only when a majority is up. And replaced only when
somebody deletes them (`OnDelete`): the operator does that itself, one at a time, the leader last.
"""

from __future__ import annotations

from konverge.objects import LabelSelector, ObjectMeta, Quantity
from konverge.objects.kinds.apps_v1 import (
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from konverge.objects.kinds.core_v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    VolumeResourceRequirements,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.children.metadata import metadata
from konverge.operators.nacos.children.podtemplate import has_claim, pod_template
from konverge.operators.nacos.wish import Wish


def stateful_set(wish: Wish, config_digest: str = "", secrets_digest: str = "") -> StatefulSet:
    return StatefulSet(
        metadata=metadata(wish, wish.name),
        spec=StatefulSetSpec(
            replicas=wish.replicas,
            service_name=names.headless(wish.name) if wish.cluster else None,
            selector=LabelSelector(match_labels=names.selector(wish.name)),
            pod_management_policy="Parallel",
            update_strategy=StatefulSetUpdateStrategy(type="OnDelete"),
            persistent_volume_claim_retention_policy=_retention(wish),
            template=pod_template(wish, config_digest, secrets_digest),
            volume_claim_templates=[claim_template(wish)] if has_claim(wish) else [],
        ),
    )


def _retention(wish: Wish) -> StatefulSetPersistentVolumeClaimRetentionPolicy | None:
    """Data outlives the resource unless somebody says otherwise; of scaled-down servers it is always kept."""
    if not has_claim(wish):
        return None
    volume = wish.spec.volume
    gone = volume.deletion_policy == "Delete" and not volume.keep_after_deletion
    return StatefulSetPersistentVolumeClaimRetentionPolicy(
        when_deleted="Delete" if gone else "Retain", when_scaled="Retain"
    )


def claim_template(wish: Wish) -> PersistentVolumeClaim:
    """The claims are called `db-<name>-<i>`, whatever the user's template is called."""
    volume = wish.spec.volume
    given = volume.volume_claim_template
    spec = given.spec if given is not None else PersistentVolumeClaimSpec()
    meta = given.metadata if given is not None else ObjectMeta()
    requests = {**(spec.resources.requests if spec.resources else {}), **volume.requests}
    if volume.persistent_volume_size is not None:
        requests["storage"] = volume.persistent_volume_size
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=names.DATA_VOLUME, labels=meta.labels, annotations=meta.annotations),
        spec=PersistentVolumeClaimSpec(
            access_modes=spec.access_modes or ["ReadWriteOnce"],
            storage_class_name=volume.storage_class or spec.storage_class_name,
            resources=VolumeResourceRequirements(requests=requests),
            volume_mode=spec.volume_mode,
            selector=spec.selector,
            data_source=spec.data_source,
        ),
    )


def storage_of(claim: PersistentVolumeClaim) -> Quantity:
    resources = claim.spec.resources
    return (resources.requests.get("storage") if resources else None) or Quantity(0)
