"""Small objects to reconcile."""

from __future__ import annotations

from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta

SPACE = "default"


def secret(name: str, **data: str) -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace=SPACE), string_data=data)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=SPACE), data=data)
