"""Manifests in a cluster: their order, what a second time changes, and what may be removed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.applied_manifests import INVENTORY, MARK, Applied, install_order, inventory_key
from konverge.cli.manifest_files import Manifest
from konverge.client import Client, MergePatch, NotFound, Static
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace
from konverge.operators.catalog import find

WEBAPP = find("webapp")
SOURCES = ("app.yaml",)


def config_map(name: str, namespace: str = "", **data: str) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def manifests(*objects: dict[str, Any]) -> list[Manifest]:
    return [Manifest(obj, "app.yaml") for obj in objects]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as made:
        await made.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}, field_manager="test"
        )
        yield made


async def config_maps(client: Client, namespace: str = "default") -> dict[str, dict[str, str]]:
    listed = await client.list(ConfigMap, namespace)
    return {item.metadata.name or "": dict(item.data or {}) for item in listed}


@pytest.mark.spec("O-23")
def test_definitions_and_namespaces_come_first_and_custom_resources_last() -> None:
    kinds = ["WebApp", "Deployment", "Secret", "Service", "Namespace", "CustomResourceDefinition", "ServiceAccount"]
    ordered = install_order(manifests(*({"kind": kind} for kind in kinds)))
    assert [manifest.obj["kind"] for manifest in ordered] == [
        "CustomResourceDefinition",
        "Namespace",
        "ServiceAccount",
        "Secret",
        "Service",
        "Deployment",
        "WebApp",
    ]


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_custom_resources_are_applied_with_their_definition_and_namespace(client: Client) -> None:
    webapp = {
        "apiVersion": "apps.konverge.dev/v1",
        "kind": "WebApp",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"image": "nginx:1.27"},
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    outcome = await Applied(client, SOURCES).apply(manifests(webapp, space, *WEBAPP.definitions()), remove=True)
    assert outcome.errors == []
    assert (await client.get("webapps", "web", "shop"))["spec"]["image"] == "nginx:1.27"
    assert "webapp/web -n shop" in outcome.summary()


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_a_second_time_writes_only_what_changed_and_removes_what_is_gone(client: Client) -> None:
    applied = Applied(client, SOURCES)
    await applied.apply(manifests(config_map("a", x="1"), config_map("b", x="1"), config_map("c", x="1")), remove=True)
    outcome = await applied.apply(manifests(config_map("a", x="1"), config_map("b", x="2")), remove=True)
    assert outcome.created == []
    assert [identity.name for identity in outcome.changed] == ["b"]
    assert [identity.name for identity in outcome.removed] == ["c"]
    assert await config_maps(client) == {"a": {"x": "1"}, "b": {"x": "2"}}
    assert (
        (await applied.apply(manifests(config_map("a", x="1"), config_map("b", x="2")), remove=True))
        .summary()
        .endswith("no change")
    )


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_the_file_wins_over_what_others_set_but_only_in_what_it_says(client: Client) -> None:
    applied = Applied(client, SOURCES)
    await applied.apply(manifests(config_map("a", x="1")), remove=True)
    patch = MergePatch({"data": {"x": "by hand", "y": "by hand"}})
    await client.patch(ConfigMap, "a", patch, "default", field_manager="kubectl")
    await applied.apply(manifests(config_map("a", x="1")), remove=True)
    assert await config_maps(client) == {"a": {"x": "1", "y": "by hand"}}


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_another_process_knows_what_was_applied(client: Client) -> None:
    await Applied(client, SOURCES).apply(manifests(config_map("a"), config_map("b")), remove=True)
    outcome = await Applied(client, SOURCES).apply(manifests(config_map("b")), remove=True)
    assert [identity.name for identity in outcome.removed] == ["a"]


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_what_was_there_before_is_never_removed(client: Client) -> None:
    await client.create(config_map("precious", "default", y="theirs"))
    applied = Applied(client, SOURCES)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}}
    await applied.apply(manifests(space, config_map("precious", x="ours")), remove=True)
    assert (await config_maps(client))["precious"] == {"x": "ours", "y": "theirs"}
    outcome = await applied.apply(manifests(config_map("other")), remove=True)
    assert outcome.removed == []
    assert "precious" in await config_maps(client)
    assert (await client.get(Namespace, "default")).metadata.name == "default"


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_one_that_the_user_took_over_is_not_removed(client: Client) -> None:
    applied = Applied(client, SOURCES)
    await applied.apply(manifests(config_map("a")), remove=True)
    await client.patch(ConfigMap, "a", MergePatch({"metadata": {"annotations": {MARK: None}}}), "default")
    assert (await applied.apply(manifests(config_map("other")), remove=True)).removed == []
    assert "a" in await config_maps(client)


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_one_that_was_deleted_and_made_again_by_others_is_not_removed(client: Client) -> None:
    applied = Applied(client, SOURCES)
    await applied.apply(manifests(config_map("a")), remove=True)
    await client.delete(ConfigMap, "a", "default")
    await client.create(config_map("a", "default", y="theirs"))
    assert (await applied.apply(manifests(config_map("other")), remove=True)).removed == []
    assert (await config_maps(client))["a"] == {"y": "theirs"}


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_an_object_that_is_refused_stops_no_other_and_nothing_is_removed(client: Client) -> None:
    applied = Applied(client, SOURCES)
    await applied.apply(manifests(config_map("old")), remove=True)
    unknown = {"apiVersion": "shop.example.com/v1", "kind": "Basket", "metadata": {"name": "x"}}
    outcome = await applied.apply(manifests(config_map("bad", x=5), unknown, config_map("new")), remove=True)  # type: ignore[arg-type]
    assert [("ConfigMap bad" in error, "Basket x" in error) for error in outcome.errors] == [
        (True, False),
        (False, True),
    ]
    assert all(error.startswith("app.yaml: ") for error in outcome.errors)
    assert {*await config_maps(client)} == {"old", "new"}
    outcome = await applied.apply(manifests(config_map("new")), remove=True)
    assert [identity.name for identity in outcome.removed] == ["old"], "it is still known"


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_a_crash_between_two_writes_forgets_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    applied = Applied(client, SOURCES)
    await applied.apply(manifests(config_map("a"), config_map("b")), remove=True)

    async def crash(*arguments: Any) -> None:
        raise RuntimeError("crash")

    monkeypatch.setattr(applied, "_remove", crash)
    with pytest.raises(RuntimeError):
        await applied.apply(manifests(config_map("c")), remove=True)
    outcome = await Applied(client, SOURCES).apply(manifests(config_map("other")), remove=True)
    assert {identity.name for identity in outcome.removed} == {"a", "b", "c"}
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a", "default")
    written = (await client.get(ConfigMap, INVENTORY[1], INVENTORY[0])).data
    assert written == {inventory_key(SOURCES): '[["v1", "ConfigMap", "default", "other"]]'}


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_what_came_from_other_sources_is_never_removed(client: Client) -> None:
    await Applied(client, ["a.yaml"]).apply(manifests(config_map("a"), config_map("both")), remove=False)
    other = Applied(client, ["b.yaml"])
    await other.apply(manifests(config_map("b1"), config_map("b2"), config_map("both")), remove=True)
    outcome = await other.apply(manifests(config_map("b2")), remove=True)
    assert [identity.name for identity in outcome.removed] == ["b1"]
    assert {*await config_maps(client)} == {"a", "both", "b2"}
    outcome = await Applied(client, ["a.yaml"]).apply(manifests(config_map("both")), remove=True)
    assert [identity.name for identity in outcome.removed] == ["a"], "its own inventory is still there"


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_nothing_is_removed_unless_asked_for_or_when_no_object_was_read(client: Client) -> None:
    applied = Applied(client, SOURCES)
    await applied.apply(manifests(config_map("a"), config_map("b")), remove=False)
    assert (await applied.apply([], remove=True)).removed == []
    assert (await applied.apply(manifests(config_map("b")), remove=False)).removed == []
    assert {*await config_maps(client)} == {"a", "b"}
    outcome = await applied.apply(manifests(config_map("b")), remove=True)
    assert [identity.name for identity in outcome.removed] == ["a"], "it is still known"


def test_sources_are_the_same_in_any_order_and_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert inventory_key(["a.yaml", str(tmp_path / "b"), "-"]) == inventory_key(["-", "b", str(tmp_path / "a.yaml")])
    assert len({inventory_key(sources) for sources in (["a"], ["b"], ["a", "b"], ["-"], [str(tmp_path / "-")])}) == 5
