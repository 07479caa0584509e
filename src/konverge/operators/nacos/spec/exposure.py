"""How a `Nacos` is reached and watched: Services, Ingress, metrics, NetworkPolicy."""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Maximum, Minimum, Model, Pattern, Rule, field, required
from konverge.objects.kinds.networking_v1 import NetworkPolicyEgressRule, NetworkPolicyPeer
from konverge.operators.nacos.spec.references import CertificateRef

NodePort = Annotated[int, Minimum(1), Maximum(65535)]
"""A cluster may restrict the range further."""
_NODE_PORTS = ("self.client", "self.rpc", "self.new__dash__rpc", "self.cluster__dash__rpc", "self.console")
_GIVEN = " + ".join(f"(has({port}) ? [{port}] : [])" for port in _NODE_PORTS)


class NodePorts(
    Model,
    rules=[
        Rule(
            f"[{_GIVEN}].all(ports, ports.all(p, ports.filter(q, q == p).size() == 1))",
            message="a node port can be given to one port only",
        )
    ],
):
    """By name of the Service's port; those that are not named are chosen by the cluster."""

    client: NodePort | None = None
    """The node port of the HTTP API."""
    rpc: NodePort | None = None
    """The node port of Raft between servers."""
    new_rpc: NodePort | None = field(default=None, name="new-rpc")
    """The node port of gRPC for clients."""
    cluster_rpc: NodePort | None = field(default=None, name="cluster-rpc")
    """The node port of gRPC between servers."""
    console: NodePort | None = None
    """The node port of the console, which Nacos 3 has apart."""


class ServerTls(Model):
    """TLS of the servers' gRPC port for clients (9848); Nacos has it since 2.2.1."""

    secret_ref: CertificateRef = required(CertificateRef)
    """The Secret with certificate and key; the key must be PKCS #8. A renewed one restarts the servers one by one."""
    plaintext: Literal["Allowed", "Refused"] = "Allowed"
    """Whether clients may also connect without TLS."""


class ServiceOptions(
    Model,
    rules=[
        Rule(
            "self.type != 'ClusterIP' || !has(self.nodePorts)",
            message="a Service of type ClusterIP has none: choose type NodePort or LoadBalancer",
            field_path=".nodePorts",
        )
    ],
):
    """How clients reach the servers: the Service of a standalone, the `-client` Service of a cluster."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """The type of the Service."""
    annotations: dict[str, str] = {}
    """Annotations of the Service."""
    node_ports: NodePorts | None = None
    """Node ports to use, for the types NodePort and LoadBalancer."""
    load_balancer_class: str | None = None
    """The class of the load balancer."""


class IngressOptions(Model):
    """A way from outside to the console."""

    enabled: bool = False
    """Whether there is an Ingress."""
    class_name: str | None = None
    """The ingress class; the cluster's default where it is left out."""
    host: str = ""
    """Empty: every host."""
    path: Annotated[str, Pattern(r"^(/.*)?$")] = ""
    """Empty: where the console of this version is."""
    annotations: dict[str, str] = {}
    """Annotations of the Ingress."""
    tls_secret_name: str = ""
    """The Secret with the certificate; empty: no TLS."""


class ServiceMonitorOptions(Model):
    """A ServiceMonitor, for clusters with the Prometheus operator."""

    enabled: bool = False
    """Whether there is a ServiceMonitor."""
    interval: Annotated[str, Pattern(r"^[0-9]+(ms|s|m|h)$")] = "30s"
    """How often the numbers are read."""
    labels: dict[str, str] = {}
    """Beside those of all children: by them a Prometheus chooses what it looks at."""


class PrometheusRuleOptions(Model):
    """Alerting rules, for clusters with the Prometheus operator."""

    enabled: bool = False
    """Whether there is a PrometheusRule."""
    labels: dict[str, str] = {}
    """Beside those of all children: by them a Prometheus chooses its rules."""


class DashboardOptions(Model):
    """A ConfigMap with a Grafana dashboard, as Grafana's sidecar looks for it."""

    enabled: bool = False
    """Whether there is a dashboard."""
    labels: dict[str, str] = {}
    """Beside grafana_dashboard and those of all children."""


class Metrics(Model):
    """The servers' own numbers, in the form of Prometheus."""

    enabled: bool = False
    """Whether the servers show their numbers."""
    service_monitor: ServiceMonitorOptions = field(default_factory=ServiceMonitorOptions)
    """A ServiceMonitor for them."""
    prometheus_rule: PrometheusRuleOptions = field(default_factory=PrometheusRuleOptions)
    """A PrometheusRule with alerts about them; it needs the ServiceMonitor."""
    dashboard: DashboardOptions = field(default_factory=DashboardOptions)
    """A dashboard of them."""


class EgressOptions(Model):
    """What the servers may connect to."""

    enabled: bool = False
    """Whether the NetworkPolicy also restricts what the servers connect to: each other, DNS, the database, and what is
    allowed here."""
    database: list[NetworkPolicyPeer] = []
    """Where the database is. Left out: the address, where the host is one; no policy can hold a name, so for a name the
    port of the database is open to every address."""
    allow: list[NetworkPolicyEgressRule] = []
    """What else the servers, and containers beside them, connect to."""


class NetworkPolicyOptions(
    Model,
    rules=[
        Rule(
            "!self.egress.enabled || self.enabled",
            message="there is no NetworkPolicy without networkPolicy.enabled: true",
            field_path=".egress.enabled",
        )
    ],
):
    """Who may connect to the servers, and what they may connect to."""

    enabled: bool = False
    """Whether there is a NetworkPolicy: only servers reach the ports between servers."""
    clients: list[NetworkPolicyPeer] = []
    """Who reaches the ports for clients, beside servers and operator; empty: everyone."""
    egress: EgressOptions = field(default_factory=EgressOptions)
    """What the servers may connect to."""
