"""What policies made from rules refuse; the same on the embedded and on the real API server."""

from __future__ import annotations

import re
from typing import Any

import pytest

from konverge.client import Client, Forbidden, Invalid, MergePatch
from konverge.objects import admission_policy, crd_dict, rule_policy
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.testing import eventually
from tests.objects.rules import BROKEN, FINE, GROUP, Gate

SPACE = "default"


async def rules_of_a_class(client: Client) -> None:
    """The definition has none of the rules: the policy alone refuses."""
    await client.create(_without_rules(crd_dict(Gate)))
    for obj in rule_policy(Gate):
        await client.create(obj)

    async def enforced() -> bool:
        try:
            await client.create(_gate("wrong", {}), dry_run=True)
        except Invalid as error:
            return "not this name" in str(error)
        except Exception:
            return False  # neither the kind nor the policy is there at once
        return False

    await eventually(enforced, timeout=180)
    for index, (spec, message) in enumerate(BROKEN):
        with pytest.raises(Invalid, match=re.escape(message)):
            await client.create(_gate(f"broken-{index}", spec))
    await client.create(_gate("fine", FINE))
    await client.patch(Gate, "fine", MergePatch({"spec": {"most": 9}}), SPACE)
    with pytest.raises(Forbidden, match="the color stays"):
        await client.patch(Gate, "fine", MergePatch({"spec": {"color": "blue"}}), SPACE)


async def rules_over_a_built_in_kind(client: Client) -> None:
    rule = {"expression": "!has(object.data) || object.data.size() <= 1", "message": "one entry is enough"}
    for obj in admission_policy("few-entries.example.com", ConfigMap, rules=[rule]):
        await client.create(obj)

    async def enforced() -> bool:
        many = ConfigMap(metadata=ObjectMeta(name="many", namespace=SPACE), data={"a": "1", "b": "2"})
        try:
            await client.create(many, dry_run=True)
        except Invalid as error:
            return "one entry is enough" in str(error)
        return False

    await eventually(enforced, timeout=180)
    await client.create(ConfigMap(metadata=ObjectMeta(name="few", namespace=SPACE), data={"a": "1"}))
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        await client.delete(f"{kind}.admissionregistration.k8s.io", "few-entries.example.com")


def _gate(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gate",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": spec,
    }


def _without_rules(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_rules(inner) for key, inner in value.items() if key != "x-kubernetes-validations"}
    return [_without_rules(item) for item in value] if isinstance(value, list) else value
