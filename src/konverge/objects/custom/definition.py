"""`crd(WebApp)`: the CustomResourceDefinition of one or several classes."""

from __future__ import annotations

import base64
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.objects.codec import from_dict
from konverge.objects.custom.conversion import are_converted
from konverge.objects.custom.resource import Column, CustomResource, Options
from konverge.objects.custom.schema import Schema, SchemaError, schema_of
from konverge.objects.custom.versions import check_same, named_versions, stored_version

if TYPE_CHECKING:
    from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition

APPLY_LIMIT = 262_144
"""Bytes of all annotations of an object. Upstream: TotalAnnotationSizeLimitB (apimachinery's pkg/api/validation)."""

_OBSERVED = "observedGeneration"
_KIND_FIELDS = ("apiVersion", "kind", "metadata")
_PLAIN_PATH = re.compile(r"(\.[A-Za-z0-9_]+)+")
_METADATA_TYPES = {".metadata.creationTimestamp": "date", ".metadata.deletionTimestamp": "date"}


def crd(
    *classes: type[CustomResource[Any, Any]], conversion: Mapping[str, Any] | None = None
) -> CustomResourceDefinition:
    """The definition of a resource; further classes are further versions of it.

    Objects are stored in the version of the class with `storage=True`, else of the first. Versions with functions
    between them (`@converts`) are converted by a webhook: `conversion` says where it is (`webhook_conversion`). Without
    it a Service is named that a manager, or `konverge manifests`, replaces; until then conversions fail and lose
    nothing.
    """
    from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition

    return from_dict(CustomResourceDefinition, crd_dict(*classes, conversion=conversion))


def crd_dict(*classes: type[CustomResource[Any, Any]], conversion: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same as plain data, ready for YAML."""
    if not classes:
        raise TypeError("crd() needs at least one CustomResource class")
    first = classes[0]
    check_same(classes)
    spec = _spec(first, _versions(classes))
    if conversion is None and are_converted(classes):
        conversion = webhook_conversion(first, service=(f"{first.options.singular}-webhook", "default"))
    if conversion is not None:
        spec["conversion"] = dict(conversion)
    definition = _definition(first, spec)
    if (size := len(msgspec.json.encode(definition))) > APPLY_LIMIT:
        warnings.warn(
            f"the definition of {first.resource.group_resource} has {size} bytes: `kubectl apply` keeps it in an "
            f"annotation, which holds {APPLY_LIMIT}; use `kubectl apply --server-side`, or shorten docstrings",
            stacklevel=2,
        )
    return definition


def lone_crd_dict(cls: type[CustomResource[Any, Any]]) -> dict[str, Any]:
    """The definition of one version by itself, also where another version is the stored one: for tests of a class."""
    versions = [_version(version, cls, storage=not index) for index, version in enumerate(cls.options.versions)]
    return _definition(cls, _spec(cls, versions))


def _definition(cls: type[CustomResource[Any, Any]], spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": cls.resource.group_resource},
        "spec": spec,
    }


def _spec(cls: type[CustomResource[Any, Any]], versions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "group": cls.resource.group,
        "scope": "Namespaced" if cls.resource.namespaced else "Cluster",
        "names": _names(cls),
        "versions": versions,
    }


def webhook_conversion(
    cls: type[CustomResource[Any, Any]],
    *,
    service: tuple[str, str] | None = None,
    url: str = "",
    ca_bundle: bytes = b"",
) -> dict[str, Any]:
    """The `spec.conversion` of a definition whose versions a manager converts.

    crd(WebAppV1, WebApp, conversion=webhook_conversion(WebApp, service=("webapp-webhook", "webapp-system")))

    `service` is the name and the namespace of the manager's Service, `url` is for a manager outside of the cluster
    (`https://host:port`), `ca_bundle` has the certificates (PEM) by which the API server knows it; a manager with
    certificates of its own fills them in.
    """
    if (service is None) == (not url):
        raise TypeError("a conversion webhook is reached by service=(name, namespace) or by url=…: give one of them")
    client: dict[str, Any] = {"url": url.rstrip("/") + conversion_path(cls)}
    if service is not None:
        name, namespace = service
        client = {"service": {"name": name, "namespace": namespace, "path": conversion_path(cls), "port": 443}}
    if ca_bundle:
        client["caBundle"] = base64.b64encode(ca_bundle).decode()
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


def conversion_path(cls: type[CustomResource[Any, Any]]) -> str:
    """Where a manager converts objects of this resource."""
    return f"/convert/{cls.resource.group_resource}"


def _names(cls: type[CustomResource[Any, Any]]) -> dict[str, Any]:
    options = cls.options
    names: dict[str, Any] = {
        "kind": cls.resource.kind,
        "listKind": options.list_kind,
        "plural": cls.resource.plural,
        "singular": options.singular,
    }
    if options.short_names:
        names["shortNames"] = list(options.short_names)
    if options.categories:
        names["categories"] = list(options.categories)
    return names


def _versions(classes: tuple[type[CustomResource[Any, Any]], ...]) -> list[dict[str, Any]]:
    stored, _ = stored_version(classes)
    return [_version(version, cls, storage=version == stored) for version, cls in named_versions(classes)]


def _version(name: str, cls: type[CustomResource[Any, Any]], *, storage: bool) -> dict[str, Any]:
    options, schema = cls.options, _object_schema(cls)
    version: dict[str, Any] = {
        "name": name,
        "served": options.served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
    }
    if subresources := _subresources(options):
        version["subresources"] = subresources
    if options.columns:
        version["additionalPrinterColumns"] = [_column(column, schema, cls) for column in options.columns]
    if options.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in options.selectable]
    if options.deprecated:
        version["deprecated"] = True
        if isinstance(options.deprecated, str):
            version["deprecationWarning"] = options.deprecated
    return version


def _object_schema(cls: type[CustomResource[Any, Any]]) -> Schema:
    schema = schema_of(cls)
    properties: dict[str, Schema] = schema["properties"]
    # The server knows these three better than any schema.
    properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    # A status is written later, by the controller: it is never required.
    properties["status"].pop("default", None)
    if _OBSERVED in properties["status"].get("properties", {}) and cls.options.status:
        # Until then no generation was observed. Without this, kstatus (Helm's --wait) takes a new object for ready.
        properties["status"]["default"] = {_OBSERVED: 0}
    if not cls.options.status and "properties" not in properties["status"]:
        del properties["status"]
    if required := [name for name in schema.pop("required", []) if name not in (*_KIND_FIELDS, "status")]:
        schema["required"] = required
    return schema


def _subresources(options: Options) -> dict[str, Any]:
    subresources: dict[str, Any] = {}
    if options.status:
        subresources["status"] = {}
    if options.scale is not None:
        scale = {"specReplicasPath": options.scale.spec, "statusReplicasPath": options.scale.status}
        if options.scale.selector:
            scale["labelSelectorPath"] = options.scale.selector
        subresources["scale"] = scale
    return subresources


def _column(column: Column, schema: Schema, cls: type) -> dict[str, Any]:
    optional = {"format": column.format, "description": column.description, "priority": column.priority}
    return {
        "name": column.name,
        "type": column.type or _column_type(column, schema, cls),
        "jsonPath": column.path,
        **{key: value for key, value in optional.items() if value},
    }


def _column_type(column: Column, schema: Schema, cls: type) -> str:
    """The type of the field that a plain path leads to. What filters and indexes find is shown as text."""
    if column.path in _METADATA_TYPES or column.path.startswith(".metadata.") or not _PLAIN_PATH.fullmatch(column.path):
        return _METADATA_TYPES.get(column.path, "string")
    for name in column.path.split(".")[1:]:
        schema = schema.get("properties", {}).get(name) or schema.get("additionalProperties") or {}
        if not schema:
            raise SchemaError(
                f"{cls.__name__}: column {column.name!r} shows {column.path}, and there is no {name!r} in it"
            )
    kind = schema.get("type", "string")
    if schema.get("format") == "date-time":
        return "date"
    return kind if kind in ("string", "integer", "number", "boolean") else "string"
