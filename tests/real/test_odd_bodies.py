"""Odd bodies and patches in random order, on the real server and on ours: the same answers and the same warnings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.schema import TypeNode, decode, lookup
from konverge.apiserver.status import ApiError
from tests.real.sides import NAMESPACE, Side, thorough

Obj = dict[str, Any]

odd_values = st.sampled_from(
    [None, "", "x", 0, 1, -1, 1.5, 1.0, 99999999999, True, False, [], {}, [None], ["x"], {"a": "b"}, [{}]]
)


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    all_paths = [prefix] if prefix else []
    if isinstance(value, dict):
        for key, member in value.items():
            all_paths += paths(member, (*prefix, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            all_paths += paths(member, (*prefix, index))
    return all_paths


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a value with one place of it replaced."""
    if not path:
        return new
    head, *rest = path
    if isinstance(value, list):
        return [changed(member, tuple(rest), new) if i == head else member for i, member in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {**value, head: changed(value.get(head), tuple(rest), new)}


POD: Obj = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "labels": {"a": "b"},
        "finalizers": ["example.com/f"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": True}],
    },
    "spec": {
        "activeDeadlineSeconds": 5,
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3, "effect": "NoExecute"}],
        "containers": [
            {
                "name": "c",
                "image": "i",
                "command": ["x"],
                "ports": [{"containerPort": 80, "name": "p"}],
                "env": [
                    {"name": "A", "value": "b"},
                    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}}},
                ],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"port": 80, "path": "/"}, "periodSeconds": 3},
                "securityContext": {"runAsUser": 5, "capabilities": {"add": ["NET_ADMIN"]}},
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "configMap": {"name": "x"}}],
    },
}
SECRET: Obj = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "annotations": {"a": "b"}},
    "data": {"a": "YQ==", "b": ""},
    "type": "Opaque",
    "immutable": False,
}
LEASE: Obj = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "l"},
    "spec": {
        "holderIdentity": "h",
        "leaseDurationSeconds": 3,
        "acquireTime": "2020-01-01T00:00:00.000000Z",
        "renewTime": "2020-01-01T00:00:00.123456+02:00",
        "leaseTransitions": 2,
    },
}
SAMPLES = [
    (POD, "/api/v1/namespaces/{}/pods"),
    (SECRET, "/api/v1/namespaces/{}/secrets"),
    (LEASE, "/apis/coordination.k8s.io/v1/namespaces/{}/leases"),
]
texts = st.sampled_from(
    [
        *("1", "0.5", "1e3", "1k", "1.5Gi", "1000m", "0.0001", "1x", "-1", "+2", ".5", "5.", "1E", "1e", " 1 ", "1_0"),
        *("2020-01-01T00:00:00Z", "2020-13-01T00:00:00Z", "2020-02-30T00:00:00Z", "2020-01-01", "2020-01-01T0:00:00Z"),
        *("2020-01-01T00:00:00.5Z", "2020-01-01T00:00:00.123456Z", "2020-01-01T25:00:00Z", "2020-01-01T00:00:00+25:00"),
        *("YQ==", "YQ=", "YQ", "Y Q==", "YQ==x", "YR==", "%%", "YWI=", "Y\nQ==", "é", "٣"),
    ]
)


@st.composite
def odd_bodies(draw: st.DrawFn) -> tuple[Obj, str]:
    body, path = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in paths(body) if place not in (("apiVersion",), ("kind",))]
        place = draw(st.sampled_from(places))
        if draw(st.booleans()):
            place = (*place[:-1], draw(st.sampled_from(["extra", "Name", "spec", "metadata"])))
        if not all(isinstance(part, str) for part in place[-1:]) and not isinstance(place[-1], int):
            continue
        body = changed(body, place, draw(st.one_of(odd_values, texts)))
    return body, path


def contained(ours: Any, real: Any, path: str = "") -> list[str]:
    """Where a decoded object is not part of the answer: defaults and admission may have added to it."""
    if isinstance(ours, dict) and isinstance(real, dict):
        return [line for key in ours for line in contained(ours[key], real.get(key), f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(real, list) and len(ours) <= len(real):
        pairs = zip(ours, real, strict=False)
        return [line for i, (a, b) in enumerate(pairs) for line in contained(a, b, f"{path}[{i}]")]
    return [] if ours == real or ours in (None, "", 0, {}) else [f"{path}: ours {ours!r}, real {real!r}"]


def ours(node: TypeNode, body: Obj, kind: str, version: str, validation: str) -> decode.Decoded | ApiError:
    try:
        return decode.strict(node, json.dumps(body).encode(), kind=kind, version=version, validation=validation)
    except ApiError as error:
        return error


@pytest.mark.spec("S-03")
@thorough(200)
@given(sample=odd_bodies(), validation=st.sampled_from(["Strict", "Warn"]))
def test_odd_bodies_are_answered_alike(real_side: Side, sample: tuple[Obj, str], validation: str) -> None:
    body, path = sample
    kind, (group, _, version) = body["kind"], body["apiVersion"].rpartition("/")
    node = lookup(group, version, kind)
    assert node is not None
    code, answer = real_side.send("POST", path.format(NAMESPACE), body, dryRun="All", fieldValidation=validation)
    decoded = ours(node, body, kind, version, validation)
    if isinstance(decoded, ApiError):
        assert (decoded.code, decoded.message) == (code, answer["message"]), json.dumps(body)
        return
    assert code != 400 or "cannot be handled" not in answer["message"], (answer["message"], json.dumps(body))
    shown = [f"299 - {quote(text)}" for text in decoded.strict]
    assert [text for text in real_side.warnings if "field" in text] == shown, json.dumps(body)
    if code == 201:
        answer["metadata"].pop("managedFields", None)
        assert contained(decoded.obj, answer) == [], json.dumps(body)
