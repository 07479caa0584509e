"""What a DaemonSet does next. Pure: from its spec, the nodes and its pods.

First every node gets the pod that belongs there and loses those that do not (`manage`). Only when nothing is left to do
there are pods of an older template replaced (`roll`): without surge the old one is deleted first and `manage` creates
the new one; with surge the new one is created first and the old one is deleted when the new one is available.

Upstream: manage and podsShouldBeOnNode (pkg/controller/daemon/daemon_controller.go), rollingUpdate (update.go).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from konverge.kube import pods as podlib
from konverge.kube.daemonset.node_fit import should_run, target_of
from konverge.kube.revisions import POD_LABEL
from konverge.objects.int_or_string import scale
from konverge.objects.kinds.apps_v1 import DaemonSet, RollingUpdateDaemonSet
from konverge.objects.kinds.core_v1 import Node, Pod

GENERATION = "deprecated.daemonset.template.generation"
GENERATION_LABEL = "pod-template-generation"

MayDelete = Callable[[str], bool]
"""Whether a pod that failed on a node may be deleted now, or has to wait for its back-off."""


class Steps(msgspec.Struct):
    create: list[str] = msgspec.field(default_factory=list)
    """Nodes that get a pod."""
    delete: list[Pod] = msgspec.field(default_factory=list)
    failed: list[Pod] = msgspec.field(default_factory=list)
    """Those of the deleted pods that failed; each gets an event."""
    succeeded: list[Pod] = msgspec.field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


class View(msgspec.Struct):
    """A DaemonSet with the nodes and its pods on each."""

    daemonset: DaemonSet
    nodes: dict[str, Node]
    pods: dict[str, list[Pod]]
    """By node, scheduled and older ones first. Pods that have ended and are being deleted are left out."""
    hash: str

    def available(self, pod: Pod) -> bool:
        return podlib.available_in(pod, self.daemonset.spec.min_ready_seconds) == 0

    def is_updated(self, pod: Pod) -> bool:
        generation = self.daemonset.metadata.annotations.get(GENERATION)
        by_generation = generation is not None and pod.metadata.labels.get(GENERATION_LABEL) == generation
        return by_generation or pod.metadata.labels.get(POD_LABEL) == self.hash

    def fits(self, node: str) -> bool:
        return node in self.nodes and should_run(self.daemonset, self.nodes[node])[0]


def look_at(daemonset: DaemonSet, nodes: list[Node], pods: list[Pod], hash: str) -> View:
    by_node: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=_age):
        node = target_of(pod)
        if node is not None and not (podlib.is_terminated(pod) and pod.metadata.deletion_timestamp is not None):
            by_node.setdefault(node, []).append(pod)
    return View(daemonset, {node.metadata.name: node for node in nodes}, by_node, hash)


def _age(pod: Pod) -> tuple[bool, str, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


def _rolling(daemonset: DaemonSet) -> RollingUpdateDaemonSet | None:
    strategy = daemonset.spec.update_strategy
    return strategy.rolling_update if strategy is not None and strategy.type == "RollingUpdate" else None


# upstream: updatedDesiredNodeCounts
def bounds(daemonset: DaemonSet, desired: int) -> tuple[int, int]:
    """(surge, unavailable) as numbers. With both zero nothing could roll: then one pod may be unavailable."""
    rolling = _rolling(daemonset)
    if rolling is None:
        return 0, 0
    surge = scale(0 if rolling.max_surge is None else rolling.max_surge, desired, round_up=True)
    unavailable = scale(0 if rolling.max_unavailable is None else rolling.max_unavailable, desired, round_up=True)
    return surge, unavailable if surge or unavailable or not desired else 1


# ------------------------------------------------------------------ one pod on every node that fits


def manage(view: View, may_delete: MayDelete) -> Steps:
    steps = Steps()
    for name, node in view.nodes.items():
        wanted, may_stay = should_run(view.daemonset, node)
        present = view.pods.get(name, [])
        if wanted and not present:
            steps.create.append(name)
        elif may_stay:
            _tidy(view, name, wanted, may_delete, steps)
        else:
            steps.delete += [pod for pod in present if pod.metadata.deletion_timestamp is None]
    # A pod for a node that is gone was never started: no other controller deletes it. Upstream:
    # getUnscheduledPodsWithoutNode.
    without_node = (pod for name, pods in view.pods.items() if name not in view.nodes for pod in pods)
    steps.delete += [pod for pod in without_node if not pod.spec.node_name and pod.metadata.deletion_timestamp is None]
    return steps


def _tidy(view: View, node: str, wanted: bool, may_delete: MayDelete, steps: Steps) -> None:
    """A node that may keep its pod: ended pods are deleted, and one pod (with surge: one of each template) stays."""
    staying = [pod for pod in view.pods.get(node, []) if pod.metadata.deletion_timestamp is None]
    failed = [pod for pod in staying if pod.status.phase == "Failed" and may_delete(node)]
    succeeded = [pod for pod in staying if pod.status.phase == "Succeeded"]
    running = [pod for pod in staying if not podlib.is_terminated(pod)]
    steps.failed += failed
    steps.succeeded += succeeded
    steps.delete += [*failed, *succeeded]
    if not bounds(view.daemonset, 1)[0]:
        steps.delete += running[1:]
    elif running:
        steps.delete += _beyond_surge(view, running)
    elif wanted:
        steps.create.append(node)


def _beyond_surge(view: View, running: list[Pod]) -> list[Pod]:
    """With surge an old and a new pod may run together, until the new one is available or the old one is not ready."""
    new = [pod for pod in running if pod.metadata.labels.get(POD_LABEL) == view.hash]
    old = [pod for pod in running if pod.metadata.labels.get(POD_LABEL) != view.hash]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not podlib.is_ready(old[0]) or view.available(new[0])):
        surplus.append(old[0])
    return surplus


# ------------------------------------------------------------------ from the old template to the new


def roll(view: View) -> Steps:
    if _rolling(view.daemonset) is None:
        return Steps()
    desired = [name for name in view.nodes if view.fits(name)]
    surge, unavailable = bounds(view.daemonset, len(desired))
    nodes = sorted({*view.pods, *desired})
    return _surge(view, nodes, surge, len(desired)) if surge else _replace(view, nodes, unavailable)


def _old_and_new(view: View, node: str) -> tuple[Pod | None, Pod | None] | None:
    """(old, new) of the pods that stay on a node; None when there are too many of them."""
    staying = [pod for pod in view.pods.get(node, []) if pod.metadata.deletion_timestamp is None]
    new = [pod for pod in staying if view.is_updated(pod)]
    old = [pod for pod in staying if not view.is_updated(pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return (old[0] if old else None), (new[0] if new else None)


def _replace(view: View, nodes: list[str], allowed: int) -> Steps:
    """Old pods that are not available are deleted at once; of the others as many as may be unavailable."""
    unavailable = 0
    broken: list[Pod] = []
    serving: list[Pod] = []
    for node in nodes:
        old, new = _old_and_new(view, node) or (None, None)
        if old is not None and new is None:
            (serving if view.available(old) else broken).append(old)
            unavailable += not view.available(old)
        elif new is None or old is not None or not view.available(new):
            unavailable += 1
    return Steps(delete=[*broken, *serving[: max(0, allowed - unavailable)]])


def _surge(view: View, nodes: list[str], allowed: int, desired: int) -> Steps:
    """New pods beside old ones; on a node that no longer fits, a pod is deleted when enough others are available."""
    steps = Steps()
    waiting, available = 0, 0
    candidates: list[str] = []
    leaving: list[Pod] = []
    for node in nodes:
        both = _old_and_new(view, node)
        if both is None:
            waiting += 1
            continue
        old, new = both
        serving = old if old is not None else new
        available += serving is not None and view.available(serving)
        if old is None:
            continue
        if new is not None:
            waiting += not view.available(new)
            if view.available(new):
                steps.delete.append(old)
        elif view.fits(node):
            (candidates if view.available(old) else steps.create).append(node)
        else:
            (leaving if view.available(old) else steps.delete).append(old)
    steps.delete += leaving[: max(0, available - desired)]
    steps.create += candidates[: max(0, allowed - waiting)]
    return steps
