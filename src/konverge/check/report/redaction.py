"""What may be shown: values of Secrets never are."""

from __future__ import annotations

from typing import Any

import msgspec

HIDDEN = "‹not shown›"


def shown_value(resource: str, path: str, value: Any) -> str:
    """A value of a field as text.

    >>> shown_value("apps/deployments", "spec.replicas", 3), shown_value("/secrets", "data.password", "cGFzcw==")
    ('3', '‹not shown›')
    """
    if is_secret(resource, path):
        return HIDDEN
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def is_secret(resource: str, path: str) -> bool:
    return resource.removeprefix("/") == "secrets" and path.split(".")[0].split("[")[0] in ("data", "stringData", "")


def shown_object(resource: str, obj: Any) -> Any:
    """An object without what is secret in it."""
    if resource.removeprefix("/") != "secrets" or not isinstance(obj, dict):
        return obj
    hidden = {field: dict.fromkeys(obj[field], HIDDEN) for field in ("data", "stringData") if obj.get(field)}
    return {**obj, **hidden}
