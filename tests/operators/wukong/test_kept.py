"""Data that is to be kept is kept whatever else goes wrong: a loss cannot be undone, a claim too many can."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.objects import crd_dict, from_dict, to_dict
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong import effective_spec
from konverge.operators.wukong.children.disks import claim_for
from konverge.operators.wukong.resource import Wukong
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.specs import wukong
from tests.operators.wukong.test_snapshots import take, until_phase
from tests.operators.wukong.world import NAME, SPACE, SPEC, World, world

pytestmark = pytest.mark.spec("W-10")

SYSTEM: dict[str, Any] = SPEC["disks"][0]
DATA: dict[str, Any] = {"name": "data", "size": "1Gi", "storageClassName": "fast"}


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({}, None),
        ({"disks": "nonsense"}, None),
        ({"disks": [None, {"name": "b"}]}, None),
        ({"disks": [{"name": "a"}]}, "Delete"),
        ({"disks": [{"name": "a"}], "deletePolicy": "Retain"}, "Retain"),
        ({"disks": [{"name": "a", "deletePolicy": "Delete"}], "deletePolicy": "Retain"}, "Delete"),
        ({"disks": [{"name": "a", "deletePolicy": "Retain"}], "deletePolicy": "Delete"}, "Retain"),
        ({"disks": [{"name": "a"}], "deletePolicy": "Perhaps"}, "Retain"),
        ({"disks": [{"name": "a", "deletePolicy": 7}]}, "Retain"),
        ({"disks": [{"name": "a", "deletePolicy": None}]}, "Delete"),
        ({"disks": [{"name": "a", "deletePolicy": ["Delete"]}]}, "Retain"),
        ({"disks": [{"name": "a"}, {"name": "a"}]}, "Delete"),
        ({"disks": [{"name": "web-a"}, {"name": 7}]}, None),
        ({"disks": [{"name": "a", "existingClaim": "b", "deletePolicy": "Retain"}]}, "Retain"),
        ({"disks": [{"name": "a", "existingClaim": "b"}]}, None),
        ({"disks": [{"name": "a", "existingClaim": "b"}], "deletePolicy": "Retain"}, "Retain"),
        ({"disks": [{"name": "b", "existingClaim": "web-a", "deletePolicy": "Delete"}]}, "Retain"),
        ({"disks": [{"name": "a"}, {"name": "b", "existingClaim": "web-a"}]}, "Retain"),
        ({"disks": [{"name": "b", "existingClaim": "web-a"}, {"name": "a"}]}, "Retain"),
        ({"disks": [{"name": "a", "deletePolicy": "Retain"}, {"name": "a"}]}, "Retain"),
        ({"disks": [{"name": "a"}, {"name": "b", "existingClaim": "c"}]}, "Delete"),
    ],
)
def test_what_an_unchecked_spec_says(spec: dict[str, Any], policy: str | None) -> None:
    assert effective_spec.policy_of(spec, "web", "web-a") == policy


async def deleted(w: World) -> None:
    await w.delete()
    await w.gone(Wukong, NAME)
    await asyncio.sleep(60)


@pytest.mark.virtual
@pytest.mark.parametrize(
    "given",
    [
        {"deletePolicy": "Retain", "disks": [SYSTEM, DATA]},
        {"disks": [SYSTEM | {"deletePolicy": "Retain"}, DATA | {"deletePolicy": "Retain"}]},
    ],
    ids=["of the machine", "of each disk"],
)
async def test_a_disk_that_was_taken_out_of_the_spec_is_kept_all_the_same(given: dict[str, Any]) -> None:
    async with world(timings=QUICK) as w:
        await w.running(**given)
        await w.change(disks=[SYSTEM | {"deletePolicy": "Delete"}])
        await asyncio.sleep(30)
        await deleted(w)
        assert await w.find(PersistentVolumeClaim, "web-data") is not None
        assert await w.find(PersistentVolumeClaim, "web-system") is None


@pytest.mark.virtual
async def test_one_that_was_to_go_goes_also_when_it_was_taken_out() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[SYSTEM, DATA])
        await w.change(disks=[SYSTEM])
        await asyncio.sleep(30)
        await deleted(w)
        assert await w.find(PersistentVolumeClaim, "web-data") is None


async def back_at(w: World, snapshot: str) -> None:
    await w.change(restoreFromSnapshot=snapshot)

    async def restored() -> bool:
        return (await w.wukong()).status.last_restore == snapshot

    await w.until(restored, "the restore")


@pytest.mark.virtual
@pytest.mark.spec("W-47")
async def test_an_existing_claim_that_a_restore_has_made_again_is_not_the_machines() -> None:
    async with world(timings=QUICK) as w:
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "theirs", "namespace": SPACE},
            "spec": to_dict(claim_for(wukong(), wukong().spec.disks[0]))["spec"] | {"storageClassName": "fast"},
        }
        await w.client.create(claim)
        await w.running(disks=[{"name": "disk", "existingClaim": "theirs"}])
        before = await w.client.get(PersistentVolumeClaim, "theirs", SPACE)
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        await back_at(w, "before")
        await w.phase("Running")
        await asyncio.sleep(30)
        after = await w.client.get(PersistentVolumeClaim, "theirs", SPACE)
        assert after.metadata.uid != before.metadata.uid
        assert after.metadata.owner_references == []
        await deleted(w)
        assert await w.find(PersistentVolumeClaim, "theirs") is not None


@pytest.mark.virtual
@pytest.mark.spec("W-47")
@pytest.mark.parametrize("cascade", ["Background", "Foreground"])
async def test_disks_of_the_machine_that_are_used_as_existing_claims_stay(cascade: Any) -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=[SYSTEM, DATA])
        await w.change(
            disks=[{"name": "first", "existingClaim": "web-system"}, {"name": "second", "existingClaim": "web-data"}]
        )
        await asyncio.sleep(30)
        await w.client.delete(Wukong, NAME, SPACE, propagation=cascade)
        await w.gone(Wukong, NAME)
        await asyncio.sleep(60)
        for name in ("web-system", "web-data"):
            assert await w.find(PersistentVolumeClaim, name) is not None, name


@pytest.mark.virtual
@pytest.mark.spec("W-47")
async def test_a_disk_that_was_kept_and_that_a_restore_brought_back_stays() -> None:
    """It was taken out of the spec in the meantime."""
    async with world(timings=QUICK) as w:
        system = {"name": "system", "size": "1Gi", "storageClassName": "fast"}
        await w.running(disks=[system, DATA | {"deletePolicy": "Retain"}])
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        await w.change(disks=[system])
        await asyncio.sleep(30)
        await back_at(w, "before")
        await w.phase("Running")
        await deleted(w)
        assert await w.find(PersistentVolumeClaim, "web-data") is not None
        assert await w.find(PersistentVolumeClaim, "web-system") is None


def _without_rules(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_rules(value) for key, value in schema.items() if key != "x-kubernetes-validations"}
    return [_without_rules(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.virtual
async def test_a_spec_that_nobody_can_act_upon_still_says_what_is_kept() -> None:
    """It got in under an older definition."""
    async with world(timings=QUICK) as w:
        await w.running(deletePolicy="Retain", disks=[SYSTEM, DATA | {"deletePolicy": "Delete"}])
        older = from_dict(CustomResourceDefinition, _without_rules(crd_dict(Wukong)))
        await w.client.apply(older, field_manager="test", force=True)
        await asyncio.sleep(5)
        await w.change(networks=[{"name": "lan", "type": "macvlan"}])
        await w.until_condition("SpecValid", "False", "Invalid")
        await deleted(w)
        assert await w.find(PersistentVolumeClaim, "web-system", SPACE) is not None
        assert await w.find(PersistentVolumeClaim, "web-data", SPACE) is None
