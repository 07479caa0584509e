"""What Go's JSON scanner says about a text that is not JSON. Upstream: encoding/json/scanner.go.

The scanner is a state machine that takes one byte at a time; a state is a function from the byte to the next state.
Only texts that are known to be broken come here, so clarity matters more than speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.go.strconv import quote

DEPTH_LIMIT = 10_000  # upstream: maxNestingDepth
END = "unexpected end of JSON input"
_SPACE = b" \t\r\n"
_HEX = b"0123456789abcdefABCDEF"

State = Callable[[int], Any]


class SyntaxProblem(Exception):
    """The message is Go's."""


def problem(text: bytes) -> str:
    """The first error of a text, or "" if it is JSON."""
    scanner = _Scanner()
    try:
        for byte in text:
            scanner.step = scanner.step(byte)
        if not scanner.complete:
            scanner.step = scanner.step(0x20)
    except SyntaxProblem as error:
        return str(error)
    return "" if scanner.complete else END


def shown(byte: int) -> str:
    if byte == 0x27:
        return "'\\''"
    if byte == 0x22:
        return "'\"'"
    return f"'{quote(chr(byte))[1:-1]}'"


class _Scanner:
    def __init__(self) -> None:
        self.step: State = self.value
        self.complete = False
        self._inside: list[str] = []
        """What surrounds the current position: "key" and "member" of an object, "array"."""

    def wrong(self, byte: int, where: str) -> SyntaxProblem:
        return SyntaxProblem(f"invalid character {shown(byte)} {where}")

    def enter(self, what: str) -> None:
        self._inside.append(what)
        if len(self._inside) > DEPTH_LIMIT:
            raise SyntaxProblem("exceeded max depth")

    # --- values

    def value(self, byte: int) -> State:
        if byte in _SPACE:
            return self.value
        if byte == ord("{"):
            self.enter("key")
            return self.key_or_end
        if byte == ord("["):
            self.enter("array")
            return self.value_or_end
        if byte == ord('"'):
            return self.string
        if byte == ord("-"):
            return self.minus
        if byte == ord("0"):
            return self.zero
        if chr(byte) in "123456789":
            return self.integer
        for word in ("true", "false", "null"):
            if byte == ord(word[0]):
                return self.literal(word, 1)
        raise self.wrong(byte, "looking for beginning of value")

    def value_or_end(self, byte: int) -> State:
        if byte in _SPACE:
            return self.value_or_end
        return self.after_value(byte) if byte == ord("]") else self.value(byte)

    def key_or_end(self, byte: int) -> State:
        if byte in _SPACE:
            return self.key_or_end
        if byte == ord("}"):
            self._inside[-1] = "member"
            return self.after_value(byte)
        return self.key(byte)

    def key(self, byte: int) -> State:
        if byte in _SPACE:
            return self.key
        if byte == ord('"'):
            return self.string
        raise self.wrong(byte, "looking for beginning of object key string")

    # --- after values

    def after_value(self, byte: int) -> State:
        if not self._inside:
            self.complete = True
            return self.after_top(byte)
        if byte in _SPACE:
            return self.after_value
        match self._inside[-1]:
            case "key":
                if byte == ord(":"):
                    self._inside[-1] = "member"
                    return self.value
                raise self.wrong(byte, "after object key")
            case "member":
                if byte == ord(","):
                    self._inside[-1] = "key"
                    return self.key
                if byte == ord("}"):
                    return self.leave()
                raise self.wrong(byte, "after object key:value pair")
            case _:
                if byte == ord(","):
                    return self.value
                if byte == ord("]"):
                    return self.leave()
                raise self.wrong(byte, "after array element")

    def leave(self) -> State:
        self._inside.pop()
        if self._inside:
            return self.after_value
        self.complete = True
        return self.after_top

    def after_top(self, byte: int) -> State:
        if byte not in _SPACE:
            raise self.wrong(byte, "after top-level value")
        return self.after_top

    # --- strings

    def string(self, byte: int) -> State:
        if byte == ord('"'):
            return self.after_value if self._inside else self.leave_top()
        if byte == ord("\\"):
            return self.escape
        if byte < 0x20:
            raise self.wrong(byte, "in string literal")
        return self.string

    def leave_top(self) -> State:
        self.complete = True
        return self.after_top

    def escape(self, byte: int) -> State:
        if chr(byte) in 'bfnrt\\/"':
            return self.string
        if byte == ord("u"):
            return self.hexadecimal(4)
        raise self.wrong(byte, "in string escape code")

    def hexadecimal(self, left: int) -> State:
        def state(byte: int) -> State:
            if byte not in _HEX:
                raise self.wrong(byte, "in \\u hexadecimal character escape")
            return self.string if left == 1 else self.hexadecimal(left - 1)

        return state

    # --- numbers and names

    def minus(self, byte: int) -> State:
        if byte == ord("0"):
            return self.zero
        if chr(byte) in "123456789":
            return self.integer
        raise self.wrong(byte, "in numeric literal")

    def integer(self, byte: int) -> State:
        return self.integer if chr(byte).isdecimal() else self.zero(byte)

    def zero(self, byte: int) -> State:
        if byte == ord("."):
            return self.dot
        return self.exponent if chr(byte) in "eE" else self.after_value(byte)

    def dot(self, byte: int) -> State:
        if chr(byte) in "0123456789":
            return self.fraction
        raise self.wrong(byte, "after decimal point in numeric literal")

    def fraction(self, byte: int) -> State:
        if chr(byte) in "0123456789":
            return self.fraction
        return self.exponent if chr(byte) in "eE" else self.after_value(byte)

    def exponent(self, byte: int) -> State:
        return self.exponent_sign if chr(byte) in "+-" else self.exponent_sign(byte)

    def exponent_sign(self, byte: int) -> State:
        if chr(byte) in "0123456789":
            return self.exponent_digits
        raise self.wrong(byte, "in exponent of numeric literal")

    def exponent_digits(self, byte: int) -> State:
        return self.exponent_digits if chr(byte) in "0123456789" else self.after_value(byte)

    def literal(self, word: str, at: int) -> State:
        def state(byte: int) -> State:
            if byte != ord(word[at]):
                raise self.wrong(byte, f"in literal {word} (expecting '{word[at]}')")
            if at + 1 < len(word):
                return self.literal(word, at + 1)
            return self.after_value if self._inside else self.leave_top()

        return state
