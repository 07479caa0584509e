"""The Jobs of backups: what they run with, and under which names."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import ObjectMeta, from_dict
from konverge.objects.kinds.core_v1 import Container
from konverge.operators.nacos.backup.jobs import (
    backup_job,
    data_path,
    data_prefix,
    database_image,
    database_variables,
    delete_job,
    inspect_job,
    konverge_image,
    path_of,
    restore_job,
    storage_of,
)
from konverge.operators.nacos.backup.kinds import NacosBackup, NacosBackupSpec, NacosBackupStatus, NacosRestore
from konverge.operators.nacos.backup.pods import job_name
from konverge.operators.nacos.backup.runs import read_result
from konverge.operators.nacos.backup.storage import RestoreSource, Storage, VolumeStorage
from konverge.operators.nacos.desired import Desired, read_desired
from konverge.operators.nacos.resource import AnyNacos
from tests.operators.nacos.backup.world import BUCKET, CLAIM, ENDPOINT, MY, PG, S3
from tests.operators.nacos.world import SPACE

pytestmark = pytest.mark.spec("N-56")
UID = "01234567-89ab-cdef-0123-456789abcdef"


def desired(spec: dict[str, Any]) -> Desired:
    return read_desired(AnyNacos(metadata=ObjectMeta(name="nacos", namespace=SPACE, uid="n"), spec=spec))


def owner(name: str = "first") -> NacosBackup:
    spec = {"nacosRef": {"name": "nacos"}, "storage": {"volume": {"claimName": CLAIM, "path": "deep"}}}
    meta = ObjectMeta(name=name, namespace=SPACE, uid=UID)
    return NacosBackup(
        metadata=meta, spec=from_dict(NacosBackupSpec, spec), status=NacosBackupStatus(engine="postgresql")
    )


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
    job = backup_job(owner(), 1, desired(spec), "p-")
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
    pod = backup_job(owner(), 1, desired(spec), "p-").spec.template.spec
    (volume,) = [volume for volume in pod.volumes if volume.secret is not None]
    assert volume.secret is not None
    (mount,) = [mount for mount in pod.containers[0].volume_mounts if mount.name == volume.name]
    assert (mount.mount_path, mount.read_only) == ("/mysql-ca", True)
    item = volume.secret.items[0]
    assert (volume.secret.secret_name, item.key, item.path) == ("ca", "root.pem", "ca.crt")
    plain = {**MY, "database": {**MY["database"], "tls": {**tls, "mode": "require"}}}
    assert "MYSQL_CA" not in values(plain)
    assert len(backup_job(owner(), 1, desired(plain), "p-").spec.template.spec.volumes) == 1


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
    job = backup_job(owner(), 2, desired({**PG, **placed}), "deep/nacos/first-")
    pod = job.spec.template.spec
    assert (pod.tolerations[0].key, pod.node_selector, pod.priority_class_name) == ("db", {"disk": "ssd"}, "high")
    assert pod.image_pull_secrets[0].name == "registry"
    assert pod.restart_policy == "Never"
    env = {variable.name: variable.value for variable in pod.containers[0].env}
    assert env["FILE"] == "/backup/deep/nacos/first-2.dump"
    assert env["FILES"] == "/backup/deep/nacos/first-1.dump\n/backup/deep/nacos/first-2.dump"
    assert env["RESULT"] == "/dev/termination-log"
    assert pod.init_containers == []
    assert pod.containers[0].termination_message_policy == "FallbackToLogsOnError"
    claim = pod.volumes[0].persistent_volume_claim
    assert claim is not None
    assert claim.claim_name == CLAIM
    labels = job.spec.template.metadata.labels
    assert labels == {"app": job.metadata.name, "middleware": "nacos", "component": "nacos-backup"}


def test_a_deletion_needs_no_database() -> None:
    deleted = owner()
    deleted.status.attempt = 2
    job = delete_job(deleted, "postgres:17", "deep/nacos/first-")
    container = job.spec.template.spec.containers[0]
    env = {variable.name: variable.value for variable in container.env}
    assert set(env) == {"FILE", "FILES", "RESULT"}
    assert env["FILES"] == "/backup/deep/nacos/first-1.dump\n/backup/deep/nacos/first-2.dump"
    assert (container.name, container.image) == ("nacos-delete", "postgres:17")


def test_names() -> None:
    assert job_name(owner(), "backup", 2) == "first-backup-01234567-2"
    assert job_name(owner("a" * 35 + "-b"), "restore", 10) == "a" * 35 + "-restore-01234567-10"
    assert len(job_name(owner("a" * 253), "restore", 99)) <= 63
    volume = Storage(volume=VolumeStorage(claim_name=CLAIM))
    deep = Storage(volume=VolumeStorage(claim_name=CLAIM, path="a/b"))
    assert data_prefix(owner(), "nacos", volume) == "nacos/first-01234567-"
    assert data_prefix(owner(), "nacos", deep) == "a/b/nacos/first-01234567-"
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


def in_bucket(**more: Any) -> NacosBackup:
    stored = owner()
    s3 = {**S3, "prefix": "deep", "caSecret": {"name": "authority", "key": "root.pem"}, "forcePathStyle": True}
    spec = {"nacosRef": {"name": "nacos"}, "storage": {"s3": s3}, **more}
    stored.spec = from_dict(NacosBackupSpec, spec)
    return stored


def plain(container: Container) -> dict[str, str | None]:
    return {variable.name: variable.value for variable in container.env}


@pytest.mark.spec("N-70")
class TestBuckets:
    def test_a_dump_and_then_its_upload(self) -> None:
        pod = backup_job(in_bucket(), 2, desired(PG), "deep/nacos/first-").spec.template.spec
        (dump,), (upload,) = pod.init_containers, pod.containers
        assert (dump.name, dump.image, upload.name) == ("nacos-dump", "postgres:17", "nacos-backup")
        assert upload.image == konverge_image()
        assert upload.command == ["python", "-m", "konverge.operators.nacos.backup.carry", "upload"]
        key = "deep/nacos/first-2.dump"
        env = plain(upload)
        assert plain(dump)["FILE"] == env["FILE"] == f"/backup/{key}"
        assert (env["KEY"], env["KEYS"]) == (key, f"deep/nacos/first-1.dump\n{key}")
        assert (env["S3_ENDPOINT"], env["S3_BUCKET"], env["S3_REGION"]) == (ENDPOINT, BUCKET, "us-east-1")
        assert (env["S3_PATH_STYLE"], env["S3_CA"]) == ("true", "/s3-ca/ca.crt")
        assert dump.security_context == upload.security_context

    def test_credentials_are_files_of_the_upload_alone(self) -> None:
        pod = backup_job(in_bucket(), 1, desired(PG), "p-").spec.template.spec
        (dump,), (upload,) = pod.init_containers, pod.containers
        volumes = {volume.name: volume for volume in pod.volumes}
        assert volumes["backup"].empty_dir is not None
        secret, authority = volumes["s3-credentials"].secret, volumes["s3-ca"].secret
        assert secret is not None
        assert authority is not None
        assert (secret.secret_name, secret.items) == ("s3", [])
        item = authority.items[0]
        assert (authority.secret_name, item.key, item.path) == ("authority", "root.pem", "ca.crt")
        assert {mount.name for mount in dump.volume_mounts} == {"backup"}
        mounts = {mount.name: (mount.mount_path, mount.read_only) for mount in upload.volume_mounts}
        assert mounts == {
            "backup": ("/backup", None),
            "s3-credentials": ("/s3-credentials", True),
            "s3-ca": ("/s3-ca", True),
        }
        env = plain(upload)
        assert env["S3_CREDENTIALS"] == "/s3-credentials"
        assert (env["S3_ACCESS_KEY"], env["S3_SECRET_KEY"]) == ("accessKeyId", "secretAccessKey")
        assert env["S3_SESSION_TOKEN"] == "sessionToken"
        assert all(variable.value_from is None for variable in upload.env), "nor those of the database"

    def test_more_attempts_than_with_a_volume(self) -> None:
        assert backup_job(in_bucket(), 1, desired(PG), "p-").spec.backoff_limit == 6
        assert backup_job(owner(), 1, desired(PG), "p-").spec.backoff_limit == 2

    def test_images(self) -> None:
        def image(**spec: Any) -> str | None:
            return backup_job(in_bucket(**spec), 1, desired(PG), "p-").spec.template.spec.containers[0].image

        assert image(transferImage="own:1", image="pg:1") == "own:1"
        assert image(image="pg:1") == konverge_image()
        assert image(image="own:2", method="Configuration") == "own:2"

    def test_a_deletion_is_the_carrier_alone(self) -> None:
        deleted = in_bucket()
        deleted.status.attempt = 2
        pod = delete_job(deleted, "postgres:17", "p-").spec.template.spec
        assert pod.init_containers == []
        (container,) = pod.containers
        assert (container.name, container.image, container.command[-1]) == ("nacos-delete", konverge_image(), "delete")
        assert plain(container)["KEYS"] == "p-1.dump\np-2.dump"

    def test_a_restore_fetches_first(self) -> None:
        spec = {"nacosRef": {"name": "nacos"}, "backupRef": {"name": "first"}}
        restore = from_dict(NacosRestore, {"metadata": {"name": "back", "uid": UID}, "spec": spec})
        restore.status.s3, restore.status.path = in_bucket().spec.storage.s3, "a/b.dump"
        restore.status.sha256 = "0" * 64
        job = restore_job(restore, 1, desired(PG))
        pod = job.spec.template.spec
        (fetch,), (load,) = pod.init_containers, pod.containers
        assert (fetch.name, fetch.command[-1], load.name) == ("nacos-fetch", "fetch", "nacos-restore")
        assert (plain(fetch)["KEY"], plain(fetch)["SHA256"]) == ("a/b.dump", "0" * 64)
        assert plain(fetch)["FILE"] == plain(load)["FILE"] == "/backup/a/b.dump"
        assert (fetch.volume_mounts[0].read_only, load.volume_mounts[0].read_only) == (None, True)
        assert job.spec.backoff_limit == 0

    @pytest.mark.spec("N-69")
    def test_an_inspection_writes_nothing(self) -> None:
        source = from_dict(RestoreSource, {"volume": {"claimName": CLAIM, "path": "a/b.dump"}})
        place = storage_of(source), path_of(source)
        restore = from_dict(
            NacosRestore, {"metadata": {"name": "back", "uid": UID}, "spec": {"nacosRef": {"name": "n"}}}
        )
        pod = inspect_job(restore, *place, desired(MY)).spec.template.spec
        (container,) = pod.containers
        assert (container.name, container.image, container.command[-1]) == (
            "nacos-inspect",
            konverge_image(),
            "inspect",
        )
        assert container.volume_mounts[0].read_only is True
        assert plain(container) == {"FILE": "/backup/a/b.dump", "RESULT": "/dev/termination-log"}
        restore.spec.transfer_image = "own:1"
        assert inspect_job(restore, *place, desired(MY)).spec.template.spec.containers[0].image == "own:1"

    def test_keys(self) -> None:
        assert data_prefix(owner(), "nacos", in_bucket().spec.storage) == f"deep/{SPACE}/nacos/first-01234567-"
        bare = from_dict(Storage, {"s3": S3})
        assert data_prefix(owner(), "nacos", bare) == f"{SPACE}/nacos/first-01234567-"
