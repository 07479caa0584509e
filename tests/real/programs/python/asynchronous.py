"""A user of the API by kubernetes_asyncio: apply, watch, scale, delete."""

from __future__ import annotations

import asyncio

from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException
from steps import DEPLOYMENT, done

NAMESPACE = "asyncio-client"


async def first_with(core: client.CoreV1Api, version: str, label: str) -> str:
    async with watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version=version, timeout_seconds=120
    ) as stream:
        async for event in stream:
            if label in (event["object"].metadata.labels or {}):
                return str(event["type"])
    raise AssertionError("the watch ended")


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as api:
        core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
        await core.create_namespace({"metadata": {"name": NAMESPACE}})
        await apps.create_namespaced_deployment(NAMESPACE, DEPLOYMENT)
        await apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 2}})
        assert (await apps.read_namespaced_deployment("web", NAMESPACE)).spec.replicas == 2
        done("scale")
        made = await core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "m"}})
        follower = asyncio.create_task(first_with(core, made.metadata.resource_version, "seen"))
        await core.patch_namespaced_config_map("m", NAMESPACE, {"metadata": {"labels": {"seen": "yes"}}})
        assert await follower == "MODIFIED"
        done("watch")
        await apps.delete_namespaced_deployment("web", NAMESPACE)
        try:
            await apps.read_namespaced_deployment("web", NAMESPACE)
        except ApiException as error:
            code = error.status
        else:
            code = 200
        assert code == 404
        done("delete")


asyncio.run(main())
