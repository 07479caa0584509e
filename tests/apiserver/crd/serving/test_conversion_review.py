"""Versions that a webhook converts: a size in one, its parts in the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from konverge.apiserver.crd.serving.conversion_review import ConversionFailed, Review
from konverge.wire.message import Headers, Response
from tests.apiserver.admission.hooks import WebhookServer, webhook_server
from tests.apiserver.api import APPLY, MERGE, Api
from tests.apiserver.crd.recordings import DEFINITIONS, Row
from tests.apiserver.crd.served import define

V1 = "/apis/box.example.com/v1/namespaces/default/boxes"
V2 = "/apis/box.example.com/v2/namespaces/default/boxes"
Convert = Callable[[Row, str], Row]


def _version(name: str, storage: bool, **fields: str) -> Row:
    spec = {"type": "object", "properties": {field: {"type": kind} for field, kind in fields.items()}}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {}}}}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


def definition(hooks: WebhookServer, versions: list[str] | None = None) -> Row:
    client = {"url": f"{hooks.url}/convert", "caBundle": hooks.bundle}
    webhook = {"conversionReviewVersions": versions or ["v1"], "clientConfig": client}
    return {
        "metadata": {"name": "boxes.box.example.com"},
        "spec": {
            "group": "box.example.com",
            "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box"},
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [
                _version("v1", True, size="string"),
                _version("v2", False, width="integer", height="integer"),
            ],
        },
    }


def convert(obj: Row, desired: str) -> Row:
    """`size: 2x3` in v1, `width: 2, height: 3` in v2."""
    spec = obj.get("spec") or {}
    if desired.endswith("v2"):
        width, _, height = spec.get("size", "0x0").partition("x")
        spec = {"width": int(width), "height": int(height)}
    else:
        spec = {"size": f"{spec.get('width', 0)}x{spec.get('height', 0)}"}
    metadata = {**obj["metadata"], "annotations": {"converted-to": desired}}
    return {**obj, "apiVersion": desired, "spec": spec, "metadata": metadata}


def answering(change: Convert = convert, **more: Any) -> Callable[[Row], Response]:
    def reply(request: Row) -> Response:
        made = [change(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": made, **more}
        body = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
        return Response(200, Headers.of({"content-type": "application/json"}), json.dumps(body).encode())

    return reply


def box(version: str, **spec: Any) -> Row:
    return {"apiVersion": f"box.example.com/{version}", "kind": "Box", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.spec("S-08")
async def test_an_object_is_written_and_read_in_either_version(api: Api) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = answering()
        await define(api, definition(hooks))
        made = await api.call("POST", V2, box("v2", width=2, height=3))
        assert (made["apiVersion"], made["spec"]) == ("box.example.com/v2", {"width": 2, "height": 3})
        stored = await api.call("GET", f"{V1}/a")
        assert (stored["apiVersion"], stored["spec"]) == ("box.example.com/v1", {"size": "2x3"})
        changed = await api.call("PATCH", f"{V1}/a", {"spec": {"size": "4x5"}}, content_type=MERGE)
        assert changed["metadata"]["generation"] == 2
        listed = await api.call("GET", V2)
        assert [item["spec"] for item in listed["items"]] == [{"width": 4, "height": 5}]
        assert listed["items"][0]["metadata"]["uid"] == made["metadata"]["uid"]
        applied = {**box("v2", height=9), "metadata": {"name": "a"}}
        query = {"fieldManager": "m", "force": "true"}
        await api.call("PATCH", f"{V2}/a", applied, content_type=APPLY, query=query)
        assert (await api.call("GET", f"{V1}/a"))["spec"] == {"size": "4x9"}
        await api.call("DELETE", f"{V2}/a")


@pytest.mark.spec("S-08")
async def test_a_watch_shows_the_requested_version(api: Api) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = answering()
        await define(api, definition(hooks))
        async with api.watch(V2) as watch:
            await api.call("POST", V1, box("v1", size="7x8"))
            event = await watch.next()
        assert (event["type"], event["object"]["spec"]) == ("ADDED", {"width": 7, "height": 8})
        assert event["object"]["apiVersion"] == "box.example.com/v2"


@pytest.mark.spec("S-08")
async def test_a_watch_converts_what_happened_while_the_webhook_was_away(api: Api) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = answering()
        await define(api, definition(hooks))
        since = (await api.call("GET", V2))["metadata"]["resourceVersion"]
        hooks.replies["convert"] = answering(result={"status": "Failure", "message": "not now"})
        await api.call("POST", V1, box("v1", size="1x1"))
        await api.call("PATCH", f"{V1}/a", {"spec": {"size": "2x2"}}, content_type=MERGE)
        await api.call("DELETE", f"{V1}/a")
        await api.call("POST", V1, box("v1", size="3x3"))
        hooks.replies["convert"] = answering()
        async with api.watch(V2, resourceVersion=since) as watch:
            events = [await watch.next() for _ in range(4)]
    assert [(event["type"], event["object"]["spec"]["width"]) for event in events] == [
        ("ADDED", 1),
        ("MODIFIED", 2),
        ("DELETED", 2),
        ("ADDED", 3),
    ]


@pytest.mark.spec("S-08")
async def test_a_watch_ends_with_an_error_event_where_the_past_cannot_be_converted(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = answering()
        await define(api, definition(hooks))
        since = (await api.call("GET", V2))["metadata"]["resourceVersion"]
        hooks.replies["convert"] = answering(result={"status": "Failure", "message": "not now"})
        await api.call("POST", V1, box("v1", size="1x1"))
        await api.call("DELETE", f"{V1}/a")  # so that the present can be shown
        async with api.watch(V2, resourceVersion=since) as watch:
            (event,) = await watch.rest()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
    assert "not now" in event["object"]["message"]
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.spec("S-34")
async def test_a_list_of_the_past_converts_states_that_no_webhook_has_seen(api: Api) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = answering(result={"status": "Failure", "message": "not now"})
        await define(api, definition(hooks))
        for name in ("a", "b"):
            await api.call("POST", V1, {**box("v1", size="1x1"), "metadata": {"name": name}})
        then = (await api.call("GET", V1))["metadata"]["resourceVersion"]
        first = await api.call("GET", V1, query={"limit": "1"})
        for name in ("a", "b"):
            await api.call("PATCH", f"{V1}/{name}", {"spec": {"size": "2x2"}}, content_type=MERGE)
        hooks.replies["convert"] = answering()
        assert await _widths(api) == [2, 2]
        assert await _widths(api, resourceVersion=then, resourceVersionMatch="Exact") == [1, 1]
        token = first["metadata"]["continue"]
        assert await _widths(api, **{"continue": token}) == [1]


async def _widths(api: Api, **query: str) -> list[int]:
    return [item["spec"]["width"] for item in (await api.call("GET", V2, query=query))["items"]]


@pytest.mark.spec("S-34")
async def test_a_list_of_the_past_that_cannot_be_converted_is_unreadable(api: Api) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = answering(result={"status": "Failure", "message": "not now"})
        await define(api, definition(hooks))
        await api.call("POST", V1, box("v1", size="1x1"))
        then = (await api.call("GET", V1))["metadata"]["resourceVersion"]
        await api.call("DELETE", f"{V1}/a")  # so that the present can be shown
        query = {"resourceVersion": then, "resourceVersionMatch": "Exact"}
        failed = await api.call("GET", V2, query=query, expect=500)
    assert failed["reason"] == "StorageReadError"
    assert failed["message"].endswith("failed: not now")


@pytest.mark.spec("S-08")
async def test_an_object_stored_before_is_converted_when_it_is_read(api: Api) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = answering()
        plain = definition(hooks)
        conversion = plain["spec"].pop("conversion")
        await define(api, plain)
        await api.call("POST", V1, box("v1", size="1x2"))
        change = {"spec": {"conversion": conversion}}
        await api.call("PATCH", f"{DEFINITIONS}/boxes.box.example.com", change, content_type=MERGE)
        assert (await api.call("GET", f"{V2}/a"))["spec"] == {"width": 1, "height": 2}


@pytest.mark.spec("S-08")
async def test_the_stored_version_works_without_the_webhook(api: Api) -> None:
    async with webhook_server() as hooks:
        hooks.replies["convert"] = answering(result={"status": "Failure", "message": "out for lunch"})
        await define(api, definition(hooks))
        await api.call("POST", V1, box("v1", size="1x2"))
        failed = await api.call("GET", f"{V2}/a", expect=500)
        message = "conversion webhook for box.example.com/v%d, Kind=Box failed: out for lunch"
        assert "StorageError: corrupt object, Code: 7, Key: /box.example.com/boxes/default/a," in failed["message"]
        assert failed["message"].endswith(message % 1)
        assert (await api.call("GET", V2, expect=500))["reason"] == "StorageReadError"
        refused = await api.call("POST", V2, {**box("v2", width=1), "metadata": {"name": "b"}}, expect=500)
        assert (refused["message"], refused.get("reason")) == (message % 2, None)
        hooks.replies["convert"] = answering()
        assert (await api.call("GET", f"{V2}/a"))["spec"] == {"width": 1, "height": 2}


def review(version: str = "v1") -> Review:
    obj = {**box("v1", size="1x2"), "metadata": {"name": "a", "uid": "u", "labels": {"x": "y"}}}
    return Review.of("id", [obj], "box.example.com/v2", [version])


SUBJECT = "conversion webhook for box.example.com/v1, Kind=Box"
GOOD: Row = {**box("v2", width=1), "metadata": {"name": "a", "uid": "u", "labels": {"new": "label"}, "generation": 9}}


@pytest.mark.spec("S-08")
@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"uid": "other"}, 'failed: expected response.uid="id", got "other"'),
        ({"result": {"status": "Failure"}}, "failed: response.result.status was 'Failure', not 'Success'"),
        ({"result": {"status": "Failure", "message": "no"}}, "failed: no"),
        ({"convertedObjects": []}, "returned 0 objects, expected 1"),
        (
            {"convertedObjects": [{**GOOD, "apiVersion": "box.example.com/v3"}]},
            "returned invalid object at index 0: invalid groupVersion (expected box.example.com/v2, "
            "received box.example.com/v3)",
        ),
        (
            {"convertedObjects": [{**GOOD, "kind": "Bag"}]},
            "returned invalid object at index 0: invalid kind (expected Box, received Bag)",
        ),
        (
            {"convertedObjects": [{**GOOD, "metadata": {"name": "b", "uid": "u"}}]},
            "returned invalid object: must have the same name: a != b",
        ),
        (
            {"convertedObjects": [{**GOOD, "metadata": {"name": "a"}}]},
            "returned invalid object: must have the same UID: u != ",
        ),
        (
            {"convertedObjects": [{"apiVersion": "box.example.com/v2", "kind": "Box"}]},
            "returned invalid metadata: missing metadata in converted object",
        ),
    ],
)
def test_an_invalid_response_is_refused(change: Row, wrong: str) -> None:
    response = {"uid": "id", "result": {"status": "Success"}, "convertedObjects": [GOOD], **change}
    answer = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
    with pytest.raises(ConversionFailed) as caught:
        review().read(json.dumps(answer).encode())
    assert str(caught.value) == f"{SUBJECT} {wrong}"


@pytest.mark.spec("S-08")
def test_labels_and_annotations_may_change_and_nothing_else_in_the_metadata() -> None:
    response = {"uid": "id", "result": {"status": "Success"}, "convertedObjects": [GOOD]}
    answer = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
    (converted,) = review().read(json.dumps(answer).encode())
    assert converted["metadata"] == {"name": "a", "uid": "u", "labels": {"new": "label"}}
    with pytest.raises(ConversionFailed, match="no supported conversion review versions"):
        review("v7")


@pytest.mark.spec("S-86")
def test_whole_numbers_are_read_as_go_writes_them() -> None:
    review = Review("u", [box("v1")], "box.example.com/v2", "v1")
    answer = b"""{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": {
        "uid": "u", "result": {"status": "Success"}, "convertedObjects": [
            {"apiVersion": "box.example.com/v2", "kind": "Box", "metadata": {"name": "a"},
             "spec": {"width": 3.0, "height": 1e3, "depth": 0.5}}]}}"""
    [obj] = review.read(answer)
    assert json.dumps(obj["spec"]) == '{"width": 3, "height": 1000, "depth": 0.5}'
