"""One worker per client library, all doing the same with the same objects; results are typed where there are types.

Two kinds of objects: a ConfigMap of a kilobyte and a half, where the client's own work shows, and a Deployment of five
kilobytes (half of them managedFields), where decoding does. Asynchronous peers keep `FLIGHT` requests in flight, as a
controller's workers do; synchronous ones do what their users do, one at a time.

The actions: `create`, `get` and `list` are what they say; `watch` is measured from its first event on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

FLIGHT = 8
T = TypeVar("T")


async def spread(items: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
    """Do the work for every item, `FLIGHT` at a time."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(FLIGHT)))


def manifest(kind: str, name: str, namespace: str) -> dict[str, Any]:
    return _config_map(name, namespace) if kind == "ConfigMap" else _deployment(name, namespace)


def _labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "bench"}


def _config_map(name: str, namespace: str) -> dict[str, Any]:
    data = {f"setting-{index}": f"the value of setting {index}" for index in range(8)}
    data["application.yaml"] = "".join(
        f"section-{index}:\n  enabled: true\n  limit: {index}00\n" for index in range(10)
    )
    metadata = {"name": name, "namespace": namespace, "labels": _labels(name)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _deployment(name: str, namespace: str) -> dict[str, Any]:
    labels = _labels(name)
    containers = [_container("main", 8080), _container("proxy", 8081)]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def _container(name: str, port: int) -> dict[str, Any]:
    return {
        "name": name,
        "image": f"registry.example.com/bench/{name}:1.4.2",
        "ports": [{"name": name, "containerPort": port}],
        "env": [{"name": f"SETTING_{index}", "value": f"value of setting {index}"} for index in range(5)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": port}, "periodSeconds": 5},
    }


def names(count: int) -> list[str]:
    return [f"web-{index:04}" for index in range(count)]
