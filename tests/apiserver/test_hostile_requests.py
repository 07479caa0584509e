"""Requests that clients should not send: the server answers them correctly and never fails itself.

The harness measures that no request holds up the others: it fails a test whose loop was blocked for long.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from konverge.apiserver import ApiServer
from konverge.apiserver.nesting import MOST
from konverge.objects.names import label_value_errors, qualified_name_errors
from konverge.objects.text_cache import LONGEST
from tests.apiserver.api import APPLY, CONFIG_MAPS, MERGE, Api
from tests.apiserver.definitions import DEFINITIONS, define, definition

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
YAML = "application/yaml"
PATCHES = (MERGE, STRATEGIC, JSON_PATCH, APPLY)
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


async def answer(api: Api, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, Any]]:
    """The answer, which must not be the 500 of an error in the server."""
    response = await api.send(method, path, body, **headers)
    assert b"the server failed" not in response.body, f"{method} {path} {headers}: {body[:200]!r}"
    try:
        return response.status, json.loads(response.body)
    except ValueError:
        return response.status, {}


def config_map(**parts: Any) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, **parts}).encode()


def nested(levels: int, inside: bytes = b"1") -> bytes:
    return b'{"a":' * levels + inside + b"}" * levels


async def to_all_writes(api: Api, body: bytes) -> list[tuple[int, dict[str, Any]]]:
    """A body to every endpoint that takes one."""
    live = f"{CONFIG_MAPS}/live"
    answers = [
        await answer(api, "POST", CONFIG_MAPS, body, content_type="application/json"),
        await answer(api, "PUT", live, body, content_type="application/json"),
        await answer(api, "DELETE", f"{CONFIG_MAPS}/missing", body, content_type="application/json"),
    ]
    answers += [await answer(api, "PATCH", f"{live}?fieldManager=m", body, content_type=kind) for kind in PATCHES]
    return answers


# --- depth


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("levels", [MOST + 1, 900, 10_000, 200_000])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")])
async def test_deeply_nested_json_is_refused(api: Api, levels: int, brackets: tuple[bytes, bytes]) -> None:
    await api.create("live")
    deep = brackets[0] * levels + b"1" + brackets[1] * levels
    for body in (deep, b'{"metadata":{"name":"live"},"data":' + deep + b"}"):
        answers = await to_all_writes(api, body)
        assert {code for code, _ in answers} == {400}
    code, refused = await answer(api, "POST", CONFIG_MAPS, config_map()[:-1] + b',"data":' + deep + b"}")
    assert code == 400
    assert "exceeded max depth" in refused["message"]


async def test_patches_cannot_nest_an_object_deeper_and_deeper(api: Api) -> None:
    """Each patch adds levels, together more than a single body may have."""
    path = await defined(api, {"x-kubernetes-preserve-unknown-fields": True})
    await api.create("s", path, spec={})
    place, codes = "/spec", []
    for _ in range(4):
        change = [{"op": "add", "path": f"{place}/a", "value": json.loads(nested(60, b"{}"))}]
        code, _ = await answer(api, "PATCH", f"{path}/s", json.dumps(change).encode(), content_type=JSON_PATCH)
        codes.append(code)
        place += "/a" * 61
    assert codes[:2] == [200, 200]
    assert codes[-1] in (400, 422)


@pytest.mark.parametrize("body", [b"[" * 100_000, b"{a: " * 100_000, b"- " * 100_000, b"? " * 50_000])
async def test_deeply_nested_yaml_is_refused(api: Api, body: bytes) -> None:
    await api.create("live")
    assert (await answer(api, "POST", CONFIG_MAPS, body, content_type=YAML))[0] == 400
    code, refused = await answer(api, "PATCH", f"{CONFIG_MAPS}/live?fieldManager=m", body, content_type=APPLY)
    assert code == 400
    assert "yaml" in refused["message"]


# --- bombs

BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 9)) for letter in range(ord("b"), ord("k"))
)
MERGE_BOMB = b"b0: &b0 {x: 1}\n" + b"".join(
    b"b%d: &b%d {<<: [*b%d, *b%d]}\n" % (n, n, n - 1, n - 1) for n in range(1, 40)
)


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("body", [BOMB, MERGE_BOMB, b"a: &a [*a]\n", b"&a\nb: *a\n"])
async def test_yaml_that_expands_without_bound_is_refused(api: Api, body: bytes) -> None:
    await api.create("live")
    assert (await answer(api, "POST", CONFIG_MAPS, body, content_type=YAML))[0] == 400
    assert (await answer(api, "PATCH", f"{CONFIG_MAPS}/live?fieldManager=m", body, content_type=APPLY))[0] == 400


async def test_a_patch_that_copies_its_copies_is_refused(api: Api) -> None:
    await api.create("live", data={"a": "x" * 1000})
    body = json.dumps([{"op": "copy", "from": "/data", "path": f"/data/x{n}"} for n in range(64)]).encode()
    assert (await answer(api, "PATCH", f"{CONFIG_MAPS}/live", body, content_type=JSON_PATCH))[0] == 422


async def test_large_yaml_does_not_hold_up_other_requests(api: Api) -> None:
    """It takes seconds, but not of the loop (the harness measures the loop)."""
    body = b"metadata: {name: x}\ndata:\n" + b"".join(b"  k%d: v\n" % number for number in range(30_000))
    code, refused = await answer(api, "POST", CONFIG_MAPS, body, content_type=YAML)
    assert code == 201, refused


# --- size and number


@pytest.mark.spec("S-15")
async def test_bodies_over_the_limit_are_refused(api: Api) -> None:
    code, refused = await answer(api, "POST", CONFIG_MAPS, config_map(data={"x": "y" * 4_000_000}))
    assert code == 413
    assert refused["reason"] == "RequestEntityTooLarge"
    code, refused = await answer(api, "POST", CONFIG_MAPS, config_map(data={"x": "y" * 1_500_000}))
    assert code == 422


def owners(count: int) -> list[Any]:
    return [{"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": f"u{n}"} for n in range(count)]


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {f"k{n}": "v" for n in range(20_000)}},
        {"labels": {"a": "x" * 1_000_000}},
        {"annotations": {f"k{n}": "v" for n in range(20_000)}},
        {"ownerReferences": owners(5_000)},
        {"ownerReferences": owners(2_500) * 2},
        {"finalizers": [f"a.b/{n}" for n in range(10_000)]},
        {"finalizers": ["a.b/c"] * 10_000},
        {"name": "a" * 1_000_000},
        {"name": "", "generateName": "a" * 1_000_000},
        {"managedFields": [{"manager": f"m{n}", "operation": "Update", "apiVersion": "v1"} for n in range(5_000)]},
    ],
    ids=lambda metadata: next(reversed(metadata)),
)
async def test_huge_metadata_gets_an_answer(api: Api, metadata: dict[str, Any]) -> None:
    await api.create("live", metadata={"finalizers": [f"c.d/{n}" for n in range(2_000)]})
    await to_all_writes(api, config_map(metadata={"name": "live", **metadata}))


async def test_huge_numbers_get_an_answer(api: Api) -> None:
    await api.create("live")
    digits = b"9" * 5000
    for value in (digits, b"-" + digits, b"1e999999", b"1.5e308", b"0." + digits):
        for where in (b'"metadata":{"name":"live","generation":%b}', b'"metadata":{"name":"live"},"data":{"a":%b}'):
            await to_all_writes(api, b"{" + where % value + b"}")
    for name in ("limit", "timeoutSeconds", "resourceVersion", "gracePeriodSeconds", "continue"):
        for text in ("9" * 5000, "-" + "9" * 5000, "²", "٣", "-1"):
            for method in ("GET", "DELETE"):
                await answer(api, method, f"/api/v1/namespaces/none/configmaps?{name}={quote(text)}")


def test_caches_keep_short_texts_only() -> None:
    """Texts of clients are keys of caches; large ones must not stay there."""
    for check in (qualified_name_errors, label_value_errors):
        assert check("x" * (LONGEST + 1)) is not check("x" * (LONGEST + 1))
        assert check("x" * LONGEST) is check("x" * LONGEST)


# --- bytes


@pytest.mark.spec("S-15")
async def test_bytes_that_are_not_text_get_an_answer(api: Api) -> None:
    await api.create("live")
    for body in (
        b"\0\0\0",
        b"\xff\xfe",
        b'{"kind":"\xff"}',
        b'{"metadata":{"name":"\xff"}}',
        b'{"a\0b":1}',
        b"\xef\xbb\xbf{}",
    ):
        await to_all_writes(api, body)
        await answer(api, "POST", CONFIG_MAPS, body, content_type=YAML)
        await answer(api, "POST", CONFIG_MAPS, b"k8s\0" + body, content_type="application/vnd.kubernetes.protobuf")
    code, made = await answer(api, "POST", CONFIG_MAPS, b'{"metadata":{"name":"utf"},"data":{"a":"x\xe2\x82y"}}')
    assert code == 201
    assert made["data"]["a"] == "x\ufffd\ufffdy"  # as Go reads it: one for each byte


@pytest.mark.parametrize(
    "selector", ["(" * 5000, "a in (" + "b," * 5000 + "c)", "a=b," * 4000, "a==b==c", "!" * 999, "a>1e9"]
)
@pytest.mark.parametrize("name", ["labelSelector", "fieldSelector"])
async def test_strange_selectors_get_an_answer(api: Api, name: str, selector: str) -> None:
    for query in (f"{name}={quote(selector)}", f"{name}={quote(selector)}&watch=1&timeoutSeconds=1"):
        code, _ = await answer(api, "DELETE" if "watch" not in query else "GET", f"{CONFIG_MAPS}?{query}")
        assert code in (200, 400)


# --- patterns and formats


async def defined(api: Api, spec: dict[str, Any]) -> str:
    """The path of a custom kind with this schema, served."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    await define(api, definition("stacks", "Stack", group="x.io", schema=schema))
    return "/apis/x.io/v1/namespaces/default/stacks"


EVIL = ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){20}", "^(([a-z])+.)+[A-Z]([a-z])+$")


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("pattern", EVIL)
async def test_patterns_do_not_backtrack_exponentially(api: Api, pattern: str) -> None:
    text = {"type": "string", "maxLength": 5000}
    rules = [{"rule": f"self.b.matches('{pattern}')"}]
    properties = {"a": {**text, "pattern": pattern}, "b": text}
    path = await defined(api, {"properties": properties, "x-kubernetes-validations": rules})
    value = "a" * 2000 + "!"
    for spec in ({"a": value, "b": "a"}, {"a": "a", "b": value}, {"a": "a", "b": "a"}):
        body = {"apiVersion": "x.io/v1", "kind": "Stack", "metadata": {"generateName": "s-"}, "spec": spec}
        code, _ = await answer(api, "POST", path, json.dumps(body).encode())
        assert code in (201, 422)


@pytest.mark.parametrize("name", ["email", "hostname", "uri", "duration", "byte", "mac", "date-time", "cidr"])
async def test_formats_of_long_texts_are_checked_quickly(api: Api, name: str) -> None:
    path = await defined(api, {"properties": {"a": {"type": "string", "format": name}}})
    for text in ("a" * 50_000 + "!", "a." * 25_000 + "!", "1 a" * 20_000, "a@" * 20_000, ":" * 50_000, " " * 50_000):
        body = {"apiVersion": "x.io/v1", "kind": "Stack", "metadata": {"generateName": "s-"}, "spec": {"a": text}}
        code, _ = await answer(api, "POST", path, json.dumps(body).encode())
        assert code in (201, 422)


# --- numbers and times out of range

HUGE = ("1" + "0" * 400, "9" * 5_000, "9" * 1_000_000, "-" + "9" * 400)


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("kind", ["number", "integer", "string"])
async def test_a_number_that_no_float_holds_is_refused(api: Api, number: str, kind: str) -> None:
    path = await defined(api, {"properties": {"v": {"type": kind}}})
    await api.create("live", path, spec={})
    body = f'{{"metadata":{{"name":"x"}},"spec":{{"v":{number}}}}}'.encode()
    code, refused = await answer(api, "POST", path, body)
    assert code == 400
    assert f"json: cannot unmarshal number {number[:100]}" in refused["message"]
    for media in (MERGE, JSON_PATCH, APPLY):
        change = b'[{"op":"add","path":"/spec/v","value":%b}]' % number.encode() if media == JSON_PATCH else body
        assert (await answer(api, "PATCH", f"{path}/live?fieldManager=m", change, content_type=media))[0] == 400
    assert (await api.call("GET", f"{path}/live"))["spec"] == {}


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("field", ["generation", "uid", "labels", "creationTimestamp"])
async def test_a_huge_number_in_metadata_is_refused(api: Api, number: str, field: str) -> None:
    body = f'{{"metadata":{{"name":"x","{field}":{number}}}}}'.encode()
    assert {code for code, _ in await to_all_writes(api, body)} == {400}


async def test_an_exponent_that_no_float_holds_is_refused_in_json_and_a_text_in_yaml(api: Api) -> None:
    path = await defined(api, {"x-kubernetes-preserve-unknown-fields": True})
    code, refused = await answer(api, "POST", path, b'{"metadata":{"name":"x"},"spec":{"v":1e400}}')
    assert code == 400
    assert refused["message"].endswith("json: cannot unmarshal number 1e400 into Go value of type float64")
    body = b"apiVersion: x.io/v1\nkind: Stack\nmetadata: {name: x}\nspec: {v: 1e400, w: -1e999, z: 1e3}"
    made = await api.call("POST", path, body, content_type=YAML)
    assert made["spec"] == {"v": "1e400", "w": "-1e999", "z": 1000}
    applied = await api.call("PATCH", f"{path}/x?fieldManager=m&force=true", body, content_type=APPLY)
    assert applied["spec"] == made["spec"]


async def test_many_digits_in_a_text_or_behind_the_point_are_fine(api: Api) -> None:
    path = await defined(api, {"properties": {"v": {"type": "number"}, "text": {"type": "string"}}})
    body = '{{"metadata":{{"name":"x"}},"spec":{{"v":0.{},"text":"{}\\"{}"}}}}'.format("3" * 400, "4" * 400, "5" * 400)
    code, made = await answer(api, "POST", path, body.encode())
    assert (code, made["spec"]["v"]) == (201, 1 / 3)
    assert made["spec"]["text"] == "4" * 400 + '"' + "5" * 400


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("form", ["date-time", "date", "duration", "byte"])
async def test_a_list_in_place_of_a_text_with_a_format_fails_the_rule(api: Api, form: str) -> None:
    """The check of the format lets a list pass, as in the real server; the rule cannot read it."""
    rules = [{"rule": "self.v == self.v"}]
    path = await defined(
        api, {"properties": {"v": {"type": "string", "format": form}}, "x-kubernetes-validations": rules}
    )
    code, refused = await answer(api, "POST", path, b'{"metadata":{"name":"x"},"spec":{"v":[]}}')
    assert code == 422
    assert "invalid data, expected string, got []interface {} evaluating rule: self.v == self.v" in refused["message"]


@pytest.mark.spec("S-15")
@pytest.mark.parametrize(
    ("time", "rule"),
    [
        ("0000-03-01T00:00:00Z", "self.v.getFullYear() == 0 && self.v.getDayOfYear() == 60"),
        ("0000-01-01T00:00:00Z", "self.v.getFullYear('-05:00') == -1"),
        ("0000-01-01T00:00:00Z", "string(self.v) == '0000-01-01T00:00:00Z' && int(self.v) == -62167219200"),
        ("0001-01-01T00:00:00+23:59", "self.v.getFullYear() == 0 && string(self.v) == '0001-01-01T00:00:00+23:59'"),
        ("9999-12-31T23:59:59-23:59", "self.v.getFullYear() == 10000 && self.v.getDate() == 1"),
        ("9999-12-31T23:59:59Z", "self.v.getHours('+14:00') == 13 && self.v.getFullYear('+14:00') == 10000"),
    ],
)  # fmt: skip
async def test_rules_read_times_beyond_the_years_of_python(api: Api, time: str, rule: str) -> None:
    properties = {"v": {"type": "string", "format": "date-time"}}
    path = await defined(api, {"properties": properties, "x-kubernetes-validations": [{"rule": rule}]})
    body = json.dumps({"metadata": {"name": "x"}, "spec": {"v": time}}).encode()
    code, made = await answer(api, "POST", path, body)
    assert code == 201, made["message"]


# --- anything at all

TEXTS = st.one_of(
    st.sampled_from(["", "x", "v1", "ConfigMap", "app", "a" * 300, "\x00", "é", "-"]), st.text(max_size=8)
)
_FIELD_NAMES = """
metadata name namespace labels annotations ownerReferences finalizers managedFields spec status data kind apiVersion
containers template selector replicas ports $patch $setElementOrder/finalizers $retainKeys op path from value uid
resourceVersion generation creationTimestamp deletionTimestamp manager operation fieldsV1
"""
KEYS = st.one_of(st.sampled_from(_FIELD_NAMES.split()), TEXTS)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=25,
)
OBJECTS = st.fixed_dictionaries(
    {"metadata": st.one_of(st.fixed_dictionaries({"name": st.just("live")}, optional={"labels": VALUES}), VALUES)},
    optional={"spec": VALUES, "data": VALUES, "status": VALUES, "kind": TEXTS, "apiVersion": TEXTS},
)
ENDPOINTS = (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DEFINITIONS,
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
)
ANY_BODY = st.one_of(VALUES, OBJECTS, st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=3))


@pytest.mark.spec("S-15")
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(path=st.sampled_from(ENDPOINTS), value=ANY_BODY)
async def test_any_body_gets_an_answer(path: str, value: Any) -> None:
    body = json.dumps(value).encode()
    async with ApiServer() as server:
        api = Api(server)
        await answer(api, "POST", path, body, content_type="application/json")
        await answer(api, "PUT", f"{path}/live", body, content_type="application/json")
        for kind in PATCHES:
            await answer(api, "PATCH", f"{path}/live?fieldManager=m&force=true", body, content_type=kind)
        await answer(api, "DELETE", f"{path}/live", body, content_type="application/json")
        assert (await answer(api, "GET", CONFIG_MAPS))[0] == 200


@given(
    path=st.text(alphabet=st.characters(codec="ascii"), max_size=40), query=st.dictionaries(TEXTS, TEXTS, max_size=3)
)
async def test_any_path_gets_an_answer(path: str, query: dict[str, str]) -> None:
    async with ApiServer() as server:
        api = Api(server)
        for prefix in ("/", "/api/v1/namespaces/default/", "/apis/apps/v1/"):
            target = (
                prefix + quote(path, safe="/%") + "?" + "&".join(f"{quote(k)}={quote(v)}" for k, v in query.items())
            )
            for method in ("GET", "POST", "DELETE", "OPTIONS"):
                await answer(api, method, target, b"{}")


@pytest.mark.parametrize("metadata", ["x", 1, [], None, True])
async def test_a_custom_resource_of_another_kind_whose_metadata_is_no_object(api: Api, metadata: Any) -> None:
    await define(api, definition("widgets", "Widget"))
    body = json.dumps({"apiVersion": "example.com/v1", "kind": "Other", "metadata": metadata}).encode()
    code, refusal = await answer(api, "POST", "/apis/example.com/v1/namespaces/default/widgets", body)
    assert (code, refusal["message"]) == (
        422,
        'Other.example.com "" is invalid: kind: Invalid value: "Other": must be Widget',
    )
