"""What programs in pods write to their pods."""

from __future__ import annotations

import json

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Pod, Secret
from konverge.objects.meta import ObjectMeta
from tests.sim.applications.support import running, simulated
from tests.sim.conftest import SPACE

pytestmark = [pytest.mark.spec("K-62"), pytest.mark.virtual]

RULES = {
    "writes": [
        {
            "container": "main",
            "image": "app:*",
            "annotations": {"agent/version": "{config.version}", "agent/pod": "{pod.metadata.name}"},
            "set-labels": {"role": "member"},
            "conditions": {"joined": "True"},
            "from": {
                "config": {"kind": "Secret", "name": "{root.metadata.name}-config", "key": "all", "parse": "json"}
            },
        }
    ]
}


def config(version: int) -> Secret:
    text = json.dumps({"version": version})
    return Secret(metadata=ObjectMeta(name="web-config", namespace=SPACE), data={"all": text.encode()})


async def test_values_follow_the_secret_that_they_refer_to() -> None:
    async with simulated(RULES) as (cluster, _):
        web = await running(cluster, "web")
        assert web.metadata.annotations["agent/pod"] == "web"
        assert "agent/version" not in web.metadata.annotations  # the Secret is not there yet
        assert web.metadata.labels["role"] == "member"
        assert [item.status for item in web.status.conditions if item.type == "joined"] == ["True"]
        await cluster.client.create(config(4))
        await cluster.settle()
        assert (await cluster.client.get(Pod, "web", SPACE)).metadata.annotations["agent/version"] == "4"
        await cluster.client.patch(Secret, "web-config", MergePatch({"data": {"all": config(5).data["all"]}}), SPACE)
        await cluster.settle()
        assert (await cluster.client.get(Pod, "web", SPACE)).metadata.annotations["agent/version"] == "5"


async def test_pods_that_do_not_run_or_do_not_match_are_left_alone() -> None:
    async with simulated(RULES) as (cluster, _):
        waiting = await running(
            cluster, "waiting", lambda pod: pod.status.container_statuses, behaviour="slow-start 1h"
        )
        other = await running(cluster, "other", containers=[{"name": "main", "image": "else:1"}])
        assert not waiting.metadata.labels
        assert not other.metadata.labels


async def test_ready_is_waited_for_where_the_rule_says_so() -> None:
    rules = {"writes": [{"when": "ready", "set-labels": {"role": "member"}}]}
    async with simulated(rules) as (cluster, _):
        web = await running(cluster, "web", behaviour="never-ready")
        assert web.status.phase == "Running"
        assert not web.metadata.labels
