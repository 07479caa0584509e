"""What the author of an operator declares: a `Controller` with what it watches and owns.

From one declaration come the caches, the mapping of events to requests, the RBAC rules and the check of permissions at
the start. Nothing here runs; the manager runs it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import msgspec

from konverge.cache.store import Change, IndexFunction
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.runtime.context import Context
from konverge.runtime.deprecated import earlier_predicate, earlier_uses
from konverge.runtime.finalizers import check_finalizers
from konverge.runtime.given import Options
from konverge.runtime.indexing import Indexes, index_functions
from konverge.runtime.keys import check_key_type
from konverge.runtime.predicates import ChangePredicate, When, check_predicate
from konverge.runtime.relations import (
    Owns,
    Use,
    Watches,
    as_owns,
    as_watches,
    require_kind,
    require_namespaces,
)
from konverge.runtime.result import Request, Result
from konverge.runtime.tasks.declared import Daemon, Every

if TYPE_CHECKING:
    from konverge.objects.custom.resource import CustomResource
    from konverge.runtime.key_context import KeyContext
    from konverge.runtime.tasks.gone import Gone

T = TypeVar("T", bound=Object)


class Reconciler(Generic[T]):
    """Brings the cluster to the state that an object describes. Subclass it, or give a Controller any `async def
    f(ctx)`.

        class WebAppReconciler(Reconciler[WebApp]):
            async def reconcile(self, ctx: Context[WebApp]) -> Result:
                await ctx.apply(deployment_for(ctx.obj))
                return Result(requeue_after=30)

    A subclass that defines `cleanup` gets a finalizer: it is added before `reconcile` first runs, `cleanup` runs once
    deletion is requested, and only when it has succeeded is the object removed.
    """

    async def reconcile(self, ctx: Context[T]) -> Result | None:
        """Called whenever something may have changed: read the present state and act on it; `ctx.reasons` says why."""
        raise TypeError(f"{type(self).__name__} does not define reconcile")

    async def cleanup(self, ctx: Context[T]) -> Result | None:
        """Called when deletion was requested. `Result(requeue_after=…)` means: not finished, call again."""
        return None


class Reconcile(Protocol[T]):
    """The function form of a reconciler."""

    def __call__(self, ctx: Context[T]) -> Awaitable[Result | None]: ...


class KeyReconcile(Protocol):
    """A reconciler of requests that are not objects."""

    def __call__(self, ctx: KeyContext[Any]) -> Awaitable[Result | None]: ...


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Requests from outside of Kubernetes: an async iterator, for as long as the controller runs.

    Source(name="webhook", requests=listen_for_pushes)
    """

    name: str
    requests: Callable[[], AsyncIterator[Hashable]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Options):
    """How a controller runs. Every default can be set in the configuration file and by the environment.

    What a controller's own settings leave out comes from those of the manager, what those leave out from the
    environment, then from the file, then from these defaults. A value that is given counts, also one that is the
    default.
    """

    workers: int = 16
    """Concurrent reconciles. They wait for the network most of the time, so more than one costs nothing."""
    timeout: float = 60.0
    """Seconds for one reconcile; then it counts as failed."""
    resync_period: float = 36000.0
    """Seconds after which every object is reconciled again, ± 10 %, in case a change was missed. Upstream:
    defaultSyncPeriod of controller-runtime's cache, with the same jitter.
    """
    max_retries: int = 15
    """Failures in a row after which a key comes at the slowest pace (`max_delay`) and an event says so; 0 means never.
    Transient errors do not count."""
    # The next four are those of upstream: DefaultTypedControllerRateLimiter (client-go's util/workqueue).
    base_delay: float = 0.005
    max_delay: float = 1000.0
    rate_limiter_qps: float = 10.0
    rate_limiter_burst: int = 100
    catch_up: float = 5.0
    """Seconds that a worker waits for the cache to show the key's own writes; past that the key is postponed, and the
    watch is restarted. No reconcile ever sees a cache without them.
    """


@dataclass(frozen=True)
class Controller(Generic[T]):
    """One controller: a kind, a reconciler, and the other kinds it watches, reads and writes.

    Controller(WebApp, WebAppReconciler(), owns=[Deployment, Service], workers=8)
    """

    kind: type[T]
    reconciler: Reconciler[T] | Reconcile[T] | KeyReconcile | None = None
    """None for a controller that has timers or daemons alone."""
    _: KW_ONLY
    name: str = ""
    owns: Sequence[type[Object] | Owns[Any]] = ()
    """Kinds whose objects it creates; `Owns(Kind, …)` has options."""
    watches: Sequence[type[Object] | Watches[Any]] = ()
    """Kinds of others whose changes lead to requests."""
    uses: Sequence[Use[Any]] = ()
    """Kinds that it reads or writes besides, each with the verbs."""
    sources: Sequence[Source] = ()
    when: When[T] | None = None
    """Which changes of the kind itself count: `lambda old, new: …`, a built-in predicate, or a combination of them.
    `old` is None for an object that is new, `new` for one that is gone."""
    namespaces: tuple[str, ...] = ()
    label_selector: str = ""
    field_selector: str = ""
    indexes: Indexes = ()
    """Indexes of cached kinds, which `ctx.indexed` reads."""
    workers: int | None = None
    settings: Settings | None = None
    """Its settings; what they leave out is as in the manager's configuration."""
    component: str = ""
    """The source of its events, as `kubectl describe` shows it; the manager by default."""
    field_manager: str = ""
    """The field manager of what it applies; the manager's name by default. Another name would not own the fields that
    were applied under this one, so a controller keeps it when it runs in another program."""
    metrics: Callable[[], Iterable[Any]] | None = None
    """Numbers of its own, as prometheus_client's metric families; called at every scrape. While it
    raises, the scrape goes on without them, and the log says why."""
    clusters: Literal["home", "others", "all"] = "home"
    """Where it runs, for a manager with `clusters=…`: in the home cluster, in every other one, or in all of them. Each
    cluster has caches, a queue and workers of its own; `ctx.cluster` is its name."""
    depends_on: Sequence[str] = ()
    """Controllers of this process by name, or `tcp://host:port`, `http://…`: they must be ready before this starts."""
    versions: Sequence[type[CustomResource[Any, Any]]] = ()
    """All versions of its kind that are served, its own among them, with `@converts` functions between them: the
    definition has them all, and the manager serves the conversion."""

    timers: Sequence[Every[T]] = ()
    """Functions that are called every so often for each object."""
    daemons: Sequence[Daemon[T]] = ()
    """Tasks that run for each object, for as long as it is there."""
    finalizer: str = ""
    """The finalizer by which the clean-up holds an object; by default made from the kind's group and the controller's
    name. Name it before you rename the controller, or objects keep a finalizer that no one removes."""
    old_finalizers: tuple[str, ...] = ()
    """Finalizers that earlier versions of the controller had: they are replaced, and count until then."""
    key: type[Any] = Request
    """What its requests are; a frozen struct of your own in place of an object's key. Then they come from `watches` and
    `sources` alone, and the reconciler is a function of a `KeyContext`."""
    on_gone: Callable[[Gone], Awaitable[object]] | None = None
    """Called at least once for every object that disappeared while the controller ran; not for those that disappeared
    while it did not run (for these there is `cleanup`). It is retried like a reconcile."""

    owned: tuple[Owns[Any], ...] = field(init=False, repr=False, compare=False)
    """`owns`, each with its options."""
    watched: tuple[Watches[Any], ...] = field(init=False, repr=False, compare=False)
    """`watches`, each with its options."""
    index_functions: dict[type[Object], dict[str, IndexFunction]] = field(init=False, repr=False, compare=False)
    """`indexes`, as the caches take them."""
    # The earlier names: see konverge.runtime.deprecated.
    reads: InitVar[Sequence[type[Object]]] = ()
    writes: InitVar[Sequence[type[Object]]] = ()
    changes: InitVar[Sequence[type[Object]]] = ()
    deletes: InitVar[Sequence[type[Object]]] = ()
    calls: InitVar[Sequence[tuple[Resource, str]]] = ()
    gets: InitVar[Sequence[type[Object]]] = ()
    makes: InitVar[Sequence[type[Object]]] = ()
    optional: InitVar[Sequence[type[Object]]] = ()
    predicate: InitVar[Callable[[Change], bool] | ChangePredicate | None] = None

    def __post_init__(self, *earlier: Any) -> None:
        require_kind(self.kind, "Controller")
        name = self.name or self.kind.resource.kind.lower()
        known = {
            "name": name,
            "uses": (*self.uses, *earlier_uses(earlier[:-1], stacklevel=4)),
            "when": earlier_predicate(self.when, earlier[-1], stacklevel=4),
            "owned": as_owns(self.owns, name),
            "watched": as_watches(self.watches, name),
            "index_functions": index_functions(self.indexes),
        }
        for attribute, value in known.items():
            object.__setattr__(self, attribute, value)
        if not self.finalizer and self.holds_deletion:
            object.__setattr__(self, "finalizer", f"{self.kind.resource.group or 'konverge.dev'}/{self.name}")
        self._check()

    def _check(self) -> None:
        """Refuse what cannot work, where it was declared."""
        check_predicate(self.when, f"when=… of the controller {self.name}")
        require_namespaces(self.namespaces, f"the controller {self.name}")
        if self.versions and all(version.resource != self.kind.resource for version in self.versions):
            raise ValueError(f"versions of {self.name} lack its own kind: add {self.kind.__name__} to them")
        if self.reconciler is None and not (self.timers or self.daemons or self.on_gone):
            raise ValueError(f"the controller {self.name} does nothing: give it a reconciler, timers or daemons")
        if self.key is not Request:
            self._check_key()
        names = [timer.name for timer in self.timers] + [daemon.name for daemon in self.daemons]
        if len(set(names)) < len(names):
            raise ValueError(f"timers and daemons of {self.name} need different names, not {', '.join(names)}")
        check_finalizers(filter(None, (self.finalizer, *self.old_finalizers)))
        for use in self.uses:
            if not isinstance(use, Use):
                raise TypeError(
                    f'uses=[…] of the controller {self.name} has {use!r}: write Use(Secret, "get", "patch")'
                )
        for watch in self.watched:
            leads_nowhere = self.kind.resource.namespaced and not watch.kind.resource.namespaced
            if watch.requests is None and watch.lookup is None and leads_nowhere:
                kind = watch.kind.__name__
                raise TypeError(
                    f"a {kind} has no namespace, so its changes lead to no {self.kind.__name__} of the same name: "
                    f"write Watches({kind}, requests=lambda {kind.lower()}: […])"
                )

    def _check_key(self) -> None:
        check_key_type(self.key, self.name)
        if isinstance(self.reconciler, Reconciler) or self.owns or self.timers or self.daemons or self.on_gone:
            raise TypeError(
                f"requests of the controller {self.name} are no objects (key={self.key.__name__}): give it an async "
                "function of a KeyContext, and no owns, timers, daemons or on_gone"
            )
        if not self.sources and not self.watches:
            raise ValueError(f"nothing leads to a request of {self.name}: give it watches or sources")
        for watch in self.watched:
            if watch.requests is None and watch.lookup is None:
                kind = watch.kind.__name__
                raise TypeError(f"write Watches({kind}, requests=lambda {kind.lower()}: [{self.key.__name__}(…)])")

    @property
    def kinds(self) -> list[type[Object]]:
        """The kinds that it declares, its own first, each once."""
        used = [use.kind for use in self.uses if isinstance(use.kind, type)]
        declared = [self.kind, *(owned.kind for owned in self.owned), *(watch.kind for watch in self.watched), *used]
        return list(dict.fromkeys(declared))

    @property
    def optional_kinds(self) -> frozenset[type[Object]]:
        """Of these, the kinds that a cluster may not have."""
        declared: tuple[Owns[Any] | Watches[Any] | Use[Any], ...] = (*self.owned, *self.watched, *self.uses)
        return frozenset(each.kind for each in declared if each.optional and isinstance(each.kind, type))

    @property
    def cleans_up(self) -> bool:
        """Whether the reconciler has a cleanup."""
        cleanup = getattr(type(self.reconciler), "cleanup", None)
        return cleanup is not None and cleanup is not Reconciler.cleanup

    @property
    def holds_deletion(self) -> bool:
        """Whether an object must not be gone before this controller lets it go."""
        return self.cleans_up or any(daemon.holds_deletion for daemon in self.daemons)

    @property
    def finalizers(self) -> tuple[str, ...]:
        """All finalizers that this controller removes from objects: its own and earlier ones."""
        return tuple(dict.fromkeys(filter(None, (self.finalizer, *self.old_finalizers))))
