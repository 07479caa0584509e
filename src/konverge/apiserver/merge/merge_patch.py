"""JSON merge patch (RFC 7396)."""

from __future__ import annotations

from typing import Any


def apply(document: Any, patch: Any) -> Any:
    """The patched document; parts of both are shared, neither is changed."""
    if not isinstance(document, dict):
        return without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    out = dict(document)
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        elif out.get(name) is None:
            out[name] = without_nulls(value)
        else:
            out[name] = apply(out[name], value)
    return out


def without_nulls(value: Any) -> Any:
    """A new part has no nulls in its objects; in its lists they stay."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value
