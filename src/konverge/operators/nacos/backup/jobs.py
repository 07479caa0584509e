"""The Jobs of backups; pure.

What each is given: the data, the database or the servers, and the image. `pods` makes the pod of it.
"""

from __future__ import annotations

import msgspec

from konverge.objects import Object
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import (
    EnvVar,
    EnvVarSource,
    KeyToPath,
    SecretKeySelector,
    SecretVolumeSource,
    VolumeMount,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.backup import scripts
from konverge.operators.nacos.backup.carriers import Carrier
from konverge.operators.nacos.backup.kinds import BackupSettings, Method, NacosBackup, NacosRestore
from konverge.operators.nacos.backup.manifest import Manifest
from konverge.operators.nacos.backup.pods import RETRIES, UID, Action, Work, job_of
from konverge.operators.nacos.backup.storage import RestoreSource, S3Storage, Storage, VolumeStorage
from konverge.operators.nacos.children.config import CA_KEY
from konverge.operators.nacos.children.environment import (
    IDENTITY_KEY,
    IDENTITY_VALUE,
    JOB_VARIABLES,
    mysql_variables,
)
from konverge.operators.nacos.children.mysql_tls import FOLDER, client_variables, has_store
from konverge.operators.nacos.desired import Desired

POSTGRES_IMAGE = "postgres:17"
"""A pg_dump dumps servers of its own version and of earlier ones."""
MYSQL_IMAGE = "mysql:8.4"
_POSTGRES_CA = "/postgres-ca"
_BUCKET_RETRIES = 6
"""Of Jobs with a bucket: with the patience of each, a service may be away for most of an hour."""


def data_prefix(owner: Object, nacos: str, storage: Storage) -> str:
    """Of all attempts of a backup: the uid keeps the data of an earlier backup of the same name apart. Others use a
    bucket too, so the namespace is part of its keys."""
    name = f"{owner.metadata.name[:120].rstrip('-.')}-{owner.metadata.uid[:UID]}-"
    if storage.s3 is not None:
        return "/".join(filter(None, (storage.s3.prefix, owner.metadata.namespace, nacos, name)))
    folder = storage.volume.path if storage.volume is not None else ""
    return "/".join(filter(None, (folder, nacos, name)))


def data_path(prefix: str, number: int, method: Method, engine: str) -> str:
    database = "dump" if engine == "postgresql" else "sql.gz"
    return f"{prefix}{number}.{database if method == 'Database' else 'jsonl.gz'}"


def data_paths(owner: NacosBackup, prefix: str, attempts: int) -> tuple[str, ...]:
    """Of the attempts until this one. What others store may begin alike, so data is deleted by its whole name."""
    method, engine = owner.spec.method, owner.status.engine
    return tuple(data_path(prefix, number, method, engine) for number in range(1, attempts + 1))


def backup_job(owner: NacosBackup, number: int, desired: Desired, prefix: str) -> Job:
    """Stores the data of a Nacos."""
    settings = owner.spec
    bucket = settings.storage.s3 is not None
    work = Work(
        owner=owner,
        action="backup",
        number=number,
        image=settings.image or default_image(settings.method, desired),
        command=_command(settings.method, "backup", desired.engine),
        storage=settings.storage,
        path=data_path(prefix, number, settings.method, desired.engine),
        paths=data_paths(owner, prefix, number),
        env=(EnvVar(name="MANIFEST", value=_manifest(owner)), *variables(settings.method, desired)),
        ca=database_ca(desired) if settings.method == "Database" else None,
        carrier=Carrier(carrier_image(settings), "upload") if bucket else None,
        timeout=settings.timeout_seconds,
        retries=_BUCKET_RETRIES if bucket else RETRIES,
    )
    return job_of(work, desired)


def _manifest(owner: NacosBackup) -> str:
    """Without size and digest, which the program adds."""
    meta, spec, status = owner.metadata, owner.spec, owner.status
    manifest = Manifest(
        backup=f"{meta.namespace}/{meta.name}",
        nacos=spec.nacos_ref.name,
        nacos_version=status.nacos_version,
        method=spec.method,
        engine=status.engine,
        schema=status.schema,
        created=status.start_time,
    )
    known = {name: value for name, value in msgspec.to_builtins(manifest).items() if name not in ("size", "sha256")}
    return msgspec.json.encode(known).decode()


def restore_job(owner: NacosRestore, number: int, desired: Desired) -> Job:
    """Replaces the database of a Nacos. It is not retried: what it has touched is for people to see."""
    status, spec = owner.status, owner.spec
    given = {"SHA256": status.sha256, "OVERWRITE": str(spec.overwrite).lower()}
    volume = VolumeStorage(claim_name=status.claim_name) if status.s3 is None else None
    image = spec.transfer_image or (spec.image if status.method == "Configuration" else "") or konverge_image()
    work = Work(
        owner=owner,
        action="restore",
        number=number,
        image=spec.image or default_image(status.method, desired),
        command=_command(status.method, "restore", desired.engine),
        storage=Storage(volume=volume, s3=status.s3),
        path=status.path,
        env=(*(EnvVar(name=name, value=value) for name, value in given.items()), *variables(status.method, desired)),
        ca=database_ca(desired) if status.method == "Database" else None,
        carrier=Carrier(image, "fetch") if status.s3 is not None else None,
        timeout=spec.timeout_seconds,
        retries=0,
    )
    return job_of(work, desired)


def inspect_job(owner: NacosRestore, storage: Storage, path: str, desired: Desired) -> Job:
    """Reads the manifest of data, and compares the data with it."""
    work = Work(
        owner=owner,
        action="inspect",
        number=1,
        storage=storage,
        path=path,
        carrier=Carrier(owner.spec.transfer_image or konverge_image(), "inspect"),
        timeout=owner.spec.timeout_seconds,
    )
    return job_of(work, desired)


def storage_of(source: RestoreSource) -> Storage:
    if source.volume is not None:
        return Storage(volume=VolumeStorage(claim_name=source.volume.claim_name))
    assert source.s3 is not None  # by the schema
    given = {name: getattr(source.s3, name) for name in source.s3.__struct_fields__ if name != "key"}
    return Storage(s3=S3Storage(**given))


def path_of(source: RestoreSource) -> str:
    if source.volume is not None:
        return source.volume.path
    return source.s3.key if source.s3 is not None else ""


def delete_job(owner: NacosBackup, image: str, prefix: str) -> Job:
    """Removes the data of a backup, also when its Nacos is gone."""
    settings = owner.spec
    bucket = settings.storage.s3 is not None
    work = Work(
        owner=owner,
        action="delete",
        number=1,
        image=image,
        command=() if bucket else _command(settings.method, "delete", ""),
        storage=settings.storage,
        path=prefix,
        paths=data_paths(owner, prefix, owner.status.attempt),
        carrier=Carrier(carrier_image(settings), "delete") if bucket else None,
        timeout=settings.timeout_seconds,
    )
    return job_of(work, None)


def _command(method: Method, action: Action, engine: str) -> tuple[str, ...]:
    if method == "Configuration":
        return "python", "-m", "konverge.operators.nacos.backup.transfer", action
    postgres = engine == "postgresql"
    by_action: dict[Action, str] = {
        "backup": scripts.POSTGRES_BACKUP if postgres else scripts.MYSQL_BACKUP,
        "restore": scripts.POSTGRES_RESTORE if postgres else scripts.MYSQL_RESTORE,
        "delete": scripts.DELETE,
    }
    return "/bin/sh", "-c", by_action[action]


def default_image(method: Method, desired: Desired) -> str:
    return database_image(desired) if method == "Database" else konverge_image()


def konverge_image() -> str:
    from importlib.metadata import version  # slow to import, and only a backup needs it

    return f"konverge:{version('konverge')}"


def carrier_image(settings: BackupSettings) -> str:
    """Of what carries the data: with the method Configuration `image` is the one of Konverge, too."""
    return settings.transfer_image or (settings.image if settings.method == "Configuration" else "") or konverge_image()


def variables(method: Method, desired: Desired) -> tuple[EnvVar, ...]:
    return database_variables(desired) if method == "Database" else server_variables(desired)


def server_variables(desired: Desired) -> tuple[EnvVar, ...]:
    """The address of the servers, and what opens their API."""
    spec = desired.spec
    host = f"{names.front(desired.name, desired.cluster)}.{desired.namespace}.svc"
    made = [EnvVar(name="NACOS_ADDRESS", value=host), EnvVar(name="NACOS_MAJOR", value=str(desired.version.major))]
    if (identity := spec.identity_secret_ref) is not None and identity.name:
        keys = identity.name, identity.key_key, identity.value_key
    else:
        keys = names.auth_secret(desired.name), IDENTITY_KEY, IDENTITY_VALUE
    made += [_optional("IDENTITY_KEY", keys[0], keys[1]), _optional("IDENTITY_VALUE", keys[0], keys[2])]
    if (admin := spec.admin_credentials_secret_ref) is not None and admin.name:
        made.append(_optional("ADMIN_USERNAME", admin.name, admin.username_key))
        made.append(_optional("ADMIN_PASSWORD", admin.name, admin.password_key))
    return tuple(made)


def database_image(desired: Desired) -> str:
    return POSTGRES_IMAGE if desired.engine == "postgresql" else desired.spec.mysql_init_image or MYSQL_IMAGE


def database_variables(desired: Desired) -> tuple[EnvVar, ...]:
    """The address of the database and the credentials, by the names that its programs know."""
    if desired.engine == "mysql":
        return (*mysql_variables(desired, JOB_VARIABLES), *client_variables(desired))
    postgres, ref = desired.spec.postgres, desired.spec.postgres.credentials_secret_ref
    plain = {
        "PGHOST": postgres.host,
        "PGPORT": postgres.port,
        "PGDATABASE": postgres.database,
        "PGSSLMODE": postgres.tls.mode_in_force,
        "PGCONNECT_TIMEOUT": "20",
    }
    if postgres.tls.ca_secret_ref is not None:
        plain["PGSSLROOTCERT"] = f"{_POSTGRES_CA}/{CA_KEY}"
    elif postgres.tls.mode_in_force == "verify-full":
        plain["PGSSLROOTCERT"] = "system"  # libpq knows it since 16, for this mode alone
    if postgres.tls.server_name:
        plain[scripts.SERVER_NAME] = postgres.tls.server_name
    return (
        *(EnvVar(name=name, value=value) for name, value in plain.items()),
        _secret("PGUSER", ref.name, ref.username_key),
        _secret("PGPASSWORD", ref.name, ref.password_key),
    )


def database_ca(desired: Desired) -> tuple[VolumeMount, SecretVolumeSource] | None:
    """The certificate authority of the database, from the user's Secret: no server may have run yet."""
    if desired.engine == "postgresql":
        ref, mount = desired.spec.postgres.tls.ca_secret_ref, VolumeMount(name="postgres-ca", mount_path=_POSTGRES_CA)
    else:
        tls = desired.spec.database.tls if has_store(desired) else None
        ref, mount = tls.ca_secret_ref if tls is not None else None, VolumeMount(name="mysql-ca", mount_path=FOLDER)
    if ref is None:
        return None
    mount.read_only = True
    return mount, SecretVolumeSource(secret_name=ref.name, items=[KeyToPath(key=ref.key or CA_KEY, path=CA_KEY)])


def _optional(name: str, secret: str, key: str) -> EnvVar:
    """Where there is no such key, the program has no such variable."""
    source = SecretKeySelector(name=secret, key=key, optional=True)
    return EnvVar(name=name, value_from=EnvVarSource(secret_key_ref=source))


def _secret(name: str, secret: str, key: str) -> EnvVar:
    return EnvVar(name=name, value_from=EnvVarSource(secret_key_ref=SecretKeySelector(name=secret, key=key)))
