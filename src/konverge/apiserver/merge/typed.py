"""Objects under their types: which paths they have, where two differ, whether one conforms.

ABSENT is not null: a field that is there with null is there. Two sets follow structured-merge-diff: `fields_of` (what
an apply owns, typed/tofieldset.go) has leaves, list items and undeclared map members; `compare` (what an update owns,
typed/compare.go) has every path that was added, removed or changed, and the containers of what was added or removed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from konverge.apiserver.go.fmt import go_syntax, go_type, go_value
from konverge.apiserver.merge.elements import TypedError, element_of, item, list_is_whole, member, shape
from konverge.apiserver.merge.field_set import SELF, FieldSet, show_element
from konverge.apiserver.merge.path_listing import everything
from konverge.apiserver.schema.node import Kind, TypeNode

ABSENT: Final = object()


class Comparison(NamedTuple):
    removed: FieldSet
    modified: FieldSet
    added: FieldSet


def fields_of(node: TypeNode, value: Any) -> FieldSet:
    """What an object specifies: the set that applying it owns."""
    return _specified(node, value) or {}


def _specified(node: TypeNode, value: Any) -> FieldSet | None:
    form = shape(node, value)
    if form is Kind.SCALAR:
        return {}
    if form is Kind.MAP:
        if node.atomic:
            return {}
        return _specified_members(node, value) if isinstance(value, dict) else None
    if list_is_whole(node):
        return {}
    return _specified_items(node, value) if isinstance(value, list) else None


def _specified_members(node: TypeNode, value: dict[str, Any]) -> FieldSet | None:
    out: FieldSet = {}
    fields = node.fields
    for name, inner in value.items():
        field = fields.get(name)
        below = _specified(member(node, name) if field is None else field.node, inner)
        if field is None or inner is None or inner == {}:
            below = _itself(below)
        if below is not None:
            out[f"f:{name}"] = below
    return out or None


def _specified_items(node: TypeNode, value: list[Any]) -> FieldSet | None:
    out: FieldSet = {}
    inner = item(node)
    for entry in value:
        element = element_of(node, entry)
        out[element] = {} if element in out else _itself(_specified(inner, entry))
    return out or None


def _itself(below: FieldSet | None) -> FieldSet:
    """A node that is a member, with what is below it."""
    return {SELF: {}, **below} if below else {}


def compare(node: TypeNode, old: Any, new: Any) -> Comparison:
    """Where `new` differs from `old`."""
    differences = _Differences()
    if old != new:
        differences.between(node, old, new, differences.removed, differences.modified, differences.added)
    return Comparison(differences.removed, differences.modified, differences.added)


class _Differences:
    """The three sets while they grow; each call gets the level of each set at which it stands."""

    def __init__(self) -> None:
        self.removed: FieldSet = {}
        self.modified: FieldSet = {}
        self.added: FieldSet = {}

    def between(
        self, node: TypeNode, old: Any, new: Any, removed: FieldSet, modified: FieldSet, added: FieldSet
    ) -> bool:
        """Fills the levels below two unequal values; True when the value as a whole has changed."""
        old_form, new_form = shape(node, old), shape(node, new)
        if new is None and node.kind is Kind.ANY:
            new_form = old_form
        elif old is None and node.kind is Kind.ANY:
            old_form = new_form
        whole = self._one_form(node, old_form, old, new, removed, modified, added)
        if new_form is not old_form:
            whole |= self._one_form(node, new_form, old, new, removed, modified, added)
        return whole

    def _one_form(
        self, node: TypeNode, form: Kind, old: Any, new: Any, removed: FieldSet, modified: FieldSet, added: FieldSet
    ) -> bool:
        if form is Kind.MAP:
            before, after = (value if isinstance(value, dict) else {} for value in (old, new))
            if node.atomic or not (before or after):
                return True
            self._members(node, before, after, removed, modified, added)
            return False
        if form is Kind.LIST:
            before_items, after_items = (value if isinstance(value, list) else [] for value in (old, new))
            if list_is_whole(node) or not (before_items or after_items):
                return True
            self._items(node, before_items, after_items, removed, modified, added)
            return False
        return True

    def _members(
        self,
        node: TypeNode,
        old: dict[str, Any],
        new: dict[str, Any],
        removed: FieldSet,
        modified: FieldSet,
        added: FieldSet,
    ) -> None:
        for name, value in new.items():
            before = old.get(name, ABSENT)
            if before is ABSENT:
                added[f"f:{name}"] = everything(member(node, name), value)
            elif before is not value and before != value:
                self._descend(member(node, name), f"f:{name}", before, value, removed, modified, added)
        for name, value in old.items():
            if name not in new:
                removed[f"f:{name}"] = everything(member(node, name), value)

    def _descend(
        self, node: TypeNode, element: str, old: Any, new: Any, removed: FieldSet, modified: FieldSet, added: FieldSet
    ) -> None:
        gone: FieldSet = {}
        changed: FieldSet = {}
        come: FieldSet = {}
        whole = self.between(node, old, new, gone, changed, come)
        if gone:
            removed[element] = gone
        if whole:
            modified[element] = _itself(changed)
        elif changed:
            modified[element] = changed
        if come:
            added[element] = come

    def _items(
        self, node: TypeNode, old: list[Any], new: list[Any], removed: FieldSet, modified: FieldSet, added: FieldSet
    ) -> None:
        before, after = _grouped(node, old), _grouped(node, new)
        inner = item(node)
        for element in {**before, **after}:
            was, now = before.get(element, []), after.get(element, [])
            if len(was) > 1 and len(now) > 1:
                if was != now:
                    modified[element] = {}
            elif len(was) > 1:
                # A repeated key is owned as a whole; what it becomes is new.
                if now:
                    added[element] = everything(inner, now[0])
                removed[element] = {}
            elif len(now) > 1:
                if was:
                    removed[element] = everything(inner, was[0])
                added[element] = {}
            elif not was:
                added[element] = everything(inner, now[0])
            elif not now:
                removed[element] = everything(inner, was[0])
            elif was[0] != now[0]:
                self._descend(inner, element, was[0], now[0], removed, modified, added)


def _grouped(node: TypeNode, items: list[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for entry in items:
        groups.setdefault(element_of(node, entry), []).append(entry)
    return groups


def validate(node: TypeNode, value: Any, *, repeated: bool = False) -> None:  # upstream: typed/validate.go
    """Raises TypedError when a value does not conform; `repeated` admits list items with the same key."""
    errors = list(_Checks(repeated).of(node, value))
    if errors:
        texts = [f"{path}: {text}" if path else text for path, text in errors]
        raise TypedError(texts[0] if len(texts) == 1 else "\n  ".join(["errors:", *texts]))


class _Checks:
    """The checks of one object; each error is its path and its text."""

    def __init__(self, repeated: bool) -> None:
        self._repeated = repeated

    def of(self, node: TypeNode, value: Any) -> list[tuple[str, str]]:
        if value is None:
            return []
        form = shape(node, value)
        if form is Kind.MAP:
            if not isinstance(value, dict):
                return [("", f"expected map, got &{{{go_value(value)}}}")]
            return self._members(node, value)
        if form is Kind.LIST:
            if not isinstance(value, list):
                return [("", f"expected list, got &{{{go_value(value)}}}")]
            return self._items(node, value)
        return self._scalar(node, value)

    def _members(self, node: TypeNode, value: dict[str, Any]) -> list[tuple[str, str]]:
        errors = []
        for name, inner in value.items():
            child = node.child(name)
            if child is None:
                errors.append((f".{name}", "field not declared in schema"))
                break
            errors += [(f".{name}{path}", text) for path, text in self.of(child, inner)]
        return errors

    def _items(self, node: TypeNode, value: list[Any]) -> list[tuple[str, str]]:
        errors: list[tuple[str, str]] = []
        seen = set()
        for index, entry in enumerate(value):
            if list_is_whole(node):
                shown = f"[{index}]"
            else:
                try:
                    element = element_of(node, entry)
                except TypedError as error:
                    return [*errors, ("", f"element {index}: {error}")]
                shown = show_element(element)
                if element in seen and not self._repeated:
                    errors.append(("", f"duplicate entries for key {shown}"))
                seen.add(element)
            errors += [(shown + path, text) for path, text in self.of(item(node), entry)]
        return errors

    def _scalar(self, node: TypeNode, value: Any) -> list[tuple[str, str]]:
        structured = isinstance(value, (dict, list))
        match node.checked_scalar:
            case "numeric" if isinstance(value, bool) or not isinstance(value, (int, float)):
                return [("", f"expected numeric (int or float), got {go_type(value)}")]
            case "string" if not isinstance(value, str):
                return [("", f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}")]
            case "boolean" if not isinstance(value, bool):
                return [("", f"expected boolean, got &{{{go_value(value)}}}")]
            case "untyped" if structured:
                return [("", f"expected any scalar, got &{{{go_value(value)}}}")]
        return []
