"""What runs is read back from the children: the same settings, for every database and volume."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import Quantity
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import (
    ConfigMapVolumeSource,
    EnvVar,
    EnvVarSource,
    HostPathVolumeSource,
    ObjectFieldSelector,
    PersistentVolumeClaimVolumeSource,
    PodSpec,
    Volume,
)
from konverge.operators.nacos.children.config import base_properties, final_config_map
from konverge.operators.nacos.resource import Applied
from konverge.operators.nacos.spec.references import CredentialsRef
from konverge.operators.nacos.spec.storage import Database, Postgres
from konverge.operators.nacos.steps.present import Present, applied, present_database, read, read_present
from tests.operators.nacos.steps.bench import Bench
from tests.operators.nacos.world import EMBEDDED, MYSQL, POSTGRES, STANDALONE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-15")]
WITH_SECRET: dict[str, Any] = {
    **EMBEDDED,
    "database": {
        "type": "mysql",
        "mysqlHost": "my",
        "mysqlPort": "3307",
        "mysqlDb": "db",
        "mysqlCheck": False,
        "mysqlCredentialsSecretRef": {"name": "login", "usernameKey": "u", "passwordKey": "p"},
    },
}
WITH_CA: dict[str, Any] = {
    **POSTGRES,
    "postgres": {
        "host": "fd00::1",
        "port": "5433",
        "database": "db",
        "credentialsSecretRef": {"name": "login", "usernameKey": "u", "passwordKey": "p"},
        "tls": {"mode": "verify-full", "caSecretRef": {"name": "ca", "key": "root.pem"}},
    },
}


def running(spec: dict[str, Any]) -> tuple[Bench, StatefulSet]:
    bench = Bench(spec)
    live = bench.stateful_set()
    if bench.state.desired.renders:
        bench.owned(final_config_map(bench.state.desired, base_properties(bench.state.desired)))
    return bench, live


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            STANDALONE,
            Present(
                type="standalone",
                database="embedded",
                volume="claims",
                size=Quantity("10Gi"),
                image="harbor.cloud.io/nacos/nacos-server:v2.0.4",
            ),
        ),
        (
            {**EMBEDDED, "volume": {"enabled": True, "requests": {"storage": "1Gi"}, "storageClass": "fast"}},
            Present(
                type="cluster",
                database="embedded",
                volume="claims",
                storage_class="fast",
                size=Quantity("1Gi"),
                image="nacos/nacos-server:v2.4.3",
            ),
        ),
        (
            {**MYSQL, "volume": {"hostPath": {"path": "/data"}}},
            Present(
                type="cluster",
                database="mysql://my:3306/nacos",
                volume="hostPath:/data",
                image="harbor.cloud.io/nacos/nacos-server:v2.0.4",
            ),
        ),
        (
            {**WITH_CA, "volume": {"emptyDir": {}}},
            Present(
                type="cluster",
                database="postgresql://fd00::1:5433/db",
                volume="none",
                image="nacos/nacos-server:v2.4.3",
            ),
        ),
    ],
)
async def test_what_runs_is_read_from_the_stateful_set(spec: dict[str, Any], expected: Present) -> None:
    bench, live = running(spec)
    present = await read_present(bench.state, live)
    assert present == expected
    assert present is not None
    kept = applied(present, "Restricted")
    assert kept.pod_security == "Restricted"
    assert Present(**{name: getattr(kept, name) for name in Present.__struct_fields__}) == expected


async def test_without_a_stateful_set_a_ready_pod_is_read_and_then_the_status() -> None:
    bench, live = running(STANDALONE)
    del bench.objects.stored["StatefulSet", "nacos"]
    pods = bench.pods(2, ready=[0])
    pods[0].spec = to_pod(live, image="n:ready")
    pods[1].spec = to_pod(live, image="n:not-ready")
    present = await read_present(bench.state, None)
    assert present == Present(type="standalone", database="embedded", volume="claims", image="n:ready")
    for number in range(2):
        del bench.objects.stored["Pod", f"nacos-{number}"]
    assert await read_present(bench.state, None) is None
    bench.status.applied = Applied(type="cluster", database="d", volume="v", image="i", storage_class="s")
    present = await read_present(bench.state, None)
    assert present == Present(type="cluster", database="d", volume="v", image="i"), "claims are read from claims"


def to_pod(live: StatefulSet, *, image: str) -> PodSpec:
    spec: PodSpec = live.spec.template.spec
    claim = PersistentVolumeClaimVolumeSource(claim_name="db-nacos-0")
    container = spec.containers[0]
    copied = type(container)(name=container.name, image=image, env=container.env)
    return PodSpec(containers=[copied], volumes=[Volume(name="db", persistent_volume_claim=claim)])


async def test_properties_of_postgres_are_those_that_the_pods_mount() -> None:
    bench, live = running(POSTGRES)
    other = Volume(name="other", config_map=ConfigMapVolumeSource(name="other"))
    live.spec.template.spec.volumes = [other, *live.spec.template.spec.volumes]
    present = await read_present(bench.state, live)
    assert present is not None
    assert present.database == "postgresql://pg:5432/nacos"
    config = bench.objects.stored["ConfigMap", "nacos-final-config"]
    config.data["application.properties"] = "db.url.0=jdbc:mysql://x:1/y?z"  # type: ignore[attr-defined]
    present = await read_present(bench.state, live)
    assert present is not None
    assert present.database == "", "what cannot be read counts as unchanged"
    del bench.objects.stored["ConfigMap", "nacos-final-config"]
    present = await read_present(bench.state, live)
    assert present is not None
    assert present.database == ""


@pytest.mark.parametrize(
    ("env", "type", "database"),
    [
        ({}, "", ""),
        ({"NACOS_SERVERS": "a b c"}, "cluster", ""),
        ({"MODE": "standalone", "NACOS_SERVERS": "a"}, "standalone", ""),
        ({"EMBEDDED_STORAGE": "embedded"}, "", "embedded"),
        ({"EMBEDDED_STORAGE": "other"}, "", ""),
        ({"SPRING_DATASOURCE_PLATFORM": "mysql"}, "", ""),
        ({"SPRING_DATASOURCE_PLATFORM": "mysql", "MYSQL_SERVICE_HOST": "h", "MYSQL_SERVICE_PORT": "1"}, "", ""),
        ({"SPRING_DATASOURCE_PLATFORM": "mysql", "MYSQL_SERVICE_HOST": "h", "MYSQL_SERVICE_DB_NAME": "d"}, "", ""),
        ({"SPRING_DATASOURCE_PLATFORM": "mysql", "MYSQL_SERVICE_PORT": "1", "MYSQL_SERVICE_DB_NAME": "d"}, "", ""),
        ({"SPRING_DATASOURCE_PLATFORM": "postgresql", "EMBEDDED_STORAGE": "embedded"}, "", ""),
    ],
)
async def test_what_other_operators_left_out_is_unknown(env: dict[str, str], type: str, database: str) -> None:
    _, live = running(EMBEDDED)
    spec = live.spec.template.spec
    spec.containers[0].env = [EnvVar(name=name, value=value) for name, value in env.items()]
    present = read("nacos", spec, [])
    assert (present.type, present.database) == (type, database)


async def test_only_the_servers_container_and_volume_are_read() -> None:
    _, live = running(STANDALONE)
    spec = live.spec.template.spec
    other = PodSpec(containers=[type(spec.containers[0])(name="side", image="side:1")])
    other.volumes = [Volume(name="logs", host_path=HostPathVolumeSource(path="/logs"))]
    claim = PersistentVolumeClaimVolumeSource(claim_name="logs")
    other.volumes.append(Volume(name="more", persistent_volume_claim=claim))
    assert read("nacos", other, None) == Present(volume="none")
    live.spec.volume_claim_templates[0].metadata.name = "logs"
    assert read("nacos", other, live.spec.volume_claim_templates) == Present(volume="none")


@pytest.mark.parametrize("spec", [STANDALONE, MYSQL, WITH_SECRET, POSTGRES, WITH_CA])
async def test_the_database_block_is_read_back(spec: dict[str, Any]) -> None:
    bench, live = running(spec)
    database, postgres = await present_database(bench.state, live.spec.template.spec, bench.state.desired)
    given = bench.state.desired.spec
    assert database == given.database
    if given.postgres.host:
        given.postgres.tls.mode = given.postgres.tls.mode_in_force
    assert postgres == given.postgres


async def test_a_database_block_that_cannot_be_read_is_empty() -> None:
    bench, live = running(WITH_CA)
    del bench.objects.stored["ConfigMap", "nacos-final-config"]
    database, postgres = await present_database(bench.state, live.spec.template.spec, bench.state.desired)
    assert (database, postgres) == (Database(type="postgresql"), Postgres())
    bench, live = running(WITH_SECRET)
    spec = live.spec.template.spec
    spec.containers[0].env = [EnvVar(name="SPRING_DATASOURCE_PLATFORM", value="mysql")]
    database, postgres = await present_database(bench.state, spec, bench.state.desired)
    empty = Database(type="mysql", mysql_port="", mysql_db="", mysql_check=False)
    assert (database, postgres) == (empty, Postgres())
    spec.containers[0].name = "other"
    database, _ = await present_database(bench.state, spec, bench.state.desired)
    assert database == Database(type="embedded")


async def test_credentials_are_a_reference_only_where_both_are() -> None:
    bench, live = running(WITH_SECRET)
    container = live.spec.template.spec.containers[0]
    for variable in container.env:
        if variable.name == "MYSQL_SERVICE_PASSWORD":
            variable.value_from, variable.value = None, "plain"
    database, _ = await present_database(bench.state, live.spec.template.spec, bench.state.desired)
    assert database.mysql_credentials_secret_ref is None
    assert database.mysql_password == "plain"
    for variable in container.env:
        if variable.name == "MYSQL_SERVICE_PASSWORD":
            variable.value_from = EnvVarSource(field_ref=ObjectFieldSelector(field_path="metadata.name"))
    database, _ = await present_database(bench.state, live.spec.template.spec, bench.state.desired)
    assert database.mysql_credentials_secret_ref is None


async def test_parameters_of_a_url_that_an_older_operator_wrote() -> None:
    bench, live = running(POSTGRES)
    config = bench.objects.stored["ConfigMap", "nacos-final-config"]
    text = "a=b\ndb.url.0=jdbc:postgresql://h:1/d?flag&sslmode=require&x=y=z\n"
    config.data["application.properties"] = text  # type: ignore[attr-defined]
    _, postgres = await present_database(bench.state, live.spec.template.spec, bench.state.desired)
    assert (postgres.host, postgres.port, postgres.database, postgres.tls.mode) == ("h", "1", "d", "require")
    assert postgres.tls.ca_secret_ref is None
    config.data["application.properties"] = "db.url.0=jdbc:postgresql://h:1/d?"  # type: ignore[attr-defined]
    _, postgres = await present_database(bench.state, live.spec.template.spec, bench.state.desired)
    assert postgres.tls.mode == "prefer"
    container = live.spec.template.spec.containers[0]
    container.env = [variable for variable in container.env if variable.value_from is None]
    _, postgres = await present_database(bench.state, live.spec.template.spec, bench.state.desired)
    assert postgres.credentials_secret_ref == CredentialsRef()
