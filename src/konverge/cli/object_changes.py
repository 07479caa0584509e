"""What changed in an object, in a short line for people.

What a person or a controller sets is shown: spec, data, labels and the like. Status has a view of its own, and what the
server keeps for itself is not news. The content of a Secret is never shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from konverge.objects.confidential import is_confidential

MAX_CHANGES = 4
MAX_VALUE = 40
_SILENT = frozenset(("status", "apiVersion", "kind"))
_METADATA = ("labels", "annotations", "deletionTimestamp")
_NOISE = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/", "konverge.dev/")
_MISSING = object()


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """
    >>> changes({"spec": {"replicas": 2}}, {"spec": {"replicas": 3, "image": "web:2"}})
    ['spec.image = web:2', 'spec.replicas 2 → 3']
    """
    kind = str(new.get("kind"))
    found = [(path, before, after) for path, before, after in _differences(_shown(old), _shown(new), "")]
    shown = [_line(path, before, after, hidden=is_confidential(kind, path)) for path, before, after in found]
    more = [f"and {len(shown) - MAX_CHANGES} more"] if len(shown) > MAX_CHANGES else []
    return shown[:MAX_CHANGES] + more


def _shown(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata") or {}
    kept = {key: metadata[key] for key in _METADATA if metadata.get(key)}
    if isinstance(kept.get("annotations"), dict):
        kept["annotations"] = {k: v for k, v in kept["annotations"].items() if not k.startswith(_NOISE)}
    kept = {key: value for key, value in kept.items() if value}
    return {**{key: value for key, value in obj.items() if key not in _SILENT}, "metadata": kept}


def short_name(kind: str, namespace: str, name: str) -> str:
    """How people write an object, with its namespace where that is not the usual one.

    >>> short_name("WebApp", "shop", "web"), short_name("Node", "", "node-1")
    ('webapp/web -n shop', 'node/node-1')
    """
    inside = f" -n {namespace}" if namespace not in ("", "default") else ""
    return f"{kind.lower()}/{name}{inside}"


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _differences(old.get(key, _MISSING), new.get(key, _MISSING), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and _names(old) and _names(new):
        before, after = _by_name(old), _by_name(new)
        for name in dict.fromkeys([*before, *after]):
            yield from _differences(before.get(name, _MISSING), after.get(name, _MISSING), f"{path}[{name}]")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, f"{path}[{index}]")
    elif old is not new and old != new:
        yield path, old, new


def _names(items: list[Any]) -> bool:
    names = [item.get("name") for item in items if isinstance(item, dict)]
    return len(names) == len(items) and all(isinstance(name, str) for name in names) and len({*names}) == len(names)


def _by_name(items: list[Any]) -> dict[str, Any]:
    return {item["name"]: item for item in items}


def _line(path: str, old: Any, new: Any, *, hidden: bool) -> str:
    if hidden:
        return f"{path} changed"
    if old is _MISSING:
        return f"{path} = {_short(new)}"
    return f"{path} removed" if new is _MISSING else f"{path} {_short(old)} → {_short(new)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"
