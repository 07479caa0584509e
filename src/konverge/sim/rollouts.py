"""The arithmetic that every rollout must keep: how many pods there may be, and how many must be available.

Kept from the store's own events, so it sees each change and no cache stands between. Controllers have nothing but their
caches, so each of their writes is judged by what its writer saw (`observations`), with nothing forgiven beyond that:

- A ReplicaSet controller makes no pod beyond the size that it saw, whatever else there is in the store. It deletes no
  more than it saw to be too much, and no ready pod before one that is not; it never takes a pod for alive that
  it has deleted itself; and it reports no more pods as available than it saw.
- No other actor deletes a pod of a set, as long as the set is there and the pod's node was never drained or tainted.
- A Deployment controller lets its sets ask for no more pods than the desired that it saw allows.
- When it makes a set smaller, it counts on pods that the sets have reported. What the set then deletes must leave
  enough of them: those that are ready, and those that were in these reports and have been lost since by other hands,
  which the controllers could not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

from konverge.apiserver.storage import Event
from konverge.objects.kinds.apps_v1 import Deployment, ReplicaSet
from konverge.sim import observations
from konverge.sim.observations import Observation

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Desired:
    """What a Deployment asks for."""

    replicas: int
    surge: int
    unavailable: int
    rolling: bool
    ending: bool

    @property
    def needed(self) -> int:
        """Pods that must be available."""
        return self.replicas - self.unavailable


@dataclass(frozen=True, slots=True)
class _Order:
    """A set was made smaller, because these pods were counted on and so many are needed."""

    version: int
    replicas: int
    counted: frozenset[str]
    needed: int


@dataclass(slots=True)
class _Report:
    """The status of a set, from this version on, and the available pods that were last seen behind it."""

    version: int
    claimed: int
    pods: frozenset[str]


@dataclass(slots=True)
class _Set:
    """A ReplicaSet."""

    name: str
    owner: str = ""
    replicas: int = 0
    ending: bool = False
    orders: list[_Order] = field(default_factory=list)
    reports: list[_Report] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Pod:
    owner: str
    node: str
    ready: bool
    alive: bool
    marked: bool

    @property
    def available(self) -> bool:
        return self.alive and self.ready


class Rollouts:
    """By uid: what there is."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._deployments: dict[str, _Desired] = {}
        self._sets: dict[str, _Set] = {}
        self._pods: dict[str, _Pod] = {}
        self._dismissed: set[str] = set()
        """Pods that were deleted by the controller of their set."""
        self._left: set[str] = set()
        """Nodes that are gone, or that pods once had to leave."""
        self._takers = {
            "apps/deployments": self._deployment,
            "apps/replicasets": self._set,
            "/pods": self._pod,
            "/nodes": self._node,
        }

    def changed(self, table: str, event: Event) -> str:
        """Take a change in; the answer is what it violates."""
        take = self._takers.get(table)
        if take is None:
            return ""
        obj: Obj = event.shown.decode()
        return take(obj["metadata"]["uid"], obj, event, observations.current())

    def ended(self, observed: Observation) -> str:
        """A reconcile went well: the status of its set stands, by what it saw. The answer is what that violates.

        (One that failed need not know what it has done: the answer to a deletion may have been lost.)
        """
        known = self._sets.get(observed.uid)
        if observed.kind is not ReplicaSet or known is None or not known.reports:
            return ""
        report = known.reports[-1]
        report.pods = _seen_available(observed)
        if report.claimed <= len(report.pods):
            return ""
        return f"ReplicaSet {known.name} reports {report.claimed} available pods, its controller saw {len(report.pods)}"

    # -------------------------------------------------------------- Deployments and their sets

    def _deployment(self, uid: str, obj: Obj, event: Event, observed: Observation | None) -> str:
        if event.record is None:
            self._deployments.pop(uid, None)
        else:
            self._deployments[uid] = _desired(obj)
            self._names[uid] = obj["metadata"]["name"]
        return ""

    def _set(self, uid: str, obj: Obj, event: Event, observed: Observation | None) -> str:
        if event.record is None:
            self._sets.pop(uid, None)
            return ""
        known = self._sets.setdefault(uid, _Set(obj["metadata"]["name"]))
        known.owner, known.ending = _controller(obj), bool(obj["metadata"].get("deletionTimestamp"))
        before, known.replicas = known.replicas, obj["spec"].get("replicas", 1)
        if observed is None:
            return ""
        if observed.kind is ReplicaSet and observed.uid == uid:
            claimed = (obj.get("status") or {}).get("availableReplicas", 0)
            known.reports.append(_Report(event.revision, claimed, _seen_available(observed)))
        elif observed.kind is Deployment and observed.uid == known.owner:
            if known.replicas < before:
                order = _Order(event.revision, known.replicas, self._counted(observed), _desired(observed.obj()).needed)
                known.orders.append(order)
            elif known.replicas > before:
                return self._surge(observed)
        return ""

    def _surge(self, observed: Observation) -> str:
        desired = _desired(observed.obj())
        total = sum(replicaset.replicas for replicaset in self._sets.values() if replicaset.owner == observed.uid)
        allowed = desired.replicas + desired.surge
        if not desired.rolling or total <= allowed:
            return ""
        return f"Deployment {self._names[observed.uid]} asks for {total} pods, {allowed} are allowed"

    def _counted(self, observed: Observation) -> frozenset[str]:
        """The pods behind the reports that a Deployment's controller saw."""
        keys: set[str] = set()
        for uid, record in observed.owned(ReplicaSet):
            known = self._sets.get(uid)
            seen = [report for report in known.reports if report.version <= record.version] if known else []
            keys |= seen[-1].pods if seen else frozenset()
        return frozenset(keys)

    # -------------------------------------------------------------- nodes and pods

    def _node(self, uid: str, obj: Obj, event: Event, observed: Observation | None) -> str:
        name, taints = obj["metadata"]["name"], obj["spec"].get("taints") or ()
        if event.record is None or any(taint["effect"] == "NoExecute" for taint in taints):
            self._left.add(name)
        return ""

    def _pod(self, uid: str, obj: Obj, event: Event, observed: Observation | None) -> str:
        before = self._pods.pop(uid, None)
        if event.record is None:
            return ""
        now = self._pods[uid] = _pod(obj)
        self._names[uid] = obj["metadata"]["name"]
        own = observed if observed is not None and observed.kind is ReplicaSet and observed.uid == now.owner else None
        if before is None:
            return self._surplus(uid, own) if own is not None else ""
        if not now.marked or before.marked:
            return ""
        return self._dismiss(uid, own) if own is not None else self._taken(uid, before)

    def _taken(self, uid: str, pod: _Pod) -> str:
        """Another actor deletes a pod."""
        owner = self._sets.get(pod.owner)
        if not pod.alive or owner is None or owner.ending or pod.node in self._left:
            return ""
        return f"pod {self._names[uid]} is deleted by another than its set, which is there, and so is its node"

    def _surplus(self, uid: str, observed: Observation) -> str:
        count = sum(pod.alive for pod in self._pods.values() if pod.owner == observed.uid)
        desired = _replicas(observed.obj())
        if count <= desired:
            return ""
        name = observed.obj()["metadata"]["name"]
        return f"pod {self._names[uid]} is one too many: ReplicaSet {name} has {count} of {desired}"

    def _dismiss(self, uid: str, observed: Observation) -> str:
        """The controller of a set deletes one of its pods."""
        seen = {key: pod for key, record in observed.pods().items() if (pod := _pod(record)).alive}
        forgotten = [key for key in seen if key in self._dismissed and key not in observed.dismissed]
        observed.dismissed.add(uid)
        self._dismissed.add(uid)
        name = self._names[uid]
        if forgotten:
            unseen = self._named(forgotten)
            return f"pod {name} is deleted by a controller that has not yet seen its own deletion of {unseen}"
        surplus = len(seen) - _replicas(observed.obj())
        if len(observed.dismissed) > surplus:
            return f"pod {name} is deleted although only {surplus} were seen to be too much"
        ready = {key for key, pod in seen.items() if pod.ready}
        if len(observed.dismissed & ready) > max(0, surplus - (len(seen) - len(ready))):
            return f"pod {name}, which is ready, is deleted before {self._named(seen.keys() - ready)}, which is not"
        return self._missed(uid, observed) if uid in ready else ""

    def _missed(self, uid: str, observed: Observation) -> str:
        known, desired = self._sets.get(observed.uid), _replicas(observed.obj())
        whole = self._deployments.get(known.owner) if known is not None else None
        if known is None or whole is None or whole.ending or not whole.rolling:
            return ""
        orders = [order for order in known.orders if order.version <= observed.version]
        if not orders or orders[-1].replicas != desired:
            return ""  # the set was not scaled down: it had one too many
        sets = {key for key, replicaset in self._sets.items() if replicaset.owner == known.owner}
        there = {key for key, pod in self._pods.items() if pod.available and pod.owner in sets}
        left = len(there | (orders[-1].counted - self._dismissed))
        needed = min(orders[-1].needed, whole.needed)
        if left >= needed:
            return ""
        name = self._names[known.owner]
        return f"without pod {self._names[uid]} Deployment {name} has {left} pods ready, {needed} are needed"

    def _named(self, uids: Iterable[str]) -> str:
        return ", ".join(sorted(self._names[uid] for uid in uids))


def _pod(obj: Obj) -> _Pod:
    meta, status = obj["metadata"], obj.get("status") or {}
    marked = bool(meta.get("deletionTimestamp"))
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions") or ()
    )
    alive = not marked and status.get("phase") not in ("Succeeded", "Failed")
    return _Pod(_controller(obj), obj["spec"].get("nodeName", ""), ready, alive, marked)


def _seen_available(observed: Observation) -> frozenset[str]:
    return frozenset(
        uid for uid, pod in observed.pods().items() if _pod(pod).available and uid not in observed.dismissed
    )


def _desired(obj: Obj) -> _Desired:
    spec = obj["spec"]
    strategy = spec.get("strategy") or {}
    rolling, replicas = strategy.get("rollingUpdate") or {}, _replicas(obj)
    surge = _amount(rolling.get("maxSurge", 0), replicas, up=True)
    unavailable = _amount(rolling.get("maxUnavailable", 0), replicas, up=False)
    return _Desired(
        replicas=replicas,
        surge=surge,
        unavailable=min(replicas, unavailable if surge or unavailable else 1),
        rolling=strategy.get("type") == "RollingUpdate",
        ending=bool(obj["metadata"].get("deletionTimestamp")),
    )


def _replicas(obj: Obj) -> int:
    replicas: int = obj["spec"].get("replicas", 1)
    return replicas


def _controller(obj: Obj) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _amount(value: int | str, replicas: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = replicas * int(value.rstrip("%")) / 100
    return ceil(share) if up else floor(share)
