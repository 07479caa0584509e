"""Sums of resources: what the containers of a pod ask for together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.objects.quantity import Quantity, QuantityError

Obj = dict[str, Any]
Amounts = dict[str, Quantity]

_OF_WHOLE_PODS = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def amounts(quantities: Obj | None) -> Amounts:
    return {name: Quantity(str(value)) for name, value in (quantities or {}).items()}


def texts(quantities: Amounts) -> dict[str, str]:
    return {name: str(value) for name, value in quantities.items()}


def add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = plus(total[name], value) if name in total else value


def plus(first: Quantity, second: Quantity) -> Quantity:
    """The sum, of any two amounts."""
    try:
        return first + second
    except QuantityError:  # thousands of decimal places apart: beside the larger one the other is nothing
        return max(first, second)


def raise_to(total: Amounts, other: Amounts) -> None:
    """Take the larger of both, name by name."""
    for name, value in other.items():
        if name not in total or value > total[name]:
            total[name] = value


def total(parts: Iterable[Amounts], names: Iterable[str]) -> Amounts:
    """The sum of all for the names that are asked for; what no part has is zero."""
    result = dict.fromkeys(names, Quantity("0"))
    for part in parts:
        add(result, {name: value for name, value in part.items() if name in result})
    return result


def asked_by_pod(spec: Obj, part: str, *, pod_level: tuple[str, ...] = _OF_WHOLE_PODS) -> Amounts:
    """The requests or limits of a pod: containers run together, init containers one after the other.

    Restartable init containers (sidecars) run on beside those that come after them. Upstream: PodRequests and PodLimits
    (component-helpers/resource).
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, _of_container(container, part))
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _of_container(container, part)
        if container.get("restartPolicy") == "Always":
            add(total, own)
            add(sidecars, own)
            raise_to(highest, sidecars)
        else:
            add(own, sidecars)
            raise_to(highest, own)
    raise_to(total, highest)
    for name, value in amounts((spec.get("resources") or {}).get(part)).items():
        if name in pod_level or name.startswith(_HUGE_PAGES):
            total[name] = value
    return total


def _of_container(container: Obj, part: str) -> Amounts:
    return amounts((container.get("resources") or {}).get(part))
