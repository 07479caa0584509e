"""All process pods of a cluster: which containers are processes, what each is given, and that none is left behind.

    async with Processes(rules, kubelet, folder).at_work(client):
        ...

Needs real time: a process does not know of virtual one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from konverge import clock
from konverge.cache import Change
from konverge.client import Client, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Container, Node, PersistentVolume, Pod, Secret, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.runtime import Context, Controller, Request, Result, Watches
from konverge.runtime.predicates import ChangePredicate
from konverge.sim.applications.names.zone import Source
from konverge.sim.kubelet.containers import Mode
from konverge.sim.kubelet.machine import PodMachine, as_container
from konverge.sim.kubelet.sessions import ExecOptions, Talk, refuse
from konverge.sim.loop import RealTime, VirtualLoop
from konverge.sim.processes import (
    access,
    disk,
    logfile,
    permitted,
    plan,
    remote,
    roots,
)
from konverge.sim.processes.environment import ConfigError, Self, container_env, service_env
from konverge.sim.processes.images import Image, Images
from konverge.sim.processes.isolation import Isolation, RunningAsRoot, View, not_as_root, salt_in, why_no_roots, why_not
from konverge.sim.processes.layers import ImageError
from konverge.sim.processes.networking import Networking
from konverge.sim.processes.process import Spawner
from konverge.sim.processes.rules import ProcessRule, find
from konverge.sim.processes.runner import Kubelet, PodRunner, Run
from konverge.sim.processes.volumes import Lookup, PodVolumes, folder_name, memory_folder, refers_to
from konverge.wire.message import Producer

log = logging.getLogger("konverge.sim.processes")

STOP_TIME = 10.0
"""Seconds that processes have to end by themselves when the cluster ends."""


class Processes:
    """The process pods of a cluster; the kubelet's `Runtime`."""

    def __init__(
        self,
        rules: Sequence[ProcessRule],
        kubelet: Kubelet,
        folder: Path | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        as_root: bool = False,
        objects: Source | None = None,
        services: str = "10.96.0.0/16",
    ) -> None:
        """Files are in `folder`, and stay there; without one they are gone with the cluster.

        `environ` is the environment of which PATH, HOME, LANG and what a rule names are passed on. As root, processes
        are isolated and run as other users, or do not run; `as_root` runs them as root, without isolation.
        `objects` and `services` are for pods with a network of their own: see `Networking`.
        """
        for rule in rules:
            rule.check()
        self.rules = list(rules)
        self.runners: dict[str, PodRunner] = {}
        """By the uid of the pod."""
        self.spawner = Spawner()
        self._kubelet = kubelet
        self._folder = folder
        self._environ = os.environ if environ is None else environ
        self._as_root = as_root
        self.isolation: Isolation | None = None
        """None where processes see all that we see."""
        self.not_isolated = ""
        """Why they do."""
        self.networking = Networking(self.rules, self._ruled, objects, services)
        self._client: Client
        self._root: Path
        self._memory: Path | None
        self._volumes: dict[str, tuple[PodVolumes, Lookup]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._said_on: set[str] = set()
        self._images: Images
        self._why_no_roots = cache(why_no_roots)

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[None]:
        if isinstance(asyncio.get_running_loop(), VirtualLoop):
            raise RealTime(
                "process pods need real time, and this loop has virtual time: run the cluster with asyncio.run, "
                "or without `processes`"
            )
        self._client = client
        with tempfile.TemporaryDirectory(prefix="konverge-processes-") as temporary, memory_folder() as memory:
            self._memory = memory
            self._root = disk.make_folder((self._folder or Path(temporary)).resolve())
            self._root.chmod(0o700)
            self._images = Images(self._root / "images")
            self.spawner.temporary = (temporary, *([str(memory)] if memory is not None else []))
            await self._isolate()
            await self._sweep()
            async with self.networking.at_work():
                try:
                    yield
                finally:
                    await self._end()

    async def _isolate(self) -> None:
        """Raises RunningAsRoot."""
        root = os.getuid() == 0
        self.not_isolated = (
            "as root, as it was asked for" if root and self._as_root else await asyncio.to_thread(why_not)
        )
        if root and not self._as_root:
            open_rules = [rule.image for rule in self.rules if not rule.isolated]
            if self.not_isolated or open_rules:
                raise RunningAsRoot(not_as_root(self.not_isolated, open_rules))
        if self.not_isolated:
            log.warning("process pods are not isolated: %s; see docs/process-pods.md", self.not_isolated)
            return
        self.isolation = Isolation([self._root, *([self._folder.parent] if self._folder else [])], self._environ)
        self.isolation.salt = salt_in(self._root)

    def hide(self, path: Path) -> None:
        """Let no process see this file or folder, if processes are isolated."""
        if self.isolation is not None:
            self.isolation.hidden.append(path)

    async def _sweep(self) -> None:
        """Remove what an earlier life left of pods and volumes that are gone since, and its unpacked images."""
        disk.remove(self._root / "images")
        pods = {pod.metadata.uid for pod in await self._client.list(Pod)}
        volumes = {folder_name(volume) for volume in await self._client.list(PersistentVolume)}
        for group, wanted in (("pods", pods), ("volumes", volumes)):
            for entry in disk.make_folder(self._root / group).iterdir():
                if entry.name not in wanted:
                    disk.remove(entry)

    async def _end(self) -> None:
        closing = [runner.close(STOP_TIME) for runner in self.runners.values()]
        await asyncio.gather(*closing, *self._closing)
        self.runners.clear()
        await self.spawner.aclose()

    # -------------------------------------------------------------- the kubelet's runtime

    def lives(self, pod: Pod) -> frozenset[str]:
        return frozenset(name for name, rule in self._ruled(pod).items() if rule is not None)

    def _ruled(self, pod: Pod) -> dict[str, ProcessRule | None]:
        space = pod.metadata.namespace
        return {spec.name: find(self.rules, space, spec.name, spec.image or "") for spec in _containers(pod)}

    def address(self, pod: Pod) -> str:
        return self.networking.address(pod)

    def node_address(self, name: str, known: str) -> str:
        """The address of a node in the pod network, if there is one; it keeps the one that it is known to have."""
        return self.networking.node_address(name, known)

    def obey(self, machine: PodMachine, pod_ip: str, host_ip: str) -> None:
        uid = machine.pod.metadata.uid
        runner = self.runners.get(uid)
        if runner is None:
            home = self._root / "pods" / uid
            runner = self.runners[uid] = PodRunner(machine, home, self._kubelet, self, self.spawner)
        runner.obey(pod_ip, host_ip)

    def forget(self, uid: str) -> None:
        runner = self.runners.pop(uid, None)
        self._volumes.pop(uid, None)
        if runner is not None:
            task = asyncio.create_task(self._remove(runner), name=f"end of pod {runner.pod.metadata.name}")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _remove(self, runner: PodRunner) -> None:
        await runner.close(0.0)
        await self.networking.detach(runner.pod.metadata.uid)
        await asyncio.to_thread(runner.remove_files)
        if self._memory is not None:
            await asyncio.to_thread(disk.remove, self._memory / runner.pod.metadata.uid)

    # -------------------------------------------------------------- what a container is given

    async def plan(self, pod: Pod, name: str, pod_ip: str, host_ip: str) -> plan.Plan:
        client, home = self._client, self._root / "pods" / pod.metadata.uid
        spec = next(spec for spec in _containers(pod) if spec.name == name)
        rule = self._ruled(pod)[name]
        if rule is None:
            raise ConfigError(
                f"no process rule matches image {spec.image!r} any more; give it one, or recreate the pod"
            )
        permitted.check_spec(spec, rule)
        itself = await self._self(pod, pod_ip, host_ip)
        volumes, lookup = self._volumes_of(pod)
        folders = await volumes.prepare(itself, lookup)
        for mount in spec.volume_mounts:
            if mount.name in folders:
                permitted.check_host_path(folders[mount.name][0], [self._root, *volumes.ours], rule)
        services, slices = await client.list(Service), await client.list(EndpointSlice)
        place = plan.Place(home / "volumes", home / "names" / "hosts", home / "containers" / name / "kubeconfig")
        self._write_hosts(itself, list(await client.list(Pod)), list(services), list(slices))
        reached = access.server(slices)
        env = service_env(_linked(pod, services)) | self._server_env(pod, services, reached)
        user = self._user(pod)
        image = await self._image(rule, spec, user)
        who = roots.account(pod, spec, image) if image is not None else None
        own = roots.base_env(image, who) if image is not None and who is not None else None
        before = env | plan.base_env(rule, self._environ, itself, own)
        env = await container_env(spec, itself, lookup, before)
        permitted.check_env(env, before, rule)
        made = disk.prepare(home / "containers" / name, spec, folders, env, user, in_place=image is not None)
        if image is not None and who is not None:
            result = plan.make(spec, rule, itself, made, env, place, image)
            names, cwd, hostname = place.hosts.parent, str(result.cwd), itself.hostname
            resolver, network = self._resolver(pod, names), await self.networking.attach(pod)
            root = roots.make(spec, image, who, made, names=names, hostname=hostname, cwd=cwd, resolver=resolver)
            root = replace(root, variables=roots.variables(pod, networked=network is not None))
            view = View(user=user, root=root, network=network)
            return replace(result, view=self._targeted(pod, name, view))
        mounted = access.token_mount(pod, spec)
        if reached and mounted:
            disk.write_private(place.kubeconfig, access.kubeconfig(pod, made, mounted, *reached).encode(), user=user)
            env.setdefault("KUBECONFIG", str(place.kubeconfig))
        result = plan.make(spec, rule, itself, made, env, place)
        if self.isolation is None or not rule.isolated:
            return result
        view = plan.view(self.isolation, result, itself, folders, place)
        permitted.check_files(result.named, view, rule)
        return replace(result, view=self._targeted(pod, name, view))

    def _targeted(self, pod: Pod, name: str, view: View) -> View:
        """An ephemeral container with a target is among its processes. Raises ConfigError."""
        targets = {spec.name: spec.target_container_name for spec in pod.spec.ephemeral_containers}
        target = targets.get(name)
        if not target or target not in self.lives(pod):  # nothing is to be seen of one that is simulated
            return view
        run = self._running(pod.metadata.uid, target)
        if run is None or run.process is None:
            raise ConfigError(f"unable to find target container {target}")
        return view if run.plan.view is None else view.among(run.process.pid, run.plan.view)

    def _server_env(self, pod: Pod, services: Iterable[Service], reached: tuple[str, int] | None) -> dict[str, str]:
        """How a pod finds the API server: by its Service, or where there is no way to that, where it listens."""
        if self.networking.concerns(pod):
            return service_env(service for service in services if _key(service) == access.SERVICE)
        return access.variables(*reached) if reached else {}

    def _resolver(self, pod: Pod, folder: Path) -> Path:
        """The pod's resolv.conf, written to its folder; this machine's for pods on its network."""
        text = self.networking.resolv_conf(pod).encode()
        if not text:
            return roots.RESOLVER
        path = folder / "resolv.conf"
        disk.write_private(path, text, user=self._user(pod))
        return path

    async def _image(self, rule: ProcessRule, spec: Container, user: int | None) -> Image | None:
        """Raises Refused and ConfigError."""
        if not rule.root:
            return None
        why = self.not_isolated or await asyncio.to_thread(self._why_no_roots)
        if why:
            raise permitted.Refused(
                f"`root` of the process rule for image {rule.image!r} needs namespaces, which there are not: {why}; "
                "`konverge doctor` says what this machine can, and without `root` the image may be simulated"
            )
        try:
            return await asyncio.to_thread(self._images.get, rule.root, spec.image or "", user)
        except ImageError as error:
            raise ConfigError(f"image {spec.image!r}: {error}") from error

    def _user(self, pod: Pod) -> int | None:
        return self.isolation.user(pod.metadata.namespace) if self.isolation is not None else None

    async def _self(self, pod: Pod, pod_ip: str, host_ip: str) -> Self:
        try:
            node = await self._client.get(Node, pod.spec.node_name or "")
        except NotFound:
            return Self(pod, pod_ip, host_ip)
        return Self(pod, pod_ip, host_ip, node.status.allocatable)

    def _volumes_of(self, pod: Pod) -> tuple[PodVolumes, Lookup]:
        uid = pod.metadata.uid
        if uid not in self._volumes:
            allowed = [path for rule in self._ruled(pod).values() if rule is not None for path in rule.host_paths]
            home = self._root / "pods" / uid / "volumes"
            persistent = self._root / "volumes"
            with_root = any(rule is not None and rule.root for rule in self._ruled(pod).values())
            mask = disk.FULL if with_root else disk.PRIVATE
            memory = None if self._memory is None else self._memory / uid
            volumes = PodVolumes(home, persistent, self._client, allowed, self._user(pod), mask, memory)
            self._volumes[uid] = volumes, Lookup(self._client, pod)
        return self._volumes[uid]

    def _write_hosts(self, itself: Self, pods: Iterable[Pod], services: Any, slices: Any) -> None:
        path, user = self._root / "pods" / itself.pod.metadata.uid / "names" / "hosts", self._user(itself.pod)
        if self.networking.concerns(itself.pod):  # its names are asked for
            pods = services = slices = ()
        text = access.hosts_file(itself, pods, services, slices).encode()
        if not path.exists() or path.read_bytes() != text:
            disk.give(disk.make_folder(path.parent), user)
            disk.write_private(path, text, user=user)

    # -------------------------------------------------------------- logs and sessions

    def log(self, uid: str, container: str, query: Mapping[str, Sequence[str]]) -> Producer | None:
        runner = self.runners.get(uid)
        live = runner.machine.live.get(container) if runner is not None else None
        if runner is None or live is None:
            return None
        options = logfile.read_options(query)
        refuse(live, runner.pod.metadata.name, options.previous)
        number = live.runs - 1 if options.previous and live.mode is not Mode.WAITING else live.runs
        return logfile.producer(runner.log(container, number), options)

    def exec(self, uid: str, container: str, options: ExecOptions) -> Talk | None:
        run = self._running(uid, container)
        return None if run is None else partial(remote.execute, run, self.spawner, options)

    def attach(self, uid: str, container: str, options: ExecOptions) -> Talk | None:
        run = self._running(uid, container)
        return None if run is None else partial(remote.attach, run, options)

    def _running(self, uid: str, container: str) -> Run | None:
        runner = self.runners.get(uid)
        run = runner.runs.get(container) if runner is not None else None
        return run if run is not None and run.process is not None and run.process.running else None

    # -------------------------------------------------------------- keeping it up to date

    def controllers(self) -> list[Controller[Any]]:
        everyone: list[Watches[Any]] = [
            Watches(kind, requests=lambda _: self._requests()) for kind in (Service, EndpointSlice, Pod)
        ]
        users: list[Watches[Any]] = [
            Watches(kind, requests=lambda obj: self._users_of(obj)) for kind in (ConfigMap, Secret)
        ]
        volume_gone = ChangePredicate(self._volume_gone)
        return [
            Controller(Pod, self.refresh, name="process-files", watches=[*everyone, *users]),
            Controller(Node, self._say_on_node, name="process-isolation"),
            Controller(PersistentVolume, self._nothing, name="process-volumes", when=volume_gone),
            *self.networking.controllers(),
        ]

    def _requests(self) -> list[Request]:
        metas = [runner.pod.metadata for runner in self.runners.values()]
        return [Request(meta.namespace, meta.name) for meta in metas]

    def _users_of(self, obj: ConfigMap | Secret) -> list[Request]:
        meta = obj.metadata
        pods = [runner.pod for runner in self.runners.values() if runner.pod.metadata.namespace == meta.namespace]
        return [Request(meta.namespace, pod.metadata.name) for pod in pods if refers_to(pod, obj.kind, meta.name)]

    async def refresh(self, ctx: Context[Pod]) -> Result | None:
        """Files that follow objects, and the names of others."""
        runner = self.runners.get(ctx.obj.metadata.uid)
        if runner is None or not runner.runs:
            return None
        itself = await self._self(ctx.obj, runner.pod_ip, runner.host_ip)
        volumes, lookup = self._volumes_of(ctx.obj)
        await volumes.refresh(itself, lookup)
        pods = await ctx.list(Pod, "")
        self._write_hosts(itself, pods, await ctx.list(Service, ""), await ctx.list(EndpointSlice, ""))
        wait = lookup.again - clock.now()
        return Result(requeue_after=max(wait, 1.0)) if wait < float("inf") else None

    def _volume_gone(self, change: Change) -> bool:
        """The folder of a PersistentVolume goes with it."""
        if change.new is None and change.old is not None:
            disk.remove(self._root / "volumes" / f"{change.old.meta.name}_{change.old.uid}")
        return False

    async def _say_on_node(self, ctx: Context[Node]) -> None:
        """Once for each node: its process pods are not isolated, or have no network of their own."""
        if ctx.obj.metadata.uid in self._said_on:
            return
        self._said_on.add(ctx.obj.metadata.uid)
        if self.not_isolated:
            ctx.warning("ProcessesNotIsolated", f"process pods see what the cluster's user sees: {self.not_isolated}")
        if self.networking.why_not:
            ctx.warning("NoPodNetwork", f"process pods are on this machine's network: {self.networking.why_not}")

    async def _nothing(self, ctx: Context[PersistentVolume]) -> None:
        """Volumes are only watched for their end."""


def _containers(pod: Pod) -> list[Container]:
    ephemeral = map(as_container, pod.spec.ephemeral_containers)
    return [*pod.spec.init_containers, *pod.spec.containers, *ephemeral]


def _linked(pod: Pod, services: Iterable[Service]) -> list[Service]:
    """The services that a container's variables describe: those of its namespace, but for the API server's."""
    if pod.spec.enable_service_links is False:
        return []
    near = [service for service in services if service.metadata.namespace == pod.metadata.namespace]
    return [service for service in near if _key(service) != access.SERVICE]


def _key(service: Service) -> tuple[str, str]:
    return service.metadata.namespace, service.metadata.name
