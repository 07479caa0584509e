"""Indexing: which pods run on this node is one look into the cache. `konverge run examples/08_indexing.py`"""

from __future__ import annotations

from collections.abc import Iterable

from konverge import Context, Controller, CustomResource, Index, Manager, Model, Request, Watches
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Caches


class WatchedNodeSpec(Model):
    node: str


class WatchedNodeStatus(Model):
    pods: list[str] = []


class WatchedNode(CustomResource[WatchedNodeSpec, WatchedNodeStatus], group="examples.konverge.dev", version="v1"):
    """Names the pods of a node."""


def watchers_of(pod: Pod, caches: Caches) -> Iterable[Request]:
    lister = caches.lister(WatchedNode)
    return lister.keys_by_index("node", pod.spec.node_name or "") if lister else ()


async def count(ctx: Context[WatchedNode]) -> None:
    pods = ctx.indexed(Pod, "node", ctx.obj.spec.node)
    ctx.obj.status.pods = sorted(pod.metadata.name for pod in pods)
    await ctx.save_status()


manager = Manager(name="watched-nodes").add(
    Controller(
        WatchedNode,
        count,
        watches=[Watches(Pod, lookup=watchers_of)],
        indexes=[
            Index(Pod, "node", lambda pod: [pod.spec.node_name or ""]),
            Index(WatchedNode, "node", lambda watched: [watched.spec.node]),
        ],
    )
)
