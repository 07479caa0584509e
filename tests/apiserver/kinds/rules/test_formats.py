"""Names, addresses and quantities, as the API words their errors."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.go.structs import difference
from konverge.apiserver.kinds.framework.declare import Report, Rule
from konverge.apiserver.kinds.rules import names, network, quantities
from konverge.apiserver.kinds.rules.selectors import label_selector, selects


def details(rule: Rule, value: str) -> list[str]:
    report = Report()
    rule(value, "x", report)
    return [error.detail for error in report.errors]


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("a-1", []),
        ("a.b", ["must not contain dots"]),
        ("A", ["a lowercase RFC 1123 label must consist of"]),
        ("a" * 64, ["must be no more than 63 characters"]),
        ("-" * 64, ["must be no more than 63 characters", "a lowercase RFC 1123 label"]),
    ],
)
def test_labels(text: str, starts: list[str]) -> None:
    found = names.dns_label_errors(text)
    assert len(found) == len(starts)
    assert all(error.startswith(start) for error, start in zip(found, starts, strict=True))


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("a", []),
        ("example.com/Name_1", []),
        ("/a", ["prefix part must be non-empty"]),
        ("a/", ["name part must be non-empty", "name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
        ("A_/b", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
    ],
)
def test_qualified_names(text: str, starts: list[str]) -> None:
    found = names.qualified_name_errors(text)
    assert len(found) == len(starts)
    assert all(error.startswith(start) for error, start in zip(found, starts, strict=True))


def test_examples_are_listed_with_the_two_spaces_of_the_api() -> None:
    assert "(e.g. 'my-name',  or '123-abc', regex used" in names.dns_label_errors("_")[0]


def test_a_prefix_for_generated_names_may_end_with_a_dash() -> None:
    check = names.object_name(names.dns_label_errors)
    assert check("web-", True) == []
    assert check("web-", False) != []


def test_port_names_get_every_error() -> None:
    assert names.port_name_errors("--") == [
        "must contain at least one letter (a-z)",
        "must not contain consecutive hyphens",
        "must not begin or end with a hyphen",
    ]


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


@given(st.integers(min_value=0, max_value=10**9), st.sampled_from(["", "m", "k", "Ki", "M", "Gi"]))
def test_amounts_are_exact(number: int, suffix: str) -> None:
    scales = {"": 10**9, "m": 10**6, "k": 10**12, "Ki": 1024 * 10**9, "M": 10**15, "Gi": 2**30 * 10**9}
    assert quantities.amount(f"{number}{suffix}") == number * scales[suffix]


def test_sums_keep_their_unit() -> None:
    assert quantities.added({"cpu": "500m"}, {"cpu": "1", "memory": "1Gi"}) == {"cpu": "1500m", "memory": "1Gi"}
    assert quantities.largest({"cpu": "500m"}, {"cpu": "1"}) == {"cpu": "1"}
    assert quantities.rounded_to_milli("1500u") == "2m"


def test_selectors() -> None:
    report = Report()
    selector = {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "Near"}]}
    label_selector(selector, "s", report)
    assert [str(error) for error in report.errors] == [
        "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        's.matchExpressions[1].operator: Invalid value: "Near": not a valid selector operator',
    ]
    assert selects({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {})
    assert not selects({"matchLabels": {"a": "1"}}, {"a": "2"})


def test_differences_are_unified_and_escaped_as_in_go() -> None:
    assert difference({"A": "<", "B": 1}, {"A": "<", "B": 2}) == (
        '@@ -1,4 +1,4 @@\n {\n  "A": "\\u003c",\n- "B": 1\n+ "B": 2\n }\n'
    )
