"""Definitions with rules, and objects under them, on the real server and ours: the same answers word for word."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from konverge.objects.cel_names import RESERVED
from tests.apiserver.crd.recordings import DEFINITIONS, Row, custom_object, definition, document, rows, summary
from tests.real.sides import NAMESPACE, Side

MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
OBJECTS = f"/apis/o.example.com/v1/namespaces/{NAMESPACE}/os"
RATS = f"/apis/rat.example.com/v1/namespaces/{NAMESPACE}/rats"


def answers(sides: tuple[Side, Side], method: str, path: str, body: Any, media: str = "application/json") -> list[Row]:
    """How both servers answer a dry run."""
    summaries = []
    for side in sides:
        code, answer = side.send(method, path, body, media, dryRun="All")
        spec = answer.get("spec") if code < 300 and method == "POST" else None
        summaries.append(summary(code, answer, side.warnings) | {"spec": spec})
    return summaries


def differing(pairs: dict[str, list[Row]]) -> dict[str, list[Row]]:
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def define(side: Side, body: Row, path: str, probe: Row) -> None:
    """Create a definition, and wait until an object of it can be made."""
    code, answer = side.send("POST", DEFINITIONS, body)
    assert code in (201, 409), answer
    while side.send("POST", path, probe)[0] not in (201, 409):
        time.sleep(0.05)


@pytest.mark.spec("S-08", "S-13", "S-28")
def test_definitions_with_rules_are_answered_alike(sides: tuple[Side, Side]) -> None:
    pairs = {row["name"]: answers(sides, "POST", DEFINITIONS, definition(row)) for row in rows("definitions.jsonl")}
    assert not differing({name: [_without_spec(row) for row in pair] for name, pair in pairs.items()})


NAMES = [*sorted(RESERVED), "my-field", "my__dash__field", "`my-field`", "`namespace`", "1st", "ü", "__namespace__"]
SELECTIONS = (
    "object.{} == 'x'",
    "has(object.spec.{})",
    "object.?{}.hasValue()",
    "request.{} == 'x'",
    "namespaceObject.metadata.{} == 'x'",
    "variables.{} == 'x'",
    "params.{} == 'x'",
    "{} == 'x'",
    "dyn({}) == 'x'",
    "{}(1) == 1",
    "[1].all({}, true)",
)


def policy(kind: str, **spec: Any) -> Row:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "names"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, **spec},
    }


@pytest.mark.spec("S-28", "S-13")
def test_policies_name_fields_alike(sides: tuple[Side, Side]) -> None:
    """`object` is plain data: there a reserved word is a name like any other behind a dot, and nothing is escaped."""
    policies = "/apis/admissionregistration.k8s.io/v1"
    pairs = {}
    for expression in (form.format(name) for form in SELECTIONS for name in NAMES):
        params = {"apiVersion": "v1", "kind": "ConfigMap"}
        body = policy("ValidatingAdmissionPolicy", paramKind=params, validations=[{"expression": expression}])
        pairs[expression] = answers(sides, "POST", f"{policies}/validatingadmissionpolicies", body)
    for name in NAMES:
        expression = f"Object{{metadata: Object.metadata{{{name}: 'x'}}}}"
        mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
        body = policy("MutatingAdmissionPolicy", reinvocationPolicy="Never", mutations=[mutation])
        pairs[expression] = answers(sides, "POST", f"{policies}/mutatingadmissionpolicies", body)
    assert not differing({name: [_without_spec(row) for row in pair] for name, pair in pairs.items()})


def _without_spec(row: Row) -> Row:
    return {**row, "spec": None}


@pytest.fixture
def objects(sides: tuple[Side, Side]) -> Iterator[tuple[Side, Side]]:
    changed = next(row for row in rows("objects.jsonl") if "patch" in row)
    for side in sides:
        define(side, document("object_definition.json"), OBJECTS, custom_object(changed["of"], "u"))
    yield sides
    for side in sides:
        side.send("DELETE", f"{DEFINITIONS}/os.o.example.com")


@pytest.mark.spec("S-08", "S-13")
def test_objects_under_rules_are_answered_alike(objects: tuple[Side, Side]) -> None:
    pairs = {}
    for row in rows("objects.jsonl"):
        if "create" in row:
            body = custom_object(row["create"], row.get("as", "t"))
            pairs[f"create {row['create']}"] = answers(objects, "POST", OBJECTS, body)
        else:
            patch = {"spec": row["patch"]}
            pairs[f"patch {row['patch']}"] = answers(objects, "PATCH", f"{OBJECTS}/u", patch, MERGE)
    assert not differing(pairs)


@pytest.fixture
def tightened(sides: tuple[Side, Side]) -> Iterator[tuple[Side, Side]]:
    """Objects that were stored under a loose schema, and the tight one of today."""
    recorded = document("ratcheting.json")
    for side in sides:
        define(side, recorded["loose"], RATS, _rat("u", recorded["spec"]))
        for field, value in recorded["spec"].items():
            side.send("POST", RATS, _rat(f"f-{field.lower()}", {"s": "ok", field: value}))
        side.send("PATCH", f"{RATS}/u/status", {"status": recorded["status"]}, MERGE)
        tight = {"spec": {"versions": recorded["tight"]["spec"]["versions"]}}
        side.send("PATCH", f"{DEFINITIONS}/rats.rat.example.com", tight, MERGE)
        while side.send("POST", RATS, _rat("new", {"s": "too long"}), dryRun="All")[0] != 422:
            time.sleep(0.05)
    yield sides
    for side in sides:
        side.send("DELETE", f"{DEFINITIONS}/rats.rat.example.com")


def _rat(name: str, spec: Row) -> Row:
    return {"apiVersion": "rat.example.com/v1", "kind": "Rat", "metadata": {"name": name}, "spec": spec}


@pytest.mark.spec("S-08", "S-13")
def test_values_that_were_invalid_before_are_ratcheted_alike(tightened: tuple[Side, Side]) -> None:
    pairs = {}
    for row in rows("ratcheting.jsonl"):
        path = "/".join(filter(None, (RATS, row["object"], row.get("subresource"))))
        media = JSON_PATCH if isinstance(row["patch"], list) else MERGE
        pairs[f"{row['object']} {row['patch']}"] = answers(tightened, "PATCH", path, row["patch"], media)
    assert not differing(pairs)
