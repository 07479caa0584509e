"""`konverge run` as a process: it says what is missing, leads, serves probes and metrics, and ends in order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.install_objects import install_definitions
from konverge.client import Client, Static
from konverge.objects import ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.operators.catalog import find
from konverge.operators.webapp import WebApp, WebAppSpec
from konverge.wire.message import Request
from konverge.wire.pool import ConnectionPool


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Client, Path]]:
    """An API server on a socket, a client of it, and its kubeconfig."""
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        url = await server.listen()
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(server.kubeconfig(url)))
        yield client, kubeconfig


async def begin(kubeconfig: Path, *options: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "konverge.cli.main", "run", "webapp", *options,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def heard(process: asyncio.subprocess.Process, wanted: str) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if wanted in line.decode():
            return line.decode()
    raise AssertionError(f"ended without saying {wanted!r}")


async def served_at(process: asyncio.subprocess.Process, what: str) -> str:
    """The URL of what it says it serves: a free port that it chose itself."""
    said: str = json.loads(await heard(process, f"{what} served at "))["msg"]
    return "http://" + said.rpartition(" ")[2]


@pytest.mark.blocking
async def test_missing_definitions_are_a_line_that_says_what_to_do_and_are_waited_for(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, kubeconfig):
        process = await begin(kubeconfig, "--log-format", "json")
        try:
            line = json.loads(await heard(process, "is not served"))["msg"]
            assert line == (
                "webapps.apps.konverge.dev (apps.konverge.dev/v1) is not served; waiting for it; "
                "install its definition: `konverge crd webapp | kubectl apply -f -`"
            )
            await install_definitions(client, [find("webapp")])
            await client.create(
                WebApp(metadata=ObjectMeta(name="web", namespace="default"), spec=WebAppSpec(image="a:1"))
            )
            await heard(process, "webapps.apps.konverge.dev is served now")
            events = client.watch(Deployment, "default", field_selector="metadata.name=web")
            async with aclosing(events):
                async for event in events:
                    if event.type == "ADDED":
                        break
            process.terminate()
            assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


@pytest.mark.blocking
async def test_it_works_as_in_a_pod_and_ends_in_order(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("workers: 3\n")
    async with served(tmp_path) as (client, kubeconfig):
        process = await begin(
            kubeconfig, "--install-crds", "--config", str(tmp_path / "config.yaml"), "--log-format", "json",
            "--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0",
        )  # fmt: skip
        try:
            metrics, probes = await served_at(process, "metrics are"), await served_at(process, "health is")
            assert json.loads(await heard(process, "leads default/webapp-operator"))["level"] == "info"
            async with ConnectionPool(probes) as pool:
                assert (await pool.send(Request("GET", "/readyz"))).body == b"ok"
            async with ConnectionPool(metrics) as pool:
                text = (await pool.send(Request("GET", "/metrics"))).body
            assert b'leader_election_master_status{name="webapp-operator"} 1.0' in text
            assert b'controller_runtime_max_concurrent_reconciles{controller="webapp"} 3.0' in text
            metadata = ObjectMeta(name="web", namespace="default")
            await client.create(WebApp(metadata=metadata, spec=WebAppSpec(image="nginx:1")))
            await heard(process, "making Service web")
            assert (await client.get(Deployment, "web", "default")).spec.replicas == 1
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = await process.communicate()
        assert process.returncode == 0, errors
        assert not (await client.get(Lease, "webapp-operator", "default")).spec.holder_identity


@pytest.mark.blocking
async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, kubeconfig):
        url = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        taken = url.rpartition(":")[2]
        process = await begin(kubeconfig, "--install-crds", f"--metrics-bind-address=127.0.0.1:{taken}")
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert f"127.0.0.1:{taken}" in errors.decode()
    assert len(errors.decode().splitlines()) == 1
