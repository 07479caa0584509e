"""A simulated cluster with KubeVirt and its kin, and the Wukong operator at work on it. Its writes are noted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from konverge.client import Call, Client, MergePatch, NotFound, Recording
from konverge.objects import Object
from konverge.objects.kinds.core_v1 import Event
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.operator import OPERATOR, controllers
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import AnyWukong, Wukong
from konverge.runtime import Manager, find_condition
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import PARTS, SimulatedKubeVirt

K = TypeVar("K", bound=Object)

SPACE = "default"
NAME = "web"
IMAGE = "https://example.com/noble.img"
SPEC: dict[str, Any] = {
    "cpu": 2,
    "memory": "2Gi",
    "disks": [{"name": "system", "size": "10Gi", "storageClassName": "fast", "image": IMAGE}],
}
"""A machine with a downloaded image on a class that binds at once."""
MODES = ("populator", "legacy")
MODES_IN_TURN = ("populator", pytest.param("legacy", marks=pytest.mark.long))
"""For what has little to do with how CDI works: the second one belongs to the long suite."""
_PATIENCE = 900


class World:
    """The cluster, what is simulated on it, and the operator."""

    def __init__(self, cluster: Cluster, kubevirt: SimulatedKubeVirt, manager: Manager, recording: Recording) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client
        self.kubevirt = kubevirt
        self.manager = manager
        self.recording = recording

    # -------------------------------------------------------------- acting

    async def create(self, name: str = NAME, **spec: Any) -> None:
        await self.client.create(
            {
                "apiVersion": "vm.novasphere.dev/v1alpha1",
                "kind": "Wukong",
                "metadata": {"name": name, "namespace": SPACE},
                "spec": SPEC | spec,
            }
        )

    async def change(self, name: str = NAME, **spec: Any) -> None:
        await self.client.patch(AnyWukong, name, MergePatch({"spec": spec}), SPACE)

    async def delete(self, name: str = NAME) -> None:
        await self.client.delete(Wukong, name, SPACE)

    async def running(self, name: str = NAME, **spec: Any) -> AnyWukong:
        """A new machine, once it runs."""
        await self.create(name, **spec)
        return await self.phase("Running", name)

    # -------------------------------------------------------------- looking

    async def wukong(self, name: str = NAME) -> AnyWukong:
        return await self.client.get(AnyWukong, name, SPACE)

    async def find(self, kind: type[K], name: str, namespace: str = SPACE) -> K | None:
        try:
            return await self.client.get(kind, name, namespace)
        except NotFound:
            return None

    async def vm(self, name: str = NAME) -> VirtualMachine | None:
        return await self.find(VirtualMachine, f"{name}-vm")

    async def vmi(self, name: str = NAME) -> VirtualMachineInstance | None:
        return await self.find(VirtualMachineInstance, f"{name}-vm")

    async def condition(self, type: str, name: str = NAME) -> tuple[str, str]:
        """Status and reason."""
        condition = find_condition((await self.wukong(name)).status.conditions, type)
        return ("", "") if condition is None else (condition.status, condition.reason)

    async def message(self, type: str, name: str = NAME) -> str:
        condition = find_condition((await self.wukong(name)).status.conditions, type)
        return "" if condition is None else condition.message

    def writes(self) -> list[Call]:
        """What the operator wrote since the last time this was asked; events tell, they are not counted."""
        writes = [call for call in self.recording.writes if call.resource != Event.resource]
        self.recording.calls.clear()
        return writes

    async def events(self) -> list[str]:
        result = await self.client.list(Event, SPACE, field_selector="involvedObject.kind=Wukong")
        return [event.reason or "" for event in result]

    # -------------------------------------------------------------- waiting

    async def until(self, true: Callable[[], Any], what: str) -> None:
        """Wait on virtual time; `true` is an async function without arguments."""
        for _ in range(_PATIENCE):
            if await true():
                return
            await asyncio.sleep(1)
        seen = (await self.wukong()).status if await self.find(Wukong, NAME) else None
        raise AssertionError(f"{what} did not come within {_PATIENCE} s: {seen}")

    async def phase(self, phase: str, name: str = NAME) -> AnyWukong:
        async def reached() -> bool:
            return (await self.wukong(name)).status.phase == phase

        await self.until(reached, f"phase {phase}")
        return await self.wukong(name)

    async def until_condition(self, type: str, status: str, reason: str, name: str = NAME) -> None:
        async def reached() -> bool:
            return await self.condition(type, name) == (status, reason)

        await self.until(reached, f"{type}={status} {reason}")

    async def gone(self, kind: type[Object], name: str, namespace: str = SPACE) -> None:
        async def away() -> bool:
            return await self.find(kind, name, namespace) is None

        await self.until(away, f"the end of {kind.__name__} {name}")


CLASSES = (
    StorageClass(provisioner="konverge.dev/volumes", volume_binding_mode="Immediate", allow_volume_expansion=True),
    StorageClass(
        provisioner="konverge.dev/volumes", volume_binding_mode="WaitForFirstConsumer", allow_volume_expansion=True
    ),
    StorageClass(provisioner="konverge.dev/volumes", volume_binding_mode="Immediate"),
)


async def make_classes(client: Client) -> None:
    """`fast` binds at once, `lazy` waits for its first consumer, `rigid` cannot grow."""
    for name, item in zip(("fast", "lazy", "rigid"), CLASSES, strict=True):
        item.metadata.name = name
        await client.create(item)


@asynccontextmanager
async def operating(
    client: Client, options: Options | None = None, *, check_permissions: bool = False, **more: Any
) -> AsyncIterator[Manager]:
    """`check_permissions` is for a client that has not all of them: asking for each takes longer than the rest of the
    operator's start."""
    manager = Manager(client, name=OPERATOR.identity, check_permissions=check_permissions, **more)
    for controller in controllers(options or Options()):
        manager.add(controller)
    async with manager.running():
        yield manager


@asynccontextmanager
async def world(
    *, cdi: Any = "populator", options: Options | None = None, parts: tuple[str, ...] = tuple(PARTS), **more: Any
) -> AsyncIterator[World]:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, cdi=cdi, parts=parts, **more) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        recording = Recording(cluster.client)
        async with operating(recording, options) as manager:
            yield World(cluster, kubevirt, manager, recording)
