"""Kinds outside the core group: what a real kube-apiserver 1.37.1 answered to the requests in `scenarios/`.

The files have the format of tests/conformance (`replay.py record` made them), so that they can be recorded again, or
checked against any server. Here they are played in process; what is compared are the decisions of the kinds: defaults,
refusals with every message and cause, warnings, status and generation. Other tests compare managedFields and tables.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.api import Api

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_NAMED_BY_ADDRESS = re.compile(r'^(IPAddress\S+ )"[0-9.]+"')
_UNCOMPARED = {"uid", "resourceVersion", "creationTimestamp", "managedFields"}
_MASK = re.compile(r"<[a-z]+(:\d+)?>")


def masked(message: str) -> str:
    """A message as the recorder writes it down."""
    return _NAMED_BY_ADDRESS.sub(r'\1"<ip>"', _TIME.sub("<time>", _UUID.sub("<uuid>", message)))


def without(value: Any, pointer: str) -> None:
    """Drop the member at a JSON pointer, if it is there."""
    *way, last = pointer.strip("/").split("/")
    for key in way:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value.pop(last, None)


def differences(want: Any, got: Any, path: str = "") -> list[str]:
    if isinstance(want, str) and _MASK.search(want):
        return [] if got else [f"{path}: missing"]
    if isinstance(want, dict) and isinstance(got, dict):
        names = (want.keys() | got.keys()) - (_UNCOMPARED if path.endswith("metadata") else set())
        listed = []
        for name in sorted(names):
            if name not in want or name not in got:
                listed.append(f"{path}.{name}: {'not expected' if name in got else 'missing'}")
            else:
                listed += differences(want[name], got[name], f"{path}.{name}")
        return listed
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [
            text for i, pair in enumerate(zip(want, got, strict=True)) for text in differences(*pair, f"{path}[{i}]")
        ]
    return [] if want == got else [f"{path}: want {want!r}, got {got!r}"]


def compared(step: dict[str, Any], status: int, body: Any, warnings: list[str]) -> list[str]:
    expected = step["expect"]
    if status != expected["status"]:
        return [f"want {expected['status']}, got {status} {body.get('message', '')}"]
    if status >= 400:
        body["message"] = masked(body["message"])
        for cause in body.get("details", {}).get("causes", ()):
            cause["message"] = masked(cause["message"])
        if isinstance(body.get("details"), dict) and body["details"].get("kind") == "IPAddress":
            body["details"]["name"] = expected["body"]["details"]["name"]
    for pointer in step.get("ignore", ()):
        without(body, pointer)
        without(expected["body"], pointer)
    listed = differences(expected["body"], body)
    wanted = expected.get("headers", {}).get("warning", [])
    return listed + ([] if wanted == warnings else [f"warnings: want {wanted}, got {warnings}"])


async def played(api: Api, step: dict[str, Any]) -> list[str]:
    request = step["request"]
    kind = request.get("headers", {}).get("Content-Type", "application/json")
    response = await api.send(request["method"], request["path"], request.get("body"), content_type=kind)
    body = json.loads(response.body)
    warnings = response.headers.get_all("warning")
    return compared(step, response.status, body, warnings)


@pytest.mark.spec("S-09", "S-04")
@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
async def test_decisions_of_the_real_server(api: Api, file: Path) -> None:
    steps = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)["steps"]
    namespaces = sorted(
        {match[1] for step in steps if (match := re.search(r"/namespaces/([^/]+)/", step["request"]["path"]))}
    )
    for namespace in namespaces:
        await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    failed = {step["id"]: differing for step in steps if (differing := await played(api, step))}
    assert not failed
