"""One Job, followed to its result.

A Job has a name that depends on its owner and a number only, so a process that was killed after it created a Job finds
it again. Its result is the termination message of its pod.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from konverge.client import AlreadyExists, Conflict, NotFound
from konverge.objects.kinds.batch_v1 import Job, JobCondition
from konverge.objects.kinds.core_v1 import ContainerStateTerminated, PersistentVolumeClaim, Pod, Secret
from konverge.operators.nacos.backup.failures import read_failure
from konverge.operators.nacos.backup.storage import S3Storage, Storage
from konverge.operators.nacos.desired import Desired, InvalidSpec, read_desired
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.steps.hold import CHANGE_HELD, allowed_changes, read_wanted
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.operators.nacos.steps.state import HIBERNATED
from konverge.runtime import Context, is_true, set_controller_reference
from konverge.runtime.owners import is_controlled_by

LONGEST = 400
"""Characters of a pod's message in a condition."""
_TROUBLE = (
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
)


class WorkError(Exception):
    """The work cannot go on now: the reason and the message of the condition Ready."""

    def __init__(self, reason: str, message: str, *, fault: bool = True) -> None:
        """Without `fault` this is the usual course, and worth no warning."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.fault = fault


class Hopeless(WorkError):
    """The work will never be done."""


class Progress(msgspec.Struct, frozen=True):
    """Of a Job. `message` is its pod's: the result of one that is complete, else what went or goes wrong."""

    state: Literal["running", "complete", "failed"]
    message: str
    code: int | None = None
    """The exit code of the last pod of a Job that failed; None: it is not known."""
    reason: str = ""
    """What its program named as the reason: of the Job's failure, or of an attempt that is being repeated."""
    prepared: bool = True
    """Whether the container that does the work may have begun: those before it have not failed."""


# ------------------------------------------------------------------ what the work is about


async def find_nacos(ctx: Context[Any], name: str) -> tuple[AnyNacos, Desired]:
    """The Nacos in the namespace of the resource. Raises WorkError."""
    nacos = await ctx.get(AnyNacos, name)
    if nacos is None:
        raise WorkError("NacosNotFound", f"there is no Nacos {ctx.request.namespace}/{name}")
    if nacos.metadata.deletion_timestamp is not None:
        raise WorkError("NacosDeleting", f"Nacos {name} is being deleted")
    try:
        return nacos, read_desired(nacos)
    except InvalidSpec as error:
        raise WorkError("NacosInvalid", f"Nacos {name}: {error}") from None


def require_in_force(nacos: AnyNacos, desired: Desired) -> None:
    """Raises WorkError while the servers' database is not the one of the spec: the edit is held, or on its way.

    Nothing follows an edit while they sleep, so what is allowed is what they will wake with.
    """
    present, wanted = nacos.status.applied.database, read_wanted(desired)
    place = wanted.database if wanted is not None else ""
    if not present or not place or present == place:
        return
    asleep = is_true(nacos.status.kube_conditions, HIBERNATED)
    if asleep and f"database={place}" in allowed_changes(nacos):
        return
    name = nacos.metadata.name
    message = f"Nacos {name} works with {present}, and its spec names {place}: take the edit back, or allow it"
    raise WorkError(CHANGE_HELD, message)


def require_servers(nacos: AnyNacos) -> None:
    """Raises WorkError while no server is ready to be asked."""
    name, status = nacos.metadata.name, nacos.status
    if status.phase == "Hibernated":
        raise WorkError("NacosHibernated", f"Nacos {name} hibernates; spec.hibernate: false wakes it", fault=False)
    if not status.ready_replicas:
        raise WorkError("NacosNotReady", f"no server of Nacos {name} is ready")


async def has_claim(ctx: Context[Any], name: str) -> bool:
    """Read from the API server: the cache has the claims of servers only. One that is being deleted is gone."""
    try:
        claim = await ctx.client.get(PersistentVolumeClaim, name, ctx.request.namespace)
    except NotFound:
        return False
    return claim.metadata.deletion_timestamp is None


async def require_claim(ctx: Context[Any], name: str) -> None:
    if not await has_claim(ctx, name):
        message = f"there is no PersistentVolumeClaim {ctx.request.namespace}/{name}, or it is being deleted; create it"
        raise WorkError("VolumeMissing", message)


async def require_place(ctx: Context[Any], storage: Storage) -> None:
    """Raises WorkError while what the pod would mount is missing."""
    if storage.volume is not None:
        await require_claim(ctx, storage.volume.claim_name)
    elif storage.s3 is not None:
        await _require_secrets(ctx, storage.s3)
    else:  # it got past an older definition
        raise Hopeless("NoStorage", "spec.storage names neither volume nor s3")


async def _require_secrets(ctx: Context[Any], s3: S3Storage) -> None:
    given = s3.credentials_secret
    needed = {given.name: [given.access_key_id_key, given.secret_access_key_key]}
    if s3.ca_secret is not None:
        needed.setdefault(s3.ca_secret.name, []).append(s3.ca_secret.key)
    for name, keys in needed.items():
        try:
            secret = await ctx.client.get(Secret, name, ctx.request.namespace)
        except NotFound:
            raise WorkError(
                "CredentialsMissing", f"there is no Secret {ctx.request.namespace}/{name}; create it"
            ) from None
        if missing := [key for key in keys if not secret.data.get(key)]:
            raise WorkError("CredentialsMissing", f"Secret {name} has no {' and no '.join(missing)}; add it")


# ------------------------------------------------------------------ Jobs


async def read_job(ctx: Context[Any], name: str) -> Job | None:
    """Raises WorkError when it belongs to others."""
    try:
        live = await ctx.get(Job, name) or await ctx.client.get(Job, name, ctx.request.namespace)
    except NotFound:
        return None
    if not is_controlled_by(live, ctx.obj):
        raise WorkError("NotOwned", f"Job {name} exists and belongs to others: delete or rename it")
    return live


async def create_job(ctx: Context[Any], job: Job) -> Job:
    """One that exists already is as good: an earlier process has created it. Raises WorkError."""
    set_controller_reference(ctx.obj, job)
    try:
        return await ctx.client.create(job)
    except AlreadyExists:
        live = await read_job(ctx, job.metadata.name)
        if live is None:
            raise WorkError("JobRestarting", f"Job {job.metadata.name} is being recreated") from None
        return live


async def delete_job(ctx: Context[Any], job: Job) -> None:
    """With its pods; another one that has its name since is not meant."""
    meta = job.metadata
    try:
        await ctx.client.delete(Job, meta.name, meta.namespace, propagation="Background", uid=meta.uid)
    except (NotFound, Conflict):
        return


def pods_of(ctx: Context[Any], job: Job) -> list[Pod]:
    """The newest last."""
    pods = ctx.indexed(Pod, BY_APP, f"{job.metadata.namespace}/{job.metadata.name}")
    own = [pod for pod in pods if is_controlled_by(pod, job)]
    return sorted(own, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))


async def require_secrets(ctx: Context[Any], job: Job, s3: S3Storage | None) -> None:
    """Raises WorkError while a pod waits for a Secret that is gone: its status does not say that."""
    statuses = [
        status
        for pod in pods_of(ctx, job)
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ]
    started = any(status.state is not None and (status.state.running or status.state.terminated) for status in statuses)
    if s3 is not None and not started:
        await _require_secrets(ctx, s3)


def runs_pods(ctx: Context[Any], name: str) -> bool:
    """Whether a pod of a Job of this name is at work, though the Job itself may be gone."""
    pods = ctx.indexed(Pod, BY_APP, f"{ctx.request.namespace}/{name}")
    return any(pod.status.phase not in ("Succeeded", "Failed") for pod in pods)


def progress_of(ctx: Context[Any], job: Job) -> Progress:
    pods = pods_of(ctx, job)
    if condition_of(job, "Complete") is not None:
        ends = [end for pod in pods if (end := _end(pod)) is not None and end.exit_code == 0]
        return Progress("complete", (ends[-1].message or "") if ends else "")
    failure = condition_of(job, "Failed")
    if failure is not None:
        return _failed(pods, failure)
    trouble = _trouble(pods[-1]) if pods else ""
    ends = [end for pod in pods if (end := _end(pod)) is not None and end.exit_code]
    said = read_failure(ends[-1].message or "") if ends else None
    if said is not None and not trouble:
        return Progress("running", said.message[:LONGEST], reason=said.reason)
    return Progress("running", trouble)


def _failed(pods: list[Pod], failure: JobCondition) -> Progress:
    failures = [(pod, end) for pod in pods if (end := _end(pod)) is not None and end.exit_code]
    why = failure.message or failure.reason or "no reason given"
    if not failures:
        return Progress("failed", why)
    pod, end = failures[-1]
    texts = [end.message for _, end in failures if end.message]
    said = read_failure(texts[-1]) if texts else None
    if said is not None:
        return Progress("failed", said.message[:LONGEST], end.exit_code, said.reason, _preparation(pod) is None)
    message = f"{why}: {texts[-1].strip()[-LONGEST:]}" if texts else why
    return Progress("failed", message, end.exit_code, prepared=_preparation(pod) is None)


def is_finished(job: Job) -> bool:
    return any(condition_of(job, type) is not None for type in ("Complete", "Failed"))


def condition_of(job: Job, type: str) -> JobCondition | None:
    return next((entry for entry in job.status.conditions if entry.type == type and entry.status == "True"), None)


def _preparation(pod: Pod) -> ContainerStateTerminated | None:
    """The end of a container before the last one, that failed."""
    for status in pod.status.init_container_statuses:
        ended = status.state.terminated if status.state is not None else None
        if ended is not None and ended.exit_code:
            return ended
    return None


def _end(pod: Pod) -> ContainerStateTerminated | None:
    if (preparation := _preparation(pod)) is not None:
        return preparation
    for status in pod.status.container_statuses:
        if status.state is not None and status.state.terminated is not None:
            return status.state.terminated
    return None


def _trouble(pod: Pod) -> str:
    """What keeps a pod from running; empty: nothing."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting if status.state is not None else None
        if waiting is not None and waiting.reason in _TROUBLE:
            return f"{waiting.reason}: {waiting.message or ''}"[:LONGEST]
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.reason}: {condition.message or ''}"[:LONGEST]
    return ""


# ------------------------------------------------------------------ results


class Stored(msgspec.Struct):
    """The result of a backup."""

    size: int
    sha256: str


def read_result(message: str) -> Stored | None:
    """
    >>> read_result('{"size": 3, "sha256": "' + "a" * 64 + '"}').size
    3
    >>> read_result("") is None
    True
    """
    try:
        stored = msgspec.json.decode(message, type=Stored)
    except msgspec.MsgspecError:
        return None
    return stored if len(stored.sha256) == 64 and stored.size > 0 else None
