"""The operator that is checked, as something that runs, dies and starts again.

`InProcess` is a Manager on the loop of the cluster, `konverge.check.child` a program of any language. What an
incarnation had in memory is gone with it: a factory is called for each; of a Manager or of controllers a copy is made,
so that the state of a reconciler object is new as well. State of modules stays: declare it in the factory.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from konverge.check.gate.core import Gate
from konverge.check.own_log import MOST, Lines, belonging
from konverge.client import Client, Static
from konverge.runtime import Controller, Manager
from konverge.wire.errors import ConnectionLost
from konverge.wire.in_process import Direct
from konverge.wire.message import Request, Response, Stream

if TYPE_CHECKING:
    from konverge.sim.cluster import Cluster

Declared = Manager | Iterable[Controller[Any]]
Declaration = Declared | Callable[..., Declared]


class Operator(Protocol):
    """Whatever can be started on a cluster behind a gate, again and again."""

    name: str

    async def start(self, cluster: Cluster, gate: Gate) -> Incarnation:
        """Begin an incarnation; it reaches the API server through the gate alone. Raises CannotStart."""

    async def aclose(self) -> None:
        """After the last incarnation: nothing is left behind."""


class Incarnation(Protocol):
    """One life of the operator."""

    exit_code: int | None
    """Of a process that has ended by itself."""

    async def ended(self) -> str:
        """Wait until it has ended by itself; says why."""

    async def kill(self) -> None:
        """End it at once, as SIGKILL does: nothing is finished, no lock released."""

    def log(self) -> list[str]:
        """The last lines that it logged."""


class CannotStart(Exception):
    """The operator cannot be run at all; the message says what to do."""


class InProcess:
    """A Manager, controllers, or a function that returns either."""

    def __init__(self, declaration: Declaration, name: str = "operator") -> None:
        self._declaration = declaration
        self.name = name

    async def start(self, cluster: Cluster, gate: Gate) -> Incarnation:
        link = Link(Direct(gate.handle))
        client = Client(link, credentials=Static.bearer(cluster.server.token), user_agent=self.name)
        declared = _fresh(self._declaration, client)
        webhooks = declared.webhooks and replace(declared.webhooks, place=cluster.webhook_place())
        manager = declared.bound_to(
            client, health_address=None, metrics=None, webhooks=webhooks, leader_election=None, sharding=None
        )
        return _Running(manager, link)

    async def aclose(self) -> None:
        """Nothing is left of a task that has ended."""


WRITES_PER_SECOND, BURST = 10.0, 100.0
"""As clients limit themselves. Without it a loop of writes takes no virtual time, so what would end it never comes."""


class Link:
    """The operator's way to the gate. Once it is cut, nothing goes through: the process on this side is gone."""

    def __init__(self, inner: Direct) -> None:
        self._inner = inner
        self._cut = False
        self._left, self._since = BURST, asyncio.get_running_loop().time()

    async def send(self, request: Request) -> Response:
        self._check()
        if request.method != "GET":
            await self._turn()
            self._check()
        return await self._inner.send(request)

    def _check(self) -> None:
        """Also before a wait: a wait for a turn that never comes would hang."""
        if self._cut:
            raise ConnectionLost("the operator has crashed")

    async def _turn(self) -> None:
        """A token bucket: waits when many writes came at once."""
        now = asyncio.get_running_loop().time()
        self._left = min(BURST, self._left + (now - self._since) * WRITES_PER_SECOND) - 1
        self._since = now
        if self._left < 0:
            await asyncio.sleep(-self._left / WRITES_PER_SECOND)

    async def stream(self, request: Request) -> Stream:
        self._check()
        return await self._inner.stream(request)

    def cut(self) -> None:
        self._cut = True

    async def aclose(self) -> None:
        await self._inner.aclose()


AT_ONCE, SECONDS = 1000, 30
"""How often a task that is to end may go on before time passes, and for how long it passes then."""


class _Running:
    exit_code: int | None = None

    def __init__(self, manager: Manager, link: Link) -> None:
        self._manager = manager
        self._link = link
        self._lines: Lines = Lines(maxlen=MOST)
        with belonging(self._lines):
            self._task = asyncio.create_task(self._serve(), name="operator under check")

    async def _serve(self) -> None:
        await self._manager.serve(asyncio.Event())  # never asked to end: it is killed

    async def ended(self) -> str:
        await asyncio.wait([self._task])
        error = None if self._task.cancelled() else self._task.exception()
        return "it was cancelled" if error is None else f"{type(error).__name__}: {error}"

    async def kill(self) -> None:
        """No time passes: whatever would finish in order is cancelled as well, and reaches nothing any more.

        A group of tasks cancels its own once. One of them that waits while it ends is given time, and then given up.
        """
        self._link.cut()
        for turn in range(AT_ONCE + SECONDS):
            if self._task.done():
                break
            self._task.cancel()
            await asyncio.wait([self._task], timeout=0 if turn < AT_ONCE else 1.0)
        await self._link.aclose()
        with suppress(Exception, asyncio.CancelledError):
            self._task.result()

    def log(self) -> list[str]:
        return list(self._lines)


def _fresh(declaration: Declaration, client: Client) -> Manager:
    made: Declared
    if isinstance(declaration, Manager):
        made = declaration.bound_to(client, controllers=[_copied(item) for item in declaration.controllers])
    elif callable(declaration):
        made = declaration(client) if _needs_client(declaration) else declaration()
    else:
        made = [_copied(item) for item in declaration]
    if isinstance(made, Manager):
        return made
    manager = Manager(client, name="operator")
    for controller in made:
        manager.add(controller)
    return manager


def _needs_client(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in plain and parameter.default is parameter.empty for parameter in parameters)


def _copied(controller: Controller[Any]) -> Controller[Any]:
    reconciler = controller.reconciler
    if inspect.isfunction(reconciler) or inspect.ismethod(reconciler):
        return controller
    return replace(controller, reconciler=copy.deepcopy(reconciler))
