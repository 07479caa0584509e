"""What depends on other fields, and every refusal that the schema makes too."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import ObjectMeta
from konverge.operators.nacos.desired import InvalidSpec, read_desired
from konverge.operators.nacos.resource import AnyNacos, NacosStatus
from konverge.operators.nacos.versions import NacosVersion, read_version, version_of_image
from tests.operators.nacos.test_children import desired_of
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES, STANDALONE

pytestmark = pytest.mark.spec("N-02")


@pytest.mark.parametrize(
    ("replicas", "quorum", "needed"), [(1, 1, 1), (2, 2, 1), (3, 2, 2), (4, 3, 2), (5, 3, 3), (7, 4, 4)]
)
def test_majorities(replicas: int, quorum: int, needed: int) -> None:
    desired = desired_of({"type": "cluster", "replicas": replicas, "allowSmallClusters": True})
    assert (desired.replicas, desired.listed, desired.quorum, desired.needed_ready) == (
        *(replicas, replicas),
        *(quorum, needed),
    )


def test_numbers_that_are_not_given() -> None:
    assert desired_of({}).replicas == 1
    assert desired_of({}).needed_ready == 1
    assert desired_of({"type": "cluster"}).replicas == 3
    assert (desired_of({}).cluster, desired_of({"type": "cluster"}).cluster) == (False, True)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"type": "cluster", "replicas": 2}, "spec.replicas"),
        ({"type": "standalone", "replicas": 3, "allowSmallClusters": True}, "spec.replicas"),
        ({**MYSQL, "database": {"type": "mysql", "mysqlUser": "u", "mysqlPassword": "p"}}, "spec.database.mysqlHost"),
        (
            {**MYSQL, "database": {"type": "mysql", "mysqlHost": "h", "mysqlPassword": "p"}},
            "spec.database.mysqlCredentialsSecretRef",
        ),
        (
            {**MYSQL, "database": {"type": "mysql", "mysqlHost": "h", "mysqlUser": "u"}},
            "spec.database.mysqlCredentialsSecretRef",
        ),
        (
            {**MYSQL, "database": {"type": "mysql", "mysqlHost": "h", "mysqlCredentialsSecretRef": {"name": ""}}},
            "spec.database.mysqlCredentialsSecretRef",
        ),
        ({**MYSQL, "postgres": POSTGRES["postgres"]}, "spec.postgres.host"),
        ({**MYSQL, "database": {**MYSQL["database"], "mysqlPort": "0"}}, "spec.database.mysqlPort"),
        ({**MYSQL, "database": {**MYSQL["database"], "mysqlPort": "65536"}}, "spec.database.mysqlPort"),
        (
            {**MYSQL, "database": {**MYSQL["database"], "tls": {"caSecretRef": {"name": ""}}}},
            "spec.database.tls.caSecretRef.name",
        ),
        (
            {
                **MYSQL,
                "database": {**MYSQL["database"], "tls": {"mode": "require"}},
                "env": [{"name": "A", "value": "b"}, {"name": "MYSQL_SERVICE_DB_PARAM", "value": "useSSL=true"}],
            },
            "spec.database.tls",
        ),
        ({**POSTGRES, "postgres": {**POSTGRES["postgres"], "port": "65536"}}, "spec.postgres.port"),
        ({**POSTGRES, "postgres": {**POSTGRES["postgres"], "database": ""}}, "spec.postgres.database"),
        (
            {**POSTGRES, "postgres": {**POSTGRES["postgres"], "credentialsSecretRef": {}}},
            "spec.postgres.credentialsSecretRef.name",
        ),
        ({"database": {"type": "postgres"}}, "spec.postgres.host"),
        ({"volume": {"enabled": True}}, "spec.volume.requests"),
        ({"volume": {"enabled": True, "requests": {"other": "1"}}}, "spec.volume.requests"),
        ({"type": "other"}, "spec"),
    ],
)
def test_what_is_refused(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidSpec) as wrong:
        desired_of(spec)
    assert str(wrong.value).partition(": ")[0] == path


@pytest.mark.parametrize(
    "spec",
    [
        {**MYSQL, "database": {**MYSQL["database"], "mysqlPort": "1"}},
        {**MYSQL, "env": [{"name": "MYSQL_SERVICE_DB_PARAM", "value": "useSSL=true"}]},
        {**MYSQL, "database": {**MYSQL["database"], "tls": {}}, "env": [{"name": "A", "value": "b"}]},
        {**MYSQL, "database": {**MYSQL["database"], "mysqlPort": "65535"}},
        {"database": {"type": "mysql", "mysqlHost": "h", "mysqlCredentialsSecretRef": {"name": "s"}}},
        {"type": "cluster", "replicas": 1, "allowSmallClusters": True},
        {"volume": {"enabled": True, "emptyDir": {}}},
        {"volume": {"enabled": True, "hostPath": {"path": "/a"}}},
        {"volume": {"enabled": True, "persistentVolumeSize": "1Gi"}},
        {
            "volume": {
                "enabled": True,
                "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}},
            }
        },
        {"database": {"mysqlPort": "0"}},
    ],
)
def test_what_is_accepted(spec: dict[str, Any]) -> None:
    assert desired_of(spec).name == "nacos"


@pytest.mark.parametrize(
    ("spec", "engine"),
    [
        ({}, "embedded"),
        ({"database": {"type": ""}}, "embedded"),
        (STANDALONE, "embedded"),
        (MYSQL, "mysql"),
        (POSTGRES, "postgresql"),
        ({"postgres": POSTGRES["postgres"]}, "postgresql"),
    ],
)
def test_the_engine(spec: dict[str, Any], engine: str) -> None:
    assert desired_of(spec).engine == engine


def test_names_of_services_and_of_a_job() -> None:
    assert desired_of({}, "n" * 50).name == "n" * 50
    for name in ("n" * 51, "Nacos", "1n", "a.b", "-n", "n-"):
        with pytest.raises(InvalidSpec, match=r"^metadata.name: '"):
            desired_of({}, name)
    job = {**MYSQL, "mysqlInitImage": "mysql:8"}
    assert desired_of(job, "n" * 48).mysql_init
    with pytest.raises(InvalidSpec, match=r"^metadata.name: with mysqlInitImage"):
        desired_of(job, "n" * 49)
    assert not desired_of({**EMBEDDED, "mysqlInitImage": "mysql:8"}, "n" * 50).mysql_init
    assert not desired_of(MYSQL, "n" * 50).mysql_init


# ------------------------------------------------------------------ versions


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.4.3", (2, 4, 3)),
        ("v2.4.3-slim", (2, 4, 3)),
        ("2.4", (2, 4, 0)),
        ("2.4.3.1", (2, 4, 3)),
        ("v3.0-rc", (3, 0, 0)),
        ("latest", (0, 0, 0)),
        ("2", (0, 0, 0)),
        ("2.4x", (0, 0, 0)),
        ("", (0, 0, 0)),
    ],
)
def test_versions(text: str, version: tuple[int, int, int]) -> None:
    assert read_version(text) == version
    assert read_version(text).known == (version[0] > 0)


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ("nacos/nacos-server:v2.4.3", "2.4.3"),
        ("registry:5000/nacos/nacos-server", "unknown"),
        ("registry:5000/nacos:2.0.4@sha256:abc", "2.0.4"),
        ("nacos@sha256:2.0.4", "unknown"),
        ("nacos", "unknown"),
    ],
)
def test_versions_of_images(image: str, text: str) -> None:
    assert str(version_of_image(image)) == text


def test_a_line_of_releases() -> None:
    assert NacosVersion(2, 4, 3).line == "2.4"
    assert str(NacosVersion(2, 4, 3)) == "2.4.3"


@pytest.mark.parametrize(
    ("spec", "reported", "version"),
    [
        ({"image": "n:v2.4.3", "version": "3.0.0"}, "2.0.0", "3.0.0"),
        ({"image": "n:v2.4.3"}, "2.0.0", "2.4.3"),
        ({"image": "n:latest"}, "2.0.0", "2.0.0"),
        ({"image": "n:latest"}, "", "unknown"),
    ],
)
def test_which_version_counts(spec: dict[str, Any], reported: str, version: str) -> None:
    nacos = AnyNacos(metadata=ObjectMeta(name="nacos"), spec=spec, status=NacosStatus(version=reported))
    assert str(read_desired(nacos).version) == version


@pytest.mark.parametrize(
    ("image", "third", "auth", "plain", "init_d"),
    [
        ("n:v2.0.4", False, False, True, True),
        ("n:v2.1.0", False, False, True, True),
        ("n:v2.1.1", False, False, True, False),
        ("n:v2.1.2", False, False, True, False),
        ("n:v2.2.0", False, False, False, False),
        ("n:v2.4.3", False, False, False, False),
        ("n:v3.0.0", True, True, False, False),
        ("n:v4.0.0", True, True, False, False),
        ("n:latest", False, True, False, False),
    ],
)
def test_what_depends_on_the_version(image: str, third: bool, auth: bool, plain: bool, init_d: bool) -> None:
    desired = desired_of({"image": image})
    assert (desired.third, desired.needs_auth_secret) == (third, auth)
    assert (desired.plain_token, desired.reads_init_d) == (plain, init_d)
    assert desired_of({"image": image, "certification": {"enabled": True}}).needs_auth_secret


@pytest.mark.parametrize(
    ("spec", "renders"),
    [
        ({}, False),
        ({"config": "a=1"}, True),
        ({"config": "a=1", "image": "n:v2.0.4"}, False),
        ({"image": "n:v2.0.4", "userConfigRef": {"name": "u"}}, True),
        ({"image": "n:v2.0.4", "internalConfigRef": {"name": "u"}}, True),
        ({"image": "n:v2.0.4", "finalConfigName": "f"}, True),
        ({**POSTGRES, "image": "n:v2.0.4"}, True),
        ({**MYSQL, "image": "n:v2.0.4"}, False),
    ],
)
def test_when_the_operator_writes_the_properties(spec: dict[str, Any], renders: bool) -> None:
    desired = desired_of(spec)
    assert desired.renders is renders
    assert desired.final_config == spec.get("finalConfigName", "nacos-final-config")


@pytest.mark.parametrize(
    ("spec", "domain"),
    [
        ({}, "cluster.local"),
        ({"clusterDomain": "corp.local."}, "corp.local"),
        ({"env": [{"name": "DOMAIN_NAME", "value": "env.local"}]}, "env.local"),
        ({"env": [{"name": "OTHER", "value": "env.local"}]}, "cluster.local"),
        ({"env": [{"name": "DOMAIN_NAME"}]}, "cluster.local"),
        ({"clusterDomain": "a.b", "env": [{"name": "DOMAIN_NAME", "value": "env.local"}]}, "a.b"),
    ],
)
def test_the_domain_of_the_members(spec: dict[str, Any], domain: str) -> None:
    desired = desired_of({**EMBEDDED, **spec})
    assert desired.domain == domain
    assert desired.members == [f"nacos-{i}.nacos-headless.default.svc.{domain}:8848" for i in range(3)]


# ------------------------------------------------------------------ tokens


@pytest.mark.parametrize(
    ("token", "size"),
    [
        ("A" * 43, 0),
        ("A" * 42, 31),
        ("A" * 43 + "=", 0),
        ("A" * 40 + "==", 30),
        ("A" * 41, 0),  # no Base64 has this length: it counts as it is
        ("é" * 16, 0),
        ("é" * 15, 30),
        ("-" * 31, 31),
        ("-" * 32, 0),
    ],
)
def test_a_token_has_32_bytes(token: str, size: int) -> None:
    spec = {"image": "n:v2.4.3", "certification": {"enabled": True, "token": token}}
    if not size:
        assert desired_of(spec).spec.certification.token == token
        return
    with pytest.raises(InvalidSpec, match=rf"^spec.certification.token: {size} bytes are too few"):
        desired_of(spec)


@pytest.mark.parametrize(
    "spec",
    [
        {"certification": {"enabled": True, "token": "short", "tokenSecretRef": {"name": "t"}}},
        {"certification": {"token": "short"}},
        {"image": "n:v2.1.0", "certification": {"enabled": True, "token": "short"}},
        {"image": "n:latest", "certification": {"enabled": True, "token": "short"}},
        {"certification": {"enabled": True, "token": ""}},
    ],
)
def test_tokens_that_are_not_looked_at(spec: dict[str, Any]) -> None:
    assert desired_of(spec).name == "nacos"


def test_an_empty_reference_to_a_token_is_none() -> None:
    with pytest.raises(InvalidSpec, match="5 bytes"):
        desired_of({"certification": {"enabled": True, "token": "short", "tokenSecretRef": {"name": ""}}})


# ------------------------------------------------------------------ metadata of children


def test_what_children_inherit() -> None:
    annotations = {
        "note": "kept",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "nacos.io/pause-reconciliation": "true",
        "konverge.dev/adopt-by": "x",
        "meta.helm.sh/release-name": "r",
        "x.nacos.io/mine": "kept",
    }
    meta = ObjectMeta(name="nacos", namespace="space", labels={"team": "a", "app": "b"}, annotations=annotations)
    child = read_desired(AnyNacos(metadata=meta)).metadata("child", extra={"note": "ours", "more": "x"})
    assert (child.name, child.namespace) == ("child", "space")
    assert child.labels == {"team": "a", "app": "nacos", "middleware": "nacos", "component": "nacos"}
    assert child.annotations == {"note": "ours", "x.nacos.io/mine": "kept", "more": "x"}
    assert read_desired(AnyNacos(metadata=meta)).metadata("child").annotations["note"] == "kept"
