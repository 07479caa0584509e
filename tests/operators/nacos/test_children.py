"""The children of a Nacos, whole: what is made of a resource stands in `golden/`, to be read and reviewed.

After an intended change, `GOLDEN=write pytest tests/operators/nacos/test_children.py` writes them again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.objects import ObjectMeta, to_dict
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import (
    config_map,
    digest,
    final_config_map,
    merged_properties,
    mysql_config_map,
)
from konverge.operators.nacos.children.environment import auth_secret
from konverge.operators.nacos.children.monitoring import service_monitor, wants_monitor
from konverge.operators.nacos.children.mysql_job import mysql_init_job
from konverge.operators.nacos.children.network_policy import network_policy, wants_network_policy
from konverge.operators.nacos.children.overlay import merge
from konverge.operators.nacos.children.services import ingress, services, wants_ingress
from konverge.operators.nacos.children.stateful_set import disruption_budget, stateful_set, wants_budget
from konverge.operators.nacos.desired import Desired, InvalidSpec, read_desired
from konverge.operators.nacos.resource import AnyNacos
from tests.operators.nacos.world import CLUSTER, STANDALONE

GOLDEN = Path(__file__).parent / "golden"
LOGIN = {"type": "mysql", "mysqlHost": "h", "mysqlUser": "u", "mysqlPassword": "p"}
MYSQL = {"type": "mysql", "mysqlHost": "mysql.nacos", "mysqlDb": "nacos", "mysqlPort": "3306"}
POSTGRES = {
    "host": "pg.nacos",
    "database": "nacos",
    "credentialsSecretRef": {"name": "pg"},
    "tls": {"mode": "verify-full", "caSecretRef": {"name": "pg-ca"}},
}
CASES: dict[str, dict[str, Any]] = {
    "standalone-2.0": STANDALONE,
    "standalone-3.0": {"image": "nacos/nacos-server:v3.0.3"},
    "cluster-embedded-2.4": {**CLUSTER, "image": "nacos/nacos-server:v2.4.3-slim", "config": "a=1\n"},
    "cluster-mysql-2.4": {
        **CLUSTER,
        "image": "nacos/nacos-server:v2.4.3",
        "mysqlInitImage": "mysql:8",
        "database": {**MYSQL, "mysqlCredentialsSecretRef": {"name": "mysql"}},
        "imagePullSecrets": [{"name": "pull"}],
        "certification": {"enabled": True},
    },
    "cluster-postgres-3.0": {
        **CLUSTER,
        "image": "nacos/nacos-server:v3.0.3",
        "database": {"type": "postgresql"},
        "postgres": POSTGRES,
        "identitySecretRef": {"name": "identity"},
        "service": {"type": "NodePort", "nodePorts": {"client": 30848, "new-rpc": 31848}},
    },
    "cluster-exposed-3.0": {
        **CLUSTER,
        "image": "nacos/nacos-server:v3.0.3",
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "host": "nacos.example.com",
            "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "1m"},
            "tlsSecretName": "nacos-tls",
        },
        "metrics": {"enabled": True, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    },
    "cluster-restricted-2.4": {
        **CLUSTER,
        "image": "nacos/nacos-server:v2.4.3",
        "mysqlInitImage": "mysql:8",
        "database": {**MYSQL, "mysqlCredentialsSecretRef": {"name": "mysql"}},
        "podSecurity": "Restricted",
        "podSecurityContext": {"runAsUser": 2000},
        "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}],
        "priorityClassName": "middleware",
        "networkPolicy": {
            "enabled": True,
            "clients": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}],
            "egress": {"enabled": True, "allow": [{"ports": [{"port": 24224}]}]},
        },
    },
    "standalone-overlaid": {
        "image": "nacos/nacos-server:latest",
        "env": [{"name": "JVM_XMS", "value": "512m"}, {"name": "MODE", "value": "cluster"}],
        "volume": {"emptyDir": {}, "enabled": True, "requests": {"storage": "1Gi"}},
        "k8sWrapper": {
            "PodSpec": {
                "priorityClassName": "high",
                "containers": [{"name": "nacos", "workingDir": "/tmp"}, {"name": "sidecar", "image": "side:1"}],
                "volumes": [{"name": "extra", "emptyDir": {}}],
            }
        },
    },
}


def desired_of(spec: dict[str, Any], name: str = "nacos") -> Desired:
    labels = {"team": "a", "app": "mine"}
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "kept"}
    meta = ObjectMeta(name=name, namespace="default", labels=labels, annotations=annotations)
    return read_desired(AnyNacos(metadata=meta, spec=spec))


def children(desired: Desired) -> list[dict[str, Any]]:
    made: list[Any] = [config_map(desired)]
    config = desired.spec.config
    if desired.renders:
        config = merged_properties(desired, None, None)
        made.append(final_config_map(desired, config))
    made += [stateful_set(desired, digest(config) if config else ""), *services(desired)]
    if desired.mysql_init:
        made += [mysql_config_map(desired, "-- the script\n"), mysql_init_job(desired, "abc")]
    if wants_budget(desired):
        made.append(disruption_budget(desired))
    if wants_ingress(desired):
        made.append(ingress(desired))
    if wants_network_policy(desired):
        made.append(network_policy(desired))
    if wants_monitor(desired):
        made.append(service_monitor(desired))
    if desired.needs_auth_secret:
        secret = auth_secret(desired)
        secret.data = dict.fromkeys(secret.data, "cmFuZG9t")
        made.append(secret)
    return [to_dict(item) for item in made]


@pytest.mark.spec("N-03", "N-07", "N-08", "N-15", "N-17")
@pytest.mark.parametrize("case", CASES)
def test_children_are_as_written_down(case: str) -> None:
    made = yaml.safe_dump_all(children(desired_of(CASES[case])), sort_keys=True, width=110)
    file = GOLDEN / f"{case}.yaml"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(made)
    assert made == file.read_text()


@pytest.mark.spec("N-03")
def test_no_password_is_in_a_child_where_a_secret_is_named() -> None:
    text = str(children(desired_of(CASES["cluster-postgres-3.0"])))
    assert "secretKeyRef" in text
    assert "${NACOS_DB_PASSWORD}" in text


def test_two_auth_secrets_differ() -> None:
    desired = desired_of(CASES["standalone-3.0"])
    assert auth_secret(desired).data["token"] != auth_secret(desired).data["token"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"type": "cluster", "replicas": 2}, "spec.replicas: a cluster needs at least 3"),
        ({"type": "standalone", "replicas": 2}, "spec.replicas: a standalone has 1"),
        ({"type": "other"}, "Invalid enum value 'other' - at `$.type`"),
        ({"database": {"type": "mysql"}}, "spec.database.mysqlHost"),
        ({"database": {"type": "mysql", "mysqlHost": "h"}}, "spec.database.mysqlCredentialsSecretRef"),
        ({"postgres": {"host": "h"}}, "spec.postgres.database"),
        ({"postgres": {"host": "h", "database": "d"}}, "spec.postgres.credentialsSecretRef.name"),
        ({"database": {"type": "postgresql"}}, "spec.postgres.host"),
        ({"volume": {"enabled": True}}, "spec.volume.requests"),
        ({"replicas": "three"}, "spec: Expected `int"),
        ({"database": {**LOGIN, "mysqlPort": "65536"}}, "spec.database.mysqlPort: 65536 is not a port"),
        ({"postgres": {"host": "h", "port": "0"}}, "spec.postgres.port: 0 is not a port"),
        ({"certification": {"enabled": True, "token": "short"}}, "spec.certification.token: 5 bytes are too few"),
        ({"certification": {"enabled": True, "token": "A" * 40}}, "spec.certification.token: 30 bytes are too few"),
        ({"image": "n:v3.0.3", "certification": {"token": "c2hvcnQ="}}, "spec.certification.token: 5 bytes"),
        ({"volume": {"requests": {"storage": "much"}}}, "spec: "),
    ],
)
@pytest.mark.spec("N-02")
def test_an_invalid_spec_names_the_field(spec: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidSpec) as wrong:
        desired_of(spec)
    assert expected in str(wrong.value)


@pytest.mark.parametrize(
    "spec",
    [
        {"certification": {"enabled": True, "token": "SecretKey" + "0123456789" * 6}},  # the originals' own, no Base64
        {"certification": {"enabled": True, "token": "A" * 43}},  # 32 bytes without their padding
        {"certification": {"enabled": True, "token": "short"}, "image": "nacos/nacos-server:v2.0.4"},
        {"certification": {"enabled": True, "token": "short"}, "image": "nacos/nacos-server:mine"},
        {"certification": {"enabled": True, "token": "short", "tokenSecretRef": {"name": "token"}}},
        {"certification": {"token": "short"}},
    ],
)
def test_a_token_that_works_is_taken(spec: dict[str, Any]) -> None:
    assert desired_of(spec).spec.certification.token


@pytest.mark.parametrize("name", ["Nacos", "1nacos", "a.b", "n" * 51])
def test_a_name_that_no_service_can_have(name: str) -> None:
    with pytest.raises(InvalidSpec, match=r"metadata.name"):
        desired_of({}, name)


def test_members_have_names_that_outlive_their_addresses() -> None:
    desired = desired_of({**CLUSTER, "clusterDomain": "corp.local."})
    assert desired.members[2] == "nacos-2.nacos-headless.default.svc.corp.local:8848"
    assert names.claim("nacos", 2) == "db-nacos-2"


def test_overlays_merge_by_name_and_replace_what_has_none() -> None:
    base = {"containers": [{"name": "a", "args": ["1"], "ports": [{"containerPort": 1}]}], "hostNetwork": False}
    over = {"containers": [{"name": "a", "args": ["2"], "ports": [{"containerPort": 2}]}], "hostNetwork": True}
    assert merge(base, over) == {
        "containers": [{"name": "a", "args": ["2"], "ports": [{"containerPort": 1}, {"containerPort": 2}]}],
        "hostNetwork": True,
    }
