"""Configurations that are declared: published, rolled back, watched for drift, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Invalid, MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap
from tests.operators.nacos.content.world import APP, SECOND, THIRD, a_nacos
from tests.operators.nacos.world import SPACE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-31")]
CONFIG = "NacosConfig"


@pytest.mark.parametrize("spec", [SECOND, THIRD], ids=["2.x", "3.x"])
async def test_a_configuration_is_published_changed_and_deleted(spec: dict[str, Any]) -> None:
    async with a_nacos(spec) as content:
        await content.config()
        config = await content.until(CONFIG, "app")
        stored = await content.stored()
        assert stored is not None
        assert (stored.content, stored.type) == ("a: 1", "yaml")
        assert (config.status.ownership, config.status.revision, config.status.md5) == ("Created", 1, stored.md5)

        await content.change(CONFIG, "app", content="a: 2")
        assert await content.content() == "a: 2"
        config = await content.get(CONFIG, "app")
        assert [version.revision for version in config.status.history] == [1, 2]

        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        assert await content.content() is None


async def test_nothing_is_written_while_all_is_as_declared() -> None:
    async with a_nacos() as content:
        await content.config()
        before = await content.until(CONFIG, "app")
        await content.world.advance(1000.0)
        after = await content.get(CONFIG, "app")
        assert after.metadata.resource_version == before.metadata.resource_version
        assert content.writes_of() == [("I", "a: 1")]


async def test_content_follows_a_config_map_and_a_secret() -> None:
    async with a_nacos() as content:
        await content.create(CONFIG, "app", dataId="app.yaml", configMapKeyRef={"name": "source", "key": "app"})
        await content.create(CONFIG, "keys", dataId="keys", secretKeyRef={"name": "keys", "key": "text"})
        await content.until(CONFIG, "app", "SourceMissing")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source", "namespace": SPACE}}
        await content.world.client.create({**body, "data": {"app": "one"}})
        await content.world.secret("keys", text="hidden-1")
        await content.until(CONFIG, "app")
        await content.until(CONFIG, "keys")
        assert await content.content() == "one"

        await content.world.client.patch(ConfigMap, "source", MergePatch({"data": {"app": "two"}}), SPACE)
        await content.world.advance(2.0)
        assert await content.content() == "two"
        config = await content.get(CONFIG, "keys")
        assert "hidden-1" not in str(config)


@pytest.mark.parametrize("spec", [SECOND, THIRD], ids=["2.x", "3.x"])
@pytest.mark.spec("N-32")
async def test_an_earlier_revision_comes_back_until_the_spec_says_otherwise(spec: dict[str, Any]) -> None:
    async with a_nacos(spec) as content:
        await content.config()
        await content.until(CONFIG, "app")
        await content.change(CONFIG, "app", content="a: 2")
        await content.change(CONFIG, "app", rollbackTo=1)
        assert await content.content() == "a: 1"
        config = await content.get(CONFIG, "app")
        assert [(v.revision, v.rolled_back_to) for v in config.status.history] == [(1, 0), (2, 0), (3, 1)]

        await content.servers.publish(APP, "by hand", "yaml", "")
        await content.world.advance(300.0)
        assert await content.content() == "a: 1", "it is repaired from the history of the servers"

        await content.change(CONFIG, "app", rollbackTo=None)
        assert await content.content() == "a: 2"


@pytest.mark.spec("N-32")
async def test_a_revision_that_no_one_knows_changes_nothing() -> None:
    async with a_nacos() as content:
        await content.config()
        await content.until(CONFIG, "app")
        await content.change(CONFIG, "app", rollbackTo=7)
        await content.until(CONFIG, "app", "RevisionUnknown")
        assert await content.content() == "a: 1"


@pytest.mark.spec("N-32")
async def test_the_history_is_bounded_and_keeps_the_revision_in_use() -> None:
    async with a_nacos() as content:
        await content.config()
        await content.until(CONFIG, "app")
        for number in range(2, 15):
            await content.change(CONFIG, "app", content=f"a: {number}")
        config = await content.get(CONFIG, "app")
        assert [version.revision for version in config.status.history] == list(range(5, 15))
        await content.change(CONFIG, "app", rollbackTo=5)
        config = await content.get(CONFIG, "app")
        assert [version.revision for version in config.status.history] == list(range(5, 16))
        assert await content.content() == "a: 5"


@pytest.mark.spec("N-33")
@pytest.mark.parametrize("policy", ["Repair", "Report"])
async def test_a_change_of_others_is_repaired_or_reported(policy: str) -> None:
    async with a_nacos() as content:
        await content.config(driftPolicy=policy)
        await content.until(CONFIG, "app")
        await content.servers.publish(APP, "by hand", "yaml", "")
        await content.world.advance(300.0)
        assert len(await content.world.events("Drifted")) == 1
        if policy == "Repair":
            assert await content.content() == "a: 1"
            assert await content.ready(CONFIG, "app") == ("True", "Applied")
            return
        assert await content.content() == "by hand"
        assert await content.ready(CONFIG, "app") == ("False", "Drifted")
        await content.change(CONFIG, "app", content="a: 2")
        assert await content.content() == "a: 2", "a newer spec is published"
        assert await content.ready(CONFIG, "app") == ("True", "Applied")


@pytest.mark.spec("N-33")
async def test_content_that_was_lost_comes_back() -> None:
    async with a_nacos() as content:
        await content.config()
        await content.until(CONFIG, "app")
        await content.servers.delete_config(APP)
        await content.world.advance(300.0)
        assert await content.content() == "a: 1"
        assert (await content.get(CONFIG, "app")).status.revision == 1, "a repair is no new version"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataId": "other"}, "the dataId cannot change"),
        ({"group": "other"}, "the group cannot change"),
        ({"nacosRef": {"name": "other"}}, "the Nacos cannot change"),
        ({"configMapKeyRef": {"name": "a", "key": "b"}}, "give the content by one of"),
        ({"content": "x" * 102401}, "102400"),
        ({"dataId": "a b"}, "should match"),
    ],
)
async def test_what_the_schema_refuses(change: dict[str, Any], message: str) -> None:
    async with a_nacos() as content:
        config = await content.config()
        with pytest.raises(Invalid, match=message):
            await content.world.client.patch(type(config), "app", MergePatch({"spec": change}), SPACE)
