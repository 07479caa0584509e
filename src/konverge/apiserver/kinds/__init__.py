"""The built-in kinds: where the request path finds the `Strategy` of a kind.

Each group is a module (or a package) with a table `STRATEGIES` by kind. A group is imported when
one of its kinds is first asked for, so that a server which only ever sees ConfigMaps never loads the rules of batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from konverge.apiserver.strategy import Strategy

MODULES = {
    "": "core",
    "admissionregistration.k8s.io": "admissionregistration",
    "apiextensions.k8s.io": "apiextensions",
    "apiregistration.k8s.io": "apiregistration",
    "apps": "apps",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "certificates.k8s.io": "certificates",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "events.k8s.io": "events",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "networking.k8s.io": "networking",
    "node.k8s.io": "node",
    "policy": "policy",
    "rbac.authorization.k8s.io": "rbac",
    "resource.k8s.io": "resource",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
    "storagemigration.k8s.io": "storagemigration",
}

PLAIN = Strategy()
"""A kind without declarations: stored as it comes."""


def lookup(group: str, kind: str) -> Strategy:
    """The strategy of a built-in kind; a kind without declarations gets `PLAIN`."""
    module = MODULES.get(group)
    if module is None:
        return PLAIN
    table: Mapping[str, Strategy] = import_module(f"{__name__}.{module}").STRATEGIES
    return table.get(kind, PLAIN)
