"""Autoscalers, and the Scale of anything."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import NONE, UNKNOWN, UNSET, age, at, name, status_of
from konverge.apiserver.table.volumes import quantity

_SHOWN = 2
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metrics(obj: Obj) -> str:
    """Current and target of each metric, the first few of them."""
    specs = obj["spec"].get("metrics") or []
    if not specs:
        return NONE
    statuses = status_of(obj).get("currentMetrics") or []
    padded = [*statuses[: len(specs)], *[{}] * (len(specs) - len(statuses))]
    shown = [_metric(spec, status) for spec, status in zip(specs, padded, strict=True)]
    joined = ", ".join(shown[:_SHOWN])
    return f"{joined} + {len(shown) - _SHOWN} more..." if len(shown) > _SHOWN else joined


def _metric(spec: Obj, status: Obj) -> str:
    source = _SOURCES.get(spec.get("type", ""), "")
    if not source:
        return "<unknown type>"
    wanted, found = spec.get(source) or {}, status.get(source)
    target, current = wanted.get("target") or {}, None if found is None else found.get("current") or {}
    if source == "pods":
        return f"{_amount(current, 'averageValue')}/{quantity(target.get('averageValue'))}"
    if source in ("resource", "containerResource"):
        return f"{wanted.get('name', '')}: {_resource(target, current)}"
    if target.get("averageValue") is not None:
        known = current if current and current.get("averageValue") is not None else None
        return f"{_amount(known, 'averageValue')}/{quantity(target['averageValue'])} (avg)"
    return f"{_amount(current, 'value')}/{quantity(target.get('value'))}"


def _amount(current: Obj | None, key: str) -> str:
    return UNKNOWN if current is None else quantity(current.get(key))


def _resource(target: Obj, current: Obj | None) -> str:
    if target.get("averageValue") is not None:
        return f"{_amount(current, 'averageValue')}/{quantity(target['averageValue'])}"
    used = None if current is None else current.get("averageUtilization")
    wanted = target.get("averageUtilization")
    return f"{UNKNOWN if used is None else f'{used}%'}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _reference(obj: Obj) -> str:
    target = obj["spec"].get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


KINDS: dict[str, dict[str, Any]] = {
    "HorizontalPodAutoscaler": {
        "Name": name,
        "Reference": _reference,
        "Targets": _metrics,
        "MinPods": lambda obj: str(at("spec.minReplicas", UNSET)(obj)),
        "MaxPods": at("spec.maxReplicas", 0),
        "Replicas": at("status.currentReplicas", 0),
        "Age": age,
    },
    "Scale": {
        "Name": name,
        "Desired": at("spec.replicas", 0),
        "Available": at("status.replicas", 0),
        "Age": age,
    },
}
