"""`Quantity`: amounts of resources, exact and in the canonical form of Kubernetes.

A quantity is `value × 10^scale` in integers, so that nothing is ever rounded behind the reader's back, plus the family
of suffixes it was written with (`1Gi` stays binary, `1e3` stays an exponent). Parsing follows the API server
(`ParseQuantity`, apimachinery/pkg/api/resource), with its peculiarities: an amount below one nano is rounded up, a
binary amount is capped at the largest int64, and a text that the server considers canonical already is kept as it was
written (`1.500` stays `1.500`). In one point it differs on purpose: beyond the last suffix the server drops the suffix
(`1000E` is printed as `1`); here it stays `1000E`.

Parsed quantities are immutable and cached, because a cluster writes the same few texts over and over.
"""

from __future__ import annotations

import re
from enum import Enum
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Final


class QuantityError(ValueError):
    """The text is not a quantity; the message is the API server's."""


class Format(Enum):
    """The family of suffixes that a quantity is printed with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


_PUBLISHED_PATTERN: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_WRONG_FORMAT: Final = f"quantities must match the regular expression '{_PUBLISHED_PATTERN}'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

# What the server's scanner accepts, which is a little more than the pattern it publishes: "." and "-" are zero, though
# not on its slow way (`_needs_digits`).
_SCAN = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_BEGINS_WITH_NUMBER = re.compile(r"[+-]?\.?[0-9]").match
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)")

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

_NANO: Final = -9
_MAX_INT64: Final = 2**63 - 1
_FAST_DIGITS: Final = 18
# Parsed texts are kept, and Python turns no more than 4,300 digits into a number.
_LONGEST: Final = 4096
# Two quantities further apart than this many decimal places are not added: the sum would fill the memory, and Python
# prints no more than 4,300 digits.
_MAX_SPREAD: Final = 4096
# More digits than a quantity has, be it a product of two texts.
_MAX_DIGITS: Final = 3 * _LONGEST
_DIGITS_PER_BIT: Final = 0.30103


@total_ordering
class Quantity:
    """An amount such as `500m`, `1Gi` or `1e3`.

    >>> Quantity("0.5Gi") + Quantity("512Mi")
    Quantity('1Gi')
    >>> Quantity("1000m") == Quantity(1)
    True
    """

    __slots__ = ("_scale", "_text", "_value", "format")

    _value: int
    _scale: int
    _text: str
    format: Format

    def __new__(cls, text: str | int | float = 0) -> Quantity:
        return parse(text if isinstance(text, str) else repr(text))

    @classmethod
    def of(cls, value: int, scale: int = 0, format: Format = Format.DECIMAL_SI) -> Quantity:
        """`value × 10^scale`: `Quantity.of(1500, -3)` is `1500m`. Below one nano it is rounded up, as in a text."""
        if scale < _NANO:
            return _make(_round_to_nano(value, scale), _NANO, format)
        return _make(value, scale, format)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

    def __str__(self) -> str:
        if not self._text:
            self._text = _canonical(self._value, self._scale, self.format)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __int__(self) -> int:
        """The amount in whole units, rounded away from zero, as a scheduler counts memory."""
        return self.scaled(0)

    def __float__(self) -> float:
        return float(self.fraction)

    def __bool__(self) -> bool:
        return self._value != 0

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero, as a scheduler counts CPU."""
        return self.scaled(-3)

    def scaled(self, scale: int) -> int:
        """The amount in units of `10^scale`, rounded away from zero."""
        return _rescale_up(self._value, self._scale, scale)

    @property
    def fraction(self) -> Fraction:
        if not self._value:
            return Fraction(0)
        _refuse_spread(self._scale)
        return Fraction(self._value) * Fraction(10) ** self._scale

    # ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self._compare(other) < 0

    def __hash__(self) -> int:
        return hash(_strip(self._value, self._scale))

    def _compare(self, other: Quantity) -> int:
        a, b = self._value, other._value
        if self._scale != other._scale and a and b:
            difference = self._scale - other._scale
            if abs(difference) > _MAX_DIGITS:
                return _compare_scales(self, other)
            a, b = (a * 10**difference, b) if difference > 0 else (a, b * 10**-difference)
        return (a > b) - (a < b)

    def exceeds(self, ratio: Quantity, other: Quantity) -> bool:
        """Whether this is more than `ratio` times the other, exactly and at any size."""
        product = _make(ratio._value * other._value, ratio._scale + other._scale, self.format)
        return self._compare(product) > 0

    # ── arithmetic ───────────────────────────────────────────────────────────────────────────────────────────────

    def __add__(self, other: Quantity) -> Quantity:
        format = self.format if self._value else other.format
        if self._scale == other._scale or not self._value or not other._value:
            return _make(self._value + other._value, self._scale if self._value else other._scale, format)
        difference = self._scale - other._scale
        if difference > 0:
            return _make(_lengthened(self._value, difference) + other._value, other._scale, format)
        return _make(self._value + _lengthened(other._value, -difference), self._scale, format)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __neg__(self) -> Quantity:
        return _make(-self._value, self._scale, self.format)

    def __mul__(self, factor: int) -> Quantity:
        return _make(self._value * factor, self._scale, self.format)

    __rmul__ = __mul__

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: object) -> Quantity:
        return self

    def __reduce__(self) -> tuple[type[Quantity], tuple[str]]:
        return Quantity, (str(self),)


def _make(value: int, scale: int, format: Format, text: str = "") -> Quantity:
    quantity = object.__new__(Quantity)
    quantity._value = value
    quantity._scale = scale
    quantity._text = text
    quantity.format = format
    return quantity


@lru_cache(maxsize=4096)
def parse(text: str) -> Quantity:
    """The quantity that a text means; what `Quantity(text)` calls."""
    match = _SCAN.fullmatch(text)
    if match is None or not text:
        raise QuantityError(_WRONG_FORMAT)
    if len(text) > _LONGEST:
        raise QuantityError(_WRONG_NUMBER)
    sign, whole, decimals, suffix = match[1], match[2] or "0", match[3] or "", match[4]
    exponent, format = _interpret(suffix)
    value = int(whole + decimals)
    if sign == "-":
        value = -value
    if format is Format.BINARY_SI:
        return _binary(text, value, whole, decimals, exponent)
    return _decimal(text, value, whole + decimals, exponent - len(decimals), format)


def _interpret(suffix: str) -> tuple[int, Format]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], Format.DECIMAL_SI
    if suffix in _BINARY:
        return _BINARY[suffix], Format.BINARY_SI
    match = _EXPONENT.fullmatch(suffix)
    # Longer exponents do not fit the server's integers.
    if match is None or len(match[1].lstrip("+-0")) > 9:
        raise QuantityError(_WRONG_SUFFIX)
    return int(match[1]), Format.DECIMAL_EXPONENT


def _decimal(text: str, value: int, digits: str, scale: int, format: Format) -> Quantity:
    if scale < _NANO:
        _needs_digits(text)
        return _make(_round_to_nano(value, scale), _NANO, format)
    fast = len(digits) <= _FAST_DIGITS
    kept = fast and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return _make(value, scale, format, text if kept else "")


def _binary(text: str, value: int, whole: str, decimals: str, exponent: int) -> Quantity:
    if not decimals and 15 - len(whole) - exponent * 3 // 10 - 1 >= 0:
        return _make(value << exponent, 0, Format.BINARY_SI, text if value & 7 else "")
    _needs_digits(text)
    value, scale = value << exponent, -len(decimals)
    if scale < _NANO:
        value, scale = _round_to_nano(value, scale), _NANO
    unit = 10**-scale
    if abs(value) > _MAX_INT64 * unit:
        value, scale = (_MAX_INT64 if value > 0 else -_MAX_INT64), 0
    format = Format.DECIMAL_SI if 0 < abs(value) < unit else Format.BINARY_SI
    return _make(value, scale, format)


def _needs_digits(text: str) -> None:
    """What does not fit the server's integers goes through a library that does not take nothing for zero."""
    if not _BEGINS_WITH_NUMBER(text):
        raise QuantityError(_WRONG_NUMBER)


def _round_to_nano(value: int, scale: int) -> int:
    """A request for more than zero stays more than zero: amounts too small to represent become one nano."""
    if len(str(abs(value))) + scale <= _NANO:
        return (value > 0) - (value < 0)
    return _rescale_up(value, scale, _NANO)


def _rescale_up(value: int, scale: int, wanted: int) -> int:
    """`value × 10^scale` in units of `10^wanted`, rounded away from zero."""
    if not value:
        return 0
    _refuse_spread(scale - wanted)
    if scale >= wanted:
        return value * int(10 ** (scale - wanted))
    divisor = int(10 ** (wanted - scale))
    rounded = -(-abs(value) // divisor)
    return rounded if value >= 0 else -rounded


def _lengthened(value: int, places: int) -> int:
    """`value × 10^places` for a sum."""
    if places + value.bit_length() * _DIGITS_PER_BIT > _MAX_SPREAD:
        raise QuantityError(f"quantities {places} decimal places apart cannot be put in one unit")
    return int(value * 10**places)


def _refuse_spread(difference: int) -> None:
    if abs(difference) > _MAX_SPREAD:
        raise QuantityError(f"quantities {abs(difference)} decimal places apart cannot be put in one unit")


def _compare_scales(a: Quantity, b: Quantity) -> int:
    """Compare by sign and scale: enough for amounts that are further apart than either has digits."""
    sign_a, sign_b = (a._value > 0) - (a._value < 0), (b._value > 0) - (b._value < 0)
    if sign_a != sign_b:
        return sign_a - sign_b
    return sign_a if a._scale > b._scale else -sign_a


def _strip(value: int, scale: int) -> tuple[int, int]:
    """Move all factors of ten into the scale."""
    if not value:
        return 0, 0
    while value % 10 == 0:
        value //= 10
        scale += 1
    return value, scale


def _canonical(value: int, scale: int, format: Format) -> str:
    if not value:
        return "0"
    if format is Format.BINARY_SI:
        whole = value * 10**scale if scale >= 0 else value // 10**-scale
        if abs(whole) >= 1024 and (scale >= 0 or value % 10**-scale == 0):
            return _canonical_binary(whole)
        format = Format.DECIMAL_SI
    value, scale = _strip(value, scale)
    lowered = scale % 3
    value, scale = value * 10**lowered, scale - lowered
    if format is Format.DECIMAL_EXPONENT:
        return f"{value}e{scale}" if scale else str(value)
    beyond = max(scale - 18, 0)
    return f"{value * 10**beyond}{_DECIMAL_SUFFIX[scale - beyond]}"


def _canonical_binary(value: int) -> str:
    times = 0
    while value % 1024 == 0 and times < 6:
        value //= 1024
        times += 1
    return f"{value}{_BINARY_SUFFIX[times]}"
