"""Containers that are added to a pod while it runs, and those with a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from konverge.client import StrategicPatch
from konverge.objects.kinds.core_v1 import ContainerStatus, Pod
from konverge.sim.cluster import Cluster
from konverge.sim.processes.isolation import why_not
from tests.sim.conftest import SPACE
from tests.sim.conftest import pod as simulated
from tests.sim.processes.image_files import small_root
from tests.sim.processes.support import (
    ENDS_WHEN_ASKED,
    WAITS,
    is_over,
    is_running,
    lines,
    process_cluster,
    script,
    until,
)
from tests.sim.processes.test_roots import box, cluster_of, possible
from tests.sim.processes.test_sessions import asked, outcome, running, session

pytestmark = pytest.mark.spec("S-57")

isolated = pytest.mark.skipif(bool(why_not()), reason=f"processes cannot be isolated here: {why_not()}")


async def debug(cluster: Cluster, name: str, text: str, **container: Any) -> None:
    """What `kubectl debug` does."""
    added = {"name": "debug", "image": "python:3", "args": [text], **container}
    patch = StrategicPatch({"spec": {"ephemeralContainers": [added]}})
    await cluster.client.patch(Pod, name, patch, SPACE, subresource="ephemeralcontainers")


def added(pod: Pod) -> ContainerStatus | None:
    return next(iter(pod.status.ephemeral_container_statuses), None)


def is_added(pod: Pod, state: str) -> bool:
    status = added(pod)
    return status is not None and status.state is not None and getattr(status.state, state) is not None


def has_ended(pod: Pod) -> bool:
    return is_added(pod, "terminated")


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


@isolated
@pytest.mark.parametrize("target", ["", "main"])
async def test_with_a_target_it_is_among_that_containers_processes(target: str) -> None:
    look = lines(
        "import os",
        "texts = [open(f'/proc/{number}/cmdline').read() for number in os.listdir('/proc') if number.isdigit()]",
        "print(any('signal' + '.pause' in text for text in texts))",
    )
    more = {"targetContainerName": target} if target else {}
    async with process_cluster() as cluster:
        await cluster.client.create(script("web", WAITS))
        await until(cluster.client, "web", is_running)
        await debug(cluster, "web", look, **more)
        await until(cluster.client, "web", has_ended)
        assert await cluster.client.log("web", SPACE, container="debug") == f"{bool(target)}\n"


@isolated
async def test_commands_run_beside_it_and_it_ends_with_its_target() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(script("web", ENDS_WHEN_ASKED))
        await until(cluster.client, "web", is_running)
        await debug(cluster, "web", WAITS, targetContainerName="main")
        await until(cluster.client, "web", lambda pod: is_added(pod, "running"))
        look = "import os; print(open('/proc/1/cmdline').read().count('sys.exit(7)'))"
        assert await beside_debug(cluster, look) == b"1\n", "the first process is not its target's"
        await beside_debug(cluster, "import os, signal; os.kill(1, signal.SIGTERM)")
        await until(cluster.client, "web", lambda pod: is_over(pod) and has_ended(pod))


@possible
async def test_an_image_is_among_the_processes_of_its_target_as_the_same_user(tmp_path: Path) -> None:
    look = ["sh", "-c", "cat /proc/[0-9]*/cmdline /proc/self/status"]
    async with cluster_of(small_root(tmp_path)) as cluster:
        main = box("web", "exec sleep 100000", {"securityContext": {"runAsUser": 1234}})
        await cluster.client.create(main)
        await until(cluster.client, "web", is_running)
        await debug(cluster, "web", "", image="box:1", command=look, args=[], targetContainerName="main")
        await until(cluster.client, "web", has_ended)
        said = await cluster.client.log("web", SPACE, container="debug")
    assert "sleep\x00100000" in said
    assert "Uid:\t1234\t1234" in said


async def beside_debug(cluster: Cluster, text: str) -> bytes:
    query = [*asked([sys.executable, "-c", text], "stdout"), ("container", "debug")]
    async with session(cluster, "web", "exec", query) as talker:
        said, _ = await outcome(talker)
    return said.get(1, b"")


async def test_it_ends_with_its_pod() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(script("work", "input()", stdin=True))
        await until(cluster.client, "work", is_running)
        await debug(cluster, "work", WAITS)

        await until(cluster.client, "work", lambda pod: is_added(pod, "running"))
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

        await until(cluster.client, "web", lambda pod: is_added(pod, "running"))
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
