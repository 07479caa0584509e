"""What the stories of upgrades share."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from konverge import clock
from konverge.client import MergePatch, NotFound
from konverge.objects import times
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.operators.nacos.resource import ALLOW, Nacos, UpgradeStatus
from konverge.operators.nacos.steps.upgrade.backups import AnyBackup
from tests.operators.nacos.world import SPACE, World

FIRST, SECOND, THIRD = (f"nacos/nacos-server:v{version}" for version in ("2.0.4", "2.4.3", "2.5.0"))
_DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nacosbackups.nacos.io"},
    "spec": {
        "group": "nacos.io",
        "names": {"kind": "NacosBackup", "plural": "nacosbackups", "singular": "nacosbackup"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


async def backup_kind(world: World, *, exists: bool) -> None:
    """With any schema: what an upgrade reads of a backup is its reference and its status."""
    with suppress(NotFound):
        await world.client.delete(CustomResourceDefinition, "nacosbackups.nacos.io")
    await world.advance(5.0)
    if exists:
        await world.client.create(_DEFINITION)
        await world.advance(5.0)


async def completed_backup(world: World, name: str, *, age: float = 0.0, of: str = "nacos", **status: Any) -> None:
    moment = times.format_time(clock.utc_now() - timedelta(seconds=age))
    body = {
        "apiVersion": "nacos.io/v1alpha1",
        "kind": "NacosBackup",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"nacosRef": {"name": of}},
        "status": {"phase": "Completed", "completionTime": moment, **status},
    }
    await world.client.create(body, resource=AnyBackup.resource)


async def upgrade_of(world: World) -> UpgradeStatus:
    upgrade = (await world.nacos("nacos")).status.upgrade
    return upgrade if upgrade is not None else UpgradeStatus()


async def images(world: World) -> dict[str, str]:
    return {pod.metadata.name: str(pod.spec.containers[0].image) for pod in await world.pods()}


async def until_step(world: World, step: str, *, done: int = 0, limit: int = 600) -> UpgradeStatus:
    """Until the upgrade is in a step, with at least so many members done."""
    for _ in range(limit):
        upgrade = await upgrade_of(world)
        if upgrade.step == step and len(upgrade.members_done) >= done:
            return upgrade
        await world.advance(1.0)
    raise AssertionError(f"not {step} with {done}: {await upgrade_of(world)}")


async def until_halted(world: World, reason: str, *, limit: int = 900) -> UpgradeStatus:
    for _ in range(limit):
        upgrade = await upgrade_of(world)
        if upgrade.halted == reason:
            return upgrade
        await world.advance(1.0)
    raise AssertionError(f"not halted by {reason}: {await upgrade_of(world)}")


async def allow(world: World, value: str) -> None:
    await world.client.patch(Nacos, "nacos", MergePatch({"metadata": {"annotations": {ALLOW: value}}}), SPACE)
