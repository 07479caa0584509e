"""Owner references: who controls what, and a check for the two mistakes that get objects deleted by the garbage
collector.

Upstream: controller-runtime's pkg/controller/controllerutil.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from konverge.objects.meta import Object, OwnerReference
from konverge.objects.resource import Resource
from konverge.runtime.result import BlockedError, TerminalError

ADOPT_BY = "konverge.dev/adopt-by"
"""The annotation that hands an object without a controller over: its value is kind and name of the adopter."""


LEFTOVER_DELAY = 5.0
"""Seconds between two looks at an object that the garbage collector is about to delete."""


class OwnershipError(TerminalError):
    """The reference would be refused or would get the object deleted."""


class NotOwned(OwnershipError, BlockedError):
    """An object of the desired name exists, and it is not ours to write: it has another controller, or none.

    No event of that object leads here when it goes away, so the key comes again by itself.
    """

    event_reason: ClassVar[str] = "NotOwned"


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner that controls an object, if any."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            return owner
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.uid == owner.metadata.uid


def controller_reference(owner: Object, *, block_owner_deletion: bool = True) -> OwnerReference:
    """The reference that makes `owner` the controller of the object that carries it."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=block_owner_deletion,
    )


def set_controller_reference(owner: Object, owned: Object, *, block_owner_deletion: bool = True) -> None:
    """Make `owner` the controller of `owned`: deleting it deletes the object too, events of the object lead to it.

        set_controller_reference(webapp, deployment)

    Refuses a second controller, and an owner in another namespace (the garbage collector would take it for absent and
    delete the object).
    """
    _check_namespaces(owner, owned)
    present = controller_of(owned)
    if present is not None and present.uid != owner.metadata.uid:
        raise OwnershipError(
            f"{owned.kind} {owned.metadata.name} is already controlled by {present.kind} {present.name}; "
            "an object has one controller: remove that reference first, or give the object another name"
        )
    reference = controller_reference(owner, block_owner_deletion=block_owner_deletion)
    others = [other for other in owned.metadata.owner_references if other.uid != owner.metadata.uid]
    owned.metadata.owner_references = [*others, reference]


def require_ownership(owner: Object, owned: Object, metadata: Mapping[str, Any], *, adopt: bool = False) -> None:
    """Refuse to take an object that exists: `metadata` is that of the object in the cluster, as plain data.

    It is ours when its controller reference has the uid of `owner`. One without a controller becomes ours when it
    carries the annotation `konverge.dev/adopt-by: <Kind>/<name>` of the owner, or with `adopt`. Raises NotOwned.
    """
    references = metadata.get("ownerReferences") or ()
    controller = next((reference for reference in references if reference.get("controller")), None)
    if controller is not None and controller["uid"] == owner.metadata.uid:
        return
    adopter = f"{owner.kind}/{owner.metadata.name}"
    invited = (metadata.get("annotations") or {}).get(ADOPT_BY) == adopter
    if controller is None and (adopt or invited):
        return
    present = f"{owned.kind} {owned.metadata.name} exists and "
    if controller is None:
        raise NotOwned(
            f"{present}has no controller: it is left as it is; delete or rename it, or hand it over with the "
            f"annotation {ADOPT_BY}: {adopter}"
        )
    if controller["kind"] == owner.kind and controller["name"] == owner.metadata.name:
        leftover = NotOwned(
            f"{present}is controlled by an earlier {owner.kind} {owner.metadata.name}, which was deleted: it is left "
            "as it is until the garbage collector has deleted it; delete it if that does not happen"
        )
        leftover.retry_after = LEFTOVER_DELAY
        raise leftover
    raise NotOwned(
        f"{present}is controlled by {controller['kind']} {controller['name']}: it is left as it is; delete or rename "
        f"it, or remove that controller reference and hand it over with the annotation {ADOPT_BY}: {adopter}"
    )


def _check_namespaces(owner: Object, owned: Object) -> None:
    resource: Resource = type(owner).resource
    owner_namespace, owned_namespace = owner.metadata.namespace, owned.metadata.namespace
    if not resource.namespaced:
        return
    if not type(owned).resource.namespaced:
        raise OwnershipError(
            f"{owned.kind} {owned.metadata.name} is cluster-scoped and cannot be owned by the namespaced "
            f"{owner.kind} {owner_namespace}/{owner.metadata.name}; use a finalizer to clean it up"
        )
    if owned_namespace and owned_namespace != owner_namespace:
        raise OwnershipError(
            f"{owned.kind} {owned_namespace}/{owned.metadata.name} cannot be owned by {owner.kind} "
            f"{owner_namespace}/{owner.metadata.name}: owners work within one namespace only; "
            "use a finalizer to clean it up"
        )
