"""The pods of a Job: what the Job asks of them, and how they are built.

Upstream: pkg/controller/job (indexed_job_utils.go, backoff_utils.go).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from konverge.kube import pods as podlib
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.durations import seconds
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import (
    Container,
    ContainerStatus,
    EnvVar,
    EnvVarSource,
    ObjectFieldSelector,
    Pod,
    PodTemplateSpec,
)
from konverge.objects.times import parse_time

TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until it has been counted."""
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"

_LONGEST_PREFIX = 58  # upstream: MaxGeneratedNameLength
_MAX_INT32 = 2**31 - 1


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def is_suspended(job: Job) -> bool:
    return bool(job.spec.suspend)


# upstream: onlyReplaceFailedPods
def replaces_failed_only(job: Job) -> bool:
    """A pod that is being deleted still counts as running: it is replaced only once it has ended."""
    return job.spec.pod_replacement_policy == "Failed"


def is_tracked(pod: Pod) -> bool:
    """Whether the pod has not been counted yet. Upstream: hasJobTrackingFinalizer."""
    return TRACKING in pod.metadata.finalizers


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and not podlib.is_terminated(pod)


def is_failed(pod: Pod, job: Job) -> bool:
    """It failed, or is being deleted before it succeeded and so never will. Upstream: isPodFailed."""
    return pod.status.phase == "Failed" or (is_terminating(pod) and not replaces_failed_only(job))


def index_of(pod: Pod) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdigit() else None


def is_valid(pod: Pod, job: Job) -> bool:
    """Whether a pod counts for this Job: in an indexed one its index must be below the completions."""
    if not is_indexed(job):
        return True
    index = index_of(pod)
    return index is not None and index < (job.spec.completions or 0)


def number(pod: Pod | None, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "") if pod is not None else ""
    return int(text) if text.isdigit() and int(text) <= _MAX_INT32 else 0


# upstream: getFinishedTime
def finished_at(pod: Pod) -> datetime:
    """When a pod ended: by its containers, by its Ready condition, by its deletion; else when it was created."""
    ended = _containers_ended(pod)
    if ended is not None:
        return ended
    for condition in pod.status.conditions:
        if condition.type == "Ready" and condition.status == "False" and condition.last_transition_time:
            return parse_time(condition.last_transition_time)
    if pod.metadata.deletion_timestamp is not None:
        grace = seconds(-(pod.metadata.deletion_grace_period_seconds or 0))
        return parse_time(pod.metadata.deletion_timestamp) + grace
    return parse_time(pod.metadata.creation_timestamp or "1970-01-01T00:00:00Z")


def _containers_ended(pod: Pod) -> datetime | None:
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    counted = [*pod.status.container_statuses, *(s for s in pod.status.init_container_statuses if s.name in sidecars)]
    times = [_ended(status) for status in counted]
    known = [parse_time(time) for time in times if time]
    return max(known) if known and len(known) == len(times) else None


def _ended(status: ContainerStatus) -> str | None:
    terminated = status.state.terminated if status.state is not None else None
    return terminated.finished_at if terminated is not None else None


# ------------------------------------------------------------------ building them


def pod_for(job: Job, index: int | None, failures: tuple[int, int] | None) -> Pod:
    """A pod of a Job; of an index, with the failures (counted, ignored) that this index has had."""
    template = from_dict(PodTemplateSpec, to_dict(job.spec.template))
    if TRACKING not in template.metadata.finalizers:
        template.metadata.finalizers = [*template.metadata.finalizers, TRACKING]
    if index is None:
        return podlib.from_template(job, template)
    for container in (*template.spec.init_containers, *template.spec.containers):
        _set_index_variable(container)
    index_mark = {INDEX: str(index)}
    template.metadata.labels = {**template.metadata.labels, **index_mark}
    template.metadata.annotations = {**template.metadata.annotations, **index_mark, **_failure_annotations(failures)}
    template.spec.hostname = f"{job.metadata.name}-{index}"
    pod = podlib.from_template(job, template)
    suffix = f"-{index}-"
    pod.metadata.generate_name = job.metadata.name[: _LONGEST_PREFIX - len(suffix)] + suffix
    return pod


def _failure_annotations(failures: tuple[int, int] | None) -> dict[str, str]:
    if failures is None:
        return {}
    counted, ignored = failures
    return {FAILURES: str(counted), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


# upstream: addCompletionIndexEnvVariable
def _set_index_variable(container: Container) -> None:
    name = "JOB_COMPLETION_INDEX"
    if any(variable.name == name for variable in container.env):
        return
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
    container.env = [*container.env, EnvVar(name=name, value_from=source)]


# ------------------------------------------------------------------ sets of indexes as text

# `0,1` for two in a row, `3-5` for more.


def parse_indexes(text: str, completions: int) -> set[int]:
    """The indexes below `completions` in a text; invalid parts are left out. Upstream: parseIndexesFromString.

    >>> sorted(parse_indexes("0,2-4,7", 4))
    [0, 2, 3]
    """
    indexes: set[int] = set()
    for part in text.split(",") if text else []:
        first, dash, last = part.partition("-")
        if first.isdigit() and (not dash or last.isdigit()):
            indexes.update(range(int(first), min(int(last) if dash else int(first), completions - 1) + 1))
    return indexes


def render_indexes(indexes: Iterable[int]) -> str:
    """
    >>> render_indexes({5, 0, 1, 3, 4, 9})
    '0,1,3-5,9'
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_run(first, last) for first, last in runs)


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
