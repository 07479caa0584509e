"""The example of a sidecar that ships the servers' logs, on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.kinds.networking_v1 import NetworkPolicy
from konverge.operators.nacos.resource import Nacos
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.world import SPACE, World, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180), pytest.mark.spec("N-72")]
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "nacos" / "log-shipping.yaml"
NAME, LOGS = "nacos-shipped", "/home/nacos/logs"


def objects() -> tuple[dict[str, Any], dict[str, Any]]:
    """The ConfigMap of the shipper, and the Nacos."""
    config, nacos = yaml.safe_load_all(EXAMPLE.read_text())
    return config, nacos


async def applied(world: World, **spec: Any) -> dict[str, Any]:
    config, nacos = objects()
    await world.client.create(config)
    await world.create(NAME, {**nacos["spec"], **spec})
    await world.until(NAME)
    return nacos["spec"]["k8sWrapper"]


def parts(pod: Pod) -> tuple[list[str], list[str]]:
    """Names of the init containers, and of the containers."""
    return [item.name for item in pod.spec.init_containers], [item.name for item in pod.spec.containers]


def shared(pod: Pod) -> set[str]:
    """The volumes that containers have where the servers write their logs."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    mounts = [mount for container in containers for mount in container.volume_mounts if mount.mount_path == LOGS]
    assert len(mounts) == len(containers)
    return {mount.name for mount in mounts}


@pytest.mark.parametrize("standard", ["Baseline", "Restricted"])
async def test_the_shipper_runs_beside_every_server_and_sees_its_files(standard: str) -> None:
    async with a_world() as world, world.operating():
        config, _ = objects()
        await applied(world, podSecurity=standard)
        pods = await world.pods(NAME)
        assert len(pods) == 3
        for pod in pods:
            assert parts(pod) == (["log-shipper"], [NAME])
            assert shared(pod) == {"nacos-logs"}
            assert [volume.name for volume in pod.spec.volumes].count("nacos-logs") == 1
            assert [status.ready for status in pod.status.init_container_statuses] == [True]
            assert pod.spec.containers[0].image == "nacos/nacos-server:v2.4.3"
            assert pod.spec.containers[0].readiness_probe is not None
            mounted = [volume.config_map.name for volume in pod.spec.volumes if volume.config_map is not None]
            assert config["metadata"]["name"] in mounted
        policy = await world.client.get(NetworkPolicy, NAME, SPACE)
        assert [port.port for port in policy.spec.egress[-1].ports] == [24224]


async def until_replaced(world: World, number: int) -> int:
    """Until so many servers have other pods; how few were ready on the way."""
    uids, lowest = {pod.metadata.uid for pod in await world.pods(NAME)}, 3
    for _ in range(1800):
        await world.advance(1.0)
        pods = await world.pods(NAME)
        ready = [pod for pod in pods if any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)]
        lowest = min(lowest, len(ready))
        if len(pods) == 3 and len({pod.metadata.uid for pod in pods} - uids) >= number:
            return lowest
    raise AssertionError(f"not replaced: {[pod.metadata.name for pod in pods]}")


async def test_it_is_removed_and_added_one_server_at_a_time() -> None:
    async with a_world() as world, world.operating():
        wrapper = await applied(world)
        await world.client.patch(Nacos, NAME, MergePatch({"spec": {"k8sWrapper": None}}), SPACE)
        assert await until_replaced(world, 3) >= 2
        assert {str(parts(pod)) for pod in await world.pods(NAME)} == {str(([], [NAME]))}
        await world.until(NAME)
        await world.change(NAME, k8sWrapper=wrapper)
        assert await until_replaced(world, 3) >= 2
        await world.until(NAME)
        assert {str(parts(pod)) for pod in await world.pods(NAME)} == {str((["log-shipper"], [NAME]))}


async def test_a_shipper_that_cannot_start_stops_at_the_first_server() -> None:
    rules = [Rule(image="nobody/has:this", behave="image-pull-error")]
    async with a_world(rules=rules) as world, world.operating():
        wrapper = await applied(world)
        before = await world.client.get(Nacos, NAME, SPACE)
        wrapper["PodSpec"]["initContainers"][0]["image"] = "nobody/has:this"
        uids = {pod.metadata.uid for pod in await world.pods(NAME)}
        await world.change(NAME, k8sWrapper=wrapper)
        await world.advance(1800.0)
        left = [pod for pod in await world.pods(NAME) if pod.metadata.uid in uids]
        assert len(left) == 2
        nacos = await world.nacos(NAME)
        assert "ImagePullBackOff" in str(nacos.status.kube_conditions)
        wrapper["PodSpec"]["initContainers"][0]["image"] = "fluent/fluent-bit:4.0.3"
        await world.change(NAME, k8sWrapper=wrapper)
        await world.until(NAME)
        assert before.spec.k8s_wrapper == (await world.nacos(NAME)).spec.k8s_wrapper


def test_the_documentation_shows_a_part_of_the_example() -> None:
    page = (ROOT / "docs" / "nacos.md").read_text()
    block = next(text for text in page.split("```yaml\n") if "k8sWrapper:" in text).partition("```")[0]
    shown = yaml.safe_load(block)["spec"]["k8sWrapper"]["PodSpec"]
    whole = objects()[1]["spec"]["k8sWrapper"]["PodSpec"]
    assert shown["containers"] == whole["containers"]
    (shipper,), (full,) = shown["initContainers"], whole["initContainers"]
    assert shipper.pop("volumeMounts")[0] == full["volumeMounts"][0]
    assert shipper.items() <= full.items()
    assert shown["volumes"] == whole["volumes"][:1]


def test_the_configuration_of_the_shipper_reads_where_the_server_writes() -> None:
    """It is read by Fluent Bit, so that the API server sees nothing of its mistakes."""
    config, nacos = objects()
    pipeline = yaml.safe_load(config["data"]["fluent-bit.yaml"])["pipeline"]
    wrapper = nacos["spec"]["k8sWrapper"]["PodSpec"]
    mounts = {mount["mountPath"]: mount for mount in wrapper["initContainers"][0]["volumeMounts"]}
    (tail,), (forward,) = pipeline["inputs"], pipeline["outputs"]
    assert tail["path"].startswith(f"{LOGS}/")
    assert "readOnly" not in mounts[tail["db"].rpartition("/")[0]]
    assert wrapper["initContainers"][0]["args"][1].rpartition("/")[0] in mounts
    rule = nacos["spec"]["networkPolicy"]["egress"]["allow"][0]
    assert [port["port"] for port in rule["ports"]] == [forward["port"]]
    assert rule["to"][0]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": forward["host"].split(".")[1]
    }
