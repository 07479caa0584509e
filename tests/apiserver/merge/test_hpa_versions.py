"""An autoscaler written in both of its versions: what kube-apiserver makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import APPLY, Api

pytestmark = [pytest.mark.spec("S-29", "S-07")]
TARGET = {"scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


def _scaler(version: str, **spec: Any) -> tuple[str, dict[str, Any]]:
    path = f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers"
    head = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}}
    return path, {**head, "spec": TARGET | spec}


async def _applied(api: Api, version: str, manager: str, **spec: Any) -> Any:
    path, body = _scaler(version, **spec)
    return await api.call("PATCH", f"{path}/a", body, content_type=APPLY, query={"fieldManager": manager})


def _fields(obj: Any) -> dict[str, set[str]]:
    entries = obj["metadata"]["managedFields"]
    return {entry["apiVersion"]: set(entry["fieldsV1"]["f:spec"]) for entry in entries}


async def test_the_creator_owns_what_the_stored_form_adds(api: Api) -> None:
    made = await api.call("POST", *_scaler("v1", maxReplicas=3))
    assert made["spec"]["targetCPUUtilizationPercentage"] == 80
    assert "f:targetCPUUtilizationPercentage" in _fields(made)["autoscaling/v1"]


async def test_a_required_number_that_is_taken_back_in_the_other_version_stays(api: Api) -> None:
    """The last configuration was of v2. Without its number the object has a zero in v1: it has the field still."""
    await _applied(api, "v2", "one", maxReplicas=3, minReplicas=2, metrics=[CPU])
    new = await _applied(api, "v1", "one", targetCPUUtilizationPercentage=80)
    assert new["spec"] == TARGET | {"maxReplicas": 3, "minReplicas": 1, "targetCPUUtilizationPercentage": 80}
    assert _fields(new) == {"autoscaling/v1": {"f:scaleTargetRef", "f:targetCPUUtilizationPercentage"}}


async def test_a_conflict_is_found_in_the_other_version(api: Api) -> None:
    await _applied(api, "v2", "one", maxReplicas=3, metrics=[CPU])
    path, body = _scaler("v1", maxReplicas=3, targetCPUUtilizationPercentage=80)
    query = {"fieldManager": "two"}
    refused = await api.call("PATCH", f"{path}/a", body, content_type=APPLY, query=query, expect=409)
    assert refused["message"] == 'Apply failed with 1 conflict: conflict with "one": .spec.metrics'
