"""The namespace controller: deletes everything in a namespace that is being deleted, whatever kinds there are.

Pods are deleted first, so that nothing they need goes before them; then all the rest. What does not go at once (a grace
period, a finalizer) is named in the conditions and deleted again later. When nothing is left, the finalizer
`kubernetes` of the namespace's spec is removed through its own subresource, and the server removes the namespace.

Unlike the garbage collector it needs no cache of everything: namespaces are deleted rarely, and discovery says which
kinds to list. Unlike kube-controller-manager it begins at once instead of after five seconds
(namespaceDeletionGracePeriod); and while pods remain the condition ContentRemaining says so, where upstream says that
all content was removed.

Upstream: pkg/controller/namespace/deletion/namespaced_resources_deleter.go.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from konverge import clock
from konverge.client import Client, ClientError, MethodNotAllowed, NotFound, Obj, Served
from konverge.kube.messages import message_of
from konverge.objects.kinds.core_v1 import Namespace, NamespaceCondition, Pod
from konverge.objects.resource import Resource
from konverge.objects.times import now, parse_time
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watches
from konverge.runtime.predicates import deleted

FINALIZER = "kubernetes"
LONGEST_WAIT = 8.0
"""Seconds between two attempts for a namespace that is not empty yet, at most."""

# These APIs serve objects of another API again; they need not be deleted twice.
_ALIASES = {("events.k8s.io", "events")}

# upstream: status_condition_utils.go
_NO_PROBLEM = {
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


class Remains(msgspec.Struct):
    """What is left after an attempt to delete everything, and what went wrong."""

    kinds: Counter[Resource] = msgspec.field(default_factory=Counter)
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    errors: list[str] = msgspec.field(default_factory=list)
    undiscovered: str = ""

    def add(self, resource: Resource, left: list[Obj]) -> None:
        if left:
            self.kinds[resource] = len(left)
        for item in left:
            self.finalizers.update(item["metadata"].get("finalizers", ()))

    @property
    def anything(self) -> bool:
        return bool(self.kinds or self.errors or self.undiscovered)

    def problems(self) -> dict[str, tuple[str, str]]:
        """The conditions that are true, each with its reason and message."""
        true_conditions: dict[str, tuple[str, str]] = {}
        if self.undiscovered:
            true_conditions["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", self.undiscovered)
        if self.errors:
            text = (
                f"Failed to delete all resource types, {len(self.errors)} remaining: {', '.join(sorted(self.errors))}"
            )
            true_conditions["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", text)
        if self.kinds:
            parts = sorted(f"{r.plural}.{r.group} has {n} resource instances" for r, n in self.kinds.items())
            text = f"Some resources are remaining: {', '.join(parts)}"
            true_conditions["NamespaceContentRemaining"] = ("SomeResourcesRemain", text)
        if self.finalizers:
            parts = sorted(f"{name} in {n} resource instances" for name, n in self.finalizers.items())
            text = f"Some content in the namespace has finalizers remaining: {', '.join(parts)}"
            true_conditions["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
        return true_conditions


class NamespaceReconciler(Reconciler[Namespace]):
    async def reconcile(self, ctx: Context[Namespace]) -> Result | None:
        namespace = ctx.obj
        if not ctx.deleting or not namespace.spec.finalizers or not await _is_still_deleted(ctx.client, namespace):
            return None
        remains = await _empty(ctx.client, namespace)
        namespace.status.phase = "Terminating"
        namespace.status.conditions = conditions(namespace.status.conditions, remains)
        await ctx.save_status()
        if remains.anything:
            return Result(requeue_after=_delay(namespace))
        await _finalize(ctx.client, namespace)
        return None


async def _is_still_deleted(client: Client, namespace: Namespace) -> bool:
    """Whether the server agrees: under the same name there may be a new namespace, whose content is to be kept."""
    try:
        live = await client.get(Namespace, namespace.metadata.name)
    except NotFound:
        return False
    return live.metadata.uid == namespace.metadata.uid and live.metadata.deletion_timestamp is not None


def _delay(namespace: Namespace) -> float:
    """Seconds until the next attempt: soon at first, less often the longer it takes."""
    since = parse_time(namespace.metadata.deletion_timestamp or now())
    return min(LONGEST_WAIT, max(0.5, (clock.utc_now() - since).total_seconds() / 4))


def conditions(present: list[NamespaceCondition], remains: Remains) -> list[NamespaceCondition]:
    """All five conditions, in their order; times change with the status only."""
    problems = remains.problems()
    by_type = {condition.type: condition for condition in present}
    for type, default in _NO_PROBLEM.items():
        status = "True" if type in problems else "False"
        reason, message = problems.get(type, default)
        known = by_type.get(type)
        since = known.last_transition_time if known and known.status == status else now()
        by_type[type] = NamespaceCondition(
            type=type, status=status, reason=reason, message=message, last_transition_time=since
        )
    return list(by_type.values())


async def _finalize(client: Client, namespace: Namespace) -> None:
    """The version that is sent along makes sure that no other finalizer is lost. Upstream: finalizeNamespace."""
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
    """Delete everything once; returns what is still there. Upstream: deleteAllContent."""
    remains = Remains()
    try:
        client.mapper.invalidate()
        kinds = deletable(await client.mapper.all())
    except ClientError as error:
        remains.undiscovered = message_of(error)
        return remains
    remains.undiscovered = _undiscovered(client.mapper.unavailable)
    pods = [served for served in kinds if served.resource == Pod.resource]
    await _empty_kinds(client, namespace, pods, remains)
    if not remains.kinds and not remains.errors:
        await _empty_kinds(client, namespace, [served for served in kinds if served not in pods], remains)
    return remains


# upstream: ErrGroupDiscoveryFailed.Error, ProcessDiscoverResourcesErr
def _undiscovered(away: Iterable[str]) -> str:
    """The message for groups whose server is away: the namespace may have objects of them."""
    failures = [f"{api_version}: stale GroupVersion discovery: {api_version}" for api_version in sorted(away)]
    if not failures:
        return ""
    listed = ", ".join(failures)
    return (
        f"Discovery failed for some groups, {len(failures)} failing: "
        f"unable to retrieve the complete list of server APIs: {listed}"
    )


def deletable(every: Iterable[Served]) -> list[Served]:
    """The namespaced kinds that can be listed and deleted, each in one version.

    The first version of a kind is its best: the preferred version of a group need not serve all kinds of the group.
    """
    chosen: dict[tuple[str, str], Served] = {}
    for served in every:
        resource = served.resource
        if resource.namespaced and {"delete", "list"} <= set(served.verbs):
            chosen.setdefault((resource.group, resource.plural), served)
    return [served for name, served in chosen.items() if name not in _ALIASES]


async def _empty_kinds(client: Client, namespace: Namespace, kinds: list[Served], remains: Remains) -> None:
    name = namespace.metadata.name
    results = await asyncio.gather(*(_empty_kind(client, name, served) for served in kinds), return_exceptions=True)
    for served, result in zip(kinds, results, strict=True):
        if isinstance(result, ClientError):
            remains.errors.append(message_of(result))
        elif isinstance(result, BaseException):
            raise result
        else:
            remains.add(served.resource, result)
            if result and _is_unexpected(namespace, result):
                resource = served.resource
                what = f"{resource.group}/{resource.version}, Resource={resource.plural}"
                remains.errors.append(f"unexpected items still remain in namespace: {name} for gvr: {what}")


# upstream: deleteAllContentForGroupVersionResource
async def _empty_kind(client: Client, name: str, served: Served) -> list[Obj]:
    """Delete all objects of a kind; returns those that are left."""
    resource = served.resource
    try:
        items = (await client.list(resource, name)).items
        if not items:
            return []
        if "deletecollection" in served.verbs:
            await client.delete_collection(resource, name, propagation="Background")
        else:
            await asyncio.gather(*(_delete_item(client, resource, name, item) for item in items))
        return (await client.list(resource, name)).items
    except (NotFound, MethodNotAllowed):
        return []  # the kind was removed since discovery, or cannot be listed after all


async def _delete_item(client: Client, resource: Resource, name: str, item: Obj) -> None:
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
    """Seconds that a pod which still runs may take; other kinds have none. Upstream: estimateGracefulTermination."""
    if item.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return float(item.get("spec", {}).get("terminationGracePeriodSeconds") or 0)


# ------------------------------------------------------------------ declaration


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            Namespace,
            NamespaceReconciler(),
            # The deletion of the last pod is what the rest waits for.
            watches=[
                Watches(Pod, requests=lambda pod: [Request("", pod.metadata.namespace)], when=deleted),
            ],
        )
    ]
