"""Lines of Nacos releases, as far as their databases differ.

A line is "major.minor". Two families of schemas exist: until 2.4 (with aggregated configurations), and since 2.5,
which all of 3.x shares (with gray releases).
"""

from __future__ import annotations

import re
from typing import Literal

from konverge.operators.nacos.database.errors import DatabaseError

Family = Literal["until-2.4", "since-2.5"]

NEWEST = "3.0"
"""What an image without a readable version is taken for: its schema is a superset that grows only."""

_LINE = re.compile(r"v?(\d{1,3})\.(\d{1,3})(?![\d])")
_TAG = re.compile(r":([\w][\w.-]{0,127})(?:@[\w:+.-]+)?$")


def line_of(image: str) -> str:
    """The line of an image reference: `nacos/nacos-server:v2.4.3-slim` is "2.4"; "3.0" when the tag does not tell."""
    tag = _TAG.search(image)
    found = _LINE.match(tag[1]) if tag else None
    return f"{found[1]}.{found[2]}" if found else NEWEST


def family_of(line: str) -> Family:
    """Which schema servers of a line need; patch levels and suffixes are read over."""
    found = _LINE.match(line)
    if found is None:
        raise DatabaseError("InvalidTarget", f'"{line[:40]}" is no line of Nacos: give major and minor, as in "2.4"')
    return "since-2.5" if (int(found[1]), int(found[2])) >= (2, 5) else "until-2.4"
