"""Containers that are added to a pod while it runs, and those with a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import StrategicPatch
from konverge.objects.kinds.core_v1 import ContainerStatus, Pod
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE
from tests.sim.conftest import pod as simulated
from tests.sim.processes.support import WAITS, is_over, is_running, lines, process_cluster, script, until
from tests.sim.processes.test_sessions import asked, outcome, running, session

pytestmark = pytest.mark.spec("S-57")


async def debug(cluster: Cluster, name: str, text: str, **container: Any) -> None:
    """What `kubectl debug` does."""
    added = {"name": "debug", "image": "python:3", "args": [text], **container}
    patch = StrategicPatch({"spec": {"ephemeralContainers": [added]}})
    await cluster.client.patch(Pod, name, patch, SPACE, subresource="ephemeralcontainers")


def added(pod: Pod) -> ContainerStatus | None:
    return next(iter(pod.status.ephemeral_container_statuses), None)


def has_ended(pod: Pod) -> bool:
    status = added(pod)
    return status is not None and status.state is not None and status.state.terminated is not None


async def test_an_ephemeral_container_is_a_process_beside_the_others() -> None:
    async with running() as cluster:
        await debug(cluster, "web", "import os; print(os.environ['POD_IP']); raise SystemExit(3)")
        pod = await until(cluster.client, "web", has_ended)
        status = added(pod)
        assert status is not None
        assert status.state is not None
        assert status.state.terminated is not None
        assert status.state.terminated.exit_code == 3
        assert status.restart_count == 0
        assert await cluster.client.log("web", SPACE, container="debug") == f"{pod.status.pod_ip}\n"
        assert is_running(pod), "the others do not notice"


async def test_also_in_a_pod_whose_other_containers_are_simulated() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(simulated("plain"))
        await until(cluster.client, "plain", is_running)
        await debug(cluster, "plain", "print('hello')")
        await until(cluster.client, "plain", has_ended)
        assert await cluster.client.log("plain", SPACE, container="debug") == "hello\n"


async def test_it_ends_with_its_pod() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(script("work", "input()", stdin=True))
        await until(cluster.client, "work", is_running)
        await debug(cluster, "work", WAITS)

        def runs(pod: Pod) -> bool:
            status = added(pod)
            return status is not None and status.state is not None and status.state.running is not None

        await until(cluster.client, "work", runs)
        async with session(cluster, "work", "attach", asked([], "stdin")) as talker:
            talker.send(b"\x00\n")
            await until(cluster.client, "work", lambda pod: is_over(pod) and has_ended(pod))


async def test_a_container_with_a_terminal_is_attached_to_as_one() -> None:
    text = lines(
        "import os, sys",
        "line = input('> ')",
        "print(os.isatty(0), os.isatty(2), *os.get_terminal_size(), line, flush=True)",
    )
    async with running() as cluster:
        await debug(cluster, "web", text, stdin=True, tty=True)

        def runs(pod: Pod) -> bool:
            status = added(pod)
            return status is not None and status.state is not None and status.state.running is not None

        await until(cluster.client, "web", runs)
        query = [*asked([], "stdin", "stdout", "tty"), ("container", "debug")]
        async with session(cluster, "web", "attach", query) as talker:
            talker.send(b'\x04{"Width": 132, "Height": 43}')
            talker.send(b"\x00hello\r")
            said, status = await outcome(talker)
        assert b"True True 132 43 hello\r\n" in said[1]
        assert status["status"] == "Success"
        await until(cluster.client, "web", has_ended)
        log = await cluster.client.log("web", SPACE, container="debug")
        assert "True True 132 43 hello\r\n" in log
