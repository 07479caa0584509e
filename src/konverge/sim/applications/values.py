"""Texts with references: `{pod.metadata.name}`, `{root.spec.version}`, `{config.version}`.

A reference is a name and a path of fields. `pod` is the pod, `owner` its controller (a StatefulSet, say), `root` the
last in the chain of controllers (the custom resource); a rule may name others (`from`). A field whose name has dots or
slashes is written in brackets: `{pod.metadata.labels[app.kubernetes.io/name]}`; so is the number of a list's item.
Braces themselves are `{{` and `}}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\{\{|\}\}|\{([a-z][a-zA-Z0-9_-]*)((?:\.[A-Za-z0-9_-]+|\[[^\]{}]+\])*)\}|[{}]")
_IN_DOCUMENT = re.compile(r"\{([a-z]+)((?:\.[A-Za-z0-9_-]+|\[[^\]{}]+\])*)\}")
_STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[([^\]]+)\]")


class Absent(LookupError):
    """What a text refers to is not there (yet)."""


def check(text: str, names: Mapping[str, Any]) -> None:
    """Raises ValueError when a text has references that can never be resolved."""
    for match in _REFERENCE.finditer(text):
        if match[0] in ("{{", "}}"):
            continue
        if match[1] is None:
            raise ValueError(
                f"{text!r}: a brace begins a reference such as {{pod.metadata.name}}; itself it is doubled"
            )
        if match[1] not in names:
            raise ValueError(f"{text!r} refers to {match[1]!r}; there are: {', '.join(sorted(names))}")


def fill_in(text: str, values: Mapping[str, Any]) -> str:
    """A text with its references resolved. Raises Absent.

    >>> fill_in("{pod.metadata.name}-{{x}}", {"pod": {"metadata": {"name": "db-0"}}})
    'db-0-{x}'
    """

    def resolve(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else _shown(look_up(match[1], match[2], values))

    return _REFERENCE.sub(resolve, text)


def fill_in_document(text: str, values: Mapping[str, Any]) -> str:
    """The same for a text that has braces of its own, such as JSON: only `{name…}` with a known name is a reference.

    What is not there becomes nothing.

    >>> fill_in_document('{"a": {"id": "{var.id}"}}', {"var": {"id": 7}})
    '{"a": {"id": "7"}}'
    """

    def resolve(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        try:
            return _shown(look_up(match[1], match[2], values))
        except Absent:
            return ""

    return _IN_DOCUMENT.sub(resolve, text)


def look_up(name: str, path: str, values: Mapping[str, Any]) -> Any:
    value = values.get(name)
    for step in _STEP.finditer(path):
        key = step[1] or step[2]
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            value = None
    if value is None:
        raise Absent(f"{name}{path}")
    return value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
