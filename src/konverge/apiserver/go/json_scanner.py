"""What Go's JSON scanner says about a text that is not JSON. Upstream: encoding/json/scanner.go.

Only texts that are known to be broken come here, so clarity matters more than speed.
"""

from __future__ import annotations

from konverge.apiserver.go.strconv import quote

DEPTH_LIMIT = 10_000  # upstream: maxNestingDepth
END = "unexpected end of JSON input"
_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {ord(word[0]): word for word in ("true", "false", "null")}


class SyntaxProblem(Exception):
    """The message is Go's."""


def problem(text: bytes, at: int = 0, inside: bytes = b"") -> str:
    """The first error of a text, or "" if it is JSON.

    All up to `at` is known to be well; there a member of a list or object begins, if `inside` has the bytes that close
    those around it.
    """
    try:
        _Scanner(text, at).scan(list(inside))
    except SyntaxProblem as error:
        return str(error)
    return ""


def shown(byte: int) -> str:
    if byte == 0x27:
        return "'\\''"
    if byte == 0x22:
        return "'\"'"
    return f"'{quote(chr(byte))[1:-1]}'"


class _Scanner:
    def __init__(self, text: bytes, at: int = 0) -> None:
        self._text = text + b" "  # the last byte that Go's scanner looks at, which ends a number and spoils `tru`
        self._at = at

    def scan(self, inside: list[int]) -> None:
        """`inside`: the bytes that close the objects and lists around the position, deeper than Python's stack."""
        if inside:
            self._begin_element(inside)
        while True:
            byte = self._peek()
            if byte in b"{[":
                inside.append(ord("}") if byte == ord("{") else ord("]"))
                if len(inside) > DEPTH_LIMIT:
                    raise SyntaxProblem("exceeded max depth")
                self._at += 1
                if self._peek() != inside[-1]:
                    self._begin_element(inside)
                    continue
            else:
                self._scalar(byte)
            while inside and self._peek() == inside[-1]:
                self._at += 1
                inside.pop()
            if not inside:
                break
            self._expect(b",", "after array element" if inside[-1] == ord("]") else "after object key:value pair")
            self._begin_element(inside)
        if self._text[self._at :].strip(_SPACE):
            raise self._wrong(self._peek(), "after top-level value")

    def _begin_element(self, inside: list[int]) -> None:
        """Up to the value of an element: a member of an object has a key."""
        if inside[-1] == ord("}"):
            if self._peek() != ord('"'):
                raise self._wrong(self._peek(), "looking for beginning of object key string")
            self._string()
            self._peek()
            self._expect(b":", "after object key")

    def _wrong(self, byte: int, where: str) -> SyntaxProblem:
        return SyntaxProblem(f"invalid character {shown(byte)} {where}")

    def _peek(self) -> int:
        """The next byte that is not space."""
        while self._at < len(self._text):
            byte = self._text[self._at]
            if byte not in _SPACE:
                return byte
            self._at += 1
        raise SyntaxProblem(END)

    def _take(self) -> int:
        if self._at == len(self._text):
            raise SyntaxProblem(END)
        self._at += 1
        return self._text[self._at - 1]

    def _expect(self, allowed: bytes, where: str) -> int:
        byte = self._take()
        if byte not in allowed:
            raise self._wrong(byte, where)
        return byte

    def _digits(self, where: str) -> None:
        self._expect(_DIGITS, where)
        while self._text[self._at] in _DIGITS:
            self._at += 1

    def _scalar(self, byte: int) -> None:
        if byte == ord('"'):
            self._string()
        elif byte in b"-0123456789":
            self._number()
        elif byte in _LITERALS:
            self._at += 1
            word = _LITERALS[byte]
            for char in word[1:]:
                self._expect(char.encode(), f"in literal {word} (expecting '{char}')")
        else:
            raise self._wrong(byte, "looking for beginning of value")

    def _string(self) -> None:
        self._at += 1
        while (byte := self._take()) != ord('"'):
            if byte < 0x20:
                raise self._wrong(byte, "in string literal")
            if byte == ord("\\") and self._expect(b'bfnrtu\\/"', "in string escape code") == ord("u"):
                for _ in range(4):
                    self._expect(_HEX, "in \\u hexadecimal character escape")

    def _number(self) -> None:
        if self._text[self._at] == ord("-"):
            self._at += 1
        if self._text[self._at] == ord("0"):
            self._at += 1
        else:
            self._digits("in numeric literal")
        if self._text[self._at] == ord("."):
            self._at += 1
            self._digits("after decimal point in numeric literal")
        if self._text[self._at] in b"eE":
            self._at += 1
            if self._text[self._at] in b"+-":
                self._at += 1
            self._digits("in exponent of numeric literal")
