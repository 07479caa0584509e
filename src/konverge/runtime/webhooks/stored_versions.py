"""Stored objects in the version that is stored now.

After another version became the stored one, objects stay as they were stored until something writes them, and
`status.storedVersions` of the definition names all versions that may be in the storage: none of them can be removed.
`migrate_stored_versions` has every object written again, and then trims the list.

Upstream: the storage version migrator (kubernetes-sigs/kube-storage-version-migrator).
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from konverge.client import Client, JsonPatch, MergePatch, NotFound
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.resource import Resource


async def migrate_stored_versions(client: Client, definition: str) -> int:
    """Store all objects of a definition (`webapps.apps.example.com`) in its stored version; returns how many there are.

    await migrate_stored_versions(client, WebApp.resource.group_resource)

    It may run at any time and be repeated: a patch without a change is written by the API server only where the stored
    form is another one. Raises Invalid when the definition was changed meanwhile; then the list stays as it was.
    """
    present = await client.get(CustomResourceDefinition, definition)
    index, stored = next((index, each) for index, each in enumerate(present.spec.versions) if each.storage)
    if present.status.stored_versions == [stored.name]:
        return 0
    names, scope = present.spec.names, present.spec.scope
    resource = Resource(present.spec.group, stored.name, names.kind, names.plural, scope == "Namespaced")
    count = 0
    async with aclosing(client.each(resource, consistent=False)) as objects:
        async for obj in objects:
            metadata = obj["metadata"]
            try:
                await client.patch(resource, metadata["name"], MergePatch({}), metadata.get("namespace", ""))
            except NotFound:
                continue  # deleted meanwhile
            count += 1
    unchanged: list[dict[str, Any]] = [
        {"op": "test", "path": "/status/storedVersions", "value": present.status.stored_versions},
        {"op": "test", "path": f"/spec/versions/{index}/name", "value": stored.name},
        {"op": "test", "path": f"/spec/versions/{index}/storage", "value": True},
    ]
    trim = {"op": "replace", "path": "/status/storedVersions", "value": [stored.name]}
    await client.patch_sub(CustomResourceDefinition, definition, "status", JsonPatch([*unchanged, trim]))
    return count
