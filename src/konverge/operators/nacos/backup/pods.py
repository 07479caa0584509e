"""The pods of backups' Jobs; pure.

They meet Pod Security's standard "restricted" with any image, as they only need its programs: they run as another user,
to whose group the volume is given, on a root file system that cannot be written.

With a volume, one container does the work on it. With a bucket, the same container works on a disk that lives as long
as the pod, and another one with the image of Konverge (`carriers`) stores from there, or fetches to there before.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from konverge.objects import Object, ObjectMeta
from konverge.objects.kinds.batch_v1 import Job, JobSpec
from konverge.objects.kinds.core_v1 import (
    Capabilities,
    Container,
    EmptyDirVolumeSource,
    EnvVar,
    PersistentVolumeClaimVolumeSource,
    PodSecurityContext,
    PodSpec,
    PodTemplateSpec,
    SeccompProfile,
    SecretVolumeSource,
    SecurityContext,
    Volume,
    VolumeMount,
)
from konverge.operators.nacos.backup.carriers import Carrier, bucket_mounts, bucket_variables, bucket_volumes
from konverge.operators.nacos.backup.storage import Storage
from konverge.operators.nacos.desired import Desired

Action = Literal["backup", "restore", "delete", "inspect"]
MOUNT = "/backup"
RETRIES = 2
"""Attempts after the first one that failed, each with a pod of its own."""
UID = 8
"""Characters of a uid in names."""
_USER = 65532


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One Job: who it is for, what it runs, and on which data."""

    owner: Object
    action: Action
    number: int
    storage: Storage
    path: str
    """Of the data, in the volume or the bucket."""
    paths: tuple[str, ...] = ()
    """Of the data of all attempts so far."""
    image: str = ""
    command: tuple[str, ...] = ()
    """What works on the data; empty: only a carrier works."""
    env: tuple[EnvVar, ...] = ()
    ca: tuple[VolumeMount, SecretVolumeSource] | None = None
    carrier: Carrier | None = None
    """What the image of Konverge does with the data."""
    timeout: int
    retries: int = RETRIES


def job_name(owner: Object, action: Action, number: int) -> str:
    """It is a label of the pod, so it has at most 63 characters; the uid tells apart what was shortened alike."""
    meta = owner.metadata
    return f"{meta.name[:36].rstrip('-.')}-{action}-{meta.uid[:UID]}-{number}"


def job_of(work: Work, desired: Desired | None) -> Job:
    """`desired` says where pods of this Nacos may run; None: it is gone."""
    name = job_name(work.owner, work.action, work.number)
    labels = {"app": name, "middleware": "nacos", "component": f"nacos-{work.action}"}
    containers = _containers(work)
    pod = PodSpec(
        restart_policy="Never",
        automount_service_account_token=False,
        init_containers=containers[:-1],
        containers=containers[-1:],
        volumes=_volumes(work),
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


def _containers(work: Work) -> list[Container]:
    """One after the other. The last one has the name of the component, and its message is the result."""
    last, carrier = f"nacos-{work.action}", work.carrier
    if carrier is None:
        return [_program(work, last)]
    if not work.command:
        return [_carrier(work, carrier, last)]
    if carrier.action == "fetch":
        return [_carrier(work, carrier, "nacos-fetch"), _program(work, last)]
    return [_program(work, "nacos-dump"), _carrier(work, carrier, last)]


def _program(work: Work, name: str) -> Container:
    """What works on the data."""
    mounts = [VolumeMount(name="backup", mount_path=MOUNT, read_only=True if work.action == "restore" else None)]
    if work.ca is not None:
        mounts.append(work.ca[0])
    files = "\n".join(f"{MOUNT}/{path}" for path in work.paths)
    env = [*_paths(work), *([EnvVar(name="FILES", value=files)] if files else []), *work.env]
    return _container(name, work.image, list(work.command), env, mounts)


def _carrier(work: Work, carrier: Carrier, name: str) -> Container:
    mounts = [VolumeMount(name="backup", mount_path=MOUNT, read_only=True if work.action == "inspect" else None)]
    env = _paths(work)
    if work.storage.s3 is not None:
        env += [EnvVar(name="KEY", value=work.path), EnvVar(name="KEYS", value="\n".join(work.paths))]
        env += [*(variable for variable in work.env if variable.name == "SHA256"), *bucket_variables(work.storage.s3)]
        mounts += bucket_mounts(work.storage.s3)
    command = ["python", "-m", "konverge.operators.nacos.backup.carry", carrier.action]
    return _container(name, carrier.image, command, env, mounts)


def _paths(work: Work) -> list[EnvVar]:
    values = {"FILE": f"{MOUNT}/{work.path}", "RESULT": "/dev/termination-log"}
    return [EnvVar(name=name, value=value) for name, value in values.items()]


def _container(name: str, image: str, command: list[str], env: list[EnvVar], mounts: list[VolumeMount]) -> Container:
    return Container(
        name=name,
        image=image,
        command=command,
        env=env,
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


def _volumes(work: Work) -> list[Volume]:
    storage = work.storage
    if storage.volume is not None:
        claim = PersistentVolumeClaimVolumeSource(claim_name=storage.volume.claim_name)
        volumes = [Volume(name="backup", persistent_volume_claim=claim)]
    else:
        volumes = [Volume(name="backup", empty_dir=EmptyDirVolumeSource())]
    if storage.s3 is not None:
        volumes += bucket_volumes(storage.s3)
    if work.ca is not None:
        mount, secret = work.ca
        volumes.append(Volume(name=mount.name, secret=secret))
    return volumes
