"""Quantities, semantic versions, URLs and named formats.

Upstream: apiserver/pkg/cel/library (quantity.go, semverlib.go, urls.go, format.go).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from konverge.apiserver.cel.values import NONE, EvalError, Optional, is_valid
from konverge.apiserver.go import strfmt
from konverge.apiserver.go.strconv import NumberError, parse_uint
from konverge.apiserver.go.url import Url, UrlError, parse_url
from konverge.objects import names
from konverge.objects.quantity import Quantity, QuantityError

_ZERO, _LOWEST, _HIGHEST = Quantity(0), Quantity(-(2**63)), Quantity(2**63 - 1)


# --- quantities


def _quantity(text: str) -> Quantity:
    try:
        return Quantity(text)
    except QuantityError as error:
        raise EvalError(str(error)) from None


def _whole(value: Quantity) -> bool:
    return _LOWEST <= value <= _HIGHEST and value.fraction.denominator == 1


def _as_integer(value: Quantity) -> int:
    if not _whole(value):
        raise EvalError("cannot convert value to integer")
    return int(value.fraction)


def _as_float(value: Quantity) -> float:
    try:
        return float(value)
    except (OverflowError, QuantityError):
        return math.copysign(math.inf, _compare(value, _ZERO))


def _sum(left: Quantity, right: Quantity) -> Quantity:
    try:
        return left + right
    except QuantityError as error:
        raise EvalError(str(error)) from None


def _compare(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


# --- semantic versions


@dataclass(frozen=True, slots=True)
class Semver:
    cel_name: ClassVar[str] = "kubernetes.Semver"
    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: tuple[str, ...] = field(default=(), compare=False)

    @property
    def rank(self) -> tuple[Any, ...]:
        """A release comes after its pre-releases; numbers come before words."""
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, parts)


_NUMBER = re.compile(r"0|[1-9][0-9]*")
_WORD = re.compile(r"[0-9A-Za-z-]+")


def _semver(text: str, normalize: bool = False) -> Semver:
    if normalize:
        text = _normalized(text)
    if not text:
        raise EvalError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvalError("No Major.Minor.Patch elements found")
    patch, plus, build = parts[2].partition("+")
    patch, dash, pre = patch.partition("-")
    numbers = [
        _version_number(name, part) for name, part in zip(("Major", "Minor", "Patch"), [*parts[:2], patch], strict=True)
    ]
    pre_parts = tuple(pre.split(".")) if dash else ()
    build_parts = tuple(build.split(".")) if plus else ()
    for part in pre_parts:
        if part.isdigit() and len(part) > 1 and part[0] == "0":
            raise EvalError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
        if part.isascii() and part.isdigit():
            _uint(part)
        _check_word(part, "Prerelease")
    for part in build_parts:
        _check_word(part, "Build meta data")
    return Semver(numbers[0], numbers[1], numbers[2], pre_parts, build_parts)


def _check_word(part: str, name: str) -> None:
    if not part:
        raise EvalError(f"{name} is empty")
    if not _WORD.fullmatch(part):
        raise EvalError(f'Invalid character(s) found in {name.lower()} "{part}"')


def _version_number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise EvalError(f'Invalid character(s) found in {name.lower()} number "{text}"')
    if not _NUMBER.fullmatch(text):
        raise EvalError(f'{name} number must not contain leading zeroes "{text}"')
    return _uint(text)


def _uint(text: str) -> int:
    try:
        return parse_uint(text)
    except NumberError as error:
        raise EvalError(str(error)) from None


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            part = part.lstrip("0")
            parts[index] = part if part[:1].isdigit() else "0" + part
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise EvalError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


# --- URLs


def _url(text: str) -> Url:
    try:
        return parse_url(text)
    except UrlError as error:
        raise EvalError(f"URL parse error during conversion from string: {error}") from None


def _escaped_path(url: Url) -> str:
    return quote(url.path, safe="/%$&+,:;=@!'()*~-._")


# --- formats


@dataclass(frozen=True, slots=True)
class NamedFormat:
    cel_name: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    errors: names.Format = field(compare=False)


def _prefix(errors: names.Format) -> names.Format:
    return lambda text: errors(text[:-1] + "a" if text.endswith("-") else text)


def _strfmt(name: str, error: str) -> names.Format:
    return lambda text: [] if strfmt.FORMATS[name](text) else [error]


def _uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except UrlError as error:
        return [str(error)]
    return []


_FORMAT_ERRORS: dict[str, names.Format] = {
    "dns1123Label": names.dns_label_errors,
    "dns1123LabelPrefix": _prefix(names.dns_label_errors),
    "dns1123Subdomain": names.dns_subdomain_errors,
    "dns1123SubdomainPrefix": _prefix(names.dns_subdomain_errors),
    "dns1035Label": names.dns_1035_errors,
    "dns1035LabelPrefix": _prefix(names.dns_1035_errors),
    "qualifiedName": names.qualified_name_errors,
    "labelValue": names.label_value_errors,
    "uri": _uri,
    "uuid": _strfmt("uuid", "does not match the UUID format"),
    "byte": _strfmt("byte", "invalid base64"),
    "date": _strfmt("date", "invalid date"),
    "datetime": _strfmt("datetime", "invalid datetime"),
}
_NAMED = {name: NamedFormat(name, errors) for name, errors in _FORMAT_ERRORS.items()}


def _named_format(name: str) -> Optional:
    form = _NAMED.get(name)
    return NONE if form is None else Optional(form)


def _validate(form: NamedFormat, text: str) -> Optional:
    errors = form.errors(text)
    return Optional(list(errors)) if errors else NONE


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "string_to_quantity": _quantity,
    "is_quantity_string": is_valid(_quantity),
    "quantity_sign": lambda value: _compare(value, _ZERO),
    "quantity_is_integer": _whole,
    "quantity_get_int": _as_integer,
    "quantity_get_float": _as_float,
    "quantity_is_greater_than": lambda a, b: a > b,
    "quantity_is_less_than": lambda a, b: a < b,
    "quantity_compare_to": _compare,
    "quantity_add": _sum,
    "quantity_sub": lambda a, b: _sum(a, -b),
    "quantity_add_int": lambda a, b: _sum(a, Quantity(int(b))),
    "quantity_sub_int": lambda a, b: _sum(a, -Quantity(int(b))),
    "string_to_semver": _semver,
    "string_bool_to_semver": _semver,
    "is_semver_string": is_valid(_semver),
    "is_semver_string_bool": is_valid(_semver),
    "semver_is_greater_than": lambda a, b: a.rank > b.rank,
    "semver_is_less_than": lambda a, b: a.rank < b.rank,
    "semver_compare_to": lambda a, b: _compare(a.rank, b.rank),
    "semver_major": lambda value: value.major,
    "semver_minor": lambda value: value.minor,
    "semver_patch": lambda value: value.patch,
    "string_to_url": _url,
    "is_url_string": is_valid(_url),
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": lambda url: url.hostname,
    "url_get_port": lambda url: url.port,
    "url_get_escaped_path": _escaped_path,
    "url_get_query": lambda url: url.parameters(),
    "format-named": _named_format,
    "format-validate": _validate,
}
FUNCTIONS |= {f"format.{name}": partial(_NAMED.__getitem__, name) for name in _NAMED}
