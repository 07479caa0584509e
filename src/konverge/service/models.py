"""The requests and answers of the service.

Answers always have all their fields. Requests are strict: an unknown field is an error. The `spec` of a request is that
of the custom resource; the API server validates it, and its refusals name the field by the path that the caller wrote.
"""

from __future__ import annotations

from typing import Annotated, Any

from konverge.objects import MaxLength, Model, Pattern, field
from konverge.operators.nacos.resource import LONGEST_NAME, NAME

MOST_LABELS = 64


class Answer(Model, omit_defaults=False):
    """The base of all answers."""


class Offer(Answer):
    """A version of Nacos that can be created."""

    version: str
    image: str
    default: bool


class Offers(Answer):
    """The versions of Nacos that can be created, newest first."""

    items: list[Offer]


class Identity(Answer):
    """The user that the cluster sees in the caller's token."""

    username: str
    groups: list[str]


class Server(Answer):
    """One server of an instance."""

    pod: str = ""
    role: str = ""
    """leader, follower, or empty while it is not known."""
    ready: bool = False
    address: str = ""
    node: str = ""
    message: str = ""


class State(Answer):
    """One condition of an instance, as in Kubernetes."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    since: str = ""


class Happening(Answer):
    """Something that happened to an instance."""

    type: str = ""
    """Normal or Warning."""
    reason: str = ""
    message: str = ""
    count: int = 1
    first: str = ""
    last: str = ""


class Happenings(Answer):
    """What happened to an instance, the latest first."""

    items: list[Happening]


class Storage(Answer):
    """Where an instance keeps its data."""

    database: str = "embedded"
    """embedded, mysql or postgresql."""
    volume: bool = False
    size: str = ""
    storage_class: str = ""


class Upgrade(Answer):
    """The change of an instance's version that is under way, or the last one."""

    from_version: str = field(default="", name="from")
    to: str = ""
    step: str = ""
    """Preflight, Migrating, Rolling, Verifying or Done."""
    since: str = ""
    """Since when it is in this step."""
    halted: str = ""
    """One word why it does not go on; empty while it does."""
    message: str = ""
    """How far it is, or what to do about the halt."""
    members_done: list[str] = []
    """The pods that have answered with the new version."""
    backup: str = ""
    """The backup that allowed it to begin, where one was asked for."""


class Instance(Answer):
    """A Nacos server or cluster, and its state."""

    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""
    created: str = ""
    deleting: bool = False
    paused: bool = False
    """Whether the operator is paused for this instance."""
    hibernate: bool = False
    """Whether it is to have no servers for now; the phase says when they are gone, and when they are back."""
    labels: dict[str, str] = {}
    type: str = "standalone"
    image: str = ""
    version: str = ""
    """The version that the servers report; until they do, that of the image's tag."""
    replicas: int = 1
    ready_replicas: int = 0
    phase: str = "Pending"
    """Pending until the operator has seen it; then Creating (also while it wakes), Running (also while it is scaled),
    Failed or Hibernated."""
    healthy: bool = False
    up_to_date: bool = False
    """Whether the state is that of the current spec."""
    leader: str = ""
    message: str = ""
    """Why it is not ready; empty when it is, or hibernates as it should."""
    resources: dict[str, Any] = {}
    storage: Storage
    upgrade: Upgrade | None = None
    """null: its servers were not given another version yet."""
    servers: list[Server] = []
    conditions: list[State] = []


class Instances(Answer):
    """A page of instances. All pages of one list show the same moment."""

    items: list[Instance]
    continue_token: str = ""
    """Ask for the next page with it; empty on the last."""
    remaining: int = 0
    """How many come after this page, where the server counts them."""
    resource_version: str = ""


class NewInstance(Model, forbid_unknown_fields=True):
    """A new instance: its name, and the spec of the custom resource."""

    name: Annotated[str, Pattern(NAME), MaxLength(LONGEST_NAME)]
    """Services get the same name: lower-case letters, digits and '-', beginning with a letter."""
    version: Annotated[str, MaxLength(32)] = ""
    """An offered version, in place of `spec.image`. Without both, the default version."""
    labels: dict[str, str] = {}
    spec: dict[str, Any] = {}
    """Deployment type, replicas, quota (`resources`), storage (`database`, `postgres`, `volume`) and the rest."""


class Change(Model, forbid_unknown_fields=True):
    """Changes of quota, size and version. Fields that are left out stay as they are."""

    replicas: int | None = None
    hibernate: bool | None = None
    """true ends the servers and keeps everything else; false wakes them."""
    version: Annotated[str, MaxLength(32)] = ""
    """An offered version; the servers are replaced one after the other. A `spec.version` of the resource is removed."""
    resources: dict[str, Any] | None = None
    """The quota of each server: requests and limits of cpu and memory, merged into the present ones; null removes."""


class FieldProblem(Answer):
    """What is wrong with one field of the request."""

    field: str
    pointer: str
    """The same as a JSON pointer (RFC 6901)."""
    reason: str
    message: str


class ProblemDetails(Answer):
    """Why a request was refused (RFC 9457)."""

    type: str = "about:blank"
    title: str = ""
    status: int = 500
    detail: str = ""
    reason: str = ""
    """The API server's reason, such as NotFound or Invalid."""
    errors: list[FieldProblem] = []
