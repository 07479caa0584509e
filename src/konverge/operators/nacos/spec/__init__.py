"""The spec of a `Nacos` resource.

Field names and meanings are those of the public operators (nacos-k8s and its PostgreSQL fork), so that their resources
work unchanged; what they never defined has fields of its own: Secret references, TLS, deletion of volumes, Service
types, budgets. These classes become the schema of the definition; `desired.py` checks the same again for resources that
got past it, and fills in what depends on other fields. `NacosSpec` is that of v1alpha1, with which the operator works;
v1beta1 shares everything in `SharedSpec` (see `v1beta1.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from konverge.objects import Maximum, Minimum, MinLength, Model, Pattern, Rule, field
from konverge.objects.kinds.core_v1 import (
    Affinity,
    EnvVar,
    LocalObjectReference,
    PodSecurityContext,
    Probe,
    ResourceRequirements,
    SecurityContext,
    Toleration,
    TopologySpreadConstraint,
)
from konverge.operators.nacos.spec.exposure import (
    IngressOptions,
    Metrics,
    NetworkPolicyOptions,
    ServerTls,
    ServiceOptions,
)
from konverge.operators.nacos.spec.references import AdminRef, ConfigMapRef, IdentityRef, SecretKeyRef
from konverge.operators.nacos.spec.storage import Database, PgInit, Postgres, Volume
from konverge.operators.nacos.spec.upgrade import UpgradeOptions
from konverge.operators.nacos.spec_amounts import probe_rule, resource_rules

RESTRICTED = "Restricted"
"""A standard of Pod Security."""
Version = Annotated[str, Pattern(r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$")]


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
        Rule(
            "!self.scaleWithoutRestarts || !has(self.podSecurity) || self.podSecurity != 'Restricted'",
            message="servers of podSecurity: Restricted cannot write their list of members; leave one of the two out",
            field_path=".scaleWithoutRestarts",
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
    scale_without_restarts: bool = False
    """Whether running servers of a cluster read another list of members when it grows or shrinks; else they are
    restarted one by one with it. Not with podSecurity: Restricted."""
    hibernate: bool = False
    """Whether the servers are ended, while volumes, Secrets, Services and everything else stay; false wakes them."""
    upgrade: UpgradeOptions = field(default_factory=UpgradeOptions)
    """When the servers go to another version of Nacos."""
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
    """The standard of Pod Security that the pods meet. Left out: Baseline, as the images run."""
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
    tls: ServerTls | None = None
    """TLS of the port for clients' gRPC; left out: there is none."""
    service: ServiceOptions = field(default_factory=ServiceOptions)
    """How clients reach the servers."""
    ingress: IngressOptions = field(default_factory=IngressOptions)
    """A way from outside to the console."""
    metrics: Metrics = field(default_factory=Metrics)
    """The servers' own numbers."""
    network_policy: NetworkPolicyOptions = field(default_factory=NetworkPolicyOptions)
    """Who may connect to the servers, and what they may connect to."""
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
