"""The resource in version v1beta1: conditions as every Kubernetes tool knows them, and fields by the conventions.

Almost everything is as in v1alpha1, so a manifest moves by its `apiVersion` and three fields of the spec:

    function_mode                         functionMode
    certification.token_expire_seconds    certification.tokenExpireSeconds, a number
    certification.cache_enabled           certification.cacheEnabled

In the status, `conditions` are what v1alpha1 has in `kubeConditions`, `servers` its entries of `conditions` that are
about servers, and `events` its `event`. Objects are stored as v1alpha1, and the operator works with that version alone:
it never waits for its own conversion. docs/nacos-design.md says why.

The conversion works on plain data, because it has to succeed for whatever is stored: one object that it refused would
fail every list in v1beta1. What the other version cannot say (a number written as "007") is kept in an annotation.
"""

from __future__ import annotations

from typing import Annotated, Any

from konverge.objects import (
    Column,
    Condition,
    CustomResource,
    ListType,
    Maximum,
    Minimum,
    MinLength,
    Model,
    Scale,
    converts_plain,
    field,
    required,
)
from konverge.operators.nacos.resource import COLUMNS, GROUP, RULES, Nacos, SharedStatus, StatusEvent
from konverge.operators.nacos.spec import FunctionMode, SharedCertification, SharedSpec

Obj = dict[str, Any]


class CertificationV1Beta1(SharedCertification):
    """Authentication of clients."""

    token_expire_seconds: Annotated[int, Minimum(1), Maximum(9_999_999_999)] = 18000
    """Seconds that a token is valid."""
    cache_enabled: bool = False
    """Whether servers cache what a client may do."""


class NacosSpecV1Beta1(SharedSpec):
    """A Nacos server or cluster."""

    function_mode: FunctionMode = ""
    """Which functions the servers offer; empty: all."""
    certification: CertificationV1Beta1 = field(default_factory=CertificationV1Beta1)
    """Authentication of clients."""


class ServerStatus(Model):
    """One server of a Nacos."""

    name: Annotated[str, MinLength(1)] = required(str)
    """The pod of the server."""
    role: str = ""
    """Its part in the cluster: leader or follower."""
    ready: bool = False
    """Whether it answered for itself, as a member of the cluster."""
    reason: str = ""
    """One word why it is not ready."""
    message: str = ""
    """What that means, for people."""
    address: str | None = None
    """The pod's address."""
    host_ip: str | None = field(default=None, name="hostIP")
    """The address of the node."""
    node_name: str | None = None
    """The node of the pod."""


class NacosStatusV1Beta1(SharedStatus):
    """The state of a Nacos."""

    conditions: Annotated[list[Condition], ListType("map", "type")] = []
    """Ready, Available, Progressing, Degraded, Reconciling, Stalled, DatabaseReady and others, each with the generation
    that it is about."""
    servers: Annotated[list[ServerStatus], ListType("atomic")] = []
    """The servers, as they were last asked."""
    events: Annotated[list[StatusEvent], ListType("atomic")] = []
    """What happened last."""


class NacosV1Beta1(
    CustomResource[NacosSpecV1Beta1, NacosStatusV1Beta1],
    group=GROUP,
    version="v1beta1",
    kind="Nacos",
    storage=False,
    plural="nacos",
    scale=Scale(selector=".status.selector"),
    columns=[
        *COLUMNS,
        Column("Available", ".status.conditions[?(@.type=='Available')].status", priority=1),
        Column("Leader", ".status.leader", priority=1),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", priority=1),
    ],
    rules=RULES,
):
    """A Nacos server or cluster, with its storage and its Services."""


VERSIONS = (Nacos, NacosV1Beta1)

_RENAMED_OF_SERVERS = (
    ("podName", "name"),
    ("type", "role"),
    ("reason", "reason"),
    ("message", "message"),
    ("instance", "address"),
    ("hostIP", "hostIP"),
    ("nodeName", "nodeName"),
)
_READY = {True: "true", False: "false"}
"""The document's words for the state of a server."""


@converts_plain(Nacos, NacosV1Beta1, preserve=True)
def upgraded(content: Obj) -> Obj:
    """What is stored, as v1beta1."""
    spec, certification, status = _parts(content)
    _rename(spec, "function_mode", "functionMode")
    _rename(certification, "cache_enabled", "cacheEnabled")
    seconds = certification.pop("token_expire_seconds", None)
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdigit():
        certification["tokenExpireSeconds"] = int(seconds)
    _rename(status, "event", "events")
    entries = status.pop("conditions", None)
    _rename(status, "kubeConditions", "conditions")
    if servers := [_server(entry) for entry in _maps(entries) if entry.get("podName")]:
        status["servers"] = servers
    return content


@converts_plain(NacosV1Beta1, Nacos, preserve=True)
def downgraded(content: Obj) -> Obj:
    """An object of v1beta1, as it is stored. The conditions are repeated after the servers, as the operator does it."""
    spec, certification, status = _parts(content)
    _rename(spec, "functionMode", "function_mode")
    _rename(certification, "cacheEnabled", "cache_enabled")
    if "tokenExpireSeconds" in certification:
        certification["token_expire_seconds"] = str(certification.pop("tokenExpireSeconds"))
    _rename(status, "events", "event")
    _rename(status, "conditions", "kubeConditions")
    servers = [_entry(server) for server in _maps(status.pop("servers", None))]
    if entries := [*servers, *map(_given, _maps(status.get("kubeConditions")))]:
        status["conditions"] = entries
    return content


def _parts(content: Obj) -> tuple[Obj, Obj, Obj]:
    """Spec, certification and status; those that are not there, or no maps, as maps of no object."""
    spec = _map(content.get("spec"))
    return spec, _map(spec.get("certification")), _map(content.get("status"))


def _server(entry: Obj) -> Obj:
    server = {new: entry[old] for old, new in _RENAMED_OF_SERVERS if entry.get(old) is not None}
    return {**server, "ready": entry.get("status") == _READY[True]}


def _entry(server: Obj) -> Obj:
    entry = {old: server[new] for old, new in _RENAMED_OF_SERVERS if server.get(new) is not None}
    return {**entry, "status": _READY[server.get("ready") is True]}


def _given(condition: Obj) -> Obj:
    """A condition without nulls, which the document's list does not allow."""
    return {name: value for name, value in condition.items() if value is not None}


def _rename(part: Obj, old: str, new: str) -> None:
    if old in part:
        part[new] = part.pop(old)


def _map(value: Any) -> Obj:
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> list[Obj]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
