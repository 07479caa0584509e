"""What the installed versions of KubeVirt and CDI know, by the schemas of their definitions.

The API server removes a field that a definition does not have, without a word: a restore would then go into other
claims, an image would be imported without its checksum. So before anything is touched, what is about to be written is
compared with the schema of its definition. Definitions are large, so they are not cached as objects: what is kept is
which fields there are, for some minutes.

    absent = await state.definitions.lacking(state.ctx.client, restore_for(wukong, snapshot))
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import msgspec

from konverge import clock
from konverge.client import Client, Forbidden, NotFound
from konverge.objects import Object, to_dict
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition

SINCE: dict[str, dict[str, str]] = {
    "VirtualMachineRestore": {"spec.volumeRestorePolicy": "KubeVirt 1.6"},
    "DataVolume": {"spec.source.http.checksum": "CDI 1.65"},
}
"""Fields that the operator writes and that versions in use lack: kind -> path -> the version that has it."""
FRESH = 300.0
"""Seconds for which a schema that has everything is believed."""
AGAIN = 10.0
"""Seconds for which one that lacks something is: an upgrade should be seen soon."""
_log = logging.getLogger(__name__)


class Fields(msgspec.Struct, frozen=True):
    """One level of a schema."""

    names: dict[str, Fields] = msgspec.field(default_factory=dict)
    others: Fields | None = None
    """Of a map: what its values have."""
    entries: Fields | None = None
    """Of a list."""
    free: bool = False
    """Fields that are not named are kept as well."""
    values: tuple[Any, ...] = ()
    """Of an enumeration."""


ANYTHING = Fields(free=True)


def read_schema(schema: dict[str, Any]) -> Fields:
    """The fields of a structural schema.

    >>> sorted(read_schema({"type": "object", "properties": {"a": {"type": "string"}}}).names)
    ['a']
    """
    values, items = schema.get("additionalProperties"), schema.get("items")
    return Fields(
        names={name: read_schema(part) for name, part in (schema.get("properties") or {}).items()},
        others=read_schema(values) if isinstance(values, dict) else ANYTHING if values else None,
        entries=read_schema(items) if isinstance(items, dict) else None,
        free=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        values=tuple(schema.get("enum") or ()),
    )


def absent_fields(fields: Fields, value: Any, since: dict[str, str], path: str = "") -> Iterator[str]:
    """The paths in a value that the API server would remove or refuse.

    A field of `since` must be named where others are, also where unnamed ones are kept: a controller that is too old
    would not look at it.
    """
    if isinstance(value, dict):
        for name, part in value.items():
            inner = f"{path}.{name}" if path else name
            known = fields.names.get(name, fields.others)
            if known is not None:
                yield from absent_fields(known, part, since, inner)
            elif not fields.free or (fields.names and inner in since):
                yield inner
    elif isinstance(value, list) and fields.entries is not None:
        for part in value:
            yield from absent_fields(fields.entries, part, since, f"{path}[]")
    elif fields.values and value not in fields.values:
        yield f"{path}: {value}"


class Definitions:
    """The schemas of definitions, each read when it is needed, and again after a while."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Fields]] = {}
        self._lock = asyncio.Lock()
        """The first of many machines reads a definition; the others wait for it."""

    async def lacking(self, client: Client, child: Object) -> str:
        """What the cluster's version cannot do with a child, as a sentence; empty when it can do all of it."""
        resource = type(child).resource
        since = SINCE.get(resource.kind, {})
        written = {key: value for key, value in to_dict(child).items() if key not in ("apiVersion", "kind", "metadata")}
        for age in (FRESH, AGAIN):
            fields = await self._fields(client, f"{resource.plural}.{resource.group}", resource.version, age)
            absent = sorted(set(absent_fields(fields, written, since)))
            if not absent:
                return ""
        texts = [f"{path} ({since[path]} has it)" if path in since else path for path in absent]
        return f"the installed definition of {resource.kind} lacks {', '.join(texts)}"

    async def _fields(self, client: Client, name: str, version: str, age: float) -> Fields:
        async with self._lock:
            read, fields = self._known.get(name, (0.0, None))
            if fields is None or clock.monotonic() - read >= age:
                fields = await _read(client, name, version)
                self._known[name] = (clock.monotonic(), fields)
            return fields


async def _read(client: Client, name: str, version: str) -> Fields:
    try:
        definition = await client.get(CustomResourceDefinition.resource, name)
    except (Forbidden, NotFound) as error:
        _log.warning("the definition %s cannot be read, so its fields are not checked: %s", name, error)
        return ANYTHING
    spec = definition["spec"]
    schemas = [entry.get("schema") for entry in spec["versions"] if entry["name"] == version]
    if spec.get("preserveUnknownFields") or not schemas or not schemas[0]:
        return ANYTHING
    return read_schema(schemas[0]["openAPIV3Schema"])
