"""anyOf, oneOf, allOf and not.

When no alternative fits, the API reports the errors of the alternative in which most checks applied; `_weight` counts
them as its validator does. Upstream: schemaPropsValidator (kube-openapi pkg/validation/validate/schema_props.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge.apiserver.crd.schema.structural import Schema, Structural, types_of
from konverge.apiserver.crd.schema.value_errors import Issue, plain
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.go.strfmt import FORMATS, effective

Issues = list[Issue]
Check = Callable[[Any, str, Issues, Any], None]
Compile = Callable[[Schema, Structural | None], Check]


def compile_junctors(raw: Schema, node: Structural | None, compile_check: Compile) -> list[Check]:
    checks: list[Check] = []
    for name, single in (("anyOf", False), ("oneOf", True)):
        if raw.get(name):
            checks.append(_alternatives([(sub, compile_check(sub, node)) for sub in raw[name]], single=single))
    if raw.get("allOf"):
        checks.append(_all_of([compile_check(sub, node) for sub in raw["allOf"]]))
    if raw.get("not"):
        checks.append(_not(compile_check(raw["not"], node)))
    return checks


def _run(check: Check, value: Any, path: str, old: Any) -> Issues:
    issues: Issues = []
    check(value, path, issues, old)
    return issues


def _alternatives(alternatives: list[tuple[Schema, Check]], *, single: bool) -> Check:
    """oneOf (`single`) and anyOf."""

    def check(value: Any, path: str, issues: Issues, old: Any) -> None:
        failures: list[tuple[Schema, Issues]] = []
        for schema, check_schema in alternatives:
            own = _run(check_schema, value, path, old)
            if own:
                failures.append((schema, own))
            elif not single:
                return
        valid = len(alternatives) - len(failures)
        if single and valid == 1:
            return
        result = f"Found {valid} valid alternatives" if valid else "Found none valid"
        rule = f"one and only one schema (oneOf). {result}" if single else "at least one schema (anyOf)"
        issues.append(plain(f"{quote(path)} must validate {rule}"))
        if not valid:
            issues.extend(max(failures, key=lambda failure: _weight(failure[0], value))[1])

    return check


def _all_of(checks: list[Check]) -> Check:
    def check(value: Any, path: str, issues: Issues, old: Any) -> None:
        failed = 0
        for check_schema in checks:
            own = _run(check_schema, value, path, old)
            failed += bool(own)
            issues.extend(own)
        if failed:
            result = ". None validated" if failed == len(checks) else ""
            issues.append(plain(f"{quote(path)} must validate all the schemas (allOf){result}"))

    return check


def _not(inner: Check) -> Check:
    def check(value: Any, path: str, issues: Issues, old: Any) -> None:
        if not _run(inner, value, path, old):
            issues.append(plain(f"{quote(path)} must not validate the schema (not)"))

    return check


def _weight(raw: Schema, value: Any) -> int:
    """How many checks of the schema applied to the value."""
    types = types_of(raw)
    form = effective(types[0] if len(types) == 1 else "", raw.get("format") or "")
    kind = _kind(value)
    fits = not types or kind in types or (kind == "integer" and "number" in types)
    if value is None:
        return int(fits or bool(raw.get("nullable")))
    total = 1 + 2 + sum(_weight(sub, value) for name in ("anyOf", "oneOf", "allOf") for sub in raw.get(name) or ())
    total += (1 + fits if types or form else 0) + 1
    if kind == "string":
        return total + 1 + (form.replace("-", "") in FORMATS)
    if kind in ("integer", "number"):
        return total + 2
    if kind == "array":
        items = raw.get("items")
        return total + 2 + sum(_weight(items, item) for item in value if isinstance(items, Mapping))
    if kind == "object":
        return total + 1 + _members_weight(raw, value)
    return total


def _members_weight(raw: Schema, value: dict[str, Any]) -> int:
    properties = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    members = ((properties.get(name, additional), item) for name, item in value.items())
    return sum(_weight(sub, item) for sub, item in members if isinstance(sub, Mapping))


def _kind(value: Any) -> str:
    names = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")
