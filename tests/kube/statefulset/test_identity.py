"""Names and ordinals of a StatefulSet's pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import ObjectMeta
from konverge.kube.statefulset import identity
from konverge.kube.statefulset.identity import parent_and_ordinal
from konverge.objects.kinds.apps_v1 import StatefulSet, StatefulSetOrdinals
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, PersistentVolumeClaimSpec, Volume
from tests.kube.objects import statefulset

pytestmark = pytest.mark.spec("R-34")


@given(st.text(st.characters(codec="ascii"), max_size=8), st.integers(0, 10**6))
def test_a_pod_name_consists_of_parent_and_ordinal(parent: str, ordinal: int) -> None:
    assert parent_and_ordinal(f"{parent}-{ordinal}") == (parent, ordinal)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web-0", ("web", 0)),
        ("my-web-12", ("my-web", 12)),
        ("web-007", ("web", 7)),
        ("web-2147483647", ("web", 2147483647)),
        ("web-2147483648", ("web", -1)),
        ("web-99999999999", ("web", -1)),
        ("web-x", ("", -1)),
        ("web", ("", -1)),
        ("web-1x", ("", -1)),
        ("-3", ("", 3)),
    ],
)
def test_the_ordinal_in_a_name(name: str, expected: tuple[str, int]) -> None:
    assert parent_and_ordinal(name) == expected


def with_claims(*names: str) -> StatefulSet:
    templates = [
        PersistentVolumeClaim(metadata=ObjectMeta(name=name, labels={"own": name}), spec=PersistentVolumeClaimSpec())
        for name in names
    ]
    return statefulset(3, volume_claim_templates=templates)


def test_the_claims_of_an_ordinal() -> None:
    claims = identity.claims_for(with_claims("data", "logs"), 2)
    assert [claim.metadata.name for claim in claims] == ["data-web-2", "logs-web-2"]
    assert {claim.metadata.namespace for claim in claims} == {"default"}
    assert claims[0].metadata.labels == {"own": "data", "app": "web"}


def test_the_pod_of_an_ordinal() -> None:
    desired = with_claims("data")
    desired.spec.template.spec.volumes = [Volume(name="data"), Volume(name="tmp")]
    pod = identity.pod_for(desired, desired.spec.template, "web-abc", 2)
    assert (pod.metadata.name, pod.spec.hostname, pod.spec.subdomain) == ("web-2", "web-2", "web")
    assert pod.metadata.labels == {
        "app": "web", "statefulset.kubernetes.io/pod-name": "web-2", "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "web-abc",
    }  # fmt: skip
    claimed, other = pod.spec.volumes
    assert (claimed.name, other.name) == ("data", "tmp")
    assert claimed.persistent_volume_claim is not None
    assert claimed.persistent_volume_claim.claim_name == "data-web-2"
    assert identity.storage_matches(desired, pod)
    assert not identity.storage_matches(with_claims("data", "logs"), pod)
    claimed.persistent_volume_claim.claim_name = "data-web-1"
    assert not identity.storage_matches(desired, pod)
    pod.spec.volumes = [Volume(name="data")]
    assert not identity.storage_matches(desired, pod)
    assert identity.storage_matches(statefulset(), pod)


def test_which_pods_and_ordinals_are_of_a_set() -> None:
    desired = statefulset(3)
    pod = identity.pod_for(desired, desired.spec.template, "r", 0)
    assert identity.is_member(desired, pod)
    pod.metadata.name = "my-web-0"
    assert not identity.is_member(desired, pod)
    assert list(identity.ordinals_of(desired)) == [0, 1, 2]
    desired.spec.ordinals = StatefulSetOrdinals(start=5)
    assert list(identity.ordinals_of(desired)) == [5, 6, 7]
    desired.spec.ordinals = StatefulSetOrdinals()
    assert list(identity.ordinals_of(desired)) == [0, 1, 2]
