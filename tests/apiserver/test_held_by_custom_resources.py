"""How long requests about custom resources hold up all others: large objects, definitions, rules, patterns, documents.

Each begins with what took seconds of the loop's time. `held` measures CPU time, and fails beyond a tenth of a second.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.apiserver.api import MERGE, Api
from tests.apiserver.definitions import DEFINITIONS, define, definition
from tests.apiserver.held import LIMIT, Held, held, measured

pytestmark = pytest.mark.spec("T-08")
STACKS = "/apis/x.io/v1/namespaces/default/stacks"
YAML = "application/yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def with_spec(schema: dict[str, Any]) -> Any:
    return definition("stacks", "Stack", group="x.io", schema={"type": "object", "properties": {"spec": schema}})


def wide(fields: int, **schema: Any) -> Any:
    """A definition with so many fields."""
    properties = {f"field{number:05d}": {"type": "string", **schema} for number in range(fields)}
    return with_spec({"type": "object", "properties": properties})


def body(spec: Any, name: str = "x") -> bytes:
    return json.dumps({"metadata": {"name": name}, "spec": spec}, separators=(",", ":")).encode()


def check(probe: Held, status: int) -> None:
    assert probe.response.status == status, probe.response.body[:300]
    probe.check()


async def whole_life(api: Api, schema: dict[str, Any], spec: Any, *, created: int = 201) -> None:
    """Create, read in every form, patch, replace and delete a large object."""
    await define(api, with_spec(schema))
    check(await held(api, "POST", STACKS, body(spec)), created)
    if created != 201:
        return
    path = f"{STACKS}/x"
    for accept in ("application/json", YAML, TABLE):
        check(await held(api, "GET", path, accept=accept), 200)
    check(await held(api, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE), 200)
    stored = await api.call("GET", path)
    assert stored["spec"] == spec
    check(await held(api, "PUT", path, {**stored, "metadata": {**stored["metadata"], "labels": {"a": "c"}}}), 200)
    assert (await api.call("GET", path))["metadata"]["labels"] == {"a": "c"}
    check(await held(api, "DELETE", path), 200)


@pytest.mark.parametrize(
    ("schema", "spec"),
    [
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
            },
            [{"k": f"k{number}"} for number in range(5_000)],
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            [f"k{number}" for number in range(8_000)],
        ),
        ({"type": "array", "items": {"type": "integer"}}, [1] * 60_000),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {f"k{number}": "v" for number in range(6_000)},
        ),
        ({"x-kubernetes-preserve-unknown-fields": True}, [[[[[]]]]] * 12_000),
    ],
    ids=["map", "set", "integers", "additional", "nested"],
)
async def test_a_large_object(api: Api, schema: dict[str, Any], spec: Any) -> None:
    await whole_life(api, schema, spec)


async def test_a_large_object_that_is_invalid_everywhere(api: Api) -> None:
    await whole_life(api, {"type": "array", "items": {"type": "string"}}, [1] * 60_000, created=422)


async def test_a_large_object_that_is_refused_for_its_size(api: Api) -> None:
    await whole_life(api, {"x-kubernetes-preserve-unknown-fields": True}, [[]] * 540_000, created=500)


@pytest.mark.parametrize(("validation", "status"), [("Warn", 201), ("Strict", 400), ("Ignore", 201)])
async def test_220_000_unknown_fields(api: Api, validation: str, status: int) -> None:
    await define(api, with_spec({"type": "object", "properties": {"a": {"type": "string"}}}))
    sent = body({"a": "b"} | {f"u{number}": 1 for number in range(220_000)})
    check(await held(api, "POST", STACKS, sent, query={"fieldValidation": validation}), status)
    if status == 201:
        assert (await api.call("GET", f"{STACKS}/x"))["spec"] == {"a": "b"}


async def test_a_body_that_is_no_json_at_its_end(api: Api) -> None:
    await define(api, with_spec({"x-kubernetes-preserve-unknown-fields": True}))
    probe = await held(api, "POST", STACKS, body([1] * 1_400_000)[:-1])
    check(probe, 400)
    assert "unexpected end of JSON input" in json.loads(probe.response.body)["message"]


async def test_a_wide_definition_and_all_that_is_derived_from_it(api: Api) -> None:
    made = wide(4_000)
    await define(api, wide(1))
    await api.call("DELETE", f"{DEFINITIONS}/{made['metadata']['name']}")
    while (await api.send("GET", f"{DEFINITIONS}/{made['metadata']['name']}")).status != 404:
        await asyncio.sleep(0)
    _, probe = await measured(define(api, made))
    Held(await api.send("GET", "/version"), *probe).check()
    for path in ("/openapi/v3", "/openapi/v3/apis/x.io/v1", "/openapi/v2"):
        check(await held(api, "GET", path), 200)
    check(await held(api, "GET", "/openapi/v2", accept=PROTOBUF), 200)
    check(await held(api, "POST", STACKS, body({"field00001": "a"})), 201)
    change = {"metadata": {"labels": {"a": "b"}}}
    check(await held(api, "PATCH", f"{DEFINITIONS}/stacks.x.io", change, content_type=MERGE), 200)
    document = json.loads((await api.send("GET", "/openapi/v3/apis/x.io/v1")).body)
    assert "field03999" in document["components"]["schemas"]["io.x.v1.Stack"]["properties"]["spec"]["properties"]


async def test_a_definition_with_many_rules(api: Api) -> None:
    rules = [{"rule": f"self != 'a{number}'"} for number in range(800)]
    made = with_spec({"type": "string", "maxLength": 10, "x-kubernetes-validations": rules})
    one = {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}
    await define(api, definition("firsts", "First", schema=one))  # what the first rule loads is not measured
    _, probe = await measured(define(api, made))
    Held(await api.send("GET", "/version"), *probe).check()
    check(await held(api, "POST", STACKS, body("a7")), 422)


async def test_a_rule_that_takes_long_on_a_small_object(api: Api) -> None:
    rules = [{"rule": "self.all(x, self.exists(y, y == x))"}]
    items = {"type": "integer"}
    await define(api, with_spec({"type": "array", "maxItems": 700, "items": items, "x-kubernetes-validations": rules}))
    check(await held(api, "POST", STACKS, body(list(range(700)))), 201)
    path = f"{STACKS}/x"
    check(await held(api, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE), 200)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(?:a?){1000}a{1000}", "a" * 999), ("[ab]*a[ab]{900}c", "abbabaaab" * 500), ("^(a+)+$", "a" * 400_000 + "!")],
)
async def test_a_pattern_that_takes_long(api: Api, pattern: str, text: str) -> None:
    await define(api, with_spec({"type": "string", "pattern": pattern}))
    probe = await held(api, "POST", STACKS, body(text))
    check(probe, 422)
    assert "should match" in json.loads(probe.response.body)["message"]


async def test_several_large_bodies_of_yaml_at_once(api: Api) -> None:
    await define(api, with_spec({"x-kubernetes-preserve-unknown-fields": True}))
    head = "metadata: {{name: x{}}}\nspec:\n"
    bodies = [head.format(number).encode() + b"- {a: 1, b: [x, y]}\n- - k: v\n" * 2_500 for number in range(3)]
    requests = [api.request("POST", STACKS, text, content_type=YAML) for text in bodies]
    answers, probe = await measured(_all(api, requests))
    assert [answer.status for answer in answers] == [201, 201, 201]
    Held(answers[0], *probe).check()


async def _all(api: Api, requests: list[Any]) -> list[Any]:
    return list(await asyncio.gather(*map(api.server.transport.send, requests)))


async def test_a_definition_with_many_objects_changes_and_ends(api: Api) -> None:
    """Its objects are shown by the new schema at once, and are deleted with it."""
    made = with_spec({"type": "object", "properties": {"a": {"type": "string"}}})
    await define(api, made)
    for number in range(600):
        await api.create(f"x{number}", STACKS, spec={"a": "b"})
    properties = {"a": {"type": "string"}, "d": {"type": "string", "default": "e"}}
    versions = [{**made["spec"]["versions"][0], "schema": with_spec({"type": "object", "properties": properties})}]
    versions[0]["schema"] = versions[0]["schema"]["spec"]["versions"][0]["schema"]
    change = {"spec": {"versions": versions}}
    check(await held(api, "PATCH", f"{DEFINITIONS}/stacks.x.io", change, content_type=MERGE), 200)
    _, probe = await measured(_until(api, f"{STACKS}/x599", lambda obj: obj["spec"] == {"a": "b", "d": "e"}))
    assert max(probe[0], probe[2]) < LIMIT * 10
    items = (await api.call("GET", STACKS))["items"]
    assert [item["spec"] for item in items] == [{"a": "b", "d": "e"}] * 600
    check(await held(api, "DELETE", f"{DEFINITIONS}/stacks.x.io"), 200)
    while (await api.send("GET", f"{DEFINITIONS}/stacks.x.io")).status != 404:
        await asyncio.sleep(0)
    assert (await api.send("GET", STACKS)).status == 404


async def _until(api: Api, path: str, holds: Any) -> None:
    while not holds(await api.call("GET", path)):
        await asyncio.sleep(0.001)
