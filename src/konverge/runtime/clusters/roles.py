"""What controllers of several clusters need to be allowed, at home and in the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from konverge.runtime.clusters.feeds import across_clusters, within_one_cluster
from konverge.runtime.declare import Controller
from konverge.runtime.rbac import Permission, permissions
from konverge.runtime.relations import CACHE_VERBS


def at_home(controllers: Sequence[Controller[Any]]) -> list[Controller[Any]]:
    """Those that run in the home cluster, with what they watch there."""
    return [within_one_cluster(controller) for controller in controllers if controller.clusters != "others"]


def permissions_elsewhere(controllers: Sequence[Controller[Any]]) -> list[Permission]:
    """What they need in each of the other clusters, as far as it is declared."""
    running = [within_one_cluster(controller) for controller in controllers if controller.clusters != "home"]
    needed = set(permissions(running))
    for controller in controllers:
        for watch in across_clusters(controller):
            resource = watch.kind.resource
            declared = controller.namespaces if watch.namespaces is None else watch.namespaces
            for namespace in (declared if resource.namespaced else ()) or ("",):
                needed |= {Permission(resource.group, resource.plural, verb, namespace) for verb in CACHE_VERBS}
    return sorted(needed)
