"""Definitions made from classes, on the real API server: accepted, and refusing what the classes refuse."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from konverge.objects import CustomResource, crd, from_json, to_json
from tests.objects.zoo import Animal, Cage, Keeper, OldKeeper, WebApp
from tests.real.definitions import Api, installed

DEFINITIONS = [crd(WebApp), crd(Animal), crd(Cage), crd(OldKeeper, Keeper)]


@pytest.fixture(scope="module")
def api(real_api: Api) -> Iterator[Api]:
    """The server, which serves all definitions."""
    with installed(real_api, *DEFINITIONS):
        yield real_api


_names = (f"a{number}" for number in itertools.count())


def _try(api: Api, cls: type[CustomResource[Any, Any]], spec: Any) -> tuple[int, Any, str]:
    """The status and the answer of a dry run, and the error of the class ("" when it accepts the object)."""
    resource = cls.resource
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": next(_names)}, "spec": spec}
    body = json.dumps(obj).encode()
    status, answer = api("POST", resource.path("default") + "?dryRun=All&fieldValidation=Ignore", body)
    assert status in (201, 422), answer
    try:
        from_json(cls, body)
    except msgspec.ValidationError as refused:
        return status, answer, str(refused)
    return status, answer, ""


# ── one by one ───────────────────────────────────────────────────────────────────────────────────────────────────────

GOOD = [
    {},
    {"count": 0},
    {"count": 100, "ratio": 0.25, "wild": True},
    {"code": "abc1", "tag": "xy", "nickname": ""},
    {"color": "blue", "level": 2, "mood": "calm"},
    {"amount": "1.5Gi"},
    {"amount": 5},
    {"amount": "100m", "budget": "25%"},
    {"budget": 3},
    {"names": ["a", "b", "c"], "shortNames": ["abc"]},
    {"ports": [{"name": "http", "number": 80}, {"name": "dns", "number": 53, "protocol": "UDP"}]},
    {"unique": ["a", "b"], "atoms": [1, 1]},
    {"labels": {"a": "b"}, "weights": {"x": 0}},
    {"storage": {"size": 5}, "backup": {}},
    {"sizes": [[1, 2], []]},
    {"anything": {"deep": [1, {"x": None}]}, "free": {"a": [1], "b": "c"}},
    {"embedded": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}},
    {"extensible": {"size": 1, "other": "kept"}},
    {"maybe": None},
    {"born": "2026-01-02T03:04:05Z", "seen": "2026-01-02T03:04:05.5+02:00"},
    {"uid": "0f8fad5b-d9cb-469f-a165-70867728950e", "data": "aGVsbG8="},
    {"clusterIP": "10.0.0.1", "address": "10.0.0.1"},
    {"name": "ééééé"},
    {"unknown": 1},
    {"mood": None, "backup": None},
]


@pytest.mark.parametrize("spec", GOOD, ids=json.dumps)
def test_class_and_server_accept(api: Api, spec: dict[str, Any]) -> None:
    status, answer, refusal = _try(api, Animal, {"name": "bear"} | spec)
    assert (status, refusal) == (201, ""), answer.get("message")


BAD = [
    {"name": ""},
    {"name": "toolong"},
    {"name": "éééééé"},
    {"name": None},
    {"name": 5},
    {"count": -2},
    {"count": 1002},
    {"count": 3},
    {"count": "4"},
    {"count": 2.5},
    {"count": True},
    {"ratio": 0},
    {"ratio": 1},
    {"ratio": "0.5"},
    {"wild": "yes"},
    {"tag": "x"},
    {"tag": ""},
    {"code": "ABC1"},
    {"code": "xabc1x"},
    {"color": "green"},
    {"level": 3},
    {"level": "1"},
    {"mood": "Calm"},
    {"amount": "lots"},
    {"amount": "1ki"},
    {"amount": True},
    {"budget": 1.5},
    {"budget": []},
    {"names": []},
    {"names": ["a", "b", "c", "d"]},
    {"names": "a"},
    {"shortNames": ["abcd"]},
    {"ports": [{"name": "http"}]},
    {"ports": [{"name": "HTTP", "number": 80}]},
    {"ports": [{"name": "http", "number": 0}]},
    {"ports": [{"name": "http", "number": 80, "protocol": "SCTP"}]},
    {"atoms": ["1"]},
    {"labels": {}},
    {"labels": {"a": "1", "b": "2", "c": "3"}},
    {"labels": {"a": 1}},
    {"weights": {"x": -1}},
    {"storage": {"size": "big"}},
    {"storage": []},
    {"backup": 5},
    {"sizes": [1]},
    {"free": "text"},
    {"embedded": []},
    {"seen": "yesterday"},
    {"uid": "nobody"},
]


@pytest.mark.parametrize("spec", BAD, ids=json.dumps)
def test_class_and_server_refuse(api: Api, spec: dict[str, Any]) -> None:
    status, answer, refusal = _try(api, Animal, {"name": "bear"} | spec)
    assert status == 422, answer
    assert refusal


SERVER_ONLY = [
    ({"count": 102}, "too many"),
    ({"storage": {"size": 11}}, "size is over the limit"),
    ({"unique": ["a", "a"]}, "Duplicate value"),
    ({"ports": [{"name": "a", "number": 1}, {"name": "a", "number": 2}]}, "Duplicate value"),
    ({"born": "yesterday"}, "date-time"),
    ({"address": "300.0.0.1"}, "ipv4"),
    ({"embedded": {"apiVersion": "v1"}}, "embedded.kind"),
    ({"clusterIP": "x" * 21}, "Too long"),
    ({"amount": 0.5}, "must be of type integer,string"),
]


@pytest.mark.parametrize(("spec", "message"), SERVER_ONLY, ids=lambda value: json.dumps(value)[:60])
def test_the_server_refuses_what_the_class_cannot_check(api: Api, spec: dict[str, Any], message: str) -> None:
    status, answer, _ = _try(api, Animal, {"name": "bear"} | spec)
    assert status == 422, answer
    assert message in answer["message"]


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────

values = st.one_of(
    st.integers(-5, 120),
    st.sampled_from([0.5, -0.5, 1.5]),
    st.booleans(),
    st.sampled_from(["", "a", "bear", "abc1", "red", "blue", "calm", "TCP", "1Gi", "25%", "toolongname"]),
    st.lists(st.sampled_from(["a", "abcd", 1]), max_size=4, unique_by=str),
    st.dictionaries(st.sampled_from(["size", "limit", "a", "name"]), st.sampled_from(["x", 1, 2]), max_size=3),
)
fields = st.sampled_from(
    [
        "name",
        "count",
        "ratio",
        "wild",
        "nickname",
        "tag",
        "code",
        "color",
        "level",
        "mood",
        "amount",
        "budget",
        "names",
        "shortNames",
        "ports",
        "atoms",
        "labels",
        "weights",
        "storage",
        "backup",
        "sizes",
        "anything",
        "free",
    ]
)
specs = st.dictionaries(fields, values, max_size=3)


def _server_only(spec: dict[str, Any]) -> bool:
    """Whether a spec breaks a rule that only the server checks: the CEL rules, and that quantities are no fractions."""
    storages = [part for part in (spec.get("storage"), spec.get("backup")) if isinstance(part, dict)]
    too_big = any(_number(part.get("size", 1)) > _number(part.get("limit", 10)) for part in storages)
    return too_big or 100 < _number(spec.get("count")) <= 1000 or isinstance(spec.get("amount"), float)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(specs.filter(lambda spec: not _server_only(spec)))
def test_class_and_server_agree_on_random_specs(api: Api, spec: dict[str, Any]) -> None:
    status, answer, refusal = _try(api, Animal, {"name": "bear"} | spec)
    assert (status == 422) == bool(refusal), (answer.get("message"), refusal)


# ── what the server makes of them ────────────────────────────────────────────────────────────────────────────────────


def test_the_server_fills_in_the_defaults_of_the_class(api: Api) -> None:
    _, answer, _ = _try(api, Animal, {"name": "bear", "backup": {}})
    spec = answer["spec"]
    assert spec["storage"] == spec["backup"] == {"size": 1, "limit": 10}
    assert (spec["count"], spec["ratio"], spec["color"], spec["nickname"], spec["filled"]) == (2, 0.5, "red", "", 7)
    read = from_json(Animal, json.dumps(answer))
    given = from_json(Animal, json.dumps({"spec": {"name": "bear", "backup": {}, "filled": 7}}))
    assert read.spec == given.spec


def test_status_and_scale_are_served(api: Api) -> None:
    path = WebApp.resource.path("default")
    body = {"apiVersion": "apps.example.com/v1", "kind": "WebApp", "metadata": {"name": "web"}, "spec": {"image": "a"}}
    status, made = api("POST", path, json.dumps(body).encode())
    assert status == 201, made
    app = from_json(WebApp, json.dumps(made))
    assert app.status.ready_replicas == 0
    app.status.ready_replicas = 3
    status, answer = api("PUT", f"{path}/web/status", to_json(app))
    assert (status, answer["status"]["readyReplicas"]) == (200, 3)
    status, scale = api("GET", f"{path}/web/scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (1, 3)
    api("DELETE", f"{path}/web")


def test_rules_of_the_whole_object_and_transition_rules_are_enforced(api: Api) -> None:
    path = Animal.resource.path()
    bear: dict[str, Any] = {"apiVersion": "zoo.example.com/v1", "kind": "Animal", "metadata": {"name": "bear"}}
    bear["spec"] = {"name": "bear", "fixed": "one"}
    status, answer = api("POST", path, json.dumps(bear).encode())
    assert (status, "names begin with a" in answer["message"]) == (422, True)
    bear["metadata"]["name"] = "a-bear"
    status, made = api("POST", path, json.dumps(bear).encode())
    assert status == 201, made
    made["spec"]["fixed"] = "two"
    status, answer = api("PUT", f"{path}/a-bear", json.dumps(made).encode())
    assert (status, "fixed for ever" in answer["message"]) == (422, True)
    status, listed = api("GET", f"{path}?fieldSelector=spec.color%3Dred")
    assert (status, len(listed["items"])) == (200, 1)
    api("DELETE", f"{path}/a-bear")


def test_several_versions_are_served(api: Api) -> None:
    body = {"apiVersion": "zoo.example.com/v2", "kind": "Keeper", "metadata": {"name": "ann"}, "spec": {"name": "Ann"}}
    status, made = api("POST", Keeper.resource.path("default"), json.dumps(body).encode())
    assert status == 201, made
    status, old = api("GET", OldKeeper.resource.path("default", "ann"))
    assert (status, from_json(OldKeeper, json.dumps(old)).api_version) == (200, "zoo.example.com/v1")
    api("DELETE", Keeper.resource.path("default", "ann"))


def test_a_field_of_a_built_in_type_is_validated(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    status, answer, refusal = _try(api, Cage, {"template": template})
    assert (status, refusal) == (201, "")
    assert answer["spec"]["template"] == template
    status, answer, _ = _try(api, Cage, {"template": {"spec": {"containers": [{"image": "b"}]}}})
    assert status == 422
