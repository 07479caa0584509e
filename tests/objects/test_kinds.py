"""The generated kinds: complete, lossless, lazy."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from konverge.objects import kinds
from konverge.objects.codec import from_dict, from_json, to_dict, to_json
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition, JSONSchemaProps
from konverge.objects.kinds.apps_v1 import Deployment, DeploymentSpec
from konverge.objects.kinds.core_v1 import Container, Pod, PodSpec, PodTemplateSpec
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.objects.kinds.rbac_v1 import Role
from konverge.objects.meta import LabelSelector, Object, ObjectList, ObjectMeta
from konverge.objects.quantity import Quantity

from .upstream import DATA

SAMPLES: list[dict[str, Any]] = json.loads(gzip.decompress((DATA / "samples.json.gz").read_bytes()))
KNOWN = set(kinds.known())
GENERATED = [sample for sample in SAMPLES if (sample.get("apiVersion"), sample.get("kind")) in KNOWN]


def _name(sample: dict[str, Any]) -> str:
    return f"{sample['apiVersion']}.{sample['kind']}"


@pytest.mark.parametrize("sample", GENERATED, ids=_name)
def test_samples_round_trip(sample: dict[str, Any]) -> None:
    cls = kinds.lookup(sample["apiVersion"], sample["kind"])
    for template in sample["spec"].get("volumeClaimTemplates", ()) if sample["kind"] == "StatefulSet" else ():
        # The samples leave out what the real server fills in, as the class does.
        template |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    assert json.loads(to_json(from_json(cls, json.dumps(sample)))) == sample
    assert to_dict(from_dict(cls, sample)) == sample


def test_every_kind_of_the_stable_groups_has_a_sample_here() -> None:
    without = {f"{v}.{k}" for v, k in KNOWN} - set(map(_name, GENERATED))
    assert without == {
        # Served by other modules than k8s.io/api, which has no samples of them.
        "apiextensions.k8s.io/v1.CustomResourceDefinition",
        "apiregistration.k8s.io/v1.APIService",
    }


@pytest.mark.parametrize(("api_version", "kind"), sorted(KNOWN))
def test_a_new_object_knows_what_it_is(api_version: str, kind: str) -> None:
    cls = kinds.lookup(api_version, kind)
    made = cls()
    assert (made.api_version, made.kind) == (api_version, kind) == (cls.resource.api_version, cls.resource.kind)
    sent = json.loads(to_json(made))
    assert list(sent)[:3] == ["apiVersion", "kind", "metadata"]
    assert "status" not in sent
    assert cls.__struct_fields__[-1] == "status" or "status" not in cls.__struct_fields__


def test_plurals_and_scopes() -> None:
    expected = {
        ("v1", "Pod"): ("pods", True),
        ("v1", "Endpoints"): ("endpoints", True),
        ("v1", "Namespace"): ("namespaces", False),
        ("v1", "Node"): ("nodes", False),
        ("networking.k8s.io/v1", "Ingress"): ("ingresses", True),
        ("networking.k8s.io/v1", "IngressClass"): ("ingressclasses", False),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): ("selfsubjectaccessreviews", False),
        ("authorization.k8s.io/v1", "LocalSubjectAccessReview"): ("localsubjectaccessreviews", True),
        ("autoscaling/v1", "Scale"): ("", True),
    }
    for (api_version, kind), (plural, namespaced) in expected.items():
        resource = kinds.lookup(api_version, kind).resource
        assert (resource.plural, resource.namespaced) == (plural, namespaced)


def test_unknown_kinds() -> None:
    with pytest.raises(kinds.UnknownKind, match="no built-in kind Deployment in v1"):
        kinds.lookup("v1", "Deployment")
    with pytest.raises(kinds.UnknownKind):
        kinds.lookup("example.com/v1", "WebApp")


@pytest.mark.parametrize(
    ("cls", "data", "field"),
    [
        (Role, '{"rules":null}', "rules"),
        (EndpointSlice, '{"addressType":"IPv4","endpoints":null,"ports":null}', "endpoints"),
    ],
)
def test_nulls_of_real_servers_read_as_empty(cls: type[Object], data: str, field: str) -> None:
    assert getattr(from_json(cls, data), field) == []


def test_null_conditions_of_a_definition() -> None:
    data = '{"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":["v1"]}}'
    assert from_json(CustomResourceDefinition, data).status.conditions == []


def test_recursive_schemas() -> None:
    data = {"properties": {"a": {"items": {"type": "string"}}, "b": {"additionalProperties": True, "not": {}}}}
    schema = from_dict(JSONSchemaProps, data)
    items = schema.properties["a"].items
    assert isinstance(items, JSONSchemaProps)
    assert items.type == "string"
    assert schema.properties["b"].additional_properties is True
    assert to_dict(schema) == data


def _deployment() -> Deployment:
    labels = {"app": "web"}
    container = Container(name="web", image="nginx", resources=None)
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="shop"),
        spec=DeploymentSpec(
            replicas=0,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container])),
        ),
    )


def test_what_is_sent() -> None:
    assert to_dict(_deployment()) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }
    assert json.loads(to_json(_deployment())) == to_dict(_deployment())


def test_a_status_that_says_something_is_sent() -> None:
    deployment = _deployment()
    deployment.status.replicas = 0
    assert to_dict(deployment)["status"] == {"replicas": 0}
    assert to_json(deployment).endswith(b'"status":{"replicas":0}}')


def test_quantities_in_objects() -> None:
    data = '{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1500m","memory":1024,"x":0.5}}}]}}'
    container = from_json(Pod, data).spec.containers[0]
    assert container.resources is not None
    requests = container.resources.requests
    assert requests == {"cpu": Quantity("1.5"), "memory": Quantity("1024"), "x": Quantity("500m")}
    assert to_dict(container)["resources"]["requests"] == {"cpu": "1500m", "memory": "1024", "x": "500m"}
    with pytest.raises(msgspec.ValidationError, match=r"quantities must match .* `\$.*requests"):
        from_json(Pod, data.replace("1500m", "lots"))
    with pytest.raises(msgspec.ValidationError, match="Expected a `Quantity`, got `bool`"):
        from_json(Pod, data.replace("1024", "true"))


def test_unknown_fields_are_ignored_and_lists_are_typed() -> None:
    data = b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"},"x":1}]}'
    pods = from_json(ObjectList[Pod], data)
    assert [(pod.kind, pod.metadata.name) for pod in pods.items] == [("Pod", "a")]
    assert pods.metadata.resource_version == "7"
    assert from_json(ObjectList[Pod], b'{"items":null}').items == []


def test_objects_do_not_share_their_defaults() -> None:
    meta, other = ObjectMeta(), ObjectMeta()
    meta.labels["a"] = "b"
    assert other.labels == {}


def test_kinds_are_imported_when_used() -> None:
    code = (
        "import sys, konverge, konverge.objects, konverge.objects.kinds as kinds\n"
        "loaded = lambda: sorted(m[23:] for m in sys.modules if m.startswith('konverge.objects.kinds.'))\n"
        "before = loaded(); kinds.lookup('coordination.k8s.io/v1', 'Lease'); print(before, loaded())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "['_index'] ['_index', 'coordination_v1']"
