"""`shardSelector` of a list or a watch: the objects whose hash of the uid or the namespace falls into some ranges.

It is written in CEL and never evaluated: only calls of shardRange() and `||` are allowed, and they are read from the
syntax tree. An alpha feature of Kubernetes (KEP-5866): without its gate the parameter is ignored.

Upstream: apiserver/pkg/sharding/parser.go, apimachinery/pkg/sharding.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from konverge.apiserver.cel.nodes import Call, Fold, Ident, ListExpr, Literal, MapExpr, Node, Select, StructExpr
from konverge.apiserver.cel.parser import parse as parse_cel
from konverge.apiserver.cel.source import CompileError
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.storage import Record
from konverge.objects.shard_hash import fnv1a

UID, NAMESPACE = "object.metadata.uid", "object.metadata.namespace"

_HEX = frozenset("0123456789abcdef")
_END = "0x10000000000000000"
_KINDS: dict[type[Node], int] = {
    Call: 1,
    Fold: 2,
    Ident: 3,
    ListExpr: 4,
    Literal: 5,
    MapExpr: 6,
    Select: 7,
    StructExpr: 8,
}
"""Upstream: ExprKind (cel-go common/ast/expr.go), which messages print as a number."""


class ShardSelectorError(ValueError):
    """The text is not a shard selector."""


class ShardRange(msgspec.Struct, frozen=True):
    """Upstream: ShardRangeRequirement."""

    field: str
    start: str
    end: str


class ShardSelector(msgspec.Struct, frozen=True):
    ranges: tuple[ShardRange, ...]

    def __str__(self) -> str:
        return " || ".join(f"shardRange({r.field}, '{r.start}', '{r.end}')" for r in self.ranges)

    @property
    def decodes(self) -> bool:
        """Whether the object itself is needed."""
        return self.ranges[0].field == UID

    def test(self) -> Callable[[Record], bool]:
        bounds = [(int(r.start, 16), int(r.end, 16)) for r in self.ranges]
        value = _uid if self.decodes else _namespace

        def selected(record: Record) -> bool:
            hashed = fnv1a(value(record))
            return any(start <= hashed < end for start, end in bounds)

        return selected


class _Uid(msgspec.Struct):
    uid: str = ""


class _Head(msgspec.Struct):
    metadata: _Uid


_head = msgspec.json.Decoder(_Head)


def _uid(record: Record) -> str:
    return _head.decode(record.data).metadata.uid


def _namespace(record: Record) -> str:
    return record.namespace


def parse(text: str) -> ShardSelector:
    """Raises ShardSelectorError. Upstream: Parse."""
    text = text.strip()
    if not text:
        raise ShardSelectorError("empty shard selector is not allowed; omit the parameter for unfiltered lists")
    try:
        _, tree = parse_cel(text)
    except CompileError as error:
        raise ShardSelectorError(f"CEL parse error: {error.problems[0].message}") from None
    ranges = tuple(_ranges(tree))
    for other in ranges[1:]:
        if other.field != ranges[0].field:
            raise ShardSelectorError(
                f"all shard ranges must use the same field, got {quote(ranges[0].field)} and {quote(other.field)}"
            )
    return ShardSelector(ranges)


def _ranges(node: Node) -> list[ShardRange]:  # upstream: walkExpr
    if not isinstance(node, Call):
        raise ShardSelectorError(f"unexpected expression kind {_kind(node)}; expected shardRange() call or || operator")
    if node.function == "_||_":
        return [r for side in node.args for r in _ranges(side)]
    if node.function != "shardRange":
        raise ShardSelectorError(f"unsupported function {quote(node.function)}; only shardRange() and || are allowed")
    return [_range(node)]


def _range(call: Call) -> ShardRange:  # upstream: parseShardRangeCall
    if len(call.args) != 3:
        raise ShardSelectorError(f"shardRange() requires exactly 3 arguments, got {len(call.args)}")
    field = _path(call.args[0])
    if field not in (UID, NAMESPACE):
        raise ShardSelectorError(f"unsupported field path {quote(field)}; supported: {UID}, {NAMESPACE}")
    start, end = _bound(call.args[1], "hexStart"), _bound(call.args[2], "hexEnd")
    if int(start, 16) >= int(end, 16):
        raise ShardSelectorError(f"shard range start {start} must be less than end {end}")
    return ShardRange(field, start, end)


def _path(node: Node) -> str:  # upstream: extractFieldPath
    match node:
        case Ident():
            return node.name
        case Select(test=False):
            return f"{_path(node.operand)}.{node.field}"
    raise ShardSelectorError(
        f"shardRange() first argument: expected field path (e.g. {UID}), got expression kind {_kind(node)}"
    )


def _bound(node: Node, name: str) -> str:  # upstream: extractHexLiteral
    if not isinstance(node, Literal):
        raise ShardSelectorError(f"{name} must be a string literal (e.g. '0xff'), got expression kind {_kind(node)}")
    text = node.value
    if not isinstance(text, str):
        raise ShardSelectorError(f"{name} must be a string literal, got {_go_type(text)}")
    if not text.startswith("0x"):
        raise ShardSelectorError(f"{name} must have '0x' prefix, got {quote(text)}")
    digits = text[2:]
    if not digits:
        raise ShardSelectorError(f"{name}: hex value is required after '0x'")
    size = len(digits.encode())
    if size > 17:
        raise ShardSelectorError(f"{name}: hex value too long ({size} chars, max 17): {quote(digits)}")
    for character in digits:
        if character not in _HEX:
            raise ShardSelectorError(f"{name}: invalid hex character {quote(character)} in {quote(text)}")
    if size == 17 and text != _END:
        raise ShardSelectorError(f"{name}: 17-digit hex value must be '{_END}' (2^64), got {quote(text)}")
    if size < 16:
        padded = quote(f"0x{digits:0>16}")
        raise ShardSelectorError(
            f"{name} must be a 0x-prefixed 16-digit hex value, got {quote(text)} (did you mean {padded}?)"
        )
    return text


def _kind(node: Node) -> int:
    return _KINDS.get(type(node), 0)


def _go_type(value: object) -> str:
    names = {bool: "bool", int: "int64", float: "float64", bytes: "[]uint8", type(None): "structpb.NullValue"}
    return names.get(type(value), "uint64")
