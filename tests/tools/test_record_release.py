"""The recorder of releases works with today's konverge, too: so that it can record the next release."""

from __future__ import annotations

import pytest

from tools.record_release import OBJECTS, SCRIPT, record

pytestmark = [pytest.mark.virtual, pytest.mark.spec("A-13")]


async def test_what_is_recorded_is_every_object_as_it_is_stored() -> None:
    head, *lines = await record("webapp")
    assert (head["operator"], head["databases"]) == ("webapp", [])
    by_table: dict[str, list[str]] = {}
    for line in lines:
        by_table.setdefault(line["table"], []).append(line["object"]["metadata"]["name"])
        assert line["object"]["metadata"]["uid"]
        assert int(line["object"]["metadata"]["resourceVersion"]) <= head["revision"]
        assert "kind" not in line["object"]
    made = {item["metadata"]["name"] for item in OBJECTS["webapp"]}
    assert made < set(by_table["apps.konverge.dev/webapps"]) == set(by_table["apps/deployments"])
    assert by_table["apiextensions.k8s.io/customresourcedefinitions"] == ["webapps.apps.konverge.dev"]
    assert len(by_table["/pods"]) == 6
    assert not [table for table in by_table if "events" in table or "leases" in table or "rbac" in table]
    assert SCRIPT not in str(lines)
