"""PersistentVolumes."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.harness import Change, named, stored

VOLUME = named(
    spec={
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "d", "volumeHandle": "h"},
        "volumeMode": "Block",
    }
)


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    "change",
    [
        Change(
            "PersistentVolume",
            VOLUME,
            {"spec": {"volumeMode": "Filesystem"}},
            ['volumeMode: Invalid value: "Filesystem": field is immutable'],
        ),
        Change(
            "PersistentVolume",
            VOLUME,
            {"spec": {"csi": {"controllerExpandSecretRef": {"name": "a", "namespace": "b"}}}},
            [],
        ),
    ],
)
def test_changes_to_a_volume_are_checked(change: Change) -> None:
    change.check()


@pytest.mark.spec("S-09")
def test_a_volume_keeps_its_source() -> None:
    world = stored("PersistentVolume", VOLUME)
    refused = world.patch("", "PersistentVolume", "x", {"spec": {"csi": None, "nfs": {"server": "s", "path": "/"}}})
    assert refused.texts[0].startswith(
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n@@"
    )


@pytest.mark.spec("S-09")
def test_the_phase_of_a_volume_has_a_time() -> None:
    world = stored("PersistentVolume", VOLUME)
    obj = world.patch("", "PersistentVolume", "x", {"status": {"phase": "Bound"}}, subresource="status").obj
    assert obj["status"]["lastPhaseTransitionTime"].endswith("Z")
