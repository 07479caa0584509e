"""Which type of the built-in API a part of a custom resource is, by its shape.

An operator's definition repeats the schemas of the types that it embeds (a PodSpec, an Affinity, a Probe), often of an
older Kubernetes and without some fields. So a subtree is compared with the OpenAPI schemas that the API server ships.
It is of the type whose properties it has, with the same kinds of values. Plain values are recognised by their schema's
form, their name and the value in the sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from konverge.apiserver.openapi.builtin import member, schemas

Schema = Mapping[str, Any]

PACKAGES = ("core", "apps", "batch", "networking", "policy", "autoscaling")
_LEAST_SHARE = 0.9
"""Of the subtree's properties that the type must have."""
_LEAST_COVER = 0.3
"""Of the type's properties that the subtree must have: an operator may offer a part of a PodSpec."""
_SHAPELESS = 3
"""Types with fewer properties are told apart by the field's name."""


class Shape(msgspec.Struct, frozen=True):
    """A type of the built-in API: the kinds of values of its properties."""

    name: str
    kinds: dict[str, str]


@cache
def shapes() -> tuple[Shape, ...]:
    """Of all types that could be part of a custom resource."""
    return tuple(_read())


def _read() -> Iterator[Shape]:
    for name, properties in _types():
        if properties and "apiVersion" not in properties and not name.endswith(("Status", "List")):
            yield Shape(name, {field: _builtin_kind(value) for field, value in properties.items()})
    yield Shape("ObjectMeta", {"name": "string", "namespace": "string", "labels": "object", "annotations": "object"})
    yield Shape("LabelSelector", {"matchLabels": "object", "matchExpressions": "array"})


def _types() -> Iterator[tuple[str, dict[str, Schema]]]:
    """Names and properties."""
    for package in PACKAGES:
        version = "v2" if package == "autoscaling" else "v1"
        for line in member(f"schemas/io.k8s.api.{package}.{version}").splitlines():
            key, _, text = line.partition(b" ")
            yield key.decode().rpartition(".")[2], msgspec.json.decode(text).get("properties") or {}


@cache
def choices() -> dict[str, tuple[str, ...]]:
    """What fields of the built-in API may be, by their names: those of several words that mean the same everywhere.

    Definitions often leave it out, and an operator hands on what it is given.

    >>> choices()["dnsPolicy"]
    ('ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None')
    """
    found: dict[str, set[tuple[str, ...]]] = {}
    for _, properties in _types():
        for name, schema in properties.items():
            known = (schema.get("items") or schema).get("enum") or ()
            found.setdefault(name, set()).add(tuple(text for text in known if text))
    return {name: min(every) for name, every in found.items() if len(every) == 1 and any(every) and snake(name) != name}


def _builtin_kind(schema: Schema) -> str:
    references = [schema.get("$ref", ""), *(item.get("$ref", "") for item in schema.get("allOf") or ())]
    target = next((reference for reference in references if reference), "")
    if target.endswith(("Quantity", "IntOrString")):
        return "scalar"
    if target.endswith(("Time", "MicroTime")):
        return "string"
    return "object" if target else str(schema.get("type", ""))


def _kind(schema: Schema) -> str:
    return "scalar" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type", ""))


def recognised(schema: Schema) -> str:
    """The built-in type that an object's schema has the shape of, or "".

    >>> recognised({"properties": {"httpGet": {"type": "object"}, "exec": {"type": "object"}, "tcpSocket": {}}})
    'LifecycleHandler'
    """
    properties = schema.get("properties") or {}
    if not properties:
        return ""
    if set(properties) == {"metadata", "spec"}:  # many types are so: the spec decides
        return _TEMPLATES.get(recognised(properties["spec"]), "Template")
    best, most = "", (0.0, 0.0)
    for shape in shapes():
        score = _score(properties, shape)
        if score > most:
            best, most = shape.name, score
    return best


_TEMPLATES = {"PodSpec": "PodTemplateSpec", "PersistentVolumeClaimSpec": "PersistentVolumeClaimTemplate"}


def _score(properties: Mapping[str, Schema], shape: Shape) -> tuple[float, float]:
    """How much of the subtree is of this type, and how much of the type it has; zeros if that is not enough."""
    same = sum(
        1
        for name, schema in properties.items()
        if name in shape.kinds and shape.kinds[name] in (_kind(schema) or shape.kinds[name], "")
    )
    share, cover = same / len(properties), same / len(shape.kinds)
    small = len(properties) < _SHAPELESS
    if share < (1.0 if small else _LEAST_SHARE) or cover < (0.6 if small else _LEAST_COVER):
        return 0.0, 0.0
    return share, cover


# ------------------------------------------------------------------ schemas that a definition leaves open

_OPEN = {
    "stateful_set": ("apps", "StatefulSetSpec"),
    "deployment": ("apps", "DeploymentSpec"),
    "template": ("core", "PodSpec"),
    "pod_template": ("core", "PodSpec"),
    "pod_template_spec": ("core", "PodSpec"),
    "pod": ("core", "PodSpec"),
    "service": ("core", "ServiceSpec"),
}


def substitute(name: str, parent: str, schema: Schema) -> Schema:
    """The schema itself, or that of the built-in type which a definition left open (`statefulSet.spec: object`)."""
    if schema.get("properties") or not schema.get("x-kubernetes-preserve-unknown-fields"):
        return schema
    known = _OPEN.get(snake(parent)) if name == "spec" else _OPEN.get(snake(name)) if name.endswith("Spec") else None
    return builtin(*known) if known else schema


@cache
def builtin(package: str, name: str) -> Schema:
    """The schema of a built-in type, with what it refers to in place."""
    made: Schema = _resolved({"$ref": f"/io.k8s.api.{package}.v1.{name}"}, 0)
    return made


_DEEPEST = 8


def _resolved(schema: Any, depth: int) -> Any:
    target = schema.get("$ref") or next((item["$ref"] for item in schema.get("allOf") or () if "$ref" in item), "")
    if target:
        name = target.rpartition("/")[2]
        if name.endswith("Quantity"):
            return {"x-kubernetes-int-or-string": True, "pattern": "Ei"}
        if name.endswith("IntOrString"):
            return {"x-kubernetes-int-or-string": True}
        return {} if depth > _DEEPEST else _resolved(_named(name), depth + 1)
    made = {key: value for key, value in schema.items() if key != "description"}
    if "properties" in schema:
        made["properties"] = {key: _resolved(value, depth) for key, value in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            made[key] = _resolved(schema[key], depth)
    return made


def _named(name: str) -> Any:
    return msgspec.json.decode(schemas([name])[name])


# ------------------------------------------------------------------ plain values

QUANTITY = re.compile(r"^[+-]?[0-9.]+([KMGTPE]i?|[munk]|[eE][-+]?[0-9]+)?$")
_CRON = re.compile(r"^([\d*/,\-]+\s+){4}[\w*/,\-?]+$|^@\w+$")
_DURATION = re.compile(r"^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$")
_SERVICE_TYPES = {"ClusterIP", "NodePort", "LoadBalancer"}

# Of the last word of a name. The first that matches counts; the type of the value must fit.
_NAMED: tuple[tuple[str, str, str], ...] = (
    ("integer", r"replicas|size|members|instances|nodes|count|servers|arbiters|workers|nodecount", "Replicas"),
    ("integer", r"(.*_)?(node)?port", "Port"),
    ("string", r"image|.*_image", "Image"),
    ("string", r"(.*_)?storage_class(_name)?", "StorageClass"),
    ("string", r"(.*_)?(storage|disk|volume)_?(size|capacity)?", "StorageSize"),
    ("string", r"(.*_)?service_account(_name)?", "ServiceAccount"),
    ("string", r"priority_class_name", "PriorityClass"),
    ("string", r"(.*_)?secret(s)?(_name|_ref)?|.*_secret_name|ssl_secret_name", "SecretName"),
    ("string", r"(.*_)?config_map(_name|_ref)?", "ConfigMapName"),
    ("string", r"(.*_)?schedule|cron", "Cron"),
    ("string", r"(.*_)?(timeout|interval|period|duration|delay)", "Duration"),
    ("string", r"(?!api_version)(.*_)?version", "Version"),
    ("string", r"(.*_)?service_type", "ServiceType"),
    ("string", r"(.*_)?(image_pull_policy|pull_policy)", "PullPolicy"),
    ("map", r"(.*_)?labels", "Labels"),
    ("map", r"(.*_)?annotations", "Annotations"),
    ("map", r"(.*_)?node_selector", "NodeSelector"),
    ("map", r"requests|limits|(.*_)?resources", "Amounts"),
)


def snake(name: str) -> str:
    """
    >>> snake("storageClassName"), snake("externalURL")
    ('storage_class_name', 'external_url')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().replace("-", "_")


def recognised_value(name: str, parent: str, schema: Schema, value: Any) -> str:
    """What a plain value or a map of such is: "Quantity", "Image", "Labels", …; or ""."""
    kind = _value_kind(schema)
    words = snake(name)
    if kind == "string" and (_SERVICE_TYPES & set(schema.get("enum") or ()) or value in _SERVICE_TYPES):
        return "ServiceType"
    if kind == "string" and words == "type" and "service" in snake(parent):
        return "ServiceType"
    if kind == "quantity" or (kind == "string" and _is_quantity(words, value)):
        return (
            "StorageSize" if _stores(words) or (_stores(snake(parent)) and words in ("size", "storage")) else "Quantity"
        )
    if kind == "string" and isinstance(value, str) and _CRON.match(value):
        return "Cron"
    if kind == "string" and (schema.get("format") == "duration" or _is_duration(value)):
        return "Duration"
    for wanted, pattern, core in _NAMED:
        if wanted == kind and re.fullmatch(pattern, words):
            return core
    if kind == "string" and words == "name":
        owner = snake(parent)
        return "SecretName" if "secret" in owner else "ConfigMapName" if "config_map" in owner else ""
    return ""


def _value_kind(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        text = str(schema.get("pattern", ""))
        return "quantity" if "Ei" in text or "KMGTPE" in text else "int-or-string"
    kind = str(schema.get("type", ""))
    return "map" if kind == "object" and not schema.get("properties") else kind


def _is_quantity(words: str, value: Any) -> bool:
    by_value = isinstance(value, str) and QUANTITY.match(value) is not None and not value.isdigit()
    return by_value and not re.search("version|tag|image", words) and any(letter.isalpha() for letter in str(value))


def _is_duration(value: Any) -> bool:
    return isinstance(value, str) and _DURATION.match(value) is not None


def _stores(words: str) -> bool:
    return re.search(r"storage|disk|volume|persist|capacity|pvc", words) is not None
