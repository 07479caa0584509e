"""Custom kinds come with their definitions, share names in order, and go with their objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.api import MERGE, Api
from tests.apiserver.crd.recordings import DEFINITIONS, Row
from tests.apiserver.crd.served import answer, define

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name: str = "v1", storage: bool = True, schema: Any = OPEN, **more: Any) -> Row:
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def crd(plural: str = "crabs", kind: str = "Crab", *versions: Row, **names: Any) -> Row:
    spec = {"group": "sea.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind, **names}}
    return {
        "metadata": {"name": f"{plural}.sea.example.com"},
        "spec": {**spec, "versions": list(versions or [version()])},
    }


def crab(name: str = "one", at: str = "v1", **parts: Any) -> Row:
    return {"apiVersion": f"sea.example.com/{at}", "kind": "Crab", "metadata": {"name": name}, **parts}


CRABS = "/apis/sea.example.com/v1/namespaces/default/crabs"


async def settled(api: Api, name: str, condition: str) -> Row:
    """The definition once a condition of it has been decided."""
    async with api.watch(DEFINITIONS, fieldSelector=f"metadata.name={name}") as watch:
        while True:
            definition: Row = (await watch.next())["object"]
            if any(entry["type"] == condition for entry in definition["status"].get("conditions") or ()):
                return definition


@pytest.mark.spec("S-08")
async def test_a_kind_is_served_after_its_definition_is_established(api: Api) -> None:
    assert (await api.send("GET", CRABS)).status == 404
    await define(api, crd())
    made = await api.call("POST", CRABS, crab(spec={"legs": 8}))
    assert made["metadata"]["generation"] == 1
    definition = await api.call("GET", f"{DEFINITIONS}/crabs.sea.example.com")
    conditions = [
        (entry["type"], entry["status"], entry["reason"], entry["message"])
        for entry in definition["status"]["conditions"]
    ]
    assert conditions == [
        ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    assert definition["status"]["storedVersions"] == ["v1"]
    names = {"plural": "crabs", "singular": "crab", "kind": "Crab", "listKind": "CrabList"}
    assert definition["status"]["acceptedNames"] == names == definition["spec"]["names"]


@pytest.mark.spec("S-08")
async def test_the_second_definition_with_a_name_waits_for_it(api: Api) -> None:
    await define(api, crd())
    await api.call("POST", DEFINITIONS, crd("lobsters", "Crab"))
    waiting = await settled(api, "lobsters.sea.example.com", "NamesAccepted")
    conditions = {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in waiting["status"]["conditions"]
    }
    assert conditions["NamesAccepted"] == ("False", "ListKindConflict", '"CrabList" is already in use')
    assert conditions["Established"] == ("False", "NotAccepted", "not all names are accepted")
    assert waiting["status"]["acceptedNames"] == {"plural": "lobsters", "kind": ""}
    async with api.watch(DEFINITIONS, fieldSelector="metadata.name=lobsters.sea.example.com") as watch:
        await api.call("DELETE", f"{DEFINITIONS}/crabs.sea.example.com")
        while (await watch.next())["object"]["status"]["acceptedNames"]["kind"] != "Crab":
            continue
    assert await api.call("GET", CRABS.replace("crabs", "lobsters"))


@pytest.mark.spec("S-08")
async def test_the_objects_of_a_definition_are_deleted_with_it(api: Api) -> None:
    await define(api, crd())
    await api.call("POST", CRABS, crab("one"))
    await api.call("POST", CRABS, crab("held") | {"metadata": {"name": "held", "finalizers": ["x.example.com/y"]}})
    async with api.watch(DEFINITIONS, fieldSelector="metadata.name=crabs.sea.example.com") as watch:
        await api.call("DELETE", f"{DEFINITIONS}/crabs.sea.example.com")
        while "deletionTimestamp" not in (await watch.next())["object"]["metadata"]:
            continue
        refused = await answer(api, "POST", CRABS, crab("late"))
        assert refused["code"] == 403
        assert refused["message"].endswith("create not allowed while custom resource definition is terminating")
        await api.call("PATCH", f"{CRABS}/held", {"metadata": {"finalizers": None}}, content_type=MERGE)
        while (await watch.next())["type"] != "DELETED":
            continue
    assert (await api.send("GET", CRABS)).status == 404


@pytest.mark.spec("S-08", "S-42")
@pytest.mark.parametrize("scopes", [("Namespaced", "Cluster"), ("Cluster", "Namespaced")])
async def test_a_definition_comes_back_with_another_scope(api: Api, scopes: tuple[str, str]) -> None:
    """Admission goes by the scope of now: a cluster-wide object has no namespace that must exist."""
    cluster_wide = "/apis/sea.example.com/v1/crabs"
    for scope in scopes:
        definition = crd()
        definition["spec"]["scope"] = scope
        await define(api, definition)
        if scope == "Cluster":
            await api.call("POST", cluster_wide, crab())
        else:
            await api.call("POST", CRABS, crab())
            missing = await api.send("POST", CRABS.replace("default", "none"), crab())
            assert (missing.status, json.loads(missing.body)["message"]) == (404, 'namespaces "none" not found')
        await delete(api)


async def delete(api: Api) -> None:
    """Delete the definition of crabs and wait until it is gone."""
    async with api.watch(DEFINITIONS, fieldSelector="metadata.name=crabs.sea.example.com") as watch:
        await api.call("DELETE", f"{DEFINITIONS}/crabs.sea.example.com")
        while (await watch.next())["type"] != "DELETED":
            continue


@pytest.mark.spec("S-08")
async def test_an_object_is_read_in_every_served_version(api: Api) -> None:
    await define(api, crd("crabs", "Crab", version(), version("v2", storage=False)))
    await api.call("POST", CRABS, crab(spec={"legs": 8}))
    newer = CRABS.replace("v1", "v2")
    stored = await api.call("GET", f"{newer}/one")
    assert (stored["apiVersion"], stored["spec"]) == ("sea.example.com/v2", {"legs": 8})
    listed = await api.call("GET", newer)
    assert listed["apiVersion"] == "sea.example.com/v2"
    changed = await api.call("PUT", f"{newer}/one", {**stored, "spec": {"legs": 10}})
    assert changed["apiVersion"] == "sea.example.com/v2"
    assert (await api.call("GET", f"{CRABS}/one"))["spec"] == {"legs": 10}


@pytest.mark.spec("S-08")
async def test_a_default_added_later_shows_on_reads(api: Api) -> None:
    def legs(**more: Any) -> Row:
        inner = {"type": "object", "properties": {"legs": {"type": "integer", **more}}}
        return {"type": "object", "properties": {"spec": inner}}

    await define(api, crd("crabs", "Crab", version(schema=legs())))
    await api.call("POST", CRABS, crab(spec={}))
    change = {"spec": {"versions": [version(schema=legs(default=8))]}}
    await api.call("PATCH", f"{DEFINITIONS}/crabs.sea.example.com", change, content_type=MERGE)
    assert (await api.call("GET", f"{CRABS}/one"))["spec"] == {"legs": 8}


@pytest.mark.spec("S-08")
async def test_the_default_of_a_status_shows_before_one_is_written(api: Api) -> None:
    seen = {"type": "object", "default": {"seen": 0}, "properties": {"seen": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"status": seen}}
    await define(api, crd("crabs", "Crab", version(schema=schema, subresources={"status": {}})))
    made = await api.call("POST", CRABS, crab(status={"seen": 99}))
    assert made["status"] == {"seen": 0}
    assert (await api.call("GET", f"{CRABS}/one"))["status"] == {"seen": 0}
    changed = await api.call("PUT", f"{CRABS}/one", {**made, "status": {"seen": 7}})
    assert changed["status"] == {"seen": 0}
    await api.call("PATCH", f"{CRABS}/one/status", {"status": {"seen": 1}}, content_type=MERGE)
    assert (await api.call("GET", f"{CRABS}/one"))["status"] == {"seen": 1}


@pytest.mark.spec("S-08")
async def test_unknown_fields_are_pruned_with_a_warning_or_refused(api: Api) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"legs": {"type": "integer"}}}}}
    await define(api, crd("crabs", "Crab", version(schema=schema)))
    body = crab(spec={"legs": 8, "wings": 2})
    assert "wings" not in (await api.call("POST", CRABS, body))["spec"]
    warned = await answer(api, "POST", CRABS, body, query={"fieldValidation": "Warn", "dryRun": "All"})
    assert warned["code"] == 409
    strict = await answer(api, "POST", CRABS, crab("two", spec=body["spec"]), query={"fieldValidation": "Strict"})
    assert strict["message"].endswith('strict decoding error: unknown field "spec.wings"')


@pytest.mark.spec("S-08")
async def test_status_and_scale_are_subresources(api: Api) -> None:
    paths = {"specReplicasPath": ".spec.legs", "statusReplicasPath": ".status.legs", "labelSelectorPath": ".status.sel"}
    await define(api, crd("crabs", "Crab", version(subresources={"status": {}, "scale": paths})))
    made = await api.call("POST", CRABS, crab(spec={"legs": 8}, status={"legs": 99}))
    assert "status" not in made
    status = {"status": {"legs": 3, "sel": "a=b"}, "spec": {"legs": 1}}
    written = await api.call("PATCH", f"{CRABS}/one/status", status, content_type=MERGE)
    assert (written["spec"]["legs"], written["status"]["legs"], written["metadata"]["generation"]) == (8, 3, 1)
    scale = await api.call("GET", f"{CRABS}/one/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 8}, {"replicas": 3, "selector": "a=b"})
    await api.call("PATCH", f"{CRABS}/one/scale", {"spec": {"replicas": 5}}, content_type=MERGE)
    stored = await api.call("GET", f"{CRABS}/one")
    assert (stored["spec"]["legs"], stored["metadata"]["generation"]) == (5, 2)
