"""Values of fields without a type: which writes change them, and how numbers are stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.admission.hooks import MUTATING, patch, webhook_server
from tests.apiserver.api import APPLY, MERGE, Api
from tests.apiserver.crd.recordings import Row
from tests.apiserver.crd.served import JSON_PATCH, define
from tests.apiserver.crd.serving.test_manager import CRABS, crab, crd

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
