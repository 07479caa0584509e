"""The selectors inside an access review: their shape is checked, RBAC itself does not look at them."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.apiserver import fielderrors
from konverge.apiserver.fielderrors import FieldError
from konverge.apiserver.kinds.rules.names import qualified_name_complaints
from konverge.apiserver.strategy import Obj

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
        yield fielderrors.invalid(f"{path}.rawSelector", raw, words)
    if not raw and not requirements:
        words = f"when {path} is specified, requirements or rawSelector is required"
        yield fielderrors.required(f"{path}.requirements", words)
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
        yield fielderrors.required(f"{path}.key", "must be specified")
    if operator in ("In", "NotIn") and not values:
        yield fielderrors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in ("Exists", "DoesNotExist") and values:
        yield fielderrors.forbidden(
            f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        )
    if labels:
        for words in qualified_name_complaints(key):
            yield fielderrors.invalid(f"{path}.key", key, words)
