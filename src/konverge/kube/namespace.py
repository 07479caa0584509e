"""The namespace controller: a namespace that goes takes everything in it along, whatever kinds there are.

Pods go first, so that nothing they need goes before them; then all the rest. What does not go at once (a grace period,
a finalizer) is named in the conditions and looked at again. When nothing is left, the finalizer `kubernetes` of the
namespace's spec is taken away through its own subresource, and the server lets it go.

Unlike the garbage collector it needs no cache of everything: a namespace goes rarely, and discovery says what to ask
for. Unlike kube-controller-manager it begins at once instead of after five seconds; and while pods remain the condition
ContentRemaining says so, where upstream says that all content was removed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from konverge import clock
from konverge.client import Client, ClientError, MethodNotAllowed, NotFound, Obj, Served
from konverge.objects.kinds.core_v1 import Namespace, NamespaceCondition, Pod
from konverge.objects.resource import Resource
from konverge.objects.times import now, parse_time
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watch
from konverge.runtime.predicates import deleted

FINALIZER = "kubernetes"
LONGEST_WAIT = 8.0
"""Seconds between two looks at a namespace that stays: what a finalizer's owner is given upstream."""

# The same objects in another form: they need not be deleted twice.
_TWINS = {("events.k8s.io", "events")}

_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(slots=True)
class Remains:
    """What is left after a round of deletions, and what went wrong in it."""

    kinds: Counter[Resource] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    undiscovered: str = ""

    def add(self, resource: Resource, left: list[Obj]) -> None:
        if left:
            self.kinds[resource] = len(left)
        for item in left:
            self.finalizers.update(item["metadata"].get("finalizers", ()))

    @property
    def anything(self) -> bool:
        return bool(self.kinds or self.errors or self.undiscovered)

    def troubles(self) -> dict[str, tuple[str, str]]:
        """The conditions that are true, each with its reason and message."""
        found: dict[str, tuple[str, str]] = {}
        if self.undiscovered:
            found["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", self.undiscovered)
        if self.errors:
            text = (
                f"Failed to delete all resource types, {len(self.errors)} remaining: {', '.join(sorted(self.errors))}"
            )
            found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", text)
        if self.kinds:
            parts = sorted(f"{r.plural}.{r.group} has {n} resource instances" for r, n in self.kinds.items())
            text = f"Some resources are remaining: {', '.join(parts)}"
            found["NamespaceContentRemaining"] = ("SomeResourcesRemain", text)
        if self.finalizers:
            parts = sorted(f"{name} in {n} resource instances" for name, n in self.finalizers.items())
            text = f"Some content in the namespace has finalizers remaining: {', '.join(parts)}"
            found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
        return found


class NamespaceReconciler(Reconciler[Namespace]):
    async def reconcile(self, ctx: Context[Namespace]) -> Result | None:
        namespace = ctx.obj
        if not ctx.deleting or not namespace.spec.finalizers:
            return None
        remains = await _empty(ctx.client, namespace)
        namespace.status.phase = "Terminating"
        namespace.status.conditions = conditions(namespace.status.conditions, remains)
        await ctx.save_status()
        if remains.anything:
            return Result(requeue_after=_patience(namespace))
        await _finalize(ctx.client, namespace)
        return None


def _patience(namespace: Namespace) -> float:
    """Seconds until the next look: soon at first, less often the longer it takes."""
    since = parse_time(namespace.metadata.deletion_timestamp or now())
    return min(LONGEST_WAIT, max(0.5, (clock.utc_now() - since).total_seconds() / 4))


def conditions(present: list[NamespaceCondition], remains: Remains) -> list[NamespaceCondition]:
    """All five, in their order; times move with the status only."""
    troubles = remains.troubles()
    made = {condition.type: condition for condition in present}
    for type, fine in _FINE.items():
        status = "True" if type in troubles else "False"
        reason, message = troubles.get(type, fine)
        known = made.get(type)
        since = known.last_transition_time if known and known.status == status else now()
        made[type] = NamespaceCondition(
            type=type, status=status, reason=reason, message=message, last_transition_time=since
        )
    return list(made.values())


async def _finalize(client: Client, namespace: Namespace) -> None:
    """The version that is sent along makes sure that nobody else's finalizer is lost."""
    try:
        live = await client.get(Namespace.resource, namespace.metadata.name)
        if live["metadata"]["uid"] == namespace.metadata.uid:
            kept = [name for name in live["spec"].get("finalizers", ()) if name != FINALIZER]
            live["spec"]["finalizers"] = kept
            await client.update_sub(Namespace, namespace.metadata.name, "finalize", live)
    except NotFound:
        return


# ------------------------------------------------------------------ content


async def _empty(client: Client, namespace: Namespace) -> Remains:
    """One round: delete everything, and say what is still there."""
    remains = Remains()
    try:
        client.mapper.invalidate()
        kinds = deletable(await client.mapper.all())
    except ClientError as error:
        remains.undiscovered = str(error)
        return remains
    pods = [served for served in kinds if served.resource == Pod.resource]
    await _empty_kinds(client, namespace, pods, remains)
    if not remains.anything:
        await _empty_kinds(client, namespace, [served for served in kinds if served not in pods], remains)
    return remains


def deletable(every: Iterable[Served]) -> list[Served]:
    """What a namespace can hold that can be listed and deleted, each in one version.

    The first version of a kind is its best: a group's preferred one need not serve all the kinds of the group.
    """
    found: dict[tuple[str, str], Served] = {}
    for served in every:
        resource = served.resource
        if resource.namespaced and {"delete", "list"} <= set(served.verbs):
            found.setdefault((resource.group, resource.plural), served)
    return [served for name, served in found.items() if name not in _TWINS]


async def _empty_kinds(client: Client, namespace: Namespace, kinds: list[Served], remains: Remains) -> None:
    name = namespace.metadata.name
    results = await asyncio.gather(*(_empty_kind(client, name, served) for served in kinds), return_exceptions=True)
    for served, result in zip(kinds, results, strict=True):
        if isinstance(result, ClientError):
            remains.errors.append(str(result))
        elif isinstance(result, BaseException):
            raise result
        else:
            remains.add(served.resource, result)
            if result and _is_unexpected(namespace, result):
                resource = served.resource
                what = f"{resource.group}/{resource.version}, Resource={resource.plural}"
                remains.errors.append(f"unexpected items still remain in namespace: {name} for gvr: {what}")


async def _empty_kind(client: Client, name: str, served: Served) -> list[Obj]:
    """Delete all of a kind; those that are left."""
    resource = served.resource
    try:
        found = (await client.list(resource, name)).items
        if not found:
            return []
        if "deletecollection" in served.verbs:
            await client.delete_collection(resource, name, propagation="Background")
        else:
            await asyncio.gather(*(_delete_one(client, resource, name, item) for item in found))
        return (await client.list(resource, name)).items
    except (NotFound, MethodNotAllowed):
        return []  # the kind has gone since discovery, or cannot be listed after all


async def _delete_one(client: Client, resource: Resource, name: str, item: Obj) -> None:
    try:
        await client.delete(resource, item["metadata"]["name"], name, propagation="Background")
    except NotFound:
        return


def _is_unexpected(namespace: Namespace, left: list[Obj]) -> bool:
    """Neither a finalizer nor a grace period explains that something is still there."""
    if any(item["metadata"].get("finalizers") for item in left):
        return False
    since = parse_time(namespace.metadata.deletion_timestamp or now())
    return (clock.utc_now() - since).total_seconds() >= max(map(_grace, left))


def _grace(item: Obj) -> float:
    """Seconds that a pod which still runs may take; other kinds have none."""
    if item.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return float(item.get("spec", {}).get("terminationGracePeriodSeconds") or 0)


# ------------------------------------------------------------------ declaration


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            Namespace,
            NamespaceReconciler(),
            # The end of the last pod is what the rest waits for.
            watches=[
                Watch(kind=Pod, requests=lambda pod: [Request("", pod.metadata.namespace)], predicate=deleted),
            ],
        )
    ]
