"""Rules about IP addresses and CIDRs.

Old fields (`ip_legacy`, `cidr_legacy`) once took what older versions of Go took (leading zeros: `010.1.2.3`) and still
take any spelling that is not ambiguous; new ones want the canonical form. What is stored stays valid: callers skip
these rules for values that the old object had.

Upstream: k8s.io/apimachinery/pkg/util/validation/ip.go.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.netip import parse_cidr_sloppy, parse_ip, parse_ip_sloppy
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.kinds.framework.declare import Report, Rule, Transition, dig, field, struct
from konverge.apiserver.kinds.rules.names import dns_subdomain
from konverge.apiserver.strategy import Obj

NOT_A_NAME = "must be a DNS name, not an IP address"
BAD_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
BAD_INTERFACE_ADDRESS = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
BAD_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _is_strict(text: str) -> bool:
    address = parse_ip(text)
    return address is not None and getattr(address, "ipv4_mapped", None) is None


def ip_legacy(value: Any, path: str, report: Report) -> bool:  # upstream: IsValidIPForLegacyField
    """An IP in an old field: new values may not be ambiguous, but need not be canonical."""
    address = parse_ip_sloppy(value)
    if address is None:
        return report.invalid(path, value, BAD_IP)
    if ":" in value and address.version == 4:
        return report.invalid(path, value, "must not be an IPv4-mapped IPv6 address")
    return _is_strict(value) or report.invalid(path, value, "must not have leading 0s")


def ip_strict(value: Any, path: str, report: Report) -> bool:  # upstream: IsValidIP
    """An IP in canonical form."""
    if not ip_legacy(value, path, report):
        return False
    canonical = str(parse_ip_sloppy(value))
    return value == canonical or report.invalid(path, value, f"must be in canonical form ({quote(canonical)})")


def cidr_legacy(value: Any, path: str, report: Report) -> bool:  # upstream: IsValidCIDRForLegacyField
    """A CIDR in an old field."""
    parsed = parse_cidr_sloppy(value)
    if parsed is None:
        return report.invalid(path, value, BAD_CIDR)
    address, network = parsed
    host, _, bits = value.partition("/")
    if ":" in host and address.version == 4:
        return report.invalid(path, value, "must not have an IPv4-mapped IPv6 address")
    if not _is_strict(host) or bits != str(int(bits)):
        return report.invalid(path, value, "must not have leading 0s in IP or prefix length")
    matches = address == network.network_address
    return matches or report.invalid(path, value, "must not have bits set beyond the prefix length")


def cidr_strict(value: Any, path: str, report: Report) -> bool:  # upstream: IsValidCIDR
    """A CIDR in canonical form."""
    parsed = parse_cidr_sloppy(value)
    if not cidr_legacy(value, path, report) or parsed is None:
        return False
    canonical = str(parsed[1])
    return value == canonical or report.invalid(path, value, f"must be in canonical form ({quote(canonical)})")


def interface_address(value: Any, path: str, report: Report) -> bool:
    """The address of a network interface with the size of its network, in canonical form. Upstream:
    IsValidInterfaceAddress (k8s.io/apimachinery/pkg/util/validation)."""
    parsed = parse_cidr_sloppy(value)
    if parsed is None:
        return report.invalid(path, value, BAD_INTERFACE_ADDRESS)
    canonical = f"{parsed[0]}/{parsed[1].prefixlen}"
    return value == canonical or report.invalid(path, value, f"must be in canonical form ({quote(canonical)})")


def ip_warnings(path: str, value: str) -> list[str]:  # upstream: GetWarningsForIP
    """Warnings about an accepted IP that is not in canonical form."""
    address = parse_ip_sloppy(value)
    if address is None:
        return []
    if not _is_strict(value):
        return [f"{path}: non-standard IP address {quote(value)} is invalid: use {quote(str(address))}"]
    if address.version == 6 and str(address) != value:
        return [f"{path}: IPv6 address {quote(value)} should be in RFC 5952 canonical format ({quote(str(address))})"]
    return []


def cidr_warnings(path: str, value: str) -> list[str]:  # upstream: GetWarningsForCIDR
    """Warnings about an accepted CIDR that is not in canonical form."""
    parsed = parse_cidr_sloppy(value)
    if parsed is None:
        return []
    address, network = parsed
    warnings = []
    if address != network.network_address:
        single = f"{address}/{address.max_prefixlen}"
        hint = f"(should be {quote(str(network))} or {quote(single)}?)"
        warnings.append(f"{path}: CIDR value {quote(value)} is ambiguous in this context {hint}")
    host, _, bits = value.partition("/")
    if not _is_strict(host) or bits != str(int(bits)):
        warnings.append(f"{path}: non-standard CIDR value {quote(value)} is invalid: use {quote(str(network))}")
    if not warnings and address.version == 6 and f"{address}/{int(bits)}" != value:
        warnings.append(
            f"{path}: IPv6 CIDR value {quote(value)} should be in RFC 5952 canonical format ({quote(str(network))})"
        )
    return warnings


# upstream: ValidateLoadBalancerStatus, ValidateIngressLoadBalancerStatus, ingressStatusStrategy.WarningsOnUpdate
def balancer_status(*rules: Rule) -> Transition:
    """`status.loadBalancer` of a Service or an Ingress; `rules` look at each ingress point.

    Addresses that were stored stay valid. Those that are accepted, but not in canonical form, get a warning.
    """
    path, point = "status.loadBalancer.ingress", struct(*rules, field("hostname", _host_name))

    def check(new: Obj, old: Obj, _: str, report: Report) -> bool:
        listed, before = (dig(obj, path.split(".")) or () for obj in (new, old))
        known = {entry.get("ip") for entry in before}
        for index, entry in enumerate(listed):
            if entry.get("ip") and entry["ip"] not in known:
                ip_legacy(entry["ip"], f"{path}[{index}].ip", report)
            point(entry, f"{path}[{index}]", report)
        if report.context and not report.errors:
            for index, entry in enumerate(listed):
                for text in ip_warnings(f"{path}[{index}]", entry.get("ip") or ""):
                    report.context.warn(text)
        return True

    return check


def _host_name(value: Any, path: str, report: Report) -> bool:
    dns_subdomain(value, path, report)
    return parse_ip_sloppy(value) is None or report.invalid(path, value, NOT_A_NAME)
