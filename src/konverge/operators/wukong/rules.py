"""Rules in two languages: the API server evaluates the CEL, the operator calls the Python on what got past it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Meta

from konverge.objects import Model, Rule


def rule(cel: str, holds: Callable[[Any], bool], message: str, field_path: str = "") -> Meta:
    """What must hold of a model, for the API server and in Python."""
    served = Rule(cel, message=message, field_path=field_path or None)
    return Meta(extra_json_schema=served.extra_json_schema, extra=_check(holds, message, field_path))


def check(holds: Callable[[Any], bool], message: str, field_path: str = "") -> Meta:
    """The Python of a rule that the API server has from the type of a field."""
    return Meta(extra=_check(holds, message, field_path))


def _check(holds: Callable[[Any], bool], message: str, field_path: str) -> dict[str, Any]:
    return {"holds": holds, "problem": f"{field_path}: {message}"}


def unchanged(*fields: str) -> str:
    """CEL: these fields are as they were, there or not."""
    same = "has(self.{0}) == has(oldSelf.{0}) && (!has(self.{0}) || self.{0} == oldSelf.{0})"
    return " && ".join(same.format(field) for field in fields)


def broken(part: Model) -> list[str]:
    """The rules of its class that a model breaks: a path below it, a colon, and what is wrong."""
    checks = [meta.extra for meta in getattr(type(part), "__rules__", ()) if meta.extra]
    return [check["problem"] for check in checks if not check["holds"](part)]


def given(part: Model, fields: Iterable[str]) -> list[str]:
    """Those of the fields (by the API's names) that are there; an empty list is not."""
    return [name for name in fields if getattr(part, re.sub(r"([A-Z])", r"_\1", name).lower()) not in (None, [])]
