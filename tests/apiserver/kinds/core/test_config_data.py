"""ConfigMaps and Secrets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.kinds.harness import Change, World, named

FROZEN = "field is immutable when `immutable` is set"
SECRET = named(type="a/b", data={"x": "YQ=="}, immutable=True)
CONFIG_MAP = named(data={"x": "y"}, immutable=True)


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    "change",
    [
        Change("Secret", SECRET, {"type": "c"}, ['type: Invalid value: "c": field is immutable']),
        Change("Secret", SECRET, {"data": {"x": "Yg=="}}, [f"data: Forbidden: {FROZEN}"]),
        Change("Secret", SECRET, {"stringData": {"x": "a"}}, []),
        Change("ConfigMap", CONFIG_MAP, {"data": {"x": "z"}}, [f"data: Forbidden: {FROZEN}"]),
        Change(
            "ConfigMap",
            CONFIG_MAP,
            {"immutable": None, "data": {"z": "q"}, "binaryData": {"q": "YQ=="}},
            [f"{name}: Forbidden: {FROZEN}" for name in ("immutable", "data", "binaryData")],
        ),
    ],
)
def test_immutable_data_does_not_change(change: Change) -> None:
    change.check()


@pytest.mark.spec("S-09")
def test_string_data_becomes_data() -> None:
    outcome = World().create("", "Secret", named(stringData={"a": "ü"}, data={"a": "eA==", "b": "eA=="}))
    assert outcome.obj["data"] == {"a": "w7w=", "b": "eA=="}
    assert "stringData" not in outcome.obj
    assert outcome.obj["type"] == "Opaque"


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("Secret", {"data": {"a": None, "b": "eA=="}}, {"data": {"a": "", "b": "eA=="}}),
        ("Secret", {"stringData": {"a": None}}, {"data": {"a": ""}}),
        ("ConfigMap", {"data": {"a": None}, "binaryData": {"b": None}}, {"data": {"a": ""}, "binaryData": {"b": ""}}),
    ],
)
def test_a_value_that_is_null_is_empty(kind: str, given: dict[str, Any], kept: dict[str, Any]) -> None:
    """As Helm templates write what has no value."""
    outcome = World().create("", kind, named(**given))
    assert outcome.errors == []
    assert {name: outcome.obj[name] for name in kept} == kept


@pytest.mark.spec("S-09")
def test_errors_in_the_contents_of_secrets_read_as_in_go() -> None:
    body = named(type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "eyJhIg=="})
    assert World().create("", "Secret", body).texts == [
        'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": unexpected end of JSON input'
    ]
    pair = World().create("", "Secret", named(type="kubernetes.io/tls", data={"tls.crt": "YQ==", "tls.key": "YQ=="}))
    assert pair.warnings == ["tls: failed to find any PEM data in certificate input"]
