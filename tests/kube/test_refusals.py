"""What the server refuses is reported: an event, and a condition where the kind has one, in the server's own words."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.kube.cronjob import controller as cronjob
from konverge.kube.daemonset import controller as daemonset
from konverge.kube.deployment import controller as deployment
from konverge.kube.job import controller as job
from konverge.kube.statefulset import controller as statefulset
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Namespace
from tests.kube.conftest import Run
from tests.kube.objects import add_node

pytestmark = pytest.mark.virtual

LABELS = {"app": "web"}
POD: dict[str, Any] = {
    "metadata": {"labels": LABELS},
    "spec": {"restartPolicy": "Always", "containers": [{"name": "main", "image": "app:1"}]},
}
ENDING = {"metadata": {}, "spec": {**POD["spec"], "restartPolicy": "Never"}}
WORKLOAD = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": POD}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
STATEFUL = {**WORKLOAD, "serviceName": "web"}
CRON = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ENDING}}}


def refused(what: str, counted: str) -> str:
    return rf"{what} is forbidden: exceeded quota: q, requested: {counted}=1, used: {counted}=0, limited: {counted}=0"


CASES: list[Any] = [
    pytest.param(
        deployment, "apps/v1", "Deployment", WORKLOAD, "count/replicasets.apps",
        [
            (
                "ReplicaSetCreateError",
                r'Failed to create new replica set "web-[a-z0-9]+": '
                + refused(r'replicasets\.apps "web-[a-z0-9]+"', "count/replicasets.apps"),
            ),
        ],
        marks=pytest.mark.spec("R-32"),
    ),
    pytest.param(
        replicaset, "apps/v1", "ReplicaSet", WORKLOAD, "pods",
        [("FailedCreate", "Error creating: " + refused('pods "web-[a-z0-9]+"', "pods"))],
        marks=pytest.mark.spec("R-33"),
    ),
    pytest.param(
        statefulset, "apps/v1", "StatefulSet", STATEFUL, "pods",
        [("FailedCreate", "Create Pod web-0 in StatefulSet web failed error: " + refused('pods "web-0"', "pods"))],
        marks=pytest.mark.spec("R-34"),
    ),
    pytest.param(
        statefulset, "apps/v1", "StatefulSet", {**STATEFUL, "volumeClaimTemplates": [CLAIM]}, "persistentvolumeclaims",
        [
            (
                "FailedCreate",
                "Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: "
                + refused('persistentvolumeclaims "data-web-0"', "persistentvolumeclaims"),
            ),
            (
                "FailedCreate",
                "Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: "
                + refused('persistentvolumeclaims "data-web-0"', "persistentvolumeclaims"),
            ),
        ],
        marks=pytest.mark.spec("R-34"),
    ),
    pytest.param(
        daemonset, "apps/v1", "DaemonSet", {"selector": {"matchLabels": LABELS}, "template": POD}, "pods",
        [("FailedCreate", "Error creating: " + refused('pods "web-[a-z0-9]+"', "pods"))],
        marks=pytest.mark.spec("R-35"),
    ),
    pytest.param(
        job, "batch/v1", "Job", {"template": ENDING}, "pods",
        [("FailedCreate", "Error creating: " + refused('pods "web-[a-z0-9]+"', "pods"))],
        marks=pytest.mark.spec("R-36"),
    ),
    pytest.param(
        cronjob, "batch/v1", "CronJob", CRON, "count/jobs.batch",
        [("FailedCreate", "Error creating job: " + refused(r'jobs\.batch "web-[0-9]+"', "count/jobs.batch"))],
        marks=pytest.mark.spec("R-37"),
    ),
]  # fmt: skip


async def limit(client: Client, counted: str, namespace: str = "default") -> None:
    """A quota that allows none of what is counted."""
    meta = {"name": "q", "namespace": namespace}
    await client.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {counted: 0}}})
    status = MergePatch({"status": {"hard": {counted: "0"}, "used": {counted: "0"}}})
    await client.patch("resourcequotas", "q", status, namespace, subresource="status")


def workload(api_version: str, kind: str, spec: Any, namespace: str = "default") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": namespace}, "spec": spec}


@pytest.mark.parametrize(("module", "api_version", "kind", "spec", "counted", "expected"), CASES)
async def test_a_refused_creation_is_reported(
    client: Client, run: Run, module: Any, api_version: str, kind: str, spec: Any, counted: str, expected: Any
) -> None:
    await limit(client, counted)
    await add_node(client, "node")
    async with run(module):
        await client.create(workload(api_version, kind, spec))
        await asyncio.sleep(61)
    listed = [event for event in (await client.list("events", "default")).items if event["type"] == "Warning"]
    assert {event["involvedObject"]["kind"] for event in listed} == {kind}
    for event in listed:
        event["message"] = event["message"].removeprefix("(combined from similar events): ")
        patterns = [text for reason, text in expected if reason == event["reason"]]
        assert any(re.fullmatch(text, event["message"]) for text in patterns), event
    for reason, text in expected:
        assert any(event["reason"] == reason and re.fullmatch(text, event["message"]) for event in listed), text


@pytest.mark.spec("R-32")
async def test_a_deployment_whose_set_is_refused_does_not_progress(client: Client, run: Run) -> None:
    await limit(client, "count/replicasets.apps")
    async with run(deployment):
        await client.create(workload("apps/v1", "Deployment", WORKLOAD))
        await asyncio.sleep(5)
        (condition,) = (await client.get(Deployment, "web", "default")).status.conditions
        assert (condition.type, condition.status, condition.reason) == ("Progressing", "False", "ReplicaSetCreateError")
        assert re.fullmatch(CASES[0].values[5][0][1], condition.message or "")
        await client.delete("resourcequotas", "q", "default")
        await asyncio.sleep(120)
        conditions = (await client.get(Deployment, "web", "default")).status.conditions
        assert {c.reason for c in conditions if c.type == "Progressing"} == {"NewReplicaSetCreated"}


@pytest.mark.spec("R-32")
async def test_a_deployment_of_no_pods_scales_nothing_up(client: Client, run: Run) -> None:
    async with run(deployment):
        await client.create(workload("apps/v1", "Deployment", {**WORKLOAD, "replicas": 0}))
        await asyncio.sleep(5)
    assert len((await client.list("replicasets", "default")).items) == 1
    assert not (await client.list("events", "default")).items


@pytest.mark.parametrize(("module", "api_version", "kind", "spec", "counted", "expected"), CASES)
async def test_in_a_namespace_that_is_being_deleted_nothing_is_reported(
    client: Client, run: Run, module: Any, api_version: str, kind: str, spec: Any, counted: str, expected: Any
) -> None:
    await client.create(Namespace(metadata=ObjectMeta(name="shop")))
    await add_node(client, "node")
    await client.create(workload(api_version, kind, spec, "shop"))
    await client.delete(Namespace, "shop")
    async with run(module):
        await asyncio.sleep(61)
        listed = (await client.list("events")).items
        assert [event["message"] for event in listed if event["type"] == "Warning"] == []
