"""The spec of a `Nacos` resource.

Field names and meanings are those of the public operators (nacos-k8s and its PostgreSQL fork), so that their resources
work unchanged; what they never defined has fields of its own: Secret references, TLS, deletion of volumes, Service
types, budgets. These classes become the schema of the definition; `desired.py` checks the same again for resources that
got past it, and fills in what depends on other fields.
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
)
from konverge.operators.nacos.spec_amounts import probe_rule, resource_rules, storage_rules

Port = Annotated[str, Pattern(r"^[0-9]{1,5}$"), MaxLength(5)]
"""Ports of databases are texts in existing resources."""
NodePort = Annotated[int, Minimum(1), Maximum(65535)]
"""A cluster may restrict the range further."""
Version = Annotated[str, Pattern(r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$")]


def _in_range(port: str) -> Meta:
    """The schema checks the form of a port that is a text, but not its size."""
    size = f"int(self.{port}) >= 1 && int(self.{port}) <= 65535"
    rule = f"!self.{port}.matches('^[0-9]{{1,5}}$') || ({size})"
    return Rule(rule, message="a port is a number from 1 to 65535", field_path=f".{port}")


class CredentialsRef(Model):
    """A Secret with a user name and a password."""

    name: str = ""
    username_key: Annotated[str, MinLength(1)] = "username"
    password_key: Annotated[str, MinLength(1)] = "password"  # noqa: S105 - the name of a key


class AdminRef(Model):
    """A Secret with the administrator: a bcrypt hash, or a plain password that the operator hashes."""

    name: str = ""
    username_key: Annotated[str, MinLength(1)] = "username"
    password_hash_key: Annotated[str, MinLength(1)] = "passwordHash"  # noqa: S105 - the name of a key
    password_key: Annotated[str, MinLength(1)] = "password"  # noqa: S105 - the name of a key


class IdentityRef(Model):
    """A Secret with the header by which servers know one another."""

    name: str = ""
    key_key: Annotated[str, MinLength(1)] = "identity_key"
    value_key: Annotated[str, MinLength(1)] = "identity_value"


class SecretKeyRef(Model):
    """One key of a Secret."""

    name: str = ""
    key: str = ""


class ConfigMapRef(Model):
    """One key of a ConfigMap."""

    name: str = ""
    key: str = ""


class Database(Model, rules=[_in_range("mysqlPort")]):
    """Where Nacos keeps its configurations. PostgreSQL has a block of its own, `postgres`."""

    type: Literal["", "embedded", "mysql", "postgresql", "postgres"] | None = None
    mysql_host: str = ""
    mysql_port: Port = "3306"
    mysql_db: str = "nacos"
    mysql_user: str = ""
    mysql_password: str = ""
    mysql_credentials_secret_ref: CredentialsRef | None = None
    mysql_check: bool = True
    """Whether the operator itself connects, to say what is wrong; off where only the pods can reach the server."""


class PostgresTls(Model):
    """How connections to PostgreSQL are protected; modes as libpq has them."""

    mode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    ca_secret_ref: SecretKeyRef | None = None
    server_name: str = ""


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
    port: Port = "5432"
    database: str = ""
    credentials_secret_ref: CredentialsRef = field(default_factory=CredentialsRef)
    tls: PostgresTls = field(default_factory=PostgresTls)


class PgInit(Model):
    """How the schema in PostgreSQL is made."""

    enabled: bool = True
    timeout_seconds: Annotated[int, Minimum(1), Maximum(45)] = 20
    schema_version: Annotated[int, Minimum(1), Maximum(2**31 - 1)] = 1
    policy: Literal["IfNotPresent", "Always", "Never", "BumpVersion"] = "IfNotPresent"


class VolumeClaim(Model):
    """A template of the volume claims."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)


class Volume(Model, rules=storage_rules()):
    """Where a server keeps its data. Of several, hostPath goes before emptyDir before claims."""

    enabled: bool = False
    requests: dict[str, Quantity] = {}
    storage_class: str | None = None
    volume_claim_template: VolumeClaim | None = None
    persistent_volume_size: Quantity | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    keep_after_deletion: bool = False
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """What becomes of the claims when the resource is deleted. `keepAfterDeletion: true` keeps them in any case."""


class Certification(Model):
    """Authentication of clients."""

    enabled: bool = False
    token: str = ""
    token_expire_seconds: Annotated[str, Pattern(r"^0*[1-9][0-9]{0,9}$")] = field(
        default="18000", name="token_expire_seconds"
    )
    cache_enabled: bool = field(default=False, name="cache_enabled")
    token_secret_ref: SecretKeyRef | None = None


class K8sWrapper(Model):
    """Parts of a PodSpec that are laid over the generated one; containers and volumes are merged by name."""

    pod_spec: dict[str, Any] = field(default_factory=dict, name="PodSpec")


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
    rpc: NodePort | None = None
    new_rpc: NodePort | None = field(default=None, name="new-rpc")
    cluster_rpc: NodePort | None = field(default=None, name="cluster-rpc")
    console: NodePort | None = None


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
    annotations: dict[str, str] = {}
    node_ports: NodePorts | None = None
    load_balancer_class: str | None = None


class IngressOptions(Model):
    """A way from outside to the console."""

    enabled: bool = False
    class_name: str | None = None
    host: str = ""
    """Empty: every host."""
    path: Annotated[str, Pattern(r"^(/.*)?$")] = ""
    """Empty: where the console of this version is."""
    annotations: dict[str, str] = {}
    tls_secret_name: str = ""


class ServiceMonitorOptions(Model):
    """A ServiceMonitor, for clusters with the Prometheus operator."""

    enabled: bool = False
    interval: Annotated[str, Pattern(r"^[0-9]+(ms|s|m|h)$")] = "30s"
    labels: dict[str, str] = {}
    """Beside those of all children: by them a Prometheus chooses what it looks at."""


class Metrics(Model):
    """The servers' own numbers, in the form of Prometheus."""

    enabled: bool = False
    service_monitor: ServiceMonitorOptions = field(default_factory=ServiceMonitorOptions)


class Budget(Model):
    """The PodDisruptionBudget of a cluster."""

    enabled: bool = True
    max_unavailable: Annotated[int, Minimum(1)] = 1


_CLUSTER = "self.type != 'cluster' || !has(self.replicas) || self.replicas >= 3 || self.allowSmallClusters"
_MYSQL = "!has(self.database.type) || self.database.type != 'mysql'"
_MYSQL_LOGIN = (
    "(self.database.mysqlUser != '' && self.database.mysqlPassword != '') || "
    "(has(self.database.mysqlCredentialsSecretRef) && self.database.mysqlCredentialsSecretRef.name != '')"
)
_POSTGRES = "!has(self.database.type) || !self.database.type.startsWith('postgres') || self.postgres.host != ''"


class NacosSpec(
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
    """A Nacos server or cluster."""

    type: Literal["standalone", "cluster"] = "standalone"
    image: Annotated[str, MinLength(1), Pattern(r"^\S*$")] = "nacos/nacos-server:v2.4.3"
    version: Version | None = None
    """The version of the server where the image's tag does not tell it."""
    replicas: Annotated[int, Minimum(1), Maximum(99)] | None = None
    allow_small_clusters: bool = False
    image_pull_secrets: list[LocalObjectReference] = []
    resources: Annotated[ResourceRequirements, *resource_rules()] = field(default_factory=ResourceRequirements)
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    node_selector: dict[str, str] = {}
    liveness_probe: Annotated[Probe, probe_rule()] | None = None
    readiness_probe: Annotated[Probe, probe_rule()] | None = None
    startup_probe: Annotated[Probe, probe_rule()] | None = None
    env: list[EnvVar] = []
    security_context: SecurityContext | None = None
    pod_security_context: PodSecurityContext | None = None
    mysql_init_image: str = ""
    function_mode: Literal["", "all", "naming", "config", "microservice", "ai"] = field(
        default="", name="function_mode"
    )
    cluster_domain: str = ""
    database: Database = field(default_factory=Database)
    postgres: Postgres = field(default_factory=Postgres)
    pg_init: PgInit = field(default_factory=PgInit)
    volume: Volume = field(default_factory=Volume)
    config: str = ""
    user_config_ref: ConfigMapRef | None = None
    internal_config_ref: ConfigMapRef | None = None
    final_config_name: str = ""
    certification: Certification = field(default_factory=Certification)
    admin_credentials_secret_ref: AdminRef | None = None
    admin_secret_checksum: str = ""
    identity_secret_ref: IdentityRef | None = None
    service: ServiceOptions = field(default_factory=ServiceOptions)
    ingress: IngressOptions = field(default_factory=IngressOptions)
    metrics: Metrics = field(default_factory=Metrics)
    pod_disruption_budget: Budget = field(default_factory=Budget)
    k8s_wrapper: K8sWrapper = field(default_factory=K8sWrapper)
