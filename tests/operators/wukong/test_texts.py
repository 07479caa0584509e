"""Texts with a shape: sizes, addresses. What our patterns and functions say is what others make of such texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Quantity
from konverge.operators.wukong import names
from konverge.operators.wukong.resource import problems
from konverge.operators.wukong.texts import LEAST, MAC, SIZE, is_address, is_cidr, is_too_small
from tests.apiserver.cel.show import outcome
from tests.operators.wukong.specs import disk, spec, wukong

pytestmark = pytest.mark.spec("W-01")


@given(st.from_regex(SIZE.strip("^$"), fullmatch=True))
def test_every_size_is_an_amount(text: str) -> None:
    amount = Quantity(text)
    assert amount >= Quantity(0)
    assert outcome(f"isQuantity('{text}')") == {"value": "true"}
    wrong = amount < Quantity(LEAST)
    assert bool(problems(wukong(spec(memory=text)))) is wrong
    assert bool(problems(wukong(disk(size=text)))) is wrong


@pytest.mark.parametrize("text", ["-1", "+1Gi", "1e3", "1K", "1gi", "1 Gi", ".5Gi", "1.", "", "1m", "1GiB", "٣Gi"])
def test_what_is_no_size(text: str) -> None:
    assert not re.fullmatch(SIZE.strip("^$"), text)


def test_a_line_end_is_no_part_of_a_size() -> None:
    """Python's `$` lets it pass where the server's does not."""
    assert problems(wukong(spec(memory="1Gi\n"))) != []
    assert problems(wukong(disk(size="1Gi\n"))) != []


@given(st.uuids(), st.text("abc-", min_size=1, max_size=10))
def test_addresses_of_ours_are_such_as_users_may_give(uid: object, network: str) -> None:
    assert re.fullmatch(MAC.strip("^$"), names.mac(str(uid), network))


parts = st.one_of(
    st.ip_addresses().map(str),
    st.lists(st.integers(0, 300).map(str), min_size=3, max_size=5).map(".".join),
    st.from_regex(r"[0-9a-f:]{2,20}", fullmatch=True),
    st.sampled_from(
        ["::ffff:1.2.3.4", "fe80::1%eth0", "01.2.3.4", "::", "1.2.3.4 ", "0x1.2.3.4", "::1.2.3.4", "1::2::3"]
    ),
)
lengths = st.one_of(st.integers(0, 140).map(str), st.sampled_from(["", "08", "-1", "+8", "255.0.0.0", "8/8"]))


@given(parts)
def test_an_address_is_what_the_server_calls_one(text: str) -> None:
    assert outcome(f"isIP('{text}')") == {"value": str(is_address(text)).lower()}


@given(parts, lengths)
def test_a_net_is_what_the_server_calls_one(address: str, length: str) -> None:
    for text in (f"{address}/{length}", address):
        assert outcome(f"isCIDR('{text}')") == {"value": str(is_cidr(text)).lower()}


@pytest.mark.parametrize(
    ("text", "small"), [("1Mi", False), ("1048576", False), ("1048575", True), ("0", True), ("", True), ("x", True)]
)
def test_the_least_size_is_large_enough(text: str, small: bool) -> None:
    assert is_too_small(text) is small


@pytest.mark.parametrize(
    ("text", "net"),
    [
        ("10.0.0.1/32", True),
        ("10.0.0.1/33", False),
        ("10.0.0.1/0", True),
        ("10.0.0.1/", False),
        ("10.0.0.1", False),
        ("fd00::1/128", True),
        ("fd00::1/129", False),
        ("::ffff:1.2.3.4/8", False),
        ("fe80::1%eth0/8", False),
        ("x/8", False),
        ("10.0.0.1/08", False),
    ],
)
def test_what_is_a_net(text: str, net: bool) -> None:
    assert is_cidr(text) is net
