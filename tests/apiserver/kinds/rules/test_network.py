"""IP addresses and CIDRs."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.apiserver.kinds.rules import network


def details(rule: Rule, value: str) -> list[str]:
    report = Report()
    rule(value, "x", report)
    return [error.detail for error in report.errors]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("10.0.0.1", []),
        ("fd00:0::1", []),
        ("010.0.0.1", ["must not have leading 0s"]),
        ("::ffff:1.2.3.4", ["must not be an IPv4-mapped IPv6 address"]),
        ("999.1.1.1", [network.BAD_IP]),
        ("fe80::1%eth0", [network.BAD_IP]),
    ],
)
def test_addresses_in_old_fields(text: str, detail: list[str]) -> None:
    assert details(network.ip_legacy, text) == detail


def test_addresses_in_new_fields_are_canonical() -> None:
    assert details(network.ip_strict, "fd00:0::1") == ['must be in canonical form ("fd00::1")']
    assert details(network.cidr_strict, "10.0.0.1/8") == ["must not have bits set beyond the prefix length"]
    assert network.ip_warnings("x", "fd00:0::1") == [
        'x: IPv6 address "fd00:0::1" should be in RFC 5952 canonical format ("fd00::1")'
    ]
    assert network.cidr_warnings("x", "10.0.0.1/8") == [
        'x: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'
    ]


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_every_plain_address_is_good(number: int) -> None:
    assert details(network.ip_strict, str(ipaddress.IPv4Address(number))) == []
