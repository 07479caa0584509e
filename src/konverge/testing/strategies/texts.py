"""Texts by length, pattern and format."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from konverge.apiserver.go.regexp import compile_pattern
from konverge.apiserver.go.strfmt import FORMATS, effective

Schema = Mapping[str, Any]

USUAL = 20
"""Characters at most, unless the schema asks for more."""
_END = re.compile(r"(?<!\\)((?:\\\\)*)\$(?=$|\))")


def plain_texts(fewest: int, most: int) -> SearchStrategy[str]:
    """Any characters but control characters, which most people who read a failure cannot see."""
    return st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")), min_size=fewest, max_size=most)


def texts(schema: Schema) -> SearchStrategy[str]:
    """
    >>> texts({"pattern": "^[a-z]+$", "maxLength": 3}).example()   # doctest: +SKIP
    'abc'
    """
    fewest = schema.get("minLength") or 0
    most = schema.get("maxLength")
    form = effective("string", schema.get("format") or "").replace("-", "")
    if pattern := schema.get("pattern"):
        values = _matching(pattern)
    elif form in _FORMATS:
        values = _FORMATS[form]()
    elif form and form != "password":
        values = st.from_regex(_SHAPES[form], fullmatch=True)
    else:
        return plain_texts(fewest, fewest + USUAL if most is None else max(fewest, min(most, fewest + USUAL)))
    return values.filter(_fits(schema, form, fewest, most))


def _fits(schema: Schema, form: str, fewest: int, most: int | None) -> Callable[[str], bool]:
    expression = compile_pattern(schema["pattern"]) if schema.get("pattern") else None
    valid = FORMATS.get(form)

    def fits(text: str) -> bool:
        if len(text) < fewest or (most is not None and len(text) > most):
            return False
        return (expression is None or expression.matches(text)) and (valid is None or valid(text))

    return fits


def _matching(pattern: str) -> SearchStrategy[str]:
    """Texts for a pattern of Go, as far as Python reads it; the rest is for the user to give."""
    ours = _END.sub(r"\1\\Z", pattern.replace(r"\z", r"\Z"))
    try:
        compiled = re.compile(ours, re.ASCII)
    except re.error as error:
        raise ValueError(
            f"no texts can be drawn for the pattern {pattern!r} ({error}): give a strategy for the field, "
            "objects(…, fields={'spec.field': …})"
        ) from None
    return st.from_regex(compiled, alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")))


# ------------------------------------------------------------------ formats


def _times() -> SearchStrategy[str]:
    return st.datetimes(_YEARS[0], _YEARS[1]).map(lambda time: time.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _dates() -> SearchStrategy[str]:
    return st.datetimes(_YEARS[0], _YEARS[1]).map(lambda time: time.strftime("%Y-%m-%d"))


def _durations() -> SearchStrategy[str]:
    return st.tuples(st.integers(0, 999), st.sampled_from(("ms", "s", "m", "h"))).map(
        lambda pair: f"{pair[0]}{pair[1]}"
    )


def _bytes() -> SearchStrategy[str]:
    return st.binary(min_size=1, max_size=12).map(lambda data: base64.b64encode(data).decode())


def _ipv4() -> SearchStrategy[str]:
    return st.ip_addresses(v=4).map(str)


def _ipv6() -> SearchStrategy[str]:
    return st.ip_addresses(v=6).map(str)


def _cidrs() -> SearchStrategy[str]:
    return st.tuples(st.ip_addresses(v=4), st.integers(0, 32)).map(lambda pair: f"{pair[0]}/{pair[1]}")


_YEARS = (datetime(1971, 1, 1), datetime(2199, 1, 1))
_FORMATS: dict[str, Callable[[], SearchStrategy[str]]] = {
    "datetime": _times,
    "date": _dates,
    "duration": _durations,
    "byte": _bytes,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidrs,
    "uuid": lambda: st.uuids().map(str),
    "uuid3": lambda: st.uuids(version=3).map(str),
    "uuid4": lambda: st.uuids(version=4).map(str),
    "uuid5": lambda: st.uuids(version=5).map(str),
}
_SHAPES = {
    "bsonobjectid": r"[0-9a-f]{24}",
    "uri": r"https?://[a-z]{1,10}(\.[a-z]{2,5}){1,2}(/[a-z0-9]{0,8}){0,3}",
    "email": r"[a-z]{1,10}@[a-z]{1,10}\.(com|org)",
    "hostname": r"[a-z]([a-z0-9]{0,10})(\.[a-z]{2,8}){0,2}",
    "mac": r"([0-9a-f]{2}:){5}[0-9a-f]{2}",
    "isbn": r"(0306406152|9780306406157|0131103628)",
    "isbn10": r"(0306406152|0131103628)",
    "isbn13": r"(9780306406157|9780131103627)",
    "creditcard": r"(4111111111111111|5555555555554444)",
    "ssn": r"[0-9]{3}-[0-9]{2}-[0-9]{4}",
    "hexcolor": r"#[0-9a-f]{6}",
    "rgbcolor": r"rgb\((0|[1-9][0-9]?),(0|[1-9][0-9]?),(0|[1-9][0-9]?)\)",
    "k8sshortname": r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?",
    "k8slongname": r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z]{1,8}){0,2}",
}
