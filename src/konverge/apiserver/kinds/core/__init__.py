"""The kinds of the core group, each loaded when it is first asked for: a server that only ever sees ConfigMaps never
pays for the rules of pods. ComponentStatus and Binding have no declarations: one is read only, one is a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from konverge.apiserver.strategy import Strategy

_LOCATIONS = {
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


class _Strategies(Mapping[str, Strategy]):
    def __getitem__(self, kind: str) -> Strategy:
        module, _, name = _LOCATIONS[kind].rpartition(".")
        strategy: Strategy = getattr(import_module(f"{__name__}.{module}"), name)
        return strategy

    def __iter__(self) -> Iterator[str]:
        return iter(_LOCATIONS)

    def __len__(self) -> int:
        return len(_LOCATIONS)


STRATEGIES: Mapping[str, Strategy] = _Strategies()
