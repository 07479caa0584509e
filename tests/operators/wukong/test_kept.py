"""Data that is to be kept is kept whatever else goes wrong: a loss cannot be undone, a claim too many can."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.objects import crd_dict, from_dict
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong import effective_spec
from konverge.operators.wukong.resource import Wukong
from konverge.sim.kubevirt import QUICK
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
    ],
)
def test_what_an_unchecked_spec_says(spec: dict[str, Any], policy: str | None) -> None:
    assert effective_spec.policy_of(spec, "a") == policy


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
