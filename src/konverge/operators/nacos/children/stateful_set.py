"""The StatefulSet and its PodDisruptionBudget.

All pods start at once (`Parallel`): an embedded cluster opens its port only when a majority is up. A pod is replaced
only after it was deleted (`OnDelete`): the operator does that itself, one at a time, the leader last.
"""

from __future__ import annotations

from konverge.objects import LabelSelector, ObjectMeta, Quantity
from konverge.objects.kinds.apps_v1 import (
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from konverge.operators.nacos import names
from konverge.operators.nacos.children.pod_template import has_claim, pod_template
from konverge.operators.nacos.desired import Desired


def stateful_set(desired: Desired, config_digest: str = "", secrets_digest: str = "") -> StatefulSet:
    listed = {names.LISTED: str(desired.listed), names.LISTED_SINCE: desired.listed_since}
    return StatefulSet(
        metadata=desired.metadata(desired.name, extra=listed if desired.lists_by_file else None),
        spec=StatefulSetSpec(
            replicas=desired.replicas,
            service_name=names.headless(desired.name) if desired.cluster else None,
            selector=LabelSelector(match_labels=names.selector(desired.name)),
            pod_management_policy="Parallel",
            update_strategy=StatefulSetUpdateStrategy(type="OnDelete"),
            persistent_volume_claim_retention_policy=retention(desired),
            template=pod_template(desired, config_digest, secrets_digest),
            volume_claim_templates=[claim_template(desired)] if has_claim(desired) else [],
        ),
    )


def retention(desired: Desired) -> StatefulSetPersistentVolumeClaimRetentionPolicy | None:
    """Data outlives the resource unless the user decides otherwise; the data of scaled-down servers is always kept."""
    if not has_claim(desired):
        return None
    volume = desired.spec.volume
    deleted = volume.deletion_policy == "Delete" and not volume.keep_after_deletion
    return StatefulSetPersistentVolumeClaimRetentionPolicy(
        when_deleted="Delete" if deleted else "Retain", when_scaled="Retain"
    )


def claim_template(desired: Desired) -> PersistentVolumeClaim:
    """The claims are named `db-<name>-<i>`, independent of the name of the user's template."""
    volume = desired.spec.volume
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


def wants_budget(desired: Desired) -> bool:
    """A single server has none: its budget would block the drain of its node for ever."""
    return desired.cluster and desired.replicas >= 3 and desired.spec.pod_disruption_budget.enabled


def disruption_budget(desired: Desired) -> PodDisruptionBudget:
    """A drain evicts one server at a time, and never costs the quorum."""
    most = min(desired.spec.pod_disruption_budget.max_unavailable, desired.replicas - desired.quorum)
    return PodDisruptionBudget(
        metadata=desired.metadata(desired.name),
        spec=PodDisruptionBudgetSpec(
            max_unavailable=max(1, most), selector=LabelSelector(match_labels=names.selector(desired.name))
        ),
    )
