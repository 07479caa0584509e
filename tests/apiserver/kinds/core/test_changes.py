"""What may change in objects of the core kinds: each case is what a real kube-apiserver answered to the same patch."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from konverge.apiserver.strategy import Obj
from tests.apiserver.kinds.harness import World

FROZEN = "field is immutable when `immutable` is set"
ONLY_CIDR = 'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'


class Case(NamedTuple):
    kind: str
    obj: Obj
    change: Obj
    errors: list[str]
    subresource: str = ""


def named(**members: Any) -> Obj:
    return {"metadata": {"name": "x"}, **members}


SECRET = named(type="a/b", data={"x": "YQ=="}, immutable=True)
CONFIG_MAP = named(data={"x": "y"}, immutable=True)
NODE = named(spec={"podCIDR": "10.1.0.0/24", "providerID": "p"})
QUOTA = named(spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]})
CLAIM = named(
    spec={
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        "storageClassName": "sc",
        "volumeMode": "Filesystem",
    }
)
VOLUME = named(
    spec={
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "d", "volumeHandle": "h"},
        "volumeMode": "Block",
    }
)
CONTROLLER = named(
    spec={
        "selector": {"a": "b"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
    }
)

CASES = [
    Case("Secret", SECRET, {"type": "c"}, ['type: Invalid value: "c": field is immutable']),
    Case("Secret", SECRET, {"data": {"x": "Yg=="}}, [f"data: Forbidden: {FROZEN}"]),
    Case("Secret", SECRET, {"stringData": {"x": "a"}}, []),
    Case("ConfigMap", CONFIG_MAP, {"data": {"x": "z"}}, [f"data: Forbidden: {FROZEN}"]),
    Case(
        "ConfigMap",
        CONFIG_MAP,
        {"immutable": None, "data": {"z": "q"}, "binaryData": {"q": "YQ=="}},
        [f"{name}: Forbidden: {FROZEN}" for name in ("immutable", "data", "binaryData")],
    ),
    Case("Node", NODE, {"spec": {"podCIDR": "10.2.0.0/24"}}, [ONLY_CIDR]),
    Case("Node", NODE, {"spec": {"podCIDR": None, "podCIDRs": None}}, [ONLY_CIDR]),
    Case(
        "Node",
        NODE,
        {"spec": {"providerID": None}},
        ["spec.providerID: Invalid value: null: field cannot be cleared once set"],
    ),
    Case(
        "Node",
        NODE,
        {"status": {"capacity": {"example.com/x": "1500m"}}},
        [
            f'status.{name}.example.com/x: Invalid value: "1500m": must be an integer'
            for name in ("capacity", "allocatable")
        ],
        "status",
    ),
    Case(
        "ResourceQuota",
        QUOTA,
        {"spec": {"scopes": ["NotBestEffort"]}},
        ['spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable'],
    ),
    Case(
        "ReplicationController",
        CONTROLLER,
        {"spec": {"replicas": -1, "minReadySeconds": -1, "selector": {"a": "c"}}},
        [
            'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    Case(
        "ReplicationController",
        CONTROLLER,
        {"status": {"replicas": 1, "readyReplicas": 2}},
        ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"],
        "status",
    ),
    Case("PersistentVolumeClaim", CLAIM, {"spec": {"volumeName": "v"}}, []),
    Case(
        "PersistentVolumeClaim",
        CLAIM,
        {"status": {"allocatedResources": {"cpu": "1"}}},
        ['status.allocatedResources: Unsupported value: "cpu": supported values: "storage"'],
        "status",
    ),
    Case(
        "PersistentVolume",
        VOLUME,
        {"spec": {"volumeMode": "Filesystem"}},
        ['volumeMode: Invalid value: "Filesystem": field is immutable'],
    ),
    Case(
        "PersistentVolume",
        VOLUME,
        {"spec": {"csi": {"controllerExpandSecretRef": {"name": "a", "namespace": "b"}}}},
        [],
    ),
    Case("Namespace", named(), {"spec": {"finalizers": []}, "metadata": {"labels": None}}, []),
    Case(
        "Namespace",
        named(),
        {"spec": {"finalizers": ["x"]}},
        ['spec.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified'],
        "finalize",
    ),
    Case(
        "Namespace",
        named(),
        {"status": {"phase": "Terminating"}},
        ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
        "status",
    ),
]


def stored(kind: str, obj: Obj) -> World:
    world = World()
    outcome = world.create("", kind, obj, cluster_wide=kind in ("Node", "Namespace", "PersistentVolume"))
    assert outcome.texts == []
    return world


@pytest.mark.spec("S-09")
@pytest.mark.parametrize("case", CASES, ids=[f"{case.kind}-{index}" for index, case in enumerate(CASES)])
def test_changes(case: Case) -> None:
    outcome = stored(case.kind, case.obj).patch("", case.kind, "x", case.change, subresource=case.subresource)
    assert outcome.texts == case.errors


@pytest.mark.spec("S-09")
def test_a_namespace_keeps_its_label_and_its_finalizers() -> None:
    change = {"spec": {"finalizers": []}, "metadata": {"labels": None}, "status": {"phase": "Terminating"}}
    obj = stored("Namespace", named()).patch("", "Namespace", "x", change).obj
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert obj["spec"]["finalizers"] == ["kubernetes"]
    assert obj["status"] == {"phase": "Active"}


@pytest.mark.spec("S-09")
def test_a_bound_claim_may_grow_and_nothing_else() -> None:
    world = stored("PersistentVolumeClaim", CLAIM)
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert not world.patch("", "PersistentVolumeClaim", "x", bound, subresource="status").errors

    def resized(size: str) -> list[str]:
        change = {"spec": {"resources": {"requests": {"storage": size}}}}
        return world.patch("", "PersistentVolumeClaim", "x", change).texts

    assert resized("3Gi") == []
    assert resized("500Mi") == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]
    refused = world.patch("", "PersistentVolumeClaim", "x", {"spec": {"accessModes": ["ReadOnlyMany"]}})
    assert refused.texts[0].startswith("spec: Forbidden: spec is immutable after creation except resources.requests")
    assert '\n-  "ReadWriteOnce"\n+  "ReadOnlyMany"\n' in refused.texts[0]


@pytest.mark.spec("S-09")
def test_a_volume_keeps_its_source() -> None:
    world = stored("PersistentVolume", VOLUME)
    refused = world.patch("", "PersistentVolume", "x", {"spec": {"csi": None, "nfs": {"server": "s", "path": "/"}}})
    assert refused.texts[0].startswith(
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n@@"
    )


@pytest.mark.spec("S-09")
def test_the_phase_of_a_volume_has_a_time() -> None:
    world = stored("PersistentVolume", VOLUME)
    obj = world.patch("", "PersistentVolume", "x", {"status": {"phase": "Bound"}}, subresource="status").obj
    assert obj["status"]["lastPhaseTransitionTime"].endswith("Z")


@pytest.mark.spec("S-09")
def test_string_data_becomes_data() -> None:
    outcome = World().create("", "Secret", named(stringData={"a": "ü"}, data={"a": "eA==", "b": "eA=="}))
    assert outcome.obj["data"] == {"a": "w7w=", "b": "eA=="}
    assert "stringData" not in outcome.obj
    assert outcome.obj["type"] == "Opaque"


@pytest.mark.spec("S-09")
def test_broken_contents_of_secrets_are_worded_as_in_go() -> None:
    body = named(type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "eyJhIg=="})
    assert World().create("", "Secret", body).texts == [
        'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": unexpected end of JSON input'
    ]
    pair = World().create("", "Secret", named(type="kubernetes.io/tls", data={"tls.crt": "YQ==", "tls.key": "YQ=="}))
    assert pair.warnings == ["tls: failed to find any PEM data in certificate input"]


@pytest.mark.spec("S-09")
def test_limits_of_containers_default_from_one_another() -> None:
    limit = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}}
    obj = World().create("", "LimitRange", named(spec={"limits": [limit]})).obj
    assert obj["spec"]["limits"][0]["default"] == {"cpu": "2"}
    assert obj["spec"]["limits"][0]["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}


@pytest.mark.spec("S-09")
def test_sources_of_claims_are_written_both_ways() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "y"}
    obj = World().create("", "PersistentVolumeClaim", {**CLAIM, "spec": {**CLAIM["spec"], "dataSource": source}}).obj
    assert obj["spec"]["dataSourceRef"] == {"apiGroup": None, **source}
    odd = {**CLAIM, "spec": {**CLAIM["spec"], "dataSource": {"kind": "Odd", "name": "y", "apiGroup": "a.b"}}}
    assert "dataSource" not in World().create("", "PersistentVolumeClaim", odd).obj["spec"]
