"""What an admission plugin is.

A plugin says which writes concern it, once for each combination of resource and operation; the chain remembers that,
so a write meets only the plugins that have something to say. A step works at once where it can, and returns something
to await where it must wait for others (webhooks).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from konverge.apiserver import status
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.request.admission import AdmissionRequest

Step = Callable[["AdmissionRequest"], Awaitable[None] | None]


class Kind(msgspec.Struct, frozen=True):
    """A sort of write: the resource with its subresource ("" for the object itself), and the operation."""

    group: str
    plural: str
    subresource: str
    operation: str
    namespaced: bool

    def writes(self, group: str, plural: str, *operations: str) -> bool:
        """Whether it is one of these operations on the objects themselves."""
        return (self.group, self.plural, self.subresource) == (group, plural, "") and self.operation in operations


class Plugin(Protocol):
    """`admit(kind)` and `validate(kind)` give what to do with such writes, or None."""

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


def refusal(request: AdmissionRequest, why: str) -> status.ApiError:
    """403 in the words of admission: an object without a name yet is called by the start of it."""
    resource = request.served.resource
    return status.forbidden(resource.group, resource.plural, shown_name(request), why)


def spec_of(obj: Obj) -> Obj:
    """The spec of an object, there from now on: mutating plugins run before validation says that it is missing."""
    found: Obj | None = obj.get("spec")
    if found is None:
        found = obj["spec"] = {}
    return found


def shown_name(request: AdmissionRequest) -> str:
    if request.name or request.obj is None:
        return request.name or "Unknown"
    metadata = request.obj.get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or "Unknown"
