"""Migrations and snapshots of KubeVirt's own controllers, compared with those of the simulated KubeVirt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from konverge.client import ApiStatusError, Client
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from tests.real.kubevirt import Obj, until
from tests.real.kubevirt_sides import real_side, simulated_side, snapshot_of
from tests.real.sides import differences
from tests.real.test_kubevirt_side_by_side import shows
from tests.sim.kubevirt.conftest import SPACE, VM, VMI, VMIM, claim, machine
from tests.sim.kubevirt.test_snapshots import CONTENT, SNAPSHOT

CLAIM = PersistentVolumeClaim.resource


# ------------------------------------------------------------------ migrations


def moving(name: str, of: str) -> Obj:
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "kubevirt.io/v1", "kind": VMIM.kind, "metadata": meta, "spec": {"vmiName": of}}


def is_in(*phases: str) -> Callable[[Obj], bool]:
    return lambda obj: (obj.get("status") or {}).get("phase", "") in phases


def moved(migration: Obj, instance: Obj) -> Obj:
    """What an operator reads of a move, and of the guest that has moved."""
    status, state = migration["status"], instance["status"].get("migrationState") or {}
    phases = [entry["phase"] for entry in status["phaseTransitionTimestamps"]]
    own = status.get("migrationState") or {}
    return {
        "phase": status["phase"],
        "phases": phases,
        "conditions": sorted((entry["type"], entry["status"]) for entry in status.get("conditions") or []),
        "labels": migration["metadata"].get("labels"),
        "finalizers": migration["metadata"].get("finalizers", []),
        "of it": state.get("migrationUid") == migration["metadata"]["uid"],
        "over": (state.get("completed"), bool(state.get("failed"))),
        "there": instance["status"]["nodeName"] == state.get("targetNode") != state.get("sourceNode"),
        "same": {key: own.get(key) == state.get(key) for key in ("migrationUid", "sourceNode", "targetNode")},
        "pods": sorted(key for key in ("sourcePod", "targetPod") if own.get(key)),
    }


async def refusal(client: Client, migration: Obj) -> str:
    with pytest.raises(ApiStatusError) as caught:
        await client.create(migration, resource=VMIM)
    return str(caught.value)


async def moved_once(client: Client) -> list[Obj]:
    await client.create(machine("mover"))
    await until(client, VM, "mover", SPACE, shows("Running", ready=True))
    await client.create(moving("move", "mover"))
    over = await until(client, VMIM, "move", SPACE, lambda obj: is_in("Succeeded")(obj) and not _held(obj))
    arrived = lambda vmi: (vmi["status"].get("migrationState") or {}).get("completed")  # noqa: E731
    return [moved(over, await until(client, VMI, "mover", SPACE, arrived))]


def _held(obj: Obj) -> bool:
    return bool(obj["metadata"].get("finalizers"))


# ------------------------------------------------------------------ snapshots


def taken(snapshot: Obj) -> Obj:
    """What an operator reads of a snapshot."""
    status, volumes = snapshot["status"], snapshot["status"].get("snapshotVolumes") or {}
    conditions = {entry["type"]: (entry["status"], entry.get("reason")) for entry in status["conditions"]}
    return {
        "phase": status["phase"],
        "ready": status.get("readyToUse"),
        "conditions": conditions,
        "volumes": {key: sorted(volumes.get(key) or []) for key in ("includedVolumes", "excludedVolumes")},
        "indications": status.get("indications") or [],
        "times": sorted(key for key in ("creationTime",) if status.get(key)),
        "finalizers": snapshot["metadata"].get("finalizers"),
    }


def contents(content: Obj) -> Obj:
    spec = content["spec"]
    backups = [
        (entry["volumeName"], entry["persistentVolumeClaim"]["metadata"]["name"]) for entry in spec["volumeBackups"]
    ]
    named = all(
        entry["volumeSnapshotName"].endswith(f"-volume-{entry['volumeName']}") for entry in spec["volumeBackups"]
    )
    return {
        "of": (spec["virtualMachineSnapshotName"], spec["source"]["virtualMachine"]["metadata"]["name"]),
        "volumes": sorted(backups),
        "named": named,
        "ready": content["status"].get("readyToUse"),
    }


async def kept(client: Client) -> list[Obj]:
    """Of nothing, until there is a machine with a disk that can be kept and one that cannot."""
    await client.create(snapshot_of("kept", "keeper"), resource=SNAPSHOT)
    waits = await until(
        client, SNAPSHOT, "kept", SPACE, lambda obj: len((obj.get("status") or {}).get("conditions", [])) > 1
    )
    told = [taken(waits)]
    for name, kind in (("good", "fast"), ("loose", "standard")):
        await client.create(claim(name, kind=kind))
        await until(client, CLAIM, name, SPACE, is_in("Bound"))
    await client.create(machine("keeper", "good", "loose", runStrategy="Halted"))
    done = await until(
        client, SNAPSHOT, "kept", SPACE, lambda obj: is_in("Succeeded")(obj) and obj["status"]["readyToUse"]
    )
    told.append(taken(done))
    name = done["status"]["virtualMachineSnapshotContentName"]
    told.append(contents(await until(client, CONTENT, name, SPACE, lambda obj: obj["status"].get("readyToUse"))))
    free = await until(client, VM, "keeper", SPACE, lambda vm: not vm["status"].get("snapshotInProgress"))
    told.append(
        {"finalizers": free["metadata"]["finalizers"], "name": name == f"vmsnapshot-content-{done['metadata']['uid']}"}
    )
    await client.delete(SNAPSHOT, "kept", SPACE)
    await until(client, SNAPSHOT, "kept", SPACE, lambda obj: not obj)
    await until(client, CONTENT, name, SPACE, lambda obj: not obj)
    return told


STORIES: tuple[Any, ...] = (moved_once, kept)


async def tell(client: Client) -> dict[str, list[Obj]]:
    """All at once: each has its own machine."""
    told = await asyncio.gather(*(story(client) for story in STORIES))
    return {story.__name__: part for story, part in zip(STORIES, told, strict=True)}


@pytest.mark.spec("W-36", "S-22")
@pytest.mark.limit(400)
async def test_the_simulated_kubevirt_moves_and_keeps_machines_as_the_real_one_does(tmp_path: Path) -> None:
    async with real_side(tmp_path) as client:
        assert 'the VMI "default/nobody" does not exist' in await refusal(client, moving("lost", "nobody"))
        real = await tell(client)
    async with simulated_side(tmp_path) as client:
        simulated = await tell(client)
    assert "\n".join(differences(simulated, real)) == ""
