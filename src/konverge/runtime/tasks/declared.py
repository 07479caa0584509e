"""Timers and daemons as the author of an operator declares them. Nothing here runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from konverge.objects.meta import Object
from konverge.runtime.context import Context

if TYPE_CHECKING:
    from konverge.runtime.tasks.daemon_context import DaemonContext

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class Every(Generic[T]):
    """A timer of each object: a function that is called every so often, with a context as a reconcile has it.

        Controller(Meter, timers=[Every(60, read_meter)])
        Controller(Meter, timers=[Every(lambda meter: meter.spec.interval_seconds, read_meter)])

    The calls of one object never overlap. A call that is late does not move those after it, and calls that were missed
    are not made up for. A call that raises is made again after a back-off. Upstream: kopf's @kopf.timer.
    """

    interval: float | Callable[[T], float]
    """Seconds from one call to the next; a function of the object gives each its own."""
    function: Callable[[Context[T]], Awaitable[object]]
    _: KW_ONLY
    name: str = ""
    """For logs and metrics; by default that of the function."""
    initial_delay: float | Callable[[T], float] = 0.0
    """Seconds until the first call, from when this process first sees the object."""
    idle: float = 0.0
    """No call until the object's spec has been the same for so many seconds."""
    sharp: bool = True
    """Calls are due at fixed times; otherwise the interval begins when a call has ended."""
    when: Callable[[T], bool] | None = None
    """Which objects have the timer; asked before each call. Objects that are being deleted have none."""

    def __post_init__(self) -> None:
        _check_name(self)
        for name in ("interval", "initial_delay", "idle"):
            seconds = getattr(self, name)
            if not callable(seconds) and not seconds >= 0:
                raise ValueError(f"{name} of the timer {self.name} must be a number of seconds, not {seconds!r}")
        if self.interval == 0:
            raise ValueError(f"the interval of the timer {self.name} must be more than 0 seconds")


@dataclass(frozen=True, slots=True)
class Daemon(Generic[T]):
    """A task of each object: started when the object is there, ended when it goes.

        Controller(Feed, daemons=[Daemon(follow, restart_on_change=True)])

    One that raises is started again after a back-off; one that returns has done its work, and is started again only
    for another object, for another spec (with `restart_on_change`), or by another process. Upstream: kopf's
    @kopf.daemon.
    """

    function: Callable[[DaemonContext[T]], Awaitable[object]]
    _: KW_ONLY
    name: str = ""
    """For logs and metrics; by default that of the function."""
    when: Callable[[T], bool] | None = None
    """Which objects have the daemon; asked at each change. Objects that are being deleted have none."""
    restart_on_change: bool = False
    """End and start it when the object's spec changes. Otherwise it sees the change itself (`ctx.changed()`)."""
    grace: float = 0.0
    """Seconds from `ctx.stopped` to the cancellation, for a daemon that ends by itself."""
    holds_deletion: bool = False
    """The object is not gone before the daemon has ended: by the controller's finalizer."""

    def __post_init__(self) -> None:
        _check_name(self)
        if not self.grace >= 0:
            raise ValueError(f"the grace of the daemon {self.name} must be a number of seconds, not {self.grace!r}")


def _check_name(declared: Every[Any] | Daemon[Any]) -> None:
    if not callable(declared.function):
        raise TypeError(f"{declared.function!r} cannot be called: give an async function of a context")
    if not declared.name:
        name = getattr(declared.function, "__name__", type(declared.function).__name__)
        object.__setattr__(declared, "name", name)
