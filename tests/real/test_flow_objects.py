"""FlowSchemas and levels that every server has, changed and deleted on kube-apiserver and on ours: a minute later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.api import MERGE
from tests.real.sides import Side

pytestmark = pytest.mark.spec("S-56")

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = f"{FLOW}/flowschemas", f"{FLOW}/prioritylevelconfigurations"
FLAG = "apf.kubernetes.io/autoupdate-spec"
SHARES = {"spec": {"limited": {"nominalConcurrencyShares": 77}}}


def _flagged(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {FLAG: value}}}


CHANGES: list[tuple[str, str, Any]] = [
    ("DELETE", f"{SCHEMAS}/catch-all", None),
    ("DELETE", f"{SCHEMAS}/probes", None),
    ("DELETE", f"{LEVELS}/system", None),
    ("PATCH", f"{LEVELS}/exempt", {"spec": {"exempt": {"nominalConcurrencyShares": 5}}}),
    ("PATCH", f"{LEVELS}/catch-all", _flagged("false")),
    ("PATCH", f"{SCHEMAS}/exempt", _flagged(None)),
    ("PATCH", f"{LEVELS}/workload-low", SHARES),
    ("PATCH", f"{LEVELS}/workload-high", SHARES | _flagged("false")),
    ("PATCH", f"{LEVELS}/node-high", SHARES | _flagged(None)),
    ("PATCH", f"{LEVELS}/leader-election", _flagged("maybe")),
    ("PATCH", f"{SCHEMAS}/service-accounts", {"spec": {"matchingPrecedence": 8999}}),
]


def _mine(name: str, flag: str) -> dict[str, Any]:
    spec = {"priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 9500}
    return {"metadata": {"name": name, "annotations": {FLAG: flag}}, "spec": spec}


def _seen(side: Side) -> list[Any]:
    shown = []
    for path in (SCHEMAS, LEVELS):
        for item in side.send("GET", path)[1]["items"]:
            meta = item["metadata"]
            shown.append((path, meta["name"], meta.get("annotations"), meta["generation"], item["spec"]))
    return shown


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(1)


def test_what_was_changed_is_as_on_the_real_server(sides: tuple[Side, Side]) -> None:
    for side in sides:
        for name, flag in (("false", "false"), ("claims", "true")):
            assert side.send("POST", SCHEMAS, _mine(name, flag))[0] == 201
        for method, path, body in CHANGES:
            code, answer = side.send(method, path, body, MERGE)
            assert code == 200, (path, answer)
    for side in sides:
        _until(lambda: side.send("GET", f"{SCHEMAS}/claims")[0] == 404)  # noqa: B023
        _until(lambda: side.send("GET", f"{SCHEMAS}/probes")[0] == 200)  # noqa: B023
    assert _seen(sides[1]) == _seen(sides[0])
