"""Resource requirements: limits, requests and claims of containers and of pods."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.field_errors import ErrorType, FieldError
from konverge.apiserver.kinds.core.resource_names import (
    container_resource_name,
    is_huge_page,
    is_huge_page_multiple,
    may_overcommit,
    pod_resource_name,
    resource_amount,
)
from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.apiserver.kinds.rules.names import dns_label
from konverge.apiserver.kinds.rules.quantities import amount, shown


def _huge_pages(name: str, value: Any, path: str, report: Report) -> None:
    if not is_huge_page_multiple(name, value):
        report.invalid(path, shown(value), f"{shown(value)} is not positive integer multiple of {name}")


def _against_limit(name: str, value: Any, limits: dict[str, Any], path: str, report: Report) -> None:
    if name not in limits:
        if not may_overcommit(name):
            report.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    limit, asked = limits[name], amount(value)
    if asked != amount(limit) and not may_overcommit(name):
        report.invalid(f"{path}.requests", shown(value), f"must be equal to {name} limit of {shown(limit)}")
    elif asked > amount(limit):
        detail = f"must be less than or equal to {name} limit of {shown(limit)}"
        report.invalid(f"{path}.requests", shown(value), detail)


def _requirements(name_rule: Rule) -> Rule:
    def check(value: Any, path: str, report: Report) -> bool:
        limits, requests = value.get("limits") or {}, value.get("requests") or {}
        for name in sorted(limits):
            place = f"{path}.limits[{name}]"
            name_rule(name, place, report)
            resource_amount(name, limits[name], place, report)
            if is_huge_page(name):
                _huge_pages(name, limits[name], place, report)
        for name in sorted(requests):
            place = f"{path}.requests[{name}]"
            name_rule(name, place, report)
            resource_amount(name, requests[name], place, report)
            _against_limit(name, requests[name], limits, path, report)
            if is_huge_page(name):
                _huge_pages(name, requests[name], place, report)
        _pages_need_company(limits, requests, path, report)
        if value.get("claims"):
            _claims(value["claims"], f"{path}.claims", report)
        return True

    return check


def _pages_need_company(limits: dict[str, Any], requests: dict[str, Any], path: str, report: Report) -> None:
    names = {*limits, *requests}
    if any(is_huge_page(name) for name in names) and not names & {"cpu", "memory"}:
        report.forbidden(path, "HugePages require cpu or memory")


def _claims(claims: list[dict[str, Any]], path: str, report: Report) -> None:
    known: frozenset[str] = report.scope.claims
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            report.required(place)
            continue
        _claim_once(claim, name, seen, place, report)
        if name not in known:
            listed = ": " + ", ".join(sorted(known)) if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            report.add(FieldError(ErrorType.NOT_FOUND, place, name, detail))


def _claim_once(claim: dict[str, Any], name: str, seen: set[str], place: str, report: Report) -> None:
    if name in seen:
        report.duplicate(place, name)
        return
    key, request = name, claim.get("request")
    if request:
        dns_label(request, f"{place}.request", report)
        key = f"{name}/{request}"
    if key in seen:
        report.duplicate(place, key)
    elif not request:
        for other in sorted(seen):
            if other.startswith(f"{name}/"):
                report.duplicate(place, name)
    seen.add(key)


container_requirements = _requirements(container_resource_name)
pod_requirements = _requirements(pod_resource_name)


def overhead(value: Any, path: str, report: Report) -> bool:
    """The overhead of a RuntimeClass or pod counts as limits."""
    return container_requirements({"limits": value}, path, report)
