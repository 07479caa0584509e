"""Networks: the NetworkAttachmentDefinition of each, and NMState's policy for a bridge on the nodes.

An attachment has no IPAM: the bridge plugin refuses that beside `disableContainerInterface`, and addresses of guests
come from cloud-init or from the net's own DHCP. VLANs are tags of an attachment, so that one bridge carries all.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from konverge.objects import ObjectMeta
from konverge.operators.wukong import names
from konverge.operators.wukong.children import metadata
from konverge.operators.wukong.effective_spec import bridge_of
from konverge.operators.wukong.kinds.networks import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
    NodeNetworkConfigurationPolicy,
    PolicySpec,
)
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec_networks import Network

CNI_VERSION = "0.3.1"
RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
"""What a pod needs to be put where the network is: a device of this pool."""

BridgeType = Literal["bridge", "ovs"]


def nad_for(wukong: Wukong, network: Network) -> NetworkAttachmentDefinition:
    """The attachment of a network that names none."""
    name = names.attachment(wukong.metadata.name, network.name)
    meta = metadata(wukong, name)
    if network.resource_name is not None:
        meta.annotations = {RESOURCE_NAME: network.resource_name}
    config = {"cniVersion": CNI_VERSION, "name": name, **_plugin(network)}
    return NetworkAttachmentDefinition(
        metadata=meta, spec=NetworkAttachmentDefinitionSpec(config=json.dumps(config, separators=(",", ":")))
    )


def _plugin(network: Network) -> dict[str, Any]:
    given = {"vlan": network.vlan_id, "mtu": network.mtu}
    own: dict[str, Any]
    if network.type == "sriov":
        own = {"type": "sriov"}
    elif network.type == "ovs":
        own = {"type": "ovs", "bridge": bridge_of(network)}
    elif network.type == "bridge":
        own = {
            "type": "bridge",
            "bridge": bridge_of(network),
            "macspoofchk": True,
            "disableContainerInterface": True,
        }
        if network.vlan_id is not None:
            # Otherwise untagged frames of the bridge's own VLAN would reach the guest, too.
            own["preserveDefaultVlan"] = False
    else:
        raise ValueError(f"network {network.name}: there is no attachment of type {network.type}")
    return own | {key: value for key, value in given.items() if value is not None}


def policy_for(bridge: str, interface: str, type: BridgeType = "bridge") -> NodeNetworkConfigurationPolicy:
    """A bridge over an interface of the nodes: one for all machines that use it, so nothing of them is in it.

    The bridge has no address: it is for the machines, the nodes have their own way. (The original gave it one by DHCP.)
    """
    return _policy(bridge, interface, [_ovs_bridge(bridge, interface) if type == "ovs" else _bridge(bridge, interface)])


def removed_policy_for(bridge: str, interface: str, type: BridgeType = "bridge") -> NodeNetworkConfigurationPolicy:
    """The way back: NMState does nothing when a policy is deleted, and leaves an interface down that it took out."""
    kind = "ovs-bridge" if type == "ovs" else "linux-bridge"
    return _policy(
        bridge,
        interface,
        [
            {"name": bridge, "type": kind, "state": "absent"},
            {"name": interface, "type": "ethernet", "state": "up"},
        ],
    )


def _policy(bridge: str, interface: str, interfaces: list[dict[str, Any]]) -> NodeNetworkConfigurationPolicy:
    labels = {names.MANAGED_BY: names.OPERATOR, names.BRIDGE_LABEL: names.policy(bridge).removeprefix("wukong-br-")}
    return NodeNetworkConfigurationPolicy(
        metadata=ObjectMeta(name=names.policy(bridge), labels=labels),
        spec=PolicySpec(desired_state={"interfaces": interfaces}),
    )


def _bridge(bridge: str, interface: str) -> dict[str, Any]:
    tags = [{"id-range": {"min": 2, "max": 4094}}]
    trunk = {"mode": "trunk", "enable-native": True, "tag": 1, "trunk-tags": tags}
    return {
        "name": bridge,
        "type": "linux-bridge",
        "state": "up",
        "ipv4": {"enabled": False},
        "ipv6": {"enabled": False},
        "bridge": {"options": {"stp": {"enabled": False}}, "port": [{"name": interface, "vlan": trunk}]},
    }


def _ovs_bridge(bridge: str, interface: str) -> dict[str, Any]:
    return {"name": bridge, "type": "ovs-bridge", "state": "up", "bridge": {"port": [{"name": interface}]}}
