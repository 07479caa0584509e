"""Amounts that the schema's types let pass and that no cluster accepts: negative ones, requests above their limits,
volumes of no size. Each check is there twice: as a CEL rule for the API server, and for resources that got past it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Meta

from konverge.objects import Quantity, Rule

if TYPE_CHECKING:
    from konverge.operators.nacos.spec import NacosSpec
    from konverge.operators.nacos.spec.storage import Volume

NOTHING = Quantity(0)
_NO_SIZE = "a volume needs a size above 0, such as 10Gi"
_ABOVE_LIMIT = "a request cannot be above its limit: lower it, or raise the limit"
_NEGATIVE = "an amount cannot be negative"
_KEYS = "['cpu', 'memory', 'ephemeral-storage']"
"""Those that every cluster has: a rule over all keys would cost more than the API server allows."""
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def _each(amount: str, variable: str, check: str) -> str:
    """CEL: a check of one amount, which may be a number or a text; one of a wrong form is refused by its pattern.

    In a list of one element, because the API server estimates the cost of a text that is read from a map as unbounded.
    """
    return f"[{amount}].all({variable}, !isQuantity(string({variable})) || {check})"


def _positive(amount: str) -> str:
    return _each(amount, "v", "quantity(string(v)).isGreaterThan(quantity('0'))")


def _not_negative(amounts: str) -> str:
    check = _each(f"{amounts}[k]", "v", "!quantity(string(v)).isLessThan(quantity('0'))")
    return f"!has({amounts}) || {_KEYS}.all(k, !(k in {amounts}) || {check})"


def storage_rules() -> list[Meta]:
    """Of a Volume. Each place that can say the size."""
    template = "self.volumeClaimTemplate"
    requests = f"{template}.spec.resources.requests"
    in_template = f"has({template}) && has({template}.spec.resources) && has({requests}) && 'storage' in {requests}"
    return [
        Rule(
            f"!has(self.requests) || !('storage' in self.requests) || {_positive('self.requests.storage')}",
            message=_NO_SIZE,
            field_path=".requests",
        ),
        Rule(
            f"!has(self.persistentVolumeSize) || {_positive('self.persistentVolumeSize')}",
            message=_NO_SIZE,
            field_path=".persistentVolumeSize",
        ),
        Rule(
            f"!({in_template}) || {_positive(f'{requests}.storage')}",
            message=_NO_SIZE,
            field_path=".volumeClaimTemplate.spec.resources.requests",
        ),
        Rule(
            f"!has(self.emptyDir) || !has(self.emptyDir.sizeLimit) || {_positive('self.emptyDir.sizeLimit')}",
            message=_NO_SIZE,
            field_path=".emptyDir.sizeLimit",
        ),
        Rule(
            f"!self.enabled || (has(self.requests) && 'storage' in self.requests) || ({in_template}) || "
            "has(self.persistentVolumeSize) || has(self.emptyDir) || has(self.hostPath)",
            message="an enabled volume needs requests.storage",
            field_path=".requests",
        ),
    ]


def resource_rules() -> list[Meta]:
    """Of the pods' resources."""
    fits = _each("self.limits[k]", "l", "!quantity(string(r)).isGreaterThan(quantity(string(l)))")
    both = f"!(k in self.requests) || !(k in self.limits) || {_each('self.requests[k]', 'r', fits)}"
    return [
        Rule(
            f"!has(self.requests) || !has(self.limits) || {_KEYS}.all(k, {both})",
            message=_ABOVE_LIMIT,
            field_path=".requests",
        ),
        Rule(_not_negative("self.requests"), message=_NEGATIVE, field_path=".requests"),
        Rule(_not_negative("self.limits"), message=_NEGATIVE, field_path=".limits"),
    ]


def probe_rule() -> Meta:
    """Upstream: validateProbe (pkg/apis/core/validation)."""
    checks = (f"(!has(self.{name}) || self.{name} >= 0)" for name in _PROBE_NUMBERS)
    return Rule(" && ".join(checks), message="the numbers of a probe cannot be negative")


def wrong_amounts(spec: NacosSpec) -> Iterator[str]:
    """What is wrong with the amounts of a spec, each with the path of its field."""
    for path, size in _sizes(spec.volume):
        if size is not None and size <= NOTHING:
            yield f"spec.volume.{path}: {_NO_SIZE}"
    requests, limits = spec.resources.requests, spec.resources.limits
    for part, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in amounts.items():
            if amount < NOTHING:
                yield f"spec.resources.{part}.{name}: {_NEGATIVE}"
    for name in above(requests, limits):
        yield f"spec.resources.requests.{name}: {_ABOVE_LIMIT}"


def above(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> list[str]:
    """The names whose request is above the limit.

    >>> above({"cpu": Quantity("2"), "memory": Quantity("1Gi")}, {"cpu": Quantity("1500m")})
    ['cpu']
    """
    return [name for name, amount in requests.items() if name in limits and amount > limits[name]]


def _sizes(volume: Volume) -> Iterator[tuple[str, Quantity | None]]:
    yield "requests.storage", volume.requests.get("storage")
    yield "persistentVolumeSize", volume.persistent_volume_size
    yield "volumeClaimTemplate.spec.resources.requests.storage", template_size(volume)
    yield "emptyDir.sizeLimit", volume.empty_dir.size_limit if volume.empty_dir is not None else None


def template_size(volume: Volume) -> Quantity | None:
    """The size in the template of the claims."""
    template = volume.volume_claim_template
    resources = template.spec.resources if template is not None else None
    return resources.requests.get("storage") if resources is not None else None
