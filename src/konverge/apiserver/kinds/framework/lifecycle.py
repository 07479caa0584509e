"""What kinds with a spec and a status share: their parts of a `Strategy`.

DEPLOYMENT = Strategy(
    **prepared(status=("apps", "v1", "Deployment")),
    …)
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

from konverge.apiserver import schema
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.framework.declare import IMMUTABLE, Report, Transition, dig, same
from konverge.apiserver.kinds.rules.defaults import take
from konverge.apiserver.schema.zero_values import zero
from konverge.apiserver.strategy import Context, Obj


@cache
def _empty_status(group: str, version: str, kind: str) -> tuple[Obj, bool]:
    """The status before the first write, as Go writes it, and whether it has containers in it."""
    node = schema.lookup(group, version, kind)
    empty = zero(node.fields["status"].node) if node is not None else {}
    return empty, any(isinstance(value, dict | list) for value in empty.values())


def status_cleared(group: str, version: str, kind: str) -> Callable[[Obj, Context], None]:
    """On create: the status that the caller sent is dropped."""

    def prepare(obj: Obj, context: Context) -> None:
        empty, nested = _empty_status(group, version, kind)
        obj["status"] = copy.deepcopy(empty) if nested else dict(empty)

    return prepare


def empty_is_null(obj: Obj, *names: str) -> None:
    """Lists that are always written: an empty one is stored as none, and so is null when it is read."""
    for name in names:
        if not obj.get(name):
            obj[name] = None


def first_generation(obj: Obj, context: Context) -> None:
    """On create: a kind whose generation begins at 1, but does not follow every change (see its `prepare_update`)."""
    obj["metadata"]["generation"] = 1


def next_generation(obj: Obj, old: Obj) -> None:
    obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def generation_of_spec(obj: Obj, old: Obj, context: Context) -> None:
    """On update: the generation counts changes of the spec."""
    if obj.get("spec") != old.get("spec"):
        next_generation(obj, old)


def status_kept(obj: Obj, old: Obj, context: Context) -> None:
    """On update of the main resource: the status is the stored one."""
    take(obj, old, "status")


def metadata_kept(obj: Obj, old: Obj, context: Context) -> None:
    """On update of a status: labels, annotations, finalizers and owners are the stored ones."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        take(obj["metadata"], old["metadata"], name)


def prepared(*steps: Callable[[Obj], None], status: tuple[str, str, str] | None = None) -> dict[str, Any]:
    """`prepare_create` and `prepare_update` of a kind whose writes are all prepared by the same steps.

    `status` (group, version and kind) says that the status is cleared on create, and kept on update.
    """
    clear = status_cleared(*status) if status else None

    def create(obj: Obj, context: Context) -> None:
        if clear:
            clear(obj, context)
        for step in steps:
            step(obj)

    def update(obj: Obj, old: Obj, context: Context) -> None:
        if clear:
            status_kept(obj, old, context)
        for step in steps:
            step(obj)

    return {"prepare_create": create, "prepare_update": update}


def selectable(*paths: str) -> dict[str, Callable[[Obj], str]]:
    """`Strategy.field_selectors` for members of a struct (`spec.nodeName`), which are empty where they are absent."""
    return {path: _text_of(path.split(".")) for path in paths}


def _text_of(keys: list[str]) -> Callable[[Obj], str]:
    return lambda obj: dig(obj, keys) or ""


def not_decremented(name: str, detail: str = "cannot be decremented") -> Transition:  # upstream: IsDecremented
    """A counter of the status only grows."""

    def check(new: Obj, old: Obj, path: str, report: Report) -> bool:
        count, before = ((obj.get("status") or {}).get(name) for obj in (new, old))
        fine = before is None or (count is not None and count >= before)
        return fine or report.invalid(f"status.{name}", count or 0, detail)

    return check


def kept(name: str, kind: str) -> Transition:  # upstream: ValidateImmutableField
    """An immutable member that is a struct: the message shows it in its internal form (`go.structs`)."""
    keys = name.split(".")

    def check(new: Obj, old: Obj, path: str, report: Report) -> bool:
        value = dig(new, keys)
        return same(value, dig(old, keys)) or report.invalid(name, internal(kind, value), IMMUTABLE)

    return check
