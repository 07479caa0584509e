"""What the cache keeps of an object."""

from __future__ import annotations

import json

import pytest

from konverge.cache.record import Key, identify, number, receive, receiver


@pytest.mark.spec("R-10")
def test_managed_fields_are_removed_wherever_they_stand() -> None:
    managed = [{"manager": "m", "fieldsV1": {"f:data": {"f:v": {}}}}]
    for metadata in (
        {"managedFields": managed, "name": "a", "uid": "u"},
        {"name": "a", "managedFields": managed, "uid": "u"},
        {"name": "a", "uid": "u", "managedFields": managed},
    ):
        key, record, _ = receive(json.dumps({"metadata": metadata, "data": {}}, separators=(",", ":")).encode())
        assert json.loads(record.raw) == {"metadata": {"name": "a", "uid": "u"}, "data": {}}
        assert key == Key("", "a")


def encoded(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@pytest.mark.spec("R-10")
def test_of_managed_fields_only_what_the_own_manager_applied_is_kept() -> None:
    mine = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {}}}
    others = [{"manager": "me", "operation": "Update"}, {"manager": "you", "operation": "Apply"}]
    obj = {"metadata": {"name": "a", "managedFields": [others[0], mine, others[1]], "uid": "u"}}
    _, record, _ = receiver("me")(encoded(obj))
    assert json.loads(record.raw) == {"metadata": {"name": "a", "managedFields": [mine], "uid": "u"}}
    obj["metadata"]["managedFields"] = others
    _, record, _ = receiver("me")(encoded(obj))
    assert json.loads(record.raw) == {"metadata": {"name": "a", "uid": "u"}}


@pytest.mark.spec("R-10")
def test_a_field_of_that_name_elsewhere_stays() -> None:
    managed = [{"manager": "m"}]
    obj = {"data": {"managedFields": ["x"]}, "metadata": {"name": "a", "managedFields": managed}}
    _, record, _ = receive(encoded(obj))
    assert json.loads(record.raw) == {"data": {"managedFields": ["x"]}, "metadata": {"name": "a"}}
    _, record, _ = receive(json.dumps(obj).encode())
    assert json.loads(record.raw) == obj, "written with spaces, it stays"


@pytest.mark.spec("R-10")
@pytest.mark.parametrize(
    "metadata",
    [
        b'{"name":"a", "managedFields":[{"manager":"m"}]}',
        b'{"name":"a", "managedFields":[{"manager":"m"}],"uid":"u"}',
        b'{"managedFields":[{"manager":"m"}] ,"name":"a"}',
        b'{"name":"a","managedFields":[{"manager":"m"}] }',
        b'{ "managedFields":[{"manager":"m"}],"name":"a"}',
    ],
)
def test_with_spaces_around_it_the_rest_stays_readable(metadata: bytes) -> None:
    key, record, _ = receive(b'{"metadata":' + metadata + b',"data":{"v":"1"}}')
    assert (key, record.meta.name) == (Key("", "a"), "a")
    kept = json.loads(record.raw)
    kept["metadata"].pop("managedFields", None)
    expected = json.loads(metadata)
    del expected["managedFields"]
    assert kept == {"metadata": expected, "data": {"v": "1"}}


@pytest.mark.spec("R-10")
def test_the_metadata_at_hand_holds_no_managed_fields() -> None:
    """It would keep the whole message in memory."""
    managed = [{"manager": "m", "operation": "Apply"}]
    for receives in (receive, receiver("m")):
        _, _, meta = receives(encoded({"metadata": {"name": "a", "managedFields": managed}}))
        assert not getattr(meta, "managed_fields")  # noqa: B009


def test_a_record_knows_version_uid_generation_and_annotations() -> None:
    meta = {"name": "a", "namespace": "ns", "uid": "u", "generation": 3, "resourceVersion": "12"}
    key, record, received = receive(encoded({"metadata": {**meta, "annotations": {"x": "y"}, "labels": {"l": "m"}}}))
    assert (str(key), record.version, record.uid, record.generation) == ("ns/a", 12, "u", 3)
    assert (record.annotations, record.meta.labels, received.labels) == ({"x": "y"}, {"l": "m"}, {"l": "m"})
    assert str(Key("", "a")) == "a"


def test_a_version_that_is_no_number_is_never_newer() -> None:
    _, record, _ = receive(encoded({"metadata": {"name": "a", "resourceVersion": "opaque"}}))
    assert (record.version, number("opaque"), number(""), number("5")) == (0, 0, 0, 5)


def test_an_object_that_cannot_be_read_has_an_identity() -> None:
    metadata = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "labels": 5}
    assert identify(encoded({"metadata": metadata, "spec": []})) == (Key("ns", "a"), 7, "u")
