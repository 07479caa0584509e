"""The functions of CEL in Kubernetes 1.37: names, overloads, types.

The declarations are data (`data/cel_functions.txt`: a function, and below it a line for each overload with its id and
its signature; a receiver stands before the dot). They decide which calls compile, with which result type, and what the
error says otherwise. The implementations are in `konverge.apiserver.cel.library`, by the same ids. Upstream: cel-go
common/stdlib/standard.go and ext/; MustBaseEnvSet (apiserver/pkg/cel/environment/base.go).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.cel_types import Type

_DATA = Path(__file__).parents[1] / "data" / "cel_functions.txt"
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


@dataclass(frozen=True, slots=True)
class Overload:
    id: str
    args: tuple[Type, ...]
    """The receiver first, if there is one."""
    result: Type
    member: bool
    variables: frozenset[Type]


_ORDERED = "int uint double bool span time string bytes".split()  # noqa: SIM905
_LONG = {"span": "duration", "time": "timestamp"}
_PROTO = {"span": "google.protobuf.Duration", "time": "google.protobuf.Timestamp"}

_COMPARED = (
    "bool int int_double int_uint uint uint_double uint_int double double_int double_uint string bytes time span"
)
_RELATIONS = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}
_WIDTH = {"int": "int64", "uint": "uint64"}
_TIME_PARTS = {
    "getDate": "day_of_month_1_based",
    "getDayOfMonth": "day_of_month",
    "getDayOfWeek": "day_of_week",
    "getDayOfYear": "day_of_year",
    "getFullYear": "year",
    "getHours": "hours",
    "getMilliseconds": "milliseconds",
    "getMinutes": "minutes",
    "getMonth": "month",
    "getSeconds": "seconds",
}
_FORMATS = (
    "byte date datetime dns1035Label dns1035LabelPrefix dns1123Label dns1123LabelPrefix dns1123Subdomain "
    "dns1123SubdomainPrefix labelValue qualifiedName uri uuid"
)
FORMATS = tuple(_FORMATS.split())


@cache
def functions() -> dict[str, list[Overload]]:
    """All functions, by name."""
    overloads: dict[str, list[Overload]] = {}
    name = ""
    for line in _DATA.read_text().splitlines():
        if line.startswith("  "):
            overloads.setdefault(name, []).append(_overload(line))
        else:
            name = line
    for name, lines in _generated():
        overloads.setdefault(name, []).extend(_overload(line) for line in lines)
    return overloads


def _generated() -> list[tuple[str, list[str]]]:
    """Families of overloads that differ in one type only."""
    made: list[tuple[str, list[str]]] = []
    for operator, word in _RELATIONS.items():
        lines = []
        for pair in _COMPARED.split():
            left, _, right = pair.partition("_")
            shown = "_".join(_WIDTH.get(kind, _LONG.get(kind, kind)) for kind in (left, right) if kind)
            lines.append(f"{word}_{shown} ({left}, {right or left}) bool")
        made.append((operator, lines))
    for kind in _ORDERED:
        long, proto = _LONG.get(kind, kind), _PROTO.get(kind, kind)
        made.append(("isSorted", [f"list_{long}_is_sorted_bool list({kind}).() bool"]))
        made.append(("max", [f"list_{long}_max_{long} list({kind}).() {kind}"]))
        made.append(("min", [f"list_{long}_min_{long} list({kind}).() {kind}"]))
        made.append(("sort", [f"list_{proto}_sort list({kind}).() list({kind})"]))
        made.append(("@sortByAssociatedKeys", [f"list_{proto}_sortByAssociatedKeys list(T).(list({kind})) list(T)"]))
    for function, part in _TIME_PARTS.items():
        tz = "tz" if part == "seconds" else "with_tz"
        lines = [f"timestamp_to_{part} time.() int", f"timestamp_to_{part}_{tz} time.(string) int"]
        if part in ("hours", "milliseconds", "minutes", "seconds"):
            lines.append(f"duration_to_{part} span.() int")
        made.append((function, lines))
    made.extend((f"format.{kind}", [f"format.{kind} () Format"]) for kind in FORMATS)
    return made


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
