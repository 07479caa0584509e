"""What a Job and its pods say of the work: the newest pod counts, and only pods of this very Job."""

from __future__ import annotations

from typing import Any, cast

import pytest

from konverge.objects import from_dict
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ContainerStatus, Pod
from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.runs import LONGEST, Progress, pods_of, progress_of
from konverge.runtime import Context

pytestmark = pytest.mark.spec("N-57")


class Indexed:
    """A context in which these pods are indexed, in this order."""

    def __init__(self, *pods: Pod) -> None:
        self._pods = list(pods)

    def indexed(self, kind: type[Pod], index: str, key: str) -> list[Pod]:
        assert (kind, key) == (Pod, "apps/dump")
        return self._pods


def indexed(*pods: Pod) -> Context[Any]:
    return cast("Context[Any]", Indexed(*pods))


def a_job(condition: str = "", **of_condition: str) -> Job:
    body: dict[str, Any] = {"metadata": {"name": "dump", "namespace": "apps", "uid": "u1"}}
    if condition:
        body["status"] = {"conditions": [{"type": condition, "status": "True", **of_condition}]}
    return from_dict(Job, body)


def a_pod(name: str, created: int, *, job: str = "u1", **state: Any) -> Pod:
    meta = {
        "name": name,
        "namespace": "apps",
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "dump", "uid": job, "controller": True}],
    }
    status = {"containerStatuses": [{"name": "dump", "state": state}]} if state else {}
    return from_dict(Pod, {"metadata": meta, "status": status})


def ended(name: str, created: int, code: int, message: str = "", **more: Any) -> Pod:
    return a_pod(name, created, terminated={"exitCode": code, "message": message}, **more)


def test_the_newest_pod_is_the_last_one() -> None:
    late, early, same = a_pod("b", 9), a_pod("c", 1), a_pod("a", 9)
    assert pods_of(indexed(late, early, same), a_job()) == [early, same, late]


def test_pods_of_a_job_of_the_same_name_are_others() -> None:
    of_another = ended("old", 9, 0, "of another", job="u0")
    job = a_job("Complete")
    assert progress_of(indexed(of_another, ended("new", 1, 0, "mine")), job) == Progress("complete", "mine")


class TestComplete:
    def test_the_result_is_of_the_last_that_succeeded(self) -> None:
        pods = indexed(ended("c", 3, 1, "failed"), ended("a", 1, 0, "first"), ended("b", 2, 0, "second"))
        assert progress_of(pods, a_job("Complete")) == Progress("complete", "second")

    def test_a_pod_that_was_evicted_has_no_result(self) -> None:
        assert progress_of(indexed(a_pod("a", 1)), a_job("Complete")) == Progress("complete", "")


class TestFailed:
    def test_the_code_and_the_message_are_of_the_last_that_failed(self) -> None:
        pods = indexed(ended("b", 2, 7, " no room \n"), ended("a", 1, 3, "away"), ended("c", 3, 0, "fine"))
        job = a_job("Failed", message="it has failed", reason="BackoffLimitExceeded")
        assert progress_of(pods, job) == Progress("failed", "it has failed: no room", 7)

    def test_pods_without_an_end_say_nothing(self) -> None:
        """An evicted pod has no status of its container."""
        pods = indexed(a_pod("b", 2), ended("a", 1, 3, "away"))
        job = a_job("Failed", reason="DeadlineExceeded")
        assert progress_of(pods, job) == Progress("failed", "DeadlineExceeded: away", 3)

    def test_a_pod_that_said_nothing_leaves_the_word_to_the_one_before(self) -> None:
        pods = indexed(ended("a", 1, 3, "away"), ended("b", 2, 137))
        assert progress_of(pods, a_job("Failed")) == Progress("failed", "no reason given: away", 137)

    def test_no_pod(self) -> None:
        assert progress_of(indexed(), a_job("Failed", message="m")) == Progress("failed", "m", None)

    def test_the_end_of_a_long_message(self) -> None:
        said = "a" * 500 + "the cause"
        progress = progress_of(indexed(ended("a", 1, 1, said)), a_job("Failed", message="m"))
        assert progress.message == "m: " + said[-LONGEST:]


class TestRunning:
    def test_what_keeps_the_newest_pod_from_running(self) -> None:
        waiting = a_pod("b", 2, waiting={"reason": "ImagePullBackOff", "message": "no such image"})
        assert progress_of(indexed(waiting, a_pod("a", 1)), a_job()).message == "ImagePullBackOff: no such image"
        assert progress_of(indexed(waiting, a_pod("c", 3)), a_job()) == Progress("running", "")

    def test_a_pod_that_is_being_made_is_no_trouble(self) -> None:
        creating = a_pod("a", 1, waiting={"reason": "ContainerCreating"})
        assert progress_of(indexed(creating), a_job()) == Progress("running", "")
        assert progress_of(indexed(), a_job()) == Progress("running", "")


def preparing(name: str, created: int, code: int, message: str = "") -> Pod:
    """Its first container has ended, and the last one waits."""
    pod = a_pod(name, created, waiting={"reason": "PodInitializing"})
    state = {"terminated": {"exitCode": code, "message": message}}
    pod.status.init_container_statuses = [from_dict(ContainerStatus, {"name": "first", "state": state})]
    return pod


@pytest.mark.spec("N-70")
class TestTwoContainers:
    AWAY = Failure("EndpointUnreachable", "it is away").encode()

    def test_the_failure_of_the_first_is_that_of_the_job(self) -> None:
        job = a_job("Failed", message="m")
        assert progress_of(indexed(preparing("a", 1, 137, "killed")), job) == Progress(
            "failed", "m: killed", 137, prepared=False
        )
        said = progress_of(indexed(preparing("a", 1, 1, self.AWAY)), job)
        assert said == Progress("failed", "it is away", 1, "EndpointUnreachable", prepared=False)

    def test_the_failure_of_the_last(self) -> None:
        pod = preparing("a", 1, 0)
        pod.status.container_statuses = ended("a", 1, 1, self.AWAY).status.container_statuses
        job = a_job("Failed", message="m")
        assert progress_of(indexed(pod), job) == Progress("failed", "it is away", 1, "EndpointUnreachable")

    def test_what_an_attempt_said_is_known_while_the_next_one_works(self) -> None:
        pods = indexed(ended("a", 1, 1, self.AWAY), a_pod("b", 2))
        assert progress_of(pods, a_job()) == Progress("running", "it is away", reason="EndpointUnreachable")
        plain = indexed(ended("a", 1, 1, "pg_dump: error"), a_pod("b", 2))
        assert progress_of(plain, a_job()) == Progress("running", "")
        waiting = a_pod("b", 2, waiting={"reason": "ErrImagePull", "message": "no"})
        assert progress_of(indexed(ended("a", 1, 1, self.AWAY), waiting), a_job()) == Progress(
            "running", "ErrImagePull: no"
        )

    def test_an_image_of_the_first_that_is_missing(self) -> None:
        pod = preparing("a", 1, 0)
        state = {"waiting": {"reason": "ErrImagePull", "message": "no"}}
        pod.status.init_container_statuses = [from_dict(ContainerStatus, {"name": "first", "state": state})]
        assert progress_of(indexed(pod), a_job()).message == "ErrImagePull: no"
