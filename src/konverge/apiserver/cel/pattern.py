"""Compiled patterns: RE2 syntax outside, Python's `re` inside."""

from __future__ import annotations

import re
from functools import lru_cache

from konverge.apiserver.cel.re2 import Node, parse

_ASSERTIONS = {
    "begin": r"\A",
    "end": r"\Z",
    "line_begin": r"(?m:^)",
    "line_end": r"(?m:$)",
    "word": r"(?a:\b)",
    "not_word": r"(?a:\B)",
}


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern for `re`; raises RegexError with Go's text when Go would refuse it."""
    return re.compile(_write(parse(pattern)))


def _write(node: Node) -> str:
    if node.op in _ASSERTIONS:
        return _ASSERTIONS[node.op]
    if node.op == "class":
        return _class(node)
    if node.op == "cat":
        return "".join(_write(part) for part in node.parts)
    if node.op == "alt":
        return "(?:" + "|".join(_write(part) for part in node.parts) + ")"
    if node.op == "group":
        opening = f"(?P<{node.name}>" if node.name else "(" if node.capture else "(?:"
        return f"{opening}{_write(node.parts[0])})"
    return _repeat(node)


def _repeat(node: Node) -> str:
    bounds = {(0, -1): "*", (1, -1): "+", (0, 1): "?"}.get((node.low, node.high))
    if bounds is None:
        bounds = f"{{{node.low},{'' if node.high < 0 else node.high}}}"
    return f"(?:{_write(node.parts[0])}){bounds}{'' if node.greedy else '?'}"


def _class(node: Node) -> str:
    if not node.ranges:
        return r"(?!)"
    body = "".join(_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in node.ranges)
    single = len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]
    text = body if single else f"[{body}]"
    return f"(?i:{text})" if node.fold else text


def _char(code: int) -> str:
    char = chr(code)
    if char.isalnum() and code < 0x80:
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
