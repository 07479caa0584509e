"""The vocabulary of a check: what is done to an operator, what was seen of it, and what is wrong with it.

All of it is plain data: a `Task` goes to a worker process as JSON and a `Run` comes back; a file that shows a finding
again is a `Task` with the alarm to expect. Perturbations are named by what they hit (a `Place` of the operator's
requests, a `Moment` of the store's changes), never by a number, so that they survive small shifts between two runs.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from konverge.check.snapshot import Snapshot

Obj = dict[str, Any]


class Ref(msgspec.Struct, frozen=True, order=True):
    """An object: `resource` is "group/plural" as in the store ("/pods", "apps/statefulsets")."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = self.resource.removeprefix("/")
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


class Place(msgspec.Struct, frozen=True, order=True):
    """A request of the operator that changed something.

    `name` has generated parts folded (see `folding`), `change` is the paths that were changed, as text; `occurrence`
    counts requests that are otherwise alike, from 1.
    """

    verb: str
    resource: str
    """With the subresource: "apps/statefulsets", "apps/statefulsets/status"."""
    namespace: str
    name: str
    change: str = ""
    occurrence: int = 1

    def __str__(self) -> str:
        return f"{self.verb} {_shown(self)}"


class Moment(msgspec.Struct, frozen=True, order=True):
    """A change of an object in the store, by whomever. Its parts are those of a Place."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: str
    namespace: str
    name: str
    change: str = ""
    occurrence: int = 1

    def __str__(self) -> str:
        return f"{self.type} {_shown(self, f' ({self.change})' if self.change else '')}"


def _shown(item: Place | Moment, changed: str = "") -> str:
    number = f" (occurrence {item.occurrence})" if item.occurrence > 1 else ""
    return f"{Ref(item.resource, item.namespace, item.name)}{changed}{number}"


# ------------------------------------------------------------------ what is done to the operator


class Crash(msgspec.Struct, frozen=True, tag="crash"):
    """The operator ends and starts again: after a write took effect and before its answer, or before it took effect."""

    place: Place
    when: Literal["after", "before"] = "after"


class Refuse(msgspec.Struct, frozen=True, tag="refuse"):
    """A request is answered by an error. `lost` takes effect, and its answer is lost."""

    place: Place
    answer: Literal["conflict", "error", "unavailable", "throttled", "timeout", "lost"]
    times: int = 1


class Stale(msgspec.Struct, frozen=True, tag="stale"):
    """The operator starts again, at `until`, and is shown one resource as it was at `since`, for a while.

    Only where such a view is legal: lists with resourceVersion=0, and watches from there.
    """

    resource: str
    since: Moment
    until: Moment
    before: bool = False
    """The view is from right before `since`, and not from right after it."""


class Lag(msgspec.Struct, frozen=True, tag="lag"):
    """The watches of a resource stand still from `since` until `until` (or the next rest) and then go on."""

    resource: str
    since: Moment
    until: Moment | None = None


class Gap(msgspec.Struct, frozen=True, tag="gap"):
    """The watches of a resource stand still from before `since` until after `until`, and end with 410 Expired.

    The client lists again, and never sees what was between.
    """

    resource: str
    since: Moment
    until: Moment


class LateOwnWrites(msgspec.Struct, frozen=True, tag="own-writes"):
    """What the operator wrote itself appears late in its watches, while all else flows (KEP-5647's case)."""

    resource: str
    seconds: float = 5.0


class Edit(msgspec.Struct, frozen=True, tag="edit"):
    """Another client changes an object, at rest after a step of the workload, by a merge patch; None deletes it."""

    ref: Ref
    patch: Obj | None
    step: int
    subresource: str = ""


class ApplicationFault(msgspec.Struct, frozen=True, tag="application"):
    """A stand-in for an application fails as a step begins, until it was met a few times or the cluster is at rest."""

    server: str
    fault: str
    step: int


class LeaderLost(msgspec.Struct, frozen=True, tag="leader"):
    """Another holder takes the operator's Lease after a write, and gives it back when the operator has ended."""

    place: Place


class TimePasses(msgspec.Struct, frozen=True, tag="time"):
    """After a step, time passes; or the API server is away for a while, in which the next step begins."""

    step: int
    seconds: float
    away: bool = False


class OperatorAway(msgspec.Struct, frozen=True, tag="operator-away"):
    """The operator ends before a step, and starts when all has been done up to the last of some steps."""

    step: int
    last: int


Perturbation = (
    Crash | Refuse | Stale | Lag | Gap | LateOwnWrites | Edit | ApplicationFault
    | LeaderLost | TimePasses | OperatorAway
)  # fmt: skip


# ------------------------------------------------------------------ what the user does


class Apply(msgspec.Struct, frozen=True, tag="apply"):
    """Create an object, or replace what the user wrote of it before (as `kubectl apply` does, removals included)."""

    object: Obj


class Delete(msgspec.Struct, frozen=True, tag="delete"):
    """Delete an object."""

    api_version: str
    kind: str
    namespace: str
    name: str


Action = Apply | Delete


class Step(msgspec.Struct, frozen=True):
    """What a user does at once; then the cluster comes to rest, and its state is compared."""

    name: str
    actions: tuple[Action, ...]
    about: str = ""
    """The path of the field that is changed ("spec.replicas"), where it is one field."""
    core: str = ""
    """The built-in type that this field is, where it was recognised (see `konverge.check.inputs`)."""
    expect: Literal["", "refused", "harmless"] = ""
    """What a misoperation should end in: the API server's refusal, or nothing that lasts."""


Pattern = Literal[
    "reference", "crash", "stale", "gap", "own-writes", "edits", "errors", "application", "leader", "time", "input",
    "recovery",
]  # fmt: skip


class Plan(msgspec.Struct, frozen=True):
    """One run: the workload (that of the reference unless it has one of its own) and what goes wrong in it."""

    pattern: Pattern
    perturbations: tuple[Perturbation, ...] = ()
    steps: tuple[Step, ...] | None = None
    begin: int = 0
    """The step to begin with: what was before is restored from the reference, where that can be done."""
    first: int = 0
    """Only so many first steps of the workload are run; 0: all."""
    seconds: float = 0.0
    """How long it will take, as far as the reference tells; 0: not known."""


# ------------------------------------------------------------------ one run


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The operator: `target` (module:attribute or a file) in this process, or `command`, a program of any language."""

    target: str = ""
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    folder: str = ""
    """Where the command is started."""
    in_cluster: bool = False
    """The command finds the API server as in a pod, and not by a kubeconfig."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What is there before the operator starts."""

    objects: tuple[Obj, ...] = ()
    """Definitions, roles, configuration: created in this order."""
    account: str = ""
    """`namespace/name` of the operator's ServiceAccount; without one it is the administrator (and that is said)."""
    simulate: str = ""
    """A file of stand-ins (see docs/check/stand-ins.md), as text."""
    namespace: str = "default"
    nodes: int = 3
    old_apis: bool = False
    """Versions that Kubernetes no longer has are served (see `konverge.check.old_apis`)."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a worker needs for one run."""

    subject: Subject
    setup: Setup
    steps: tuple[Step, ...]
    plan: Plan
    seed: int = 0
    quiet: float = 0.0
    """Seconds without an effective change that count as rest; 0: what is usual for this kind of subject."""
    pauses: dict[str, float] = {}
    """By the name of a step, on real time: fewer seconds, which are enough where no object says that it is busy."""
    always_busy: tuple[str, ...] = ()
    """Steps at whose rest objects say so in the reference as well: there it means nothing."""
    limit: float = 0.0
    """Seconds after which a step that has not come to rest is given up; 0: what is usual."""
    patience: float = 0.0
    """Seconds, on real time, that the last step has beyond its rest, or what goes wrong after it: some operators look
    at their objects again only every half minute."""
    snapshots: bool = False
    """The run has the state of every rest, for others to begin with."""
    restored: Snapshot | None = None
    """Where it begins: the plan's `begin` says with which step."""
    branches: str = ""
    """A folder: on virtual time, the run leaves a process there at each rest, for others to branch off (`trunk`)."""


class Exchange(msgspec.Struct, kw_only=True):
    """One request of the operator, as the gate saw it. Reads are counted, not listed, unless they failed."""

    number: int
    incarnation: int
    verb: str
    resource: str
    namespace: str
    name: str
    status: int
    began: float
    revision: int
    """Of the store, when it began."""
    revisions: tuple[int, ...] = ()
    """Of the changes that it made."""
    place: Place | None = None
    """Of a write that changed something."""
    guarded: bool = False
    """The write was guarded by a resourceVersion or uid precondition."""
    error: str = ""
    """The message of a refusal, or the perturbation that hit it."""
    perturbed: bool = False
    """It was answered by a perturbation, as often as the plan says."""
    served: bool = True
    """Of a forbidden one: the API server has such a resource, so that a permission for it would be of use."""


Writer = Literal["operator", "user", "cluster"]


class Change(msgspec.Struct, kw_only=True):
    """One change of the store after the setup."""

    revision: int
    time: float
    moment: Moment
    ref: Ref
    uid: str
    writer: Writer
    incarnation: int = 0
    differences: tuple[tuple[str, Any, Any], ...] = ()
    """Path, old and new value: of a modification."""
    step: int = 0


class Delivery(msgspec.Struct, kw_only=True):
    """What a list or a watch showed to the operator."""

    incarnation: int
    time: float
    resource: str
    revision: int
    """Of the list, or of the event."""
    after: int = 0
    """So many requests of the operator had begun."""
    listed: bool = False
    """A whole state: a list, or the end of a streamed one."""
    any_version: bool = False
    """Of a list: it may be answered with an old state (resourceVersion=0)."""
    ref: Ref | None = None


class Exit(msgspec.Struct, kw_only=True):
    """An incarnation that ended by itself."""

    incarnation: int
    step: int
    time: float
    code: int | None = None
    error: str = ""
    """The exception, or the last lines of the log that say why."""


class Checkpoint(msgspec.Struct, kw_only=True):
    """The state at rest after a step."""

    step: str
    revision: int
    time: float
    state: dict[str, Obj]
    """By `str(Ref)`: everything that was written after the setup and is there, but Events and Leases."""
    refused: str = ""
    """Why the API server refused what the user did, if it did."""
    rested: bool = True
    blind: bool = False
    """The operator has not been shown all: this state is not compared."""
    noise: dict[str, int] = {}
    """What went on at rest: writes that change nothing, and changes that go round in a circle: how often."""
    gap: float = 0.0
    """On real time: the longest pause, in seconds, between two things that happened before rest."""
    under_way: bool = False
    """On real time: objects say that something is under way, and yet nothing happens."""


class Run(msgspec.Struct, kw_only=True):
    """What happened in one run."""

    plan: Plan
    seed: int
    steps: tuple[Step, ...]
    """Those that were run."""
    checkpoints: list[Checkpoint] = []
    exchanges: list[Exchange] = []
    changes: list[Change] = []
    deliveries: list[Delivery] = []
    exits: list[Exit] = []
    hit: list[str] = []
    """The perturbations that came to pass, as text."""
    missed: bool = False
    """A perturbation's place or moment never came: the run says nothing."""
    problem: str = ""
    """Why it could not be carried out: the operator did not start, a definition was refused, …"""
    log: list[str] = []
    """The last lines of the operator's log, each with `incarnation:`."""
    reads: dict[str, int] = {}
    """Verb and resource of the requests: how many. For permissions that are never used."""
    applications: dict[str, tuple[int, ...]] = {}
    """The steps in which stand-ins were connected to, by the name of the server."""
    violations: list[str] = []
    """Of what must always hold of the simulated cluster (`konverge.sim.invariants`): defects of Konverge."""
    snapshots: list[Snapshot] = []
    seconds: float = 0.0
    cpu: float = 0.0


# ------------------------------------------------------------------ what is wrong

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """What one oracle says about one run."""

    oracle: str
    severity: Severity
    object: str
    """`str(Ref)` with folded names; the operator itself is "operator"."""
    field: str = ""
    sentence: str
    """What a colleague would say, without the perturbation: "the claim stays at 10Gi for ever"."""
    step: str = ""
    expected: Any = None
    actual: Any = None

    @property
    def group(self) -> tuple[str, str, str]:
        return (self.oracle, self.object, self.field)


class Finding(msgspec.Struct, kw_only=True):
    """Alarms of one cause: the worst of them, how to see it again, how often it was seen."""

    alarm: Alarm
    task: Task
    """With the fewest perturbations and steps that still show it."""
    sentence: str
    """The whole sentence, with what was done to the operator."""
    runs: int = 1
    """Runs that showed it."""
    patterns: tuple[str, ...] = ()
    confirmed: tuple[int, int] = (0, 0)
    """Of so many repetitions, so many showed it again (first: how many showed it)."""
    details: tuple[Alarm, ...] = ()
    """What else the same cause led to."""
    after: float = 0.0
    """Seconds of the search after which it was first seen; 0 for what the reference shows."""


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def decode_task(data: bytes) -> Task:
    return msgspec.json.decode(data, type=Task)


def decode_run(data: bytes) -> Run:
    return msgspec.json.decode(data, type=Run)
