"""`SimulatedKubeVirt`: puts KubeVirt, CDI, Multus and NMState to work on a simulated cluster.

Each part has definitions, and most have controllers; a part that is left out is not there at all, and can be installed
later, as on a cluster whose administrator does one thing after the other.

Claims can lose their volume on purpose: it is deleted behind the controllers' back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Any, Literal, Self

from konverge.client import AlreadyExists, Client, MergePatch, NotFound
from konverge.client.definitions import until_served
from konverge.objects.kinds.core_v1 import Namespace, PersistentVolume, PersistentVolumeClaim
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Settings
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import faults
from konverge.sim.kubevirt.admission import admitting
from konverge.sim.kubevirt.controller import KindController, Pace, Timings
from konverge.sim.kubevirt.crds import PARTS, definitions
from konverge.sim.kubevirt.datavolumes import DataVolumes
from konverge.sim.kubevirt.instances import Instances
from konverge.sim.kubevirt.kinds import KubeVirt, Obj, set_condition
from konverge.sim.kubevirt.machines import Machines
from konverge.sim.kubevirt.migrations import Migrations
from konverge.sim.kubevirt.nodenetworks import NodeNetworks
from konverge.sim.kubevirt.restores import Restores
from konverge.sim.kubevirt.snapshots import Snapshots
from konverge.sim.kubevirt.subresources import serving


async def lose(ctx: Context[PersistentVolumeClaim]) -> None:
    name = ctx.obj.spec.volume_name
    if ctx.deleting or not name or ctx.obj.status.phase != "Bound" or "lost" not in await faults.of(ctx, "pvc"):
        return
    with suppress(NotFound):
        await ctx.client.delete(PersistentVolume, name)
        await ctx.client.patch(PersistentVolume, name, MergePatch({"metadata": {"finalizers": None}}))


_CLAIM_FAULTS = faults.switches(PersistentVolumeClaim)
NAMESPACE = "kubevirt"
SERVED_WITHIN = 120.0
_MANAGER = "simulated-kubevirt"


class SimulatedKubeVirt:
    """Everything that a virtual machine operator finds on a cluster.

    async with Cluster() as cluster, SimulatedKubeVirt(cluster, cdi="legacy") as kubevirt:
        ...
    """

    def __init__(
        self,
        cluster: Cluster | Client,
        *,
        cdi: Literal["populator", "legacy"] = "populator",
        rollout: Literal["Stage", "LiveUpdate"] = "Stage",
        parts: Collection[str] = PARTS,
        timings: Timings | None = None,
        seed: int = 0,
    ) -> None:
        """`cluster` may be a client of any API server that has nodes, a scheduler and volumes; what only the embedded
        server can do (refusing what KubeVirt's webhooks refuse) is left out then. `parts` are those of `PARTS` that are
        there from the start; `rollout` is what becomes of changes to a running machine."""
        unknown = set(parts) - set(PARTS)
        if unknown:
            raise ValueError(f"there is no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
        self._cluster = cluster if isinstance(cluster, Cluster) else None
        self._client = cluster.client if isinstance(cluster, Cluster) else cluster
        self._populator = cdi == "populator"
        self._rollout = rollout
        self._wanted = tuple(part for part in PARTS if part in parts)
        self.timings = timings or Timings()
        self.pace = Pace(seed)
        self.installed: set[str] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._stack = stack
            if self._cluster is not None:
                stack.enter_context(admitting(self._cluster.server))
            for part in self._wanted:
                await self.install(part)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    async def install(self, part: str) -> None:
        """Have a part from now on: its definitions, and its controllers at work."""
        if part in self.installed:
            return
        self.installed.add(part)
        for definition in definitions(part):
            await self._client.apply(definition, field_manager=_MANAGER, force=True)
        async with asyncio.timeout(SERVED_WITHIN):
            for definition in definitions(part):
                await until_served(self._client, definition["metadata"]["name"])
        if part == "kubevirt":
            await self._deploy()
            if self._cluster is not None:
                self._stack.enter_context(serving(self._cluster.server, self._client))
        controllers = self._controllers(part)
        if controllers:
            await self._stack.enter_async_context(_manager(self._client, part, controllers).running())

    def _controllers(self, part: str) -> list[Controller[Any]]:
        match part:
            case "kubevirt":
                losses = Controller(PersistentVolumeClaim, lose, name="volume-losses", watches=[_CLAIM_FAULTS])
                return [*self._of(Machines, Instances, Migrations), losses]
            case "cdi":
                return DataVolumes(self.pace, self.timings, populator=self._populator).controllers()
            case "nmstate":
                return self._of(NodeNetworks)
            case "snapshot":
                return self._of(Snapshots, Restores)
        return []

    def _of(self, *kinds: Callable[[Pace, Timings], KindController[Any]]) -> list[Controller[Any]]:
        return [controller for make in kinds for controller in make(self.pace, self.timings).controllers()]

    async def _deploy(self) -> None:
        """The object in which an administrator configures KubeVirt."""
        with suppress(AlreadyExists):
            await self._client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        configuration = {"vmRolloutStrategy": self._rollout, "developerConfiguration": {"featureGates": ["Snapshot"]}}
        made = KubeVirt(
            metadata=ObjectMeta(name="kubevirt", namespace=NAMESPACE),
            spec={"configuration": configuration},
            status={"phase": "Deployed", "observedKubeVirtVersion": "v1.8.0", "conditions": _deployed()},
        )
        with suppress(AlreadyExists):
            await self._client.create(made)
        await self._client.apply(made, subresource="status", field_manager=_MANAGER, force=True)


def _deployed() -> list[Obj]:
    """The conditions of a KubeVirt that runs. Upstream: pkg/virt-operator/util/conditions.go of KubeVirt."""
    status: Obj = {}
    set_condition(status, "Available", True, "AllComponentsReady", "All components are ready.")
    set_condition(status, "Progressing", False, "AllComponentsReady", "All components are ready.")
    set_condition(status, "Degraded", False, "AllComponentsReady", "All components are ready.")
    return list(status["conditions"])


def _manager(client: Client, part: str, controllers: list[Controller[Any]]) -> Manager:
    """Like those of a cluster, they never give up; and tests should not wait for their longest back-off."""
    settings = Settings(max_retries=0, max_delay=15.0)
    manager = Manager(client, name=f"{_MANAGER}-{part}", settings=settings, check_permissions=False)
    for controller in controllers:
        manager.add(controller)
    return manager
