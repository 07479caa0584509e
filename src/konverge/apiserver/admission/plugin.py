"""What an admission plugin is.

A plugin says which writes concern it, once for each combination of resource and operation; the chain remembers that,
so a write meets only the plugins that have something to do. A step works at once where it can, and returns something
to await where it must wait for others (webhooks).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from konverge.apiserver import status
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.request.admission import AdmissionRequest

Step = Callable[["AdmissionRequest"], Awaitable[None] | None]
Phase = Literal["admit", "validate"]


class Kind(msgspec.Struct, frozen=True):
    """A kind of write: the resource with its subresource ("" for the object itself), and the operation."""

    group: str
    plural: str
    subresource: str
    operation: str
    namespaced: bool

    def writes(self, group: str, plural: str, *operations: str, subresource: str = "") -> bool:
        """Whether it is one of these operations on the objects themselves, or on a subresource of them."""
        where = (self.group, self.plural, self.subresource)
        return where == (group, plural, subresource) and self.operation in operations


class Plugin(Protocol):
    """`admit(kind)` and `validate(kind)` return what to do with such writes, or None."""

    def admit(self, kind: Kind) -> Step | None: ...
    def validate(self, kind: Kind) -> Step | None: ...


class Mutating:
    """A plugin that has nothing to validate."""

    def validate(self, kind: Kind) -> Step | None:
        return None


class Validating:
    """A plugin that changes nothing."""

    def admit(self, kind: Kind) -> Step | None:
        return None


class OneStep:
    """A plugin that does one thing, in one phase, with some operations on one resource or subresource."""

    def __init__(
        self, phase: Phase, step: Step, group: str, plural: str, *operations: str, subresource: str = ""
    ) -> None:
        self._phase, self._step = phase, step
        self._concerns: Callable[[Kind], bool] = lambda kind: kind.writes(
            group, plural, *operations, subresource=subresource
        )

    def admit(self, kind: Kind) -> Step | None:
        return self._step if self._phase == "admit" and self._concerns(kind) else None

    def validate(self, kind: Kind) -> Step | None:
        return self._step if self._phase == "validate" and self._concerns(kind) else None


def refusal(request: AdmissionRequest, why: str, *, cause: Obj | None = None) -> status.ApiError:
    """403 as admission words it. Upstream: NewForbidden (apiserver/pkg/admission/errors.go)."""
    resource = request.served.resource
    error = status.forbidden(resource.group, resource.plural, shown_name(request), why)
    if cause is not None:
        error.details = {**(error.details or {}), "causes": [cause]}
    return error


def spec_of(obj: Obj) -> Obj:
    """The spec of an object, created if missing: mutating plugins run before validation refuses an object without."""
    if obj.get("spec") is None:
        obj["spec"] = {}
    spec: Obj = obj["spec"]
    return spec


def shown_name(request: AdmissionRequest) -> str:
    """An object that has no name yet is called by its generateName. Upstream: extractResourceName."""
    if request.name or request.obj is None:
        return request.name or "Unknown"
    metadata = request.obj.get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or "Unknown"
