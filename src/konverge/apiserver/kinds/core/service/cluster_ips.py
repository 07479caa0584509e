"""The IP families and cluster IPs of a Service: how they are filled in, and what may change.

Upstream: pkg/registry/core/service/storage, pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver import status
from konverge.apiserver.go.netip import parse_ip_sloppy
from konverge.apiserver.kinds.core.service.allocation import Allocation, Full
from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.network import ip_legacy
from konverge.apiserver.strategy import Obj

Spec = dict[str, Any]

FAMILIES = ("IPv4", "IPv6")
POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


def family_of(ip: str) -> str:  # upstream: familyOf
    address = parse_ip_sloppy(ip)
    return f"IPv{address.version}" if address else "unknown"


def is_headless(spec: Spec) -> bool:  # upstream: isHeadlessService
    return list(spec.get("clusterIPs") or ()) == ["None"]


def needs_ip(spec: Spec) -> bool:  # upstream: needsClusterIP
    return spec.get("type") != "ExternalName"


# upstream: ValidateServiceClusterIPsRelatedFields
def cluster_ip_rules(spec: Spec, old: Spec | None, report: Report) -> None:
    """clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy agree with each other."""
    if not needs_ip(spec):
        return
    single, listed = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if single and not listed:
        report.required("spec.clusterIPs")
    elif single and listed[0] != single:
        report.invalid("spec.clusterIPs", listed, "first value must match `clusterIP`")
    elif listed and not single:
        report.invalid("spec.clusterIPs", listed, "must be empty when `clusterIP` is not specified")
    _families(spec, report)
    if _addresses(listed, (old or {}).get("clusterIPs") or (), report):
        _addresses_match(spec, listed, report)


def _families(spec: Spec, report: Report) -> None:  # upstream: ValidateServiceClusterIPsRelatedFields
    seen: set[str] = set()
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in FAMILIES:
            report.not_supported(f"spec.ipFamilies[{index}]", family, FAMILIES)
        if family in seen:
            report.duplicate(f"spec.ipFamilies[{index}]", family)
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in POLICIES:
        report.not_supported("spec.ipFamilyPolicy", policy, POLICIES)


# upstream: ValidateServiceClusterIPsRelatedFields
def _addresses(listed: list[str], before: Any, report: Report) -> bool:
    good = True
    for index, ip in enumerate(listed):
        if index == 0 and ip == "None":
            if len(listed) > 1:
                good = report.invalid("spec.clusterIPs", listed, "'None' must be the first and only value")
        elif ip not in before:
            good = ip_legacy(ip, f"spec.clusterIPs[{index}]", report) and good
    if len(listed) > 2:
        report.invalid("spec.clusterIPs", listed, "may only hold up to 2 values")
    return good


# upstream: ValidateServiceClusterIPsRelatedFields
def _addresses_match(spec: Spec, listed: list[str], report: Report) -> None:
    if len(listed) > 1 and len({family_of(ip) for ip in listed}) < 2:
        report.invalid("spec.clusterIPs", listed, "may specify no more than one IP for each IP family")
    if is_headless(spec):
        return
    for index, (ip, family) in enumerate(zip(listed, spec.get("ipFamilies") or (), strict=False)):
        if family in FAMILIES and family_of(ip) != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            report.invalid(f"spec.clusterIPs[{index}]", ip, detail)


def normalise(spec: Spec, old: Spec | None) -> None:  # upstream: normalizeClusterIPs
    """clusterIP is the first of clusterIPs, whichever of them a client writes."""
    single, listed = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if old is None:
        if single and not listed:
            spec["clusterIPs"] = [single]
        return
    before, were = old.get("clusterIP") or "", old.get("clusterIPs") or []
    if were and not listed and before == single:
        spec["clusterIPs"] = list(were)
    if before != single and listed == were:
        if before and not single:
            spec.pop("clusterIPs", None)
        else:
            spec["clusterIPs"] = [single]


def init_families(service: Obj, old: Obj | None) -> None:  # upstream: initIPFamilyFields
    """Fill in families and policy for a single-stack IPv4 cluster; raises 422 for what such a cluster cannot give."""
    spec, before = service["spec"], old["spec"] if old else None
    if not needs_ip(spec) or _settled(spec, before):
        return
    headless_alone = spec.get("clusterIP") == "None" and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        kept = (before or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = kept or ("RequireDualStack" if headless_alone else "SingleStack")
    report = Report()
    cluster_ip_rules(spec, before, report)
    _refuse(service, report)
    _policy_fits(spec, before, report)
    _families_of_addresses(spec, report)
    _refuse(service, report)
    if headless_alone:
        _families_without_addresses(spec)
        return
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        report.invalid("spec.ipFamilyPolicy", "RequireDualStack", detail)
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family != "IPv4":
            report.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
    _refuse(service, report)
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]


def _settled(spec: Spec, old: Spec | None) -> bool:  # upstream: isMatchingPreferDualStackClusterIPFields
    """A service that prefers dual-stack keeps what it got when nothing about it changes."""
    if old is None or spec.get("ipFamilyPolicy") != "PreferDualStack" or spec.get("type") != old.get("type"):
        return False
    if old.get("ipFamilyPolicy") not in (None, "PreferDualStack"):
        return False
    return all((spec.get(name) or []) == (old.get(name) or []) for name in ("clusterIPs", "ipFamilies"))


def _policy_fits(spec: Spec, old: Spec | None, report: Report) -> None:  # upstream: initIPFamilyFields
    policy, path = spec["ipFamilyPolicy"], "spec.ipFamilyPolicy"
    lists = (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family"))
    plurals = {"cluster IP": "cluster IPs", "IP family": "IP families"}
    for name, noun in lists:
        now, before = spec.get(name) or [], (old or {}).get(name) or []
        if old is not None and policy == "SingleStack" and now == before and len(now) > 1:
            spec[name] = now[:1]
        elif old is not None and policy != "SingleStack" and now and len(now) < len(before):
            report.invalid(path, policy, f"must be 'SingleStack' to release the secondary {noun}")
    for name, noun in lists:
        if policy == "SingleStack" and len(spec.get(name) or ()) == 2:
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {plurals[noun]} are specified"
            report.invalid(path, policy, detail)


def _families_of_addresses(spec: Spec, report: Report) -> None:  # upstream: initIPFamilyFields
    families, listed = list(spec.get("ipFamilies") or ()), spec.get("clusterIPs") or []
    for index, ip in enumerate(listed):
        if ip == "None" or index < len(families):
            continue
        family = family_of(ip)
        if family == "IPv4":
            families.append(family)
        else:
            report.invalid(f"spec.clusterIPs[{index}]", listed, f"{family} is not configured on this cluster")
    if families:
        spec["ipFamilies"] = families


def _families_without_addresses(spec: Spec) -> None:  # upstream: initIPFamilyFields
    """A headless service without a selector keeps its families, even those that the cluster does not have."""
    families = list(spec.get("ipFamilies") or ["IPv4"])
    if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    spec["ipFamilies"] = families


def _refuse(service: Obj, report: Report) -> None:
    if report.errors:
        raise status.invalid("", "Service", service["metadata"].get("name") or "", report.errors)


def allocate_ips(service: Obj, allocation: Allocation) -> None:  # upstream: allocClusterIPs
    """A cluster IP for each family that has none yet, and a claim on those that were asked for."""
    spec = service["spec"]
    if not needs_ip(spec) or is_headless(spec):
        return
    listed = list(spec.get("clusterIPs") or ())
    for index in range(len(spec.get("ipFamilies") or ())):
        if index >= len(listed):
            listed.append("")
        listed[index] = _allocated(listed, index, service, allocation)
    spec["clusterIPs"], spec["clusterIP"] = listed, listed[0]


def _allocated(listed: list[str], index: int, service: Obj, allocation: Allocation) -> str:  # upstream: allocIPs
    report, ip = Report(), listed[index]
    name = service["metadata"].get("name") or ""
    if ip:
        problem = allocation.take_ip(ip)
        if problem:
            report.invalid("spec.clusterIPs", listed, f"failed to allocate IP {ip}: {problem}")
        _refuse(service, report)
        return ip
    try:
        ip = allocation.next_ip()
    except Full:
        raise status.internal(f'failed to allocate a serviceIP for Service "{name}": range is full') from None
    if not name and not allocation.dry_run:
        # The real server records each IP in an IPAddress that names its Service.
        why = f'IPAddress.networking.k8s.io "{ip}" is invalid: spec.parentRef.name: Required value'
        report.invalid("spec.clusterIPs", listed, f"failed to allocate IP: {why}")
        _refuse(service, report)
    return ip


def ips_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateServiceUpdate
    """A cluster IP stays for life, except by way of ExternalName."""
    spec, before = new["spec"], old["spec"]
    if not needs_ip(spec) or not needs_ip(before) or (is_headless(spec) and is_headless(before)):
        return True
    _list_kept(spec, before, "clusterIPs", report)
    if not is_headless(spec) and not is_headless(before):
        _list_kept(spec, before, "ipFamilies", report)
    return True


_NOUNS = {"clusterIPs": "clusterIP", "ipFamilies": "ipFamily"}


# upstream: validateUpgradeDowngradeClusterIPs, validateUpgradeDowngradeIPFamilies
def _list_kept(spec: Spec, before: Spec, name: str, report: Report) -> None:
    now, were, noun = spec.get(name) or [], before.get(name) or [], _NOUNS[name]
    shown = now if name == "ipFamilies" else spec.get(name)
    if len(now) == len(were):
        for index, (value, old) in enumerate(zip(now, were, strict=True)):
            if value != old:
                at = index if name == "clusterIPs" else 0
                report.invalid(f"spec.{name}[{at}]", shown, "may not change once set")
        return
    if len(were) > len(now) and not now:
        report.invalid(f"spec.{name}[0]", shown, f"primary {noun} can not be unset")
    if now and were and now[0] != were[0]:
        report.invalid(f"spec.{name}[0]", spec.get("clusterIPs"), "may not change once set")
    if len(were) > len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = f"must be set to 'SingleStack' when releasing the secondary {noun}"
        report.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)
