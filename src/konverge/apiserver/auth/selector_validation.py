"""The selectors inside an access review: their shape is checked, RBAC itself does not look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from konverge.apiserver import field_errors
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.strategy import Obj
from konverge.objects import fields, labels
from konverge.objects.names import label_value_errors, qualified_name_errors

_PATH = "spec.resourceAttributes"


def selector_errors(resource: Obj) -> Iterator[FieldError]:
    for name in ("fieldSelector", "labelSelector"):
        selector = resource.get(name)
        if selector is not None:
            yield from _errors(selector, f"{_PATH}.{name}")


def _errors(selector: Obj, path: str) -> Iterator[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements") or []
    if raw and requirements:
        words = "may not specified at the same time as requirements"
        yield field_errors.invalid(f"{path}.rawSelector", raw, words)
    if not raw and not requirements:
        words = f"when {path} is specified, requirements or rawSelector is required"
        yield field_errors.required(f"{path}.requirements", words)
    for index, requirement in enumerate(requirements):
        yield from _requirement_errors(
            requirement, f"{path}.requirements[{index}]", labels=path.endswith("labelSelector")
        )


def _requirement_errors(requirement: Obj, path: str, *, labels: bool) -> Iterator[FieldError]:
    """Operators that are not known are fine: a newer client may know more than this server."""
    key, operator, values = (
        requirement.get("key") or "",
        requirement.get("operator", ""),
        requirement.get("values") or [],
    )
    if not labels and not key:
        yield field_errors.required(f"{path}.key", "must be specified")
    if operator in ("In", "NotIn") and not values:
        yield field_errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in ("Exists", "DoesNotExist") and values:
        yield field_errors.forbidden(
            f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        )
    if labels:
        for words in qualified_name_errors(key):
            yield field_errors.invalid(f"{path}.key", key, words)


def equalities(resource: Obj) -> str:
    """The field selector of a review, as a request would have it; without what is no equality."""
    selector = resource.get("fieldSelector") or {}
    if not selector.get("requirements"):
        found: str = selector.get("rawSelector") or ""
        return found
    return ",".join(
        f"{one.get('key')}={one['values'][0]}"
        for one in selector["requirements"]
        if one.get("operator") == "In" and len(one.get("values") or ()) == 1
    )


def unread_selectors(resource: Obj) -> list[str]:
    """What is said about selectors that could not be read, as a whole or in part."""
    found = []
    for name, parse, good in (
        ("fieldSelector", fields.parse, _good_field),
        ("labelSelector", labels.parse, _good_label),
    ):
        selector = resource.get(name) or {}
        requirements = selector.get("requirements") or ()
        bad = [one for one in requirements if not good(one)]
        if not bad and (requirements or _reads(parse, selector.get("rawSelector") or "")):
            continue
        partially = "partially " if len(bad) < len(requirements) else ""
        found.append(f"{_PATH}.{name} {partially}ignored due to parse error")
    return found


def _good_field(requirement: Obj) -> bool:
    return requirement.get("operator") in ("In", "NotIn") and len(requirement.get("values") or ()) == 1


def _good_label(requirement: Obj) -> bool:
    operator = requirement.get("operator")
    words = [error for value in requirement.get("values") or () for error in label_value_errors(value)]
    return operator in ("In", "NotIn", "Exists", "DoesNotExist") and not words


def _reads(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except labels.SelectorError:
        return False
    return True
