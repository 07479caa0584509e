"""Printer columns of custom kinds.

`columns(version)` gives definitions and cells: first the name of the object, then the columns of the definition; a
version that defines none shows the age. The first path that cannot be read ends the columns.
Upstream: pkg/registry/customresource/tableconvertor/tableconvertor.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from konverge import clock
from konverge.apiserver.cel.timestamps import parse_timestamp
from konverge.apiserver.crd.serving.jsonpath import JSONPath, JSONPathError
from konverge.apiserver.go.fmt import go_value
from konverge.apiserver.strategy import Obj

Cell = Callable[[Obj], Any]

_NAME_TEXT = "The name of the object, unique among the objects of its kind in a namespace."
_AGE_TEXT = "How long ago the object was created."
_AGE = {"name": "Age", "type": "date", "description": _AGE_TEXT, "jsonPath": ".metadata.creationTimestamp"}


def columns(version: Obj) -> list[tuple[Obj, Cell]]:
    """All columns of a version of a definition, the name first."""
    result: list[tuple[Obj, Cell]] = [(_definition("Name", "string", "name", _NAME_TEXT, 0), _name)]
    for column in version.get("additionalPrinterColumns") or [_AGE]:
        try:
            path = JSONPath(column["jsonPath"])
        except (JSONPathError, RecursionError):  # of filters within filters, hundreds deep
            return result
        kind, where = column["type"], column["jsonPath"]
        text = column.get("description") or f"Custom resource definition column (in JSONPath format): {where}"
        definition = _definition(column["name"], kind, column.get("format") or "", text, column.get("priority") or 0)
        result.append((definition, _cell(path, kind)))
    return result


def _definition(name: str, kind: str, form: str, text: str, priority: int) -> Obj:
    return {"name": name, "type": kind, "format": form, "description": text, "priority": priority}


def _name(obj: Obj) -> str:
    return str(obj["metadata"].get("name", ""))


def _cell(path: JSONPath, kind: str) -> Cell:
    convert = _CONVERTERS[kind]

    def cell(obj: Obj) -> Any:
        try:
            values = path.find(obj)
        except JSONPathError:
            return None
        return convert(values[0]) if values else None

    return cell


def _text(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return go_value(value)


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return "<unknown>"
    moment = parse_timestamp(value)
    return "<invalid>" if moment is None else age(clock.now() - moment / 1e9)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}


def age(seconds: float) -> str:  # upstream: HumanDuration (apimachinery util/duration)
    """A duration as kubectl prints ages: fewer units for older objects."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return f"{days // 365}y{days % 365}d" if days % 365 else f"{days // 365}y"
    return f"{days // 365}y"
