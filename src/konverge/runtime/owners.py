"""Owner references: who controls what, and a check for the two mistakes that get objects deleted by the garbage
collector.

Upstream: controller-runtime's pkg/controller/controllerutil.
"""

from __future__ import annotations

from konverge.objects.meta import Object, OwnerReference
from konverge.objects.resource import Resource
from konverge.runtime.result import TerminalError


class OwnershipError(TerminalError):
    """The reference would be refused or would get the object deleted."""


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
