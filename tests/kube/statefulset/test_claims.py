"""Which object owns the claims of a StatefulSet's pod."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.statefulset.claims import owners_for
from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import StatefulSetPersistentVolumeClaimRetentionPolicy
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod, PodSpec
from konverge.objects.meta import OwnerReference
from konverge.runtime.owners import controller_reference
from tests.kube.objects import statefulset as web

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-34")]


def template() -> PersistentVolumeClaim:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return from_dict(PersistentVolumeClaim, {"metadata": {"name": "data"}, "spec": spec})


def policy(deleted: str | None, scaled: str | None) -> StatefulSetPersistentVolumeClaimRetentionPolicy:
    return StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted=deleted, when_scaled=scaled)


def owner(kind: str, name: str, uid: str, *, api: str = "v1", controller: bool = True) -> OwnerReference:
    return OwnerReference(api_version=api, kind=kind, name=name, uid=uid, controller=controller)


@pytest.mark.parametrize(
    ("deleted", "scaled", "ordinal", "present", "expected"),
    [
        ("Retain", "Retain", 0, "", None),
        ("Retain", "Retain", 0, "set", ""),
        ("Retain", "Retain", 0, "pod", ""),
        ("Retain", "Retain", 5, "other", None),
        ("Retain", "Retain", 0, "foreign", None),
        ("Retain", "Retain", 0, "foreign set", "foreign"),
        ("Delete", "Retain", 0, "", "set"),
        ("Delete", "Retain", 0, "set", None),
        ("Delete", "Retain", 5, "", "set"),
        ("Delete", "Retain", 0, "other", "other set"),
        ("Delete", "Retain", 0, "foreign", None),
        ("Delete", "Retain", 0, "foreign set", "foreign"),
        ("Retain", "Delete", 0, "", None),
        ("Retain", "Delete", 0, "pod", ""),
        ("Retain", "Delete", 5, "", "pod"),
        ("Retain", "Delete", 5, "set", "pod"),
        ("Delete", "Delete", 0, "", "set"),
        ("Delete", "Delete", 0, "pod", "set"),
        ("Delete", "Delete", 5, "set", "pod"),
        ("Delete", "Delete", 5, "pod", None),
        ("Delete", "Delete", 5, "weak", "pod"),
        ("Delete", "Delete", 5, "stale", None),
        ("Delete", "Delete", 0, "stale set", None),
        ("Delete", "Delete", 0, "stale-set", None),
        (None, None, 0, "set", ""),
        (None, "Delete", 5, "", "pod"),
        ("Delete", None, 5, "", "set"),
    ],
)
def test_the_owners_of_a_claim_follow_the_retention_policy(
    deleted: Any, scaled: Any, ordinal: int, present: str, expected: str | None
) -> None:
    desired = web(3, persistent_volume_claim_retention_policy=policy(deleted, scaled))
    desired.metadata.uid = "set"
    pod = Pod(metadata=ObjectMeta(name=f"web-{ordinal}", uid="pod"), spec=PodSpec(containers=[]))
    known = {
        "set": controller_reference(desired),
        "pod": controller_reference(pod),
        "weak": owner("Pod", pod.metadata.name, "pod", controller=False),
        "stale": owner("Pod", pod.metadata.name, "stale"),
        "stale-set": owner("StatefulSet", "web", "stale-set", api="apps/v1"),
        "other": owner("ConfigMap", "web", "other", controller=False),
        "foreign": owner("Pod", "another", "foreign"),
    }
    claim = template()
    claim.metadata.owner_references = [known[name] for name in present.split()]
    wanted = owners_for(claim, desired, pod)
    assert (None if wanted is None else " ".join(reference.uid for reference in wanted)) == expected
    if wanted:
        assert all(reference.controller for reference in wanted if reference.uid in ("set", "pod"))


def test_without_a_policy_claims_are_retained() -> None:
    desired = web(3)
    pod = Pod(metadata=ObjectMeta(name="web-5", uid="pod"), spec=PodSpec(containers=[]))
    assert owners_for(template(), desired, pod) is None
