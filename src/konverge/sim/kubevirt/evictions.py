"""Draining a node: a launcher pod is not evicted, its guest moves first, as its eviction strategy says.

The eviction is refused with 429, which `kubectl drain` takes as "try again", and the instance remembers the node that
it is to leave. A guest that cannot move, and must, stays: so does the drain.
"""

from __future__ import annotations

from konverge.apiserver import status
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.client import AlreadyExists
from konverge.runtime import Context
from konverge.sim.kubevirt.kinds import KUBEVIRT, Instance, Migration, Obj, is_true

LEAVES = "evacuationNodeName"
_MOVES = ("LiveMigrate", "LiveMigrateIfPossible")
_RETRY = 5


def check(request: AdmissionRequest) -> None:
    """For an eviction of any pod. Raises 429 where the guest in it goes first."""
    pod = request.call.lookup("", "pods", request.namespace, request.name)
    owners = ((pod or {}).get("metadata") or {}).get("ownerReferences") or []
    name = next((str(owner["name"]) for owner in owners if owner.get("kind") == Instance.resource.kind), "")
    if pod is None or not name:
        return
    instance = request.call.lookup(KUBEVIRT, "virtualmachineinstances", request.namespace, name)
    if instance is None or (instance.get("status") or {}).get("phase") != "Running":
        return
    strategy = instance["spec"].get("evictionStrategy", "None")
    movable = is_true(instance["status"], "LiveMigratable")
    if strategy == "None" or (strategy == "LiveMigrateIfPossible" and not movable):
        return
    if strategy == "LiveMigrate" and not movable:
        message = f"VMI {name} is configured with an eviction strategy but is not live-migratable"
        raise status.too_many_requests(f"admission webhook denied the request: {message}", _RETRY)
    if not request.dry_run:
        _mark(request, name, str(pod["spec"].get("nodeName", "")))
    place = f"{request.namespace}/{name}"
    raise status.too_many_requests(f"Eviction triggered evacuation of VMI {place!r}", _RETRY)


def _mark(request: AdmissionRequest, name: str, node: str) -> None:
    def leave(obj: Obj) -> None:
        if obj["status"].get("nodeName") == node:
            obj["status"][LEAVES] = node

    request.call.server.objects.update(KUBEVIRT, "virtualmachineinstances", request.namespace, name, leave)


async def evacuate(ctx: Context[Instance]) -> None:
    """For a running instance: a migration where it is to leave its node, once; forget it where it has left."""
    instance, node = ctx.obj, ctx.obj.status.get(LEAVES)
    if not node:
        return
    if node != instance.status.get("nodeName"):
        del instance.status[LEAVES]
        return
    if instance.spec.get("evictionStrategy") not in _MOVES:
        return
    pods = "-".join(uid[:8] for uid in instance.status.get("activePods") or {})
    meta = {"name": f"kubevirt-evacuation-{pods}", "namespace": instance.metadata.namespace}
    migration = {"apiVersion": "kubevirt.io/v1", "kind": Migration.resource.kind, "metadata": meta}
    try:
        await ctx.client.create({**migration, "spec": {"vmiName": instance.metadata.name}}, resource=Migration.resource)
    except AlreadyExists:
        return
