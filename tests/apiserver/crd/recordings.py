"""Responses of kube-apiserver 1.37 to definitions and custom objects, and the requests they answer.

Each line of a recording holds a request in short form with the status code, the message, the causes (sorted: the real
server ranges over maps) and the warnings of the answer. The same requests go to a live server in tests/real.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Row = dict[str, Any]
HERE = Path(__file__).parent / "recorded"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NUMBERED_TYPE = re.compile(r"selfType\d+")


def rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


def document(name: str) -> Any:
    return json.loads((HERE / name).read_text())


PROPERTIES = document("properties.json")
NAMED_PROPERTIES = document("named_properties.json")
"""Fields whose names are reserved words of CEL, or no identifiers."""


def definition(row: Row) -> Row:
    """A row has a rule on a rich schema or on awkward names, or the schema of a property, or all of a definition."""
    if "definition" in row:
        return dict(row["definition"])
    if "rule" in row:
        spec = {"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": [{"rule": row["rule"]}]}
    elif "named" in row:
        spec = {"type": "object", "properties": NAMED_PROPERTIES, "x-kubernetes-validations": [row["named"]]}
    else:
        spec = {"type": "object", "properties": {"x": row["property"]}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "ds", "kind": "D"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ds.d.example.com"},
        "spec": {"group": "d.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def custom_object(spec: Any, name: str = "t") -> Row:
    return {"apiVersion": "o.example.com/v1", "kind": "O", "metadata": {"name": name}, "spec": spec}


def summary(code: int, body: Any, warnings: list[str]) -> Row:
    """An answer in the form of the recordings, without what depends on the order of maps."""
    answer: Row = {"code": code, "warnings": sorted(warnings)}
    if isinstance(body, dict) and body.get("kind") == "Status":
        causes = [_cause(cause) for cause in (body.get("details") or {}).get("causes") or ()]
        answer |= {"reason": body.get("reason"), "causes": sorted(causes)}
        if len(causes) < 2:
            answer["message"] = _NUMBERED_TYPE.sub("selfType", body.get("message") or "")
    return answer


def _cause(cause: Row) -> list[str]:
    message = _NUMBERED_TYPE.sub("selfType", cause.get("message") or "")
    return [cause.get("reason") or "", cause.get("field") or "", message]


def expected(row: Row) -> Row:
    """What `summary` has to return for a recorded row."""
    answer: Row = {"code": row["code"], "warnings": row.get("warnings", [])}
    if row["code"] >= 400:
        answer |= {"reason": row["reason"], "causes": row.get("causes", [])}
        if len(answer["causes"]) < 2:
            answer["message"] = row["message"]
    return answer
