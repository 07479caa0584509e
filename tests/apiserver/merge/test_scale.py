from __future__ import annotations

from typing import Any

from konverge.apiserver.merge.scale import replicas_path, to_parent, to_scale

PATH = replicas_path()


def entry(manager: str, fields: Any, operation: str = "Apply", version: str = "apps/v1", **more: Any) -> Any:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


REPLICAS: Any = {"f:spec": {"f:replicas": {}}}
BOTH: Any = {"f:spec": {"f:paused": {}, "f:replicas": {}}}


def test_scale_shows_the_owners_of_the_replicas() -> None:
    entries = [entry("one", BOTH, time="t"), entry("two", {"f:spec": {"f:paused": {}}})]
    assert to_scale(entries, PATH) == [entry("one", REPLICAS, version="autoscaling/v1", time="t")]


def test_replicas_may_be_at_another_path() -> None:
    path = replicas_path(".spec.size.count")
    assert path == ("f:spec", "f:size", "f:count")
    entries = [entry("one", {"f:spec": {"f:size": {"f:count": {}}}})]
    assert to_scale(entries, path) == [entry("one", REPLICAS, version="autoscaling/v1")]
    assert to_parent([], to_scale(entries, path), path, "x.io/v1") == [
        entry("one", {"f:spec": {"f:size": {"f:count": {}}}}, version="x.io/v1")
    ]


def test_replicas_taken_through_scale_are_taken_from_the_resource() -> None:
    parents = [entry("one", BOTH, time="t")]
    scales = [entry("hpa", REPLICAS, "Update", "autoscaling/v1", time="u", subresource="scale")]
    assert to_parent(parents, scales, PATH, "apps/v1") == [
        entry("one", {"f:spec": {"f:paused": {}}}, time="t"),
        entry("hpa", REPLICAS, "Update", subresource="scale"),
    ]


def test_an_owner_that_keeps_the_replicas_keeps_its_entry() -> None:
    parents = [entry("one", BOTH, time="t")]
    assert to_parent(parents, to_scale(parents, PATH), PATH, "apps/v1") == parents


def test_an_entry_without_fields_is_removed() -> None:
    parents = [entry("one", REPLICAS, time="t")]
    scales = [entry("hpa", REPLICAS, version="autoscaling/v1", subresource="scale")]
    assert [row["manager"] for row in to_parent(parents, scales, PATH, "apps/v1")] == ["hpa"]
