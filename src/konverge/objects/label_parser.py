"""The grammar of label selectors: a scanner and a recursive descent over its tokens.

It follows the API server token for token, because its messages name the token that it read and those that it expected.
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge.objects.labels import Operator, Requirement, SelectorError, key_errors, requirement

_END = "end"
_WORD = "word"
_SPECIAL = "=!(),><"
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
_OPERATOR_WORDS = "in, notin, =, ==, !=, gt, lt"
_MAX_LENGTH = 256 * 1024


@dataclass(frozen=True, slots=True)
class _Token:
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
    while True:
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
        if position >= len(text) or text[position] == "\0":
            tokens.append(_Token(_END, ""))
            return tokens
        token, position = (_symbol if text[position] in _SPECIAL else _identifier)(text, position)
        tokens.append(token)


def _identifier(text: str, start: int) -> tuple[_Token, int]:
    end = start
    while end < len(text) and text[end] not in _SPECIAL and text[end] not in " \t\r\n\0":
        end += 1
    word = text[start:end]
    return _Token(word if word in _TOKENS else _WORD, word), _past_nul(text, end)


def _symbol(text: str, start: int) -> tuple[_Token, int]:
    """The longest operator that begins here: `==` rather than `=`."""
    for length in (2, 1):
        symbol = text[start : start + length]
        if symbol in _TOKENS:
            return _Token(symbol, symbol), _past_nul(text, start + length)
    raise AssertionError("every special character is a token of its own")


def _past_nul(text: str, end: int) -> int:
    """The server's scanner ends a token at a NUL and swallows it."""
    return end + 1 if text[end : end + 1] == "\0" else end


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._position = 0

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            token = self._peek()
            if token.kind == _END:
                return found
            if token.kind not in (_WORD, "!"):
                raise SelectorError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            if self._separator() == _END:
                return found

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
            raise SelectorError(f"found '{token.text}', expected: {_OPERATOR_WORDS}")
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
