"""DataVolumes and claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Quantity, to_dict
from konverge.operators.wukong import effective_spec
from konverge.operators.wukong.children.disks import claim_for, data_volume_for, grown, marks_for
from tests.operators.wukong.specs import DISK, disk, spec, wukong
from tests.operators.wukong.stage import SPACE, UID

pytestmark = pytest.mark.spec("W-05")

LABELS = {"vm.novasphere.dev/wukong": "web", "app.kubernetes.io/managed-by": "wukong-operator"}


def volume(**given: Any) -> dict[str, Any]:
    made = wukong(disk(**given))
    return to_dict(data_volume_for(made, made.spec.disks[0]))


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("http://x/y.img", {"http": {"url": "http://x/y.img"}}),
        ("https://x/y.img", {"http": {"url": "https://x/y.img"}}),
        ("docker://quay.io/x:1", {"registry": {"url": "docker://quay.io/x:1", "pullMethod": "pod"}}),
        ("oci-archive://x", {"registry": {"url": "oci-archive://x", "pullMethod": "pod"}}),
        ("quay.io/x:1", {"registry": {"url": "docker://quay.io/x:1", "pullMethod": "pod"}}),
    ],
)
def test_an_image(image: str, source: dict[str, Any]) -> None:
    result = volume(image=image, storageClassName="fast")
    assert result["metadata"]["name"] == "web-system"
    assert result["spec"] == {
        "source": source,
        "storage": {"resources": {"requests": {"storage": "10Gi"}}, "storageClassName": "fast"},
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"source": {"http": {"url": "http://x", "certConfigMap": "ca"}}, "secretRef": "s", "checksum": "md5:aa"},
            {"source": {"http": {"url": "http://x", "secretRef": "s", "certConfigMap": "ca", "checksum": "md5:aa"}}},
        ),
        (
            {"source": {"registry": {"url": "docker://x", "pullMethod": "node"}}, "secretRef": "s"},
            {"source": {"registry": {"url": "docker://x", "secretRef": "s", "pullMethod": "node"}}},
        ),
        ({"source": {"s3": {"url": "https://b/k"}}}, {"source": {"s3": {"url": "https://b/k"}}}),
        ({"source": {"pvc": {"name": "g"}}}, {"source": {"pvc": {"namespace": "team-a", "name": "g"}}}),
        ({"source": {"snapshot": {"name": "g"}}}, {"source": {"snapshot": {"namespace": "team-a", "name": "g"}}}),
        ({"source": {"dataSource": {"name": "g"}}}, {"sourceRef": {"kind": "DataSource", "name": "g"}}),
        ({"source": {"blank": {}}}, {"source": {"blank": {}}}),
        ({"source": {"upload": {}}}, {"source": {"upload": {}}}),
    ],
)
def test_other_sources(given: dict[str, Any], expected: dict[str, Any]) -> None:
    result = volume(**given)["spec"]
    del result["storage"]
    assert result == expected


def test_modes_are_said_only_when_they_are_given() -> None:
    given = {"volumeMode": "Block", "accessModes": ["ReadWriteMany"]}
    assert given.items() <= volume(image="x", **given)["spec"]["storage"].items()
    assert not given.keys() & volume(image="x")["spec"]["storage"].keys(), "CDI knows what the class can do"


def test_a_disk_that_begins_empty_is_a_plain_claim() -> None:
    made = wukong()
    assert effective_spec.source_of(made.spec, made.spec.disks[0]) is None
    assert to_dict(claim_for(made, made.spec.disks[0]))["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
    }
    with pytest.raises(ValueError, match="has no source"):
        data_volume_for(made, made.spec.disks[0])


def test_os_image_fills_the_boot_disk_and_no_other() -> None:
    disks = [DISK, {"name": "root", "size": "1Gi", "boot": True}]
    made = wukong(spec(osImage="quay.io/fedora:41", disks=disks)).spec
    first, second = (effective_spec.source_of(made, item) for item in made.disks)
    assert first is None
    assert second is not None
    assert second.registry is not None
    assert second.registry.url == "docker://quay.io/fedora:41"


def test_an_existing_claim_is_read_and_never_made() -> None:
    made = wukong(spec(disks=[{"name": "old", "existingClaim": "theirs"}], osImage=None))
    assert effective_spec.claim_name(made, made.spec.disks[0]) == "theirs"
    assert effective_spec.source_of(made.spec, made.spec.disks[0]) is None


@pytest.mark.spec("W-06")
def test_growth_asks_for_more_and_notes_what_was_wished() -> None:
    made = wukong(disk(size="20Gi", image="x"))
    result = to_dict(marks_for(made, made.spec.disks[0], Quantity("22Gi"), owned=False))
    assert result["metadata"] == {
        "name": "web-system",
        "namespace": "team-a",
        "annotations": {"vm.novasphere.dev/requested-size": "20Gi", "konverge.dev/adopt-by": "Wukong/web"},
    }
    assert result["spec"] == {"resources": {"requests": {"storage": "22Gi"}}}
    made.metadata.uid = "u"
    bare = to_dict(marks_for(made, msgspec.structs.replace(made.spec.disks[0], size=None), None, owned=True))
    assert bare["metadata"]["annotations"] == {"konverge.dev/adopt-by": "Wukong/web"}
    assert [(entry["uid"], entry.get("controller")) for entry in bare["metadata"]["ownerReferences"]] == [("u", None)]
    assert "resources" not in bare.get("spec", {})


amounts = st.integers(2**20, 2**50)


@pytest.mark.spec("W-06")
@given(amounts, amounts, st.integers(0, 2**40))
def test_a_claim_grows_in_proportion_and_never_less_than_asked(asked: int, larger_size: int, overhead: int) -> None:
    before, request = Quantity(asked), Quantity(asked + overhead)
    after = grown(request, before, Quantity(larger_size))
    assert after >= Quantity(larger_size)
    if larger_size >= asked:
        assert after >= request, "never a shrink"
    assert after.fraction - 1 < Quantity(larger_size).fraction * request.fraction / before.fraction


def test_a_data_volume_whole() -> None:
    given = wukong(
        disk(
            source={"registry": {"url": "docker://x", "certConfigMap": "ca"}},
            secretRef="pull",
            storageClassName="fast",
            volumeMode="Block",
            accessModes=["ReadWriteMany"],
        )
    )
    result = to_dict(data_volume_for(given, given.spec.disks[0]))
    metadata = {"name": "web-system", "namespace": SPACE, "labels": LABELS}
    assert result["metadata"] == metadata | {"annotations": {"konverge.dev/adopt-by": "Wukong/web"}}
    registry = {"url": "docker://x", "secretRef": "pull", "certConfigMap": "ca", "pullMethod": "pod"}
    assert result["spec"] == {
        "source": {"registry": registry},
        "storage": {
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": "fast",
            "volumeMode": "Block",
            "accessModes": ["ReadWriteMany"],
        },
    }
    s3 = wukong(disk(source={"s3": {"url": "https://b/k", "certConfigMap": "ca"}}, secretRef="s"))
    assert to_dict(data_volume_for(s3, s3.spec.disks[0]))["spec"]["source"] == {
        "s3": {"url": "https://b/k", "secretRef": "s", "certConfigMap": "ca"}
    }
    golden = wukong(disk(source={"dataSource": {"name": "g", "namespace": "images"}}))
    assert to_dict(data_volume_for(golden, golden.spec.disks[0]))["spec"]["sourceRef"] == {
        "kind": "DataSource",
        "name": "g",
        "namespace": "images",
    }
    with pytest.raises(ValueError, match="no source"):
        data_volume_for(wukong(), wukong().spec.disks[0])


@pytest.mark.spec("W-06")
def test_marks_whole() -> None:
    given = wukong()
    result = to_dict(marks_for(given, given.spec.disks[0], Quantity("11Gi"), owned=True))
    (owner,) = result["metadata"].pop("ownerReferences")
    assert (owner["uid"], owner["kind"], owner["name"], "controller" in owner) == (UID, "Wukong", "web", False)
    marks = {"vm.novasphere.dev/requested-size": "10Gi", "konverge.dev/adopt-by": "Wukong/web"}
    assert result["metadata"] == {"name": "web-system", "namespace": SPACE, "annotations": marks}
    assert result["spec"] == {"resources": {"requests": {"storage": "11Gi"}}}


@pytest.mark.spec("W-06")
@pytest.mark.parametrize(
    ("request_", "asked", "desired", "expected"),
    [
        ("11Gi", "10Gi", "20Gi", "22Gi"),
        ("10Gi", "10Gi", "20Gi", "20Gi"),
        ("9Gi", "10Gi", "20Gi", "20Gi"),
        ("10Gi", "0", "20Gi", "20Gi"),
        ("4", "3", "7", "10"),
    ],
)
def test_how_much_a_claim_asks_for(request_: str, asked: str, desired: str, expected: str) -> None:
    assert grown(Quantity(request_), Quantity(asked), Quantity(desired)) == Quantity(expected)
