"""Values that a schema accepts: the smallest, and others that differ from a given one.

Names are words of the field ("plugins-a"), so that a report can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from konverge.apiserver.go.regexp import compile_pattern
from konverge.check.inputs.core_types import Schema, choices, snake

_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "byte": "YQ==",
    "ipv4": "10.0.0.1",
    "ipv6": "fd00::1",
    "uri": "https://example.com/a",
    "hostname": "a.example.com",
    "email": "a@example.com",
    "cidr": "10.0.0.0/8",
    "mac": "02:00:00:00:00:01",
    "duration": "1m",
    "uuid": "00000000-0000-4000-8000-000000000001",
}
_COMMON = (
    "a", "A", "1", "0", "1Gi", "100m", "1m", "10s", "0 0 * * *", "1.2.3", "v1.2.3", "https://example.com/a",
    "a.example.com", "10.0.0.1", "10.0.0.0/8", "02:00:00:00:00:01", "/a", "a/b", "a:1", "a=b", "aa", "aaaaaaaa",
    "2026-01-01T00:00:00Z", "a@example.com",
)  # fmt: skip
"""What patterns of definitions usually mean."""


def word(name: str) -> str:
    """The last word of a name, in the singular.

    >>> word("additionalPlugins"), word("tls"), word("podAnnotations")
    ('plugin', 'tls', 'annotation')
    """
    last = snake(name).rpartition("_")[2] or "value"
    return last[:-1] if last.endswith("s") and not last.endswith(("ss", "tls")) and len(last) > 3 else last


def smallest(schema: Schema, name: str, number: int = 1) -> Any:
    """A value that the schema accepts, with as little in it as possible; `number` tells several apart."""
    if schema.get("default") is not None:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return "1Gi" if schema.get("pattern") else 1
    match schema.get("type"):
        case "object":
            properties = schema.get("properties") or {}
            wanted = [key for key in schema.get("required") or () if key in properties]
            made = {key: smallest(properties[key], key, number) for key in wanted}
            return made | _filled(schema, name, number, made)
        case "array":
            least = int(schema.get("minItems") or 0)
            return [smallest(schema.get("items") or {}, name, number + index) for index in range(least)]
        case "string":
            return string(schema, name, number)
        case "integer" | "number":
            return _number(schema, number)
        case "boolean":
            return False
    return {}


def _filled(schema: Schema, name: str, number: int, made: dict[str, Any]) -> dict[str, Any]:
    """More members, where the schema asks for a number of them."""
    least = int(schema.get("minProperties") or 0) - len(made)
    more: dict[str, Any] = {}
    inner = schema.get("additionalProperties")
    for index in range(max(0, least)):
        if isinstance(inner, dict):
            more[f"{word(name)}-{index}"] = smallest(inner, name, number)
        else:
            key = next((key for key in schema.get("properties") or {} if key not in made and key not in more), None)
            if key is not None:
                more[key] = smallest(schema["properties"][key], key, number)
    return more


def item(schema: Schema, name: str, number: int) -> Any:
    """An item of a list, with its name set if it has one, so that two of them differ."""
    made = smallest(schema, name, number)
    if isinstance(made, dict):
        properties = schema.get("properties") or {}
        for key in ("name", "key"):
            if (properties.get(key) or {}).get("type") == "string" and not properties[key].get("enum"):
                return {key: string(properties[key], name, number), **{k: v for k, v in made.items() if k != key}}
    if made == "" or (isinstance(made, dict) and not made and schema.get("properties")):
        key, inner = next(iter((schema.get("properties") or {"": {}}).items()))
        return {key: smallest(inner, key, number)} if key else made
    return made


def _number(schema: Schema, number: int) -> int | float:
    low, high = schema.get("minimum"), schema.get("maximum")
    value = number if low is None or low <= number else low + (1 if schema.get("exclusiveMinimum") else 0)
    value = high if high is not None and value > high else value
    step = schema.get("multipleOf")
    return value if not step else step * max(1, round(value / step))


def string(schema: Schema, name: str, number: int = 1) -> str:
    """A text that the schema accepts, if one is known."""
    return next(strings(schema, name, number), "")


def strings(schema: Schema, name: str, number: int = 1) -> Iterator[str]:
    """Texts that the schema accepts: what the built-in API knows under this name, then words of the field."""
    least, most = int(schema.get("minLength") or 0), schema.get("maxLength")
    form = str(schema.get("format") or "")
    plain = f"{word(name)}-{chr(96 + number)}" if number <= 26 else f"{word(name)}-{number}"
    known = choices().get(name, ())
    meant = list(_meant(name, number))
    candidates = [*known[number - 1 :], *known, *meant, plain, word(name), *_COMMON]
    candidates = [_FORMATS[form]] if form in _FORMATS else candidates
    pattern = compile_pattern(schema["pattern"]) if schema.get("pattern") else None
    for candidate in [*candidates, *_made_for(schema.get("pattern"))]:
        text = candidate + "a" * (least - len(candidate)) if candidate[-1:].isalpha() else candidate
        text = text if most is None else text[: int(most)]
        if len(text) >= least and (pattern is None or pattern.matches(text)):
            yield text


_PLURAL = re.compile(r"[A-Z]{2,}s(?![a-z])")
"""Of an abbreviation: the words of `externalIPs` are `external` and `ips`."""
_NETWORKS = re.compile(r"(^|_)cidrs?(_|$)|(^|_)(source|address|ip)_ranges?$|(^|_)subnets?$")
_ADDRESSES = re.compile(r"(^|_)ips?$|(^|_)(dns_|name_?)servers?$")


def _meant(name: str, number: int) -> Iterator[str]:
    """What alone makes sense in a field of this name: an operator hands it on, and the API server refuses all else.

    >>> [*_meant("allowedCIDRs", 1), *_meant("sourceRanges", 2), *_meant("externalIPs", 1), *_meant("zip", 1)]
    ['10.1.0.0/16', '10.2.0.0/16', '10.0.0.1']
    """
    words = snake(_PLURAL.sub(lambda found: found[0].capitalize(), name))
    if _NETWORKS.search(words):
        yield f"10.{number % 256}.0.0/16"
    elif _ADDRESSES.search(words):
        yield f"10.0.0.{number % 256}"


def _made_for(pattern: str | None) -> Iterator[str]:
    """The shortest text of a pattern's shape, where Python reads the pattern as well."""
    if not pattern:
        return
    try:
        parsed = _parser.parse(pattern)
    except re.error:
        return
    yield "".join(_text_of(parsed))


_parser: Any = re._parser  # type: ignore[attr-defined]


def _text_of(parsed: Any) -> Iterator[str]:
    for operation, argument in parsed:
        match str(operation):
            case "LITERAL":
                yield chr(argument)
            case "IN":
                yield _member(argument)
            case "ANY" | "NOT_LITERAL":
                yield "a"
            case "SUBPATTERN":
                yield from _text_of(argument[-1])
            case "BRANCH":
                yield from _text_of(argument[1][0])
            case "MAX_REPEAT" | "MIN_REPEAT":
                yield "".join(_text_of(argument[2])) * argument[0]


def _member(choices: Any) -> str:
    for operation, argument in choices:
        match str(operation):
            case "LITERAL":
                return chr(argument)
            case "RANGE":
                return chr(argument[0])
            case "CATEGORY":
                return "1" if "DIGIT" in str(argument) else "a" if "WORD" in str(argument) else " "
    return "a"
