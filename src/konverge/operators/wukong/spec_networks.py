"""The networks of a virtual machine: `spec.networks[]`.

The network called `default` is the pod network (unless it names a NetworkAttachmentDefinition). It is there without
being listed, unless another network is `primary`, which takes its place.
"""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Description, Maximum, MaxItems, MaxLength, Minimum, Model, Pattern
from konverge.operators.wukong.names import LONGEST_INTERFACE, POD_NETWORK, bridge
from konverge.operators.wukong.rules import check, given, rule
from konverge.operators.wukong.texts import (
    NO_ADDRESS,
    NO_CIDR,
    Address,
    Cidr,
    Interface,
    Label,
    Mac,
    is_address,
    is_cidr,
)

MOST_NETWORKS = 16
POD = "self.name == 'default' && !has(self.nadName)"


class Route(Model):
    """A way to other nets."""

    to: Annotated[Cidr, Description("The net.")]
    via: Annotated[Address, Description("The gateway to it.")]
    metric: Annotated[Annotated[int, Minimum(0), Maximum(4294967295)] | None, Description("The lower, the better.")] = (
        None
    )


class IpConfig(
    Model,
    rules=[
        check(lambda ip: all(map(is_cidr, ip.nets)), NO_CIDR),
        check(lambda ip: all(map(is_address, ip.gateways)), NO_ADDRESS),
        rule(
            "self.mode != 'static' || has(self.address) || (has(self.addresses) && self.addresses.size() > 0)",
            lambda ip: ip.mode != "static" or ip.is_fixed,
            "a static configuration needs an address",
            ".address",
        ),
        rule(
            "self.mode != 'dhcp' || !(has(self.address) || has(self.gateway) || "
            "(has(self.addresses) && self.addresses.size() > 0))",
            lambda ip: ip.mode != "dhcp" or not (ip.is_fixed or ip.gateway is not None),
            "with dhcp, address and gateway come from the server: leave them out, or use mode static",
            ".mode",
        ),
    ],
):
    """How the guest configures the interface; cloud-init brings it there."""

    mode: Annotated[Literal["static", "dhcp"], Description("static or dhcp.")]
    address: Annotated[Cidr | None, Description("With the length of its net: 192.168.1.10/24.")] = None
    addresses: Annotated[list[Cidr], MaxItems(16), Description("More of them, of either family.")] = []
    gateway: Annotated[Address | None, Description("The way to everywhere else.")] = None
    dns_servers: Annotated[list[Address], MaxItems(8), Description("Name servers.")] = []
    routes: Annotated[list[Route], MaxItems(32), Description("Ways to other nets.")] = []
    search_domains: Annotated[
        list[Annotated[str, Pattern(r"^[A-Za-z0-9._-]+$"), MaxLength(253)]],
        MaxItems(8),
        Description("Domains in which short names are looked for."),
    ] = []

    @property
    def is_fixed(self) -> bool:
        return self.address is not None or bool(self.addresses)

    @property
    def nets(self) -> list[str]:
        return [*filter(None, [self.address]), *self.addresses, *(route.to for route in self.routes)]

    @property
    def gateways(self) -> list[str]:
        return [*filter(None, [self.gateway]), *self.dns_servers, *(route.via for route in self.routes)]


class NodeNetwork(Model):
    """Whether the operator may make the bridge on the nodes."""

    manage: Annotated[
        bool | None,
        Description(
            "Not said: yes where physicalInterface is named. In any case only if the operator's settings allow it."
        ),
    ] = None


OF_A_BRIDGE = ("bridgeName", "physicalInterface", "nodeNetwork")
OF_A_NAD = ("vlanId", *OF_A_BRIDGE, "mtu", "resourceName")


def _any(*fields: str) -> str:
    return f"({' || '.join(f'has(self.{field})' for field in fields)})"


_SRIOV = "(has(self.type) && self.type == 'sriov')"
_BRIDGED = "(has(self.type) && self.type in ['bridge', 'ovs'])"


class Network(
    Model,
    rules=[
        rule(
            f"({POD}) || has(self.type) || has(self.nadName)",
            lambda network: network.is_pod_network or bool(network.type or network.nad_name),
            "say of which type it is (bridge, ovs, sriov), or name a NetworkAttachmentDefinition by nadName",
            ".type",
        ),
        rule(
            "!has(self.type) || self.type != 'macvlan'",
            lambda network: network.type != "macvlan",
            "KubeVirt cannot bind macvlan: use bridge, ovs or sriov",
            ".type",
        ),
        rule(
            f"!({POD}) || ((!has(self.type) || self.type == 'bridge') && !{_any(*OF_A_NAD)})",
            lambda network: (
                not network.is_pod_network or (network.type in (None, "bridge") and not given(network, OF_A_NAD))
            ),
            f"default is the pod network, which is not created: leave type, {', '.join(OF_A_NAD)} out",
        ),
        rule(
            f"!({POD}) || !has(self.ipConfig) || self.ipConfig.mode == 'dhcp'",
            lambda network: not network.is_pod_network or network.ip_config is None or network.ip_config.mode == "dhcp",
            "the pod network gives the address itself: only dhcp",
            ".ipConfig",
        ),
        rule(
            f"!has(self.nadName) || !{_any(*OF_A_NAD)}",
            lambda network: network.nad_name is None or not given(network, OF_A_NAD),
            f"an existing NetworkAttachmentDefinition is used as it is: leave {', '.join(OF_A_NAD)} out",
        ),
        rule(
            f"{_SRIOV} == has(self.resourceName) || has(self.nadName)",
            lambda network: network.nad_name is not None or network.is_sriov == (network.resource_name is not None),
            "sriov, and only that, needs the resourceName of the device pool, or a nadName",
            ".resourceName",
        ),
        rule(
            f"!{_SRIOV} || !{_any(*OF_A_BRIDGE, 'mtu', 'model')}",
            lambda network: not network.is_sriov or not given(network, (*OF_A_BRIDGE, "mtu", "model")),
            f"sriov has no bridge and a device of its own: leave {', '.join(OF_A_BRIDGE)}, mtu and model out",
        ),
        rule(
            f"!has(self.binding) || (self.binding == 'masquerade' ? {POD} : (self.binding == 'sriov') == {_SRIOV})",
            lambda network: network.binding is None or network.binding_fits,
            "masquerade is for the pod network, sriov for type sriov, bridge for the others",
            ".binding",
        ),
        rule(
            f"!{_BRIDGED} || has(self.nadName) || {POD} || has(self.bridgeName) || size(self.name) <= 12",
            lambda network: (
                not network.has_bridge or bool(network.bridge_name) or len(bridge(network.name)) <= LONGEST_INTERFACE
            ),
            "the bridge would be called br-NAME, longer than the 15 characters there are: give a bridgeName",
            ".bridgeName",
        ),
        rule(
            f"!has(self.state) || self.state != 'absent' || !({POD} || {_SRIOV})",
            lambda network: network.state != "absent" or not (network.is_pod_network or network.is_sriov),
            "only interfaces on a bridge can be unplugged: remove the network instead",
            ".state",
        ),
        rule(
            "!has(self.nodeNetwork) || !has(self.nodeNetwork.manage) || !self.nodeNetwork.manage || "
            "has(self.physicalInterface)",
            lambda network: (
                network.physical_interface is not None or not (network.node_network and network.node_network.manage)
            ),
            "a bridge that the operator makes needs the physicalInterface to put into it",
            ".physicalInterface",
        ),
    ],
):
    """A network interface of the machine, and the network it is on."""

    name: Annotated[Label, Description("The network called default is the pod network.")]
    type: Annotated[
        Literal["bridge", "macvlan", "sriov", "ovs"] | None,
        Description("Of what sort; not needed for the pod network, and where nadName is given."),
    ] = None
    nad_name: Annotated[
        Annotated[str, Pattern(r"^([a-z0-9-]{1,63}/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"), MaxLength(253)] | None,
        Description("An existing NetworkAttachmentDefinition, name or namespace/name; without one, it is made."),
    ] = None
    vlan_id: Annotated[
        Annotated[int, Minimum(1), Maximum(4094)] | None, Description("The tag of the machine's frames.")
    ] = None
    bridge_name: Annotated[Interface | None, Description("Without: br- and the network's name.")] = None
    physical_interface: Annotated[
        Interface | None, Description("The node's interface that the bridge goes out by.")
    ] = None
    node_network: Annotated[
        NodeNetwork | None, Description("Whether the operator may make the bridge on the nodes.")
    ] = None
    resource_name: Annotated[
        Annotated[str, Pattern(r"^[a-z0-9.-]+/[A-Za-z0-9_.-]+$"), MaxLength(253)] | None,
        Description("The pool of an SR-IOV network: intel.com/sriov."),
    ] = None
    ip_config: Annotated[IpConfig | None, Description("How the guest configures the interface; without, by DHCP.")] = (
        None
    )
    primary: Annotated[
        bool,
        Description("Takes the place of the pod network: the machine is not on that, and this interface comes first."),
    ] = False
    mac_address: Annotated[Mac | None, Description("Without: one that stays the same.")] = None
    model: Annotated[
        Literal["virtio", "e1000", "e1000e", "ne2k_pci", "pcnet", "rtl8139"] | None,
        Description("The emulated card; without, virtio, or what suits the guest."),
    ] = None
    binding: Annotated[
        Literal["masquerade", "bridge", "sriov"] | None,
        Description("How the card is bound to the network; without, what suits the type."),
    ] = None
    mtu: Annotated[
        Annotated[int, Minimum(576), Maximum(9216)] | None,
        Description("The largest frame, of the network and of the guest."),
    ] = None
    state: Annotated[
        Literal["up", "down", "absent"] | None,
        Description("Of the link; absent unplugs the interface of a running machine."),
    ] = None

    @property
    def is_pod_network(self) -> bool:
        return self.name == POD_NETWORK and self.nad_name is None

    @property
    def is_static(self) -> bool:
        return self.ip_config is not None and self.ip_config.mode == "static"

    @property
    def is_sriov(self) -> bool:
        return self.type == "sriov"

    @property
    def has_bridge(self) -> bool:
        """Whether it is on a bridge that is not one of a NetworkAttachmentDefinition of others."""
        return self.type in ("bridge", "ovs") and self.nad_name is None and not self.is_pod_network

    @property
    def binding_fits(self) -> bool:
        return self.is_pod_network if self.binding == "masquerade" else (self.binding == "sriov") == self.is_sriov
