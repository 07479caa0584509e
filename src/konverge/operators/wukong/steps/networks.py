"""Step 6: the networks. A NetworkAttachmentDefinition that is named must be there; any other is made, and repaired.

A machine without one of its networks would be another machine, so where Multus is missing it is not started: the pod
network takes nobody's place in silence.
"""

from __future__ import annotations

from konverge.operators.wukong import names, wish
from konverge.operators.wukong.children.networks import nad_for
from konverge.operators.wukong.conditions import NETWORKS_CONFIGURED, Trouble
from konverge.operators.wukong.kinds import NetworkAttachmentDefinition
from konverge.operators.wukong.spec_networks import Network
from konverge.operators.wukong.status import NetworkStatus
from konverge.operators.wukong.steps.nodes import node_network
from konverge.operators.wukong.steps.round import Round


async def networks(round: Round) -> None:
    """Make or find what every interface is attached to."""
    wukong = round.spec
    known = {one.name: one for one in round.status.networks}
    for network in wish.attached(wukong.spec):
        entry = known.get(network.name) or NetworkStatus(name=network.name)
        entry.nad_name = wish.attachment_name(wukong, network)
        entry.primary = network.primary
        entry.mac_address = entry.mac_address or wish.mac_for(wukong, network)
        round.networks.append(entry)
        trouble = await _attach(round, network)
        if trouble is not None:
            round.trouble.append(trouble)


async def _attach(round: Round, network: Network) -> Trouble | None:
    if wish.is_pod_network(network):
        return None
    if not round.ctx.serves(NetworkAttachmentDefinition):
        return _no(network, "MultusMissing", "the cluster has no Multus: install it, or leave the network out")
    if network.nad_name is not None:
        return await _given(round, network, network.nad_name)
    await round.make(nad_for(round.spec, network))
    return await node_network(round, network)


async def _given(round: Round, network: Network, name: str) -> Trouble | None:
    namespace, _, plain = name.rpartition("/")
    found = await round.ctx.get(NetworkAttachmentDefinition, plain, namespace or None)
    if found is None:
        return _no(network, "NetworkNotFound", f"there is no NetworkAttachmentDefinition {name}")
    return None


def _no(network: Network, reason: str, message: str) -> Trouble:
    return Trouble(NETWORKS_CONFIGURED, reason, f"network {network.name}: {message}")


async def sweep(round: Round) -> None:
    """Definitions of ours that no network has any more, once the machine has let go of them."""
    ctx, wukong = round.ctx, round.spec
    if not ctx.serves(NetworkAttachmentDefinition):
        return
    wished = {wish.attachment_name(wukong, network) for network in wukong.spec.networks}
    used = _used(round)
    for one in await ctx.owned(NetworkAttachmentDefinition):
        name = one.metadata.name
        if name not in wished and name not in used and not one.metadata.deletion_timestamp:
            await ctx.delete(NetworkAttachmentDefinition, name)


def _used(round: Round) -> set[str]:
    """By the machine as it is, or as it still runs."""
    template = round.vm.spec.template.spec.networks or [] if round.vm is not None else []
    plugged = {one.name for one in round.vmi.status.interfaces} if round.vmi is not None else set()
    found = {one.multus.network_name for one in template if one.multus is not None}
    return found | {names.attachment(round.name, one) for one in plugged if one}
