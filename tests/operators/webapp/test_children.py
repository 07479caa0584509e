"""Differences and patches of the two objects, without a cluster: what is written is what differs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.objects import ObjectMeta, from_dict, to_dict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Service
from konverge.operators.webapp import WebApp, WebAppSpec
from konverge.operators.webapp.children import (
    LABEL,
    PARTS,
    deployment_differences,
    deployment_for,
    deployment_patch,
    service_differences,
    service_for,
    service_patch,
)

pytestmark = pytest.mark.spec("A-03", "A-04", "A-08")

APP = WebApp(
    metadata=ObjectMeta(name="shop", namespace="team"),
    spec=WebAppSpec(image="nginx:1", replicas=2, port=80, env={"B": "2", "A": "", "C": "3"}),
)
ENV = [{"name": "A"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]


def deployment(replicas: int = 2, labels: dict[str, str] | None = None, *containers: dict[str, Any]) -> Deployment:
    """As the server has it."""
    ours = {"name": "web", "image": "nginx:1", "env": ENV}
    made = to_dict(deployment_for(APP))
    made["metadata"] |= {"uid": "u", "labels": {LABEL: "shop"} if labels is None else labels}
    made["spec"]["replicas"] = replicas
    made["spec"]["template"]["spec"]["containers"] = list(containers) or [ours]
    return from_dict(Deployment, made)


def service(**spec: Any) -> Service:
    made = to_dict(service_for(APP))
    made["metadata"] |= {"uid": "u"}
    port = {"name": "http", "port": 80, "targetPort": 80, "protocol": "TCP"}
    made["spec"] |= {"ports": [port], **spec}
    return from_dict(Service, made)


def written(patch: Any) -> Any:
    body = json.loads(patch.encode())
    assert body["metadata"].pop("uid") == "u", "it is about this very object"
    return {key: value for key, value in body.items() if value}


def test_what_is_made() -> None:
    made = to_dict(deployment_for(APP))
    assert made["metadata"] == {"name": "shop", "namespace": "team", "labels": {LABEL: "shop"}}
    assert made["spec"]["selector"] == {"matchLabels": {LABEL: "shop"}}
    assert made["spec"]["template"]["metadata"]["labels"] == {LABEL: "shop"}
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("web", "nginx:1")
    assert [entry["name"] for entry in container["env"]] == ["A", "B", "C"]
    reached = to_dict(service_for(APP))
    assert reached["spec"] == {
        "type": "ClusterIP", "selector": {LABEL: "shop"}, "ports": [{"name": "http", "port": 80}],
    }  # fmt: skip
    assert [part.kind for part in PARTS] == [Deployment, Service]


def test_what_is_as_desired_does_not_differ() -> None:
    assert deployment_differences(APP, deployment()) == []
    assert service_differences(APP, service()) == []
    bare = service(ports=[{"name": "http", "port": 80}])
    assert service_differences(APP, bare) == []


WEB = {"name": "web", "image": "nginx:1", "env": ENV}
SIDE = {"name": "side", "image": "a"}
REPLACED = [{"$patch": "replace"}, *ENV]


@pytest.mark.parametrize(
    ("live", "said", "body"),
    [
        (deployment(5), ["replicas 5 → 2"], {"spec": {"replicas": 2}}),
        (deployment(2, {}), ["label None → shop"], {"metadata": {"labels": {LABEL: "shop"}}}),
        (
            deployment(2, None, WEB | {"image": "evil"}),
            ["image evil → nginx:1"],
            {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}}},
        ),
        (
            deployment(2, None, WEB | {"env": ENV[:1]}),
            ["env"],
            {"spec": {"template": {"spec": {"containers": [{"name": "web", "env": REPLACED}]}}}},
        ),
        (
            deployment(2, None, WEB | {"env": [ENV[1], ENV[0], ENV[2]]}),
            ["env"],
            {"spec": {"template": {"spec": {"containers": [{"name": "web", "env": REPLACED}]}}}},
        ),
        (
            deployment(2, None, SIDE, WEB, {"name": "a", "image": "b"}),
            ["containers ['side', 'web', 'a'] → ['web']"],
            {"spec": {"template": {"spec": {"containers": [
                {"$patch": "delete", "name": "a"}, {"$patch": "delete", "name": "side"}]}}}},
        ),
        (
            deployment(2, None, WEB | {"name": "other"}),
            ["containers ['other'] → ['web']", "image None → nginx:1", "env"],
            {"spec": {"template": {"spec": {"containers": [
                {"name": "web", "image": "nginx:1", "env": ENV}, {"$patch": "delete", "name": "other"}]}}}},
        ),
    ],
)  # fmt: skip
def test_a_deployment_is_written_where_it_differs(live: Deployment, said: list[str], body: Any) -> None:
    differences = deployment_differences(APP, live)
    assert [str(difference) for difference in differences] == said
    assert written(deployment_patch(APP, live, differences)) == body


PORTS = {"ports": [{"name": "http", "port": 80}]}


@pytest.mark.parametrize(
    ("live", "said", "body"),
    [
        ({"ports": [{"name": "http", "port": 81}]}, "port 81 → 80", PORTS),
        ({"ports": [{"name": "http", "port": 80, "targetPort": 9}]}, "port 80:9 → 80", PORTS),
        ({"ports": [{"name": "http", "port": 80, "targetPort": "web"}]}, "port 80:web → 80", PORTS),
        ({"ports": [{"name": "http", "port": 80, "protocol": "UDP"}]}, "port 80/UDP → 80", PORTS),
        ({"ports": [{"name": "a", "port": 80}]}, "port 80 called a → 80", PORTS),
        ({"ports": [{"port": 80}]}, "port 80 called nothing → 80", PORTS),
        ({"ports": [{"name": "http", "port": 80, "appProtocol": "h2"}]}, "port 80 for h2 → 80", PORTS),
        ({"ports": []}, "port [] → 80", PORTS),
        ({"type": "NodePort"}, "type NodePort → ClusterIP", {"type": "ClusterIP"}),
        (
            {"type": "ExternalName", "externalName": "x"},
            "type ExternalName → ClusterIP",
            {"type": "ClusterIP", "externalName": None},
        ),
        ({"selector": {"a": "b"}}, "selector", {"selector": {"a": None, LABEL: "shop"}}),
        ({"selector": {}}, "selector", {"selector": {LABEL: "shop"}}),
        ({"selector": {LABEL: "x", "a": "b"}}, "selector", {"selector": {"a": None, LABEL: "shop"}}),
    ],
)
def test_a_service_is_written_where_it_differs(live: dict[str, Any], said: str, body: Any) -> None:
    present = service(**live)
    differences = service_differences(APP, present)
    assert [str(difference) for difference in differences] == [said]
    assert written(service_patch(APP, present, differences)) == {"spec": body}


def test_a_label_is_written_to_the_service() -> None:
    present = service()
    present.metadata.labels = {LABEL: "other", "mine": "1"}
    differences = service_differences(APP, present)
    assert [str(difference) for difference in differences] == ["label other → shop"]
    assert written(service_patch(APP, present, differences)) == {"metadata": {"labels": {LABEL: "shop"}}}
