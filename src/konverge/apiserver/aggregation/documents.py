"""Groups of other servers in discovery, beside our own.

Upstream: kube-aggregator/pkg/apiserver/handler_discovery.go, handler_apis.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from konverge.apiserver.crd.definition.naming import version_rank
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.aggregation.registered import Aggregation, Remote

CUSTOM_PRIORITY = 1000
"""Of the groups of custom resources. Upstream: autoregister (crdregistration_controller.go)."""


def by_group(aggregation: Aggregation) -> dict[str, list[Remote]]:
    """The APIServices of each group, the version that is preferred first."""
    groups: dict[str, list[Remote]] = {}
    for remote in sorted(aggregation.all(), key=lambda one: (-one.version_priority, version_rank(one.version))):
        groups.setdefault(remote.group, []).append(remote)
    return groups


def ordered(groups: dict[str, list[Remote]], own: Iterable[str], is_builtin: Callable[[str], bool]) -> list[str]:
    """All groups as they are listed: the built-in ones, then by their priority, then by name."""
    own = list(own)
    builtin = [group for group in own if is_builtin(group)]

    def rank(group: str) -> tuple[int, str]:
        remotes = groups.get(group)
        return (-(max(one.group_priority for one in remotes) if remotes else CUSTOM_PRIORITY), group)

    return builtin + sorted({*own, *groups} - set(builtin), key=rank)


def group_entry(group: str, remotes: list[Remote], own: Obj | None) -> Obj:
    """A group of `/apis`; its own versions, if it has some, come first."""
    versions = list(own["versions"]) if own is not None else []
    versions += [{"groupVersion": f"{group}/{one.version}", "version": one.version} for one in remotes]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def aggregated_group(aggregation: Aggregation, group: str, remotes: list[Remote] | None, own: Obj | None) -> Obj:
    """A group of the aggregated document."""
    versions = list(own["versions"]) if own is not None else []
    versions += [_version(aggregation, remote) for remote in remotes or ()]
    return {"metadata": own["metadata"] if own is not None else {"name": group}, "versions": versions}


def _version(aggregation: Aggregation, remote: Remote) -> Obj:
    known = aggregation.offer(remote)
    version: Obj = {"version": remote.version}
    if known is not None and known.resources:
        version["resources"] = known.resources
    return {**version, "freshness": "Stale" if known is None else "Current"}
