"""Values of fields without a type: which writes change them, and how numbers are stored."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.apiserver.admission.hooks import MUTATING, patch, webhook_server
from tests.apiserver.admission.test_policies import install
from tests.apiserver.api import APPLY, MERGE, Api
from tests.apiserver.crd.recordings import Row
from tests.apiserver.crd.served import JSON_PATCH, define
from tests.apiserver.crd.serving.test_manager import CRABS, crab, crd, version

ONE = f"{CRABS}/one"
NUMBERS = {"v": 1, "z": 0, "list": [1], "map": {"a": 0}}
BOOLEANS = {"v": True, "z": False, "list": [True], "map": {"a": False}}


async def applied(api: Api, manager: str, spec: Row, expect: int = 0) -> Row:
    more: Any = {"content_type": APPLY, "query": {"fieldManager": manager}, "expect": expect}
    answer: Row = await api.call("PATCH", ONE, crab(spec=spec), **more)
    return answer


def exactly(spec: Row, wanted: Row) -> bool:
    return json.dumps(spec, sort_keys=True) == json.dumps(wanted, sort_keys=True)


@pytest.mark.spec("S-85")
@pytest.mark.parametrize("method", ["merge", "PUT", "JSON patch", "apply"])
@pytest.mark.parametrize(("before", "after"), [(NUMBERS, BOOLEANS), (BOOLEANS, NUMBERS)])
async def test_a_boolean_in_the_place_of_a_number_is_a_change(api: Api, method: str, before: Row, after: Row) -> None:
    await define(api, crd())
    if method == "apply":
        made = await applied(api, "one", before)
        await applied(api, "one", after)
    else:
        made = await api.call("POST", CRABS, crab(spec=before))
    match method:
        case "merge":
            await api.call("PATCH", ONE, {"spec": after}, content_type=MERGE)
        case "PUT":
            await api.call("PUT", ONE, {**made, "spec": after})
        case "JSON patch":
            change = [{"op": "replace", "path": "/spec", "value": after}]
            await api.call("PATCH", ONE, change, content_type=JSON_PATCH)
    stored = await api.call("GET", ONE)
    assert exactly(stored["spec"], after)
    assert stored["metadata"]["generation"] == 2
    assert stored["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


@pytest.mark.spec("S-85")
async def test_the_same_values_are_no_change(api: Api) -> None:
    await define(api, crd())
    made = await api.call("POST", CRABS, crab(spec=NUMBERS))
    assert await api.call("PATCH", ONE, {"spec": NUMBERS}, content_type=MERGE) == made
    assert await api.call("PUT", ONE, made) == made


@pytest.mark.spec("S-85")
async def test_a_boolean_in_the_place_of_a_number_takes_the_field(api: Api) -> None:
    await define(api, crd())
    await applied(api, "one", NUMBERS)
    refused = await applied(api, "two", {"v": True, "list": [True], "map": {"a": False}}, expect=409)
    assert sorted(cause["field"] for cause in refused["details"]["causes"]) == [
        ".spec.list",
        ".spec.map.a",
        ".spec.v",
    ]
    await applied(api, "two", {"v": 1})
    change: Any = {"content_type": MERGE, "query": {"fieldManager": "three"}}
    stored = await api.call("PATCH", ONE, {"spec": {"z": False}}, **change)
    owned = {entry["manager"]: entry["fieldsV1"]["f:spec"] for entry in stored["metadata"]["managedFields"]}
    assert owned["three"] == {"f:z": {}}
    assert "f:z" not in owned["one"]


@pytest.mark.spec("S-85")
async def test_a_webhook_puts_a_boolean_in_the_place_of_a_number(api: Api) -> None:
    await define(api, crd())
    async with webhook_server() as hooks:
        change = patch({"op": "replace", "path": "/spec/v", "value": True})
        rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["crabs"], "operations": ["*"]}]
        hook = hooks.hook("change", lambda request: change, rules=rules)
        await api.call("POST", MUTATING, {"metadata": {"name": "w"}, "webhooks": [hook]})
        made = await api.call("POST", CRABS, crab(spec=NUMBERS))
    assert made["spec"]["v"] is True


FLOATS = b'{"count":1e3,"v":2.0,"list":[-3.0],"half":0.5,"big":1e21,"least":-1e21,"below":1e20}'
WHOLE = [
    b'"count":1000',
    b'"v":2',
    b'"list":[-3]',
    b'"half":0.5',
    b'"big":1e21',
    b'"least":-1e21',
    b'"below":100000000000000000000',
]
HEAD = b'{"apiVersion":"sea.example.com/v1","kind":"Crab","metadata":{"name":"one"},"spec":'
YAML = b"""apiVersion: sea.example.com/v1
kind: Crab
metadata: {name: one}
spec: {count: 1e+3, v: 2.0, list: [-3.0], half: 0.5, big: 1.0e+21, least: -1.0e+21, below: 1.0e+20}
"""


@pytest.mark.spec("S-86")
@pytest.mark.parametrize("body", [HEAD + FLOATS + b"}", YAML])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_whole_numbers_are_stored_as_go_writes_them(api: Api, method: str, body: bytes) -> None:
    await define(api, crd())
    media = APPLY if method == "PATCH" else "application/yaml" if body is YAML else "application/json"
    path = CRABS if method == "POST" else ONE
    response = await api.send(method, path, body, content_type=media, query={"fieldManager": "one"})
    assert response.status == 201
    assert not _missing(response.body)
    assert not _missing((await api.send("GET", ONE)).body)


def _missing(body: bytes) -> list[bytes]:
    return [member for member in WHOLE if not re.search(re.escape(member) + rb"[,}]", body)]


@pytest.mark.spec("S-86")
async def test_an_apply_of_a_number_that_no_float_holds_is_a_text(api: Api) -> None:
    await define(api, crd())
    assert (await applied_text(api, HEAD + b'{"n":1e400}}'))["spec"] == {"n": "1e400"}


@pytest.mark.spec("S-86")
async def test_a_webhook_may_set_a_whole_number_with_a_fraction(api: Api) -> None:
    await define(api, crd())
    async with webhook_server() as hooks:
        change = patch({"op": "add", "path": "/spec/v", "value": 3.0})
        rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["crabs"], "operations": ["*"]}]
        hook = hooks.hook("change", lambda request: change, rules=rules)
        await api.call("POST", MUTATING, {"metadata": {"name": "w"}, "webhooks": [hook]})
        assert b'"spec":{"v":3}' in (await api.send("POST", CRABS, crab(spec={}))).body


@pytest.mark.spec("S-86")
@pytest.mark.parametrize(
    "mutation",
    [
        {
            "patchType": "JSONPatch",
            "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/spec", value: Object.spec{v: 3.0, w: 0.5}}]'},
        },
        {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": "Object{spec: Object.spec{v: 3.0, w: 0.5}}"},
        },
    ],
)
async def test_a_policy_may_set_a_whole_number_with_a_fraction(api: Api, mutation: Row) -> None:
    numbers = {"type": "object", "properties": {"v": {"type": "number"}, "w": {"type": "number"}}}
    schema = {"type": "object", "properties": {"spec": numbers}}
    await define(api, crd("crabs", "Crab", version(schema=schema)))
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["crabs"]}]
    policy = {
        "matchConstraints": {"resourceRules": rules},
        "mutations": [mutation],
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
    }
    path = await install(api, {"name": "p", "kind": "mutating", "policy": policy, "binding": {}})
    path = path.replace("/api/v1", "/apis/sea.example.com/v1").replace("configmaps", "crabs")
    assert b'"spec":{"v":3,"w":0.5}' in (await api.send("POST", path, crab(spec={}))).body


async def applied_text(api: Api, body: bytes) -> Row:
    answer: Row = await api.call("PATCH", ONE, body, content_type=APPLY, query={"fieldManager": "one"})
    return answer
