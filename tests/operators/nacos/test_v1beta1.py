"""The two versions of the resource, on the embedded API server: no sockets, no certificates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from konverge.apiserver import ApiServer
from konverge.cli.charts import chart
from konverge.cli.installation import Installation
from konverge.client import Client
from konverge.objects import Conversions
from konverge.operators.catalog import find
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.v1beta1 import VERSIONS, NacosV1Beta1
from konverge.runtime.webhooks import InProcess
from konverge.testing import assert_round_trips
from tests.operators.nacos import versions_contract as contract
from tests.operators.nacos.test_status import kstatus, wait_is_over
from tests.operators.nacos.world import EMBEDDED, SPACE, World, a_world

BOTH = Conversions(*VERSIONS)
ALPHA, BETA = contract.ALPHA.api_version, contract.BETA.api_version


@asynccontextmanager
async def converting(server: ApiServer, client: Client) -> AsyncIterator[None]:
    declared = contract.converter()
    assert declared.webhooks is not None
    webhooks = replace(declared.webhooks, place=InProcess(transports=server.webhooks.in_process))
    async with declared.bound_to(client, webhooks=webhooks).running():
        yield


# ------------------------------------------------------------------ the conversion by itself


@pytest.mark.spec("N-25")
@pytest.mark.limit(120)
def test_every_object_survives_both_ways() -> None:
    simple = {"spec.affinity": st.none(), "spec.volume.volumeClaimTemplate": st.none()}
    probes = {f"spec.{name}Probe": st.none() for name in ("liveness", "readiness", "startup")}
    contexts = {"spec.securityContext": st.none(), "spec.podSecurityContext": st.none()}
    same = {"spec.env": st.just([]), "spec.tolerations": st.just([]), **simple, **probes, **contexts}
    assert_round_trips(*VERSIONS, fields={Nacos: same, NacosV1Beta1: same}, examples=40)


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        yield from leaves(part, f"{path}.{name}")
    if "items" in schema:
        yield from leaves(schema["items"], f"{path}[]")
    if not ("properties" in schema or "properties" in schema.get("items", {})):
        yield path


MOVED = {
    ".spec.function_mode": ".spec.functionMode",
    ".spec.certification.token_expire_seconds": ".spec.certification.tokenExpireSeconds",
    ".spec.certification.cache_enabled": ".spec.certification.cacheEnabled",
    **{
        f".status.conditions[].{old}": f".status.servers[].{new}"
        for old, new in (
            ("type", "role"),
            ("status", "ready"),
            ("reason", "reason"),
            ("message", "message"),
            ("instance", "address"),
            ("hostIP", "hostIP"),
            ("podName", "name"),
            ("nodeName", "nodeName"),
        )
    },
}
ONLY_REPEATED = {".status.conditions[].lastTransitionTime", ".status.conditions[].observedGeneration"}


def moved(path: str) -> str:
    for old, new in ((".status.event[]", ".status.events[]"), (".status.kubeConditions[]", ".status.conditions[]")):
        if path.startswith(old):
            return new + path.removeprefix(old)
    return MOVED.get(path, path)


@pytest.mark.spec("N-24")
def test_v1beta1_has_a_place_for_every_field() -> None:
    """Else a field that is added to one version would only travel in an annotation."""
    definition = find("nacos").definitions()[0]
    old, new = ({*leaves(version["schema"]["openAPIV3Schema"])} for version in definition["spec"]["versions"])
    assert {moved(path) for path in old - ONLY_REPEATED} == new


@pytest.mark.spec("N-25")
@pytest.mark.parametrize(
    "content",
    [
        {},
        {"spec": None, "status": None},
        {"spec": [], "status": "x"},
        {"spec": {"certification": 3, "function_mode": None}},
        {"spec": {"certification": {"token_expire_seconds": "soon"}}},
        {"spec": {"certification": {"token_expire_seconds": 5}}},
        {"status": {"conditions": "none", "kubeConditions": [None, 1], "event": {}}},
        {"status": {"conditions": [{"podName": 1}, {"podName": "a", "instance": None}]}},
    ],
    ids=str,
)
def test_whatever_is_stored_can_be_shown(content: dict[str, Any]) -> None:
    stored = {"apiVersion": ALPHA, "kind": "Nacos", "metadata": {"name": "n", "uid": "u"}, **content}
    shown = BOTH.convert(stored, BETA)
    assert shown["metadata"]["uid"] == "u"
    BOTH.convert(shown, ALPHA)


@pytest.mark.spec("N-25")
def test_fields_of_a_newer_release_are_carried_over() -> None:
    obj = contract.alpha("n", future={"a": 1}, volume={"future": 2})
    shown = BOTH.convert({**obj, "status": {"future": 3}}, BETA)
    assert (shown["spec"]["future"], shown["spec"]["volume"]["future"], shown["status"]["future"]) == ({"a": 1}, 2, 3)
    back = BOTH.convert(shown, ALPHA)
    assert (back["spec"]["future"], back["spec"]["volume"]["future"], back["status"]["future"]) == ({"a": 1}, 2, 3)


# ------------------------------------------------------------------ on a server


@pytest.mark.virtual
@pytest.mark.spec("N-26")
async def test_both_versions_are_served(server: ApiServer, client: Client) -> None:
    await contract.define(client)
    async with converting(server, client):
        await contract.served(client)
        await contract.written_and_read_in_both(client)
        await contract.patched_in_both(client)
        await contract.two_writers_in_different_versions(client)
        await contract.applied_in_both(client)
        await contract.listed_and_watched_in_both(client)
        await contract.refused_in_both(client)


@pytest.mark.virtual
@pytest.mark.spec("N-27")
async def test_objects_from_before_and_the_way_back(server: ApiServer, client: Client) -> None:
    await contract.before_there_were_versions(client)
    await contract.define(client)
    async with converting(server, client):
        await contract.after_there_are_versions(client)
        await contract.back_to_the_earlier_release(client)


@pytest.mark.virtual
@pytest.mark.spec("N-28")
async def test_the_strategy_none_loses_data(server: ApiServer, client: Client) -> None:
    await contract.define(client)
    async with converting(server, client):
        await contract.served(client)
        await contract.the_strategy_none_loses_data(client)


@pytest.mark.spec("N-28")
def test_the_definition_always_names_a_webhook() -> None:
    operator = find("nacos")
    plain = operator.definitions()[0]
    installed = Installation(operators=[operator], namespace="tools").everything()
    files = chart(operator, "1.2.3")
    charted = yaml.safe_load(files["definitions/nacos.nacos.io.yaml"])
    manifest = next(obj for obj in installed if obj["kind"] == "CustomResourceDefinition")
    for definition in (plain, manifest, charted):
        assert [(v["name"], v["storage"]) for v in definition["spec"]["versions"]] == [
            ("v1alpha1", True),
            ("v1beta1", False),
        ]
        assert definition["spec"]["conversion"]["strategy"] == "Webhook"
    service = manifest["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
    assert (service["name"], service["namespace"]) == ("nacos-operator-webhook", "tools")
    assert ("Service", "nacos-operator-webhook") in {(obj["kind"], obj["metadata"]["name"]) for obj in installed}
    assert not [path for path in files if path.startswith("crds/nacos.nacos.io")], "Helm would not put the Service in"


@pytest.mark.virtual
@pytest.mark.spec("N-29")
async def test_without_the_operator(server: ApiServer, client: Client) -> None:
    await contract.define(client)
    await contract.served(client)
    await contract.without_the_operator(client)
    async with converting(server, client):
        await contract.with_the_operator_again(client)


# ------------------------------------------------------------------ with the operator


async def in_v1beta1(world: World) -> dict[str, Any]:
    return await world.client.get(contract.BETA, "nacos", SPACE)


@pytest.mark.virtual
@pytest.mark.spec("N-24")
async def test_kubectl_and_kstatus_understand_v1beta1() -> None:
    async with a_world(versions=True) as world, world.operating():
        await world.client.create(contract.beta("nacos", **EMBEDDED))
        seen = set()
        while (state := kstatus(obj := await in_v1beta1(world))) != "Current":
            assert not wait_is_over(obj)
            seen.add(state)
            await world.advance(1.0)
        assert seen == {"InProgress"}
        assert wait_is_over(obj)
        types = [entry["type"] for entry in obj["status"]["conditions"]]
        assert len(types) == len(set(types))
        assert {"Ready", "Available", "Progressing", "Degraded", "Reconciling", "Stalled"} <= set(types)
        assert all(entry["observedGeneration"] == 1 for entry in obj["status"]["conditions"])
        assert [(server["name"], server["role"]) for server in obj["status"]["servers"]] == [
            ("nacos-0", "leader"),
            ("nacos-1", "follower"),
            ("nacos-2", "follower"),
        ]
        assert "annotations" not in obj["metadata"]
        version = obj["metadata"]["resourceVersion"]
        await world.advance(300.0)
        assert (await in_v1beta1(world))["metadata"]["resourceVersion"] == version, "a write without a cause"


@pytest.mark.virtual
@pytest.mark.spec("N-29")
async def test_the_operator_needs_no_conversion() -> None:
    """With the definition of both versions and nobody who converts, it works as ever: it reads what is stored."""
    async with a_world(versions=True) as world:
        world.versions = False
        async with world.operating():
            await world.up("nacos", EMBEDDED)
            await world.update("nacos", replicas=5)
        world.versions = True
        async with world.operating():
            assert kstatus(await in_v1beta1(world)) == "Current"
