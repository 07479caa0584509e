"""Tables: every kind has the cells of its columns; how ages, labels and pods are shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.apiserver.registry import Registry
from konverge.apiserver.table import cells, pods, tables
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.definitions import define, definition

pytestmark = pytest.mark.spec("S-11")

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ONE_MORE = {("networking.k8s.io", "IPAddress")}
"""The real server has a cell for which there is no column."""
LISTED = sorted({(s.resource.group, s.resource.kind) for s in Registry.builtin() if "list" in s.verbs})


async def table(api: Api, path: str, **query: str) -> Any:
    return await api.call("GET", path, accept=TABLE, query=query)


@pytest.mark.parametrize("kind", LISTED, ids=lambda kind: f"{kind[0]}/{kind[1]}")
def test_cells_are_those_of_the_columns(kind: tuple[str, str]) -> None:
    names = [column["name"] for column in tables._columns(*kind)]
    assert list(tables.cells_of(kind[1])) == [*names, *(["Age"] if kind in ONE_MORE else [])]


def test_every_entry_of_the_data_is_of_a_kind() -> None:
    assert set(tables._entries()) - {kind for _, kind in LISTED} == {"-", "Scale"}


@pytest.mark.parametrize("kind", LISTED, ids=lambda kind: f"{kind[0]}/{kind[1]}")
def test_an_empty_object_has_a_row(kind: tuple[str, str]) -> None:
    """A stored object need not be complete, and is shown anyway."""
    bare: Any = {"metadata": {"name": "x"}, "spec": {"names": {}}}
    (row,) = tables._rows(kind[1], [bare], False)
    assert len(json.loads(json.dumps(row))["cells"]) >= 2


async def test_a_list_and_a_single_object_are_shown_as_tables(api: Api) -> None:
    await api.create("a", data={"x": "1", "y": "2"})
    listed = await table(api, CONFIG_MAPS)
    assert [column["name"] for column in listed["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"][:2] for row in listed["rows"] if row["cells"][0] == "a"] == [["a", 2]]
    single = await table(api, f"{CONFIG_MAPS}/a")
    assert single["metadata"]["resourceVersion"] == single["rows"][0]["object"]["metadata"]["resourceVersion"]
    assert (await table(api, f"{CONFIG_MAPS}/a", includeObject="None"))["rows"][0]["object"] is None
    whole = await table(api, f"{CONFIG_MAPS}/a", includeObject="Object")
    assert whole["rows"][0]["object"]["data"] == {"x": "1", "y": "2"}


async def test_a_table_shows_a_kind_in_another_version(api: Api) -> None:
    """An autoscaler of v1 is shown with the metrics it has as v2."""
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    await api.call("POST", path, {"metadata": {"name": "h"}, "spec": spec})
    (row,) = (await table(api, path))["rows"]
    assert row["cells"][:5] == ["h", "Deployment/d", "cpu: <unknown>/50%", "1", 3]


async def test_the_default_storage_class_is_marked_in_lists(api: Api) -> None:
    path = "/apis/storage.k8s.io/v1/storageclasses"
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    for name in ("b", "a"):
        metadata = {"name": name, "annotations": mark, "creationTimestamp": None}
        await api.call("POST", path, {"metadata": metadata, "provisioner": "p"})
    names = [row["cells"][0] for row in (await table(api, path))["rows"]]
    assert sorted(names) in (["a (default)", "b"], ["a", "b (default)"])
    assert (await table(api, f"{path}/a"))["rows"][0]["cells"][0] == "a"


async def test_a_custom_kind_has_the_columns_of_its_definition(api: Api) -> None:
    column = {"name": "Teeth", "type": "integer", "jsonPath": ".spec.teeth", "priority": 1}
    await define(api, definition("cogs", "Cog", additionalPrinterColumns=[column]))
    path = "/apis/example.com/v1/namespaces/default/cogs"
    body = {"apiVersion": "example.com/v1", "kind": "Cog", "metadata": {"name": "c"}, "spec": {"teeth": 8}}
    await api.call("POST", path, body)
    shown = await table(api, path)
    assert [(column["name"], column["priority"]) for column in shown["columnDefinitions"]] == [
        ("Name", 0),
        ("Teeth", 1),
    ]
    assert shown["rows"][0]["cells"] == ["c", 8]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"), (10_800, "3h"), (11_000, "3h3m"), (28_800, "8h"), (172_799, "47h"), (172_800, "2d"),
        (180_000, "2d2h"), (691_200, "8d"), (63_071_999, "729d"), (63_072_000, "2y"), (64_000_000, "2y10d"),
        (260_000_000, "8y"),
    ],
)  # fmt: skip
def test_durations_are_shown_in_short(seconds: int, text: str) -> None:
    assert cells.duration(seconds) == text


def pod(phase: str = "Running", *, deleted: bool = False, **status: Any) -> dict[str, Any]:
    metadata = {"name": "p", **({"deletionTimestamp": "2020-01-01T00:00:00Z"} if deleted else {})}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": phase, **status}}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (pod("Pending"), "Pending"),
        (pod(deleted=True), "Terminating"),
        (pod("Succeeded", deleted=True), "Succeeded"),
        (pod(deleted=True, reason="NodeLost"), "Unknown"),
        (pod("Failed", reason="Evicted"), "Evicted"),
        (pod(conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]), "SchedulingGated"),
    ],
)
def test_the_status_column_shows_how_a_pod_ends(shown: dict[str, Any], expected: str) -> None:
    assert pods.summary(shown).reason == expected


def test_the_row_of_a_finished_pod_has_a_condition() -> None:
    assert pods.conditions(pod()) == []
    (condition,) = pods.conditions(pod("Failed"))
    assert (condition["type"], condition["reason"]) == ("Completed", "Failed")


def test_the_last_restart_of_all_containers_is_shown() -> None:
    def ended(at: str) -> dict[str, Any]:
        return {"restartCount": 2, "lastState": {"terminated": {"exitCode": 1, "finishedAt": at}}}

    statuses = [ended("2021-01-01T00:00:00Z"), ended("2020-01-01T00:00:00Z")]
    summary = pods.summary(pod(containerStatuses=statuses))
    assert (summary.restarts, summary.restarted_at) == (4, "2021-01-01T00:00:00Z")
