from __future__ import annotations

import pytest

from konverge.operators.nacos.database import DatabaseError
from konverge.operators.nacos.database.lines import family_of, line_of


@pytest.mark.parametrize(
    ("image", "line"),
    [
        ("nacos/nacos-server:v2.4.3", "2.4"),
        ("nacos/nacos-server:2.0.4-slim", "2.0"),
        ("registry.example:5000/nacos/nacos-server:v3.0.3", "3.0"),
        ("nacos-server:v2.4.3-pg@sha256:0123456789abcdef", "2.4"),
        ("nacos/nacos-server:3.10", "3.10"),
        ("nacos/nacos-server:latest", "3.0"),
        ("nacos/nacos-server", "3.0"),
        ("registry.example:5000/nacos-server", "3.0"),
        ("", "3.0"),
    ],
)
def test_the_line_of_an_image(image: str, line: str) -> None:
    assert line_of(image) == line


@pytest.mark.parametrize(
    ("line", "family"),
    [
        ("1.4", "until-2.4"),
        ("2.0", "until-2.4"),
        ("2.4", "until-2.4"),
        ("v2.4.3-slim", "until-2.4"),
        ("2.5", "since-2.5"),
        ("2.10", "since-2.5"),
        ("3.0", "since-2.5"),
        ("10.0", "since-2.5"),
    ],
)
def test_the_family_of_a_line(line: str, family: str) -> None:
    assert family_of(line) == family


@pytest.mark.parametrize("line", ["", "latest", "2", "x2.4", "2.x"])
def test_what_is_no_line(line: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        family_of(line)
    assert caught.value.reason == "InvalidTarget"
