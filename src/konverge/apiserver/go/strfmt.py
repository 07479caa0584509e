"""The string formats that a schema may name, as the API server checks them.

Upstream: kube-openapi pkg/validation/strfmt; which formats count: apiextensions pkg/apiserver/validation/formats.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from konverge.apiserver.cel.timestamps import parse_duration
from konverge.apiserver.go.netip import parse_cidr_sloppy, parse_ip_sloppy
from konverge.apiserver.go.url import UrlError, parse_url

_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_WORDY_DURATION = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_WORDY_UNITS = {
    ("ns", "nano"): 1,
    ("us", "µs", "micro"): 10**3,
    ("ms", "milli"): 10**6,
    ("s", "sec"): 10**9,
    ("m", "min"): 60 * 10**9,
    ("h", "hr", "hour"): 3600 * 10**9,
    ("d", "day"): 86_400 * 10**9,
    ("w", "wk", "week"): 7 * 86_400 * 10**9,
}
_LABEL = r"[^\W_]|[^\w\s!-/:-@\[-`{-~]"  # letters, digits and symbols; no punctuation
_HOSTNAME = re.compile(
    rf"(?:(?:{_LABEL})(?:-?(?:{_LABEL}){{0,62}})?|(?:(?:{_LABEL})(?:(?:{_LABEL}|-){{0,61}}(?:{_LABEL}))?\.)+[^\W\d_]{{2,63}})"
)
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1)*[0-9a-fA-F]{2}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4})+")
_EMAIL = re.compile(
    r"(?:[^<>]*<)?\s*(?:\"[^\"]+\"|[^\s\"(),:;<>@\[\]\\.]+(?:\.[^\s\"(),:;<>@\[\]\\.]+)*)@[^\s<>@,]+\s*>?"
)


def is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return text[:4] == "0000" and is_date("2000" + text[4:])
    return True


def is_datetime(text: str) -> bool:
    day, t, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.partition("t")[0])
    if not t or not is_date(day) or match is None:
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def duration_nanoseconds(text: str) -> int | None:
    """A Go duration, or one in words (\"3 days\"). Upstream: strfmt.ParseDuration."""
    nanoseconds = parse_duration(text)
    if nanoseconds is not None:
        return nanoseconds
    total, known = 0, False
    for match in _WORDY_DURATION.finditer(text):
        unit = match[2].lower()
        for variants, scale in _WORDY_UNITS.items():
            for variant in variants:
                if variant == unit or (variant == variants[-1] and unit.startswith(variant)):
                    known = True
                    total += int(match[1]) * scale
    return total if known else None


def _is_uri(text: str) -> bool:
    try:
        parse_url(text)
    except UrlError:
        return False
    return True


def _is_mac(text: str) -> bool:
    digits = sum(char.isalnum() for char in text)
    return _MAC.fullmatch(text) is not None and digits in (12, 16, 40)


def _is_hostname(text: str) -> bool:
    if not _HOSTNAME.fullmatch(text) or len(text.encode()) > 255:
        return False
    return all(len(part.encode()) <= 63 for part in text.split("."))


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    doubled = [int(d) * (1 + index % 2) for index, d in enumerate(reversed(digits))]
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


_CREDIT_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}",
    re.ASCII,
)


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}X|[0-9]{10}", digits):
        return False
    values = [10 if d == "X" else int(d) for d in digits]
    return sum((index + 1) * value for index, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    total = sum(int(d) * (1, 3)[index % 2] for index, d in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


def _pattern(pattern: str, flags: int = re.ASCII) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


_BYTE = r"(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_SHORT = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_short_name = _pattern(_SHORT)
_long_name = _pattern(rf"{_SHORT}(\.{_SHORT})*")
_ssn = _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}")

FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _pattern(r"[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and parse_ip_sloppy(text) is not None,
    "ipv6": lambda text: ":" in text and parse_ip_sloppy(text) is not None,
    "cidr": lambda text: parse_cidr_sloppy(text) is not None,
    "mac": _is_mac,
    "uuid": _pattern(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.I | re.A),
    "uuid3": _pattern(r"[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I | re.A),
    "uuid4": _pattern(r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.I | re.A),
    "uuid5": _pattern(r"[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.I | re.A),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": lambda text: len(text) == 11 and _ssn(text),
    "hexcolor": _pattern(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _pattern(rf"rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)"),
    "byte": _pattern(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "date": is_date,
    "duration": lambda text: duration_nanoseconds(text) is not None,
    "datetime": is_datetime,
    "k8sshortname": lambda text: len(text) <= 63 and _short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _long_name(text),
}


_NUMBER_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def effective(schema_type: str, name: str) -> str:
    """The format as far as it is supported for the type; unknown ones mean nothing."""
    if schema_type in ("", "string"):
        return name if name.replace("-", "") in FORMATS else ""
    return name if name in _NUMBER_FORMATS.get(schema_type, ()) else ""
