"""Pods of a Job in a given state, for tests of the pure parts."""

from __future__ import annotations

from typing import Any

from konverge.kube.job.job_pods import FAILURES, IGNORED_FAILURES, INDEX, TRACKING
from konverge.objects.codec import from_dict
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import Pod
from tests.kube.objects import job


def indexed(completions: int = 5, **spec: Any) -> Job:
    return job(completionMode="Indexed", completions=completions, parallelism=completions, **spec)


def at(minute: int) -> str:
    return f"2026-01-01T00:{minute:02}:00Z"


def pod(
    name: str,
    phase: str = "Running",
    *,
    index: int | str | None = None,
    failures: int | str | None = None,
    ignored: int | None = None,
    ended: int | None = None,
    code: int = 1,
    tracked: bool = True,
    going: bool = False,
    **status: Any,
) -> Pod:
    """`ended` is the minute in which its container ended; `going`: it is being deleted."""
    notes = {INDEX: index, FAILURES: failures, IGNORED_FAILURES: ignored}
    metadata: dict[str, Any] = {
        "name": name, "uid": name, "namespace": "default", "creationTimestamp": at(0),
        "annotations": {key: str(value) for key, value in notes.items() if value is not None},
        "finalizers": [TRACKING] if tracked else [],
    }  # fmt: skip
    if going:
        metadata["deletionTimestamp"] = at(9)
    fields: dict[str, Any] = {"phase": phase, **status}
    if ended is not None:
        fields["containerStatuses"] = [container("main", ended=ended, code=code)]
    return from_dict(Pod, {"metadata": metadata, "spec": {"containers": []}, "status": fields})


def container(name: str, *, ended: int | None = None, code: int = 1, restarts: int = 0) -> dict[str, Any]:
    state = {"running": {}} if ended is None else {"terminated": {"exitCode": code, "finishedAt": at(ended)}}
    image = {"image": "i", "imageID": "i"}
    return {"name": name, "ready": False, "restartCount": restarts, "state": state, **image}


def ready() -> list[dict[str, str]]:
    return [{"type": "Ready", "status": "True"}]


def names(pods: list[Pod]) -> str:
    return " ".join(pod.metadata.name for pod in pods)
