"""Defaults in a schema must be values that the schema itself would accept and keep.

Upstream: ValidateDefaults (pkg/apiserver/schema/defaulting/validation.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from konverge.apiserver.crd.schema import embedded_objects
from konverge.apiserver.crd.schema.coercion import META, prune
from konverge.apiserver.crd.schema.correlation import UNKNOWN
from konverge.apiserver.crd.schema.structural import Schema, Structural
from konverge.apiserver.crd.schema.value_errors import Issue, as_field_errors, ordered
from konverge.apiserver.crd.schema.values import compile_check
from konverge.apiserver.field_errors import FieldError, invalid
from konverge.apiserver.merge.json_patch import same

RuleCheck = Callable[[Structural, Any, str, bool], list[FieldError]]
"""(schema, default, path, is a resource's root) -> failures of the rules on the default."""


def check(root: Structural, path: str, *, pruned: bool, rules: RuleCheck) -> list[FieldError]:
    return list(_walk(root, path, rules, pruned=pruned, inside_meta=False, root=True))


def has_unpruned(root: Structural) -> bool:
    """A stored definition may hold defaults with unknown fields; then updates may keep them."""
    if root.default is not None and not _is_pruned(root):
        return True
    return any(has_unpruned(child) for child in root.children())


def _is_pruned(node: Structural) -> bool:
    copy = deepcopy(node.default)
    prune(copy, node)
    return same(copy, node.default)


def _walk(
    node: Structural, path: str, rules: RuleCheck, *, pruned: bool, inside_meta: bool, root: bool = False
) -> Iterator[FieldError]:
    resource = node.embedded or root
    inside_meta = inside_meta and not resource
    if node.default is not None:
        yield from _default(node, f"{path}.default", rules, pruned=pruned and not inside_meta, root=root)
    if node.items is not None:
        yield from _walk(node.items, f"{path}.items", rules, pruned=pruned, inside_meta=inside_meta)
    for name, prop in sorted(node.properties.items()):
        meta = inside_meta or (resource and name in META)
        yield from _walk(prop, f"{path}.properties[{name}]", rules, pruned=pruned, inside_meta=meta)


def _default(node: Structural, path: str, rules: RuleCheck, *, pruned: bool, root: bool) -> Iterator[FieldError]:
    if root and not node.embedded:
        node = replace(node, embedded=True)
    if pruned and not _is_pruned(node):
        yield invalid(path, ordered(node.default), "must not have unknown fields")
    error = embedded_objects.coerce(deepcopy(node.default), node, path, [])
    if error is not None:
        yield error
        return
    errors = list(embedded_objects.check(node.default, node, path))
    if not errors:
        issues: list[Issue] = []
        compile_check(_needed(node.raw, node.default))(node.default, "", issues, UNKNOWN)
        errors = as_field_errors(issues, path)
    yield from errors or rules(node, node.default, path, root)


def _needed(raw: Schema, value: Any) -> Schema:
    """A schema without the members that the value does not have: most defaults are small, most schemas are large."""
    properties = raw.get("properties")
    if not isinstance(value, dict) or not properties:
        return raw
    present = {name: _needed(properties[name], value[name]) for name in properties if name in value}
    return {**raw, "properties": present}
