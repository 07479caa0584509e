"""Stored objects in the version that is stored now.

After another version became the stored one, objects stay as they were stored until something writes them, and
`status.storedVersions` of the definition names all versions that may be in the storage: none of them can be removed.
`migrate_stored_versions` has every object written again, and then trims the list.

Upstream: the storage version migrator (kubernetes-sigs/kube-storage-version-migrator).
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from konverge.client import Client, JsonPatch, MergePatch, NotFound
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.resource import Resource

KNOWN_AFTER = 5.0
"""Seconds until all API servers of a cluster store by a changed definition, which each of them learns of by a watch.
Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go waits as long before a definition counts as
established."""


async def migrate_stored_versions(client: Client, definition: str) -> int:
    """Store all objects of a definition (`webapps.apps.example.com`) in its stored version; returns how many there are.

    await migrate_stored_versions(client, WebApp.resource.group_resource)

    It may run at any time and be repeated: a patch without a change is written by the API server only where the stored
    form is another one. It waits for five seconds first: an API server that does not know the definition yet would
    leave objects as they are. Raises Invalid when the definition was changed meanwhile; then the list stays as it was.
    """
    present = await client.get(CustomResourceDefinition, definition)
    stored = next(each for each in present.spec.versions if each.storage)
    if present.status.stored_versions == [stored.name]:
        return 0
    names, scope = present.spec.names, present.spec.scope
    resource = Resource(present.spec.group, stored.name, names.kind, names.plural, scope == "Namespaced")
    await asyncio.sleep(KNOWN_AFTER)
    count = 0
    async with aclosing(client.each(resource, consistent=False)) as objects:
        async for obj in objects:
            metadata = obj["metadata"]
            try:
                await client.patch(resource, metadata["name"], MergePatch({}), metadata.get("namespace", ""))
            except NotFound as error:
                if error.kind_missing:
                    raise  # by an API server that does not serve this version
                continue  # deleted meanwhile
            count += 1
    unchanged: list[dict[str, Any]] = [
        # Not only the stored version, which may have been another one for a while.
        {"op": "test", "path": "/metadata/generation", "value": present.metadata.generation},
        {"op": "test", "path": "/metadata/uid", "value": present.metadata.uid},
        {"op": "test", "path": "/status/storedVersions", "value": present.status.stored_versions},
    ]
    trim = {"op": "replace", "path": "/status/storedVersions", "value": [stored.name]}
    await client.patch_sub(CustomResourceDefinition, definition, "status", JsonPatch([*unchanged, trim]))
    return count
