"""Step 6: the networks. A NetworkAttachmentDefinition that is named must be there; any other is made, and repaired.

A machine without one of its networks would be another machine, so where Multus is missing it is not started: the pod
network never silently replaces another one.
"""

from __future__ import annotations

from konverge.operators.wukong import effective_spec, names
from konverge.operators.wukong.children.networks import nad_for
from konverge.operators.wukong.kinds import NetworkAttachmentDefinition
from konverge.operators.wukong.spec_networks import Network
from konverge.operators.wukong.status import NetworkStatus, Trouble
from konverge.operators.wukong.steps.nodes import node_network, trouble
from konverge.operators.wukong.steps.state import ReconcileState


async def networks(state: ReconcileState) -> None:
    """Make or find what every interface is attached to."""
    wukong = state.spec
    known = {entry.name: entry for entry in state.status.networks}
    for network in effective_spec.attached(wukong.spec):
        entry = known.get(network.name) or NetworkStatus(name=network.name)
        entry.nad_name = effective_spec.attachment_name(wukong, network)
        entry.primary = network.primary
        entry.mac_address = entry.mac_address or effective_spec.mac_for(wukong, network)
        state.networks.append(entry)
        missing = await _attach(state, network)
        if missing is not None:
            state.trouble.append(missing)


async def _attach(state: ReconcileState, network: Network) -> Trouble | None:
    if network.is_pod_network:
        return None
    if not state.ctx.serves(NetworkAttachmentDefinition):
        return trouble(network, "MultusMissing", "the cluster has no Multus: install it, or leave the network out")
    if network.nad_name is not None:
        return await _given(state, network, network.nad_name)
    await state.make(nad_for(state.spec, network))
    return await node_network(state, network)


async def _given(state: ReconcileState, network: Network, name: str) -> Trouble | None:
    namespace, _, plain = name.rpartition("/")
    attachment = await state.ctx.get(NetworkAttachmentDefinition, plain, namespace or None)
    if attachment is None:
        return trouble(network, "NetworkNotFound", f"there is no NetworkAttachmentDefinition {name}")
    return None


async def sweep(state: ReconcileState) -> None:
    """Definitions of ours that no network has any more, once the machine has let go of them."""
    ctx, wukong = state.ctx, state.spec
    if not ctx.serves(NetworkAttachmentDefinition):
        return
    desired = {effective_spec.attachment_name(wukong, network) for network in wukong.spec.networks}
    await state.sweep(NetworkAttachmentDefinition, desired | _used(state))


def _used(state: ReconcileState) -> set[str]:
    """By the machine as it is, or as it still runs."""
    template = state.vm.spec.template.spec.networks or [] if state.vm is not None else []
    plugged = {entry.name for entry in state.vmi.status.interfaces} if state.vmi is not None else set()
    named = {entry.multus.network_name for entry in template if entry.multus is not None}
    return named | {names.attachment(state.name, entry) for entry in plugged if entry}
