"""The form of answers: media types, metadata alone, compression, headers; and bodies that cannot be read."""

from __future__ import annotations

import gzip
import json

import pytest

from konverge.wire.message import Peer, Response
from tests.apiserver.api import CONFIG_MAPS, Api

PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@pytest.mark.spec("S-11")
async def test_a_client_can_ask_for_metadata_alone(api: Api) -> None:
    made = await api.create("a", data={"x": "1"})
    partial = await api.call("GET", f"{CONFIG_MAPS}/a", accept=PARTIAL)
    assert partial["kind"] == "PartialObjectMetadata"
    assert partial["metadata"] == made["metadata"]
    assert "data" not in partial
    listed = await api.call("GET", CONFIG_MAPS, accept=PARTIAL.replace("Metadata;", "MetadataList;"))
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]


async def test_bodies_and_answers_may_be_yaml(api: Api) -> None:
    body = b"metadata:\n  name: a\ndata:\n  a: 'text'\n"
    response = await api.send("POST", CONFIG_MAPS, body, content_type="application/yaml", accept="application/yaml")
    assert response.status == 201
    assert response.headers.get("content-type") == "application/yaml"
    assert b"kind: ConfigMap" in response.body
    for broken in (b"a: [", b"metadata:\n  name: y\n"):  # in YAML 1.1, y is a boolean
        refused = await api.send("POST", CONFIG_MAPS, broken, content_type="application/yaml")
        assert refused.status == 400


async def test_people_get_indented_json(api: Api) -> None:
    await api.create("a")
    for more in ({"user_agent": "curl/8"}, {"query": {"pretty": "true"}}):
        response = await api.send("GET", f"{CONFIG_MAPS}/a", **more)
        assert response.body.startswith(b'{\n  "kind": "ConfigMap"')
    response = await api.send("GET", f"{CONFIG_MAPS}/a", user_agent="curl/8", query={"pretty": "false"})
    assert b"\n" not in response.body.strip()


@pytest.mark.spec("S-04")
@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Nothing;g=meta.k8s.io;v=v1"])
async def test_an_unknown_form_is_not_acceptable(api: Api, accept: str) -> None:
    refused = await api.call("GET", CONFIG_MAPS, accept=accept, expect=406)
    assert refused["reason"] == "NotAcceptable"


async def test_protobuf_is_answered_in_json(api: Api) -> None:
    response = await api.send("GET", CONFIG_MAPS, accept="application/vnd.kubernetes.protobuf, application/json")
    assert response.headers.get("content-type") == "application/json"


async def sent_from_another_machine(api: Api, path: str, **headers: str) -> Response:
    request = api.request("GET", path, **headers)
    request.peer = Peer("192.0.2.7:4711")
    return await api.server.transport.send(request)


async def test_large_answers_are_compressed_for_clients_that_ask(api: Api) -> None:
    await api.create("big", data={"x": "y" * 200_000})
    response = await sent_from_another_machine(api, f"{CONFIG_MAPS}/big", accept_encoding="gzip")
    assert response.headers.get("content-encoding") == "gzip"
    assert json.loads(gzip.decompress(response.body))["metadata"]["name"] == "big"
    response = await sent_from_another_machine(api, f"{CONFIG_MAPS}/big")
    assert "content-encoding" not in response.headers
    await api.create("small")
    response = await sent_from_another_machine(api, f"{CONFIG_MAPS}/small", accept_encoding="gzip")
    assert "content-encoding" not in response.headers


async def test_answers_are_not_compressed_on_the_same_machine(api: Api) -> None:
    await api.create("big", data={"x": "y" * 200_000})
    response = await api.send("GET", f"{CONFIG_MAPS}/big", accept_encoding="gzip")
    assert "content-encoding" not in response.headers


@pytest.mark.parametrize("accept_encoding", ["", "gzip"])
async def test_long_lists_are_sent_in_pieces(api: Api, accept_encoding: str) -> None:
    names = [f"big-{number}" for number in range(8)]
    for name in names:
        await api.create(name, data={"x": "y" * 100_000})
    response = await sent_from_another_machine(api, CONFIG_MAPS, accept_encoding=accept_encoding)
    assert response.headers.get("content-encoding") == accept_encoding
    body = gzip.decompress(response.body) if accept_encoding else response.body
    assert [item["metadata"]["name"] for item in json.loads(body)["items"]][-8:] == names


async def test_every_answer_has_an_audit_id_and_flow_headers(api: Api) -> None:
    seen = set()
    for _ in range(2):
        response = await api.send("GET", CONFIG_MAPS)
        seen.add(response.headers.get("audit-id"))
        assert response.headers.get("cache-control") == "no-cache, private"
        assert response.headers.get("x-kubernetes-pf-flowschema-uid")
    assert len(seen) == 2
    response = await api.send("GET", CONFIG_MAPS, audit_id="mine")
    assert response.headers.get("audit-id") == "mine"


@pytest.mark.spec("S-10")
async def test_warnings_are_headers(api: Api) -> None:
    body = {"metadata": {"name": "w"}, "foo": 1, "bar": {"x": 1}}
    response = await api.send("POST", CONFIG_MAPS, body)
    assert sorted(response.headers.get_all("warning")) == [
        '299 - "unknown field \\"bar\\""',
        '299 - "unknown field \\"foo\\""',
    ]
    body["metadata"] = {"name": "strict"}
    refused = await api.call("POST", CONFIG_MAPS, body, query={"fieldValidation": "Strict"}, expect=400)
    assert "strict decoding error" in refused["message"]


@pytest.mark.spec("S-15", "S-04")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"metadata":{"name":"a"},"data":{"x":"' + b"y" * (3 * 1024 * 1024) + b'"}}', 413),
        (b'{"data":' * 50_000 + b"1" + b"}" * 50_000, 400),
        (b"[" * 100_000, 400),
        (b'{"metadata": {"name": "a"}', 400),
        (b"\xff\xfe\x00", 400),
        (b'{"kind":7}', 400),
        (b'{"metadata":"text"}', 400),
        (b'"text"', 400),
    ],
    ids=["too large", "deep", "deeper", "cut off", "no text", "wrong kind of kind", "wrong metadata", "a string"],
)
async def test_bodies_that_cannot_be_read_are_refused(api: Api, body: bytes, code: int) -> None:
    refused = await api.call("POST", CONFIG_MAPS, body, expect=code)
    assert refused["kind"] == "Status"


@pytest.mark.spec("S-12")
async def test_anonymous_users_see_health_and_version_only(api: Api) -> None:
    for path, code in (("/version", 200), ("/healthz", 200), (CONFIG_MAPS, 403), ("/metrics", 403)):
        response = await api.send("GET", path, authorization="")
        assert response.status == code, path
    response = await api.send("GET", "/version", authorization="Bearer wrong")
    assert response.status == 401
