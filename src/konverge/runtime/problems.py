"""What a running manager lacks, as lines in the log: at once, seldom after that, and when it is repaired.

A cache goes on trying whatever happens, so that nothing but the log would say that it has nothing to go by. Several
caches often fail for one cause, such as a server that is away: that is one problem, and one line. Each line says what
is wrong and what to do about it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from konverge.cache.informer import Informer
from konverge.cache.spec import CacheSpec
from konverge.client import ClientError, ConnectionFailed, ConnectionLost, CredentialError, Forbidden, NotFound
from konverge.client import Unauthorized as NotAccepted
from konverge.objects.resource import Resource
from konverge.observe.repeated import Repeated
from konverge.runtime.caches import SharedCaches
from konverge.runtime.declare import Controller
from konverge.wire.errors import WireError

PATIENCE = 2.0
"""Seconds without an answer after which that is worth a line."""

_log = logging.getLogger("konverge.manager")

Place = tuple[CacheSpec, str]
"""A cache, in one namespace or in all."""


class _Problem(msgspec.Struct):
    solved: str
    """What is logged at its end."""
    places: set[Place] = msgspec.field(default_factory=set)
    """Where it was seen last."""
    lines: Repeated = msgspec.field(default_factory=Repeated)


class _Report(msgspec.Struct, frozen=True):
    cause: Hashable
    """Equal for what is one problem."""
    text: str
    solved: str
    level: int = logging.WARNING


class Problems:
    """The problems of a manager's caches. `server` is its name in messages, `install` the command that installs the
    definitions of the kinds in `own`; the kinds in `optional` may be missing.
    """

    def __init__(
        self, server: str, *, own: frozenset[Resource] = frozenset(), install: str = "", optional: frozenset[CacheSpec]
    ) -> None:
        self._server = server
        self._own = own
        self._install = install
        self._optional = optional
        self._problems: dict[Hashable, _Problem] = {}

    def listen(self, informer: Informer) -> None:
        informer.health_listeners.append(partial(self._health_changed, informer.spec))

    def _health_changed(self, spec: CacheSpec, namespace: str, error: Exception | None) -> None:
        place = (spec, namespace)
        if error is None:
            self._solved(place)
            return
        report = self._describe(spec, error)
        self._solved(place, unless=report.cause)
        problem = self._problems.setdefault(report.cause, _Problem(report.solved))
        is_first = not problem.places
        problem.places.add(place)
        if is_first and isinstance(error, ConnectionLost):
            return  # a watch ends like that when a server is restarted; whether it is away shows at the next attempt
        if problem.lines.due():
            _log.log(report.level, "%s", report.text)

    def _solved(self, place: Place, unless: Hashable = None) -> None:
        """A cache has not this problem any more; when it was the last one that had it, that is a line."""
        for cause, problem in list(self._problems.items()):
            if cause == unless or place not in problem.places:
                continue
            problem.places.remove(place)
            if not problem.places:
                del self._problems[cause]
                if problem.lines.reported:
                    _log.info("%s", problem.solved)

    # -------------------------------------------------------------- what to say

    def _describe(self, spec: CacheSpec, error: Exception) -> _Report:
        if isinstance(error, NotFound):
            return self._missing(spec)
        if isinstance(error, Forbidden):
            return _Report(("forbidden", spec), f"{error}; trying again", f"{spec} can be read now")
        if isinstance(error, NotAccepted | CredentialError):
            return _Report("credentials", f"{error}; trying again", f"{self._server} accepts the credentials now")
        if isinstance(error, ConnectionFailed | WireError):
            return _Report("server", f"{error}; trying again", f"{self._server} answers again")
        return _Report(("cache", spec), f"{spec} cannot be read: {error}; trying again", f"{spec} can be read again")

    def _missing(self, spec: CacheSpec) -> _Report:
        resource = spec.resource
        name = f"{resource.group_resource} ({resource.api_version})"
        solved = f"{resource.group_resource} is served now"
        cause = ("missing", resource)
        if spec in self._optional:
            text = f"{name} is not served; going on without it until it is (it is optional)"
            return _Report(cause, text, solved, logging.INFO)
        if resource in self._own and self._install:
            todo = f"install its definition: {self._install}"
        else:
            todo = f"install what defines it: `kubectl get crd {resource.group_resource}` shows whether it is there"
        return _Report(cause, f"{name} is not served; waiting for it; {todo}", solved)


def log_problems(caches: SharedCaches, server: str, controllers: Iterable[Controller[Any]], prints: str) -> None:
    """Log from now on what keeps these caches from being current; the command `prints` prints the definitions."""
    problems = Problems(
        server,
        own=frozenset(controller.kind.resource for controller in controllers),
        install=f"`{prints} | kubectl apply -f -`" if prints else "",
        optional=frozenset(caches.informers.keys() - caches.needed),
    )
    for informer in caches.informers.values():
        problems.listen(informer)


def unanswered(caches: SharedCaches) -> str:
    """Which caches wait for a first answer; what got an error has reported it."""
    silent = [str(spec) for spec, cache in caches.informers.items() if not cache.synced.is_set() and not cache.error]
    return f"no complete list yet of {', '.join(silent)}; waiting for it" if silent else ""


@contextmanager
def noticing(describe: Callable[[], str]) -> Iterator[None]:
    """Inside the block, log a line after two seconds and seldom after that, for as long as there is one to log."""
    loop = asyncio.get_running_loop()
    lines = Repeated()

    def look() -> None:
        text = describe()
        if text and lines.due():
            _log.warning("%s", text)
        timers.append(loop.call_later(PATIENCE, look))

    timers = [loop.call_later(PATIENCE, look)]
    try:
        yield
    finally:
        timers[-1].cancel()


def is_passing(error: ClientError) -> bool:
    """Whether a server that failed like this may answer soon: it is away, starting or busy."""
    return isinstance(error, ConnectionFailed) or getattr(error, "code", 0) in (429, 500, 502, 503, 504)
