"""The arithmetic that every rollout must keep: how many pods there may be, and how many must be available.

Kept from the store's own events, so it sees each change and no cache stands between. Wishes change while controllers
act on the ones before, so bounds are those of the present wish or of the one before it, whichever allows more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

from konverge.apiserver.storage import Event

Obj = dict[str, Any]


@dataclass(slots=True)
class _Deployment:
    name: str
    replicas: int = 0
    before: int = 0
    surge: int = 0
    unavailable: int = 0
    rolling: bool = True
    ending: bool = False


@dataclass(slots=True)
class _Set:
    """A ReplicaSet."""

    name: str
    owner: str
    replicas: int = 0
    before: int = 0


LAG = 30.0
"""Seconds by which a controller may learn later that a pod is not ready any more; until then it counts on it."""


@dataclass(slots=True)
class _Pod:
    owner: str
    ready: bool
    alive: bool
    was_ready: float = -LAG
    """When it was last seen ready."""


@dataclass(slots=True)
class Rollouts:
    """By uid: what there is."""

    _deployments: dict[str, _Deployment] = field(default_factory=dict)
    _sets: dict[str, _Set] = field(default_factory=dict)
    _pods: dict[str, _Pod] = field(default_factory=dict)
    _now: float = 0.0

    def changed(self, table: str, event: Event) -> str:
        """Take a change in; the answer is what it violates."""
        take = {"apps/deployments": self._deployment, "apps/replicasets": self._set, "/pods": self._pod}.get(table)
        if take is None:
            return ""
        obj: Obj = event.shown.decode()
        self._now = event.time
        return take(obj["metadata"]["uid"], obj, gone=event.record is None)

    def _deployment(self, uid: str, obj: Obj, *, gone: bool) -> str:
        if gone:
            self._deployments.pop(uid, None)
            return ""
        spec = obj["spec"]
        known = self._deployments.setdefault(uid, _Deployment(obj["metadata"]["name"]))
        replicas = spec.get("replicas", 1)
        if replicas != known.replicas:
            known.before, known.replicas = known.replicas, replicas
        rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
        known.rolling = (spec.get("strategy") or {}).get("type") == "RollingUpdate"
        known.surge = _amount(rolling.get("maxSurge", 0), replicas, up=True)
        known.unavailable = _amount(rolling.get("maxUnavailable", 0), replicas, up=False)
        if known.surge == known.unavailable == 0:
            known.unavailable = 1
        known.ending = bool(obj["metadata"].get("deletionTimestamp"))
        return ""

    def _set(self, uid: str, obj: Obj, *, gone: bool) -> str:
        if gone:
            self._sets.pop(uid, None)
            return ""
        known = self._sets.setdefault(uid, _Set(obj["metadata"]["name"], ""))
        known.owner = _controller(obj)
        replicas = obj["spec"].get("replicas", 1)
        grown = replicas > known.replicas
        if replicas != known.replicas:
            known.before, known.replicas = known.replicas, replicas
        owner = self._deployments.get(known.owner)
        if owner is None or not grown or not owner.rolling:
            return ""
        total = sum(one.replicas for one in self._sets.values() if one.owner == known.owner)
        allowed = max(owner.replicas, owner.before) + owner.surge
        return f"Deployment {owner.name} asks for {total} pods, {allowed} are allowed" if total > allowed else ""

    def _pod(self, uid: str, obj: Obj, *, gone: bool) -> str:
        before = self._pods.get(uid)
        if gone:
            self._pods.pop(uid, None)
            return ""
        meta, status = obj["metadata"], obj.get("status") or {}
        alive = not meta.get("deletionTimestamp") and status.get("phase") not in ("Succeeded", "Failed")
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
        seen_ready = self._now if ready or (before is not None and before.ready) else -LAG
        now = self._pods[uid] = _Pod(
            _controller(obj), ready, alive, max(seen_ready, before.was_ready if before else -LAG)
        )
        if before is None:
            return self._surplus(now.owner, meta["name"])
        if before.alive and before.ready and meta.get("deletionTimestamp"):
            return self._missed(now.owner, meta["name"])
        return ""

    def _surplus(self, uid: str, name: str) -> str:
        owner = self._sets.get(uid)
        if owner is None:
            return ""
        count = sum(one.alive for one in self._pods.values() if one.owner == uid)
        allowed = max(owner.replicas, owner.before)
        return (
            f"pod {name} is one too many: ReplicaSet {owner.name} has {count} of {allowed}" if count > allowed else ""
        )

    def _missed(self, uid: str, name: str) -> str:
        owner = self._sets.get(uid)
        whole = self._deployments.get(owner.owner) if owner is not None else None
        if owner is None or whole is None or whole.ending or not whole.rolling:
            return ""
        sets = {key for key, one in self._sets.items() if one.owner == owner.owner}
        left = sum(
            one.alive and (one.ready or self._now - one.was_ready < LAG)
            for one in self._pods.values()
            if one.owner in sets
        )
        needed = min(whole.replicas, whole.before or whole.replicas) - whole.unavailable
        if left + 1 < needed or left >= needed:
            return ""
        return f"without pod {name} Deployment {whole.name} has {left} pods ready, {needed} are needed"


def _controller(obj: Obj) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), "")


def _amount(value: int | str, replicas: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = replicas * int(value.rstrip("%")) / 100
    return ceil(share) if up else floor(share)
