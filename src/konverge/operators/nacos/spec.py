"""The spec of a `Nacos` resource.

Field names and meanings are those of the public operators (nacos-k8s and its PostgreSQL fork), so that their resources
work unchanged; what they never defined has fields of its own: Secret references, TLS, deletion of volumes, Service
types, budgets. These classes become the schema of the definition; `desired.py` checks the same again for resources that
got past it, and fills in what depends on other fields. `NacosSpec` is that of v1alpha1, with which the operator works;
v1beta1 shares everything in `SharedSpec` (see `v1beta1.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from konverge.objects import Maximum, MaxLength, Minimum, MinLength, Model, ObjectMeta, Pattern, Quantity, Rule, field
from konverge.objects.kinds.core_v1 import (
    Affinity,
    EmptyDirVolumeSource,
    EnvVar,
    HostPathVolumeSource,
    LocalObjectReference,
    PersistentVolumeClaimSpec,
    PodSecurityContext,
    Probe,
    ResourceRequirements,
    SecurityContext,
    Toleration,
    TopologySpreadConstraint,
)
from konverge.objects.kinds.networking_v1 import NetworkPolicyPeer
from konverge.operators.nacos.spec_amounts import probe_rule, resource_rules, storage_rules

Port = Annotated[str, Pattern(r"^[0-9]{1,5}$"), MaxLength(5)]
"""Ports of databases are texts in existing resources."""
NodePort = Annotated[int, Minimum(1), Maximum(65535)]
"""A cluster may restrict the range further."""
RESTRICTED = "Restricted"
"""A standard of Pod Security."""
Version = Annotated[str, Pattern(r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$")]


def _in_range(port: str) -> Meta:
    """The schema checks the form of a port that is a text, but not its size."""
    size = f"int(self.{port}) >= 1 && int(self.{port}) <= 65535"
    rule = f"!self.{port}.matches('^[0-9]{{1,5}}$') || ({size})"
    return Rule(rule, message="a port is a number from 1 to 65535", field_path=f".{port}")


class CredentialsRef(Model):
    """A Secret with a user name and a password."""

    name: str = ""
    """The name of the Secret, in the namespace of the resource."""
    username_key: Annotated[str, MinLength(1)] = "username"
    """The key of the user name."""
    password_key: Annotated[str, MinLength(1)] = "password"  # noqa: S105 - the name of a key
    """The key of the password."""


class AdminRef(Model):
    """A Secret with the administrator: a bcrypt hash, or a plain password that the operator hashes."""

    name: str = ""
    """The name of the Secret, in the namespace of the resource."""
    username_key: Annotated[str, MinLength(1)] = "username"
    """The key of the administrator's name."""
    password_hash_key: Annotated[str, MinLength(1)] = "passwordHash"  # noqa: S105 - the name of a key
    """The key of the bcrypt hash, which counts more than a plain password."""
    password_key: Annotated[str, MinLength(1)] = "password"  # noqa: S105 - the name of a key
    """The key of the plain password."""


class IdentityRef(Model):
    """A Secret with the header by which servers know one another."""

    name: str = ""
    """The name of the Secret, in the namespace of the resource."""
    key_key: Annotated[str, MinLength(1)] = "identity_key"
    """The key of the header's name."""
    value_key: Annotated[str, MinLength(1)] = "identity_value"
    """The key of the header's value."""


class SecretKeyRef(Model):
    """One key of a Secret."""

    name: str = ""
    """The name of the Secret, in the namespace of the resource."""
    key: str = ""
    """The key in it."""


class ConfigMapRef(Model):
    """One key of a ConfigMap."""

    name: str = ""
    """The name of the ConfigMap, in the namespace of the resource."""
    key: str = ""
    """The key in it."""


class Database(Model, rules=[_in_range("mysqlPort")]):
    """Where Nacos keeps its configurations. PostgreSQL has a block of its own, `postgres`."""

    type: Literal["", "embedded", "mysql", "postgresql", "postgres"] | None = None
    """Which database: embedded, mysql or postgresql."""
    mysql_host: str = ""
    """The host of the MySQL server."""
    mysql_port: Port = "3306"
    """Its port, as text."""
    mysql_db: str = "nacos"
    """The name of the database."""
    mysql_user: str = ""
    """The user; a Secret is the better place."""
    mysql_password: str = ""
    """The password; a Secret is the better place."""
    mysql_credentials_secret_ref: CredentialsRef | None = None
    """The Secret with user and password, in place of mysqlUser and mysqlPassword."""
    mysql_check: bool = True
    """Whether the operator itself connects, to say what is wrong; off where only the pods can reach the server."""


class PostgresTls(Model):
    """How connections to PostgreSQL are protected; modes as libpq has them."""

    mode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    """How the connection is protected and what of the server's certificate is checked."""
    ca_secret_ref: SecretKeyRef | None = None
    """The certificate authority of the server, for verify-ca and verify-full."""
    server_name: str = ""
    """The name in the server's certificate, where it is not the host."""


class Postgres(
    Model,
    rules=[
        _in_range("port"),
        Rule("self.host == '' || self.database != ''", message="name the database", field_path=".database"),
        Rule(
            "self.host == '' || self.credentialsSecretRef.name != ''",
            message="name the Secret with the credentials",
            field_path=".credentialsSecretRef.name",
        ),
    ],
):
    """A PostgreSQL server; without a host there is none."""

    host: str = ""
    """The host of the server; empty: PostgreSQL is not used."""
    port: Port = "5432"
    """Its port, as text."""
    database: str = ""
    """The name of the database."""
    credentials_secret_ref: CredentialsRef = field(default_factory=CredentialsRef)
    """The Secret with user and password."""
    tls: PostgresTls = field(default_factory=PostgresTls)
    """How connections are protected."""


class PgInit(Model):
    """How the schema in PostgreSQL is made."""

    enabled: bool = True
    """Whether the operator makes the schema."""
    timeout_seconds: Annotated[int, Minimum(1), Maximum(45)] = 20
    """Seconds that one attempt may take."""
    schema_version: Annotated[int, Minimum(1), Maximum(2**31 - 1)] = 1
    """The version of the schema, for the policy BumpVersion."""
    policy: Literal["IfNotPresent", "Always", "Never", "BumpVersion"] = "IfNotPresent"
    """When the schema is made: where it is missing, always, never, or when schemaVersion has grown."""


class VolumeClaim(Model):
    """A template of the volume claims."""

    api_version: str = ""
    """The API version of the template; it is not used."""
    kind: str = ""
    """The kind of the template; it is not used."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations of the claims."""
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    """What the claims ask for."""


class Volume(Model, rules=storage_rules()):
    """Where a server keeps its data. Of several, hostPath goes before emptyDir before claims."""

    enabled: bool = False
    """Whether the servers keep their data in volumes; else it ends with the pod."""
    requests: dict[str, Quantity] = {}
    """What a claim requests: storage."""
    storage_class: str | None = None
    """The storage class of the claims; the cluster's default where it is left out."""
    volume_claim_template: VolumeClaim | None = None
    """The claims in full, in place of requests and storageClass."""
    persistent_volume_size: Quantity | None = None
    """The size of a claim, another name of requests.storage."""
    empty_dir: EmptyDirVolumeSource | None = None
    """A folder of the pod in place of a claim."""
    host_path: HostPathVolumeSource | None = None
    """A folder of the node in place of a claim."""
    keep_after_deletion: bool = False
    """Whether the claims stay when the resource is deleted, whatever deletionPolicy says."""
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """What becomes of the claims when the resource is deleted. `keepAfterDeletion: true` keeps them in any case."""


class SharedCertification(Model):
    """What all versions say of the authentication of clients."""

    enabled: bool = False
    """Whether clients have to authenticate."""
    token: str = ""
    """The key that signs tokens, in base64; a Secret is the better place."""
    token_secret_ref: SecretKeyRef | None = None
    """The key that signs tokens, in a Secret."""


class Certification(SharedCertification):
    """Authentication of clients."""

    token_expire_seconds: Annotated[str, Pattern(r"^0*[1-9][0-9]{0,9}$")] = field(
        default="18000", name="token_expire_seconds"
    )
    """Seconds that a token is valid, as text."""
    cache_enabled: bool = field(default=False, name="cache_enabled")
    """Whether servers cache what a client may do."""


class K8sWrapper(Model):
    """Parts of a PodSpec that are laid over the generated one; containers and volumes are merged by name."""

    pod_spec: dict[str, Any] = field(default_factory=dict, name="PodSpec")
    """The parts of a PodSpec."""


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


class Metrics(Model):
    """The servers' own numbers, in the form of Prometheus."""

    enabled: bool = False
    """Whether the servers show their numbers."""
    service_monitor: ServiceMonitorOptions = field(default_factory=ServiceMonitorOptions)
    """A ServiceMonitor for them."""


class NetworkPolicyOptions(Model):
    """Who may connect to the servers."""

    enabled: bool = False
    """Whether there is a NetworkPolicy: only servers reach the ports between servers."""
    clients: list[NetworkPolicyPeer] = []
    """Who reaches the ports for clients, beside servers and operator; empty: everyone."""


class Budget(Model):
    """The PodDisruptionBudget of a cluster."""

    enabled: bool = True
    """Whether a cluster has a PodDisruptionBudget."""
    max_unavailable: Annotated[int, Minimum(1)] = 1
    """How many servers may be missing because of voluntary disruptions."""


_CLUSTER = "self.type != 'cluster' || !has(self.replicas) || self.replicas >= 3 || self.allowSmallClusters"
_MYSQL = "!has(self.database.type) || self.database.type != 'mysql'"
_MYSQL_LOGIN = (
    "(self.database.mysqlUser != '' && self.database.mysqlPassword != '') || "
    "(has(self.database.mysqlCredentialsSecretRef) && self.database.mysqlCredentialsSecretRef.name != '')"
)
_POSTGRES = "!has(self.database.type) || !self.database.type.startsWith('postgres') || self.postgres.host != ''"


FunctionMode = Literal["", "all", "naming", "config", "microservice", "ai"]


class SharedSpec(
    Model,
    rules=[
        Rule(
            _CLUSTER,
            message="a cluster needs at least 3 replicas; allowSmallClusters: true permits fewer",
            field_path=".replicas",
        ),
        Rule(
            "self.type != 'standalone' || !has(self.replicas) || self.replicas == 1",
            message="a standalone has 1 replica; use type: cluster for more",
            field_path=".replicas",
        ),
        Rule(
            f"{_MYSQL} || self.database.mysqlHost != ''",
            message="type mysql needs the server's host",
            field_path=".database.mysqlHost",
        ),
        Rule(
            f"{_MYSQL} || {_MYSQL_LOGIN}",
            message="type mysql needs mysqlCredentialsSecretRef, or mysqlUser and mysqlPassword",
            field_path=".database.mysqlCredentialsSecretRef",
        ),
        Rule(
            f"{_MYSQL} || self.postgres.host == ''",
            message="the database is either mysql or postgres: leave postgres.host out, or database.type",
            field_path=".postgres.host",
        ),
        Rule(_POSTGRES, message="type postgresql needs the server's host", field_path=".postgres.host"),
    ],
):
    """What all versions say alike: a field that is added here is in each of them."""

    type: Literal["standalone", "cluster"] = "standalone"
    """One server, or a cluster of them."""
    image: Annotated[str, MinLength(1), Pattern(r"^\S*$")] = "nacos/nacos-server:v2.4.3"
    """The image of the servers."""
    version: Version | None = None
    """The version of the server where the image's tag does not tell it."""
    replicas: Annotated[int, Minimum(1), Maximum(99)] | None = None
    """The number of servers: 1 for a standalone; at least 3, and 3 by default, for a cluster."""
    allow_small_clusters: bool = False
    """Permits a cluster of fewer than 3 servers."""
    hibernate: bool = False
    """Whether the servers are ended, while volumes, Secrets, Services and everything else stay; false wakes them."""
    image_pull_secrets: list[LocalObjectReference] = []
    """Secrets for the registry of the image."""
    resources: Annotated[ResourceRequirements, *resource_rules()] = field(default_factory=ResourceRequirements)
    """CPU and memory of a server."""
    affinity: Affinity | None = None
    """On which nodes servers run. Without it, servers of a cluster are spread over nodes."""
    tolerations: list[Toleration] = []
    """Taints of nodes that servers tolerate."""
    node_selector: dict[str, str] = {}
    """Labels of the nodes on which servers run."""
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    """How servers are spread over zones or other parts of the cluster; without a labelSelector: the servers of this
    Nacos."""
    priority_class_name: str = ""
    """The PriorityClass of the pods."""
    liveness_probe: Annotated[Probe, probe_rule()] | None = None
    """When a server is restarted, in place of the operator's probe."""
    readiness_probe: Annotated[Probe, probe_rule()] | None = None
    """When a server is ready, in place of the operator's probe."""
    startup_probe: Annotated[Probe, probe_rule()] | None = None
    """When a server has started, in place of the operator's probe."""
    env: list[EnvVar] = []
    """Environment variables of the servers."""
    security_context: SecurityContext | None = None
    """The security context of the container."""
    pod_security_context: PodSecurityContext | None = None
    """The security context of the pod."""
    pod_security: Literal["Restricted", "Baseline"] | None = None
    """The standard of Pod Security that the pods meet. Left out: Baseline for a new Nacos, as the images run; one that
    exists stays as it is."""
    mysql_init_image: str = ""
    """The image of a Job that makes the tables in MySQL; empty: they are there."""
    cluster_domain: str = ""
    """The DNS domain of the Kubernetes cluster; empty: cluster.local."""
    database: Database = field(default_factory=Database)
    """Where configurations are kept."""
    postgres: Postgres = field(default_factory=Postgres)
    """The PostgreSQL server, where that is the database."""
    pg_init: PgInit = field(default_factory=PgInit)
    """How the schema in PostgreSQL is made."""
    volume: Volume = field(default_factory=Volume)
    """Where a server keeps its data."""
    config: str = ""
    """Lines for application.properties."""
    user_config_ref: ConfigMapRef | None = None
    """A ConfigMap with lines for application.properties."""
    internal_config_ref: ConfigMapRef | None = None
    """A ConfigMap with lines that stand before the user's."""
    final_config_name: str = ""
    """The name of the ConfigMap with the result; by default made from the name of the resource."""
    admin_credentials_secret_ref: AdminRef | None = None
    """The Secret with the administrator; a change of it rotates the password."""
    admin_secret_checksum: str = ""
    """The checksum of the administrator's Secret, where the operator is not to compute it: another one rotates the
    password."""
    identity_secret_ref: IdentityRef | None = None
    """The Secret with the header by which servers know one another."""
    service: ServiceOptions = field(default_factory=ServiceOptions)
    """How clients reach the servers."""
    ingress: IngressOptions = field(default_factory=IngressOptions)
    """A way from outside to the console."""
    metrics: Metrics = field(default_factory=Metrics)
    """The servers' own numbers."""
    network_policy: NetworkPolicyOptions = field(default_factory=NetworkPolicyOptions)
    """Who may connect to the servers."""
    pod_disruption_budget: Budget = field(default_factory=Budget)
    """The PodDisruptionBudget of a cluster."""
    k8s_wrapper: K8sWrapper = field(default_factory=K8sWrapper)
    """Parts of a PodSpec that are laid over the generated one."""


class NacosSpec(SharedSpec):
    """A Nacos server or cluster, as v1alpha1 says it."""

    function_mode: FunctionMode = field(default="", name="function_mode")
    """Which functions the servers offer; empty: all."""
    certification: Certification = field(default_factory=Certification)
    """Authentication of clients."""
