"""Networks, of Multus and of NMState.

A `NetworkAttachmentDefinition` (k8s.cni.cncf.io/v1) is the configuration of a CNI plugin as a JSON text. NMState has
what the interfaces of nodes should be (nmstate.io/v1), and what they are (v1beta1), without namespaces.
"""

from __future__ import annotations

from typing import Any

from konverge.objects import Condition, Model, Object, Resource, field
from konverge.objects.model import NullableList


class NetworkAttachmentDefinitionSpec(Model):
    """The text."""

    config: str = ""


class NetworkAttachmentDefinition(Object):
    """A network beside that of the pods."""

    resource = Resource("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions")

    spec: NetworkAttachmentDefinitionSpec = field(default_factory=NetworkAttachmentDefinitionSpec)


class PolicySpec(Model):
    """The desired state, in NMState's own schema."""

    node_selector: dict[str, str] = {}
    desired_state: dict[str, Any] = {}


class PolicyStatus(Model):
    """Available, Degraded, Progressing, Ignored."""

    conditions: NullableList[Condition] = []


class NodeNetworkConfigurationPolicy(Object):
    """The desired interfaces of nodes. Its deletion undoes nothing."""

    resource = Resource(
        "nmstate.io", "v1", "NodeNetworkConfigurationPolicy", "nodenetworkconfigurationpolicies", namespaced=False
    )

    spec: PolicySpec = field(default_factory=PolicySpec)
    status: PolicyStatus = field(default_factory=PolicyStatus)


class NodeInterface(Model):
    """An interface of a node."""

    name: str = ""
    type: str = ""
    state: str = ""
    ipv4: dict[str, Any] | None = None
    ipv6: dict[str, Any] | None = None
    bridge: dict[str, Any] | None = None


class NodeRoute(Model):
    """A route of a node."""

    destination: str = ""
    next_hop_interface: str | None = field(default=None, name="next-hop-interface")


class NodeRoutes(Model):
    """The routes in force."""

    running: NullableList[NodeRoute] = []


class NodeState(Model):
    """Interfaces and routes."""

    interfaces: list[NodeInterface] | None = None
    routes: NodeRoutes | None = None


class NodeNetworkStateStatus(Model):
    """What there is."""

    current_state: NodeState | None = None


class NodeNetworkState(Object):
    """The interfaces of the node of the same name."""

    resource = Resource("nmstate.io", "v1beta1", "NodeNetworkState", "nodenetworkstates", namespaced=False)

    status: NodeNetworkStateStatus = field(default_factory=NodeNetworkStateStatus)
