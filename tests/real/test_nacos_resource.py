"""The definition of Nacos on the real API server, with its columns: samples are accepted, mistakes are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from konverge.operators.catalog import find
from konverge.operators.nacos.resource import Nacos, definition
from tests.operators.nacos.test_children import CASES
from tests.operators.nacos.world import CLUSTER, STANDALONE
from tests.real.definitions import Api, installed

pytestmark = [pytest.mark.spec("N-01", "N-02")]


@pytest.fixture(scope="module")
def api(real_api: Api) -> Iterator[Api]:
    with installed(real_api, definition()):
        yield real_api


def attempt(api: Api, spec: dict[str, Any], name: str = "nacos") -> tuple[int, Any]:
    """Strictly, as kubectl asks: an unknown field is refused too. Nothing is kept."""
    body = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": {"name": name}, "spec": spec}
    path = Nacos.resource.path("default") + "?dryRun=All&fieldValidation=Strict"
    return api("POST", path, json.dumps(body).encode())


MYSQL = {
    "type": "mysql",
    "mysqlHost": "mysql.nacos",
    "mysqlDb": "nacos",
    "mysqlUser": "******",
    "mysqlPort": "3306",
    "mysqlPassword": "******",
}
RESOURCES = {"limits": {"cpu": "1", "memory": "4Gi"}, "requests": {"cpu": "500m", "memory": "2Gi"}}
GOOD: dict[str, dict[str, Any]] = {
    "the document's standalone": STANDALONE,
    "the document's cluster": {**CLUSTER, "database": MYSQL, "resources": RESOURCES},
    "small on purpose": {**CLUSTER, "replicas": 1, "allowSmallClusters": True},
    "nothing but defaults": {},
    "the fork's": {
        "type": "cluster",
        "image": "nacos-server:v2.4.3-pg",
        "replicas": 3,
        "postgres": {"host": "pg", "port": "5432", "database": "nacos", "credentialsSecretRef": {"name": "pg"}},
        "pgInit": {"enabled": True, "timeoutSeconds": 20, "schemaVersion": 1, "policy": "IfNotPresent"},
        "adminCredentialsSecretRef": {"name": "admin", "passwordHashKey": "passwordHash"},
        "identitySecretRef": {"name": "identity", "keyKey": "identity_key", "valueKey": "identity_value"},
        "userConfigRef": {"name": "user", "key": "user.properties"},
        "internalConfigRef": {"name": "internal"},
        "finalConfigName": "final",
        "volume": {
            "volumeClaimTemplate": {"metadata": {"name": "db"}, "spec": {"accessModes": ["ReadWriteOnce"]}},
            "persistentVolumeSize": "1Gi",
            "keepAfterDeletion": True,
        },
        "certification": {
            "enabled": True,
            "token": "t",
            "token_expire_seconds": "18000",
            "cache_enabled": True,
        },
        "function_mode": "naming",
        "livenessProbe": {"httpGet": {"path": "/", "port": 8848}},
        "k8sWrapper": {"PodSpec": {"anything": {"goes": ["here"]}}},
    },
    **CASES,
}


@pytest.mark.parametrize("case", GOOD)
def test_the_real_server_accepts_good_specs(api: Api, case: str) -> None:
    status, answer = attempt(api, GOOD[case])
    assert status == 201, answer.get("message")


def test_samples_of_the_package_are_accepted(api: Api) -> None:
    samples = [sample for sample in find("nacos").sample_objects() if sample["kind"] == "Nacos"]
    assert len(samples) == 3
    for sample in samples:
        status, answer = attempt(api, sample["spec"], sample["metadata"]["name"])
        assert status == 201, answer.get("message")


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "other"}, "spec.type", "supported values"),
    ({"type": "cluster", "replicas": 2}, "spec.replicas", "a cluster needs at least 3 replicas"),
    ({"type": "standalone", "replicas": 3}, "spec.replicas", "a standalone has 1 replica"),
    ({"type": "cluster", "allowSmallClusters": True, "replicas": 0}, "spec.replicas", "greater than or equal to 1"),
    ({"database": {"type": "oracle"}}, "spec.database.type", "supported values"),
    ({"database": {"type": "mysql"}}, "spec.database.mysqlHost", "needs the server's host"),
    (
        {"database": {"type": "mysql", "mysqlHost": "h", "mysqlUser": "u"}},
        "spec.database.mysqlCredentialsSecretRef",
        "mysqlUser and mysqlPassword",
    ),
    ({"database": {"mysqlPort": "x"}}, "spec.database.mysqlPort", "should match"),
    ({"database": {"mysqlPort": "65536"}}, "spec.database.mysqlPort", "a port is a number from 1 to 65535"),
    ({"postgres": {"port": "0"}}, "spec.postgres.port", "a port is a number from 1 to 65535"),
    ({"image": "nacos server"}, "spec.image", "should match"),
    ({"service": {"nodePorts": {"client": 30848}}}, "spec.service.nodePorts", "choose type NodePort"),
    ({"postgres": {"host": "h", "credentialsSecretRef": {"name": "s"}}}, "spec.postgres.database", "name the database"),
    ({"postgres": {"host": "h", "database": "d"}}, "spec.postgres.credentialsSecretRef.name", "name the Secret"),
    ({"database": {"type": "postgresql"}}, "spec.postgres.host", "needs the server's host"),
    ({"pgInit": {"policy": "Sometimes"}}, "spec.pgInit.policy", "supported values"),
    ({"pgInit": {"timeoutSeconds": 0}}, "spec.pgInit.timeoutSeconds", "greater than or equal to 1"),
    ({"volume": {"enabled": True}}, "spec.volume.requests", "needs requests.storage"),
    ({"volume": {"requests": {"storage": "much"}}}, "spec.volume.requests.storage", "should match"),
    ({"image": ""}, "spec.image", "at least 1 chars"),
    ({"function_mode": "none"}, "spec.function_mode", "supported values"),
    ({"service": {"type": "ExternalName"}}, "spec.service.type", "supported values"),
    ({"ingress": {"enabled": True, "path": "nacos"}}, "spec.ingress.path", "should match"),
    ({"metrics": {"serviceMonitor": {"interval": "often"}}}, "spec.metrics.serviceMonitor.interval", "should match"),
]


@pytest.mark.parametrize(("spec", "path", "message"), BAD, ids=[f"{bad[1]}-{n}" for n, bad in enumerate(BAD)])
def test_the_real_server_refuses_with_the_path(api: Api, spec: dict[str, Any], path: str, message: str) -> None:
    status, answer = attempt(api, spec)
    assert status == 422, answer
    causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert path in causes, causes
    assert message in causes[path]


def test_a_name_that_no_service_can_have_is_refused(api: Api) -> None:
    status, answer = attempt(api, {}, "1nacos")
    assert status == 422
    assert "the name becomes that of Services" in answer["message"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"replica": 3}, "spec.replica"),
        ({"service": {"type": "NodePort", "nodePorts": {"main": 30848}}}, "spec.service.nodePorts.main"),
    ],
)
def test_a_misspelt_field_is_refused(api: Api, spec: dict[str, Any], path: str) -> None:
    status, answer = attempt(api, spec)
    assert status == 400
    assert f'unknown field "{path}"' in answer["message"]


def test_columns_scale_and_status_are_served(api: Api) -> None:
    path = Nacos.resource.path("default")
    body = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": {"name": "nacos"}, "spec": CLUSTER}
    status, made = api("POST", path, json.dumps(body).encode())
    assert status == 201, made
    assert made["status"]["observedGeneration"] == 0, "not seen yet, for kstatus"
    assert api("GET", f"{path}/nacos")[1]["status"]["observedGeneration"] == 0
    made["status"] = {"phase": "Running", "version": "2.0.4", "replicas": 3, "selector": "app=nacos"}
    status, made = api("PUT", f"{path}/nacos/status", json.dumps(made).encode())
    assert status == 200, made
    status, scale = api("GET", f"{path}/nacos/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 3, "selector": "app=nacos"})
    table = api.table(path)
    columns = [column["name"].upper() for column in table["columnDefinitions"]]
    assert columns == ["NAME", "REPLICAS", "READY", "TYPE", "DBTYPE", "VERSION", "CREATETIME"]
    created = made["metadata"]["creationTimestamp"]
    assert table["rows"][0]["cells"] == ["nacos", 3, "Running", "cluster", "embedded", "2.0.4", created]
    api("DELETE", f"{path}/nacos")
