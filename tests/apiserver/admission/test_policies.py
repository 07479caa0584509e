"""Admission policies: what they refuse, warn of and change, as recorded from the real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.api import CONFIG_MAPS, MERGE, Api

Row = dict[str, Any]
RECORDED = Path(__file__).parent / "recorded" / "policies.jsonl"
ROWS = [json.loads(line) for line in RECORDED.read_text().splitlines()]
GROUP = "/apis/admissionregistration.k8s.io/v1"
SHOWN = ("name", "labels", "annotations", "finalizers")


async def install(api: Api, row: Row) -> str:
    """A policy and its binding for a namespace of their own; the path of its ConfigMaps. A bad one is refused."""
    name = row["name"]
    space = f"pc-{name}"
    await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
    selector = {"matchLabels": {"kubernetes.io/metadata.name": space}}
    constraints = {**row["policy"]["matchConstraints"], "namespaceSelector": selector}
    policy = {"metadata": {"name": name}, "spec": {**row["policy"], "matchConstraints": constraints}}
    if "refused" in row:
        refused = await api.call("POST", f"{GROUP}/{row['kind']}admissionpolicies", policy, expect=422)
        assert refused["message"] == row["refused"]
        return ""
    await api.call("POST", f"{GROUP}/{row['kind']}admissionpolicies", policy)
    actions = {"validationActions": ["Deny"]} if row["kind"] == "validating" else {}
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, **actions, **row["binding"]}}
    await api.call("POST", f"{GROUP}/{row['kind']}admissionpolicybindings", binding)
    return f"/api/v1/namespaces/{space}/configmaps"


async def answer(api: Api, path: str, body: Row) -> Row:
    response = await api.send("POST", path, body, query={"dryRun": "All"})
    obj = json.loads(response.body)
    shown: Row = {"code": response.status, "warnings": sorted(response.headers.get_all("warning"))}
    if obj["kind"] == "Status":
        return shown | {key: obj.get(key) for key in ("message", "reason", "details")}
    metadata = {key: value for key, value in obj["metadata"].items() if key in SHOWN}
    return shown | {"data": obj.get("data"), "metadata": metadata}


@pytest.mark.spec("S-13")
@pytest.mark.parametrize("kind", ["validating", "mutating"])
async def test_policies_answer_like_those_of_the_real_server(api: Api, kind: str) -> None:
    await api.create("vap-params", data={"want": "7"})
    wrong: Row = {}
    for row in (row for row in ROWS if row["kind"] == kind):
        path = await install(api, row)
        for request in row["requests"]:
            actual = await answer(api, path, request["body"])
            if actual != request["answer"]:
                wrong[row["name"]] = (actual, request["answer"])
    assert not wrong


def denial(**spec: Any) -> Row:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
    return {
        "name": "p",
        "kind": "validating",
        "policy": {"matchConstraints": {"resourceRules": rules}, **spec},
        "binding": {},
    }


@pytest.mark.spec("S-13")
async def test_a_policy_sees_updates_and_deletions(api: Api) -> None:
    expression = "request.operation == 'DELETE' ? oldObject.data.locked != 'yes' : true"
    grows = "oldObject == null || object == null || object.data.size() >= oldObject.data.size()"
    checks = [{"expression": expression, "message": "locked"}, {"expression": grows, "message": "must not shrink"}]
    path = await install(api, denial(validations=checks))
    await api.call("POST", path, {"metadata": {"name": "a"}, "data": {"locked": "yes", "b": "c"}})
    refused = await api.call("PATCH", f"{path}/a", {"data": {"b": None}}, content_type=MERGE, expect=422)
    assert refused["message"].endswith("denied request: must not shrink")
    assert (await api.call("DELETE", f"{path}/a", expect=422))["message"].endswith("denied request: locked")
    await api.patch(f"{path}/a", {"data": {"locked": "no"}})
    await api.call("DELETE", f"{path}/a")


@pytest.mark.spec("S-13")
async def test_a_policy_without_a_binding_or_after_its_deletion_does_nothing(api: Api) -> None:
    path = await install(api, denial(validations=[{"expression": "false"}]))
    await api.call("POST", path, {"metadata": {"name": "a"}}, expect=422)
    await api.call("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p")
    await api.call("POST", path, {"metadata": {"name": "a"}})
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "b"}})
