"""What the author of an operator declares: a `Controller` with what it watches and owns.

From one declaration come the caches, the mapping of events to requests, the RBAC rules and the check of permissions at
the start. Nothing here runs; the manager brings it to life.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from konverge.cache.store import IndexFunction
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.runtime.context import Caches, Context
from konverge.runtime.predicates import Predicate
from konverge.runtime.result import Request, Result

T = TypeVar("T", bound=Object)
K = TypeVar("K", bound=Object)


class Reconciler(Generic[T]):
    """Makes the world as an object wishes it. Subclass it, or give a Controller any `async def f(ctx)`.

        class WebAppReconciler(Reconciler[WebApp]):
            async def reconcile(self, ctx: Context[WebApp]) -> Result:
                await ctx.apply(deployment_for(ctx.obj))
                return Result(requeue_after=30)

    A subclass that defines `cleanup` gets a finalizer: it is there before `reconcile` first runs, `cleanup` runs once
    deletion is asked for, and only when it has succeeded does the object go.
    """

    async def reconcile(self, ctx: Context[T]) -> Result | None:
        """Called whenever something may have changed. Reads the present; is told why, not what to do."""
        raise TypeError(f"{type(self).__name__} does not define reconcile")

    async def cleanup(self, ctx: Context[T]) -> Result | None:
        """Called when deletion was asked for. `Result(requeue_after=…)` means: not finished, ask again."""
        return None


class Reconcile(Protocol[T]):
    """The function form of a reconciler."""

    def __call__(self, ctx: Context[T]) -> Awaitable[Result | None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(Generic[K]):
    """Another kind whose changes matter, and the requests that each leads to.

    Watch(kind=Secret, requests=lambda secret: [Request(secret.metadata.namespace, "web")])
    """

    kind: type[K]
    requests: Callable[[K], Iterable[Request]] | None = None
    lookup: Callable[[K, Caches], Iterable[Request]] | None = None
    """In place of `requests`, for a mapping that has to look at other cached objects."""
    predicate: Predicate | None = None
    label_selector: str = ""
    field_selector: str = ""
    namespaces: tuple[str, ...] | None = None
    """Where to look; None is where the controller looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Requests from outside of Kubernetes: an async iterator, for as long as the controller runs.

    Source(name="webhook", requests=listen_for_pushes)
    """

    name: str
    requests: Callable[[], AsyncIterator[Request]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a controller works. Every default can be set in the configuration file and by the environment."""

    workers: int = 16
    """Reconciles at a time. They wait for the network most of the time, so more than one costs nothing."""
    timeout: float = 60.0
    """Seconds for one reconcile; then it counts as failed."""
    resync_period: float = 36000.0
    """Seconds after which everything is looked at again, ± 10 %. Watches do the work; this is against the
    unforeseen.
    """
    max_retries: int = 15
    """Failures in a row after which a key is given up until its object changes; 0 means never."""
    base_delay: float = 0.005
    max_delay: float = 1000.0
    rate_limiter_qps: float = 10.0
    rate_limiter_burst: int = 100
    catch_up: float = 5.0
    """Seconds that a worker waits for the cache to show the key's own writes; past that the key is put off, and the
    watch has to prove that it is alive. No reconcile ever sees a cache without them.
    """


@dataclass(frozen=True)
class Controller(Generic[T]):
    """One controller: a kind, a reconciler, and what else it looks at.

    Controller(WebApp, WebAppReconciler(), owns=[Deployment, Service], workers=8)
    """

    kind: type[T]
    reconciler: Reconciler[T] | Reconcile[T]
    _: KW_ONLY
    name: str = ""
    owns: Sequence[type[Object]] = ()
    watches: Sequence[Watch[Any]] = ()
    reads: Sequence[type[Object]] = ()
    """Kinds that are read from a cache, but whose changes lead to nothing."""
    writes: Sequence[type[Object]] = ()
    """Kinds that it changes or deletes without having made them; declare them as watched or read as well."""
    changes: Sequence[type[Object]] = ()
    """Kinds that it patches and does nothing else to: its own, where it takes care of a finalizer itself."""
    deletes: Sequence[type[Object]] = ()
    """Kinds that it deletes and does nothing else to."""
    calls: Sequence[tuple[Resource, str]] = ()
    """Subresources that it updates, with their names: (Resource, "pause")."""
    makes: Sequence[type[Object]] = ()
    """Kinds that it writes without looking at them: such as a cluster may not have, which no cache could be of."""
    optional: Sequence[type[Object]] = ()
    """Of the kinds above, those that a cluster may not have: nobody waits for them. Ask `ctx.serves` before reading."""
    sources: Sequence[Source] = ()
    predicate: Predicate | None = None
    """Which changes of the kind itself matter."""
    namespaces: tuple[str, ...] = ()
    label_selector: str = ""
    field_selector: str = ""
    indexes: dict[type[Object], dict[str, IndexFunction]] = field(default_factory=dict)
    workers: int | None = None
    settings: Settings | None = None
    """How it works; None takes what the manager's configuration says."""
    component: str = ""
    """Who its events come from, as `kubectl describe` shows it; the manager by default."""
    metrics: Callable[[], Iterable[Any]] | None = None
    """Numbers of its own, as prometheus_client's metric families; asked for when somebody scrapes."""
    depends_on: Sequence[str] = ()
    """Controllers of this process by name, or `tcp://host:port`, `http://…`: they must be ready before this starts."""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.kind.resource.kind.lower())

    @property
    def finalizer(self) -> str:
        """The finalizer's name, or nothing when the reconciler has no cleanup."""
        cleanup = getattr(type(self.reconciler), "cleanup", None)
        if cleanup is None or cleanup is Reconciler.cleanup:
            return ""
        return f"{self.kind.resource.group or 'konverge.dev'}/{self.name}"
