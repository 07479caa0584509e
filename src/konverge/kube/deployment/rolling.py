"""Rolling updates and scaling: arithmetic on the sizes of replica sets, within surge and availability.

Pure functions decide; the controller writes. `Sizes` are the replicas that the sets should have. The bounds hold in
every intermediate state, because each step counts desired replicas and replicas that are available now, never expected
ones.

Upstream: pkg/controller/deployment/rolling.go, and `scale` in sync.go.
"""

from __future__ import annotations

from konverge.kube.deployment.replicasets import DESIRED, MAXIMUM, bounds, is_rolling, unavailable_allowed
from konverge.kube.pods import descending, replicas_of
from konverge.objects.kinds.apps_v1 import Deployment, ReplicaSet

Sizes = dict[str, int]
"""Name of a replica set -> the replicas it should have; sets that are not named keep theirs."""


def first_size(deployment: Deployment, others: list[ReplicaSet]) -> int:
    """The size with which a new replica set is created."""
    return grown(deployment, 0, sum(replicas_of(rs) for rs in others))


def grown(deployment: Deployment, present: int, all_others: int) -> int:
    """The size to which the new set may grow now. Upstream: NewRSNewReplicas."""
    wanted = replicas_of(deployment)
    if not is_rolling(deployment):
        return wanted
    room = wanted + bounds(deployment)[0] - (present + all_others)
    if room <= 0:
        return present
    return present + max(0, min(room, wanted - present))


def scale_up(deployment: Deployment, new: ReplicaSet, old: list[ReplicaSet]) -> Sizes:
    """The new set towards the desired size. Upstream: reconcileNewReplicaSet."""
    present, wanted = replicas_of(new), replicas_of(deployment)
    if present == wanted:
        return {}
    if present > wanted:
        return {new.metadata.name: wanted}
    size = grown(deployment, present, sum(replicas_of(rs) for rs in old))
    return {new.metadata.name: size} if size != present else {}


# upstream: reconcileOldReplicaSets
def scale_down(deployment: Deployment, new: ReplicaSet, old: list[ReplicaSet]) -> Sizes:
    """Old sets towards zero: first pods that are not available, then as many as availability allows."""
    sizes: Sizes = {rs.metadata.name: replicas_of(rs) for rs in old}
    total = sum(sizes.values()) + replicas_of(new)
    least = replicas_of(deployment) - unavailable_allowed(deployment)
    new_unavailable = replicas_of(new) - available_in(new)
    spare = total - least - new_unavailable
    if spare <= 0 or not any(sizes.values()):
        return {}
    _clean_unhealthy(old, sizes, spare)
    available = sum(available_in(rs) for rs in [*old, new])
    _shrink(old, sizes, available - least)
    return {rs.metadata.name: sizes[rs.metadata.name] for rs in old if sizes[rs.metadata.name] != replicas_of(rs)}


def available_in(rs: ReplicaSet) -> int:
    """Pods of a set that are available and will stay: the status of a set that was just scaled down still counts the
    pods that are being deleted.

    (kube-controller-manager trusts the status, and can fall below the minimum availability when a rollout is scaled.)
    """
    return min(rs.status.available_replicas or 0, replicas_of(rs))


# upstream: cleanupUnhealthyReplicas
def _clean_unhealthy(old: list[ReplicaSet], sizes: Sizes, most: int) -> None:
    for rs in old:
        take = min(replicas_of(rs) - available_in(rs), most)
        sizes[rs.metadata.name] -= take
        most -= take


# upstream: scaleDownOldReplicaSetsForRollingUpdate
def _shrink(old: list[ReplicaSet], sizes: Sizes, most: int) -> None:
    for rs in old:
        take = max(0, min(sizes[rs.metadata.name], most))
        sizes[rs.metadata.name] -= take
        most -= take


# ------------------------------------------------------------------ scaling


def was_scaled(deployment: Deployment, replicasets: list[ReplicaSet]) -> bool:
    """The desired size changed since the sets were last scaled. Upstream: isScalingEvent."""
    wanted = str(replicas_of(deployment))
    return any(replicas_of(rs) and rs.metadata.annotations.get(DESIRED, wanted) != wanted for rs in replicasets)


def rescale(deployment: Deployment, new: ReplicaSet | None, old: list[ReplicaSet]) -> Sizes:
    """Sizes for another number of replicas while the template stays, or the rollout is paused. Upstream: scale."""
    wanted = replicas_of(deployment)
    replicasets = [*old, *([new] if new else [])]
    active = [rs for rs in replicasets if replicas_of(rs)]
    if len(active) <= 1:
        only = active[0] if active else new or (max(old, key=_age) if old else None)
        return {only.metadata.name: wanted} if only is not None else {}
    if new is not None and _is_saturated(deployment, new):
        return {rs.metadata.name: 0 for rs in old if replicas_of(rs)}
    return _proportional(deployment, active, new) if is_rolling(deployment) else {}


def _age(rs: ReplicaSet) -> tuple[str, str]:
    return rs.metadata.creation_timestamp or "", rs.metadata.name


# upstream: IsSaturated
def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    wanted = replicas_of(deployment)
    noted = new.metadata.annotations.get(DESIRED)
    return replicas_of(new) == wanted and noted == str(wanted) and (new.status.available_replicas or 0) == wanted


def _proportional(deployment: Deployment, active: list[ReplicaSet], new: ReplicaSet | None) -> Sizes:
    """Spread the difference over all sets by their size, the leftover going to the largest (or newest)."""
    wanted = replicas_of(deployment)
    allowed = wanted + bounds(deployment)[0] if wanted > 0 else 0
    total = sum(replicas_of(rs) for rs in active)
    add = allowed - total
    ordered = sorted(active, key=lambda rs: (-replicas_of(rs), *(_newest_first(rs) if add > 0 else _age(rs))))
    sizes: Sizes = {}
    added = 0
    for rs in ordered:
        share = _share(rs, deployment, allowed, add, added) if add else 0
        sizes[rs.metadata.name] = replicas_of(rs) + share
        added += share
    first = ordered[0].metadata.name
    sizes[first] = max(0, sizes[first] + add - added)
    return sizes


def _newest_first(rs: ReplicaSet) -> tuple[tuple[int, ...], str]:
    return descending(rs.metadata.creation_timestamp or ""), rs.metadata.name


# upstream: GetReplicaSetProportion, getReplicaSetFraction
def _share(rs: ReplicaSet, deployment: Deployment, allowed: int, add: int, added: int) -> int:
    noted = rs.metadata.annotations.get(MAXIMUM, "")
    before = int(noted) if noted.isdigit() and int(noted) else deployment.status.replicas or allowed
    fraction = _round(replicas_of(rs) * allowed / before) - replicas_of(rs) if before else 0
    left = add - added
    return min(fraction, left) if add > 0 else max(fraction, left)


def _round(number: float) -> int:
    """To the nearest, halves away from zero, as Go rounds."""
    return int(number + 0.5) if number >= 0 else -int(-number + 0.5)
