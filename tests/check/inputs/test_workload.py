"""The workload without one of the user's: small, and of what users do."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.inputs import Admission
from konverge.check.inputs.chains import campaign
from konverge.check.model import Apply, Step
from konverge.check.workload import BUDGET, basic, default
from konverge.operators.catalog import find

from .test_fields import definition_of, sample_of

OPERATORS = ("webapp", "nacos", "wukong")


def steps_of(properties: dict[str, Any], spec: dict[str, Any], budget: int = BUDGET) -> tuple[Step, ...]:
    return default([sample_of(spec)], [definition_of(properties)], budget=budget)


def spec_after(step: Step) -> Any:
    action = step.actions[0]
    assert isinstance(action, Apply)
    return action.object["spec"]


SHOP: dict[str, Any] = {
    "replicas": {"type": "integer"},
    "storage": {"type": "string"},
    "metrics": {"type": "object", "properties": {"enabled": {"type": "boolean"}}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
}


@pytest.mark.spec("K-22")
def test_it_scales_grows_switches_deletes_and_creates_again() -> None:
    steps = steps_of(SHOP, {"replicas": 3, "storage": "1Gi"}, budget=7)
    assert [step.name for step in steps] == [
        "create",
        "spec.replicas: scale up",
        "spec.replicas: scale up, back",
        "spec.metrics.enabled: on",
        "spec.metrics.enabled: on, back",
        "spec.labels: add, change, remove",
        "spec.labels: add, change, remove, back",
        "spec.storage: grow",
        "delete",
        "create again",
    ]
    assert [spec_after(step)["replicas"] for step in steps[:3]] == [3, 5, 3]
    assert spec_after(steps[3])["metrics"] == {"enabled": True}
    assert "metrics" not in spec_after(steps[4])
    assert spec_after(steps[-3])["storage"] == "2Gi"
    assert steps[-1].actions == steps[0].actions


@pytest.mark.spec("K-22")
@pytest.mark.parametrize("budget", range(8))
def test_it_keeps_to_the_budget(budget: int) -> None:
    steps = steps_of(SHOP, {"replicas": 3, "storage": "1Gi"}, budget=budget)
    assert len(steps) <= budget + 3
    assert [step.name for step in steps if not step.about] == ["create", "delete", "create again"]


@pytest.mark.spec("K-22")
@pytest.mark.parametrize("name", OPERATORS)
def test_every_step_of_our_own_operators_is_accepted(name: str) -> None:
    operator = find(name)
    definition, sample = operator.definitions()[0], operator.sample_objects()[0]
    admission = Admission(definition, sample["apiVersion"].partition("/")[2])
    steps = default([sample], operator.definitions())
    assert len(steps) >= 6
    last = None
    for step in steps:
        for action in step.actions:
            if isinstance(action, Apply):
                assert admission.errors(action.object, last) == [], step.name
                last = action.object
            else:
                last = None


def test_objects_without_a_definition_are_created_and_deleted() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}
    steps = basic([secret, sample_of({})], "shops")
    assert [len(step.actions) for step in steps] == [2, 2, 2]
    assert [action.name for action in steps[1].actions if not isinstance(action, Apply)] == ["corner", "key"]
    assert all(
        action.object["metadata"]["namespace"] == "shops" for action in steps[0].actions if isinstance(action, Apply)
    )


@pytest.mark.spec("K-22")
def test_custom_resources_of_the_whole_cluster_are_in_no_namespace() -> None:
    """By it the operator's own custom resource is known, and what its status says."""
    definition = definition_of(SHOP)
    definition["spec"]["scope"] = "Cluster"
    sample = sample_of({"replicas": 3})
    sample["metadata"].pop("namespace", None)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}
    chained = [step for plan in campaign([secret, sample], [definition]) for step in plan.steps or ()]
    for step in (*default([secret, sample], [definition]), *chained):
        places = {
            action.object["kind"]: action.object["metadata"].get("namespace")
            for action in step.actions
            if isinstance(action, Apply)
        }
        assert places.get("Secret", "default") == "default"
        assert places.get(sample["kind"]) is None
