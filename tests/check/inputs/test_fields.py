"""Fields of a custom resource, and what they are, by shape."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver.openapi.builtin import schemas
from konverge.check.inputs import Field, fields
from konverge.check.inputs.core_types import builtin, recognised, recognised_value
from konverge.operators.catalog import find


def definition_of(properties: dict[str, Any], **version: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Shop", "plural": "shops"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema, **version}],
        },
    }


def sample_of(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner"}, "spec": spec}


def by_path(properties: dict[str, Any], spec: dict[str, Any] | None = None, **version: Any) -> dict[str, Field]:
    return {str(field): field for field in fields(definition_of(properties, **version), "v1", sample_of(spec or {}))}


@pytest.mark.spec("K-20")
@pytest.mark.parametrize(
    "kind",
    [
        "core PodSpec", "core Affinity", "core Toleration", "core Probe", "core Container", "core SecurityContext",
        "core PodSecurityContext", "core ServiceSpec", "core EnvVar", "core PersistentVolumeClaimSpec",
        "core TopologySpreadConstraint", "core PodTemplateSpec", "core ServicePort", "apps StatefulSetSpec",
        "apps DeploymentSpec",
    ],
)  # fmt: skip
def test_a_built_in_type_is_recognised_under_any_name(kind: str) -> None:
    package, name = kind.split()
    assert recognised(builtin(package, name)) == name


@pytest.mark.spec("K-20")
def test_a_type_of_an_older_kubernetes_is_recognised() -> None:
    """Definitions were generated from types that lacked the newest fields, and may have one that is gone."""
    schema = dict(builtin("core", "PodSpec"))
    newest = ("resourceClaims", "schedulingGates", "hostUsers", "os", "setHostnameAsFQDN", "resources")
    schema["properties"] = {key: value for key, value in schema["properties"].items() if key not in newest}
    assert recognised(schema) == "PodSpec"
    schema["properties"]["forgotten"] = {"type": "string"}
    assert recognised(schema) == "PodSpec"


@pytest.mark.spec("K-20")
def test_a_type_of_its_own_is_none_of_the_built_in_ones() -> None:
    assert recognised({"properties": {"host": {"type": "string"}, "mode": {"type": "string"}}}) == ""
    assert recognised({"properties": {"limits": {"type": "string"}, "requests": {"type": "string"}}}) == ""
    assert recognised({}) == ""


def test_the_built_in_schemas_are_those_of_the_server() -> None:
    raw = schemas(["io.k8s.api.core.v1.Affinity"])["io.k8s.api.core.v1.Affinity"]
    assert set(builtin("core", "Affinity")["properties"]) == {"nodeAffinity", "podAffinity", "podAntiAffinity"}
    assert b"nodeAffinity" in raw


TEXT = {"type": "string"}


@pytest.mark.spec("K-20")
@pytest.mark.parametrize(
    ("name", "parent", "schema", "value", "core"),
    [
        ("replicas", "spec", {"type": "integer"}, 3, "Replicas"),
        ("replicas", "spec", {"type": "string"}, None, ""),
        ("sidecarImage", "spec", TEXT, None, "Image"),
        ("storageClassName", "volume", TEXT, None, "StorageClass"),
        (
            "storage",
            "persistence",
            {"x-kubernetes-int-or-string": True, "pattern": "^.*[KMGTPE]i"},
            None,
            "StorageSize",
        ),
        ("size", "disk", TEXT, "10Gi", "StorageSize"),
        ("memory", "spec", TEXT, "2Gi", "Quantity"),
        ("type", "service", TEXT, None, "ServiceType"),
        ("kind", "expose", {"type": "string", "enum": ["ClusterIP", "NodePort"]}, None, "ServiceType"),
        ("backup", "spec", TEXT, "0 3 * * *", "Cron"),
        ("wait", "spec", TEXT, "1m30s", "Duration"),
        ("podLabels", "spec", {"type": "object", "additionalProperties": TEXT}, None, "Labels"),
        ("annotations", "service", {"type": "object", "additionalProperties": TEXT}, None, "Annotations"),
        ("name", "passwordSecretRef", TEXT, None, "SecretName"),
        ("name", "spec", TEXT, None, ""),
        ("version", "spec", TEXT, "3.8", "Version"),
        ("comment", "spec", TEXT, "5", ""),
    ],
)
def test_a_plain_value_is_recognised(name: str, parent: str, schema: dict[str, Any], value: Any, core: str) -> None:
    assert recognised_value(name, parent, schema, value) == core


@pytest.mark.spec("K-20")
def test_every_property_is_a_field_with_its_place() -> None:
    disk = {"type": "object", "properties": {"size": TEXT}, "required": ["size"]}
    found = by_path(
        {
            "owner": {"type": "string", "default": "me"},
            "disks": {"type": "array", "items": disk},
            "pools": {"type": "object", "additionalProperties": {"type": "object", "properties": {"count": TEXT}}},
            "metrics": {"type": "object", "properties": {"enabled": {"type": "boolean"}, "path": TEXT}},
        },
        {"pools": {"red": {"count": "1"}}},
    )
    assert set(found) == {
        "spec.owner", "spec.disks", "spec.disks[0].size", "spec.pools", "spec.pools.red.count", "spec.metrics",
        "spec.metrics.enabled", "spec.metrics.path",
    }  # fmt: skip
    assert found["spec.disks[0].size"].required
    assert found["spec.pools.red.count"].given
    assert not found["spec.owner"].given
    assert found["spec.owner"].default == "me"
    assert found["spec.metrics.path"].switch == ("spec", "metrics", "enabled")
    assert found["spec.metrics.enabled"].switch == ()


@pytest.mark.spec("K-20")
def test_the_replicas_are_what_the_scale_subresource_says() -> None:
    scale = {"scale": {"specReplicasPath": ".spec.shelves", "statusReplicasPath": ".status.shelves"}}
    found = by_path({"shelves": {"type": "integer"}, "doors": {"type": "integer"}}, subresources=scale)
    assert [str(field) for field in found.values() if field.core == "Replicas"] == ["spec.shelves"]


@pytest.mark.spec("K-20")
def test_a_part_that_the_definition_leaves_open_has_the_fields_of_the_built_in_type() -> None:
    open_spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    found = by_path({"statefulSet": {"type": "object", "properties": {"spec": open_spec}}})
    assert found["spec.statefulSet.spec"].core == "StatefulSetSpec"
    assert found["spec.statefulSet.spec.template.metadata.labels"].core == "Labels"
    assert found["spec.statefulSet.spec.template.spec.tolerations"].core == "Tolerations"


@pytest.mark.spec("K-20")
@pytest.mark.parametrize(("name", "least", "known"), [("webapp", 4, 3), ("nacos", 110, 35), ("wukong", 110, 20)])
def test_fields_of_our_own_operators(name: str, least: int, known: int) -> None:
    operator = find(name)
    definition, sample = operator.definitions()[0], operator.sample_objects()[0]
    found = fields(definition, sample["apiVersion"].partition("/")[2], sample)
    assert len(found) >= least
    assert sum(bool(field.core) for field in found) >= known


def test_an_unknown_version_is_said() -> None:
    with pytest.raises(LookupError, match="no version 'v2', only v1"):
        fields(definition_of({}), "v2", sample_of({}))
