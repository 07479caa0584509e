"""What users read of their content: events, conditions and the status, in the order of its life."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Event
from konverge.runtime import find_condition
from tests.operators.nacos.content.world import APP, ContentWorld, a_nacos
from tests.operators.nacos.world import SPACE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-31", "N-34")]
CONFIG = "NacosConfig"
NAMESPACE = "NacosNamespace"
APP_NAME = "configuration public/DEFAULT_GROUP/app.yaml"


async def events(content: ContentWorld, kind: str = CONFIG) -> list[tuple[str, str, str]]:
    """Type, reason and message, in the order in which they came."""
    await content.world.advance(2.0)
    listed = [event for event in await content.world.client.list(Event, SPACE) if event.involved_object.kind == kind]
    listed.sort(key=lambda event: int(event.metadata.resource_version or "0"))
    return [(event.type or "", event.reason or "", event.message or "") for event in listed]


async def condition(content: ContentWorld, type: str, name: str = "app", kind: str = CONFIG) -> tuple[str, str, str]:
    found = find_condition((await content.get(kind, name)).status.conditions, type)
    return ("", "", "") if found is None else (found.status, found.reason, found.message)


async def test_the_life_of_a_configuration() -> None:
    async with a_nacos() as content:
        nacos = await content.world.nacos("nacos")
        await content.config()
        config = await content.until(CONFIG, "app")
        assert await condition(content, "Ready") == ("True", "Applied", f"{APP_NAME} is as declared")
        assert await condition(content, "Drifted") == ("", "", ""), "nothing is said of what never was"
        status = config.status
        assert (status.ownership, status.nacos_uid, status.applying) == ("Created", nacos.metadata.uid, "")
        assert status.applied == f"{status.md5}:yaml"
        assert await events(content) == [("Normal", "Applied", f"{APP_NAME} is as declared")]

        await content.servers.publish(APP, "by hand", "yaml", "")
        await content.world.advance(300.0)
        assert await content.content() == "a: 1"
        assert (await events(content))[1:] == [
            ("Warning", "Drifted", f"{APP_NAME} was changed on the servers by others"),
            ("Normal", "Repaired", f"{APP_NAME} is as declared"),
        ]
        await content.delete(CONFIG, "app")
        assert (await events(content))[3:] == [("Normal", "Deleted", f"{APP_NAME} was deleted from the servers")]


async def test_what_is_reported_alone() -> None:
    async with a_nacos() as content:
        await content.config(driftPolicy="Report")
        await content.until(CONFIG, "app")
        await content.servers.delete_config(APP)
        await content.world.advance(300.0)
        gone = f"{APP_NAME} was deleted on the servers by others"
        assert await condition(content, "Drifted") == ("True", "Deleted", gone)
        assert await condition(content, "Ready") == ("False", "Drifted", f"{gone}; driftPolicy is Report")
        await content.servers.publish(APP, "by hand", "yaml", "")
        await content.world.advance(300.0)
        changed = f"{APP_NAME} was changed on the servers by others"
        assert await condition(content, "Drifted") == ("True", "Changed", changed)
        assert await content.world.events("Drifted") == [gone], "one event for as long as it lasts"
        await content.servers.publish(APP, "a: 1", "yaml", "")
        await content.world.advance(300.0)
        assert await condition(content, "Drifted") == ("False", "AsDeclared", "")
        assert await condition(content, "Ready") == ("True", "Applied", f"{APP_NAME} is as declared")


async def test_what_exists_as_declared_is_adopted_without_a_write() -> None:
    async with a_nacos() as content:
        nacos = await content.world.nacos("nacos")
        await content.servers.publish(APP, "a: 1", "yaml", "")
        await content.config(adopt=True, deletionPolicy="Delete")
        status = (await content.until(CONFIG, "app")).status
        assert (status.ownership, status.nacos_uid, status.revision) == ("Adopted", nacos.metadata.uid, 1)
        assert len(content.writes_of()) == 1, "there was nothing to write"
        assert await events(content) == [
            ("Normal", "Adopted", f"{APP_NAME} existed and was taken over"),
            ("Normal", "Applied", f"{APP_NAME} is as declared"),
        ]
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        assert await content.content() is None, "it is its own since then, and its policy says so"


async def test_what_stays_or_is_not_ours_is_said() -> None:
    async with a_nacos() as content:
        await content.config(deletionPolicy="Retain")
        await content.until(CONFIG, "app")
        await content.delete(CONFIG, "app")
        assert (await events(content))[-1] == ("Normal", "Retained", f"{APP_NAME} stays on the servers")
        await content.config(content="b: 1")
        await content.until(CONFIG, "app", "AlreadyExists")
        refused = (
            f"{APP_NAME} exists already and was not made by this resource; "
            "set spec.adopt: true to take it over, or delete one of them"
        )
        assert await condition(content, "Ready") == ("False", "AlreadyExists", refused)
        assert (await events(content))[-1] == ("Warning", "AlreadyExists", refused)
        await content.config("second")
        await content.until(CONFIG, "second", "Conflict")
        first = "NacosConfig default/app declares the same configuration"
        assert await condition(content, "Ready", "second") == ("False", "Conflict", first)
        assert (await content.get(CONFIG, "second")).status.ownership == ""


@pytest.mark.spec("N-30")
async def test_a_namespace_is_compared_by_both_of_its_texts() -> None:
    async with a_nacos() as content:
        await content.create(NAMESPACE, "dev", id="dev", title="Development", description="of developers")
        before = await content.until(NAMESPACE, "dev")
        await content.world.advance(1000.0)
        after = await content.get(NAMESPACE, "dev")
        assert after.metadata.resource_version == before.metadata.resource_version, "nothing is written again"
        for texts in (("Development", "of others"), ("Others", "of developers")):
            await content.servers.update_namespace("dev", *texts)
            await content.world.advance(300.0)
            space = (await content.servers.namespaces())["dev"]
            assert (space.namespace_show_name, space.namespace_desc) == ("Development", "of developers")
        await content.servers.publish(_in("dev"), "a: 1", "yaml", "")
        await content.delete(NAMESPACE, "dev")
        await content.until(NAMESPACE, "dev", "NotEmpty")
        assert await condition(content, "Ready", "dev", NAMESPACE) == (
            "False",
            "NotEmpty",
            "1 configurations are in namespace dev; deletionPolicy: Retain ends the wait",
        )
        await content.servers.delete_config(_in("dev"))
        await content.world.advance(30.0)
        assert await content.gone(NAMESPACE, "dev")


async def test_a_pause_is_said_and_taken_back() -> None:
    async with a_nacos() as content:
        config = await content.config()
        await content.until(CONFIG, "app")
        for value, said in (("True", ("True", "Annotation")), (None, ("False", "Resumed"))):
            patch = MergePatch({"metadata": {"annotations": {"nacos.io/pause-reconciliation": value}}})
            await content.world.client.patch(type(config), "app", patch, SPACE)
            await content.world.advance(2.0)
            assert (await condition(content, "Paused"))[:2] == said
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")


async def test_what_the_source_of_a_configuration_lacks_is_said() -> None:
    async with a_nacos() as content:
        client = content.world.client
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "namespace": SPACE}}
        await client.create({**body, "data": {"empty": "", "large": "ä" * 51201, "full": "ä" * 51200}})
        await content.world.secret("s", text="word")
        for name, source, key in (
            ("no-map", "configMapKeyRef", "absent"),
            ("no-secret", "secretKeyRef", "absent"),
            ("empty", "configMapKeyRef", "empty"),
            ("large", "configMapKeyRef", "large"),
            ("full", "configMapKeyRef", "full"),
        ):
            await content.create(CONFIG, name, dataId=name, **{source: {"name": "s", "key": key}})
        await content.until(CONFIG, "full")
        await content.world.advance(2.0)
        assert [
            (await condition(content, "Ready", name))[1:] for name in ("no-map", "no-secret", "empty", "large")
        ] == [
            ("SourceMissing", "there is no ConfigMap s with the key absent"),
            ("SourceMissing", "there is no Secret s with the key absent"),
            ("Empty", "the content is empty, and servers take no empty one"),
            ("TooLarge", "the content has more than the 102400 bytes that servers take"),
        ]


def _in(space: str) -> Any:
    return type(APP)(space, "DEFAULT_GROUP", "other.yaml")
