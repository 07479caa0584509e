"""An operator as a process: signals, exit status, one-line errors."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from konverge import ApiServer, Client, ObjectMeta
from konverge.client import Static
from konverge.objects.kinds.core_v1 import ConfigMap

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


async def start(folder: Path, kubeconfig: dict[str, object]) -> asyncio.subprocess.Process:
    (folder / "shop_operator.py").write_text(OPERATOR)
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(folder / "shop_operator.py"),
        env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig")},
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
    process = await start(tmp_path, kubeconfig)
    _, err = await process.communicate()
    assert process.returncode == 1
    assert err.decode().startswith("test-operator: ")
    assert "127.0.0.1:9" in err.decode()
    assert "Traceback" not in err.decode()
