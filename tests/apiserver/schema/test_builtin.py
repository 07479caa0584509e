from __future__ import annotations

import subprocess
import sys

import pytest

from konverge.apiserver.schema import Kind, lookup, object_meta


def test_a_kind_and_its_fields() -> None:
    node = lookup("apps", "v1", "Deployment")
    assert node is not None
    assert (node.kind, node.go) == (Kind.STRUCT, "v1.Deployment")
    spec = node.fields["spec"].node
    assert spec.fields["replicas"].pointer
    assert spec.fields["selector"].node.atomic
    assert spec.fields["strategy"].strategy == ""


def test_lists_know_their_keys_and_the_defaults_of_keys() -> None:
    service = lookup("", "v1", "Service")
    assert service is not None
    ports = service.fields["spec"].node.fields["ports"]
    assert ports.node.list_type == "map"
    assert ports.node.map_keys == ("port", "protocol")
    assert ports.node.key_defaults == {"port": 0, "protocol": "TCP"}
    assert (ports.strategy, ports.merge_key) == ("merge", "port")


def test_recursive_types_are_recursive_objects() -> None:
    definition = lookup("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    assert definition is not None
    version = definition.fields["spec"].node.fields["versions"].node.element
    assert version is not None
    schema = version.fields["schema"].node.fields["openAPIV3Schema"].node
    assert schema.fields["properties"].node.element is schema


@pytest.mark.parametrize(
    ("group", "version", "kind"), [("", "v1", "Container"), ("", "v2", "Pod"), ("x.io", "v1", "X")]
)
def test_lookup_of_an_unknown_kind_returns_none(group: str, version: str, kind: str) -> None:
    assert lookup(group, version, kind) is None


def test_options_are_kinds_of_meta() -> None:
    options = lookup("meta.k8s.io", "v1", "DeleteOptions")
    assert options is not None
    assert "propagationPolicy" in options.fields
    assert object_meta().fields["finalizers"].strategy == "merge"


def test_a_config_map_does_not_load_pods() -> None:
    program = (
        "from konverge.apiserver.schema import builtin; builtin.lookup('', 'v1', 'ConfigMap');"
        "print(any('PodSpec' in name for name in builtin._structs))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
