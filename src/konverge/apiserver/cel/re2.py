"""Go's regular expressions, read by Go's rules and refused in Go's words.

Schemas and rules bring patterns in RE2 syntax. Python's `re` is close but not the same: `$` means something else, `\\d`
knows all digits of Unicode, `{,3}` repeats, flags apply elsewhere. So a pattern is parsed to a tree here, and the tree
is written down again for `re` (`pattern.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from konverge.apiserver.cel.charclass import PERL, POSIX, Ranges, invert, unicode_class

MAX_REPEAT = 1000
_LIMIT = 1 << 14
"""Longer patterns are refused: compiling them would hold up everybody else."""


class RegexError(ValueError):
    """`code` and the offending part, as Go's regexp/syntax reports them."""

    def __init__(self, code: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{part}`")


@dataclass(frozen=True, slots=True)
class Flags:
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    swap_greed: bool = False


@dataclass(slots=True)
class Node:
    """op: lit, class, any, begin, end, line_begin, line_end, word, not_word, cat, alt, rep, group."""

    op: str
    ranges: Ranges = ()
    parts: list[Node] = field(default_factory=list)
    low: int = 0
    high: int = -1
    greedy: bool = True
    fold: bool = False
    name: str = ""
    capture: bool = False


def parse(pattern: str) -> Node:
    """The tree of a pattern, or a RegexError."""
    if len(pattern) > _LIMIT:
        raise RegexError("expression too large", pattern[:40])
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.names: set[str] = set()

    def parse(self) -> Node:
        tree = self._alternatives(Flags(), depth=0)
        if self.at < len(self.text):
            raise RegexError("unexpected )", self.text)
        return tree

    def _alternatives(self, flags: Flags, depth: int) -> Node:
        if depth > 200:
            raise RegexError("expression nests too deeply", self.text)
        branches: list[Node] = []
        while True:
            sequence, flags = self._sequence(flags, depth)
            branches.append(sequence)
            if not self._take("|"):
                break
        return branches[0] if len(branches) == 1 else Node("alt", parts=branches)

    def _sequence(self, flags: Flags, depth: int) -> tuple[Node, Flags]:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.text.startswith("(?", self.at) and not self.text.startswith(("(?P<", "(?<"), self.at):
                changed, group = self._flags(flags)
                if group is None:
                    flags = changed
                    continue
                self.at = group
                node = Node("group", parts=[self._group_body(changed, depth)])
            elif self.text.startswith(r"\Q", self.at):
                parts.extend(self._quoted(flags))
                continue
            else:
                node = self._atom(flags, depth)
            parts.append(self._repeats(node, flags))
        return Node("cat", parts=parts), flags

    def _group_body(self, flags: Flags, depth: int) -> Node:
        body = self._alternatives(flags, depth + 1)
        if not self._take(")"):
            raise RegexError("missing closing )", self.text)
        return body

    def _take(self, char: str) -> bool:
        if self.text.startswith(char, self.at):
            self.at += len(char)
            return True
        return False

    def _flags(self, flags: Flags) -> tuple[Flags, int | None]:
        """`(?i)` changes what follows (no group); `(?i:` opens a group at the returned position."""
        at, sign, seen = self.at + 2, True, False
        while at < len(self.text):
            char = self.text[at]
            at += 1
            if char in "imsU":
                seen = True
                flags = _with_flag(flags, char, sign)
            elif char == "-" and sign:
                sign, seen = False, False
            elif char in ":)" and (sign or seen):
                if char == ":":
                    return flags, at
                self.at = at
                return flags, None
            else:
                break
        raise RegexError("invalid or unsupported Perl syntax", self.text[self.at : at])

    def _quoted(self, flags: Flags) -> list[Node]:
        body, _, _ = self.text[self.at + 2 :].partition(r"\E")
        ended = self.text.find(r"\E", self.at + 2)
        self.at = ended + 2 if ended >= 0 else len(self.text)
        return [_literal(char, flags) for char in body]

    def _atom(self, flags: Flags, depth: int) -> Node:
        char = self.text[self.at]
        if char == "(":
            return self._capture(flags, depth)
        if char == "[":
            return self._bracket(flags)
        if char == "\\":
            return self._escape(flags)
        if char in "*+?":
            raise RegexError("missing argument to repetition operator", char)
        self.at += 1
        if char == ".":
            return Node("class", ranges=((0, 0x10FFFF),) if flags.dot_all else invert(((10, 10),)))
        if char == "^":
            return Node("line_begin" if flags.lines else "begin")
        if char == "$":
            return Node("line_end" if flags.lines else "end")
        return _literal(char, flags)

    def _capture(self, flags: Flags, depth: int) -> Node:
        name = ""
        for prefix in ("(?P<", "(?<"):
            if self.text.startswith(prefix, self.at):
                end = self.text.find(">", self.at)
                if end < 0:
                    raise RegexError("invalid named capture", self.text[self.at :])
                name = self.text[self.at + len(prefix) : end]
                if not name or not all(c.isalnum() or c == "_" for c in name):
                    raise RegexError("invalid named capture", self.text[self.at : end + 1])
                if name in self.names:
                    raise RegexError("duplicate capture group name", name)
                self.names.add(name)
                self.at = end + 1
                break
        else:
            self.at += 1
        return Node("group", parts=[self._group_body(flags, depth)], name=name, capture=True)

    def _repeats(self, node: Node, flags: Flags) -> Node:
        last = -1
        while self.at < len(self.text):
            before = self.at
            bounds = self._bounds()
            if bounds is None:
                return node
            greedy = not self._take("?")
            if last >= 0:
                raise RegexError("invalid nested repetition operator", self.text[last : self.at])
            node = Node("rep", parts=[node], low=bounds[0], high=bounds[1], greedy=greedy != flags.swap_greed)
            if _copies(node) > MAX_REPEAT:
                raise RegexError("invalid repeat count", self.text[before : self.at])
            last = before
        return node

    def _bounds(self) -> tuple[int, int] | None:
        char = self.text[self.at]
        if char in "*+?":
            self.at += 1
            return {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[char]
        if char != "{":
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : end].partition(",") if end > 0 else ("", "", "")
        if not _count(low) or (high and not _count(high)):
            return None
        if not comma:
            high = low
        found = (int(low), int(high) if high else -1)
        if found[0] > MAX_REPEAT or found[1] > MAX_REPEAT or -1 < found[1] < found[0]:
            raise RegexError("invalid repeat count", self.text[self.at : end + 1])
        self.at = end + 1
        return found

    def _escape(self, flags: Flags) -> Node:
        rest = self.text[self.at :]
        if rest == "\\":
            raise RegexError("trailing backslash at end of expression", "")
        char = rest[1]
        if char in "AzbB":
            self.at += 2
            return Node({"A": "begin", "z": "end", "b": "word", "B": "not_word"}[char])
        known = self._class_escape()
        if known is not None:
            return Node("class", ranges=known, fold=flags.fold)
        return _literal(self._char_escape(), flags)

    def _class_escape(self) -> Ranges | None:
        """\\d, \\S, \\pL, \\p{Lu} …"""
        char = self.text[self.at + 1 : self.at + 2]
        if char and char.lower() in PERL and char != "":
            self.at += 2
            return PERL[char] if char in PERL else invert(PERL[char.lower()])
        if char not in ("p", "P"):
            return None
        start, at = self.at, self.at + 2
        if self.text.startswith("{", at):
            end = self.text.find("}", at)
            if end < 0:
                raise RegexError("invalid character class range", self.text[start:])
            name, self.at = self.text[at + 1 : end], end + 1
        else:
            name, self.at = self.text[at : at + 1], at + 1
        negated = (char == "P") != name.startswith("^")
        found = unicode_class(name.removeprefix("^"))
        if found is None:
            raise RegexError("invalid character class range", self.text[start : self.at])
        return invert(found) if negated else found

    def _char_escape(self) -> str:
        start = self.at
        char = self.text[start + 1 : start + 2]
        self.at += 2
        if char in "1234567" and char != "" and self.text[self.at : self.at + 1] not in tuple("01234567"):
            raise RegexError("invalid escape sequence", self.text[start : self.at])
        if char != "" and char in "01234567":
            while self.at < start + 4 and self.text[self.at : self.at + 1] in tuple("01234567"):
                self.at += 1
            return chr(int(self.text[start + 1 : self.at], 8))
        if char == "x":
            return self._hex(start)
        simple = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
        if char in simple:
            return simple[char]
        if char and ord(char) < 0x80 and not char.isalnum():
            return char
        raise RegexError("invalid escape sequence", self.text[start : self.at])

    def _hex(self, start: int) -> str:
        if self._take("{"):
            end = self.text.find("}", self.at)
            digits, self.at = self.text[self.at : end] if end >= 0 else "", end + 1 if end >= 0 else len(self.text)
        else:
            digits, self.at = self.text[self.at : self.at + 2], self.at + 2
            if len(digits) < 2:
                digits = ""
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise RegexError("invalid escape sequence", self.text[start : self.at]) from None

    def _bracket(self, flags: Flags) -> Node:
        start = self.at
        self.at += 1
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise RegexError("missing closing ]", self.text[start:])
            item = self._posix() or (self._class_escape() if self.text[self.at] == "\\" else None)
            found.extend(item if item is not None else [self._range(start)])
            first = False
        self.at += 1
        ranges = tuple(sorted(found))
        return Node("class", ranges=invert(ranges) if negated else ranges, fold=flags.fold)

    def _posix(self) -> Ranges | None:
        if not self.text.startswith("[:", self.at):
            return None
        end = self.text.find(":]", self.at + 2)
        if end < 0:
            return None
        name = self.text[self.at + 2 : end]
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise RegexError("invalid character class range", self.text[self.at : end + 2])
        self.at = end + 2
        return invert(ranges) if name.startswith("^") else ranges

    def _range(self, start: int) -> tuple[int, int]:
        begin = self.at
        low = self._class_char(start)
        high = low
        if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
            self.at += 1
            high = self._class_char(start)
            if high < low:
                raise RegexError("invalid character class range", self.text[begin : self.at])
        return ord(low), ord(high)

    def _class_char(self, start: int) -> str:
        if self.at >= len(self.text):
            raise RegexError("missing closing ]", self.text[start:])
        if self.text[self.at] == "\\":
            if self.at + 1 == len(self.text):
                raise RegexError("trailing backslash at end of expression", "")
            return self._char_escape()
        self.at += 1
        return self.text[self.at - 1]


def _with_flag(flags: Flags, char: str, on: bool) -> Flags:
    name = {"i": "fold", "m": "lines", "s": "dot_all", "U": "swap_greed"}[char]
    return replace(flags, **{name: on})


def _copies(node: Node) -> int:
    """How often the innermost part would be copied: nested counts multiply."""
    inner = max((_copies(part) for part in node.parts), default=1)
    return inner * max(node.low, node.high, 1) if node.op == "rep" else inner


def _count(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or not text.startswith("0"))


def _literal(char: str, flags: Flags) -> Node:
    return Node("class", ranges=((ord(char), ord(char)),), fold=flags.fold)
