"""The state of one reconcile: the resource, what its steps have observed so far, and what blocks the virtual machine.

Steps do not end a reconcile: they note trouble, and those that build something look whether they may. So whatever is
wrong with a disk, the status still says how the machine is that runs.
"""

from __future__ import annotations

from collections.abc import Collection

from konverge.client import AlreadyExists, BadRequest, Forbidden, InternalError, Invalid, MethodNotAllowed, NotFound
from konverge.objects import Object
from konverge.operators.wukong.definitions import Definitions
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.ownership import may_write
from konverge.operators.wukong.resource import AnyWukong, Wukong
from konverge.operators.wukong.status import NetworkStatus, Trouble, VolumeStatus, WukongStatus
from konverge.runtime import Context

REFUSALS = (Invalid, Forbidden, BadRequest, NotFound, AlreadyExists, MethodNotAllowed, InternalError)
"""What another try will hardly change: a refusal, a missing definition, a webhook that fails."""


class ReconcileState:
    """What the steps of one reconcile share."""

    wukong: Wukong | None = None
    """The resource with its spec read; None while, or because, that cannot be."""
    vm: VirtualMachine | None = None
    vmi: VirtualMachineInstance | None = None

    def __init__(self, ctx: Context[AnyWukong], options: Options, definitions: Definitions | None = None) -> None:
        self.ctx = ctx
        self.options = options
        self.definitions = definitions or Definitions()
        self.reasons: dict[str, str] = {}
        """Of the conditions as they were before: what is still the same needs no second event."""
        self.trouble: list[Trouble] = []
        self.refusals: list[Trouble] = []
        """What was asked for and cannot be, while the machine goes on as it is."""
        self.networks: list[NetworkStatus] = []
        self.volumes: list[VolumeStatus] = []
        self.waiting: list[str] = []
        """Disks that wait for the virtual machine instead of the virtual machine waiting for them."""
        self.missing_disks: set[str] = set()
        """Disks that no machine can be made with yet."""
        self.restoring = ""
        """The snapshot that the machine is put back to: it has to be off, and its disks are not ours meanwhile."""
        self.again = False
        """There is more to do, and no event will say when: look again soon."""

    @property
    def name(self) -> str:
        return self.ctx.request.name

    @property
    def status(self) -> WukongStatus:
        return self.ctx.obj.status

    @property
    def generation(self) -> int:
        return self.ctx.obj.metadata.generation

    @property
    def spec(self) -> Wukong:
        """The resource, for steps that run only when it could be read."""
        if self.wukong is None:
            raise LookupError("the spec was not read")
        return self.wukong

    async def make(self, child: Object) -> bool:
        """Apply a child that is ours alone. Raises NotOwned for an object of another owner under its name."""
        return await self.ctx.apply(child)

    async def lacking(self, child: Object) -> str:
        """What the cluster's version of a part cannot do with a child; empty when it can do all of it."""
        return await self.definitions.lacking(self.ctx.client, child)

    async def sweep(self, kind: type[Object], keep: Collection[str]) -> None:
        """Delete children of a kind that are no longer desired."""
        for child in await self.ctx.owned(kind):
            if child.metadata.name not in keep and not child.metadata.deletion_timestamp:
                await self.ctx.delete(kind, child.metadata.name)

    def owns(self, child: Object) -> bool:
        """Whether it is ours, or asks to be."""
        return may_write(self.ctx.obj, child)

    def of(self, condition: str) -> Trouble | None:
        """The first trouble that makes a condition false; one that waiting does not help before others."""
        matching = [trouble for trouble in self.trouble if trouble.condition == condition]
        return next((trouble for trouble in matching if trouble.failed), matching[0] if matching else None)

    @property
    def failed(self) -> Trouble | None:
        return next((trouble for trouble in self.trouble if trouble.failed), None)
