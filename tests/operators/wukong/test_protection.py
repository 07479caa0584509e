"""The admission policy that refuses to delete a protected machine, as an installation brings it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.cli.installation import Installation
from konverge.client import Forbidden, NotFound
from konverge.operators.catalog import find
from konverge.operators.wukong.protection import MESSAGE, policies
from konverge.operators.wukong.resource import Wukong
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.world import NAME, SPACE, World, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-18")]

PLAIN: dict[str, Any] = {"name": "system", "size": "1Gi", "storageClassName": "fast"}


async def protected(w: World) -> None:
    """What `konverge manifests` has beside the operator itself."""
    plan = Installation(operators=[find("wukong")], namespace="vms").everything()
    policies = [item for item in plan if item["apiVersion"] == "admissionregistration.k8s.io/v1"]
    assert [item["kind"] for item in policies] == ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    assert {item["metadata"]["name"] for item in policies} == {"wukong-operator-deletion-protection"}
    for item in policies:
        await w.client.create(item)
    await w.cluster.settle()


async def test_a_protected_machine_is_refused_to_be_deleted_and_lives_on() -> None:
    async with world(timings=QUICK) as w:
        await protected(w)
        await w.running(disks=[PLAIN], deletionProtection=True)
        await w.create("plain", disks=[PLAIN])
        await w.create("off", disks=[PLAIN], deletionProtection=False)
        with pytest.raises(Forbidden) as refusal:
            await w.delete()
        assert MESSAGE in refusal.value.message
        with pytest.raises(Forbidden):
            await w.client.delete(Wukong, NAME, SPACE, propagation="Orphan")
        assert (await w.wukong()).metadata.deletion_timestamp is None
        assert await w.condition("Ready") == ("True", "VMRunning")
        for name in ("plain", "off"):
            await w.delete(name)
            await w.gone(Wukong, name)
        await w.change(deletionProtection=False)
        await w.delete()
        await w.gone(Wukong, NAME)


async def test_the_rest_of_a_collection_goes() -> None:
    async with world(timings=QUICK) as w:
        await protected(w)
        await w.create(disks=[PLAIN], deletionProtection=True)
        await w.create("plain", disks=[PLAIN])
        await asyncio.sleep(5)
        with pytest.raises(Forbidden):
            await w.client.delete_collection(Wukong, SPACE)
        assert (await w.wukong()).metadata.deletion_timestamp is None
        await w.delete("plain")
        await w.gone(Wukong, "plain")
        with pytest.raises(NotFound):
            await w.delete("plain")


def test_the_policy_and_its_binding_whole() -> None:
    policy, binding = policies("vms")
    name = {"name": "vms-deletion-protection"}
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": name}
    rule = {
        "apiGroups": ["vm.novasphere.dev"],
        "apiVersions": ["*"],
        "operations": ["DELETE"],
        "resources": ["wukongs"],
    }
    expression = "!has(oldObject.spec.deletionProtection) || !oldObject.spec.deletionProtection"
    assert policy == {
        **head,
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": MESSAGE, "reason": "Forbidden"}],
        },
    }
    spec = {"policyName": name["name"], "validationActions": ["Deny"]}
    assert binding == {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": spec}
