"""Step 8: the VirtualMachine. Made when all networks are there and all disks are, or wait for their first consumer.

Only our own fields are written, and none when they are as wished. What a machine needs beside it (cloud-init, Services)
is made before it, since it does not start without.
"""

from __future__ import annotations

import msgspec

from konverge.objects.kinds.core_v1 import Secret, Service
from konverge.operators.wukong import names, wish
from konverge.operators.wukong.children.cloudinit import MissingSecret, cloud_init_for
from konverge.operators.wukong.children.services import services_for
from konverge.operators.wukong.children.virtualmachine import virtual_machine_for
from konverge.operators.wukong.conditions import VIRTUAL_MACHINE_READY, VOLUMES_BOUND, Trouble
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.power import HALTED_FROM, halt_mark, overruled, strategy_for
from konverge.operators.wukong.steps.foreign import with_foreign
from konverge.operators.wukong.steps.networks import sweep
from konverge.operators.wukong.steps.pause import pause
from konverge.operators.wukong.steps.restart import restart, restart_marks
from konverge.operators.wukong.steps.round import Round

_decode = msgspec.json.Decoder().decode


async def look(round: Round) -> None:
    """The machine as the cache has it: several steps go by that."""
    name = names.machine(round.name)
    if round.ctx.serves(VirtualMachine):
        round.vm = await round.ctx.get(VirtualMachine, name)
    if round.ctx.serves(VirtualMachineInstance):
        round.vmi = await round.ctx.get(VirtualMachineInstance, name)


async def machine(round: Round) -> None:
    """Make it, or bring it up to date; then restart or pause it, if that is wished."""
    if not round.ctx.serves(VirtualMachine):
        message = "the cluster has no KubeVirt: install it"
        round.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "KubeVirtMissing", message))
        return
    if not _may_build(round) or not await _around(round):
        return
    await _apply(round)
    if not round.restoring:
        await restart(round)
        await pause(round)
    await sweep(round)


def _may_build(round: Round) -> bool:
    """A machine that is there has the disks it has: what is still wrong with one of them does not stop its power."""
    if not round.trouble:
        return True
    if round.vm is None or any(one.condition != VOLUMES_BOUND for one in round.trouble):
        return False
    plugged = {one.name for one in round.vm.spec.template.spec.volumes or ()}
    return round.missing_disks <= plugged


async def _around(round: Round) -> bool:
    """The Secret for cloud-init and the Services; False when a Secret of the user is missing."""
    ctx, spec = round.ctx, round.spec.spec
    found = {name: await ctx.get(Secret, name) for name in sorted(wish.secrets_read(spec) | wish.secrets_mounted(spec))}
    missing = [name for name, secret in found.items() if secret is None]
    try:
        if missing:
            raise MissingSecret(f"there is no Secret {', '.join(missing)}")
        own = cloud_init_for(round.spec, {name: secret for name, secret in found.items() if secret is not None})
    except MissingSecret as error:
        round.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "SecretNotFound", str(error)))
        return False
    if own is not None:
        await round.make(own)
    wanted = services_for(round.spec)
    for service in wanted:
        await round.make(service)
    keep = {service.metadata.name for service in wanted} | ({own.metadata.name} if own is not None else set())
    await _sweep(round, keep)
    return True


async def _sweep(round: Round, keep: set[str]) -> None:
    """Secrets and Services of ours that are no longer wished."""
    for kind in (Secret, Service):
        for one in await round.ctx.owned(kind):
            if one.metadata.name not in keep:
                await round.ctx.delete(kind, one.metadata.name)


async def _apply(round: Round) -> None:
    ctx, live = round.ctx, round.vm
    if live is not None and (live.metadata.deletion_timestamp or live.status.restore_in_progress):
        return  # it goes and is made again when it is gone; or KubeVirt puts it back, and is not to be disturbed
    spec = round.spec.spec
    strategy = strategy_for(spec, live, halt=bool(round.restoring))
    wanted = virtual_machine_for(round.spec, strategy=strategy)
    wanted.metadata.annotations |= restart_marks(round) | halt_mark(live, halt=bool(round.restoring))
    record = ctx.caches.lister(VirtualMachine)
    raw = record.raw(wanted.metadata.name, ctx.request.namespace) if record is not None else None
    if not await round.make(with_foreign(wanted, None if raw is None else _decode(raw.raw))):
        return
    known = round.status.observed_generation == round.generation  # else it is the spec that has changed
    if live is None:
        ctx.event("VirtualMachineCreated", f"VirtualMachine {wanted.metadata.name} made")
    elif (
        known
        and not round.restoring
        and HALTED_FROM not in live.metadata.annotations
        and overruled(spec, live, strategy)
    ):
        field = "powerState" if spec.power_state is not None else "running"
        ctx.warning(
            "PowerReverted", f"runStrategy was {live.spec.run_strategy}: change spec.{field} of the Wukong instead"
        )
