"""The built-in kinds: where the request path finds the `Strategy` of a kind.

Each group is a module (or a package) with a table `STRATEGIES` by kind; the kinds of the core group are found one by
one. A module is imported when one of its kinds is first asked for: a server that only ever sees ConfigMaps never loads
the rules of batch or of pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from konverge.apiserver.strategy import Strategy

MODULES = {
    "admissionregistration.k8s.io": "admissionregistration",
    "apiextensions.k8s.io": "apiextensions",
    "apiregistration.k8s.io": "apiregistration",
    "apps": "apps",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "certificates.k8s.io": "certificates",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "events.k8s.io": "core.events",
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

CORE = {
    "ConfigMap": "config_data.CONFIG_MAP",
    "Endpoints": "service.endpoints.ENDPOINTS",
    "Event": "events.EVENT",
    "LimitRange": "limit_ranges.LIMIT_RANGE",
    "Namespace": "namespaces.NAMESPACE",
    "Node": "nodes.NODE",
    "PersistentVolume": "volume.persistent_volumes.PERSISTENT_VOLUME",
    "PersistentVolumeClaim": "volume.claims.PERSISTENT_VOLUME_CLAIM",
    "Pod": "pod.strategy.POD",
    "PodTemplate": "replication_controllers.POD_TEMPLATE",
    "ReplicationController": "replication_controllers.REPLICATION_CONTROLLER",
    "ResourceQuota": "quotas.RESOURCE_QUOTA",
    "Secret": "config_data.SECRET",
    "Service": "service.strategy.SERVICE",
    "ServiceAccount": "service_accounts.SERVICE_ACCOUNT",
}
"""Module and name of the strategy. ComponentStatus and Binding have none: one is read only, one is a request."""

PLAIN = Strategy()
"""A kind without declarations: stored as it comes."""


def lookup(group: str, kind: str) -> Strategy:
    """The strategy of a built-in kind; a kind without declarations gets `PLAIN`."""
    if not group:
        module, _, name = CORE.get(kind, "").rpartition(".")
        strategy: Strategy = getattr(import_module(f"{__name__}.core.{module}"), name) if module else PLAIN
        return strategy
    if group not in MODULES:
        return PLAIN
    table: Mapping[str, Strategy] = import_module(f"{__name__}.{MODULES[group]}").STRATEGIES
    return table.get(kind, PLAIN)
