"""Custom objects: what is pruned, filled in, refused and forgiven, as recorded from kube-apiserver."""

from __future__ import annotations

import json

import pytest

from tests.apiserver.api import APPLY, MERGE, Api
from tests.apiserver.crd.recordings import DEFINITIONS, Row, custom_object, document, expected, rows, summary
from tests.apiserver.crd.served import answer, define, patched
from tests.apiserver.definitions import definition

OBJECTS = "/apis/o.example.com/v1/namespaces/default/os"
RATS = "/apis/rat.example.com/v1/namespaces/default/rats"
DRY = {"dryRun": "All"}


@pytest.mark.spec("S-08")
async def test_objects_are_accepted_or_refused_as_upstream(api: Api) -> None:
    await define(api, document("object_definition.json"))
    wrong: Row = {}
    for row in (row for row in rows("objects.jsonl") if "create" in row):
        response = await api.send("POST", OBJECTS, custom_object(row["create"], row.get("as", "t")), query=DRY)
        body = json.loads(response.body)
        result = summary(response.status, body, response.headers.get_all("warning")) | {"spec": body.get("spec")}
        if result != expected(row) | {"spec": row.get("spec")}:
            wrong[str(row["create"])] = (result, row)
    assert not wrong


@pytest.mark.spec("S-08")
async def test_transition_rules_see_the_object_as_it_was(api: Api) -> None:
    await define(api, document("object_definition.json"))
    changes = [row for row in rows("objects.jsonl") if "patch" in row]
    await api.call("POST", OBJECTS, custom_object(changes[0]["of"], "u"))
    wrong: Row = {}
    for row in changes:
        result = await patched(api, f"{OBJECTS}/u", {"spec": row["patch"]})
        if result != expected(row):
            wrong[str(row["patch"])] = (result, expected(row))
    assert not wrong


@pytest.mark.spec("S-08")
async def test_an_invalid_part_may_stay_but_not_spread(api: Api) -> None:
    """Objects stored under a loose schema, changed under a tight one."""
    recorded = document("ratcheting.json")
    await define(api, recorded["loose"])
    await _old_objects(api, recorded)
    tight = {"spec": {"versions": recorded["tight"]["spec"]["versions"]}}
    await api.call("PATCH", f"{DEFINITIONS}/rats.rat.example.com", tight, content_type=MERGE)
    wrong: Row = {}
    for row in rows("ratcheting.jsonl"):
        path = "/".join(filter(None, (RATS, row["object"], row.get("subresource"))))
        result = await patched(api, path, row["patch"])
        if result != expected(row):
            wrong[f"{row['object']} {row['patch']}"] = (result, expected(row))
    assert not wrong


async def _old_objects(api: Api, recorded: Row) -> None:
    """One object with everything, and one for each field."""
    made = {"u": recorded["spec"]}
    made |= {f"f-{field.lower()}": {"s": "ok", field: value} for field, value in recorded["spec"].items()}
    for name, spec in made.items():
        body = {"apiVersion": "rat.example.com/v1", "kind": "Rat", "metadata": {"name": name}, "spec": spec}
        await api.call("POST", RATS, body)
    await api.call("PATCH", f"{RATS}/u/status", {"status": recorded["status"]}, content_type=MERGE)


@pytest.mark.spec("S-08")
async def test_an_object_is_refused_whose_body_is_of_another_kind_or_version(api: Api) -> None:
    await define(api, document("object_definition.json"))
    kind = await answer(api, "POST", OBJECTS, {**custom_object({}), "kind": "P"})
    assert kind["code"] == 422
    assert kind["message"] == 'P.o.example.com "t" is invalid: kind: Invalid value: "P": must be O'
    version = await answer(api, "POST", OBJECTS, {**custom_object({}), "apiVersion": "o.example.com/v2"})
    assert version["code"] == 400
    assert version["message"] == (
        "the API version in the data (o.example.com/v2) does not match the expected API version (o.example.com/v1)"
    )


OPEN = "x-kubernetes-preserve-unknown-fields"
TEXT = {"type": "string"}
CLOSED = {"type": "object", "properties": {"a": TEXT}}


@pytest.mark.spec("S-08")
@pytest.mark.parametrize(
    ("declared", "sent", "kept"),
    [
        (CLOSED, {"a": "1", "b": "2"}, {"a": "1"}),
        ({"type": "array", "items": CLOSED}, [{"a": "1", "b": "2"}], [{"a": "1"}]),
        ({"type": "object", "additionalProperties": CLOSED}, {"k": {"a": "1", "b": 2}}, {"k": {"a": "1"}}),
        ({**CLOSED, OPEN: True}, {"a": "1", "b": "2"}, {"a": "1", "b": "2"}),
    ],
)
async def test_an_applied_object_is_pruned_below_a_place_that_keeps_unknown_fields(
    api: Api, declared: Row, sent: Row, kept: Row
) -> None:
    """Ownership takes all below for open, and stays with what was pruned, as upstream."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", OPEN: True, "properties": {"x": declared}}}}
    await define(api, definition("mixes", "Mix", schema=schema))
    path = "/apis/example.com/v1/namespaces/default/mixes/m"
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Mix",
        "metadata": {"name": "m"},
        "spec": {"x": sent, "y": {"z": 1}},
    }
    for query in ({"dryRun": "All"}, {}, {}):
        made = await api.call("PATCH", path, body, content_type=APPLY, query={"fieldManager": "me", **query})
        assert made["spec"] == {"x": kept, "y": {"z": 1}}
    assert (await api.call("GET", path))["spec"] == {"x": kept, "y": {"z": 1}}
    owned = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:x"]
    assert ("f:b" in str(owned)) == ("b" in str(sent) and declared.get("type") != "array")
