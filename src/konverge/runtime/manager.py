"""The manager: what an operator is made of, and how it is run. `konverge.runtime.lifecycle` has the order of a run.

Upstream: controller-runtime's pkg/manager/manager.go.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from konverge.client import Client
from konverge.observe.health import Health
from konverge.observe.metrics import Numbers
from konverge.runtime.alongside import alongside
from konverge.runtime.caches import SharedCaches
from konverge.runtime.config import Configuration, load_configuration
from konverge.runtime.context import Recorder
from konverge.runtime.declare import Controller, Settings
from konverge.runtime.election import Timing
from konverge.runtime.endpoints import MetricsServer, metrics_server
from konverge.runtime.engine import Engine
from konverge.runtime.importing import refuse_while_loading
from konverge.runtime.lifecycle import Lifecycle
from konverge.runtime.rbac import MissingPermissions as MissingPermissions
from konverge.runtime.readiness import Readiness
from konverge.runtime.reconciled import Observer
from konverge.runtime.story.ring import StoryLimits
from konverge.runtime.story.story import Story
from konverge.runtime.tasks.hooks import Hook
from konverge.runtime.tasks.manager_tasks import ManagerTask, TaskContext, task_name

if TYPE_CHECKING:
    from konverge.runtime.clusters import ClusterProvider
    from konverge.runtime.clusters.fleet import Fleet
    from konverge.runtime.sharding import Sharding
    from konverge.runtime.sharding.shares import Shares
    from konverge.runtime.webhooks import Webhook, Webhooks


HookFunction = TypeVar("HookFunction", bound=Hook)


class Unchanged(Enum):
    """The type of an option that is left as it is, where None has a meaning of its own."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """Only one process of several reconciles at a time; the others stand by with warm caches."""

    name: str
    namespace: str = "default"
    identity: str = ""
    timing: Timing = field(default_factory=Timing)


class Manager:
    """Runs controllers.

    manager = Manager()
    manager.add(Controller(WebApp, WebAppReconciler(), owns=[Deployment, Service]))
    manager.run()

    `run` is a whole program: signals, logs, exit status. In tests, `async with manager.running():`.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        name: str = "konverge",
        config: Configuration | None = None,
        settings: Settings | None = None,
        recorder: Recorder | None = None,
        leader_election: LeaderElection | None = None,
        sharding: Sharding | None = None,
        health_address: tuple[str, int] | None = None,
        check_permissions: bool = True,
        shutdown_timeout: float = 30.0,
        paused: Collection[str] = (),
        webhooks: Webhooks | None = None,
        clusters: ClusterProvider | None = None,
        story: StoryLimits | None = None,
        metrics: MetricsServer | None = None,
        debug: bool | None = None,
        tracing: Any = None,
    ) -> None:
        """`name` is the field manager of everything that is written. Without a client, one is made as kubectl would.

        What `config` and `settings` leave out is read from the environment and the file that `KONVERGE_CONFIG` names
        (see `konverge.runtime.config`); a configuration from `load_configuration` is taken as it is.

        `paused` names controllers that begin with their queue paused: their queues receive all keys, and no reconcile
        runs until `manager.engines[name].queue.resume()`.

        `webhooks` says where admission and conversion webhooks are served (`add_webhook` declares them); by default on
        this machine. `story` bounds what `manager.story` remembers of each controller.

        `metrics` serves metrics apart from health, over TLS and to those who may read them; by default they are at the
        health address. With `debug` the story of every reconcile is at `/debug/reconciles`, where the metrics are.

        `clusters` says which other clusters there are (see `konverge.runtime.clusters`): controllers that are declared
        with `clusters="others"` or `"all"` run in each of them. `client` is the home cluster, which has the Lease.
        """
        self.name = name
        self._given_config = config or Configuration()
        self._given_settings = settings or Settings()
        self.numbers = Numbers()
        self.health = Health(self.numbers)
        self.engines: dict[str, Engine[Any]] = {}
        self.on_reconciled: list[Observer] = []
        """Called with every reconcile that has ended; must not fail."""
        self.story = Story(name, story)
        """The latest reconciles: why each ran, what it read and wrote, how it ended."""
        self._given_metrics = metrics
        self._serves_metrics = True
        self._given_debug = debug
        self._given_tracing = tracing
        self.debug_token = ""
        """Whoever has it may see debug pages; without one, the API server is asked about callers."""
        self.metrics_port = 0
        """The port of the metrics server, once it listens."""
        self.caches: SharedCaches
        self.health_port = 0
        """The port of the health server, once it listens."""
        self.webhooks = webhooks
        """What is served to the API server; None without webhooks."""
        self.webhook_port = 0
        """The port at which webhooks are served, once they are."""
        self.cluster_provider = clusters
        self.fleet: Fleet | None = None
        """The other clusters, while the manager runs."""
        self.dedicated = False
        """Whether this process runs nothing else: then what its caches hold is always frozen (see `bulk_load`)."""
        self.source = ""
        """What `konverge crd` takes to find its kinds, for messages; by default the program that runs."""
        self.program = ""
        """The program that has `crd` and `rbac` as commands of its own, for messages, if it is not `konverge`."""
        self._client = client
        self._recorder = recorder
        if leader_election is not None and sharding is not None:
            raise ValueError("give leader_election or sharding: with sharding, the replicas elect a leader themselves")
        if clusters is not None and sharding is not None:
            raise ValueError(
                "give clusters or sharding: the work in other clusters has one leader, in the home cluster"
            )
        if sharding is not None:
            import konverge.runtime.sharding.shares  # noqa: F401 - now, and not when a loop runs
        self._election = leader_election
        self.sharding = sharding
        """How the work is shared with other replicas, if it is."""
        self.shares: Shares | None = None
        """Our part of the work in this run, with sharding."""
        self._health_address = health_address
        self._check_permissions = check_permissions
        self._shutdown_timeout = shutdown_timeout
        self._paused = frozenset(paused)
        self._controllers: list[Controller[Any]] = []
        self.tasks: list[ManagerTask] = []
        """Work besides reconciles; `add_task` adds to it."""
        self.startup_hooks: list[Hook] = []
        self.shutdown_hooks: list[Hook] = []
        self.readiness = Readiness(self)

    @functools.cached_property
    def config(self) -> Configuration:
        """What was given in code, else in the environment, else in a file. Raises ConfigurationError."""
        given = self._given_config
        return given if given.loaded else load_configuration(code=given)

    @functools.cached_property
    def settings(self) -> Settings:
        """The settings of controllers that have none of their own."""
        return self._given_settings.over(self.config.controller)

    @functools.cached_property
    def metrics(self) -> MetricsServer | None:
        """Where metrics are served apart from health: as given in code, else as configured."""
        if not self._serves_metrics:
            return None
        return self._given_metrics or metrics_server(self.config.serving)

    @property
    def debug(self) -> bool:
        """Whether debug pages are served."""
        return self.config.serving.debug if self._given_debug is None else self._given_debug

    @property
    def tracing(self) -> Any:
        """False, or what makes OpenTelemetry spans: True, or a TracerProvider."""
        return self.config.serving.tracing if self._given_tracing is None else self._given_tracing

    def add(self, controller: Controller[Any]) -> Self:
        """Declare a controller. Before the start only."""
        if any(other.name == controller.name for other in self._controllers):
            raise ValueError(f"there is already a controller {controller.name!r}; give this one a name=…")
        for other in self._controllers:
            if other.kind.resource == controller.kind.resource and (
                shared := set(controller.finalizers) & set(other.finalizers)
            ):
                raise ValueError(
                    f"{controller.name} and {other.name} have the same finalizer {min(shared)}: an object would be "
                    "gone after one of the two clean-ups; give each its own finalizer=…"
                )
        self._controllers.append(controller)
        if controller.versions:
            from konverge.runtime.webhooks.conversion import needed_conversion  # few kinds have several versions

            if (conversion := needed_conversion(self.webhooks, controller.versions)) is not None:
                self.add_webhook(conversion)
        return self

    def add_webhook(self, webhook: Webhook) -> Self:
        """Declare a webhook: a function with `@validating` or `@mutating`, or a conversion. Before the start only.

        manager.add_webhook(check_pool)
        """
        if self.webhooks is None:
            from konverge.runtime.webhooks import Webhooks  # a manager without webhooks does not load them

            self.webhooks = Webhooks()
        self.webhooks.add(webhook)
        return self

    def take_webhooks(self, webhooks: Iterable[Webhook]) -> None:
        """Serve webhooks of other managers, except for those that came along with their controllers."""
        for webhook in webhooks:
            if self.webhooks is None or webhook.path not in self.webhooks.routes:
                self.add_webhook(webhook)

    def add_task(
        self,
        function: Callable[[TaskContext], Awaitable[object]],
        *,
        name: str = "",
        leader_only: bool = True,
        grace: float = 0.0,
    ) -> Self:
        """Declare a task: it runs for as long as the manager leads, or on every replica once caches are synced.

            manager.add_task(report_usage)

        It is started again after a back-off when it raises, and has done its work when it returns. At the end
        `ctx.stop` is set, and after `grace` seconds it is cancelled.
        """
        name = name or task_name(function)
        if any(other.name == name for other in self.tasks):
            raise ValueError(f"there is already a task {name!r}; give this one a name=…")
        self.tasks.append(ManagerTask(function=function, name=name, leader_only=leader_only, grace=grace))
        return self

    def on_startup(self, hook: HookFunction) -> HookFunction:
        """Declare a function that runs before everything else, on every replica; if it raises, the manager ends.

            @manager.on_startup
            async def open_pool(ctx: HookContext) -> None: ...

        The API server can be reached by then; no cache is filled, no webhook served, no reconcile or task begun.
        """
        self.startup_hooks.append(hook)
        return hook

    def on_shutdown(self, hook: HookFunction) -> HookFunction:
        """Declare a function that runs after the last reconcile and task has ended, the latest declared first.

        A leader still leads, so it may write. Each has ten seconds; one that raises does not stop the others. They
        run on every replica whose start-up hooks have all returned, also when the manager ends by an error.
        """
        self.shutdown_hooks.append(hook)
        return hook

    def take_tasks(self, other: Manager) -> None:
        """Run the tasks and hooks of another manager in this one, as `movable_controllers` run in it."""
        for task in other.tasks:
            taken = any(mine.name == task.name for mine in self.tasks)
            self.tasks.append(msgspec.structs.replace(task, name=f"{other.name} {task.name}") if taken else task)
        self.startup_hooks += other.startup_hooks
        self.shutdown_hooks += other.shutdown_hooks

    @property
    def controllers(self) -> list[Controller[Any]]:
        return list(self._controllers)

    def bound_to(
        self,
        client: Client,
        *,
        controllers: Sequence[Controller[Any]] | None = None,
        config: Configuration | None = None,
        leader_election: LeaderElection | Unchanged | None = UNCHANGED,
        sharding: Sharding | Unchanged | None = UNCHANGED,
        health_address: tuple[str, int] | Unchanged | None = UNCHANGED,
        paused: Collection[str] | None = None,
        webhooks: Webhooks | Unchanged | None = UNCHANGED,
        metrics: MetricsServer | Unchanged | None = UNCHANGED,
        debug: bool | None = None,
        clusters: ClusterProvider | Unchanged | None = UNCHANGED,
    ) -> Manager:
        """A new manager with the same declarations on this client; what is not given is as in this one.

        So a manager that a module declares once runs in a test's cluster, by `konverge run` and in `konverge up`. None
        switches off the leader election, the sharding, the health server, the webhooks, the metrics server, or the
        other clusters.

        async with manager.bound_to(cluster.client).running():
            ...
        """
        bound = Manager(
            client,
            name=self.name,
            config=config or self._given_config,
            settings=self._given_settings,
            recorder=self._recorder,
            leader_election=self._election if isinstance(leader_election, Unchanged) else leader_election,
            sharding=self.sharding if isinstance(sharding, Unchanged) else sharding,
            health_address=self._health_address if isinstance(health_address, Unchanged) else health_address,
            check_permissions=self._check_permissions,
            shutdown_timeout=self._shutdown_timeout,
            paused=self._paused if paused is None else paused,
            story=self.story.limits,
            metrics=self._given_metrics if isinstance(metrics, Unchanged) else metrics,
            debug=self._given_debug if debug is None else debug,
            tracing=self._given_tracing,
            webhooks=self.webhooks if isinstance(webhooks, Unchanged) else webhooks,
            clusters=self.cluster_provider if isinstance(clusters, Unchanged) else clusters,
        )
        bound._serves_metrics = self._serves_metrics and metrics is not None
        bound.debug_token = self.debug_token
        bound._controllers = list(self._controllers if controllers is None else controllers)
        bound.take_tasks(self)
        return bound

    @property
    def declared_config(self) -> Configuration:
        """What was given in code alone: `load_configuration(file, code=manager.declared_config)` adds the rest."""
        return self._given_config

    @property
    def declares_debug(self) -> bool:
        """Whether code asks for debug pages."""
        return bool(self._given_debug)

    @property
    def leader_election(self) -> LeaderElection | None:
        return self._election

    @property
    def health_address(self) -> tuple[str, int] | None:
        return self._health_address

    def movable_controllers(self) -> list[Controller[Any]]:
        """Its controllers, to run beside those of others in one manager: they keep its name and its settings."""
        given = self._given_settings.over(self._given_config.controller)
        return [
            replace(
                controller,
                field_manager=controller.field_manager or self.name,
                component=controller.component or self.name,
                settings=(controller.settings or Settings()).over(given),
            )
            for controller in self._controllers
        ]

    def run(self) -> None:
        """Run until SIGTERM or SIGINT. Ends the process with a message and status 1 when something fails.

        Logs go to standard error, as text on a terminal and as JSON elsewhere (KONVERGE_LOG_LEVEL,
        KONVERGE_LOG_FORMAT), unless the program has configured the root logger itself.
        """
        from konverge.runtime.program import run_program  # it needs the Manager

        refuse_while_loading(self.name)
        run_program(self)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Inside the block caches are synced and controllers run; after it they have stopped in order.

        When the manager cannot go on, the block is cancelled, and what ended the manager is raised.
        """
        stop = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self.serve(stop, ready), name=f"manager {self.name}")
        async with alongside(serving, stop.set):
            await ready
            yield self

    async def serve(self, stop: asyncio.Event, ready: asyncio.Future[None] | None = None) -> None:
        """Run until `stop` is set; raises what ended it otherwise. Upstream: controllerManager.Start."""
        refuse_while_loading(self.name)
        await Lifecycle(self).serve(stop, ready)

    @property
    def client(self) -> Client | None:
        """The client that was given; without one, a run makes its own."""
        return self._client

    @property
    def recorder(self) -> Recorder | None:
        return self._recorder

    @property
    def checks_permissions(self) -> bool:
        return self._check_permissions

    @property
    def shutdown_timeout(self) -> float:
        return self._shutdown_timeout

    @property
    def paused(self) -> frozenset[str]:
        return self._paused
