"""WebApps of the first release under this one."""

from __future__ import annotations

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.operators.webapp import WebApp
from tests.operators.first_release.upgrade import NEW, OLD, SPACE, an_upgrade

pytestmark = [pytest.mark.virtual, pytest.mark.limit(60), pytest.mark.spec("A-13")]


@pytest.mark.parametrize("definitions", [OLD, NEW])
async def test_each_is_changed_scaled_and_deleted(definitions: str) -> None:
    async with an_upgrade("webapp", definitions) as upgrade, upgrade.operating():
        client = upgrade.client
        await client.patch(WebApp, "hello", MergePatch({"spec": {"image": "nginx:1.28"}}), SPACE)
        await client.patch(WebApp.resource, "none", MergePatch({"spec": {"replicas": 1}}), SPACE, subresource="scale")
        await client.patch(WebApp, "shop", MergePatch({"spec": {"env": {"PORT": None}}}), SPACE)
        await upgrade.rest()
        hello = (await client.get(Deployment, "hello", SPACE)).spec.template.spec.containers[0]
        shop = (await client.get(Deployment, "shop", SPACE)).spec.template.spec.containers[0]
        assert (hello.image, [item.name for item in shop.env]) == ("nginx:1.28", ["MODE"]), "a field is taken back"
        ready = {app.metadata.name: app.status.ready_replicas for app in await client.list(WebApp, SPACE)}
        assert ready == {"hello": 3, "none": 1, "shop": 3}
        for name in ready:
            await client.delete(WebApp, name, SPACE)
        await upgrade.rest()
        left = {key for table, key in upgrade.objects() if table in ("/pods", "/services", "apps/deployments")}
        assert (upgrade.own(), left) == ({}, {"default/kubernetes"})


async def test_the_way_back_changes_nothing() -> None:
    async with an_upgrade("webapp", NEW) as upgrade:
        async with upgrade.operating():
            await upgrade.rest()
        before = upgrade.objects()
        await upgrade.put_back_definitions()
        async with upgrade.operating():
            await upgrade.rest()
            assert upgrade.writes() == []
        assert upgrade.objects() == before
