"""The order of API versions: stable before beta before alpha, higher before lower, anything else by name."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


def rank(version: str) -> tuple[int, int, int, int, str]:
    """A key that sorts versions as clients prefer them."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    return (0, _STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), version)


def deprecation_warning(group: str, kind: str, version: str, versions: list[dict[str, object]]) -> str:
    """The warning of a deprecated version that does not bring its own."""
    better = [
        str(one["name"])
        for one in versions
        if one.get("served") and not one.get("deprecated") and rank(str(one["name"])) < rank(version)
    ]
    text = f"{group}/{version} {kind} is deprecated"
    return f"{text}; use {group}/{min(better, key=rank)} {kind}" if better else text
