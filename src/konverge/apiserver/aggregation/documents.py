"""Groups of other servers in discovery, beside our own.

Upstream: kube-aggregator/pkg/apiserver/handler_discovery.go, handler_apis.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from konverge.apiserver.crd.definition.naming import version_rank
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.aggregation.offers import Offer
    from konverge.apiserver.aggregation.registered import Aggregation, Remote

FIRST = "apiregistration.k8s.io"
"""The aggregator's own group, which has no APIService."""
_Ranked = tuple[int, tuple[int, int, int, int, str]]


def by_group(aggregation: Aggregation) -> dict[str, list[Remote]]:
    """The APIServices of each group, the version that is preferred first."""
    groups: dict[str, list[Remote]] = {}
    for remote in sorted(aggregation.all(), key=lambda one: _rank(one.version, one.version_priority)):
        groups.setdefault(remote.group, []).append(remote)
    return groups


def _rank(version: str, priority: int) -> _Ranked:
    return -priority, version_rank(version)


def ordered(aggregation: Aggregation, own: dict[str, Iterable[str]]) -> list[str]:
    """All groups as they are listed, by their priority. `own` has the versions of those that this server answers."""
    groups = by_group(aggregation)

    def rank(group: str) -> tuple[bool, int, str]:
        local = (aggregation.local_priorities(group, version)[0] for version in own.get(group, ()))
        priority = max([*local, *(remote.group_priority for remote in groups.get(group, ()))])
        return group != FIRST, -priority, group

    return sorted({*own, *groups}, key=rank)


def group_entry(aggregation: Aggregation, group: str, remotes: list[Remote], own: Obj | None) -> Obj:
    """A group of `/apis`."""
    others = [{"groupVersion": f"{group}/{one.version}", "version": one.version} for one in remotes]
    versions = _joined(aggregation, group, remotes, own["versions"] if own is not None else [], others)
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def aggregated_group(aggregation: Aggregation, group: str, remotes: list[Remote], own: Obj | None) -> Obj:
    """A group of the aggregated document."""
    others = [_version(aggregation, remote) for remote in remotes]
    versions = _joined(aggregation, group, remotes, own["versions"] if own is not None else [], others)
    return {"metadata": own["metadata"] if own is not None else {"name": group}, "versions": versions}


def _joined(
    aggregation: Aggregation, group: str, remotes: list[Remote], own: list[Obj], others: list[Obj]
) -> list[Obj]:
    """Own versions of a group and those of `remotes`, the preferred one first; a version that is both is the former."""
    known = {entry["version"] for entry in own}
    ranked: list[tuple[_Ranked, Obj]] = []
    for entry in own:
        version = entry["version"]
        ranked.append((_rank(version, aggregation.local_priorities(group, version)[1]), entry))
    for remote, entry in zip(remotes, others, strict=True):
        if remote.version not in known:
            ranked.append((_rank(remote.version, remote.version_priority), entry))
    return [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])]


def _version(aggregation: Aggregation, remote: Remote) -> Obj:
    known = _present(aggregation, remote)
    version: Obj = {"version": remote.version}
    resources = known.served.get((remote.group, remote.version)) if known is not None else None
    if resources:
        version["resources"] = resources
    return {**version, "freshness": "Stale" if known is None else "Current"}


def _present(aggregation: Aggregation, remote: Remote) -> Offer | None:
    """What its server says now; None while it is away.

    The word for one APIService is that for all that name the same Service: one that it does not serve is not stale.
    """
    if remote.available:
        return aggregation.offer(remote)
    same = (one for one in aggregation.all() if one.available and one.backend == remote.backend)
    return next((known for one in same if (known := aggregation.offer(one)) is not None), None)


def specifications(aggregation: Aggregation) -> list[Obj]:
    """The documents of OpenAPI v2, in the order of their priorities; that of a server that is away stays."""
    groups: dict[str, int] = {}
    for remote in aggregation.all():
        groups[remote.group] = max(remote.group_priority, groups.get(remote.group, 0))
    remotes = sorted(aggregation.all(), key=lambda one: (-groups[one.group], one.name))
    offers = (aggregation.offer(remote) for remote in remotes)
    return [known.v2 for known in offers if known is not None and known.v2 is not None]
