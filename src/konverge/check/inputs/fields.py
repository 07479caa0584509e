"""The fields of a custom resource, from the structural schema of its definition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from konverge.apiserver.crd.schema.structural import schema_of
from konverge.check.inputs import core_types, paths
from konverge.check.inputs.core_types import Schema
from konverge.check.model import Obj

DEEPEST = 9
"""Parts of a path. Below, only core types go on, and these are treated as a whole."""

_PARTS_OF_INTEREST = frozenset(
    {
        "PodTemplateSpec", "PodSpec", "Container", "StatefulSetSpec", "DeploymentSpec", "ServiceSpec", "ObjectMeta",
        "Volume", "PersistentVolumeClaimSpec", "PersistentVolumeClaimTemplate", "Template", "JobSpec", "CronJobSpec",
        "JobTemplateSpec",
    }
)  # fmt: skip
"""Core types whose own fields are fields to change; all others are changed as a whole."""

_RARELY = re.compile(
    r"(dnsConfig|ephemeralContainers|hostAliases|readinessGates|overhead|resizePolicy|volumeDevices|lifecycle|setHostnameAsFQDN"
    r"|managedFields|ownerReferences|generateName|dataSource|dataSourceRef|stdin|stdinOnce|tty|subdomain|os|schedulingGates"
    r"|namespace|finalizers|apiVersion|kind|conditions|resourceClaims|hostUsers|enableServiceLinks|preemptionPolicy|clusterIPs?|ipFamil.*|healthCheckNodePort)"
)  # fmt: skip
"""Fields of composite core types that operators hardly ever treat themselves: they are carried over as they are."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One property of the spec. `core` is the built-in type that it is, by its shape ("Affinity", "Image", …) or ""."""

    path: paths.Path
    schema: Schema
    core: str = ""
    inside: str = ""
    """The nearest composite core type around it ("PodSpec"), or ""."""
    required: bool = False
    given: bool = False
    """The sample has a value."""
    switch: paths.Path = ()
    """The `enabled` beside it (or beside a parent of it), without which it has no meaning."""

    def __str__(self) -> str:
        return paths.text(self.path)

    @property
    def name(self) -> str:
        return str(next((part for part in reversed(self.path) if isinstance(part, str)), ""))

    @property
    def depth(self) -> int:
        return sum(isinstance(part, str) for part in self.path) - 1

    @property
    def kind(self) -> str:
        """object, map, array, string, integer, number, boolean, int-or-string, or "" for anything."""
        if self.schema.get("x-kubernetes-int-or-string"):
            return "int-or-string"
        kind = str(self.schema.get("type", ""))
        return "map" if kind == "object" and not self.schema.get("properties") else kind

    @property
    def default(self) -> Any:
        return self.schema.get("default")


def schema_for(definition: Obj, version: str) -> Schema:
    """The schema of one version of a definition; that of another, if this one leaves the spec open."""
    spec = definition["spec"]
    versions = spec.get("versions") or [{"name": spec.get("version")}]
    schemas = {
        item["name"]: schema_of(item.get("schema")) or schema_of(spec.get("validation")) or {} for item in versions
    }
    if version not in schemas:
        known = ", ".join(map(str, schemas))
        raise LookupError(
            f"{definition['metadata']['name']} has no version {version!r}, only {known}: correct the sample"
        )
    return max((schemas[version], *schemas.values()), key=lambda schema: bool(_spec(schema).get("properties")))


def _spec(schema: Schema) -> Schema:
    return (schema.get("properties") or {}).get("spec") or {}


def fields(definition: Obj, version: str, sample: Obj) -> list[Field]:
    """All fields of spec that a user can set, those near the root first.

        for field in fields(definition, "v1", sample):
            print(field, field.core)

    Items of lists and of maps stand for all of their kind: the first that the sample has, or one that would be added.
    """
    schema = _spec(schema_for(definition, version))
    scale = _scale_path(definition, version)
    seen = list(_below(("spec",), schema, sample, "", ()))
    seen = [_as_replicas(field) if paths.text(field.path) == scale else field for field in seen]
    return sorted(seen, key=lambda field: (field.depth, not field.given))


def _scale_path(definition: Obj, version: str) -> str:
    """The path that the scale subresource names: the replicas, whatever they are called."""
    for item in definition["spec"].get("versions") or ():
        if item["name"] == version:
            scale = (item.get("subresources") or {}).get("scale") or {}
            return str(scale.get("specReplicasPath", "")).removeprefix(".")
    return ""


def _as_replicas(field: Field) -> Field:
    return msgspec.structs.replace(field, core="Replicas")


def _below(path: paths.Path, schema: Schema, sample: Obj, inside: str, switch: paths.Path) -> Iterator[Field]:
    properties = schema.get("properties") or {}
    switch = _switch(path, properties) or switch
    required = set(schema.get("required") or ())
    for name, sub in properties.items():
        if inside and _RARELY.fullmatch(name):
            continue
        yield from _field((*path, name), sub, sample, inside, switch, required=name in required)


def _switch(path: paths.Path, properties: Mapping[str, Schema]) -> paths.Path:
    for name in ("enabled", "enable"):
        if (properties.get(name) or {}).get("type") == "boolean":
            return (*path, name)
    return ()


def _field(
    path: paths.Path, schema: Schema, sample: Obj, inside: str, switch: paths.Path, *, required: bool
) -> Iterator[Field]:
    value = paths.get(sample, path)
    schema = core_types.substitute(str(path[-1]), str(path[-2]), schema)
    core = _core(path, schema, value, inside)
    field = Field(
        path=path,
        schema=schema,
        core=core,
        inside=inside,
        required=required,
        given=value is not paths.ABSENT,
        switch=() if switch == path else switch,
    )
    yield field
    if len(path) >= DEEPEST or (core and core not in _PARTS_OF_INTEREST and field.kind in ("object", "array", "map")):
        return
    around = core if core in _PARTS_OF_INTEREST else inside
    if field.kind == "object":
        yield from _below(path, schema, sample, around, switch)
    elif field.kind == "array":
        yield from _items((*path, 0), schema.get("items") or {}, sample, around, switch)
    elif field.kind == "map" and isinstance(schema.get("additionalProperties"), Mapping):
        key = next(iter(value), "") if isinstance(value, dict) else ""
        yield from _items((*path, key or f"{field.name}-a"), schema["additionalProperties"], sample, around, switch)


def _items(path: paths.Path, schema: Schema, sample: Obj, inside: str, switch: paths.Path) -> Iterator[Field]:
    """The fields of an item, if it has any."""
    if schema.get("properties"):
        core = core_types.recognised(schema)
        if not core or core in _PARTS_OF_INTEREST:
            yield from _below(path, schema, sample, core or inside, switch)


def _core(path: paths.Path, schema: Schema, value: Any, inside: str) -> str:
    named = [part for part in path if isinstance(part, str)]
    value = schema.get("default") if value is paths.ABSENT else value
    if schema.get("type") == "array" and (schema.get("items") or {}).get("properties"):
        core = core_types.recognised(schema["items"])
        return f"{core}s" if core else ""
    core = core_types.recognised(schema)
    if core == "VolumeResourceRequirements" and not inside.startswith("PersistentVolumeClaim"):
        return "ResourceRequirements"  # the same shape, since `claims` are of a newer Kubernetes than most definitions
    return core or core_types.recognised_value(named[-1], named[-2], schema, value)
