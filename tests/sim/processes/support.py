"""What tests of process pods share: an image that is a Python script, and waiting for a pod without sleeping."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from konverge.client import Client
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import ContainerStatus, Pod
from konverge.sim.cluster import Cluster
from konverge.sim.processes import ProcessRule
from tests.sim.conftest import SPACE

PYTHON = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))
"""Where Python and this repository are, which may be a place that is hidden."""
SCRIPT = ProcessRule(
    image="python:*",
    command=(sys.executable, "-u", "-c"),
    container_args="append",
    container_exec=True,
    mounts=("*",),
    files=PYTHON,
)
"""The container's args are a script and its arguments."""
WAITS = "import signal; signal.pause()"
ENDS_WHEN_ASKED = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7)); print('ready'); signal.pause()"


@asynccontextmanager
async def process_cluster(*rules: ProcessRule, **options: Any) -> AsyncIterator[Cluster]:
    whole: dict[str, Any] = {"controllers": False, "nodes": 1, **options}
    async with Cluster(processes=rules or (SCRIPT,), **whole) as cluster:
        yield cluster


def script(name: str, text: str, *args: str, pod: dict[str, Any] | None = None, **container: Any) -> Pod:
    """A pod with one container that runs a script."""
    main = {"name": "main", "image": "python:3", "args": [text, *args], **container}
    spec = {"containers": [main], "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, **(pod or {})}
    meta = {"name": name, "namespace": SPACE}
    return from_dict(Pod, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


async def until(client: Client, name: str, holds: Callable[[Pod], Any]) -> Pod:
    """The pod, as soon as something holds of it."""
    result = await client.list(Pod, SPACE, field_selector=f"metadata.name={name}")
    for pod in result:
        if holds(pod):
            return pod
    version = result.metadata.resource_version
    events = client.watch(Pod, SPACE, field_selector=f"metadata.name={name}", resource_version=version)
    async with aclosing(events):
        async for event in events:
            if holds(event.object):
                return event.object
    raise AssertionError("the watch has ended")


async def until_gone(client: Client, name: str) -> None:
    result = await client.list(Pod, SPACE, field_selector=f"metadata.name={name}")
    if not result:
        return
    events = client.watch(Pod, SPACE, resource_version=result.metadata.resource_version)
    async with aclosing(events):
        async for event in events:
            if event.type == "DELETED" and event.object.metadata.name == name:
                return


def main_status(pod: Pod) -> ContainerStatus | None:
    return next(
        (container_statuse for container_statuse in pod.status.container_statuses if container_statuse.name == "main"),
        None,
    )


def is_ready(pod: Pod) -> bool:
    status = main_status(pod)
    return status is not None and bool(status.ready)


def is_running(pod: Pod) -> bool:
    status = main_status(pod)
    return status is not None and status.state is not None and status.state.running is not None


def is_over(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def waits_for(reason: str) -> Callable[[Pod], bool]:
    def holds(pod: Pod) -> bool:
        status = main_status(pod)
        return bool(status and status.state and status.state.waiting and status.state.waiting.reason == reason)

    return holds


async def output(cluster: Cluster, pod: Pod) -> list[str]:
    """Create a pod, wait for its end, and give the lines of its log."""
    await cluster.client.create(pod)
    await until(cluster.client, pod.metadata.name, is_over)
    return (await cluster.client.log(pod.metadata.name, SPACE)).splitlines()


def lines(*texts: str) -> str:
    """A script of these lines."""
    return "\n".join(texts)


def marked(uid: str) -> list[int]:
    """The processes of a pod, by their numbers on this machine."""
    result = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and f"KONVERGE_CONTAINER={uid}/".encode() in (entry / "environ").read_bytes():
                result.append(int(entry.name))
    return result


def outside(uid: str, number: int) -> int:
    """The number on this machine of a process that knows itself by another one."""
    for pid in marked(uid):
        status = Path(f"/proc/{pid}/status").read_text()
        if f"{number}" == status.partition("NSpid:")[2].splitlines()[0].split()[-1]:
            return pid
    raise AssertionError(f"no process of {uid} has the number {number}")
