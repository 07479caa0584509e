r"""The syntax of Go's regular expressions, read by Go's rules and refused with Go's messages.

Upstream: regexp/syntax/parse.go of the Go that builds Kubernetes. Python's syntax is close but not the same: `$` means
something else, `\d` knows all digits of Unicode, `{,3}` repeats, flags apply elsewhere. So a pattern is parsed to a
tree, and the tree is run (`pattern.py`).

Nothing here recurses: Go allows a tree of 1,000 levels, Python's stack does not. What a tree's users ask about it (how
deep, how many copies, how many ways through it) is computed when a node is made.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from konverge.apiserver.go.regexp.classes import (
    EVERYTHING,
    NOT_NEWLINE,
    PERL,
    POSIX,
    Ranges,
    fold,
    invert,
    unicode_class,
    union,
)

MAX_REPEAT = 1000
MAX_HEIGHT = 1000  # upstream: maxHeight
MAX_SIZE = 128 * 2**20 // 40  # instructions; upstream: maxSize
_LIMIT = 1 << 14
"""Longer patterns are refused, which Go does not do: to read one would hold the event loop for too long."""
_MAX_RANGES = 50_000
r"""As many ranges of characters as `\pL` has 70 times over; Go refuses from 16 million on (upstream: maxRunes)."""

_COUNTS = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_OCTAL = re.compile(r"\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_SIMPLE = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

Op = Literal[
    "class", "empty", "begin", "end", "line_begin", "line_end", "word", "not_word", "cat", "alt", "rep", "group"
]


class RegexError(ValueError):
    """`code` and the offending part, as Go's regexp/syntax reports them."""

    def __init__(self, code: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{part}`")


class Node:
    """One part of a pattern. A repetition has `low` and `high` (-1: no end) and prefers more of it when greedy."""

    __slots__ = (
        "choices", "copies", "greedy", "height", "high", "loops", "low", "nests", "nullable",
        "op", "parts", "ranges", "size", "weight",
    )  # fmt: skip

    def __init__(self, op: Op, parts: tuple[Node, ...] = (), ranges: Ranges = ()) -> None:
        self.op: Op = op
        self.parts = parts
        self.ranges = ranges
        self.low, self.high, self.greedy = 1, 1, True
        self.nullable: bool = op != "class" and all(part.nullable for part in parts)
        """Whether it matches the empty text somewhere."""
        self.height: int = 1 + max((part.height for part in parts), default=0)
        self.size = 1
        """How many instructions Go would compile it to."""
        self.weight: int = max(len(ranges) - 1, 0) + sum(part.weight for part in parts)
        """How many ranges its classes have beyond their first ones."""
        self.copies: int = max((part.copies for part in parts), default=1)
        """How often the innermost part would be copied: nested counts multiply. Upstream: repeatIsValid."""
        self.loops = 0
        self.choices = 1
        """Backtracking tries at most `choices` times the text's length to the power of `loops` ways through it."""
        self.nests: bool = any(part.nests for part in parts)
        """Whether a repetition has choices inside: the ways through it multiply with each pass."""


_EMPTY = Node("empty")


@lru_cache(maxsize=1024)
def _class_node(ranges: Ranges) -> Node:
    return Node("class", ranges=ranges)


@lru_cache(maxsize=1024)
def _literal(char: str, folded: bool) -> Node:
    ranges = ((ord(char), ord(char)),)
    return _class_node(fold(ranges) if folded else ranges)


def _sequence(parts: list[Node]) -> Node:
    """Upstream: concat."""
    if len(parts) < 2:
        return parts[0] if parts else _EMPTY
    flat = tuple(inner for part in parts for inner in (part.parts if part.op == "cat" else (part,)))
    node = Node("cat", flat)
    if all(_is_literal(part) for part in flat):
        node.height = 1  # Go keeps a run of letters as one node
    node.size = sum(part.size for part in flat)
    for part in flat:
        node.loops += part.loops
        node.choices = min(node.choices * part.choices, MAX_SIZE)
    return node


def _is_literal(node: Node) -> bool:
    return node.op == "class" and len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]


def _alternation(branches: list[Node]) -> Node:
    """Upstream: alternate. Neighbours of one character each become one class."""
    flat: list[Node] = []
    for branch in branches:
        for node in branch.parts if branch.op == "alt" else (branch,):
            if flat and flat[-1].op == node.op == "class":
                flat[-1] = _class_node(union([*flat[-1].ranges, *node.ranges]))
            else:
                flat.append(node)
    if len(flat) == 1:
        return flat[0]
    node = Node("alt", tuple(flat))
    node.size = sum(part.size for part in flat) + len(flat) - 1
    node.nullable = any(part.nullable for part in flat)
    node.loops = max(part.loops for part in flat)
    node.choices = min(sum(part.choices for part in flat), MAX_SIZE)
    return node


def _group(body: Node, capture: bool) -> Node:
    if not capture:
        return body
    node = Node("group", (body,))
    node.size, node.loops, node.choices = 2 + body.size, body.loops, body.choices
    return node


def _repetition(body: Node, low: int, high: int, greedy: bool, counted: bool) -> Node:
    node = Node("rep", (body,))
    node.low, node.high, node.greedy = low, high, greedy
    node.nullable = body.nullable or low == 0
    node.loops, node.choices = body.loops, body.choices
    if counted:
        node.copies = 1 if high == 0 else node.copies * (high if high > 0 else low or 1)
    node.size = max(high * body.size + high - low, 1) if high >= 0 else 1 + max(low, 1) * body.size + (low == 0)
    choice = body.loops > 0 or body.choices > 1
    node.nests = body.nests or (choice and high not in (0, 1))
    if high < 0:
        node.loops += 1
    else:
        node.choices = min(node.choices * (high - low + 1), MAX_SIZE)
    return node


class Flags(msgspec.Struct, frozen=True):
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    swap_greed: bool = False


_FLAG_NAMES = {"i": "fold", "m": "lines", "s": "dot_all", "U": "swap_greed"}


class _Open(msgspec.Struct):
    """A group that is not closed yet; the whole pattern is the outermost one."""

    outside: Flags
    """The flags that hold again behind it."""
    capture: bool = False
    branches: list[Node] = msgspec.field(default_factory=list)
    parts: list[Node] = msgspec.field(default_factory=list)

    def close_branch(self) -> None:
        self.branches.append(_sequence(self.parts))
        self.parts = []

    def close(self) -> Node:
        self.close_branch()
        return _group(_alternation(self.branches), self.capture)


def parse(pattern: str) -> Node:
    """The tree of a pattern, or a RegexError."""
    if len(pattern) > _LIMIT:
        raise RegexError("expression too large", pattern[:40])
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags = Flags()
        self.open = [_Open(self.flags)]
        self.ranges = 0

    def parse(self) -> Node:
        last_repeat = -1
        while self.at < len(self.text):
            start = self.at
            if self._repeat(last_repeat):
                last_repeat = start
            else:
                last_repeat = -1
                self._token()
        if len(self.open) > 1:
            raise RegexError("missing closing )", self.text)
        return self._checked(self.open.pop().close())

    def _checked(self, node: Node) -> Node:
        """Upstream: checkLimits."""
        if node.size > MAX_SIZE:
            raise RegexError("expression too large", self.text)
        if node.height > MAX_HEIGHT:
            raise RegexError("expression nests too deeply", self.text)
        return node

    def _push(self, node: Node) -> None:
        self.open[-1].parts.append(node)

    def _push_class(self, ranges: Ranges) -> None:
        self.ranges += len(ranges)
        if self.ranges > _MAX_RANGES:
            raise RegexError("expression too large", self.text)
        self._push(_class_node(ranges))

    def _take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _token(self) -> None:
        """Read anything but a repetition."""
        char = self.text[self.at]
        if char == "(":
            self._open_group()
        elif char == "[":
            self._push_class(self._bracket())
        elif char == "\\":
            self._escape()
        else:
            self.at += 1
            if char == ")":
                self._close_group()
            elif char == "|":
                self.open[-1].close_branch()
            else:
                self._push(self._plain(char))

    def _plain(self, char: str) -> Node:
        if char == ".":
            return _class_node(EVERYTHING if self.flags.dot_all else NOT_NEWLINE)
        if char == "^":
            return Node("line_begin" if self.flags.lines else "begin")
        if char == "$":
            return Node("line_end" if self.flags.lines else "end")
        return _literal(char, self.flags.fold)

    # --- groups and flags

    def _open_group(self) -> None:
        rest = self.text[self.at : self.at + 5]
        if not rest.startswith("(?"):
            self.at += 1
            self.open.append(_Open(self.flags, capture=True))
        elif (rest.startswith("(?P<") and len(rest) > 4) or (rest.startswith("(?<") and len(rest) > 3):
            self._named_group()
        else:
            self._perl_flags()

    def _named_group(self) -> None:
        end = self.text.find(">", self.at)
        if end < 0:
            raise RegexError("invalid named capture", self.text[self.at :])
        if not _NAME.fullmatch(self.text, self.text.index("<", self.at) + 1, end):
            raise RegexError("invalid named capture", self.text[self.at : end + 1])
        self.at = end + 1
        self.open.append(_Open(self.flags, capture=True))

    def _perl_flags(self) -> None:
        """`(?i)` changes what follows, `(?i:` opens a group. Upstream: parsePerlFlags."""
        start, on, seen = self.at, True, False
        changed: dict[str, bool] = {}
        self.at += 2
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char in _FLAG_NAMES:
                seen = True
                changed[_FLAG_NAMES[char]] = on
            elif char == "-" and on:
                on = seen = False
            elif char in ":)" and (on or seen):
                if char == ":":
                    self.open.append(_Open(self.flags))
                self.flags = Flags(
                    **{name: changed.get(name, getattr(self.flags, name)) for name in Flags.__struct_fields__}
                )
                return
            else:
                break
        raise RegexError("invalid or unsupported Perl syntax", self.text[start : self.at])

    def _close_group(self) -> None:
        if len(self.open) == 1:
            raise RegexError("unexpected )", self.text)
        group = self.open.pop()
        self.flags = group.outside
        self._push(self._checked(group.close()))

    # --- repetitions

    def _repeat(self, last_repeat: int) -> bool:
        """Read a repetition if there is one here. Upstream: repeat."""
        start = self.at
        bounds = self._bounds()
        if bounds is None:
            return False
        greedy = not self._take("?")
        if last_repeat >= 0:
            raise RegexError("invalid nested repetition operator", self.text[last_repeat : self.at])
        parts = self.open[-1].parts
        if not parts:
            raise RegexError("missing argument to repetition operator", self.text[start : self.at])
        counted = self.text[start] == "{"
        node = _repetition(parts[-1], *bounds, greedy != self.flags.swap_greed, counted)
        parts[-1] = self._checked(node)
        if node.copies > MAX_REPEAT:
            raise RegexError("invalid repeat count", self.text[start : self.at])
        return True

    def _bounds(self) -> tuple[int, int] | None:
        char = self.text[self.at]
        if char in "*+?":
            self.at += 1
            return {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[char]
        counts = _COUNTS.match(self.text, self.at) if char == "{" else None
        if counts is None:
            return None
        low = _count(counts[1])
        high = low if not counts[2] else _count(counts[3]) if counts[3] else -1
        if low > MAX_REPEAT or high > MAX_REPEAT or -1 < high < low:
            raise RegexError("invalid repeat count", counts[0])
        self.at = counts.end()
        return low, high

    # --- escapes and classes

    def _escape(self) -> None:
        char = self.text[self.at + 1 : self.at + 2]
        if char == "Q":
            quoted, _, _ = self.text[self.at + 2 :].partition(r"\E")
            self.at = min(self.at + 4 + len(quoted), len(self.text))
            for letter in quoted:
                self._push(_literal(letter, self.flags.fold))
        elif char and char in "AzbB":
            self.at += 2
            ops: dict[str, Op] = {"A": "begin", "z": "end", "b": "word", "B": "not_word"}
            self._push(Node(ops[char]))
        else:
            ranges = self._class_escape()
            if ranges is None:
                self._push(_literal(self._char_escape(), self.flags.fold))
            else:
                self._push_class(ranges)

    def _class_escape(self) -> Ranges | None:
        """\\d, \\S, \\pL, \\p{Lu} …"""
        char = self.text[self.at + 1 : self.at + 2]
        if char and char.lower() in PERL:
            self.at += 2
            return self._folded(PERL[char.lower()], negated=char.isupper())
        if char not in ("p", "P"):
            return None
        start = self.at
        end = self.at + 3
        if self.text.startswith("{", self.at + 2):
            end = self.text.find("}", self.at) + 1
        self.at = end = min(end, len(self.text)) or len(self.text)
        name = self.text[start + 2 : end]
        if name.startswith("{"):
            name = name[1:-1] if name.endswith("}") else ""
        ranges = unicode_class(name.removeprefix("^"))
        if ranges is None:
            raise RegexError("invalid character class range", self.text[start:end])
        return self._folded(ranges, negated=(char == "P") != name.startswith("^"))

    def _folded(self, ranges: Ranges, *, negated: bool) -> Ranges:
        ranges = fold(ranges) if self.flags.fold else ranges
        return invert(ranges) if negated else ranges

    def _char_escape(self) -> str:
        """Upstream: parseEscape."""
        start = self.at
        char = self.text[start + 1 : start + 2]
        if char == "":
            raise RegexError("trailing backslash at end of expression", "")
        self.at += 2
        if char in _SIMPLE:
            return _SIMPLE[char]
        if char < "\x80" and not char.isalnum():
            return char
        if octal := _OCTAL.match(self.text, start):
            self.at = octal.end()
            return chr(int(octal[0][1:], 8))
        if char == "x":
            return self._hex(start)
        raise RegexError("invalid escape sequence", self.text[start : self.at])

    def _hex(self, start: int) -> str:
        digits = _HEX.match(self.text, start)
        code = int(digits[1] or digits[2], 16) if digits else -1
        if digits and code <= EVERYTHING[0][1]:
            self.at = digits.end()
            return chr(code)
        if not self._take("{"):
            raise RegexError("invalid escape sequence", self.text[start : start + 4])
        code = 0
        while self.at < len(self.text) and code <= EVERYTHING[0][1]:  # Go shows how far it has read
            char = self.text[self.at]
            self.at += 1
            if char not in "0123456789abcdefABCDEF":
                break
            code = code * 16 + int(char, 16)
        raise RegexError("invalid escape sequence", self.text[start : self.at])

    def _bracket(self) -> Ranges:
        """Upstream: parseClass."""
        start = self.at
        self.at += 1
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self.text.startswith("]", self.at):
            first = False
            named = self._posix_class()
            if named is None and self.text.startswith("\\", self.at):
                named = self._class_escape()
            if named is None:
                low_high = (self._range(start),)
                named = fold(low_high) if self.flags.fold else low_high
            ranges.extend(named)
        self.at += 1
        merged = union(ranges)
        return invert(merged) if negated else merged

    def _posix_class(self) -> Ranges | None:
        end = self.text.find(":]", self.at + 2) if self.text.startswith("[:", self.at) else -1
        if end < 0:
            return None
        name = self.text[self.at + 2 : end]
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise RegexError("invalid character class range", self.text[self.at : end + 2])
        self.at = end + 2
        return self._folded(ranges, negated=name.startswith("^"))

    def _range(self, start: int) -> tuple[int, int]:
        begin = self.at
        low = high = self._class_char(start)
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
            return self._char_escape()
        self.at += 1
        return self.text[self.at - 1]


def _count(digits: str) -> int:
    return int(digits) if len(digits) < 9 else MAX_REPEAT + 1
