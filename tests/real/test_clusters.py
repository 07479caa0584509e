"""Home is the real kube-apiserver; another cluster, named by a Secret there, is ours over sockets."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, MergePatch, NotFound, load_config
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.clusters import KubeconfigSecrets
from konverge.runtime.clusters.secrets import LABEL
from konverge.runtime.manager import LeaderElection
from tests.real.embedded import embedded_server
from tools.control_plane import ControlPlane

FLEET, SPACE = "fleet", "default"


async def until(true: Callable[[], Awaitable[Any]], what: str) -> None:
    try:
        async with asyncio.timeout(120):
            while not await true():
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise AssertionError(f"{what} did not come") from error


async def greet(ctx: Context[ConfigMap]) -> None:
    greeting = ConfigMap(metadata=ObjectMeta(name=f"{ctx.request.name}-greeting"), data={"from": ctx.cluster or "home"})
    await ctx.apply(greeting)
    if ctx.cluster:
        seen = ConfigMap(metadata=ObjectMeta(name=f"seen-{ctx.cluster}", namespace=FLEET), data={"seen": "yes"})
        await ctx.clusters.home.apply(seen)


async def greeting(client: Client, name: str) -> str:
    try:
        return (await client.get(ConfigMap, f"{name}-greeting", SPACE)).data["from"]
    except NotFound:
        return ""


@pytest.mark.spec("R-83", "R-84", "R-85")
async def test_a_cluster_of_a_secret_comes_breaks_and_goes(real_server: ControlPlane, tmp_path: Path) -> None:
    with embedded_server(tmp_path) as kubeconfig:
        async with (
            Client.connect(load_config(kubeconfig=real_server.kubeconfig)) as home,
            Client.connect(load_config(kubeconfig=kubeconfig)) as east,
        ):
            await home.create(Namespace(metadata=ObjectMeta(name=FLEET)))
            manager = Manager(
                home,
                name="greeter",
                clusters=KubeconfigSecrets(FLEET),
                leader_election=LeaderElection(name="greeter", namespace=FLEET),
            )
            manager.add(Controller(ConfigMap, greet, owns=[ConfigMap], label_selector="greeted", clusters="all"))
            async with manager.running():
                for client in (home, east):
                    meta = ObjectMeta(name="a", namespace=SPACE, labels={"greeted": "yes"})
                    await client.create(ConfigMap(metadata=meta))
                await until(lambda: greeting(home, "a"), "the greeting at home")
                label, value = LABEL.split("=")
                content = base64.b64encode(kubeconfig.read_bytes()).decode()
                meta = ObjectMeta(name="east", namespace=FLEET, labels={label: value})
                await home.create(Secret(metadata=meta, data={"kubeconfig": content}))
                await until(lambda: greeting(east, "a"), "the greeting in the other cluster")
                assert (await greeting(home, "a"), await greeting(east, "a")) == ("home", "east")
                await until(lambda: exists(home, "seen-east"), "the write to the home cluster")

                broken = MergePatch({"data": {"kubeconfig": base64.b64encode(b"{").decode()}})
                await home.patch(Secret, "east", broken, FLEET)
                remark = manager.health.remarks["clusters"]
                await until(lambda: said(remark(), "east cannot be used: Secret fleet/east is not YAML"), "a remark")
                await home.delete(Secret, "east", FLEET)
                await until(lambda: forgotten(manager), "the end")


async def exists(client: Client, name: str) -> bool:
    try:
        await client.get(ConfigMap, name, FLEET)
    except NotFound:
        return False
    return True


async def said(text: str, part: str) -> bool:
    return part in text


async def forgotten(manager: Manager) -> bool:
    """Whether nothing is known of another cluster any more, and nothing is wrong with any."""
    return not (manager.fleet and manager.fleet.members) and not manager.health.remarks["clusters"]()
