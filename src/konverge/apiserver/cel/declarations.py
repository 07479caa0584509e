"""The functions of CEL in Kubernetes 1.37: names, overloads, types.

The declarations are data (`data/cel_functions.txt`: a function, and below it a line for each overload with its id and
its signature; a receiver stands before the dot). They decide which calls compile, with which result type, and what the
error says otherwise. The implementations are in `konverge.apiserver.cel.library`, by the same ids. Upstream: cel-go
common/stdlib/standard.go and ext/; MustBaseEnvSet (apiserver/pkg/cel/environment/base.go).
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from konverge.apiserver import data_files
from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.cel_types import Type

QUANTITY, URL, SEMVER = t.struct("kubernetes.Quantity"), t.struct("kubernetes.URL"), t.struct("kubernetes.Semver")
FORMAT = t.struct("kubernetes.NamedFormat")
IP, CIDR = t.opaque("net.IP"), t.opaque("net.CIDR")
_AUTH = "kubernetes.authorization."
AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION = (
    t.struct(_AUTH + name) for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)

_TYPES = {
    "bool": t.BOOL,
    "int": t.INT,
    "uint": t.UINT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "bytes": t.BYTES,
    "null": t.NULL,
    "dyn": t.DYN,
    "time": t.TIMESTAMP,
    "span": t.DURATION,
    "Quantity": QUANTITY,
    "URL": URL,
    "Semver": SEMVER,
    "Format": FORMAT,
    "IP": IP,
    "CIDR": CIDR,
    "Authorizer": AUTHORIZER,
    "PathCheck": PATH_CHECK,
    "GroupCheck": GROUP_CHECK,
    "ResourceCheck": RESOURCE_CHECK,
    "Decision": DECISION,
}


class Overload(msgspec.Struct, frozen=True):
    id: str
    args: tuple[Type, ...]
    """The receiver first, if there is one."""
    result: Type
    member: bool
    variables: frozenset[Type]


@cache
def functions() -> dict[str, list[Overload]]:
    """All functions, by name."""
    return {name: [_overload(line) for line in lines] for name, lines in data_files.read("cel_functions.txt").items()}


_LINE = re.compile(r"\s*(\S+) (?:(.+?)\.)?\((.*)\) (.+)")


def _overload(line: str) -> Overload:
    match = _LINE.fullmatch(line)
    assert match is not None, line
    args = ([match[2]] if match[2] else []) + _split(match[3])
    types = tuple(_type(arg) for arg in args)
    result = _type(match[4])
    variables = frozenset(variable for type_ in (*types, result) for variable in _variables(type_))
    return Overload(match[1], types, result, bool(match[2]), variables)


def _split(text: str) -> list[str]:
    parts: list[str] = []
    depth = start = 0
    for index, char in enumerate(text + ","):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [part for part in parts if part]


def _type(text: str) -> Type:
    head, _, rest = text.partition("(")
    if not rest:
        return _TYPES.get(head) or t.param(head)
    params = tuple(_type(part) for part in _split(rest[:-1]))
    if head == "opt":
        return t.optional_of(params[0])
    return Type(head, params)


def _variables(type_: Type) -> set[Type]:
    if type_.kind == "param":
        return {type_}
    return {variable for inner in type_.params for variable in _variables(inner)}
