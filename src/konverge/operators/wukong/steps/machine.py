"""Step 8: the VirtualMachine. Made when all networks are there and all disks are, or wait for their first consumer.

Only our own fields are written, and none when they are as desired. What a machine needs beside it
(cloud-init, Services) is made first, since it does not start without.

What others have put into a machine is kept by every apply. The lists of a VirtualMachine are one field each to the API
server: to apply one is to apply all of it. A volume that a user plugged in with `virtctl addvolume` is in such a list,
so it goes into the desired machine as it is. What the operator itself put there before, and no longer wants, is left
out: an annotation, written along with the lists, says what that was. So does the identity of the board, which KubeVirt
has written beside our loader: who gives up a loader would give up all of `firmware`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import msgspec

from konverge.objects import Object, Resource, field, to_dict
from konverge.objects.kinds.core_v1 import Secret, Service
from konverge.operators.wukong import effective_spec, names
from konverge.operators.wukong.children.cloudinit import MissingSecret, cloud_init_for
from konverge.operators.wukong.children.virtualmachine import services_for, virtual_machine_for
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.status import VIRTUAL_MACHINE_READY, VOLUMES_BOUND, Trouble
from konverge.operators.wukong.steps.migration import migrate
from konverge.operators.wukong.steps.networks import sweep
from konverge.operators.wukong.steps.power import (
    HALTED_FROM,
    halt_mark,
    overruled,
    pause,
    restart,
    restart_marks,
    strategy_for,
    strategy_mark,
)
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.steps.template import template_mark
from konverge.runtime import controller_of

PARTS = "vm.novasphere.dev/parts"
"""On the VirtualMachine: the names of the entries that are ours."""
_LISTS = (("volumes",), ("networks",), ("domain", "devices", "disks"), ("domain", "devices", "interfaces"))
_IDENTITY = ("uuid", "serial")
"""Of the board: licences and inventories go by it, so it stays the same for as long as there is the machine."""
_OUR_BOARD = ("fieldsV1", "f:spec", "f:template", "f:spec", "f:domain", "f:firmware")


class Machine(Object):
    """A VirtualMachine as plain data: what it holds of others may be anything."""

    resource: ClassVar[Resource] = VirtualMachine.resource

    spec: dict[str, Any] = field(default_factory=dict)


def with_foreign(desired: VirtualMachine, live: dict[str, Any] | None) -> Machine:
    """The desired machine, with the identity of the live one, and in its lists also those entries of the live one that
    never were ours."""
    spec = to_dict(desired)["spec"]
    wanted = spec["template"]["spec"]
    desired.metadata.annotations[PARTS] = ",".join(
        sorted({part["name"] for path in _LISTS for part in _at(wanted, path)})
    )
    if live is not None:
        ours = (live.get("metadata", {}).get("annotations") or {}).get(PARTS, "").split(",")
        present = live.get("spec", {}).get("template", {}).get("spec", {})
        for path in _LISTS:
            _add(wanted, present, path, ours)
        _keep_identity(wanted, present, live)
    return Machine(metadata=desired.metadata, spec=spec)


def _keep_identity(wanted: dict[str, Any], present: dict[str, Any], live: dict[str, Any]) -> None:
    """What KubeVirt has written beside a loader of ours that goes now, or that went before: from then on it is ours
    too. A cached machine says of our fields alone whose they are."""
    ours = [member for entry in live.get("metadata", {}).get("managedFields", ()) for member in _at(entry, _OUR_BOARD)]
    board, firmware = present.get("domain", {}).get("firmware") or {}, wanted["domain"].get("firmware")
    if ours and (firmware is None or any(f"f:{name}" in ours for name in _IDENTITY)):
        identity = {name: board[name] for name in _IDENTITY if name in board}
        wanted["domain"]["firmware"] = {**(firmware or {}), **identity}


def _at(spec: dict[str, Any], path: tuple[str, ...]) -> list[Any]:
    value: Any = spec
    for step in path:
        value = value.get(step) or {}
    return list(value)


def _add(wanted: dict[str, Any], present: dict[str, Any], path: tuple[str, ...], ours: Collection[str]) -> None:
    mine = _at(wanted, path)
    taken = {part.get("name") for part in mine} | set(ours)
    others = [part for part in _at(present, path) if part.get("name") not in taken]
    if others:
        *way, last = path
        for step in way:
            wanted = wanted.setdefault(step, {})
        wanted[last] = [*mine, *others]


_decode = msgspec.json.Decoder().decode


async def look(state: ReconcileState) -> None:
    """The machine as the cache has it: several steps go by that. One of another owner is none of ours."""
    name, vm = names.machine(state.name), None
    if state.ctx.serves(VirtualMachine):
        vm = await state.ctx.get(VirtualMachine, name)
        state.vm = vm if vm is not None and state.owns(vm) else None
    if state.ctx.serves(VirtualMachineInstance):
        vmi = await state.ctx.get(VirtualMachineInstance, name)
        state.vmi = vmi if vmi is not None and _is_of(state, vm, vmi) else None


def _is_of(state: ReconcileState, vm: VirtualMachine | None, vmi: VirtualMachineInstance) -> bool:
    """Of the machine that is there, if that is ours; or of the one before it, on its way out: that has our label."""
    owner = controller_of(vmi)
    if vm is not None and owner is not None and owner.uid == vm.metadata.uid:
        return state.vm is not None
    return vmi.metadata.labels.get(names.LABEL) == state.name


async def machine(state: ReconcileState) -> None:
    """Make it, or bring it up to date; then restart, pause or move it, if that is requested."""
    if not state.ctx.serves(VirtualMachine):
        message = "the cluster has no KubeVirt: install it"
        state.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "KubeVirtMissing", message))
        return
    if not _may_build(state) or not await _around(state):
        return
    await _apply(state)
    if not state.restoring:
        await restart(state)
        await pause(state)
        await migrate(state)
    await sweep(state)


def _may_build(state: ReconcileState) -> bool:
    """A machine that is there has the disks it has: what is still wrong with one of them does not stop its power."""
    if not state.trouble:
        return True
    if state.vm is None or any(entry.condition != VOLUMES_BOUND for entry in state.trouble):
        return False
    plugged = {entry.name for entry in state.vm.spec.template.spec.volumes or ()}
    return state.missing_disks <= plugged


async def _around(state: ReconcileState) -> bool:
    """The Secret for cloud-init and the Services; False when a Secret of the user is missing."""
    ctx, spec = state.ctx, state.spec.spec
    secrets = {
        name: await ctx.get(Secret, name)
        for name in sorted(effective_spec.secrets_read(spec) | effective_spec.secrets_mounted(spec))
    }
    missing = [name for name, secret in secrets.items() if secret is None]
    try:
        if missing:
            raise MissingSecret(f"there is no Secret {', '.join(missing)}")
        own = cloud_init_for(state.spec, {name: secret for name, secret in secrets.items() if secret is not None})
    except MissingSecret as error:
        state.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "SecretNotFound", str(error)))
        return False
    if own is not None:
        await state.make(own)
    wanted = services_for(state.spec)
    for service in wanted:
        await state.make(service)
    keep = {service.metadata.name for service in wanted} | ({own.metadata.name} if own is not None else set())
    await state.sweep(Secret, keep)
    await state.sweep(Service, keep)
    return True


async def _apply(state: ReconcileState) -> None:
    ctx, live = state.ctx, state.vm
    if live is not None and (live.metadata.deletion_timestamp or live.status.restore_in_progress):
        return  # it goes and is made again when it is gone; or KubeVirt puts it back, and is not to be disturbed
    spec = state.spec.spec
    strategy = strategy_for(spec, live, halt=bool(state.restoring))
    wanted = virtual_machine_for(state.spec, strategy=strategy)
    wanted.metadata.annotations |= restart_marks(state) | halt_mark(live, halt=bool(state.restoring))
    wanted.metadata.annotations |= template_mark(state) | strategy_mark(spec, live, strategy)
    record = ctx.caches.lister(VirtualMachine)
    raw = record.raw(wanted.metadata.name, ctx.request.namespace) if record is not None else None
    absent = await state.lacking(wanted)
    if absent:
        message = f"{absent}; upgrade KubeVirt, or leave out what needs it"
        state.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "KubeVirtTooOld", message, failed=True))
        return
    if not await state.make(with_foreign(wanted, None if raw is None else _decode(raw.raw))):
        return
    known = state.status.observed_generation == state.generation  # else it is the spec that has changed
    if live is None:
        ctx.event("VirtualMachineCreated", f"VirtualMachine {wanted.metadata.name} made")
    elif (
        known
        and not state.restoring
        and HALTED_FROM not in live.metadata.annotations
        and overruled(spec, live, strategy)
    ):
        field = "powerState" if spec.power_state is not None else "running"
        ctx.warning(
            "PowerReverted", f"runStrategy was {live.spec.run_strategy}: change spec.{field} of the Wukong instead"
        )
