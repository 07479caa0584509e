"""What the cache keeps of an object."""

from __future__ import annotations

import json

import pytest

from konverge.cache.record import Key, receive


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
