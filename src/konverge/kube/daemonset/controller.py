"""The DaemonSet controller: one pod on every node that it fits.

A reconcile: its revisions; the nodes and its pods on them; which pods to create and delete (`plan.manage`, pure) or,
when there are none, which pods to replace by a newer template (`plan.roll`, pure); do it; write the status.

Upstream: pkg/controller/daemon (daemon_controller.go, update.go).
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge import clock
from konverge.cache import Change
from konverge.cache.record import Record
from konverge.client import ClientError
from konverge.kube import pods as podlib
from konverge.kube import revisions
from konverge.kube.adoption import ORPHANS, adoptable, adopters, claim, orphans
from konverge.kube.daemonset import node_fit
from konverge.kube.daemonset.plan import GENERATION, GENERATION_LABEL, Steps, View, look_at, manage, roll
from konverge.kube.listers import declared
from konverge.kube.pod_control import create_pods, delete_pods
from konverge.kube.pod_predicates import by_node
from konverge.objects import labels
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.apps_v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from konverge.objects.kinds.core_v1 import Node, Pod, PodTemplateSpec, Taint
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watches, controller_of
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate

FIRST_DELAY, LONGEST_DELAY = 1.0, 900.0
"""Seconds between deletions of pods that fail on a node: a kubelet may reject them as fast as they are created.
Upstream: failedPodsBackoff, 1 s to 15 min."""
_FORGET_AFTER = 2 * LONGEST_DELAY  # upstream: flowcontrol.Backoff.GC
BY_NODE = "daemonset/node"


class DaemonSetReconciler(Reconciler[DaemonSet]):
    def __init__(self) -> None:
        self._backoff = FailedPodsBackoff()

    # upstream: syncDaemonSet
    async def reconcile(self, ctx: Context[DaemonSet]) -> Result | None:
        daemonset = ctx.obj
        if daemonset.metadata.deletion_timestamp is not None:
            return None  # its revisions may be gone already, and without them its pods cannot be compared
        selector = labels.from_selector(daemonset.spec.selector)
        history = await revisions.history(ctx, selector)
        current, daemonset.status.collision_count = await revisions.current(
            ctx, daemonset.spec.template, history, revisions.POD_LABEL, daemonset.status.collision_count
        )
        digest = current.metadata.labels[revisions.POD_LABEL]
        pods = await claim(ctx, Pod, selector)
        view = look_at(daemonset, list(await ctx.list(Node)), pods, digest)
        backoff = self._backoff.of(daemonset)
        created, failure = await _execute(ctx, manage(view, backoff.may_delete) or roll(view), digest)
        view = look_at(daemonset, list(view.nodes.values()), [*pods, *created], digest)
        delays = [*await _write_status(ctx, view), *backoff.delays]
        await _clean_up_history(ctx, history, current, pods)
        if failure is not None:
            raise failure
        return Result(requeue_after=min(delays)) if delays else None


# upstream: syncNodes
async def _execute(ctx: Context[DaemonSet], steps: Steps, digest: str) -> tuple[list[Pod], ClientError | None]:
    """Create and delete; returns the created pods, and the first refusal."""
    for pod in steps.failed:
        which = f"{pod.metadata.namespace}/{pod.metadata.name} on node {node_fit.target_of(pod)}, will try to kill it"
        ctx.warning("FailedDaemonPod", f"Found failed daemon pod {which}")
    for pod in steps.succeeded:
        which = f"{pod.metadata.namespace}/{pod.metadata.name} on node {node_fit.target_of(pod)}, will try to delete it"
        ctx.event("SucceededDaemonPod", f"Found succeeded daemon pod {which}")
    created, refusal = await create_pods(ctx, [_pod(ctx.obj, node, digest) for node in steps.create])
    _, failure = await delete_pods(ctx, steps.delete)
    return created, failure or refusal


def _pod(daemonset: DaemonSet, node: str, digest: str) -> Pod:
    """A pod that the scheduler can bind to one node only."""
    template = from_dict(PodTemplateSpec, to_dict(daemonset.spec.template))
    hash_labels = {revisions.POD_LABEL: digest}
    generation = daemonset.metadata.annotations.get(GENERATION, "")
    if generation.isdigit():
        hash_labels[GENERATION_LABEL] = generation
    template.metadata.labels = {**template.metadata.labels, **hash_labels}
    template.spec.tolerations = node_fit.tolerations(template.spec)
    template.spec.affinity = node_fit.bound_to(template.spec.affinity, node)
    return podlib.from_template(daemonset, template)


async def _write_status(ctx: Context[DaemonSet], view: View) -> list[float]:
    """Write the counts; returns the seconds until pods become available by age. Upstream: updateDaemonSetStatus."""
    daemonset = ctx.obj
    desired = [name for name in view.nodes if view.fits(name)]
    oldest = [view.pods[name][0] for name in desired if name in view.pods]
    minimum = daemonset.spec.min_ready_seconds
    delays = [delay for pod in oldest if (delay := podlib.available_in(pod, minimum)) is not None]
    available = sum(delay == 0 for delay in delays)
    daemonset.status = DaemonSetStatus(
        observed_generation=daemonset.metadata.generation,
        desired_number_scheduled=len(desired),
        current_number_scheduled=len(oldest),
        number_misscheduled=sum(name in view.pods for name in view.nodes) - len(oldest),
        number_ready=len(delays),
        number_available=available or None,
        number_unavailable=(len(desired) - available) or None,
        updated_number_scheduled=sum(view.is_updated(pod) for pod in oldest) or None,
        collision_count=daemonset.status.collision_count,
        conditions=daemonset.status.conditions,
    )
    await ctx.save_status()
    return [delay for delay in delays if delay > 0]


# upstream: cleanupHistory
async def _clean_up_history(
    ctx: Context[DaemonSet], history: list[ControllerRevision], current: ControllerRevision, pods: list[Pod]
) -> None:
    used = {pod.metadata.labels.get(revisions.POD_LABEL) for pod in pods}
    old = [revision for revision in history if revision.metadata.name != current.metadata.name]
    live = {rev.metadata.name for rev in old if rev.metadata.labels.get(revisions.POD_LABEL) in used}
    await revisions.forget(ctx, old, ctx.obj.spec.revision_history_limit, but=live)


class FailedPodsBackoff:
    """How long failed pods on a node are kept, by DaemonSet and generation: the next one waits longer."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, str], tuple[float, float]] = {}
        """Key -> (the last delay, its end)."""

    def of(self, daemonset: DaemonSet) -> DaemonSetBackoff:
        return DaemonSetBackoff(self, daemonset.metadata.uid, daemonset.status.observed_generation or 0)

    def wait(self, key: tuple[str, int, str]) -> float:
        """Seconds to wait; 0 when the pod may be deleted, and then the next delay is longer."""
        now = clock.monotonic()
        self._known = {
            old: (delay, until) for old, (delay, until) in self._known.items() if now < until + _FORGET_AFTER
        }
        delay, until = self._known.get(key, (0.0, 0.0))
        if until > now:
            return until - now
        delay = min(max(FIRST_DELAY, 2 * delay), LONGEST_DELAY)
        self._known[key] = (delay, now + delay)
        return 0.0


class DaemonSetBackoff:
    """The back-off of one DaemonSet during one reconcile; `delays` has those that still run."""

    def __init__(self, backoff: FailedPodsBackoff, uid: str, generation: int) -> None:
        self._backoff = backoff
        self._key = (uid, generation)
        self.delays: list[float] = []

    def may_delete(self, node: str) -> bool:
        delay = self._backoff.wait((*self._key, node))
        if delay > 0:
            self.delays.append(delay)
        return delay == 0


# ------------------------------------------------------------------ declaration


class _Spec(msgspec.Struct, gc=False):
    taints: list[Taint] = []


class _Head(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_head = msgspec.json.Decoder(_Head)


# upstream: shouldIgnoreNodeUpdate
@ChangePredicate
def _matters(change: Change) -> bool:
    """Nodes report heartbeats all the time; only labels and taints decide where daemons run."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return old.meta.labels != new.meta.labels or _taints(old) != _taints(new)


def _taints(record: Record) -> list[Taint]:
    return _head.decode(record.raw).spec.taints


# upstream: syncNodeUpdate
def _concerned(node: Node, caches: Caches) -> list[Request]:
    """DaemonSets that lack a pod on the node, have one that may not stay, or counted one as misscheduled."""
    pods = declared(caches, Pod).by_index(BY_NODE, node.metadata.name)
    running = {owner.uid for pod in pods if (owner := controller_of(pod))}
    requests = []
    for daemonset in declared(caches, DaemonSet).list():
        wanted, may_stay = node_fit.should_run(daemonset, node)
        scheduled = daemonset.metadata.uid in running
        misplaced = scheduled and daemonset.status.number_misscheduled > 0
        # A pod that is no longer wanted but may stay changes no count, as upstream.
        if (wanted and not scheduled) or (scheduled and not may_stay) or misplaced:
            requests.append(Request(daemonset.metadata.namespace, daemonset.metadata.name))
    return requests


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            DaemonSet,
            DaemonSetReconciler(),
            component="daemonset-controller",
            owns=[Pod, ControllerRevision],
            watches=[
                Watches(Pod, lookup=adopters(DaemonSet), when=adoptable),
                Watches(Node, lookup=_concerned, when=_matters),
            ],
            indexes={Pod: {ORPHANS: orphans, BY_NODE: by_node}, ControllerRevision: {ORPHANS: orphans}},
        )
    ]
