"""The resource `nacos.nacos.io`, version v1alpha1, and its status: the stored version, with which the operator works.

`conditions` and `event` have the document's form: one entry per server, and a short list of events. The operator keeps
its conditions in the form of Kubernetes in `kubeConditions`. It repeats them in `conditions` after the servers, because
`kubectl wait --for=condition=…` and kstatus (Helm's `--wait`) look only there; an entry with a `podName` is a server.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from konverge.objects import (
    Column,
    Condition,
    CustomResource,
    ListType,
    Model,
    Object,
    Quantity,
    Rule,
    Scale,
    field,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.spec import NacosSpec

Phase = Literal["", "Creating", "Running", "Failed", "Scaling", "Hibernated"]


class NodeCondition(Model):
    """One server: its role (`leader`, `follower`) and where it runs. Without a pod: a condition of the whole Nacos."""

    type: str = ""
    """The role of a server (leader, follower), or the type of a condition."""
    status: str = ""
    """True, False or Unknown."""
    reason: str = ""
    """One word why."""
    message: str = ""
    """What that means, for people."""
    instance: str | None = None
    """The pod's address."""
    host_ip: str | None = field(default=None, name="hostIP")
    """The address of the node."""
    pod_name: str | None = None
    """The pod of the server; empty for a condition of the whole Nacos."""
    node_name: str | None = None
    """The node of the pod."""
    last_transition_time: str | None = None
    """Since when it is so."""
    observed_generation: int | None = None
    """The generation of the spec that it is about."""


class StatusEvent(Model):
    """Something that happened, good or bad; a repetition only moves the second time."""

    status: bool = False
    """Whether it is good."""
    code: int = 0
    """The code of an error; docs/nacos.md lists them."""
    message: str = ""
    """What happened."""
    first_appear_time: str = ""
    """When it happened first."""
    last_transition_time: str = ""
    """When it happened last."""


class PgStatus(Model):
    """The result of the last look at the schema in PostgreSQL."""

    initialized: bool = False
    """Whether the schema is there."""
    init_version: int = 0
    """The version of the schema."""
    last_init_time: str = ""
    """When it was last made or looked at."""
    last_result: str = ""
    """How that ended."""
    last_message: str = ""
    """What was done, or what went wrong."""


class AdminStatus(Model):
    """The result of the last rotation of the administrator's password."""

    username: str = ""
    """The administrator's name."""
    last_rotate_time: str = ""
    """When the password was last rotated."""
    last_result: str = ""
    """How that ended."""
    last_message: str = ""
    """What was done, or what went wrong."""
    last_secret_resource_version: str = ""
    """The version of the Secret that was applied."""
    last_secret_checksum: str = ""
    """The checksum of the Secret that was applied."""


class Applied(Model):
    """Where the servers' data is, by the children that were last seen; for when they are gone, and for the schema."""

    type: str = ""
    """Standalone or cluster."""
    database: str = ""
    """The kind of the database."""
    volume: str = ""
    """The kind of the volumes."""
    storage_class: str = ""
    """The storage class of the claims."""
    size: Quantity | None = None
    """The size of the claims."""
    image: str = ""
    """The image of the servers."""
    pod_security: str = ""
    """The standard of Pod Security that the pods were made for."""
    replicas: int = 0
    """While it hibernates, with how many servers it wakes; else 0."""


class RaftGroupStatus(Model):
    """One raft group of the servers; each elects a leader of its own."""

    name: str = ""
    """The name that the servers give it."""
    leader: str = ""
    """The pod that leads it; empty while there is none, or no majority that could follow it."""
    term: int = 0
    """The number of the present term: it grows with every election."""
    peers: int = 0
    """How many servers it counts; 0 where they do not say."""
    agreed: bool = False
    """Whether all servers that answered name this leader."""
    message: str = ""
    """Who names another leader, or why there is none, for people."""


UpgradeStep = Literal["", "Preflight", "Migrating", "Rolling", "Verifying", "Done"]


class UpgradeStatus(Model):
    """The last change of the servers' version: how far it is, or that it is done."""

    from_version: str = field(default="", name="from")
    """The version that the servers leave."""
    to: str = ""
    """The version that they get."""
    image: str = ""
    """The image of that version."""
    step: UpgradeStep = ""
    """Preflight: nothing is changed yet. Migrating: the database gets the schema of the new version. Rolling: servers
    are replaced one by one, the leader last. Verifying: all of them have to be up with the new version. Done."""
    since: str = ""
    """Since when it is in this step."""
    halted: str = ""
    """One word why it does not go on; empty while it does. It resumes by itself when the reason is gone."""
    message: str = ""
    """How far it is, or what to do about the halt, for people."""
    members_done: list[str] = []
    """The pods that have answered, as members of their cluster, with the new version."""
    backup: str = ""
    """The NacosBackup that allowed it to begin, where the spec asks for one."""


class SharedStatus(Model):
    """What all versions say alike: a field that is added here is in each of them."""

    phase: Phase = ""
    """The state in one word."""
    version: str = ""
    """The version of Nacos that runs."""
    healthy: bool = False
    """Whether all servers run and agree."""
    replicas: int = 0
    """The number of servers."""
    ready_replicas: int = 0
    """Those that are ready."""
    selector: str = ""
    """The labels of the pods, for the scale subresource."""
    leader: str = ""
    """The pod that leads the cluster."""
    raft_groups: Annotated[list[RaftGroupStatus], ListType("atomic")] = []
    """The raft groups by name, as the servers last said; none while no server answers."""
    observed_generation: int = 0
    """The generation of the spec that was acted upon."""
    pg: PgStatus = field(default_factory=PgStatus)
    """The schema in PostgreSQL."""
    admin: AdminStatus = field(default_factory=AdminStatus)
    """The administrator's password."""
    failing_since: str = ""
    """Since when no reconcile was done; empty while the Nacos is healthy."""
    applied: Applied = field(default_factory=Applied)
    """Where the data is."""
    upgrade: UpgradeStatus | None = None
    """The change of the servers' version that is under way, or the last one."""
    config_digest: str = ""
    """The digest of the configuration that the servers have."""
    version_digest: str = ""
    """The digest of the spec that was acted upon."""


class NacosStatus(SharedStatus):
    """The state of a Nacos."""

    conditions: Annotated[list[NodeCondition], ListType("atomic")] = []
    """One entry for each server, and after them the conditions of the Nacos."""
    event: list[StatusEvent] = []
    """What happened last."""
    kube_conditions: Annotated[list[Condition], ListType("map", "type")] = []
    """Conditions in the form of Kubernetes."""

    @property
    def servers(self) -> list[NodeCondition]:
        """The entries of `conditions` that are about servers."""
        return [entry for entry in self.conditions if entry.pod_name]

    def publish_conditions(self) -> None:
        """Repeat the conditions of the Nacos in `conditions`, after the servers. Called before the status is written.

        >>> status = NacosStatus(kube_conditions=[Condition(type="Ready", status="True")])
        >>> status.publish_conditions()
        >>> [(entry.type, entry.status) for entry in status.conditions]
        [('Ready', 'True')]
        """
        self.conditions = [*self.servers, *map(_entry, self.kube_conditions)]


def _entry(condition: Condition) -> NodeCondition:
    return NodeCondition(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=condition.last_transition_time,
        observed_generation=condition.observed_generation,
    )


GROUP = "nacos.io"
PAUSE = "nacos.io/pause-reconciliation"
"""While this annotation is `true`, the operator changes nothing."""
ALLOW = "nacos.io/allow-change"
"""What the user allows once though it may lose data: `type=cluster`, several with commas."""
NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
LONGEST_NAME = 50
"""`<name>-headless` is a Service and `<name>-<10 digits of a revision>` a label of the pods: 63 characters at most."""
LONGEST_NAME_WITH_JOB = 63 - len(names.mysql_init(""))
"""The name of the Job is a label of its pods."""
NAME_WITH_JOB = (
    f"with mysqlInitImage it becomes that of a Job: at most {LONGEST_NAME_WITH_JOB} characters; "
    "choose a shorter name, or create the tables yourself and leave mysqlInitImage out"
)
_MYSQL_JOB = (
    "has(self.spec) && self.spec.mysqlInitImage != '' && has(self.spec.database.type) && "
    "self.spec.database.type == 'mysql'"
)


def keeps_size(has: str, size: str) -> str:
    """A size that changes is not below that of the claims; the spec before may never have been in force."""
    old_has, old = has.replace("self.", "oldSelf."), size.replace("self.", "oldSelf.")
    applied = "oldSelf.status.applied"
    unknown = f"!has(oldSelf.status) || !has({applied}) || !has({applied}.size)"
    unchanged = f"({old_has} && {old} == {size})"
    enough = f"quantity(string({size})).compareTo(quantity(string({applied}.size))) >= 0"
    return f"!({has}) || {unknown} || {unchanged} || !isQuantity(string({size})) || {enough}"


_REQUESTS, _SIZE = "self.spec.volume.requests", "self.spec.volume.persistentVolumeSize"
COLUMNS = [
    Column("Replicas", ".spec.replicas"),
    Column("Ready", ".status.phase"),
    Column("Type", ".spec.type"),
    Column("DbType", ".spec.database.type"),
    Column("Version", ".status.version"),
    Column("CreateTime", ".metadata.creationTimestamp", type="string"),
]
"""The document's; `kubectl get nacos` prints them whichever version it asks for."""
RULES = [
    Rule(
        f"self.metadata.name.matches('{NAME}') && size(self.metadata.name) <= {LONGEST_NAME}",
        message=f"the name becomes that of Services: at most {LONGEST_NAME} lower-case letters, digits and '-', "
        "beginning with a letter",
    ),
    Rule(f"!({_MYSQL_JOB}) || size(self.metadata.name) <= {LONGEST_NAME_WITH_JOB}", message=NAME_WITH_JOB),
    Rule(
        keeps_size(f"has(self.spec) && has({_REQUESTS}) && 'storage' in {_REQUESTS}", f"{_REQUESTS}['storage']"),
        message="volumes cannot shrink: status.applied.size is the least",
        field_path=".spec.volume.requests",
    ),
    Rule(
        keeps_size(f"has(self.spec) && has({_SIZE})", _SIZE),
        message="volumes cannot shrink: status.applied.size is the least",
        field_path=".spec.volume.persistentVolumeSize",
    ),
]


class Nacos(
    CustomResource[NacosSpec, NacosStatus],
    group=GROUP,
    version="v1alpha1",
    storage=True,  # the release before this one reads objects of this version only
    plural="nacos",
    scale=Scale(selector=".status.selector"),
    columns=COLUMNS,
    rules=RULES,
):
    """A Nacos server or cluster, with its storage and its Services."""


class AnyNacos(Object):
    """The same resource with an unchecked spec: one that got past an older definition must not stop the watch."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: NacosStatus = field(default_factory=NacosStatus)


AnyNacos.resource = Nacos.resource
