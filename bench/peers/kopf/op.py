"""The bench operator on kopf: create/update/resume handlers, a dict of the owned ConfigMaps, status by patch.

The documented way to a cache is kopf.index (op_index.py); its start-up is quadratic in the number of objects (every waiting
object is woken whenever one is indexed), so this one lists at start-up and keeps the dict fresh with kopf.on.event.
"""

import asyncio
import os
import time

import kopf
from kubernetes_asyncio import client, config

START = time.time()
GROUP = "bench.konverge.dev"
NS = os.environ.get("BENCH_NS", "bench")
TOTAL = int(os.environ.get("BENCH_N", "0"))
count = 0
configmaps: dict[str, str | None] = {}
# settings.queueing.worker_limit cannot serve as the limit on concurrent reconciles: a worker keeps its slot while it waits
# idle_timeout (5 s) for the next event of its object, so 16 slots would pass three objects a second.
limit = asyncio.Semaphore(16)
api: client.CoreV1Api


@kopf.on.startup()
async def startup(settings: kopf.OperatorSettings, **_):
    global api
    settings.posting.enabled = False
    settings.watching.label_selectors["v1", "configmaps"] = "app=bench"
    await config.load_kube_config()
    api = client.CoreV1Api(client.ApiClient())
    token = None
    while True:
        page = await api.list_namespaced_config_map(
            NS, label_selector="app=bench", limit=500, **({"_continue": token} if token else {})
        )
        configmaps.update((cm.metadata.name, (cm.data or {}).get("payload")) for cm in page.items)
        token = page.metadata._continue
        if not token:
            break


@kopf.on.event("configmaps", labels={"app": "bench"})
async def owned(type, name, body, **_):
    if type == "DELETED":
        configmaps.pop(name, None)
    else:
        configmaps[name] = body.get("data", {}).get("payload")


@kopf.on.resume(GROUP, "v1", "benches")
@kopf.on.create(GROUP, "v1", "benches")
@kopf.on.update(GROUP, "v1", "benches")
async def reconcile(name, namespace, spec, meta, status, body, patch, **_):
    global count
    async with limit:
        payload = spec.get("payload", "")
        if name not in configmaps:
            cm = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"app": "bench"}},
                "data": {"payload": payload},
            }
            kopf.append_owner_reference(cm, owner=body)
            try:
                await api.create_namespaced_config_map(namespace, cm)
            except client.ApiException as e:
                if e.status != 409:
                    raise
        elif configmaps[name] != payload:
            await api.patch_namespaced_config_map(name, namespace, {"data": {"payload": payload}})
    if status.get("phase") != "Ready" or status.get("observedGeneration") != meta["generation"]:
        patch.status["phase"] = "Ready"
        patch.status["observedGeneration"] = meta["generation"]
    count += 1
    if count == TOTAL:
        print(f"ALLSYNCED {count} {time.time() - START:.3f}s", flush=True)
