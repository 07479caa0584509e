"""One Job, followed to its result.

A Job has a name that depends on its owner and a number only, so a process that was killed after it created a Job finds
it again. Its result is the termination message of its pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from konverge.client import AlreadyExists, Conflict, NotFound
from konverge.objects.kinds.batch_v1 import Job, JobCondition
from konverge.objects.kinds.core_v1 import ContainerStateTerminated, PersistentVolumeClaim, Pod
from konverge.operators.nacos.desired import Desired, InvalidSpec, read_desired
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.runtime import Context, set_controller_reference
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


@dataclass(frozen=True, slots=True)
class Progress:
    """Of a Job. `message` is its pod's: the result of one that is complete, else what went or goes wrong."""

    state: Literal["running", "complete", "failed"]
    message: str
    code: int | None = None
    """The exit code of the last pod of a Job that failed; None: it is not known."""


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
        ends = [end for pod in pods if (end := _end(pod)) is not None and end.exit_code]
        said = [end.message for end in ends if end.message]
        why = failure.message or failure.reason or "no reason given"
        message = f"{why}: {said[-1].strip()[-LONGEST:]}" if said else why
        return Progress("failed", message, ends[-1].exit_code if ends else None)
    return Progress("running", _trouble(pods[-1]) if pods else "")


def is_finished(job: Job) -> bool:
    return any(condition_of(job, type) is not None for type in ("Complete", "Failed"))


def condition_of(job: Job, type: str) -> JobCondition | None:
    return next((entry for entry in job.status.conditions if entry.type == type and entry.status == "True"), None)


def _end(pod: Pod) -> ContainerStateTerminated | None:
    for status in pod.status.container_statuses:
        if status.state is not None and status.state.terminated is not None:
            return status.state.terminated
    return None


def _trouble(pod: Pod) -> str:
    """What keeps a pod from running; empty: nothing."""
    for status in pod.status.container_statuses:
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
