"""Answers that once differed from kube-apiserver's in small ways; tests/real/test_small_differences.py asks both."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import AuthSettings, Config
from konverge.wire.message import Headers
from tests.apiserver.api import MERGE, Api
from tests.apiserver.definitions import DEFINITIONS, define
from tests.apiserver.test_held_by_custom_resources import STACKS, wide
from tests.apiserver.test_held_by_forms import PROTOBUF, member, varint

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
QUESTION = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (ACCESS, QUESTION),
        ("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}),
        ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
        ("/api/v1/namespaces/default/serviceaccounts/default/token", {}),
    ],
)
@pytest.mark.spec("S-11")
async def test_reviews_have_no_table(api: Api, path: str, body: Any) -> None:
    answer = await api.call("POST", path, body, accept=TABLE, expect=406)
    assert answer["message"] == (
        "only the following media types are accepted: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


@pytest.mark.spec("S-11")
async def test_reviews_have_other_forms(api: Api) -> None:
    answer = await api.call("POST", ACCESS, QUESTION, accept=f"{TABLE},application/json")
    assert (answer["kind"], answer["status"]) == ("SelfSubjectAccessReview", {"allowed": True})
    answer = await api.call("POST", ACCESS, QUESTION, accept=PARTIAL)
    assert (answer["kind"], "status" in answer) == ("PartialObjectMetadata", False)


@pytest.mark.spec("S-11")
async def test_component_statuses_in_every_form(api: Api) -> None:
    path = "/api/v1/componentstatuses"
    table = await api.call("GET", path, accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Status", "Message", "Error"]
    assert table["rows"][2]["cells"] == ["etcd-0", "Healthy", "ok", ""]
    single = await api.call("GET", f"{path}/etcd-0", accept=TABLE)
    assert [row["cells"][0] for row in single["rows"]] == ["etcd-0"]
    metadata = await api.call("GET", path, accept=PARTIAL.replace("Metadata;", "MetadataList;"))
    assert metadata["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in metadata["items"]] == ["scheduler", "controller-manager", "etcd-0"]
    assert (await api.call("GET", f"{path}/etcd-0"))["conditions"][0]["type"] == "Healthy"
    await api.call("GET", f"{path}/none", expect=404)


@pytest.mark.spec("S-11")
async def test_the_table_without_definitions_has_no_rows_at_all(api: Api) -> None:
    assert (await api.call("GET", DEFINITIONS, accept=TABLE))["rows"] is None
    assert (await api.call("GET", "/api/v1/namespaces/default/pods", accept=TABLE))["rows"] == []
    await define(api, wide(1))
    assert len((await api.call("GET", DEFINITIONS, accept=TABLE))["rows"]) == 1


@pytest.mark.spec("S-10")
async def test_warnings_of_deprecation_are_about_what_there_is(api: Api) -> None:
    path = "/api/v1/namespaces/default/endpoints/kubernetes"
    assert "deprecated" in (await api.send("GET", path)).headers.get("warning")
    missing = await api.send("GET", f"{path}/status")
    assert (missing.status, missing.headers.get("warning")) == (404, "")


@pytest.mark.spec("S-10")
async def test_a_namespace_that_is_not_the_one_meant(api: Api) -> None:
    made = (await api.create("side", "/api/v1/namespaces"))["metadata"]
    for name, value in (("UID", made["uid"]), ("ResourceVersion", made["resourceVersion"])):
        member = "uid" if name == "UID" else "resourceVersion"
        options = {"preconditions": {member: "7"}}
        answer = await api.call("DELETE", "/api/v1/namespaces/side", options, expect=409)
        why = f"Precondition failed: {name} in precondition: 7, {name} in object meta: {value}"
        assert answer["message"] == f'Operation cannot be fulfilled on namespaces "side": {why}'
        assert answer["details"] == {"name": "side", "kind": "namespaces"}
    options = {"preconditions": {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}}
    assert (await api.call("DELETE", "/api/v1/namespaces/side", options))["status"]["phase"] == "Terminating"


async def test_the_version_is_the_one_that_kubectl_has(api: Api) -> None:
    assert (await api.call("GET", "/version"))["gitVersion"] == "v1.37.1"


@pytest.mark.parametrize(
    ("seconds", "nanoseconds", "text"),
    [
        (-30_641_760_000, 0, "0999-01-01T00:00:00.000000Z"),
        (-62_135_596_799, 0, "0001-01-01T00:00:01.000000Z"),
        (-62_135_596_800, 5_000, "0001-01-01T00:00:00.000005Z"),
        (-62_135_596_800, 0, None),
        (253_402_300_799, 0, "9999-12-31T23:59:59.000000Z"),
    ],
)
@pytest.mark.spec("S-15")
async def test_times_before_the_year_1000_in_protobuf(api: Api, seconds: int, nanoseconds: int, text: str) -> None:
    moment = varint(1 << 3) + varint(seconds % (1 << 64)) + varint(2 << 3) + varint(nanoseconds)
    lease = member(1, member(1, b"x")) + member(2, member(1, b"me") + member(3, moment))
    kind = member(1, b"coordination.k8s.io/v1") + member(2, b"Lease")
    body = b"k8s\x00" + member(1, kind) + member(2, lease)
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    made = await api.call("POST", path, body, content_type=PROTOBUF)
    assert made["spec"].get("acquireTime") == text
    assert (await api.call("GET", f"{path}/x"))["spec"].get("acquireTime") == text


@pytest.mark.spec("S-06")
async def test_watches_end_with_their_definition(api: Api) -> None:
    """After the deletion of its last object: the informer of a client looks at discovery again."""
    path = f"{DEFINITIONS}/stacks.x.io"
    await define(api, wide(1))
    await api.create("a", STACKS)
    async with api.watch(STACKS) as watch, api.watch("/api/v1/namespaces/default/configmaps") as other:
        assert await watch.take(1) == [("ADDED", "a")]
        await api.call("DELETE", path)
        events = await watch.rest()
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("DELETED", "a")]
        await api.create("c")
        assert await other.take(1) == [("ADDED", "c")]


@pytest.mark.spec("S-06")
async def test_watches_end_when_the_schema_changes_and_not_before(api: Api) -> None:
    await define(api, wide(1))
    path = f"{DEFINITIONS}/stacks.x.io"
    async with api.watch(STACKS) as watch:
        await api.call("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
        await api.create("a", STACKS)
        assert await watch.take(1) == [("ADDED", "a")]
        change = {"spec": {"versions": wide(2)["spec"]["versions"]}}
        await api.call("PATCH", path, change, content_type=MERGE)
        assert await watch.rest() == []
    assert len(api.server.streams) == 0
    async with api.watch(STACKS) as watch:
        assert await watch.take(1) == [("ADDED", "a")]


class TestAlwaysAllow:
    @pytest.fixture
    async def allowing(self) -> AsyncIterator[Api]:
        async with ApiServer(config=Config(auth=AuthSettings(always_allow=True))) as server:
            yield Api(server)

    @pytest.mark.spec("S-12")
    async def test_anonymous_requests_are_refused(self, allowing: Api) -> None:
        request = allowing.request("GET", "/api/v1/namespaces")
        request.headers = Headers([])
        response = await allowing.server.transport.send(request)
        assert (response.status, json.loads(response.body)["reason"]) == (401, "Unauthorized")
        await allowing.call("GET", "/api/v1/namespaces")
