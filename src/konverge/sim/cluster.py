"""`Cluster`: a whole Kubernetes in this process: API server, controllers, scheduler, nodes.

    async with Cluster() as cluster:
        await cluster.client.create(deployment)
        await cluster.settle()

All parts speak to the API server through clients, as they would anywhere; only the sockets are left out. On a
`VirtualLoop` (`konverge.sim.run`) time is simulated too, and one seed gives one history.

`settle` waits for rest, which is about the store: Leases are renewed for ever and Events only inform, so they do not
count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.apiserver.certificates import Certificates
from konverge.apiserver.config import Config
from konverge.apiserver.http.pipeline import refusal
from konverge.apiserver.storage import Store
from konverge.client import Client, Static
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.runtime import Manager
from konverge.runtime.engine import running_engines
from konverge.sim import metrics
from konverge.sim.disturbed import Disturbed
from konverge.sim.faults import Chaos, Faulty, Plan
from konverge.sim.kubelet import sessions
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.kubelet.pace import NORMAL, Pace
from konverge.sim.loop import Clock, VirtualLoop
from konverge.sim.network import PODS, Addresses
from konverge.sim.observations import Observations
from konverge.sim.parts import MANAGER, Parts, Supervised, running, unheard
from konverge.sim.restless import busy_queues, describe
from konverge.sim.stepping import Observed, Step, noting, stateful_set_pods
from konverge.wire.message import Transport
from konverge.workqueue import WorkQueue

if TYPE_CHECKING:
    from konverge.runtime.webhooks import InProcess
    from konverge.sim.applications import Applications, Simulation
    from konverge.sim.processes import ProcessRule
    from konverge.sim.processes.runtime import Processes


RESTLESS = frozenset(("coordination.k8s.io/leases", "/events", "events.k8s.io/events"))
POLL = 0.01
LAST_SECONDS = 10.0
"""Of a wait that failed: what was written in them is shown."""


class Unsettled(AssertionError):
    """The cluster did not come to rest in time."""


def last_change(store: Store) -> int:
    """The revision of the last change that counts."""
    return max((table.revision for name, table in store.tables.items() if name not in RESTLESS), default=0)


async def settle(
    store: Callable[[], Store],
    queues: Callable[[], dict[str, WorkQueue[Any]]],
    *,
    quiet: float,
    limit: float,
    newest: Callable[[], int] | None = None,
) -> None:
    """Until nothing has changed for `quiet` seconds. Raises Unsettled after `limit` seconds.

    `queues` are those of parts that are no controllers; `newest` is the revision of the last change that counts.
    """
    loop = asyncio.get_running_loop()
    began = since = loop.time()
    last = newest or (lambda: last_change(store()))
    seen = last()
    before = (began, seen)  # when the last seconds of the wait begin: what is written then is shown
    while True:
        due = await loop.idle() if isinstance(loop, VirtualLoop) else await _poll(loop, queues)
        now, revision = loop.time(), last()
        if revision != seen or due <= now:
            seen, since = revision, now
        if due > since + quiet:
            return
        if now - began > limit:
            who = describe(store(), queues(), since=before[1], quiet=quiet, ignored=RESTLESS)
            raise Unsettled(f"something still changes after {limit:g} s: {who}")
        if now - before[0] > LAST_SECONDS and now - began < limit - LAST_SECONDS:
            before = (now, revision)
        await asyncio.sleep(max(min(due, since + quiet + POLL) - now, 0) if due < inf else POLL)


async def _poll(loop: asyncio.AbstractEventLoop, queues: Callable[[], dict[str, WorkQueue[Any]]]) -> float:
    """On a real loop the next timer is not known: it may always be the next look. Work under way counts as change."""
    await asyncio.sleep(0)
    return loop.time() if busy_queues(queues()) else loop.time() + POLL


class Cluster:
    """A simulated cluster. Everything it runs is at work inside the `async with` block, and has ended after it."""

    def __init__(
        self,
        *,
        nodes: int | Sequence[Node] = 3,
        controllers: bool | Collection[str] = True,
        scheduler: bool = True,
        kubelet: bool = True,
        rules: Sequence[Rule] = (),
        processes: Sequence[ProcessRule] = (),
        processes_as_root: bool = False,
        hold: Collection[str] = (),
        faults: Plan | None = None,
        pod_address: str = "",
        pods_from: str = PODS,
        pace: Pace = NORMAL,
        simulation: Simulation | None = None,
        events: bool = True,
        seed: int | None = None,
        data_dir: Path | None = None,
        config: Config | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        """`controllers` may be names of those to run; `hold` names some that wait for `release` or `step`.

        `rules` script pods (see `konverge.sim.kubelet.behaviour`); `processes` are images whose containers run as
        real processes of this machine (see docs/process-pods.md), as root only with `processes_as_root`; `faults` is
        what goes wrong, and when; `pod_address` is given to all pods instead of addresses of their own, which are
        counted from `pods_from`; `pace` says whether probes and grace periods take their time (they do not with
        `konverge.sim.FAST`); `simulation` has stand-ins for the programs in pods (docs/check/stand-ins.md); `seed` is
        for the randomness of a virtual loop; `certificates` are for `listen(tls=True)`, and their authority is what
        pods trust.
        """
        self.clock = Clock()
        self.clock_ahead = 0.0
        """Seconds by which `jump_clock` has moved the wall clock."""
        self.server = ApiServer(config=config or _config(controllers), data_dir=data_dir)
        self.client: Client
        self.kubelet = Kubelet(rules, addresses=Addresses(pods_from, shared=pod_address), events=events, pace=pace)
        self.applications = _stand_ins(self.server, self.kubelet, simulation)
        """What stands in for the programs in pods, where a `simulation` asks for it."""
        self.processes = _process_pods(processes, self.server, self.kubelet, data_dir, processes_as_root)
        self._parts = Parts(
            self.kubelet if kubelet else None, controllers=controllers, scheduler=scheduler, hold=hold, events=events
        )
        self.nodes = self._parts.nodes
        if self.processes is not None:
            self.nodes.network_address = self.processes.node_address
        self.scheduler = self._parts.scheduler
        self.faulty = Faulty(self.server.transport, faults.faults) if faults is not None else None
        self._disturbed = Disturbed(self.server.handle, refusal=refusal)
        self.observations = Observations() if faults is not None else None
        """What controllers saw, where faults make that differ from what is."""
        self.chaos = Chaos(self, self.faulty, faults) if self.faulty is not None and faults is not None else None
        self._certificates = certificates
        self._wanted = nodes
        self._runs_pods = kubelet
        self._seed = seed
        self._managers: Supervised
        self._stack = AsyncExitStack()

    # -------------------------------------------------------------- life

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        if self._seed is not None and isinstance(loop, VirtualLoop):
            loop.rng.seed(self._seed)
        async with AsyncExitStack() as stack:
            stack.callback(self._set_clock_right)
            await stack.enter_async_context(self.server)
            stack.push_async_callback(self._disturbed.aclose)
            self.client = await stack.enter_async_context(self._connect(self.server.transport, "konverge"))
            await self._start(stack, self._connect(self.faulty or self.server.transport, MANAGER))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    def _connect(self, transport: Transport, agent: str) -> Client:
        credentials = Static.bearer(self.server.token)
        return Observed(Client(transport, credentials=credentials, user_agent=agent, on_warning=unheard))

    def _authority(self) -> tuple[bytes, bytes]:
        """Who signs certificates: the server's own authority, which it believes, if it speaks TLS."""
        if self._certificates is not None:
            return self._certificates.authority, self._certificates.authority_key
        from konverge.wire import x509  # most clusters never sign anything

        return x509.authority("konverge-ca").pem

    async def _start(self, stack: AsyncExitStack, client: Client) -> None:
        if self._certificates is not None:
            self._parts.root_ca = self._certificates.authority.decode()
        self._parts.authority = self._authority
        if self._runs_pods:
            sessions.plug_in(self.server, self.kubelet)
            metrics.plug_in(self.server, self.kubelet)
            if self.faulty is None and isinstance(asyncio.get_running_loop(), VirtualLoop):
                self.nodes.heartbeats.be_lazy(self.server, self.client)
        if self.applications is not None:
            await stack.enter_async_context(self.applications)
            await self.applications.start(self._connect(self.server.transport, "stand-ins"))
        if self.processes is not None:
            await stack.enter_async_context(self.processes.at_work(self.client))
        at_work = self._parts.at_work(
            client,
            nodes=self._wanted,
            setup=self.client,
            elected=self.faulty is not None,
            observations=self.observations,
        )
        self._managers = await stack.enter_async_context(at_work)
        if self.chaos is not None:
            await stack.enter_async_context(running([(self.chaos.name, self.chaos.run())]))

    # -------------------------------------------------------------- reaching it

    def connect(self, agent: str) -> Client:
        """A client for a program of this name, which meets the faults of the cluster, if there are any."""
        return self._connect(self.faulty or self._disturbed, agent)

    def webhook_place(self) -> InProcess:
        """Where the webhooks of an operator on this cluster are served: in this process, without sockets."""
        from konverge.runtime.webhooks.local import InProcess

        return InProcess(transports=self.server.webhooks.in_process)

    async def listen(self, host: str = "127.0.0.1", port: int = 0, *, tls: bool = False) -> str:
        """Serve on a socket as well; the result is the URL."""
        if tls and self._certificates is None:
            self._certificates = self.server.certificates(host)
        context = self._certificates.context() if tls and self._certificates is not None else None
        return await self.server.listen(host, port, tls=context)

    def kubeconfig(self, url: str) -> dict[str, Any]:
        """A kubeconfig for the administrator."""
        return self.server.kubeconfig(url, self._certificates if url.startswith("https") else None)

    @property
    def manager(self) -> Manager:
        """The manager that runs the controllers; another one after leadership was lost."""
        return self._managers.manager

    # -------------------------------------------------------------- time

    async def settle(
        self, *, quiet: float = 1.0, limit: float = 600.0, newest: Callable[[], int] | None = None
    ) -> None:
        """Until nothing has changed for `quiet` seconds (Leases and Events do not count). Raises Unsettled.

        On a virtual loop no time passes when nothing is due within that while. `newest` is asked for the revision of
        the last change, where others know better what counts.
        """
        await settle(lambda: self.server.store, self._queues, quiet=quiet, limit=limit, newest=newest)

    def _queues(self) -> dict[str, WorkQueue[Any]]:
        return {} if self.scheduler is None else {self.scheduler.name: self.scheduler.queue}

    # -------------------------------------------------------------- one step at a time

    def hold(self, *names: str, manager: Manager | None = None) -> None:
        """These controllers (or `scheduler`) receive all events and do nothing until they are released."""
        for name in names:
            self._queue(name, manager).pause()

    def release(self, *names: str, manager: Manager | None = None) -> None:
        for name in names:
            self._queue(name, manager).resume()

    async def step(self, name: str, *, manager: Manager | None = None) -> Step | None:
        """One reconcile of a held controller, when all others have come to rest; None when it has nothing to do.

        `manager` is for controllers of one's own, run on `cluster.client`: the calls of the reconcile are recorded for
        both.
        """
        await self.settle()
        engine = (manager or self.manager).engines[name]
        with noting() as calls:
            item = await engine.step()
        return None if item is None else Step(item.key, item.reasons, calls)

    async def simulate_stateful_set_pods(
        self, name: str, namespace: str = "default", *, count: int | None = None, ready: int | None = None, ip: str = ""
    ) -> list[Pod]:
        """In place of a held StatefulSet controller: `count` pods (or all), the first `ready` of them (or all) ready.

        `ip` is given to all of them, as 127.0.0.1 for a server that listens there.
        """
        await stateful_set_pods(self.client, name, namespace, count=count, ready=ready, ip=ip)
        await self.settle()
        return await stateful_set_pods(self.client, name, namespace, count=count, ready=ready, ip=ip)

    def _queue(self, name: str, manager: Manager | None) -> WorkQueue[Any]:
        if manager is None and self.scheduler is not None and name == self.scheduler.name:
            return self.scheduler.queue
        engines = (manager or self.manager).engines
        if name not in engines:
            raise LookupError(f"there is no controller {name!r}; there are: {', '.join(sorted(engines))}")
        return engines[name].queue

    # -------------------------------------------------------------- disturbances

    async def cut_api(self, seconds: float) -> None:
        """For programs that came by `connect`, the API server is away for so long. Returns when it is back."""
        await self._disturbed.cut(seconds)

    def delay_watches(self, seconds: float) -> None:
        """For programs that came by `connect`, events are late by so much; 0 ends it."""
        self._disturbed.late = seconds

    def jump_clock(self, seconds: float) -> None:
        """Set the wall clock forwards or back: what waits for a time of day, such as a CronJob, looks at it again.

        Timers do not notice. On a real loop it is the clock of the whole process, and right again when the cluster has
        ended.
        """
        if isinstance(asyncio.get_running_loop(), VirtualLoop):
            self.clock.jump(seconds)
        else:
            clock.jump(seconds)
        self.clock_ahead += seconds
        for engine in running_engines():
            if engine.controller.kind is not Node:  # it would take nodes for silent until their next heartbeats
                engine.resync()

    def _set_clock_right(self) -> None:
        if not isinstance(asyncio.get_running_loop(), VirtualLoop):
            clock.jump(-self.clock_ahead)

    def crash_pod(self, name: str, namespace: str = "default", container: str = "") -> list[str]:
        """The simulated containers of a pod that run (or one of them) end with code 137. Their names."""
        return self.kubelet.crash(name, namespace, container)

    # -------------------------------------------------------------- nodes

    @property
    def node_names(self) -> list[str]:
        return [record.name for record in self.server.objects.records("", "nodes")]

    def lose_node(self, name: str) -> None:
        """Its kubelet falls silent: no heartbeat, and no pod of it moves."""
        self.nodes.fall_silent(name)

    async def recover_node(self, name: str) -> None:
        """It is back; what its pods missed happens now."""
        await self.nodes.recover(self.client, name)
        self.kubelet.recover_node(name)


def _process_pods(
    rules: Sequence[ProcessRule], server: ApiServer, kubelet: Kubelet, data_dir: Path | None, as_root: bool
) -> Processes | None:
    """Only where rules ask for it is the machinery even imported."""
    if not rules:
        return None
    from konverge.sim.processes.runtime import Processes

    folder = data_dir / "processes" if data_dir is not None else None
    services = server.config.service_cluster_ips
    kubelet.runtime = made = Processes(
        rules, kubelet, folder, as_root=as_root, objects=server.objects, services=services
    )
    return made


def _stand_ins(server: ApiServer, kubelet: Kubelet, simulation: Simulation | None) -> Applications | None:
    if simulation is None:
        return None
    from konverge.sim.applications import Applications

    return Applications(server, kubelet, simulation)


def _config(controllers: bool | Collection[str]) -> Config:
    """Pods have loopback addresses, so endpoints may have them.

    And where not all controllers run, the service accounts that pods need may never be created.
    """
    refused = frozenset(() if controllers is True else ("ServiceAccount",))
    return Config(loopback_backends=True, disabled_admission=refused)
