"""`konverge logs` and `konverge events`: everything below an object, also what comes while they follow."""

from __future__ import annotations

import argparse
import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from konverge.cli import event_stream, log_stream, main
from konverge.cli.log_stream import Printer, Source
from konverge.cli.targets import CouldNotAsk
from konverge.client import Client, MergePatch
from konverge.sim import Cluster
from tests.explain.samples import SPACE, create, deployment, obj

pytestmark = [pytest.mark.virtual, pytest.mark.spec("O-85")]


def parsed(*words: str) -> argparse.Namespace:
    return main.parser().parse_args([*words])


async def show(client: Client, *words: str) -> list[str]:
    out = io.StringIO()
    command = log_stream if words[0] == "logs" else event_stream
    await command.stream(client, parsed(*words), SPACE, out)
    return out.getvalue().splitlines()


@asynccontextmanager
async def following(client: Client, *words: str) -> AsyncIterator[io.StringIO]:
    out = io.StringIO()
    command = log_stream if words[0] == "logs" else event_stream
    task = asyncio.create_task(command.stream(client, parsed(*words), SPACE, out))
    try:
        await asyncio.sleep(5)
        yield out
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_the_logs_of_all_pods_of_an_object_and_of_no_other() -> None:
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, deployment("web", replicas=2), deployment("other"), obj("Service", "web", service))
        await asyncio.sleep(10)
        lines = await show(client, "logs", "deploy/web")
        of_service = await show(client, "logs", "svc", "web")
        pods = [pod["metadata"]["name"] async for pod in client.each("pods", SPACE, label_selector="app=web")]
        of_pod = await show(client, "logs", "po", pods[0], "-c", "main")
        with pytest.raises(CouldNotAsk, match="did you mean web"):
            await show(client, "logs", "deploy/wep")
    assert sorted(line.split()[0] for line in lines) == sorted(pods)
    assert all(line.split()[1] == "main" and "simulated run 1 began" in line for line in lines)
    assert of_service == lines
    assert [line.split()[0] for line in of_pod] == [pods[0]]


async def test_the_run_before_and_what_has_no_log() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, deployment("web", "exit 3 after 5s"), deployment("none", nodeSelector={"no": "node"}))
        await asyncio.sleep(40)
        before = await show(client, "logs", "deploy/web", "--previous")
        nothing = await show(client, "logs", "deploy/none")
    assert any("exit 3" in line for line in before)
    assert nothing == []


async def test_new_pods_and_new_runs_are_followed() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, deployment("web", "exit 1 after 20s 1 times"), deployment("other"))
        await asyncio.sleep(5)
        async with following(client, "logs", "deploy/web", "-f") as out:
            assert out.getvalue().count("simulated run 1 began") == 1
            await asyncio.sleep(120)
            assert "simulated run 2 began" in out.getvalue()
            await client.scale("deploy", "web", 3, SPACE)
            await asyncio.sleep(10)
            # An update makes another ReplicaSet: its pods belong to the Deployment as well.
            image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}
            await client.patch("deployments", "web", MergePatch(image), SPACE)
            await asyncio.sleep(60)
        shown = {line.split()[0] for line in out.getvalue().splitlines()}
        living = {pod["metadata"]["name"] async for pod in client.each("pods", SPACE, label_selector="app=web")}
    assert living <= shown
    assert len(shown) >= 6
    assert not any(name.startswith("other") for name in shown)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.spec("O-84")
def test_a_log_cannot_steer_the_terminal_unless_asked_to() -> None:
    source, evil = Source("web-0", SPACE, "main", ""), "\x1b[2J\x1b]0;x\x07 \tdone"
    terminal, raw, pipe = Terminal(), Terminal(), io.StringIO()
    Printer(terminal, raw=False).line(source, evil)
    Printer(raw, raw=True).line(source, evil)
    Printer(pipe, raw=False).line(source, evil)
    assert terminal.getvalue().endswith("\\x1b[2J\\x1b]0;x\\x07 \tdone\n")
    assert raw.getvalue().endswith(f"{evil}\n")
    assert pipe.getvalue() == f"web-0 main {evil}\n"


async def test_events_of_an_object_and_its_children_in_order_with_their_counts() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, deployment("web", "crash-loop"), deployment("other"))
        await asyncio.sleep(300)
        lines = await show(client, "events", "deploy/web")
        warnings = await show(client, "events", "deploy/web", "--warnings")
        everything = await show(client, "events")
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    assert any("  Deployment web  ScalingReplicaSet  " in line for line in lines)
    assert any("  pod web-" in line and "  BackOff (x" in line for line in lines)
    assert not any("other" in line for line in lines)
    assert warnings
    assert len(warnings) < len(lines) < len(everything)


async def test_events_of_the_same_second_are_in_the_order_of_the_server() -> None:
    async with Cluster(nodes=0, controllers=False) as cluster:
        for name, reason in (("z", "First"), ("m", "Second"), ("a", "Third")):
            event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": SPACE}}
            event |= {"involvedObject": {"kind": "Pod", "name": "web", "namespace": SPACE}, "reason": reason}
            event |= {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
            await cluster.client.create(event)
        lines = await show(cluster.client, "events")
    assert [line.split("  ")[2] for line in lines] == ["First", "Second", "Third"]


async def test_events_of_children_that_come_later_are_followed() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, deployment("web", replicas=0), deployment("other", replicas=0))
        await asyncio.sleep(5)
        async with following(client, "events", "deploy/web", "-f") as out:
            await client.scale("deploy", "web", 1, SPACE)
            await client.scale("deploy", "other", 1, SPACE)
            await asyncio.sleep(30)
        text = out.getvalue()
    assert "  Deployment web  ScalingReplicaSet  " in text
    assert "  Scheduled  Successfully assigned default/web-" in text
    assert "other" not in text
