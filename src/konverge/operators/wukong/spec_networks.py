"""The networks of a virtual machine: `spec.networks[]`.

The network called `default` is the pod network (unless it names a NetworkAttachmentDefinition). It is there without
being listed, unless another network is `primary`, which takes its place.
"""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Description, Maximum, MaxItems, MaxLength, Minimum, Model, Pattern, Rule
from konverge.operators.wukong.texts import Address, Cidr, Interface, Label, Mac

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
        Rule(
            "self.mode != 'static' || has(self.address) || (has(self.addresses) && self.addresses.size() > 0)",
            message="a static configuration needs an address",
            field_path=".address",
        ),
        Rule(
            "self.mode != 'dhcp' || !(has(self.address) || has(self.gateway) || "
            "(has(self.addresses) && self.addresses.size() > 0))",
            message="with dhcp, address and gateway come from the server: leave them out, or use mode static",
            field_path=".mode",
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
        Rule(
            f"({POD}) || has(self.type) || has(self.nadName)",
            message="say of which type it is (bridge, ovs, sriov), or name a NetworkAttachmentDefinition by nadName",
            field_path=".type",
        ),
        Rule(
            "!has(self.type) || self.type != 'macvlan'",
            message="KubeVirt cannot bind macvlan: use bridge, ovs or sriov",
            field_path=".type",
        ),
        Rule(
            f"!({POD}) || ((!has(self.type) || self.type == 'bridge') && !{_any(*OF_A_NAD)})",
            message=f"default is the pod network, which is not created: leave type, {', '.join(OF_A_NAD)} out",
        ),
        Rule(
            f"!({POD}) || !has(self.ipConfig) || self.ipConfig.mode == 'dhcp'",
            message="the pod network gives the address itself: only dhcp",
            field_path=".ipConfig",
        ),
        Rule(
            f"!has(self.nadName) || !{_any(*OF_A_NAD)}",
            message=f"an existing NetworkAttachmentDefinition is used as it is: leave {', '.join(OF_A_NAD)} out",
        ),
        Rule(
            f"{_SRIOV} == has(self.resourceName) || has(self.nadName)",
            message="sriov, and only that, needs the resourceName of the device pool, or a nadName",
            field_path=".resourceName",
        ),
        Rule(
            f"!{_SRIOV} || !{_any(*OF_A_BRIDGE, 'mtu', 'model')}",
            message=f"sriov has no bridge and a device of its own: leave {', '.join(OF_A_BRIDGE)}, mtu and model out",
        ),
        Rule(
            f"!has(self.binding) || (self.binding == 'masquerade' ? {POD} : (self.binding == 'sriov') == {_SRIOV})",
            message="masquerade is for the pod network, sriov for type sriov, bridge for the others",
            field_path=".binding",
        ),
        Rule(
            f"!{_BRIDGED} || has(self.nadName) || {POD} || has(self.bridgeName) || size(self.name) <= 12",
            message="the bridge would be called br-NAME, longer than the 15 characters there are: give a bridgeName",
            field_path=".bridgeName",
        ),
        Rule(
            f"!has(self.state) || self.state != 'absent' || !({POD} || {_SRIOV})",
            message="only interfaces on a bridge can be unplugged: remove the network instead",
            field_path=".state",
        ),
        Rule(
            "!has(self.nodeNetwork) || !has(self.nodeNetwork.manage) || !self.nodeNetwork.manage || "
            "has(self.physicalInterface)",
            message="a bridge that the operator makes needs the physicalInterface to put into it",
            field_path=".physicalInterface",
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
