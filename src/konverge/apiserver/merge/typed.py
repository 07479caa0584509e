"""Objects under their types: which paths they have, where two differ, whether one conforms.

ABSENT is not null: a field that is there with null is there. Two sets follow structured-merge-diff: `fields_of` (what
an apply owns, typed/tofieldset.go) has leaves, list items and undeclared map members; `compare` (what an update owns,
typed/compare.go) has every path that was added, removed or changed, and the containers of what was added or removed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from konverge.apiserver.equality import equal
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
    differences = Comparison({}, {}, {})
    if _differ(node, old, new):
        _between(node, old, new, differences)
    return differences


def _differ(node: TypeNode, old: Any, new: Any) -> bool:
    """Whether two values in an object of this type differ. Fields of Go's structs do not change their types."""
    return old is not new and (old != new if node.go else not equal(old, new))


def _between(node: TypeNode, old: Any, new: Any, out: Comparison) -> bool:
    """Fills the three sets below two unequal values; True when the value as a whole has changed."""
    old_form, new_form = shape(node, old), shape(node, new)
    if new is None and node.kind is Kind.ANY:
        new_form = old_form
    elif old is None and node.kind is Kind.ANY:
        old_form = new_form
    whole = _one_form(node, old_form, old, new, out)
    if new_form is not old_form:
        whole |= _one_form(node, new_form, old, new, out)
    return whole


def _one_form(node: TypeNode, form: Kind, old: Any, new: Any, out: Comparison) -> bool:
    if form is Kind.MAP:
        before, after = (value if isinstance(value, dict) else {} for value in (old, new))
        if node.atomic or not (before or after):
            return True
        _compare_members(node, before, after, out)
        return False
    if form is Kind.LIST:
        before_items, after_items = (value if isinstance(value, list) else [] for value in (old, new))
        if list_is_whole(node) or not (before_items or after_items):
            return True
        _compare_items(node, before_items, after_items, out)
        return False
    return True


def _compare_members(node: TypeNode, old: dict[str, Any], new: dict[str, Any], out: Comparison) -> None:
    for name, value in new.items():
        before = old.get(name, ABSENT)
        if before is ABSENT:
            out.added[f"f:{name}"] = everything(member(node, name), value)
        elif _differ(node, before, value):
            _descend(member(node, name), f"f:{name}", before, value, out)
    for name, value in old.items():
        if name not in new:
            out.removed[f"f:{name}"] = everything(member(node, name), value)


def _descend(node: TypeNode, element: str, old: Any, new: Any, out: Comparison) -> None:
    below = Comparison({}, {}, {})
    whole = _between(node, old, new, below)
    for fields, inner in zip(out, below, strict=True):
        if inner:
            fields[element] = inner
    if whole:
        out.modified[element] = _itself(below.modified)


def _compare_items(node: TypeNode, old: list[Any], new: list[Any], out: Comparison) -> None:
    before, after = _grouped(node, old), _grouped(node, new)
    inner = item(node)
    for element in {**before, **after}:
        was, now = before.get(element, []), after.get(element, [])
        if len(was) > 1 and len(now) > 1:
            if _differ(node, was, now):
                out.modified[element] = {}
        elif len(was) == len(now) == 1:
            if _differ(node, was[0], now[0]):
                _descend(inner, element, was[0], now[0], out)
        else:
            # What was there goes, and what is there comes; a repeated key is owned as a whole.
            for items, fields in ((was, out.removed), (now, out.added)):
                if items:
                    fields[element] = everything(inner, items[0]) if len(items) == 1 else {}


def _grouped(node: TypeNode, items: list[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for entry in items:
        groups.setdefault(element_of(node, entry), []).append(entry)
    return groups


def validate(node: TypeNode, value: Any, *, repeated: bool = False) -> None:  # upstream: typed/validate.go
    """Raises TypedError when a value does not conform; `repeated` admits list items with the same key."""
    errors = _errors(node, value, repeated)
    if errors:
        texts = [f"{path}: {text}" if path else text for path, text in errors]
        raise TypedError(texts[0] if len(texts) == 1 else "\n  ".join(["errors:", *texts]))


def _errors(node: TypeNode, value: Any, repeated: bool) -> list[tuple[str, str]]:
    """Each error is its path and its text."""
    if value is None:
        return []
    form = shape(node, value)
    if form is Kind.MAP:
        if not isinstance(value, dict):
            return [("", f"expected map, got &{{{go_value(value)}}}")]
        return _member_errors(node, value, repeated)
    if form is Kind.LIST:
        if not isinstance(value, list):
            return [("", f"expected list, got &{{{go_value(value)}}}")]
        return _item_errors(node, value, repeated)
    return _scalar_errors(node, value)


def _member_errors(node: TypeNode, value: dict[str, Any], repeated: bool) -> list[tuple[str, str]]:
    errors = []
    for name, inner in value.items():
        child = node.child(name)
        if child is None:
            errors.append((f".{name}", "field not declared in schema"))
            break
        if below := _errors(child, inner, repeated):
            errors += [(f".{name}{path}", text) for path, text in below]
    return errors


def _item_errors(node: TypeNode, value: list[Any], repeated: bool) -> list[tuple[str, str]]:
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
            if element in seen and not repeated:
                errors.append(("", f"duplicate entries for key {shown}"))
            seen.add(element)
        if below := _errors(item(node), entry, repeated):
            errors += [(shown + path, text) for path, text in below]
    return errors


def _scalar_errors(node: TypeNode, value: Any) -> list[tuple[str, str]]:
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
