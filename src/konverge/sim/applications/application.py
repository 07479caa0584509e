"""`Application`: the base of stand-ins for programs that run in pods, all servers of one cluster of them together.

    class Echo(Application):
        ports = (7,)

        async def serve(self, member, reader, writer):
            while line := await reader.readline():
                writer.write(line)
                await writer.drain()

A `--simulate` file names it (`python: my_module:Echo`); `konverge.sim.applications.kinds` has those that come with
Konverge. One object stands for all pods of a group (by default: all that belong to one custom resource), so that a
write to one server can be read from another. What must outlive a pod is in `state`, which is plain JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from konverge.wire.message import Request, Response

if TYPE_CHECKING:
    from konverge.sim.applications.simulation import ServerRule

Obj = dict[str, Any]

REFUSE, SLOW, CUT, ERROR, WRONG = "refuse", "slow", "cut", "error", "wrong"
FAULTS = {
    REFUSE: "no connection is accepted, and open ones are closed",
    SLOW: "every connection waits before its first answer",
    CUT: "every connection is closed when the first bytes have arrived",
    ERROR: "every request is answered by the protocol's error",
    WRONG: "requests are answered, but not truly: what is there is not shown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecAnswer:
    """What a command prints, and its exit code."""

    stdout: str = ""
    stderr: str = ""
    exit: int = 0


@dataclass(eq=False, slots=True, kw_only=True)
class Member:
    """The server in one pod, while its container runs."""

    pod: Obj
    """As the API shows it."""
    address: str
    server: str
    """The name of its rule in the simulate file."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """`with` of its rule."""
    fault: str = ""
    """One of FAULTS, while it is switched on; `serve` sees only `error` and `wrong`."""

    @property
    def name(self) -> str:
        name: str = self.pod["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        namespace: str = self.pod["metadata"]["namespace"]
        return namespace

    @property
    def labels(self) -> Mapping[str, str]:
        return self.pod["metadata"].get("labels") or {}


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What a group of servers may ask of the simulation around it."""

    read: Callable[[str, str, str, str], Obj | None] = lambda group, plural, namespace, name: None
    """An object of the API server, by group, plural, namespace and name."""
    changed: Callable[[], None] = lambda: None
    look_at: Callable[[Member], None] = lambda member: None
    """Have a member's probes made again: `ready` has changed."""


class Application:
    """All servers of one application; see the module's example."""

    ports: ClassVar[tuple[int, ...]] = ()
    """Where it listens, unless the rule says otherwise."""
    faults: ClassVar[tuple[str, ...]] = (REFUSE, SLOW, CUT)
    """Those of FAULTS that it can show; `refuse`, `slow` and `cut` need nothing of it."""

    def __init__(self, around: Surroundings | None = None) -> None:
        self.around = around or Surroundings()
        self.members: dict[str, Member] = {}
        """By `server/pod`, in the order in which they came."""
        self.state: Obj = {}
        """What outlives a pod. Call `changed` after a change."""

    def configure(self, rule: ServerRule) -> None:
        """The rule of the simulate file that made it; members of later rules may join the same group."""

    # -------------------------------------------------------------- for authors

    async def serve(self, member: Member, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it ends. It is closed afterwards; ConnectionError and IncompleteReadError are fine."""
        raise NotImplementedError(f"{type(self).__name__} has neither `serve` nor `answer`")

    def joined(self, member: Member) -> None:
        """The container has begun to run in this pod."""

    def left(self, member: Member) -> None:
        """The container has ended."""

    def ready(self, member: Member) -> bool:
        """Whether its readiness probe would succeed."""
        return True

    def exec(self, member: Member, command: list[str]) -> ExecAnswer | None:
        """What a command in the container prints; None when it is none of this program's."""
        return None

    def changed(self) -> None:
        """`state` has changed: it is remembered with the present revision of the store."""
        self.around.changed()

    # -------------------------------------------------------------- snapshots

    def export(self) -> Obj:
        """The state as JSON; `restore` takes it back."""
        return self.state

    def restore(self, state: Obj) -> None:
        self.state = state


class HttpApplication(Application):
    """One that speaks HTTP: only `answer` is to be written."""

    faults = (REFUSE, SLOW, CUT, ERROR, WRONG)

    async def answer(self, member: Member, request: Request) -> Response:
        """The answer to one request."""
        raise NotImplementedError(f"{type(self).__name__} has no `answer`")

    async def answer_wrong(self, member: Member, request: Request) -> Response:
        """The answer under the fault `wrong`: a success with an empty document."""
        return Response(200, body=b"{}")
