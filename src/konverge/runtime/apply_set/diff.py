"""What a call would change, as text: a unified difference for each object, without what the server keeps for itself.

Values of Secrets are not shown: `***`, with `(before)` and `(after)` where they differ (upstream: kubectl's Masker).
"""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

from konverge.objects.confidential import is_confidential
from konverge.runtime.apply_set.members import Ref

Obj = dict[str, Any]

_SERVERS = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")


def object_diff(ref: Ref, before: Obj | None, after: Obj | None) -> str:
    """The difference of one object; empty when there is none. None stands for an object that does not exist."""
    old, new = _shown(before), _shown(after)
    if ref.kind == "Secret" and not ref.group:
        _mask(old, new, "")
    place = "/".join(filter(None, (ref.kind, ref.namespace, ref.name)))
    lines = unified_diff(
        _lines(old),
        _lines(new),
        "/dev/null" if before is None else f"live/{place}",
        "/dev/null" if after is None else f"desired/{place}",
        lineterm="",
    )
    return "\n".join(lines)


def _shown(obj: Obj | None) -> Obj:
    if obj is None:
        return {}
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in _SERVERS}
    return {key: value for key, value in {**obj, "metadata": metadata}.items() if key != "status"}


def _lines(obj: Obj) -> list[str]:
    import yaml

    if not obj:
        return []
    return yaml.safe_dump(obj, sort_keys=True, allow_unicode=True, width=120).splitlines()


def _mask(old: Any, new: Any, path: str) -> None:
    """Replace confidential values of both, in place."""
    names = [*dict.fromkeys((*old, *new))]
    for name in names:
        below = f"{path}.{name}" if path else name
        sides = [side for side in (old, new) if name in side]
        values = [side[name] for side in sides]
        if any(isinstance(value, dict) for value in values):
            for side, value in zip(sides, values, strict=True):
                side[name] = dict(value) if isinstance(value, dict) else {"": value}
            _mask(old.get(name, {}), new.get(name, {}), below)
        elif is_confidential("Secret", below):
            same = len(values) == 2 and values[0] == values[1]
            for side in sides:
                side[name] = "***" if same or len(sides) == 1 else f"*** ({'before' if side is old else 'after'})"
