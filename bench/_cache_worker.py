"""One cache in a process of its own: how much memory it takes. Started by `bench cache`, beside its peers.

The process connects and fills a small cache first, so that what every program pays once is not counted.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from konverge.bulk_load import bulk_load
from konverge.cache import CacheSpec, Informer
from konverge.client import Client, load_config
from konverge.objects.kinds.core_v1 import Namespace, Secret
from konverge.objects.meta import Object

SETTLE = 5.0
"""Seconds after the sync, for every peer: by then a collector has returned what it returns."""


class SecretType(Object):
    """The projection: all but the content."""

    resource = Secret.resource
    type: str = ""


def content_sizes(secret: dict[str, Any]) -> dict[str, Any]:
    """The transform: the content replaced by its sizes."""
    secret["data"] = {name: str(len(value)) for name, value in secret.get("data", {}).items()}
    return secret


FORMS: dict[str, dict[str, Any]] = {
    "whole": {},
    "metadata only": {"metadata_only": True},
    "projection": {"projection": SecretType},
    "transform": {"transform": content_sizes},
}


def resident(key: str) -> float:
    """MB; VmRSS (now) or VmHWM (at most)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


async def main(form: str, namespace: str) -> None:
    async with Client.connect(load_config(kubeconfig=Path(os.environ["KUBECONFIG"]))) as client:
        small = Informer(client.caller, CacheSpec(resource=Namespace.resource, **_without_class(form)))
        large = Informer(client.caller, CacheSpec(resource=Secret.resource, namespaces=(namespace,), **FORMS[form]))
        tasks = [asyncio.create_task(small.run())]
        await small.synced.wait()
        gc.collect()
        before, began = resident("VmRSS"), time.process_time()
        tasks.append(asyncio.create_task(large.run()))
        with bulk_load(lambda: True):
            await large.synced.wait()
        cpu = time.process_time() - began
        await asyncio.sleep(SETTLE)
        growth = {"memory": resident("VmRSS") - before, "peak": resident("VmHWM") - before, "cpu": cpu}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps({**growth, "objects": large.count}))


def _without_class(form: str) -> dict[str, Any]:
    return {} if form == "projection" else FORMS[form]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
