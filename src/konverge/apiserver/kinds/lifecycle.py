"""What kinds with a spec and a status share: their parts of a `Strategy`.

DEPLOYMENT = Strategy(
    defaults=shaped("apps/v1.Deployment", default_deployment),
    prepare_create=status_cleared("apps/v1.DeploymentStatus"),
    prepare_update=status_kept,
    …)
"""

from __future__ import annotations

from collections.abc import Callable

from konverge.apiserver.gotypes import shaper, zero
from konverge.apiserver.kinds.declare import Report, Transition
from konverge.apiserver.strategy import Context, Obj


def shaped(kind: str, *steps: Callable[[Obj], None]) -> Callable[[Obj], None]:
    """Defaults of a kind: the object gets the form in which Go writes it, then the steps.

    After shaping, every struct that is not a pointer in Go is there, so that the steps need not make it.
    """

    def defaults(obj: Obj) -> None:
        shaper(kind)(obj)
        for step in steps:
            step(obj)

    return defaults


def status_cleared(kind: str) -> Callable[[Obj, Context], None]:
    """On create: what the caller says about the status does not count."""

    def prepare(obj: Obj, context: Context) -> None:
        obj["status"] = zero(kind)

    return prepare


def status_kept(obj: Obj, old: Obj, context: Context) -> None:
    """On update of the main resource: the status is the stored one."""
    if "status" in old:
        obj["status"] = old["status"]
    else:
        obj.pop("status", None)


def metadata_kept(obj: Obj, old: Obj, context: Context) -> None:
    """On update of a status: labels, annotations, finalizers and owners are the stored ones."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        if name in old["metadata"]:
            obj["metadata"][name] = old["metadata"][name]
        else:
            obj["metadata"].pop(name, None)


def never_less(name: str, detail: str = "cannot be decremented") -> Transition:
    """A counter of the status only grows."""

    def check(new: Obj, old: Obj, path: str, report: Report) -> bool:
        found = new.get("status", {}).get(name) or 0
        return found >= (old.get("status", {}).get(name) or 0) or report.invalid(f"status.{name}", found, detail)

    return check
