"""`k8sWrapper.PodSpec`: the user's parts of a PodSpec, merged over ours.

Maps are merged, lists of named items (containers, volumes, variables, ports) are merged by their key, other lists and
plain values are replaced. The user's values win.
"""

from __future__ import annotations

from typing import Any

from konverge.objects import from_dict, to_dict
from konverge.objects.kinds.core_v1 import PodSpec

# The key that identifies the items of a list.
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "hostAliases": "ip",
}


def overlaid(spec: PodSpec, overlay: dict[str, Any]) -> PodSpec:
    """The PodSpec with the overlay. Raises msgspec.ValidationError when the result is not a PodSpec."""
    return from_dict(PodSpec, merge(to_dict(spec), overlay)) if overlay else spec


def merge(base: Any, overlay: Any, name: str = "") -> Any:
    """
    >>> merge({"a": 1, "env": [{"name": "x", "value": "1"}]}, {"env": [{"name": "x", "value": "2"}, {"name": "y"}]})
    {'a': 1, 'env': [{'name': 'x', 'value': '2'}, {'name': 'y'}]}
    """
    if overlay is None:
        return base
    if isinstance(base, dict) and isinstance(overlay, dict):
        return {**base, **{key: merge(base.get(key), value, key) for key, value in overlay.items()}}
    key = _KEYS.get(name)
    if key and isinstance(base, list) and isinstance(overlay, list):
        return _by_key(base, overlay, key)
    return overlay


def _by_key(base: list[Any], overlay: list[Any], key: str) -> list[Any]:
    merged = list(base)
    for item in overlay:
        identity = item.get(key) if isinstance(item, dict) else None
        positions = [i for i, old in enumerate(merged) if isinstance(old, dict) and old.get(key) == identity]
        if identity is not None and positions:
            merged[positions[0]] = merge(merged[positions[0]], item)
        else:
            merged.append(item)
    return merged
