"""The grammar of label selectors: a scanner and a recursive descent over its tokens.

It follows the API server (apimachinery/pkg/labels, `Lexer` and `Parser`) token for token, because its messages name the
token that it read and those that it expected.
"""

from __future__ import annotations

import re

import msgspec

from konverge.objects.labels import Operator, Requirement, SelectorError, key_errors, requirement

_END = "end"
_WORD = "word"
# The longest operator that begins here (`==` rather than `=`), or a word; nothing at the end. As upstream's scanner
# (`Lexer.Lex`), a NUL ends a token and is swallowed with it; where a token should begin, it ends the text.
_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),><]|[^=!(),>< \t\r\n\0]*)\0?").match
_TOKENS = frozenset([")", ",", "!", "==", "=", ">", "<", "!=", "(", "in", "notin"])
_OPERATORS = {
    "in": Operator.IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
    "notin": Operator.NOT_IN,
    "!=": Operator.NOT_EQUALS,
}
_OPERATOR_NAMES = "in, notin, =, ==, !=, gt, lt"
_MAX_LENGTH = 256 * 1024


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str


def parse_requirements(text: str) -> list[Requirement]:
    """The requirements of a selector's text, in the order written."""
    if len(text) > _MAX_LENGTH:
        raise SelectorError(f"the selector is longer than {_MAX_LENGTH} characters")
    return _Parser(_scan(text)).parse()


def _scan(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while match := _TOKEN(text, position):
        word, position = match[1], match.end()
        if not word:
            break
        tokens.append(_Token(word if word in _TOKENS else _WORD, word))
    return [*tokens, _Token(_END, "")]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._position = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            token = self._peek()
            if token.kind == _END:
                return requirements
            if token.kind not in (_WORD, "!"):
                raise SelectorError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            if self._separator() == _END:
                return requirements

    def _separator(self) -> str:
        token = self._take()
        if token.kind not in (_END, ","):
            raise SelectorError(f"found '{token.text}', expected: ',' or 'end of string'")
        if token.kind == ",":
            following = self._peek()
            if following.kind not in (_WORD, "!"):
                raise SelectorError(f"found '{following.text}', expected: identifier after ','")
        return token.kind

    def _requirement(self) -> Requirement:
        negated = self._peek().kind == "!"
        if negated:
            self._take()
        key = self._take()
        if key.kind != _WORD:
            raise SelectorError(f"found '{key.text}', expected: identifier")
        if errors := key_errors(key.text, "<nil>"):
            raise SelectorError(errors[0])
        if negated:
            return requirement(key.text, Operator.DOES_NOT_EXIST)
        if self._peek().kind in (_END, ","):
            return requirement(key.text, Operator.EXISTS)
        operator = self._operator()
        values = self._set() if operator in (Operator.IN, Operator.NOT_IN) else self._exact()
        return requirement(key.text, operator, sorted(values))

    def _operator(self) -> Operator:
        token = self._take(names_operator=True)
        if token.kind not in _OPERATORS:
            raise SelectorError(f"found '{token.text}', expected: {_OPERATOR_NAMES}")
        return _OPERATORS[token.kind]

    def _exact(self) -> set[str]:
        if self._peek().kind in (_END, ","):
            return {""}
        token = self._take()
        if token.kind != _WORD:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        return {token.text}

    def _set(self) -> set[str]:
        opening = self._take()
        if opening.kind != "(":
            raise SelectorError(f"found '{opening.text}' expected: '('")
        first = self._peek()
        if first.kind == ")":
            self._take()
            return {""}
        if first.kind not in (_WORD, ","):
            raise SelectorError(f"found '{first.text}', expected: ',', ')' or identifier")
        values = self._identifiers()
        self._take()
        return values

    def _identifiers(self) -> set[str]:
        """A list in parentheses up to its `)`; an empty place between commas is the empty value."""
        values: set[str] = set()
        while True:
            token = self._take()
            following = self._peek()
            if token.kind == _WORD:
                values.add(token.text)
                if following.kind == ")":
                    return values
                if following.kind != ",":
                    raise SelectorError(f"found '{following.text}', expected: ',' or ')'")
            elif token.kind == ",":
                if not values or following.kind in (")", ","):
                    values.add("")
                if following.kind == ")":
                    return values
            else:
                raise SelectorError(f"found '{token.text}', expected: ',', or identifier")

    def _peek(self) -> _Token:
        token = self._tokens[min(self._position, len(self._tokens) - 1)]
        return _Token(_WORD, token.text) if token.kind in ("in", "notin") else token

    def _take(self, *, names_operator: bool = False) -> _Token:
        """The next token. `in` and `notin` are words, except where an operator is due."""
        token = self._tokens[min(self._position, len(self._tokens) - 1)] if names_operator else self._peek()
        self._position += 1
        return token
