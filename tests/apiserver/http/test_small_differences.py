"""Answers that once differed from kube-apiserver's in small ways; tests/real/test_small_differences.py asks both."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import AuthSettings, Config
from konverge.wire.message import Headers
from tests.apiserver.api import APPLY, CONFIG_MAPS, MERGE, Api
from tests.apiserver.definitions import DEFINITIONS, define, definition
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


@pytest.mark.spec("S-31")
async def test_the_checks_are_those_of_the_real_server(api: Api) -> None:
    """In its order: scripts wait for one by name, or exclude it."""
    listed = {}
    for root in ("healthz", "livez", "readyz"):
        body = (await api.send("GET", f"/{root}?verbose")).body.decode()
        *lines, last, end = body.split("\n")
        assert (last, end) == (f"{root} check passed", "")
        listed[root] = [line.removeprefix("[+]").removesuffix(" ok") for line in lines]
        for check in listed[root]:
            answer = await api.send("GET", f"/{root}/{check}")
            assert (answer.status, answer.body) == (200, b"ok"), check
        assert (await api.send("GET", f"/{root}/poststarthook")).status == 404
        assert (await api.send("GET", f"/{root}/")).status == 404
        excluded = await api.send("GET", f"/{root}?verbose&exclude=log&exclude=none")
        assert "[+]ping ok\n[+]log excluded: ok\n" in excluded.body.decode()
        why = f'warn: some health checks cannot be excluded: no matches for "none"\n{root} check passed\n'
        assert excluded.body.decode().endswith(why)
    assert listed["healthz"] == listed["livez"]
    assert listed["livez"][:4] == ["ping", "log", "loopback-serving-certificate", "etcd"]
    assert listed["readyz"][:5] == ["ping", "log", "etcd", "etcd-readiness", "informer-sync"]
    assert listed["readyz"][5:] == [*listed["livez"][4:], "shutdown"]
    assert "poststarthook/rbac/bootstrap-roles" in listed["readyz"]
    assert len(listed["livez"]) == 34


@pytest.mark.parametrize("path", ["/openapi/v2/", "/metrics/", "/index.html/", "/healthz/ping/"])
@pytest.mark.spec("S-31")
async def test_a_slash_at_the_end_is_another_path(api: Api, path: str) -> None:
    assert (await api.send("GET", path.rstrip("/"))).status == 200
    assert (await api.send("GET", path)).status == 404
    for other in ("/version", "/api", "/apis", "/openid/v1/jwks"):
        assert (await api.send("GET", f"{other}/")).status == 200
    assert "/index.html" not in (await api.call("GET", "/"))["paths"]


@pytest.mark.spec("S-31")
async def test_names_in_messages_are_quoted(api: Api) -> None:
    answer = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "a\nb"}}, expect=422)
    assert answer["message"].startswith('ConfigMap "a\\nb" is invalid: metadata.name: ')
    assert (await api.call("GET", f"{CONFIG_MAPS}/a%00b", expect=404))["message"] == 'configmaps "a\\x00b" not found'
    answer = await api.call("GET", f"{CONFIG_MAPS}/%2e%2e", expect=400)
    assert answer["message"] == "Name parameter invalid: \"..\": may not be '..'"


@pytest.mark.spec("S-31")
async def test_a_request_that_takes_too_long_is_answered_by_a_text(api: Api) -> None:
    answer = await api.send("GET", f"{CONFIG_MAPS}?resourceVersion=99999999&timeout=10ms")
    assert (answer.status, answer.headers.get("content-type")) == (504, "text/plain; charset=utf-8")
    message = "Timeout: request did not complete within the allotted timeout"
    whole = {"metadata": {}, "status": "Failure", "message": message, "reason": "Timeout", "details": {}, "code": 504}
    assert answer.body.decode() == json.dumps(whole, separators=(",", ":")) + "\n"


UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"


@pytest.mark.spec("S-31")
async def test_nothing_is_deleted_unsafely(api: Api) -> None:
    """It is for objects that cannot be read; all of these can."""
    await api.create("a")
    refused = await api.call("DELETE", f"{CONFIG_MAPS}/a?{UNSAFE}=true", expect=409)
    assert refused["message"] == (
        'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, '
        "Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: "
        "unsafe deletion is not allowed because the object is decodable from storage"
    )
    others = {
        "dryRun": ["All"],
        "propagationPolicy": "Background",
        "orphanDependents": False,
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "x"},
    }
    for name, value in others.items():
        refused = await api.call("DELETE", f"{CONFIG_MAPS}/a", {UNSAFE: True, name: value}, expect=422)
        (cause,) = refused["details"]["causes"]
        assert cause == {
            "reason": "FieldValueInvalid",
            "message": f"Invalid value: true: cannot be set together with .{name}",
            "field": UNSAFE,
        }
    many = await api.call("DELETE", CONFIG_MAPS, {UNSAFE: True}, expect=422)
    assert many["details"]["causes"][0]["message"] == (
        "Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option"
    )
    await api.call("DELETE", f"{CONFIG_MAPS}/none?{UNSAFE}=true", expect=404)
    assert (await api.call("DELETE", f"{CONFIG_MAPS}/a", {UNSAFE: False}))["status"] == "Success"


@pytest.mark.spec("S-31")
async def test_a_deleted_collection_is_shown_in_any_form(api: Api) -> None:
    await api.create("a")
    path = f"{CONFIG_MAPS}?labelSelector=a%21%3Db"
    table = await api.call("DELETE", f"{path}&dryRun=All", accept=TABLE)
    assert (table["kind"], [row["cells"][0] for row in table["rows"]]) == ("Table", ["a"])
    await api.call("DELETE", path, accept=PARTIAL, expect=406)
    metadata = await api.call("DELETE", path, accept=PARTIAL.replace("Metadata;", "MetadataList;"))
    assert (metadata["kind"], len(metadata["items"])) == ("PartialObjectMetadataList", 1)
    assert (await api.call("GET", CONFIG_MAPS))["items"] == []


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("APPLICATION/MERGE-PATCH+JSON", "415: Unsupported Media Type"),
        ("application/merge-patch+json,", "the body of the request was in an unknown format - accepted media types"),
        ("x, application/merge-patch+json", "the body of the request was in an unknown format - accepted media types"),
    ],
)
@pytest.mark.spec("S-31")
async def test_media_types_of_patches_are_exact(api: Api, header: str, message: str) -> None:
    await api.create("a")
    refused = await api.call("PATCH", f"{CONFIG_MAPS}/a", {}, content_type=header, expect=415)
    assert refused["message"].startswith(message)
    await api.call("PATCH", f"{CONFIG_MAPS}/a", {}, content_type=f"{MERGE}; charset=utf-8")
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "b"}}, content_type=";", expect=415)


@pytest.mark.spec("S-31")
async def test_keys_that_are_repeated_in_yaml(api: Api) -> None:
    body = b"metadata: {name: q, nam: z}\ndata: {a: b, a: c}\nfoo: 1\n"
    unknown = ['unknown field "foo"', 'unknown field "metadata.nam"']
    repeated = 'line 2: key "a" already set in map'
    for validation in ("Warn", "Strict", "Ignore"):
        path = f"{CONFIG_MAPS}?dryRun=All&fieldValidation={validation}"
        response = await api.send("POST", path, body, content_type="application/yaml")
        warnings = [text.removeprefix('299 - "')[:-1].replace("\\", "") for text in response.headers.get_all("warning")]
        if validation == "Strict":
            listed = ", ".join([f"yaml: unmarshal errors:\n  {repeated}", *unknown])
            assert json.loads(response.body)["message"].endswith(f"strict decoding error: {listed}")
        else:
            assert (response.status, warnings) == (201, [repeated, *unknown] if validation == "Warn" else [])
    path = f"{CONFIG_MAPS}?dryRun=All&fieldValidation=Strict"
    only = await api.call(
        "POST", path, b"metadata: {name: q}\ndata: {a: b, a: c}", content_type="application/yaml", expect=400
    )
    assert only["message"].endswith(f"strict decoding error: yaml: unmarshal errors:\n  {repeated}")
    wrong = await api.call(
        "POST", path, b"metadata: {name: 5}\ndata: {a: b, a: c}", content_type="application/yaml", expect=400
    )
    assert "cannot unmarshal number" in wrong["message"]


class TestScaleOfCustomResources:
    RACKS = "/apis/example.com/v1/namespaces/default/racks"

    async def _racks(self, api: Api) -> None:
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        await define(api, definition("racks", "Rack", subresources={"scale": paths, "status": {}}))
        await api.create("a", self.RACKS, apiVersion="example.com/v1", kind="Rack", spec={"replicas": 2})

    @pytest.mark.spec("S-31")
    async def test_forms(self, api: Api) -> None:
        await self._racks(api)
        table = await api.call("GET", f"{self.RACKS}/a/scale", accept=TABLE)
        columns = [(column["name"], column["type"], column["format"]) for column in table["columnDefinitions"]]
        assert columns == [
            ("Name", "string", "name"), ("Desired", "integer", ""), ("Available", "integer", ""), ("Age", "date", "")
        ]  # fmt: skip
        assert (await api.call("GET", f"{self.RACKS}/a/scale", accept=PARTIAL))["kind"] == "PartialObjectMetadata"
        deployments = "/apis/apps/v1/namespaces/default/deployments"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await api.create("d", deployments, spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})
        builtin = await api.call("GET", f"{deployments}/d/scale", accept=TABLE)
        assert (builtin["columnDefinitions"][0]["format"], builtin["columnDefinitions"][3]["type"]) == ("", "string")
        metadata = PARTIAL.replace("Metadata;", "MetadataList;")
        single = await api.call("GET", f"{self.RACKS}/a", accept=metadata, expect=500)
        assert single["message"] == "content is not a list"
        assert "not a list (*" in (await api.call("GET", f"{deployments}/d", accept=metadata, expect=406))["message"]

    @pytest.mark.spec("S-31")
    async def test_to_zero(self, api: Api) -> None:
        await self._racks(api)
        await api.patch(f"{self.RACKS}/a/scale", {"spec": {"replicas": 0}})
        assert (await api.call("GET", f"{self.RACKS}/a"))["spec"] == {"replicas": 0}
        await api.patch(f"{self.RACKS}/a/scale", {"spec": {"replicas": 3}})
        assert (await api.patch(f"{self.RACKS}/a/scale", {"spec": {"replicas": None}}))["spec"] == {}
        assert (await api.call("GET", f"{self.RACKS}/a"))["spec"] == {"replicas": 0}

    @pytest.mark.spec("S-84")
    async def test_without_replicas(self, api: Api) -> None:
        await self._racks(api)
        made = await api.create("b", self.RACKS, apiVersion="example.com/v1", kind="Rack", spec={})
        path = f"{self.RACKS}/b"
        for change in ({}, {"spec": {}}, {"metadata": {"uid": "other"}}, {"spec": {"replicas": -(2**31)}}):
            refused = await api.patch(f"{path}/scale", change, expect=400)
            assert refused["message"] == 'the spec replicas field ".spec.replicas" cannot be empty'
            assert await api.call("GET", path) == made
        await api.patch(f"{path}/scale", {"spec": {"replicas": 4}})
        assert (await api.patch(f"{path}/scale", {}))["spec"] == {"replicas": 4}
        assert (await api.call("GET", path))["spec"] == {"replicas": 4}

    @pytest.mark.spec("S-84")
    @pytest.mark.parametrize(
        ("method", "spec", "media"), [("PUT", {}, "application/json"), ("PATCH", {"replicas": None}, MERGE)]
    )
    async def test_without_replicas_to_zero(self, api: Api, method: str, spec: Any, media: str) -> None:
        await self._racks(api)
        await api.create("b", self.RACKS, apiVersion="example.com/v1", kind="Rack", spec={})
        head = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "b"}}
        await api.call(method, f"{self.RACKS}/b/scale", {**head, "spec": spec}, content_type=media)
        assert (await api.call("GET", f"{self.RACKS}/b"))["spec"] == {"replicas": 0}

    @pytest.mark.spec("S-31")
    async def test_what_cannot_be_read_or_applied(self, api: Api) -> None:
        """The scheme of custom resources knows no Scale, and no way to convert one."""
        await self._racks(api)
        path, head = (
            f"{self.RACKS}/a/scale",
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}},
        )
        refused = await api.call("PUT", path, {**head, "spec": {"replicas": "3"}}, expect=400)
        why = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
        assert refused["message"] == why
        await api.call("PUT", path, {**head, "spec": {"replicas": 3}}, query={"dryRun": "x"}, expect=422)
        query = {"fieldManager": "me", "force": "true"}
        refused = await api.call(
            "PATCH", path, {**head, "spec": {"replicas": 3}}, content_type=APPLY, query=query, expect=500
        )
        assert refused["message"] == (
            "failed to create manager for existing fields: failed to convert live object "
            "(/; autoscaling/v1, Kind=Scale) to proper version: "
            "request to convert CR to an invalid group/version: autoscaling/v1"
        )
        await api.call("PATCH", path, {**head, "kind": "X"}, content_type=APPLY, query=query, expect=400)


@pytest.mark.spec("S-31")
async def test_bindings_without_a_name_or_a_namespace(api: Api) -> None:
    binding = {"metadata": {}, "target": {"name": "n"}}
    refused = await api.call("POST", "/api/v1/namespaces/default/bindings", binding, expect=400)
    assert refused["message"] == "Name parameter required."
    refused = await api.call("POST", "/api/v1/bindings", binding, expect=404)
    assert refused["message"] == "the server could not find the requested resource"


@pytest.mark.spec("S-31")
async def test_an_eviction_has_no_table(api: Api) -> None:
    path = "/api/v1/namespaces/default/pods"
    await api.create("default", "/api/v1/namespaces/default/serviceaccounts")
    await api.create("p", path, spec={"containers": [{"name": "c", "image": "i"}]})
    eviction = {"metadata": {"name": "p"}}
    await api.call("POST", f"{path}/p/eviction", eviction, accept=TABLE, expect=406)
    assert (await api.call("POST", f"{path}/p/eviction", eviction, accept=PARTIAL))["status"] == "Success"


@pytest.mark.spec("S-31")
async def test_a_review_names_audiences_in_the_order_of_the_question(api: Api) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    await api.send("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    token = (await api.call("POST", path, {"spec": {"audiences": ["a", "b"]}}))["status"]["token"]
    review = {"spec": {"token": token, "audiences": ["c", "b", "a"]}}
    answer = await api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert answer["status"]["audiences"] == ["b", "a"]


@pytest.mark.spec("S-31")
async def test_entries_of_the_other_group_of_events_are_forgotten(api: Api) -> None:
    """No group knows the versions of another, so nobody can say what they own."""
    core, events = (f"/{root}/namespaces/default/events" for root in ("api/v1", "apis/events.k8s.io/v1"))
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    await api.create("e", core, involvedObject=about, reason="R", message="m", type="Normal")
    changed = await api.patch(f"{events}/e", {"metadata": {"labels": {"a": "b"}}})
    assert [entry["apiVersion"] for entry in changed["metadata"]["managedFields"]] == ["events.k8s.io/v1"]


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


DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.mark.parametrize(
    ("path", "api_version", "kind", "message"),
    [
        (DEPLOYMENTS, "apps/v1beta1", "Deployment", "{0} does not match the expected API version (apps/v1)"),
        (DEPLOYMENTS, "extensions/v1beta1", "Deployment", "{0} does not match the expected API version (apps/v1)"),
        (DEPLOYMENTS, "extensions/v1beta1", "Ingress", "converting (v1beta1.Ingress) to (apps.Deployment)"),
        (DEPLOYMENTS, "apps/v1beta1", "StatefulSet", "converting (v1beta1.StatefulSet) to (apps.Deployment)"),
        (DEPLOYMENTS, "apps/v1beta1", "Nothing", 'no kind "Nothing" is registered for version "apps/v1beta1"'),
        (CONFIG_MAPS, "v1beta1", "Deployment", 'no kind "Deployment" is registered for version "v1beta1"'),
        (CONFIG_MAPS, "events.k8s.io/v1", "Event", "converting (v1.Event) to (core.ConfigMap)"),
        (CONFIG_MAPS, "apiextensions.k8s.io/v1", "CustomResourceDefinition", 'no kind "CustomResourceDefinition"'),
        (CONFIG_MAPS, "apidiscovery.k8s.io/v2", "APIGroupDiscovery", 'no kind "APIGroupDiscovery"'),
        ("/api/v1/namespaces/default/events", "events.k8s.io/v1", "Event", "{0} does not match the expected"),
        ("/apis/events.k8s.io/v1/namespaces/default/events", "v1", "Event", "{0} does not match the expected"),
        (DEFINITIONS, "v1", "ConfigMap", 'no kind "ConfigMap" is registered for version "v1"'),
        (DEFINITIONS, "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "{0} does not match the expected"),
    ],
)
@pytest.mark.spec("S-35")
async def test_bodies_of_versions_that_are_not_served(
    api: Api, path: str, api_version: str, kind: str, message: str
) -> None:
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    answer = await api.call("POST", path, body, expect=400)
    assert message.format(f"the API version in the data ({api_version})") in answer["message"]


OLDER = "/api/v1/watch/namespaces/default/configmaps"
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


@pytest.mark.spec("S-35")
async def test_the_options_of_older_watch_paths_are_those_of_lists(api: Api) -> None:
    refused = await api.call("GET", OLDER, query={**INITIAL, "resourceVersion": "1"}, expect=422)
    assert refused["message"].endswith("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")
    refused = await api.call("GET", OLDER, query={"watch": "true", "resourceVersionMatch": "NotOlderThan"}, expect=422)
    assert "is forbidden for watch unless sendInitialEvents is provided" in refused["message"]
    await api.create("a")
    assert [event["type"] for event in await _events(api, allowWatchBookmarks="true")] == ["ADDED"]
    assert [event["type"] for event in await _events(api, watch="true", **INITIAL)] == ["ADDED", "BOOKMARK"]


async def _events(api: Api, **query: str) -> list[Any]:
    request = api.request("GET", OLDER, query={**query, "timeoutSeconds": "1"})
    stream = await api.server.transport.stream(request)
    return [json.loads(line) for line in b"".join([chunk async for chunk in stream]).splitlines()]


@pytest.mark.spec("S-35")
async def test_a_custom_resource_names_the_media_types_in_its_own_words(api: Api) -> None:
    await define(api, wide(1))
    answer = await api.call("GET", STACKS, accept="text/plain", expect=406)
    assert answer["message"].startswith("only the following media types are accepted: application/json,")
    builtin = await api.call("GET", CONFIG_MAPS, accept="text/plain", expect=406)
    assert builtin["message"].startswith("406: Not Acceptable")


METADATA_LIST = PARTIAL.replace("Metadata;", "MetadataList;")


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.spec("S-35")
async def test_a_written_scale_comes_in_the_form_that_was_asked_for(api: Api, custom: bool) -> None:
    if custom:
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        await define(api, definition("fleets", "Fleet", subresources={"scale": paths}))
        path = "/apis/example.com/v1/namespaces/default/fleets"
        await api.call("POST", path, {"apiVersion": "example.com/v1", "kind": "Fleet", **_fleet("a")})
    else:
        path = DEPLOYMENTS
        await api.call("POST", path, {**_fleet("a"), "spec": {"replicas": 1, **_pods()}})
    change = {"spec": {"replicas": 2}}
    scale = f"{path}/a/scale"
    table = await api.patch(scale, change, accept=TABLE)
    assert (table["kind"], table["rows"][0]["cells"][:2]) == ("Table", ["a", 2])
    partial = await api.patch(scale, change, accept=PARTIAL)
    assert (partial["kind"], "spec" in partial) == ("PartialObjectMetadata", False)
    assert (await api.patch(scale, change))["kind"] == "Scale"
    go_type = "v1.Scale" if custom else "autoscaling.Scale"
    for method, body in (("PATCH", change), ("GET", None)):
        refused = await api.call(method, scale, body, accept=METADATA_LIST, content_type=MERGE, expect=406)
        assert refused["message"].endswith(f"but the requested object is not a list (*{go_type})")


def _fleet(name: str) -> Any:
    return {"metadata": {"name": name}, "spec": {"replicas": 1}}


def _pods() -> Any:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"selector": {"matchLabels": labels}, "template": template}


@pytest.mark.parametrize(("versions", "shown"), [(None, "null"), ([], "[]")])
@pytest.mark.spec("S-35")
async def test_versions_that_are_taken_away_are_not_an_empty_list(api: Api, versions: Any, shown: str) -> None:
    made = wide(1)
    await define(api, made)
    path = f"{DEFINITIONS}/{made['metadata']['name']}"
    refused = await api.patch(path, {"spec": {"versions": versions}}, expect=422)
    assert f"spec.versions: Invalid value: {shown}: must have exactly one version" in refused["message"]
