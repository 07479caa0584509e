"""ReplicationControllers work as ReplicaSets do."""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.objects.kinds.core_v1 import Pod, ReplicationController
from tests.kube.conftest import Run, make_ready, pods

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-33")]


async def test_pods_are_created_counted_adopted_and_deleted(client: Client, run: Run) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    spec = {"replicas": 2, "template": template}
    orphan = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "o", "labels": {"app": "web"}}}
    async with run(replicaset):
        await client.create({**orphan, "spec": template["spec"]}, "default")
        await client.create(
            {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "rc"}, "spec": spec}, "default"
        )
        await asyncio.sleep(1)
        made = await pods(client)
        assert len(made) == 2
        owners = {(owner.kind, owner.controller) for pod in made for owner in pod.metadata.owner_references}
        assert owners == {("ReplicationController", True)}
        assert {pod.metadata.name for pod in made} >= {"o"}
        for pod in made:
            await make_ready(client, pod)
        await client.patch(ReplicationController, "rc", MergePatch({"spec": {"replicas": 3}}), "default")
        await asyncio.sleep(1)
        live = await client.get("replicationcontrollers", "rc", "default")
        assert live["status"] == {
            "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 2, "availableReplicas": 2,
            "observedGeneration": live["metadata"]["generation"],
        }  # fmt: skip
        await client.patch(ReplicationController, "rc", MergePatch({"spec": {"replicas": 0}}), "default")
        await asyncio.sleep(1)
        assert [pod for pod in await client.list(Pod, "default") if not pod.metadata.deletion_timestamp] == []
