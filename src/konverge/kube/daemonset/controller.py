"""The DaemonSet controller: one pod on every node that it fits.

A round: its revisions; the nodes and its pods on them; what belongs there (`plan.manage`, pure) or, when that is so,
which pods make way for a newer template (`plan.roll`, pure); do it; say so in the status.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge import clock
from konverge.cache import Change
from konverge.client import ClientError
from konverge.kube import pods as podlib
from konverge.kube import revisions
from konverge.kube.adoption import ORPHANS, adoptable, adopters, claim, orphans
from konverge.kube.daemonset import node_fit
from konverge.kube.daemonset.plan import GENERATION, GENERATION_LABEL, Steps, View, look_at, manage, roll
from konverge.kube.pod_control import create_pods, delete_pods
from konverge.kube.pod_predicates import by_node
from konverge.objects import labels
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.apps_v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from konverge.objects.kinds.core_v1 import Node, Pod, PodTemplateSpec, Taint
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watch, controller_of
from konverge.runtime.context import Caches
from konverge.runtime.predicates import labels_changed

FIRST_DELAY, LONGEST_DELAY = 1.0, 900.0
"""Between deletions of pods that fail on a node: a kubelet may refuse them as fast as they are made."""
_LONG_AGO = 2 * LONGEST_DELAY
BY_NODE = "daemonset/node"


class DaemonSetReconciler(Reconciler[DaemonSet]):
    def __init__(self) -> None:
        self._failures = Failures()

    async def reconcile(self, ctx: Context[DaemonSet]) -> Result | None:
        daemonset = ctx.obj
        if daemonset.metadata.deletion_timestamp is not None:
            return None  # its revisions may be gone already, so that nothing could be said of its pods
        selector = labels.from_selector(daemonset.spec.selector)
        history = await revisions.history(ctx, selector)
        current, daemonset.status.collision_count = await revisions.current(
            ctx, daemonset.spec.template, history, revisions.POD_LABEL, daemonset.status.collision_count
        )
        digest = current.metadata.labels[revisions.POD_LABEL]
        pods = await claim(ctx, Pod, selector)
        view = look_at(daemonset, list(await ctx.list(Node)), pods, digest)
        turn = self._failures.turn(daemonset)
        made, failure = await _take(ctx, manage(view, turn.may_go) or roll(view), digest)
        view = look_at(daemonset, list(view.nodes.values()), [*pods, *made], digest)
        waits = [*await _write_status(ctx, view), *turn.waits]
        await _forget(ctx, history, current, pods)
        if failure is not None:
            raise failure
        return Result(requeue_after=min(waits)) if waits else None


async def _take(ctx: Context[DaemonSet], steps: Steps, digest: str) -> tuple[list[Pod], ClientError | None]:
    """Create and delete; the pods made, and the first refusal."""
    for pod in steps.failed:
        words = f"{pod.metadata.namespace}/{pod.metadata.name} on node {node_fit.target_of(pod)}, will try to kill it"
        ctx.warning("FailedDaemonPod", f"Found failed daemon pod {words}")
    for pod in steps.succeeded:
        words = f"{pod.metadata.namespace}/{pod.metadata.name} on node {node_fit.target_of(pod)}, will try to delete it"
        ctx.event("SucceededDaemonPod", f"Found succeeded daemon pod {words}")
    made, refusal = await create_pods(ctx, [_pod(ctx.obj, node, digest) for node in steps.create])
    _, failure = await delete_pods(ctx, steps.delete)
    return made, failure or refusal


def _pod(daemonset: DaemonSet, node: str, digest: str) -> Pod:
    """A pod that the scheduler can bind to one node only."""
    template = from_dict(PodTemplateSpec, to_dict(daemonset.spec.template))
    marks = {revisions.POD_LABEL: digest}
    generation = daemonset.metadata.annotations.get(GENERATION, "")
    if generation.isdigit():
        marks[GENERATION_LABEL] = generation
    template.metadata.labels = {**template.metadata.labels, **marks}
    template.spec.tolerations = node_fit.tolerations(template.spec)
    template.spec.affinity = node_fit.bound_to(template.spec.affinity, node)
    return podlib.from_template(daemonset, template)


async def _write_status(ctx: Context[DaemonSet], view: View) -> list[float]:
    """Write the counts; the seconds until pods become available by age alone."""
    daemonset = ctx.obj
    desired = [name for name in view.nodes if view.fits(name)]
    oldest = [view.pods[name][0] for name in desired if name in view.pods]
    minimum = daemonset.spec.min_ready_seconds or 0
    ages = [age for pod in oldest if (age := podlib.available_in(pod, minimum)) is not None]
    available = sum(age == 0 for age in ages)
    daemonset.status = DaemonSetStatus(
        observed_generation=daemonset.metadata.generation,
        desired_number_scheduled=len(desired),
        current_number_scheduled=len(oldest),
        number_misscheduled=sum(name in view.pods for name in view.nodes) - len(oldest),
        number_ready=len(ages),
        number_available=available or None,
        number_unavailable=(len(desired) - available) or None,
        updated_number_scheduled=sum(view.is_updated(pod) for pod in oldest) or None,
        collision_count=daemonset.status.collision_count,
        conditions=daemonset.status.conditions,
    )
    await ctx.save_status()
    return [age for age in ages if age > 0]


async def _forget(
    ctx: Context[DaemonSet], history: list[ControllerRevision], current: ControllerRevision, pods: list[Pod]
) -> None:
    used = {pod.metadata.labels.get(revisions.POD_LABEL) for pod in pods}
    old = [revision for revision in history if revision.metadata.name != current.metadata.name]
    live = {rev.metadata.name for rev in old if rev.metadata.labels.get(revisions.POD_LABEL) in used}
    await revisions.forget(ctx, old, ctx.obj.spec.revision_history_limit, but=live)


class Failures:
    """When pods failed on a node, by DaemonSet and generation: the next one waits longer."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, str], tuple[float, float]] = {}
        """(the last delay, until when)"""

    def turn(self, daemonset: DaemonSet) -> Turn:
        return Turn(self, daemonset.metadata.uid, daemonset.status.observed_generation or 0)

    def wait(self, key: tuple[str, int, str]) -> float:
        """Seconds to wait; 0 when it is time, and then the next time is later."""
        now = clock.monotonic()
        self._known = {old: (delay, until) for old, (delay, until) in self._known.items() if now < until + _LONG_AGO}
        delay, until = self._known.get(key, (0.0, 0.0))
        if until > now:
            return until - now
        delay = min(max(FIRST_DELAY, 2 * delay), LONGEST_DELAY)
        self._known[key] = (delay, now + delay)
        return 0.0


class Turn:
    """One round's questions to `Failures`, and how long it was told to wait."""

    def __init__(self, failures: Failures, uid: str, generation: int) -> None:
        self._failures = failures
        self._who = (uid, generation)
        self.waits: list[float] = []

    def may_go(self, node: str) -> bool:
        wait = self._failures.wait((*self._who, node))
        if wait > 0:
            self.waits.append(wait)
        return wait == 0


# ------------------------------------------------------------------ declaration


class _Spec(msgspec.Struct, gc=False):
    taints: list[Taint] = []


class _Head(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_head = msgspec.json.Decoder(_Head)


def _matters(change: Change) -> bool:
    """Nodes say that they are alive all the time; labels and taints are what decides."""
    if change.old is None or change.new is None or labels_changed(change):
        return True
    return _head.decode(change.old.raw).spec.taints != _head.decode(change.new.raw).spec.taints


def _concerned(node: Node, caches: Caches) -> list[Request]:
    """Those that miss a pod on the node, have one that may not stay, or have counted one as misplaced."""
    daemonsets, pods = caches.lister(DaemonSet), caches.lister(Pod)
    if daemonsets is None or pods is None:
        return []
    there = {owner.uid for pod in pods.by_index(BY_NODE, node.metadata.name) if (owner := controller_of(pod))}
    found = []
    for daemonset in daemonsets.list():
        wanted, may_stay = node_fit.should_run(daemonset, node)
        scheduled = daemonset.metadata.uid in there
        misplaced = scheduled and daemonset.status.number_misscheduled > 0
        # One that is only no longer wanted may stay, and as upstream nobody counts again for it.
        if (wanted and not scheduled) or (scheduled and not may_stay) or misplaced:
            found.append(Request(daemonset.metadata.namespace, daemonset.metadata.name))
    return found


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            DaemonSet,
            DaemonSetReconciler(),
            component="daemonset-controller",
            owns=[Pod, ControllerRevision],
            watches=[
                Watch(kind=Pod, lookup=adopters(DaemonSet), predicate=adoptable),
                Watch(kind=Node, lookup=_concerned, predicate=_matters),
            ],
            indexes={Pod: {ORPHANS: orphans, BY_NODE: by_node}, ControllerRevision: {ORPHANS: orphans}},
        )
    ]
