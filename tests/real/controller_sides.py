"""Two real API servers, one with kube-controller-manager and one with our controllers, and what to compare on them.

There is no scheduler and no kubelet: scenarios write the statuses that these would write. What differs then differs by
the controllers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from konverge.client import Client, MergePatch, NotFound, load_config
from konverge.objects.resource import Resource
from tests.real.clients import programs
from tests.real.clients.controllers import controller_manager
from tests.real.clients.waiting import Objects, until
from tests.real.embedded import konverge_process
from tools.control_plane import ControlPlane

Obj = dict[str, Any]

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", False)
NODES = Resource("", "v1", "Node", "nodes", False)
PODS = Resource("", "v1", "Pod", "pods")
CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
SERVICES = Resource("", "v1", "Service", "services")
ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints")
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
EVENTS = Resource("", "v1", "Event", "events")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets")
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets")
REVISIONS = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
JOBS = Resource("batch", "v1", "Job", "jobs")
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs")
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
SLICES = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False)

LABELS = {"app": "web"}
AGREE_WITHIN = 60.0
"""Seconds until the two sides must show the same; controllers take their time, and some wait on purpose."""
HEARTBEAT = 5.0
"""Seconds between two renewals of a node's Lease: after forty without one it is lost."""


@contextmanager
def both(binaries: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """The kubeconfigs of the two sides: the real controllers, and ours."""
    program = programs.require(binaries, "kube-controller-manager")
    with (
        ControlPlane(binaries) as theirs,
        ControlPlane(binaries) as ours,
        controller_manager(program, theirs.kubeconfig, folder),
        konverge_process("controllers", "--kubeconfig", str(ours.kubeconfig)) as line,
    ):
        assert line.startswith("ready "), line
        yield theirs.kubeconfig, ours.kubeconfig


@dataclass
class Side:
    """One of the two, and the namespace of one scenario on it."""

    client: Client
    space: str

    async def make(self, resource: Resource, name: str, **rest: Any) -> Obj:
        metadata = {"name": name, **rest.pop("metadata", {})}
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}
        return await self.client.create(obj, self.space if resource.namespaced else "", resource=resource)

    async def patch(self, resource: Resource, name: str, change: Obj, subresource: str = "") -> None:
        space = self.space if resource.namespaced else ""
        if subresource:
            await self.client.patch(resource, name, MergePatch(change), space, subresource=subresource)
        else:
            await self.client.patch(resource, name, MergePatch(change), space)

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        await self.client.delete(resource, name, self.space if resource.namespaced else "", **options)

    async def until(self, resource: Resource, holds: Callable[[Objects], Any]) -> Objects:
        return await until(self.client, resource, self.space if resource.namespaced else "", holds)

    async def live_pods(self, count: int, selector: Callable[[Obj], bool] = lambda pod: True) -> list[str]:
        """The names of the pods that are not being deleted, as soon as there are so many."""

        def live(pods: Objects) -> list[str]:
            return [name for name, pod in pods.items() if "deletionTimestamp" not in pod["metadata"] and selector(pod)]

        return sorted(live(await self.until(PODS, lambda pods: len(live(pods)) == count)))

    async def run(self, *pods: str, phase: str = "Running", ready: bool = True, ip: str = "10.1.0.7") -> None:
        """Write what a kubelet would write about these pods."""
        condition = {"type": "Ready", "status": "True" if ready and phase == "Running" else "False"}
        status = {
            "phase": phase,
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }
        for name in pods:
            await self.patch(PODS, name, {"status": status}, "status")

    async def vanish(self, *pods: str) -> None:
        """End pods at once, as a kubelet does once their containers have ended."""
        for name in pods:
            with contextlib.suppress(NotFound):  # a pod without a node goes as soon as it is deleted
                await self.delete(PODS, name, grace_period=0)


Scenario = Callable[[Side], Awaitable[Any]]


@asynccontextmanager
async def sides(kubeconfigs: tuple[Path, Path], name: str) -> AsyncIterator[tuple[Side, Side]]:
    """Both sides, each with an empty namespace in which pods can be made."""
    async with (
        Client.connect(load_config(kubeconfig=kubeconfigs[0])) as first,
        Client.connect(load_config(kubeconfig=kubeconfigs[1])) as second,
    ):
        theirs, ours = Side(first, name), Side(second, name)
        for side in (theirs, ours):
            await side.make(NAMESPACES, name)
            await side.until(ACCOUNTS, lambda accounts: "default" in accounts)
            await side.until(CONFIG_MAPS, lambda maps: "kube-root-ca.crt" in maps)
        yield theirs, ours


async def same(kubeconfigs: tuple[Path, Path], name: str, scenario: Scenario, *compared: Resource) -> None:
    """Play a scenario on both sides; afterwards their objects of these kinds, and the events, must be the same."""
    async with sides(kubeconfigs, name) as (theirs, ours), beating(theirs), beating(ours):
        await asyncio.gather(scenario(theirs), scenario(ours))
        await agree(theirs, ours, *compared)
        for side in (theirs, ours):  # without a heartbeat they are lost soon, and many lost nodes change what is done
            for node in (await side.client.list(NODES, label_selector=f"for={name}")).items:
                await side.delete(NODES, node["metadata"]["name"])


@asynccontextmanager
async def beating(side: Side) -> AsyncIterator[None]:
    """Renews the Leases of a scenario's nodes, as their kubelets would, however long the scenario takes."""
    task = asyncio.create_task(_beat(side), name=f"heartbeat of {side.space}")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _beat(side: Side) -> None:
    while True:
        for node in (await side.client.list(NODES, label_selector=f"for={side.space}")).items:
            name = node["metadata"]["name"]
            renewed = {"spec": {"renewTime": datetime.now(UTC).isoformat(timespec="microseconds")}}
            try:
                await side.client.patch(LEASES, name, MergePatch(renewed), "kube-node-lease")
            except NotFound:
                lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": {"name": name}, **renewed}
                await side.client.create(lease, "kube-node-lease", resource=LEASES)
        await asyncio.sleep(HEARTBEAT)


async def agree(theirs: Side, ours: Side, *compared: Resource) -> None:
    deadline = asyncio.get_running_loop().time() + AGREE_WITHIN
    while True:
        real, mine = await asyncio.gather(seen(theirs, compared), seen(ours, compared))
        if real == mine:
            return
        if asyncio.get_running_loop().time() > deadline:
            difference = [f"kube-controller-manager: {line}" for line in real if line not in mine]
            difference += [f"ours: {line}" for line in mine if line not in real]
            raise AssertionError("\n".join(["the two sides differ", *difference]))
        await asyncio.sleep(0.25)


# ------------------------------------------------------------------ what is compared


async def seen(side: Side, compared: tuple[Resource, ...]) -> list[str]:
    """The objects of a scenario's namespace, a text each, without what differs from run to run."""
    lines = []
    for resource in compared:
        for obj in (await side.client.list(resource, side.space if resource.namespaced else "")).items:
            name = obj["metadata"]["name"]
            if name != "kube-root-ca.crt" and (resource.namespaced or side.space in name):
                lines.append(shown(_without_noise({**obj, "kind": resource.kind})))
    for space in {side.space, "default"}:
        events = (await side.client.list(EVENTS, space)).items
        lines += [
            shown(_event(event))
            for event in events
            if side.space in (space, *_names(event))
            and event["source"].get("component") not in _OTHERS
            and _LATE not in event["message"]
        ]
    return sorted(set(lines))


_OTHERS = {"persistentvolume-controller", "ttl-controller"}
"""Parts of kube-controller-manager that are none of the ten."""
_LATE = "the object has been modified; please apply your changes to the latest version"
"""A controller that wrote what its cache did not have yet reports the conflict, and tries again: a matter of time."""


def _names(event: Obj) -> list[str]:
    """The scenarios that an event about a cluster-scoped object may belong to: their names are parts of its name."""
    name = event["involvedObject"]["name"]
    return [name, name.partition(".")[0], name.rpartition("-")[0]]


def _event(event: Obj) -> Obj:
    about = {key: event["involvedObject"].get(key) for key in ("kind", "apiVersion", "name", "namespace", "fieldPath")}
    message = event["message"].removeprefix("(combined from similar events): ")
    source = event["source"].get("component")
    return {
        "kind": "Event",
        "about": about,
        "what": [event["type"], event["reason"], message],
        "by": [source, event.get("reportingComponent")],
    }


_OTHER_ANNOTATIONS = {
    "node.alpha.kubernetes.io/ttl",  # by a part of kube-controller-manager that is none of the ten
    # There only when the last write took in a change of readiness: on each side a matter of how changes fell together.
    # tests/kube/endpoints has what it must be.
    "endpoints.kubernetes.io/last-change-trigger-time",
}

_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")


def _without_noise(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _VOLATILE}
    cleaned = {**obj, "metadata": metadata}
    if obj["kind"] == "EndpointSlice":
        del metadata["generation"]  # how many changes one write takes in is a matter of time
        # Upstream keeps what one write takes in as a map (EndpointSet.PopAny): it has no order.
        cleaned["endpoints"] = sorted(obj.get("endpoints") or [], key=lambda endpoint: endpoint["addresses"])
    if metadata.get("annotations"):
        kept = {key: value for key, value in metadata["annotations"].items() if key not in _OTHER_ANNOTATIONS}
        metadata["annotations"] = kept
        if not kept:
            del metadata["annotations"]
    if obj.get("spec", {}).get("taints"):  # which come in the order in which their causes were noticed
        taints = sorted(obj["spec"]["taints"], key=lambda taint: (taint["key"], taint["effect"]))
        cleaned["spec"] = {**obj["spec"], "taints": taints}
    return cleaned


_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_MASKS = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(rf"kube-api-access-{_SAFE}{{5}}"), "kube-api-access-<id>"),
    # Hashes of templates and random ends of names; ours hash another dump of the template.
    (re.compile(rf"\b([a-z]+(?:-[0-9]+)?)-{_SAFE}{{5,10}}(-{_SAFE}{{5}})?\b"), r"\1-<hash>\2"),
    (re.compile(rf"<hash>-{_SAFE}{{5}}\b"), "<hash>-<id>"),
    (re.compile(rf'("(?:pod-template-hash|controller[.-]revision-hash|controller.kubernetes.io/hash)": )"{_SAFE}+"'),
     r'\1"<hash>"'),
    (re.compile(r'("resourceVersion": )"\d+"'), r'\1"<version>"'),
]  # fmt: skip


def shown(obj: Obj) -> str:
    text = json.dumps(obj, sort_keys=True)
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text


async def is_gone(side: Side, resource: Resource, name: str) -> bool:
    try:
        await side.client.get(resource, name, side.space if resource.namespaced else "")
    except NotFound:
        return True
    return False
