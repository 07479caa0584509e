"""Fields of pods whose feature gates are off in 1.37: a server without the feature drops them.

They are dropped where pods and templates get their defaults, so that every workload is treated alike.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.rules.defaults import each

Obj = dict[str, Any]

_OF_FILES = ("secret", "configMap", "downwardAPI", "projected")


def drop_gated(spec: Obj) -> None:
    """Remove what belongs to alpha features, from the spec of a pod or template."""
    spec.pop("schedulingGroup", None)
    spec.pop("evictionResponders", None)
    for volume in each(spec, "volumes"):
        _volume(volume)
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in each(spec, kind):
            _container(container)


def _volume(volume: Obj) -> None:
    if volume.get("emptyDir"):
        volume["emptyDir"].pop("mode", None)
    for name in _OF_FILES:
        if volume.get(name):
            _owners(volume[name])


def _owners(source: Obj) -> None:
    """Who owns the files of a volume."""
    source.pop("defaultUser", None)
    source.pop("user", None)
    for item in each(source, "items"):
        item.pop("user", None)
    for projection in each(source, "sources"):
        for inner in projection.values():
            if inner:
                _owners(inner)


def _container(container: Obj) -> None:
    for mount in each(container, "volumeMounts"):
        mount.pop("bindMountOptions", None)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name):
            _handler(container[name])
    lifecycle = container.get("lifecycle")
    if not lifecycle:
        return
    for hook in lifecycle.values():
        if isinstance(hook, dict):
            _handler(hook)
    if lifecycle.pop("stopSignal", None) and not lifecycle:
        del container["lifecycle"]


def _handler(handler: Obj) -> None:
    if handler.get("httpGet"):
        handler["httpGet"].pop("protocol", None)
    if handler.get("grpc"):
        handler["grpc"].pop("mode", None)
