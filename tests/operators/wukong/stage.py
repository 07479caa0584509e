"""One step of a Wukong's reconcile without a cluster (see `Shown`).

stage = Stage(net(), vm(), vmi("Running"))
await networks(stage.state)
assert stage.applied("NetworkAttachmentDefinition") == ["web-lan-nad"]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from konverge.objects import Object, from_dict
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.operator import REFERS, moved_instance, refers_to
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import FINALIZER, AnyWukong, Wukong
from konverge.operators.wukong.steps.migration import MOVES
from konverge.operators.wukong.steps.nodes import BRIDGES, bridges_of
from konverge.operators.wukong.steps.state import ReconcileState
from tests.operators import shown
from tests.operators.shown import OLD, Sent, Shown, controlled_by, refused
from tests.operators.wukong.specs import SMALL, Spec

__all__ = ["OLD", "Sent", "Stage", "condition", "controlled_by", "made", "refused", "vm", "vmi"]

K = TypeVar("K", bound=Object)

SPACE, NAME, UID = "team-a", "web", "4711"
MANAGER = "wukong-operator"
OWNER = {
    "apiVersion": "vm.novasphere.dev/v1alpha1",
    "kind": "Wukong",
    "name": NAME,
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}
"""A reference to the Wukong that the stage is about, as its children have it."""


def made(kind: type[K], name: str, *, owners: Iterable[dict[str, Any]] = (OWNER,), **more: Any) -> K:
    """An object as the cache has it: by default a child of the Wukong. `meta` is more metadata."""
    return shown.made(kind, name, SPACE, owners=owners, **more)


def vm(
    strategy: str = "Always",
    *,
    volumes: Iterable[str] = ("system",),
    networks: Iterable[dict[str, Any]] = (),
    meta: dict[str, Any] | None = None,
    owners: Iterable[dict[str, Any]] = (OWNER,),
    **status: Any,
) -> VirtualMachine:
    inside = {"domain": {"devices": {}}, "volumes": [{"name": name} for name in volumes], "networks": [*networks]}
    spec = {"runStrategy": strategy, "template": {"spec": inside}}
    return made(VirtualMachine, "web-vm", owners=owners, meta=meta or {}, spec=spec, status=status)


def vmi(phase: str = "Running", *, meta: dict[str, Any] | None = None, **status: Any) -> VirtualMachineInstance:
    metadata = {"uid": "uid-of-instance", "labels": {LABEL: NAME}, **(meta or {})}
    owners = (controlled_by("VirtualMachine", "web-vm"),)
    return made(VirtualMachineInstance, "web-vm", owners=owners, meta=metadata, status={"phase": phase, **status})


def condition(
    type: str, status: str = "True", reason: str = "R", message: str = "", since: str = OLD
) -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


INDEXES = {REFERS: refers_to, BRIDGES: bridges_of, MOVES: moved_instance}


class Stage(Shown):
    """`status` and `meta` are of the Wukong, `given` is its spec."""

    def __init__(
        self,
        given: Spec | None = None,
        *objects: Object,
        status: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
        without: Iterable[type[Object]] = (),
        options: Options | None = None,
    ) -> None:
        metadata = {
            "name": NAME, "namespace": SPACE, "uid": UID, "resourceVersion": "3", "generation": 2,
            "finalizers": [FINALIZER], **(meta or {}),
        }  # fmt: skip
        head = {"apiVersion": OWNER["apiVersion"], "kind": OWNER["kind"]}
        data = {**head, "metadata": metadata, "spec": SMALL if given is None else given, "status": status or {}}
        obj = from_dict(AnyWukong, data)
        super().__init__(MANAGER, obj, *objects, without=without, indexes=INDEXES)
        self.ctx = self.context(obj)
        self.state = ReconcileState(self.ctx, options or Options())
        try:
            self.state.wukong = from_dict(Wukong, data)
        except msgspec.ValidationError:
            self.state.wukong = None

    def reasons(self) -> list[str]:
        """Of the trouble that was noted."""
        return [trouble.reason for trouble in self.state.trouble]

    def said(self, type: str) -> tuple[str, str] | None:
        """Status and reason of a condition."""
        for entry in self.state.status.conditions:
            if entry.type == type:
                return entry.status, entry.reason
        return None
