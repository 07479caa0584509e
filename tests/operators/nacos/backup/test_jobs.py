"""The Jobs of backups: what they run with, and under which names."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import ObjectMeta, from_dict
from konverge.operators.nacos.backup.jobs import (
    backup_job,
    data_path,
    data_prefix,
    database_image,
    database_variables,
    delete_job,
    job_name,
)
from konverge.operators.nacos.backup.kinds import NacosBackup, NacosBackupSpec, VolumeStorage
from konverge.operators.nacos.backup.runs import read_result
from konverge.operators.nacos.desired import Desired, read_desired
from konverge.operators.nacos.resource import AnyNacos
from tests.operators.nacos.backup.world import CLAIM, MY, PG
from tests.operators.nacos.world import SPACE

pytestmark = pytest.mark.spec("N-56")
UID = "01234567-89ab-cdef-0123-456789abcdef"


def desired(spec: dict[str, Any]) -> Desired:
    return read_desired(AnyNacos(metadata=ObjectMeta(name="nacos", namespace=SPACE, uid="n"), spec=spec))


def owner(name: str = "first") -> NacosBackup:
    spec = {"nacosRef": {"name": "nacos"}, "storage": {"volume": {"claimName": CLAIM, "path": "deep"}}}
    meta = ObjectMeta(name=name, namespace=SPACE, uid=UID)
    return NacosBackup(metadata=meta, spec=from_dict(NacosBackupSpec, spec))


def values(spec: dict[str, Any]) -> dict[str, str | None]:
    """Plain variables, and `Secret/key` of the others."""
    shown: dict[str, str | None] = {}
    for variable in database_variables(desired(spec)):
        ref = variable.value_from.secret_key_ref if variable.value_from is not None else None
        shown[variable.name] = variable.value if ref is None else f"{ref.name}/{ref.key}"
    return shown


def test_the_variables_of_postgresql() -> None:
    assert values(PG) == {
        "PGHOST": "pg",
        "PGPORT": "5432",
        "PGDATABASE": "nacos",
        "PGSSLMODE": "prefer",
        "PGCONNECT_TIMEOUT": "20",
        "PGUSER": "pg/username",
        "PGPASSWORD": "pg/password",
    }


def test_tls_of_postgresql() -> None:
    tls = {"mode": "verify-full", "serverName": "db.example", "caSecretRef": {"name": "ca", "key": "root.pem"}}
    spec = {**PG, "postgres": {**PG["postgres"], "tls": tls}}
    shown = values(spec)
    assert (shown["PGSSLMODE"], shown["SERVER_NAME"]) == ("verify-full", "db.example")
    job = backup_job(owner(), 1, desired(spec), owner().spec, "p-")
    pod = job.spec.template.spec
    ca = next(volume for volume in pod.volumes if volume.secret is not None)
    assert ca.secret is not None
    mount = next(mount for mount in pod.containers[0].volume_mounts if mount.name == ca.name)
    assert shown["PGSSLROOTCERT"] == f"{mount.mount_path}/{ca.secret.items[0].path}"
    assert (ca.secret.secret_name, ca.secret.items[0].key, mount.read_only) == ("ca", "root.pem", True)


@pytest.mark.spec("N-73")
@pytest.mark.parametrize(
    ("tls", "mode", "authority"),
    [
        ({"mode": "verify-full"}, "verify-full", "system"),
        ({"mode": "verify-ca"}, "verify-ca", None),
        ({"mode": "require"}, "require", None),
        ({"caSecretRef": {"name": "ca"}}, "verify-full", "/postgres-ca/ca.crt"),
    ],
)
def test_modes_of_postgresql(tls: dict[str, Any], mode: str, authority: str | None) -> None:
    shown = values({**PG, "postgres": {**PG["postgres"], "tls": tls}})
    assert (shown["PGSSLMODE"], shown.get("PGSSLROOTCERT")) == (mode, authority)


@pytest.mark.spec("N-73")
def test_tls_of_mysql() -> None:
    tls = {"caSecretRef": {"name": "ca", "key": "root.pem"}}
    spec = {**MY, "database": {**MY["database"], "tls": tls}}
    shown = values(spec)
    assert (shown["MYSQL_TLS"], shown["MYSQL_CA"]) == ("--ssl-mode=VERIFY_IDENTITY", "/mysql-ca/ca.crt")
    pod = backup_job(owner(), 1, desired(spec), owner().spec, "p-").spec.template.spec
    (volume,) = [volume for volume in pod.volumes if volume.secret is not None]
    assert volume.secret is not None
    (mount,) = [mount for mount in pod.containers[0].volume_mounts if mount.name == volume.name]
    assert (mount.mount_path, mount.read_only) == ("/mysql-ca", True)
    item = volume.secret.items[0]
    assert (volume.secret.secret_name, item.key, item.path) == ("ca", "root.pem", "ca.crt")
    plain = {**MY, "database": {**MY["database"], "tls": {**tls, "mode": "require"}}}
    assert "MYSQL_CA" not in values(plain)
    assert len(backup_job(owner(), 1, desired(plain), owner().spec, "p-").spec.template.spec.volumes) == 1


def test_the_variables_of_mysql() -> None:
    database = {**MY["database"], "mysqlPort": "3307", "mysqlCredentialsSecretRef": {"name": "my"}}
    assert values({**MY, "database": database}) == {
        "MYSQL_HOST": "my",
        "MYSQL_PORT": "3307",
        "MYSQL_DB": "nacos",
        "MYSQL_USER": "my/username",
        "MYSQL_PASS": "my/password",
    }


def test_images() -> None:
    assert database_image(desired(PG)) == "postgres:17"
    assert database_image(desired(MY)) == "mysql:8.4"
    assert database_image(desired({**MY, "mysqlInitImage": "registry/mysql:8"})) == "registry/mysql:8"


def test_its_pod_runs_where_the_servers_may() -> None:
    placed = {
        "tolerations": [{"key": "db", "operator": "Exists"}],
        "nodeSelector": {"disk": "ssd"},
        "imagePullSecrets": [{"name": "registry"}],
        "priorityClassName": "high",
    }
    job = backup_job(owner(), 2, desired({**PG, **placed}), owner().spec, "deep/nacos/first-")
    pod = job.spec.template.spec
    assert (pod.tolerations[0].key, pod.node_selector, pod.priority_class_name) == ("db", {"disk": "ssd"}, "high")
    assert pod.image_pull_secrets[0].name == "registry"
    assert pod.restart_policy == "Never"
    env = {variable.name: variable.value for variable in pod.containers[0].env}
    assert env["FILE"] == "/backup/deep/nacos/first-2.dump"
    assert (env["PREFIX"], env["RESULT"]) == ("/backup/deep/nacos/first-", "/dev/termination-log")
    assert pod.containers[0].termination_message_policy == "FallbackToLogsOnError"
    claim = pod.volumes[0].persistent_volume_claim
    assert claim is not None
    assert claim.claim_name == CLAIM
    labels = job.spec.template.metadata.labels
    assert labels == {"app": job.metadata.name, "middleware": "nacos", "component": "nacos-backup"}


def test_a_deletion_needs_no_database() -> None:
    job = delete_job(owner(), owner().spec, "postgres:17", "deep/nacos/first-")
    container = job.spec.template.spec.containers[0]
    assert {variable.name for variable in container.env} == {"FILE", "PREFIX", "RESULT"}
    assert container.name == "nacos-delete"
    assert container.command[2].splitlines()[1] == 'rm -f "$PREFIX"*'


def test_names() -> None:
    assert job_name(owner(), "backup", 2) == "first-backup-01234567-2"
    assert job_name(owner("a" * 35 + "-b"), "restore", 10) == "a" * 35 + "-restore-01234567-10"
    assert len(job_name(owner("a" * 253), "restore", 99)) <= 63
    volume = VolumeStorage(claim_name=CLAIM)
    assert data_prefix(owner(), "nacos", volume) == "nacos/first-01234567-"
    assert data_prefix(owner(), "nacos", VolumeStorage(claim_name=CLAIM, path="a/b")) == "a/b/nacos/first-01234567-"
    assert len(data_prefix(owner("a" * 253), "nacos", volume)) < 150
    assert data_path("p-", 3, "Database", "postgresql") == "p-3.dump"
    assert data_path("p-", 3, "Database", "mysql") == "p-3.sql.gz"
    assert data_path("p-", 3, "Configuration", "mysql") == "p-3.jsonl.gz"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "killed",
        '{"size": 0, "sha256": "' + "a" * 64 + '"}',
        '{"size": 5, "sha256": "' + "a" * 63 + '"}',
        '{"size": 5}',
        '{"size": "5", "sha256": "' + "a" * 64 + '"}',
    ],
)
def test_results_that_say_nothing(message: str) -> None:
    assert read_result(message) is None
