"""The names of resources (cpu, memory, hugepages-2Mi, example.com/gpu, requests.cpu …) and what holds of them.

Upstream: pkg/apis/core/helper/helpers.go, pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.apiserver.kinds.rules.names import qualified_name
from konverge.apiserver.kinds.rules.quantities import amount, is_whole, quantity_not_negative, shown
from konverge.objects.names import qualified_name_errors
from konverge.objects.text_cache import remembered

_COUNTED = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_COMPUTE = frozenset(("cpu", "memory", "ephemeral-storage"))
_QUOTA = (
    _COUNTED
    | _COMPUTE
    | frozenset(f"{prefix}.{name}" for prefix in ("requests", "limits") for name in _COMPUTE)
    | {"requests.storage"}
)
_STANDARD = _QUOTA | {"storage"}


def is_huge_page(name: str) -> bool:  # upstream: IsHugePageResourceName
    return name.startswith("hugepages-")


def _is_quota_huge_page(name: str) -> bool:  # upstream: IsQuotaHugePageResourceName
    return name.startswith(("hugepages-", "requests.hugepages-"))


def is_native(name: str) -> bool:  # upstream: IsNativeResource
    """Kubernetes' own: without a domain, or with kubernetes.io/."""
    return "/" not in name or "kubernetes.io/" in name


@remembered(512)
def is_extended(name: str) -> bool:  # upstream: IsExtendedResourceName
    """A vendor's own (example.com/gpu), short enough that `requests.` can stand before it."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not qualified_name_errors(f"requests.{name}")


def may_overcommit(name: str) -> bool:  # upstream: IsOvercommitAllowed
    return is_native(name) and not is_huge_page(name)


def is_standard_quota(name: str) -> bool:  # upstream: IsStandardQuotaResourceName
    return name in _QUOTA or _is_quota_huge_page(name)


def is_counted(name: str) -> bool:  # upstream: IsIntegerResourceName
    """Comes in whole numbers only."""
    return name in _COUNTED or is_extended(name)


def resource_name(value: Any, path: str, report: Report) -> bool:  # upstream: validateResourceName
    """Any resource name."""
    if value in _STANDARD:
        return True
    if not qualified_name(value, path, report):
        return False
    if "/" not in value and not _is_quota_huge_page(value):
        return report.invalid(path, value, "must be a standard resource type or fully qualified")
    return True


def container_resource_name(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateContainerResourceName
    """A resource that a container can ask for."""
    if value in _COMPUTE:
        return True
    resource_name(value, path, report)
    if "/" not in value:
        return is_huge_page(value) or report.invalid(path, value, "must be a standard resource for containers")
    fine = is_native(value) or is_extended(value)
    return fine or report.invalid(path, value, "doesn't follow extended resource name standard")


def pod_resource_name(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodResourceName
    """A resource that a whole pod can ask for."""
    if value in ("cpu", "memory"):
        return True
    if not resource_name(value, path, report):
        return False
    return is_huge_page(value) or report.not_supported(path, value, ("cpu", "hugepages-", "memory"))


def quota_resource_name(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateResourceQuotaResourceName
    """A resource that a quota can limit."""
    resource_name(value, path, report)
    if "/" not in value and not is_standard_quota(value):
        return report.invalid(path, value, "must be a standard resource for quota")
    return True


# upstream: ValidateResourceQuantityValue
def resource_amount(name: str, value: Any, path: str, report: Report) -> bool:
    """Not negative, and whole where the resource is counted."""
    quantity_not_negative(value, path, report)
    if name not in _COMPUTE and is_counted(name) and not is_whole(value):
        return report.invalid(path, shown(value), "must be an integer")
    return True


def resource_amounts(name_rule: Rule) -> Rule:
    """A map of resources to amounts, each name by its rule."""

    def check(value: Any, path: str, report: Report) -> bool:
        for name in sorted(value or ()):
            place = f"{path}[{name}]"
            name_rule(name, place, report)
            resource_amount(name, value[name], place, report)
        return True

    return check


def is_huge_page_multiple(name: str, value: Any) -> bool:  # upstream: IsHugePageResourceValueDivisible
    """A whole number of pages; the name says how large one is."""
    size = amount(name.removeprefix("hugepages-"))
    return size > 0 and amount(value) % size == 0
