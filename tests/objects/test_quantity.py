"""Quantities: the canonical form of Kubernetes, exact arithmetic, bounded work."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.quantity import Format, Quantity, QuantityError

from .upstream import differences

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3", "e+6"]

texts = st.builds(
    lambda sign, whole, decimals, suffix: f"{sign}{whole}{decimals}{suffix}",
    st.sampled_from(["", "", "-", "+"]),
    st.integers(0, 10**15),
    st.one_of(st.just(""), st.integers(0, 10**6).map(lambda n: f".{n}")),
    st.sampled_from(SUFFIXES),
)
quantities = texts.map(Quantity)


@pytest.mark.spec("S-09")
def test_agrees_with_upstream() -> None:
    beyond_exa = ("14000E", "-83000E")  # upstream drops the suffix and with it the amount
    unexpected = [line for line in differences("quantity", _shown) if not line.startswith(tuple(map(repr, beyond_exa)))]
    assert not unexpected


def _shown(text: str) -> str:
    quantity = Quantity(text)
    return f"{quantity}|{quantity + Quantity(0)}"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("1024Ki", "1Mi"),
        ("0.5Gi", "512Mi"),
        ("1e3", "1e3"),
        ("0.1n", "1n"),
        ("9Ei", "9223372036854775807"),
        ("1000E", "1000E"),
        (2, "2"),
        (0.25, "250m"),
        (-1500, "-1500"),
    ],
)
def test_canonical_form(text: str | int | float, canonical: str) -> None:
    assert str(Quantity(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "quantities must match the regular expression"),
        ("1 Gi", "quantities must match the regular expression"),
        ("five", "quantities must match the regular expression"),
        ("1Kib", "quantities must match the regular expression"),
        ("1ki", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("1" * 5000, "unable to parse numeric part of quantity"),
    ],
)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        Quantity(text)


def test_units() -> None:
    assert Quantity("1500m").milli == 1500
    assert int(Quantity("1500m")) == 2
    assert int(Quantity("-1500m")) == -2
    assert int(Quantity("1Gi")) == 2**30
    assert float(Quantity("250m")) == 0.25
    assert Quantity.of(5, -12) == Quantity("1n")
    assert not Quantity("0Gi")


def test_sum_takes_the_format_of_the_first_that_is_not_zero() -> None:
    assert str(Quantity(0) + Quantity("1Gi")) == "1Gi"
    assert str(Quantity("1Gi") + Quantity("1G")) == "2073741824"
    assert str(sum([Quantity("100m")] * 10, Quantity(0))) == "1"
    assert str(Quantity("1e3") - Quantity("1e3")) == "0"


def test_copies_and_pickles() -> None:
    quantity = Quantity("0.5Gi")
    assert copy.deepcopy(quantity) is quantity
    assert pickle.loads(pickle.dumps(quantity)) == quantity


def test_absurd_exponents_cost_nothing() -> None:
    huge, tiny = Quantity("1e999999999"), Quantity("1e-999999999")
    assert str(tiny) == "1e-9"
    assert huge > Quantity("9E") > tiny > -huge
    assert len({huge, tiny, Quantity("1n")}) == 2
    with pytest.raises(QuantityError, match="decimal places apart"):
        huge + Quantity(1)
    with pytest.raises(QuantityError, match="decimal places apart"):
        int(huge)


@given(texts)
def test_canonical_text_means_the_same_and_is_stable(text: str) -> None:
    quantity = Quantity(text)
    canonical = str(quantity + Quantity(0))
    assert Quantity(canonical) == quantity
    assert str(Quantity(canonical) + Quantity(0)) == canonical


@given(st.integers(-(10**18), 10**18), st.integers(-9, 9))
def test_value_is_exact(value: int, scale: int) -> None:
    assert Quantity.of(value, scale).fraction == Fraction(Decimal(value).scaleb(scale))


@given(quantities, quantities, st.integers(-100, 100))
def test_arithmetic_is_that_of_fractions(a: Quantity, b: Quantity, factor: int) -> None:
    assert (a + b).fraction == a.fraction + b.fraction
    assert (a - b).fraction == a.fraction - b.fraction
    assert (a * factor).fraction == (factor * a).fraction == a.fraction * factor
    assert (a < b) == (a.fraction < b.fraction)
    assert (a == b) == (a.fraction == b.fraction)
    assert (a <= b) == (a.fraction <= b.fraction)


@given(quantities)
def test_equal_amounts_hash_alike(a: Quantity) -> None:
    for shift in range(4):
        other = Quantity.of(a.scaled(-9) * 10**shift, -9 - shift) if shift == 0 else a + Quantity(0)
        assert other == a
        assert hash(other) == hash(a)
    assert hash(Quantity.of(10240, -1, Format.BINARY_SI)) == hash(Quantity("1Ki"))
