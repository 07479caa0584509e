"""What may be shown: values of Secrets never are, be it in a report, in a sentence or in a file.

What is secret is told by the field: `data`, `stringData`, and annotations that repeat the whole object.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from konverge.check.model import Alarm, Obj

HIDDEN = "‹not shown›"

_REPEATS = re.compile(r"last-(applied|handled)", re.IGNORECASE)


def shown_value(resource: str, path: str, value: Any) -> str:
    """A value of a field as text.

    >>> shown_value("apps/deployments", "spec.replicas", 3), shown_value("/secrets", "data.password", "cGFzcw==")
    ('3', '‹not shown›')
    """
    if is_secret(resource, path):
        return HIDDEN
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def spoken_value(key: str, path: str, value: Any) -> str:
    """A value of a field of an object as a part of a sentence: texts are in quotes.

    >>> spoken_value("services default/a", "spec.type", "NodePort"), spoken_value("secrets default/a", "data", {})
    ("'NodePort'", '‹not shown›')
    """
    return HIDDEN if is_secret(key.partition(" ")[0], path) else repr(value)


def shown_alarm(alarm: Alarm) -> Alarm:
    """An alarm without the values that it is about, if they are secret."""
    if not is_secret(alarm.object.partition(" ")[0], alarm.field):
        return alarm
    return msgspec.structs.replace(alarm, expected=HIDDEN, actual=HIDDEN)


def is_secret(resource: str, path: str) -> bool:
    """Whether it is a value of a Secret, or has one in it.

    >>> is_secret("secrets", "data"), is_secret("secrets", "type"), is_secret("configmaps", "data")
    (True, False, False)
    """
    if resource.removeprefix("/") != "secrets":
        return False
    field = path.split(".")[0].split("[")[0]
    return field in ("data", "stringData", "") or path == "metadata.annotations" or _REPEATS.search(path) is not None


def shown_object(resource: str, obj: Any) -> Any:
    """An object without what is secret in it."""
    if resource.removeprefix("/") != "secrets" or not isinstance(obj, dict):
        return obj
    hidden = {field: dict.fromkeys(obj[field], HIDDEN) for field in ("data", "stringData") if obj.get(field)}
    return {**without_annotations(obj, repeating(obj)), **hidden}


def repeating(obj: Obj) -> list[str]:
    """The annotations that have the whole object in them: `kubectl get -o yaml` shows the one of `kubectl apply`."""
    return [name for name in obj.get("metadata", {}).get("annotations") or () if _REPEATS.search(name)]


def without_annotations(obj: Obj, names: list[str]) -> Obj:
    if not names:
        return obj
    metadata = obj["metadata"]
    left = {name: value for name, value in metadata["annotations"].items() if name not in names}
    return {**obj, "metadata": {**metadata, "annotations": left}}
