"""Bodies in protobuf become the JSON that the same client would have sent."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.protobuf import ProtobufError, decode
from tests.apiserver.protobuf.writing import data, envelope, number

META = data(1, data(1, "web"), data(3, "shop"))  # name, namespace


def decoded(body: bytes) -> dict[str, Any]:
    """The decoded body as JSON, as the next reader gets it."""
    result: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(decode(body)))
    return result


def test_strings_maps_and_bytes_are_read() -> None:
    entry = data(2, data(1, "key"), data(2, "value"))
    raw = data(3, data(1, "file"), data(2, b"\x00\xff"))
    assert decoded(envelope("v1", "ConfigMap", META, entry, raw)) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "web", "namespace": "shop"},
        "data": {"key": "value"},
        "binaryData": {"file": "AP8="},
    }


def test_times_and_zero_values_are_read() -> None:
    metadata = data(1, data(1, "x"), data(2, ""), data(8), data(9, number(1, -1)), number(10, 0))
    read = decoded(envelope("v1", "Pod", metadata))["metadata"]
    # generateName is empty and no pointer, so is creationTimestamp: left out. Of a pointer, zero is a value.
    assert read == {"name": "x", "deletionTimestamp": "1969-12-31T23:59:59Z", "deletionGracePeriodSeconds": 0}


def test_micro_times_and_negative_numbers_are_read() -> None:
    spec = data(2, data(1, "me"), number(2, 15), data(4, number(1, 1), number(2, 2_000_999)), number(5, -3))
    lease = decoded(envelope("coordination.k8s.io/v1", "Lease", META, spec))
    assert lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "1970-01-01T00:00:01.002000Z",
        "leaseTransitions": -3,
    }


def test_fields_of_embedded_structs_are_inlined() -> None:
    volume = data(1, data(1, "v"), data(2, data(2, data(1, ""))))  # name, volumeSource.emptyDir.medium
    container = data(2, data(1, "c"), data(2, "i"), data(8, data(1, data(1, "cpu"), data(2, data(1, "100m")))))
    pod = decoded(envelope("v1", "Pod", META, data(2, volume, container)))
    assert pod["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert pod["spec"]["containers"] == [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "100m"}}}]


def test_a_number_or_string_is_read_as_either() -> None:
    ports = data(1, number(3, 80), data(4, number(1, 0), number(2, 8080)))
    named = data(1, number(3, 81), data(4, number(1, 1), data(3, "http")))
    service = decoded(envelope("v1", "Service", META, data(2, ports, named)))
    assert [port["targetPort"] for port in service["spec"]["ports"]] == [8080, "http"]


def test_a_list_that_is_a_message_is_read() -> None:
    extra = data(5, data(1, "scopes"), data(2, data(1, "a"), data(1, "b")))
    review = decoded(envelope("authorization.k8s.io/v1", "SubjectAccessReview", data(2, data(3, "jane"), extra)))
    assert review["spec"]["extra"] == {"scopes": ["a", "b"]}


def test_a_schema_with_its_choices_is_read() -> None:
    item = data(1, data(5, "string"))
    properties = data(29, data(1, "list"), data(2, data(5, "array"), data(24, item)))
    free = data(30, number(1, 1))
    limits = b"\x49" + struct.pack("<d", 2.5)  # field 9, maximum
    default = data(8, data(1, '{"a":1}'))
    props = data(5, "object") + properties + free + limits + default
    version = data(7, data(1, "v1"), data(4, data(1, props)))
    definition = decoded(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", data(2, version)))
    assert definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"type": "string"}}},
        "additionalProperties": True,
        "maximum": 2.5,
        "default": {"a": 1},
    }


def test_packed_numbers_are_read() -> None:
    one_by_one = number(4, 1) + number(4, 300)
    packed = data(4, b"\x01\xac\x02")
    spec = [data(2, data(14, part)) for part in (one_by_one, packed)]  # securityContext.supplementalGroups
    first, second = (decoded(envelope("v1", "Pod", part))["spec"]["securityContext"] for part in spec)
    assert first == second == {"supplementalGroups": [1, 300]}


def test_options_of_a_delete_are_the_same_in_every_group() -> None:
    options = number(1, 0) + data(2, data(1, "uid-1")) + data(4, "Foreground")
    for version in ("v1", "apps/v1", "meta.k8s.io/v1", "example.com/v2"):
        assert decoded(envelope(version, "DeleteOptions", options)) == {
            "kind": "DeleteOptions",
            "apiVersion": version,
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "uid-1"},
            "propagationPolicy": "Foreground",
        }


def test_fields_of_a_newer_client_are_skipped() -> None:
    assert decoded(envelope("v1", "ConfigMap", META, number(99, 1), data(98, "x")))["metadata"]["name"] == "web"


def test_an_unknown_kind_keeps_its_name() -> None:
    assert decode(envelope("example.com/v1", "Thing", META)) == {"kind": "Thing", "apiVersion": "example.com/v1"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty data"),
        (b"{}", "expected prefix [107 56 115 0]"),
        (b"k8s\x00", "empty body"),
        (b"k8s\x00\x0a\x7f", "unexpected EOF"),
        (b"k8s\x00\x0b", "unexpected EOF"),
        (envelope("v1", "ConfigMap", number(1, 5)), "wrong wireType = 0 for field ObjectMeta"),
        (envelope("v1", "ConfigMap", b"\xff" * 11), "integer overflow"),
    ],
)
def test_a_body_that_is_no_protobuf_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(ProtobufError) as refused:
        decode(body)
    assert message in str(refused.value)


@pytest.mark.spec("S-15")
@pytest.mark.parametrize("levels", [200, 400, 5000])
def test_deep_bodies_are_refused(levels: int) -> None:
    props = data(5, "object")
    for _ in range(levels):
        props = data(29, data(1, "a"), data(2, props))  # properties
    version = data(7, data(1, "v1"), data(4, data(1, props)))
    with pytest.raises(ProtobufError, match="levels") as refused:
        decode(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", data(2, version)))
    assert (refused.value.kind, refused.value.version) == ("CustomResourceDefinition", "v1")


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(message: bytes) -> None:
    with contextlib.suppress(ProtobufError):
        assert decode(envelope("v1", "Pod", message))["kind"] == "Pod"


@given(st.binary(max_size=60), st.integers(0, 400))
def test_a_damaged_body_is_read_or_refused(noise: bytes, place: int) -> None:
    body = envelope("v1", "Service", META, data(2, data(1, number(3, 80), data(4, number(2, 8080)))))
    with contextlib.suppress(ProtobufError):
        assert "kind" in decode(body[:4] + (body[4:place] + noise + body[place:]))
