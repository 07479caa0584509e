"""What the operator says about a `Nacos` resource.

`conditions` and `event` are the document's: one entry per server, and a short list of what happened. Kubernetes' own
sort of conditions is in `kubeConditions`, so that nothing that reads the document's form is surprised.
"""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Condition, ListType, Model, field

Phase = Literal["", "Creating", "Running", "Failed", "Scaling"]


class NodeCondition(Model):
    """One server: its role (`leader`, `follower`) and where it runs."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    instance: str = ""
    """The pod's address."""
    host_ip: str = field(default="", name="hostIP")
    pod_name: str = ""
    node_name: str = ""


class StatusEvent(Model):
    """Something that happened, good or bad; the same thing again only moves the second time."""

    status: bool = False
    code: int = 0
    message: str = ""
    first_appear_time: str = ""
    last_transition_time: str = ""


class PgStatus(Model):
    """What became of the schema in PostgreSQL."""

    initialized: bool = False
    init_version: int = 0
    last_init_time: str = ""
    last_result: str = ""
    last_message: str = ""


class AdminStatus(Model):
    """What became of the administrator's password."""

    username: str = ""
    last_rotate_time: str = ""
    last_result: str = ""
    last_message: str = ""
    last_secret_resource_version: str = ""
    last_secret_checksum: str = ""


class NacosStatus(Model):
    """The state of a Nacos."""

    phase: Phase = ""
    version: str = ""
    healthy: bool = False
    replicas: int = 0
    ready_replicas: int = 0
    selector: str = ""
    leader: str = ""
    observed_generation: int = 0
    conditions: list[NodeCondition] = []
    event: list[StatusEvent] = []
    pg: PgStatus = field(default_factory=PgStatus)
    admin: AdminStatus = field(default_factory=AdminStatus)
    failing_since: str = ""
    """Since when rounds have not come to their end; empty while all is well."""
    config_digest: str = ""
    version_digest: str = ""
    kube_conditions: Annotated[list[Condition], ListType("map", "type")] = []
