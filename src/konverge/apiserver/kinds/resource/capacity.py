"""How the capacity of a device that several claims may use can be requested. Upstream: validateRequestPolicy."""

from __future__ import annotations

from itertools import pairwise

from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.numbers import NEGATIVE
from konverge.apiserver.strategy import Obj
from konverge.objects.quantity import Quantity

MOST_VALUES = 10
"""CapacityRequestPolicyDiscreteMaxOptions."""
MAX_INT64 = 2**63 - 1


def request_policy(capacity: Obj, path: str, report: Report) -> bool:
    """The policy of one capacity at `path`."""
    policy, place = capacity.get("requestPolicy") or {}, f"{path}.requestPolicy"
    values, allowed, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if values and allowed is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return report.forbidden(place, detail)
    if not values and allowed is None:
        return True
    if default is None:
        return report.required(
            f"{place}.default", f"required when {'validValues' if values else 'validRange'} is defined"
        )
    most = Quantity(capacity.get("value") or "0")
    if values:
        return _values([Quantity(value) for value in values], Quantity(default), most, f"{place}.validValues", report)
    return _range(allowed or {}, Quantity(default), most, f"{place}.validRange", report)


def _values(values: list[Quantity], default: Quantity, most: Quantity, path: str, report: Report) -> bool:
    for index, (value, following) in enumerate(pairwise(values), 1):
        if value > following:
            report.invalid(f"{path}[{index}]", str(following), "values must be sorted in ascending order")
    if len(values) > MOST_VALUES:
        report.too_many(path, len(values), MOST_VALUES)
        return report.invalid(path, str(default), "default value is not valid according to the requestPolicy")
    for index, value in enumerate(values):
        if value > most:
            report.invalid(f"{path}[{index}]", str(value), f"option is larger than capacity value: {most}")
    seen: set[int] = set()
    for index, value in enumerate(values):
        if int(value) in seen:
            report.duplicate(f"{path}[{index}]", str(int(value)))
        seen.add(int(value))
    known = default in values
    return known or report.invalid(path, str(default), "default value is not valid according to the requestPolicy")


def _range(allowed: Obj, default: Quantity, most: Quantity, path: str, report: Report) -> bool:
    """Upstream: validateRequestPolicyRange."""
    given = {name: Quantity(allowed[name]) for name in ("min", "max", "step") if allowed.get(name) is not None}
    least, limit = given.get("min"), given.get("max")
    if least is None:
        return report.required(f"{path}.min", "required when validRange is defined")
    if least > most:
        report.invalid(f"{path}.min", str(least), f"min is larger than capacity value: {most}")
    if default < least:
        report.invalid(f"{path}.default", str(default), f"default is less than min: {least}")
    if limit is not None:
        if least > limit:
            report.invalid(f"{path}.max", str(least), f"min is larger than max: {limit}")
        if limit > most:
            report.invalid(f"{path}.max", str(limit), f"max is larger than capacity value: {most}")
        if default > limit:
            report.invalid(f"{path}.default", str(default), f"default is more than max: {limit}")
    return "step" not in given or _steps({"default": default, **given}, most, path, report)


def _steps(named: dict[str, Quantity], most: Quantity, path: str, report: Report) -> bool:
    """The default and the maximum are whole numbers of steps above the minimum."""
    step, least = named["step"], named["min"]
    if step <= Quantity(0):
        return report.invalid(f"{path}.step", str(step), "must be greater than zero")
    if least + step > most:
        detail = f"one step {least + step} is larger than capacity value: {most}"
        report.invalid(f"{path}.step", str(step), detail)
    fitting = [_fits(value, f"{path}.{name}", report) for name, value in named.items()]
    if not all(fitting):
        return False
    for name in ("default", "max"):
        if name in named and (int(named[name]) - int(least)) % int(step):
            detail = f"value is not a multiple of a given step ({step}) from ({least})"
            report.invalid(f"{path}.step", str(named[name]), detail)
    return True


def _fits(value: Quantity, path: str, report: Report) -> bool:
    """Upstream: validateInt64Range."""
    if value < Quantity(0):
        return report.invalid(path, str(value), NEGATIVE)
    return value <= Quantity(MAX_INT64) or report.invalid(path, str(value), f"must not be larger than {MAX_INT64}")
