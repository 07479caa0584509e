"""The Jobs of backups; pure.

Their pods meet Pod Security's standard "restricted" with any image, as they only need its programs: they run as another
user, to whose group the volume is given, on a root file system that cannot be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from typing import Literal

from konverge.objects import Object, ObjectMeta
from konverge.objects.kinds.batch_v1 import Job, JobSpec
from konverge.objects.kinds.core_v1 import (
    Capabilities,
    Container,
    EnvVar,
    EnvVarSource,
    KeyToPath,
    PersistentVolumeClaimVolumeSource,
    PodSecurityContext,
    PodSpec,
    PodTemplateSpec,
    SeccompProfile,
    SecretKeySelector,
    SecretVolumeSource,
    SecurityContext,
    Volume,
    VolumeMount,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.backup import scripts
from konverge.operators.nacos.backup.kinds import BackupSettings, Method, NacosRestore, VolumeStorage
from konverge.operators.nacos.children.config import CA_KEY
from konverge.operators.nacos.children.environment import (
    IDENTITY_KEY,
    IDENTITY_VALUE,
    JOB_VARIABLES,
    mysql_variables,
)
from konverge.operators.nacos.children.mysql_tls import FOLDER, client_variables, has_store
from konverge.operators.nacos.desired import Desired

Action = Literal["backup", "restore", "delete"]
POSTGRES_IMAGE = "postgres:17"
"""A pg_dump dumps servers of its own version and of earlier ones."""
MYSQL_IMAGE = "mysql:8.4"
MOUNT = "/backup"
_POSTGRES_CA = "/postgres-ca"
_USER = 65532
_RETRIES = 2
"""Attempts after the first one that failed, each with a pod of its own."""
_UID = 8
"""Characters of a uid in names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One Job: who it is for, what it runs, and on which data."""

    owner: Object
    action: Action
    number: int
    image: str
    command: tuple[str, ...]
    volume: VolumeStorage
    path: str
    """Of the data, in the volume."""
    prefix: str
    """What the paths of all attempts begin with."""
    env: tuple[EnvVar, ...] = ()
    ca: tuple[VolumeMount, SecretVolumeSource] | None = None
    timeout: int
    retries: int = _RETRIES


def job_name(owner: Object, action: Action, number: int) -> str:
    """It is a label of the pod, so it has at most 63 characters; the uid tells apart what was shortened alike."""
    meta = owner.metadata
    return f"{meta.name[:36].rstrip('-.')}-{action}-{meta.uid[:_UID]}-{number}"


def data_prefix(owner: Object, nacos: str, volume: VolumeStorage) -> str:
    """Of all attempts of a backup: the uid keeps the data of an earlier backup of the same name apart."""
    name = owner.metadata.name[:120].rstrip("-.")
    return "/".join(filter(None, (volume.path, nacos, f"{name}-{owner.metadata.uid[:_UID]}-")))


def data_path(prefix: str, number: int, method: Method, engine: str) -> str:
    database = "dump" if engine == "postgresql" else "sql.gz"
    return f"{prefix}{number}.{database if method == 'Database' else 'jsonl.gz'}"


def backup_job(owner: Object, number: int, desired: Desired, settings: BackupSettings, prefix: str) -> Job:
    """Stores the data of a Nacos."""
    volume = settings.storage.volume
    assert volume is not None  # by the schema
    work = Work(
        owner=owner,
        action="backup",
        number=number,
        image=settings.image or default_image(settings.method, desired),
        command=_command(settings.method, "backup", desired.engine),
        volume=volume,
        path=data_path(prefix, number, settings.method, desired.engine),
        prefix=prefix,
        env=variables(settings.method, desired),
        ca=database_ca(desired) if settings.method == "Database" else None,
        timeout=settings.timeout_seconds,
    )
    return _job(work, desired)


def restore_job(owner: NacosRestore, number: int, desired: Desired) -> Job:
    """Replaces the database of a Nacos. It is not retried: what it has touched is for people to see."""
    status = owner.status
    given = {"SHA256": status.sha256, "OVERWRITE": str(owner.spec.overwrite).lower()}
    work = Work(
        owner=owner,
        action="restore",
        number=number,
        image=owner.spec.image or default_image(status.method, desired),
        command=_command(status.method, "restore", desired.engine),
        volume=VolumeStorage(claim_name=status.claim_name),
        path=status.path,
        prefix=status.path,
        env=(*(EnvVar(name=name, value=value) for name, value in given.items()), *variables(status.method, desired)),
        ca=database_ca(desired) if status.method == "Database" else None,
        timeout=owner.spec.timeout_seconds,
        retries=0,
    )
    return _job(work, desired)


def delete_job(owner: Object, settings: BackupSettings, image: str, prefix: str) -> Job:
    """Removes the data of a backup, also when its Nacos is gone."""
    volume = settings.storage.volume
    assert volume is not None
    work = Work(
        owner=owner,
        action="delete",
        number=1,
        image=image,
        command=_command(settings.method, "delete", ""),
        volume=volume,
        path=prefix,
        prefix=prefix,
        timeout=settings.timeout_seconds,
    )
    return _job(work, None)


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
    return database_image(desired) if method == "Database" else f"konverge:{metadata.version('konverge')}"


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


def _job(work: Work, desired: Desired | None) -> Job:
    """`desired` says where pods of this Nacos may run; None: it is gone."""
    name = job_name(work.owner, work.action, work.number)
    labels = {"app": name, "middleware": "nacos", "component": f"nacos-{work.action}"}
    volumes, mounts = _volumes(work)
    pod = PodSpec(
        restart_policy="Never",
        automount_service_account_token=False,
        containers=[_container(work, mounts)],
        volumes=volumes,
        security_context=PodSecurityContext(
            run_as_non_root=True,
            run_as_user=_USER,
            run_as_group=_USER,
            fs_group=_USER,
            fs_group_change_policy="OnRootMismatch",
            seccomp_profile=SeccompProfile(type="RuntimeDefault"),
        ),
    )
    if desired is not None:
        pod.image_pull_secrets = desired.spec.image_pull_secrets
        pod.tolerations, pod.node_selector = desired.spec.tolerations, desired.spec.node_selector
        pod.priority_class_name = desired.spec.priority_class_name or None
    return Job(
        metadata=ObjectMeta(name=name, namespace=work.owner.metadata.namespace, labels=labels),
        spec=JobSpec(
            backoff_limit=work.retries,
            active_deadline_seconds=work.timeout,
            pod_replacement_policy="Failed",  # two pods must not write the same path
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


def _container(work: Work, mounts: list[VolumeMount]) -> Container:
    paths = {"FILE": f"{MOUNT}/{work.path}", "PREFIX": f"{MOUNT}/{work.prefix}", "RESULT": "/dev/termination-log"}
    return Container(
        name=f"nacos-{work.action}",
        image=work.image,
        command=list(work.command),
        env=[*(EnvVar(name=name, value=value) for name, value in paths.items()), *work.env],
        volume_mounts=mounts,
        termination_message_policy="FallbackToLogsOnError",
        security_context=SecurityContext(
            allow_privilege_escalation=False,
            capabilities=Capabilities(drop=["ALL"]),
            read_only_root_filesystem=True,
            run_as_non_root=True,
            seccomp_profile=SeccompProfile(type="RuntimeDefault"),
        ),
    )


def _volumes(work: Work) -> tuple[list[Volume], list[VolumeMount]]:
    claim = PersistentVolumeClaimVolumeSource(claim_name=work.volume.claim_name)
    volumes = [Volume(name="backup", persistent_volume_claim=claim)]
    reads = work.action == "restore"
    mounts = [VolumeMount(name="backup", mount_path=MOUNT, read_only=True if reads else None)]
    if work.ca is not None:
        mount, secret = work.ca
        volumes.append(Volume(name=mount.name, secret=secret))
        mounts.append(mount)
    return volumes, mounts


def _optional(name: str, secret: str, key: str) -> EnvVar:
    """Where there is no such key, the program has no such variable."""
    source = SecretKeySelector(name=secret, key=key, optional=True)
    return EnvVar(name=name, value_from=EnvVarSource(secret_key_ref=source))


def _secret(name: str, secret: str, key: str) -> EnvVar:
    return EnvVar(name=name, value_from=EnvVarSource(secret_key_ref=SecretKeySelector(name=secret, key=key)))
