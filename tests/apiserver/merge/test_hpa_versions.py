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


async def _applied(api: Api, version: str, manager: str, *, force: bool = False, **spec: Any) -> Any:
    path, body = _scaler(version, **spec)
    query = {"fieldManager": manager, **({"force": "true"} if force else {})}
    return await api.call("PATCH", f"{path}/a", body, content_type=APPLY, query=query)


PODS = {
    "type": "Pods",
    "pods": {"metric": {"name": "load"}, "target": {"type": "AverageValue", "averageValue": "5"}},
}


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


async def test_an_apply_in_v1_that_changes_nothing_leaves_what_v1_would_put_in_another_order(api: Api) -> None:
    """kube-apiserver keeps the stored object then; any change goes through v1, where the CPU comes last."""
    made = await api.call("POST", *_scaler("v2", maxReplicas=3, metrics=[CPU, PODS]))
    assert made["metadata"]["generation"] == 1
    await _applied(api, "v1", "one", maxReplicas=3)
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/a"
    owned = await api.call("GET", path)
    assert (owned["metadata"]["generation"], owned["spec"]["metrics"]) == (1, [CPU, PODS])
    assert _fields(owned)["autoscaling/v1"] == {"f:scaleTargetRef", "f:maxReplicas"}
    await _applied(api, "v1", "one", maxReplicas=3)
    assert await api.call("GET", path) == owned
    await _applied(api, "v1", "one", force=True, maxReplicas=4)
    changed = await api.call("GET", path)
    assert (changed["metadata"]["generation"], changed["spec"]["metrics"]) == (2, [PODS, CPU])


async def test_any_other_write_in_v1_goes_through_v1(api: Api) -> None:
    """Even one that changes nothing: it counts a generation, as with kube-apiserver."""
    await api.call("POST", *_scaler("v2", maxReplicas=3, metrics=[CPU, PODS]))
    path, _ = _scaler("v1")
    await api.patch(f"{path}/a", {})
    stored = await api.call("GET", f"{path.replace('v1', 'v2')}/a")
    assert (stored["metadata"]["generation"], stored["spec"]["metrics"]) == (2, [PODS, CPU])


async def test_an_apply_in_v1_that_owns_nothing_any_more(api: Api) -> None:
    """The last entry of a manager goes, and the stored metrics stay in their order."""
    await api.call("POST", *_scaler("v2", maxReplicas=3, metrics=[CPU, PODS]))
    await _applied(api, "v1", "one", maxReplicas=3)
    path, body = _scaler("v1")
    del body["spec"]
    query = {"fieldManager": "one"}
    await api.call("PATCH", f"{path}/a", body, content_type=APPLY, query=query)
    left = await api.call("GET", f"{path.replace('v1', 'v2')}/a")
    assert left["spec"]["metrics"] == [CPU, PODS]
    assert {entry["manager"] for entry in left["metadata"]["managedFields"]} == {"test"}


async def test_a_status_through_v1_has_no_metrics_and_says_so(api: Api) -> None:
    """The list has no `omitempty` in v2: where there is none, kube-apiserver writes null."""
    path, body = _scaler("v1", maxReplicas=3)
    await api.call("POST", path, body)
    status = {**body, "spec": None, "status": {"currentReplicas": 1, "desiredReplicas": 2}}
    await api.call("PATCH", f"{path}/a/status", status, content_type=APPLY, query={"fieldManager": "st"})
    stored = await api.call("GET", f"{path.replace('v1', 'v2')}/a")
    assert stored["status"] == {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": None}
