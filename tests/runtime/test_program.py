"""An operator as a process: signals, exit status, one-line errors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from konverge import ApiServer, Client, ObjectMeta
from konverge.client import Static
from konverge.objects.kinds.core_v1 import ConfigMap

TRIES = 4
"""Processes for each test of signals. Fifty were tried by hand."""

OPERATOR = """
import asyncio, sys
from konverge import Context, Controller, Manager
from konverge.objects.kinds.core_v1 import ConfigMap

async def reconcile(ctx: Context[ConfigMap]) -> None:
    print("begun", ctx.request.name, flush=True)
    if ctx.request.name == "slow":
        await asyncio.Event().wait()
    print("done", ctx.request.name, flush=True)

Manager(name="test-operator").add(Controller(ConfigMap, reconcile, namespaces=("default",))).run()
print("ended in order", flush=True)
"""


async def start(
    folder: Path, kubeconfig: dict[str, object], before: str = "", program: str = OPERATOR, **variables: str
) -> asyncio.subprocess.Process:
    (folder / "shop_operator.py").write_text(f"{before}\n{program}")
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(folder / "shop_operator.py"),
        env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig"), **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def lines_until(process: asyncio.subprocess.Process, wanted: str) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        if line.decode().strip() == wanted:
            return
    raise AssertionError(f"ended without saying {wanted!r}")


@pytest.mark.spec("R-04", "R-01")
async def test_the_first_sigterm_stops_in_order_and_the_second_at_once(tmp_path: Path) -> None:
    async with ApiServer() as server:
        url = await server.listen()
        async with Client(server.transport, credentials=Static.bearer(server.token)) as client:
            await client.create(ConfigMap(metadata=ObjectMeta(name="quick", namespace="default")))
            process = await start(tmp_path, server.kubeconfig(url))
            await lines_until(process, "done quick")
            process.send_signal(signal.SIGTERM)
            out, err = await process.communicate()
            assert (process.returncode, out.decode().strip().splitlines()[-1:]) == (0, ["ended in order"]), err
            await client.create(ConfigMap(metadata=ObjectMeta(name="slow", namespace="default")))
            process = await start(tmp_path, server.kubeconfig(url))
            await lines_until(process, "begun slow")
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            out, _ = await process.communicate()
            assert process.returncode != 0
            assert b"ended in order" not in out


@pytest.mark.spec("R-01")
async def test_a_failed_start_prints_one_line_and_exits_with_a_status(tmp_path: Path) -> None:
    async with ApiServer() as server:
        kubeconfig = server.kubeconfig("http://127.0.0.1:9")
    process = await start(tmp_path, kubeconfig, KONVERGE_CACHE_SYNC_TIMEOUT="0.1", KONVERGE_LOG_FORMAT="text")
    _, err = await process.communicate()
    assert process.returncode == 1
    warning, last = err.decode().splitlines()
    assert last.startswith("test-operator: ")
    assert "127.0.0.1:9" in last
    assert "127.0.0.1:9" in warning
    assert "trying again" in warning


@pytest.mark.spec("O-60")
async def test_lines_are_json_where_there_is_no_terminal(tmp_path: Path) -> None:
    async with ApiServer() as server:
        kubeconfig = server.kubeconfig("http://127.0.0.1:9")
    process = await start(tmp_path, kubeconfig, KONVERGE_CACHE_SYNC_TIMEOUT="0.1")
    _, err = await process.communicate()
    assert process.returncode == 1
    assert [json.loads(line)["level"] for line in err.splitlines()] == ["warning", "error"]


@pytest.mark.spec("O-60")
async def test_a_program_with_logs_of_its_own_keeps_them(tmp_path: Path) -> None:
    async with ApiServer() as server:
        kubeconfig = server.kubeconfig("http://127.0.0.1:9")
    own = "import logging; logging.basicConfig(format='own %(levelname)s %(message)s', level='INFO')"
    process = await start(tmp_path, kubeconfig, own, KONVERGE_CACHE_SYNC_TIMEOUT="0.1", KONVERGE_LOG_LEVEL="debug")
    _, err = await process.communicate()
    assert process.returncode == 1
    warning, last = err.decode().splitlines()
    assert warning.startswith("own WARNING ")
    assert last.startswith("test-operator: ")


@pytest.mark.spec("O-60")
async def test_a_variable_for_the_logs_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    process = await start(tmp_path, {}, KONVERGE_LOG_LEVEL="loud")
    _, err = await process.communicate()
    assert process.returncode == 1
    assert err.decode().strip() == (
        "test-operator: KONVERGE_LOG_LEVEL must be debug, info, warning or error, not 'loud'"
    )


PROMPT = """
import asyncio, threading
from konverge import Context, Controller, Manager
from konverge.objects.kinds.core_v1 import ConfigMap

async def reconcile(ctx: Context[ConfigMap]) -> None:
    print("begun", flush=True)
    {work}

Manager(name="test-operator").add(Controller(ConfigMap, reconcile, namespaces=("default",))).run()
"""


@pytest.mark.spec("R-04", "O-65")
@pytest.mark.parametrize("work", ["pass", "await asyncio.Event().wait()", "await asyncio.to_thread(forever)"])
async def test_no_number_of_signals_at_any_time_prints_a_traceback(tmp_path: Path, work: str) -> None:
    program = PROMPT.replace("{work}", work).replace("Manager(", "forever = threading.Event().wait\nManager(", 1)
    async with ApiServer() as server:
        kubeconfig = server.kubeconfig(await server.listen())
        async with Client(server.transport, credentials=Static.bearer(server.token)) as client:
            await client.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default")))
        for seed in range(TRIES):
            rng = random.Random(seed)
            process = await start(tmp_path, kubeconfig, program=program, KONVERGE_LOG_FORMAT="text")
            await lines_until(process, "begun")
            # Two of a kind may arrive as one: the first two differ.
            numbers = rng.sample((signal.SIGTERM, signal.SIGINT), 2) + [signal.SIGTERM] * rng.choice((0, 1))
            for number in numbers:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, number)  # process.send_signal may take the exit status for itself
                await asyncio.sleep(rng.choice((0, 0, 0.0005, 0.01, 0.05)))
            _, err = await process.communicate()
            assert "Traceback" not in err.decode(), (seed, err.decode())
            # At its very end the interpreter gives up its handlers: then the signal itself ends the process.
            assert process.returncode in (0, 143, 130, -15, -2), (seed, process.returncode, err.decode())
            if work != "pass":
                assert process.returncode != 0
