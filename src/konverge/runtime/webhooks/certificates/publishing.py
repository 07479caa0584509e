"""The caBundles in the API server's objects, kept as the shared Secret says.

Only entries that are ours are touched: those of our webhooks that name our Service. Each object is read before the
Secret, and written only if it has not changed since: so a replica with an old view never puts an old bundle over a
newer one.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from konverge.client import Client, JsonPatch, NotFound
from konverge.objects.resource import Resource

Obj = dict[str, Any]

_GROUP = "admissionregistration.k8s.io"
_VALIDATING = Resource(_GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False)
_MUTATING = Resource(_GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False)
_DEFINITION = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)

_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The objects that have to know the authority."""

    service: str
    namespace: str
    validating: str = ""
    """The name of the configuration; empty without validating webhooks."""
    mutating: str = ""
    definitions: tuple[str, ...] = ()

    def resources(self) -> Iterator[tuple[Resource, str]]:
        for resource, name in ((_VALIDATING, self.validating), (_MUTATING, self.mutating)):
            if name:
                yield resource, name
        for name in self.definitions:
            yield _DEFINITION, name


class Publisher:
    """Publishes the bundle of the Secret."""

    def __init__(self, client: Client, targets: Targets) -> None:
        self._client = client
        self._targets = targets
        self._missing: set[str] = set()

    async def publish(self, bundle: Callable[[], Awaitable[bytes]]) -> bytes:
        """Bring every object up to date. Returns the bundle that all of them have. Raises Conflict to be called again.

        `bundle` reads the Secret.
        """
        live = await self._live()
        wanted = await bundle()
        text = base64.b64encode(wanted).decode()
        for resource, obj in live:
            self._missing.discard(f"{resource.kind} {obj['metadata']['name']}")
            paths = [path for path, config in self._ours(resource, obj) if config.get("caBundle") != text]
            if paths:
                await self._client.patch(resource, obj["metadata"]["name"], _patch(obj, paths, text))
        return wanted

    async def published(self) -> bytes:
        """What is trusted now, by the objects that are there."""
        bundles = [config.get("caBundle") or "" for live in await self._live() for _, config in self._ours(*live)]
        return b"\n".join(base64.b64decode(bundle) for bundle in dict.fromkeys(bundles))

    async def _live(self) -> list[tuple[Resource, Obj]]:
        live: list[tuple[Resource, Obj]] = []
        for resource, name in self._targets.resources():
            try:
                live.append((resource, await self._client.get(resource, name)))
            except NotFound:
                self._report_missing(resource, name)
        return live

    def _ours(self, resource: Resource, obj: Obj) -> Iterator[tuple[str, Obj]]:
        """(path, clientConfig) of each entry that names our Service."""
        ours = (self._targets.service, self._targets.namespace)
        for path, config in _configs(resource, obj):
            service = config.get("service") or {}
            if (service.get("name"), service.get("namespace")) == ours:
                yield path, config

    def _report_missing(self, resource: Resource, name: str) -> None:
        what = f"{resource.kind} {name}"
        if what not in self._missing:
            self._missing.add(what)
            _log.warning("%s is not there: the API server does not call the webhooks until it is installed", what)


def _configs(resource: Resource, obj: Obj) -> Iterator[tuple[str, Obj]]:
    """(path, clientConfig) of each entry."""
    if resource is _DEFINITION:
        conversion = obj["spec"].get("conversion") or {}
        config = (conversion.get("webhook") or {}).get("clientConfig")
        if config is not None:
            yield "/spec/conversion/webhook/clientConfig", config
        return
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        yield f"/webhooks/{index}/clientConfig", webhook["clientConfig"]


def _patch(obj: Obj, paths: list[str], bundle: str) -> JsonPatch:
    """With the resourceVersion that was read: a Conflict when the object has changed since."""
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": obj["metadata"]["resourceVersion"]}
    return JsonPatch([version, *({"op": "add", "path": f"{path}/caBundle", "value": bundle} for path in paths)])
