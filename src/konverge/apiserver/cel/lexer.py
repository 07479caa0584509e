"""Tokens of CEL. Upstream: cel-go parser/gen/CEL.g4."""

from __future__ import annotations

import re

import msgspec

from konverge.apiserver.cel.source import Problem

# Token names in the order of the reference grammar: lists of expected tokens are printed in this order.
_NAMES = (
    "'==' '!=' 'in' '<' '<=' '>=' '>' '&&' '||' '[' ']' '{' '}' '(' ')' '.' ',' '-' '!' '?' ':' '+' '*' '/' '%' "
    "'true' 'false' 'null' NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER ESC_IDENTIFIER <EOF>"
)
RANK = {name: index for index, name in enumerate(_NAMES.split())}
EOF = "<EOF>"

_SKIP = re.compile(r"(?:[\t \r\n\f]+|//[^\n]*)+")
# In the order in which they are tried. Keywords and operators are tokens of their own kinds.
_PATTERNS = {
    re.compile(r"(?:true|false|null|in)(?![A-Za-z0-9_])"): "",
    re.compile(r"[A-Za-z_][A-Za-z0-9_]*"): "IDENTIFIER",
    re.compile(r"(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"): "NUM_FLOAT",
    re.compile(r"(?:0x[0-9a-fA-F]+|[0-9]+)[uU]"): "NUM_UINT",
    re.compile(r"0x[0-9a-fA-F]+|[0-9]+"): "NUM_INT",
    re.compile(r"`[A-Za-z0-9_./ \-]+`"): "ESC_IDENTIFIER",
    re.compile(r"[=!<>]=|&&|\|\||[<>\[\]{}().,\-!?:+*/%]"): "",
}
_STRING_START = re.compile(r"([bB]?)([rR]?)('''|\"\"\"|'|\")")
_ESCAPE = re.compile(r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})""")
_PARTIAL_ESCAPE = re.compile(r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?")


class Token(msgspec.Struct, frozen=True):
    kind: str
    """As the grammar names it: `'=='`, IDENTIFIER, STRING …"""
    text: str
    offset: int


def tokens(text: str) -> tuple[list[Token], list[Problem]]:
    """The tokens, ending with EOF, and the characters that are none."""
    scanned: list[Token] = []
    problems: list[Problem] = []
    at = 0
    while True:
        match = _SKIP.match(text, at)
        if match is not None:
            at = match.end()
        if at >= len(text):
            scanned.append(Token(EOF, EOF, len(text)))
            return scanned, problems
        token = _next(text, at)
        if token is None:
            end = _unrecognised(text, at)
            problems.append(Problem(at, f"Syntax error: token recognition error at: '{text[at:end]}'"))
            at = end
        else:
            scanned.append(token)
            at += len(token.text)


def between(text: str) -> str:
    """The spaces and comments between two tokens, without the characters that are no token."""
    return "".join(match[0] for match in _SKIP.finditer(text))


def _next(text: str, at: int) -> Token | None:
    string = _string(text, at)
    if string is not None:
        return string
    for pattern, kind in _PATTERNS.items():
        match = pattern.match(text, at)
        if match is not None:
            return Token(kind or f"'{match[0]}'", match[0], at)
    return None


def _string(text: str, at: int) -> Token | None:
    match = _STRING_START.match(text, at)
    if match is None:
        return None
    kind = "BYTES" if match[1] else "STRING"
    end, good = _string_end(text, match.end(), match[3], raw=bool(match[2]))
    if not good and len(match[3]) == 3:
        end, good = match.end() - 1, True  # an empty string of single quotes, with another quote behind it
    return Token(kind, text[at:end], at) if good else None


def _string_end(text: str, at: int, quote: str, *, raw: bool) -> tuple[int, bool]:
    """Where the string ends, or where it goes wrong (past the offending character)."""
    single = len(quote) == 1
    while at < len(text):
        if text.startswith(quote, at):
            return at + len(quote), True
        char = text[at]
        if char in "\n\r" and single:
            return at + 1, False
        if char == "\\" and not raw:
            escape = _ESCAPE.match(text, at)
            if escape is None:
                partial = _PARTIAL_ESCAPE.match(text, at)
                assert partial is not None
                return min(partial.end() + 1, len(text)), False
            at = escape.end()
        else:
            at += 1
    return len(text), False


def _unrecognised(text: str, at: int) -> int:
    """The end of what could have become a token: everything up to the first character that spoils it."""
    match = _STRING_START.match(text, at)
    if match is not None:
        return _string_end(text, match.end(), match[3], raw=bool(match[2]))[0]
    if text[at] in "=&|":
        return min(at + 2, len(text))
    if text[at] == "`":
        while at + 1 < len(text) and re.match(r"[A-Za-z0-9_./ \-]", text[at + 1]):
            at += 1
        return min(at + 2, len(text))
    return at + 1
