"""A small operator, run as a child process: for each ConfigMap `first` it makes two others. Settings: its environment.

It reads by lists, over and over; writes are what the tests look at.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from konverge.client import AlreadyExists, Client, ClientError, Conflict, MergePatch, NotFound
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap

SETTING = os.environ.get("SETTING", "")
HELD: list[socket.socket] = []


def hold_pipe() -> None:
    """Whoever reads this pipe gets our parent, and sees the end when this process and its child are gone."""
    if path := os.environ.get("PIPE"):
        pipe = os.open(path, os.O_WRONLY)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], pass_fds=(pipe,))
        os.write(pipe, b"%d\n" % os.getppid())


async def lead(client: Client) -> None:
    """Until the Lease is free."""
    me = f"holder-{os.getpid()}"
    while True:
        try:
            lease: Any = await client.get(Lease, "leader", "default")
        except NotFound:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}}
            await client.create({**body, "spec": {"holderIdentity": me}}, "default")
            return
        if not lease.spec.holder_identity:
            await client.patch(Lease, "leader", MergePatch({"spec": {"holderIdentity": me}}), "default")
            return
        await asyncio.sleep(0.05)


def facts() -> dict[str, str]:
    """What this process sees of the machine."""
    outside = "reached"
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=0.2)
    except OSError as error:
        outside = type(error).__name__ + " " + os.strerror(error.errno or 0)
    mounted = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    token = mounted.with_name("token")
    return {
        "token": token.read_text()[:4] if token.exists() else "",
        "environment": json.dumps(dict(os.environ)),
        "outside": outside,
        "namespace": mounted.read_text() if mounted.exists() else "",
        "pid": str(os.getpid()),
    }


async def ensure(client: Client, name: str, data: dict[str, str]) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}
    try:
        await client.create(obj)
    except (AlreadyExists, Conflict):
        if SETTING == "no-ops":
            await client.patch(ConfigMap, name, MergePatch({"metadata": {"labels": {"absent": None}}}), "default")


async def main() -> None:
    hold_pipe()
    if "PORT" in os.environ:
        HELD.append(socket.create_server(("127.0.0.1", int(os.environ["PORT"]))))
    async with Client.connect() as client:
        if SETTING == "elected":
            await lead(client)
        while True:
            present = {item.metadata.name: item.data or {} for item in (await client.list(ConfigMap, "default")).items}
            if "first" in present:
                asked = present["first"]
                if SETTING == "panic" or (SETTING == "panic if asked" and asked.get("mistake")):
                    raise RuntimeError("the program has a mistake")
                if SETTING == "panic later" and "number" in asked:
                    raise RuntimeError("the program has a mistake")
                await ensure(client, "second", facts())
                await ensure(client, "third", {"of": "first"})
                if "also" in asked:
                    await ensure(client, asked["also"], {"of": "first"})
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClientError as failure:
        print("refused:", failure, flush=True)
        sys.exit(3)
