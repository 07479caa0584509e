"""Values that are an integer or a string."""

from __future__ import annotations

import pytest

from konverge.objects.int_or_string import PercentageError, parse_int_or_string, scale


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [("25%", 10, 3, 2), ("0%", 7, 0, 0), ("100%", 7, 7, 7), (4, 7, 4, 4), ("150%", 3, 5, 4), ("-50%", 3, -1, -2)],
)
def test_a_percentage_is_taken_of_the_total_and_rounded(value: int | str, total: int, up: int, down: int) -> None:
    assert scale(value, total, round_up=True) == up
    assert scale(value, total, round_up=False) == down


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("5", "invalid value for IntOrString: invalid type: string is not a percentage"),
        ("x%", 'invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax'),
        ("%", 'invalid value for IntOrString: invalid value "%": strconv.Atoi: parsing "": invalid syntax'),
        ("+%", 'invalid value for IntOrString: invalid value "+%": strconv.Atoi: parsing "+": invalid syntax'),
        (
            "9223372036854775808%",
            'invalid value for IntOrString: invalid value "9223372036854775808%": '
            'strconv.Atoi: parsing "9223372036854775808": value out of range',
        ),
    ],
)
def test_what_is_no_percentage_is_refused_as_upstream_does(value: str, message: str) -> None:
    with pytest.raises(PercentageError) as refused:
        scale(value, 10, round_up=True)
    assert str(refused.value) == message


def test_a_text_is_an_integer_where_it_fits_32_bits() -> None:
    assert parse_int_or_string("80") == 80
    assert parse_int_or_string("http") == "http"
    assert parse_int_or_string("3000000000") == "3000000000"
    assert parse_int_or_string("0" * 70 + "5") == 5
    assert [parse_int_or_string(text) for text in ("-5", "+5", "-0", "", "+", "1_0", "\u0663", "9" * 70)] == [
        *(-5, 5, 0),
        *("", "+", "1_0", "\u0663", "9" * 70),
    ]
