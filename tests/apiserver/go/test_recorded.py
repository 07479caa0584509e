"""Each function of Go's standard library that we mirror gives the value or the error that Go gives.

The answers are Go's own (`tools/go_answers`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from konverge.apiserver.go import base64, fmt, json_scanner, netip, strconv, time, url
from konverge.apiserver.go import json as go_json
from konverge.objects.durations import parse_duration

LINES = [json.loads(line) for line in (Path(__file__).parent / "recorded/go.jsonl").read_text().splitlines()]


def unmarshal(text: str) -> str:
    error = json_scanner.problem(text.encode("latin-1"))
    if error:
        raise ValueError(error)
    return ""


def parse_address(text: str) -> str:
    address = netip.parse_ip(text)
    if address is None:
        raise ValueError(netip.address_error(text))
    return str(address)


def parse_prefix(text: str) -> str:
    parsed = netip.parse_cidr(text)
    if parsed is None:
        raise ValueError(netip.prefix_error(text))
    return f"{parsed[0]}/{parsed[1].prefixlen}"


def parse_uri(text: str) -> str:
    parsed = url.parse_url(text)
    return f"{parsed.scheme}|{parsed.host}|{parsed.path}"


def parse_reference(text: str) -> str:
    parsed = url.parse_reference(text)
    user = "false" if parsed.user is None else "true"
    return f"{parsed.scheme}|{parsed.host}|{unquote(parsed.path)}|{user}|{parsed.query}|{parsed.fragment}"


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "json.Unmarshal": unmarshal,
    "json.Marshal": go_json.encode,
    "json.Marshal float": lambda text: go_json.encode(float(text)),
    "fmt %v float": lambda text: fmt.go_float(float(text)),
    "strconv.Quote": strconv.quote,
    "strconv.ParseInt": strconv.parse_int,
    "strconv.ParseUint": strconv.parse_uint,
    "time.ParseDuration": parse_duration,
    "time.Parse": time.canonical_time,
    "base64.DecodeString": base64.canonical_base64,
    "netip.ParseAddr": parse_address,
    "netip.ParsePrefix": parse_prefix,
    "url.ParseRequestURI": parse_uri,
    "url.Parse": parse_reference,
}


def answer(function: str, text: str) -> dict[str, str]:
    try:
        value = str(FUNCTIONS[function](text))
    except ValueError as error:
        return {"error": str(error)}
    return {"value": value} if value else {}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_answers_as_go_does(function: str) -> None:
    recorded = [line for line in LINES if line["function"] == function]
    assert recorded
    expected = {line["input"]: {key: line[key] for key in ("value", "error") if key in line} for line in recorded}
    assert {text: answer(function, text) for text in expected} == expected
