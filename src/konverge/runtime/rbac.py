"""Permissions, from the same declarations as everything else: the rules to grant, and the check that they were granted.

The declaration of a controller says what it must be allowed: watch what it watches, write what it owns, patch the
status of its kind. `rules_for` gives that as RBAC rules and grants nothing more; `missing_permissions` asks the API
server at the start, so that a forgotten rule is one clear line and not a cache that never syncs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.client import (
    Client,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    InternalError,
    TooManyRequests,
    Unavailable,
)
from konverge.objects.resource import Resource
from konverge.runtime.declare import Controller
from konverge.runtime.relations import CACHE_VERBS as READ
from konverge.runtime.relations import CachedKind

WRITE = ("create", "delete", "patch")
LEASE = ("get", "create", "update")
"""What leader election cannot do without. A role that grants no `watch` is enough: then the Lease is read instead."""

RETRY_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before the next try, when the API server cannot be reached at the start."""

_REVIEWS = Resource("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)


class MissingPermissions(Exception):
    """The API server would refuse requests that a controller needs."""


class Permission(msgspec.Struct, frozen=True, order=True):
    """One verb on one resource, in one namespace or in all (empty); on one object, where a name is given."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        named = f"{self.resource}.{self.group}" if self.group else self.resource
        named += f" {self.name}" if self.name else ""
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        return f"{self.verb} {named} {where}"


EVERYTHING = Permission("*", "*", "*")
"""What `kubectl auth can-i '*' '*'` asks for."""


def permissions(
    controllers: Iterable[Controller[Any]],
    *,
    lease_namespace: str = "",
    sharded: bool = False,
    reviews: bool = False,
) -> list[Permission]:
    """Everything that these controllers need; replicas that share their work keep Leases of each other.

    With `reviews`, the API server is asked who may read metrics or debug pages.
    """
    needed: set[Permission] = set()
    for controller in controllers:
        needed |= _of_controller(controller)
    if lease_namespace:
        verbs = (*LEASE, "watch", *(("list", "delete") if sharded else ()))
        needed |= {Permission("coordination.k8s.io", "leases", verb, lease_namespace) for verb in verbs}
    if reviews:
        needed.add(Permission("authentication.k8s.io", "tokenreviews", "create"))
        needed.add(Permission("authorization.k8s.io", "subjectaccessreviews", "create"))
    return sorted(needed)


def _of_controller(controller: Controller[Any]) -> set[Permission]:
    kind = controller.kind.resource
    needed = set(_on(kind, READ, controller.namespaces))
    needed |= set(_on(kind, ("patch",), controller.namespaces, "/status"))
    if controller.finalizers:
        needed |= set(_on(kind, ("patch",), controller.namespaces))
    if controller.finalizers or controller.owned:
        # Children block the deletion of their owner (blockOwnerDeletion). Clusters with the admission plugin
        # OwnerReferencesPermissionEnforcement allow that only to clients that may update the owner's finalizers.
        needed |= set(_on(kind, ("update",), controller.namespaces, "/finalizers"))
    for owned in controller.owned:
        needed |= set(_on(owned.kind.resource, READ + WRITE, _namespaces(owned, controller)))
    for watch in controller.watched:
        needed |= set(_on(watch.kind.resource, READ, _namespaces(watch, controller)))
    for use in controller.uses:
        subresource = f"/{use.subresource}" if use.subresource else ""
        needed |= set(_on(use.resource, use.granted, _namespaces(use, controller), subresource))
    for namespace in controller.namespaces or ("",):
        needed |= {Permission("", "events", verb, namespace) for verb in ("create", "patch")}
    return needed


def _namespaces(declared: CachedKind, controller: Controller[Any]) -> tuple[str, ...]:
    return controller.namespaces if declared.namespaces is None else declared.namespaces


def _on(
    resource: Resource, verbs: Iterable[str], namespaces: tuple[str, ...], subresource: str = ""
) -> Iterable[Permission]:
    spaces = namespaces if namespaces and resource.namespaced else ("",)
    return (
        Permission(resource.group, resource.plural + subresource, verb, namespace)
        for verb in verbs
        for namespace in spaces
    )


def rules_for(needed: Iterable[Permission]) -> list[dict[str, Any]]:
    """RBAC rules that grant exactly these, for a Role or a ClusterRole.

    >>> rules_for([Permission("apps", "deployments", "get"), Permission("apps", "deployments", "list")])
    [{'apiGroups': ['apps'], 'resources': ['deployments'], 'verbs': ['get', 'list']}]
    """
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for permission in sorted(needed):
        granted = verbs.setdefault((permission.group, permission.name, permission.resource), [])
        if permission.verb not in granted:
            granted.append(permission.verb)
    resources_by_verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, name, resource), granted in verbs.items():
        resources_by_verbs.setdefault((group, name, tuple(granted)), []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": [name]} if name else {}),
            "verbs": list(allowed),
        }
        for (group, name, allowed), resources in resources_by_verbs.items()
    ]


def required(permission: Permission) -> bool:
    """Whether the manager cannot start without it."""
    return (permission.group, permission.resource, permission.verb) != ("coordination.k8s.io", "leases", "watch")


async def require_permissions(client: Client, needed: Iterable[Permission], prints: str) -> None:
    """Raises MissingPermissions, which says how to grant them: by what the command `prints` prints."""
    if missing := await missing_permissions(client, needed):
        listed = "; ".join(str(permission) for permission in missing)
        hint = f"; `{prints}` prints roles that grant them" if prints else ""
        raise MissingPermissions(f"missing permissions: {listed}{hint}")


async def missing_permissions(client: Client, needed: Iterable[Permission]) -> list[Permission]:
    """The permissions that the API server says we do not have."""
    wanted = list(needed)
    if len(wanted) > 1 and await _is_allowed(client, _review_of(EVERYTHING)):
        return []  # an administrator, as on most developers' machines: one answer in place of hundreds
    limit = asyncio.Semaphore(
        4
    )  # each concurrent request needs a connection, whose handshake costs more than an answer

    async def allowed(permission: Permission) -> bool:
        async with limit:
            return await _is_allowed(client, _review_of(permission))

    answers = await asyncio.gather(*(allowed(permission) for permission in wanted))
    return [permission for permission, yes in zip(wanted, answers, strict=True) if not yes]


def _review_of(permission: Permission) -> dict[str, Any]:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
        "verb": permission.verb,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    return {
        "apiVersion": _REVIEWS.api_version,
        "kind": _REVIEWS.kind,
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }


async def _is_allowed(client: Client, review: dict[str, Any]) -> bool:
    """A review changes nothing, so it is repeated when its answer was lost."""
    for delay in RETRY_DELAYS:
        try:
            return await _review(client, review)
        except (ConnectionFailed, ConnectionLost, TooManyRequests, Unavailable, InternalError, Conflict):
            await asyncio.sleep(delay)
    return await _review(client, review)


async def _review(client: Client, review: dict[str, Any]) -> bool:
    answer = await client.create(review, resource=_REVIEWS)
    return bool(answer["status"]["allowed"])
