"""Requests that were recorded from kube-apiserver: what is almost one of them comes further than a free drawing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

TESTS = Path(__file__).parents[2]
SCENARIOS = TESTS / "apiserver" / "kinds" / "scenarios"
CONFORMANCE = TESTS / "conformance" / "public"
_NAMESPACE = re.compile(r"/namespaces/([^/?]+)")


class Sample(NamedTuple):
    method: str
    path: str
    media: str
    body: Any


def samples(*folders: Path) -> list[Sample]:
    """Every recorded request with a body."""
    files = sorted(file for folder in folders for file in folder.rglob("*.yaml"))
    return [sample for file in files for sample in _of(yaml.load(file.read_text("utf-8"), yaml.CSafeLoader))]


def _of(recorded: Any) -> Iterable[Sample]:
    for step in recorded.get("steps", ()) if isinstance(recorded, dict) else ():
        request = step.get("request") or {}
        if isinstance(request.get("body"), dict | list) and "<" not in request["path"]:
            media = request.get("contentType") or request.get("headers", {}).get("Content-Type", "application/json")
            yield Sample(request["method"], request["path"], media, request["body"])


def namespaces(recorded: Iterable[Sample]) -> set[str]:
    return {match[1] for sample in recorded if (match := _NAMESPACE.search(sample.path))}
