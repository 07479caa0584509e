"""PersistentVolumeClaims."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.harness import Change, World, named, stored

CLAIM = named(
    spec={
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        "storageClassName": "sc",
        "volumeMode": "Filesystem",
    }
)


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    "change",
    [
        Change("PersistentVolumeClaim", CLAIM, {"spec": {"volumeName": "v"}}, []),
        Change(
            "PersistentVolumeClaim",
            CLAIM,
            {"status": {"allocatedResources": {"cpu": "1"}}},
            ['status.allocatedResources: Unsupported value: "cpu": supported values: "storage"'],
            "status",
        ),
    ],
)
def test_changes_to_a_claim_are_checked(change: Change) -> None:
    change.check()


@pytest.mark.spec("S-09")
def test_a_bound_claim_may_grow_and_nothing_else() -> None:
    world = stored("PersistentVolumeClaim", CLAIM)
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert not world.patch("", "PersistentVolumeClaim", "x", bound, subresource="status").errors

    def resized(size: str) -> list[str]:
        change = {"spec": {"resources": {"requests": {"storage": size}}}}
        return world.patch("", "PersistentVolumeClaim", "x", change).texts

    assert resized("3Gi") == []
    assert resized("500Mi") == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]
    refused = world.patch("", "PersistentVolumeClaim", "x", {"spec": {"accessModes": ["ReadOnlyMany"]}})
    assert refused.texts[0].startswith("spec: Forbidden: spec is immutable after creation except resources.requests")
    assert '\n-  "ReadWriteOnce"\n+  "ReadOnlyMany"\n' in refused.texts[0]


@pytest.mark.spec("S-09")
def test_sources_of_claims_are_written_both_ways() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "y"}
    obj = World().create("", "PersistentVolumeClaim", {**CLAIM, "spec": {**CLAIM["spec"], "dataSource": source}}).obj
    assert obj["spec"]["dataSourceRef"] == {"apiGroup": None, **source}
    odd = {**CLAIM, "spec": {**CLAIM["spec"], "dataSource": {"kind": "Odd", "name": "y", "apiGroup": "a.b"}}}
    assert "dataSource" not in World().create("", "PersistentVolumeClaim", odd).obj["spec"]
