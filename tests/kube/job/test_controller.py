"""Jobs: completions, back-off, deadlines, policies, suspension, counting each pod exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube.gc.controller import GarbageCollector
from konverge.kube.job import controller as jobs
from konverge.kube.job.job_pods import INDEX, TRACKING, index_of
from konverge.objects.codec import to_dict
from konverge.objects.kinds.batch_v1 import Job, JobStatus
from konverge.objects.kinds.core_v1 import Event, Pod
from tests.kube.conftest import Run, pods
from tests.kube.kubelet import Kubelet
from tests.kube.objects import job

pytestmark = pytest.mark.spec("R-36")


virtual = pytest.mark.virtual


def succeeds(pod: Pod) -> str:
    return "Succeeded"


def by_index(**what: str) -> Callable[[Pod], str]:
    """`by_index(i0="Failed")`: all others succeed."""
    return lambda pod: what.get(f"i{index_of(pod)}", "Succeeded")


async def live(client: Client) -> Job:
    return await client.get(Job, "work", "default")


async def conditions(client: Client) -> dict[str, str]:
    return {c.type: c.reason or "" for c in (await live(client)).status.conditions if c.status == "True"}


def counts(status: JobStatus) -> tuple[int, int, int]:
    """active, succeeded, failed"""
    return status.active or 0, status.succeeded or 0, status.failed or 0


@virtual
async def test_a_job_completes_with_its_pod(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(succeeds)):
        await client.create(job())
        await asyncio.sleep(5)
        status = (await live(client)).status
        assert counts(status) == (0, 1, 0)
        assert (status.ready, status.terminating) == (0, 0)
        assert to_dict(status)["uncountedTerminatedPods"] == {}
        assert status.completion_time
        reached = {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
        assert await conditions(client) == reached
        (pod,) = await pods(client)
        assert pod.metadata.finalizers == []
        assert pod.metadata.labels["batch.kubernetes.io/job-name"] == "work"
        events = {event.reason for event in (await client.list(Event, "default")).items}
        assert {"SuccessfulCreate", "Completed"} <= events


@virtual
async def test_no_more_pods_run_than_parallelism_and_missing_completions_allow(client: Client, run: Run) -> None:
    most = 0
    async with run(jobs, Kubelet(succeeds, takes=3)):
        await client.create(job(completions=7, parallelism=3))
        for _ in range(200):
            await asyncio.sleep(0.25)
            most = max(most, sum(pod.status.phase not in ("Succeeded", "Failed") for pod in await pods(client)))
        assert most == 3
        assert len(await pods(client)) == 7
        assert counts((await live(client)).status) == (0, 7, 0)


@virtual
async def test_every_index_of_an_indexed_job_succeeds_once(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(succeeds)):
        await client.create(job(completions=5, parallelism=2, completionMode="Indexed"))
        await asyncio.sleep(30)
        status = (await live(client)).status
        assert (status.completed_indexes, status.succeeded) == ("0-4", 5)
        by_index = sorted(await pods(client), key=lambda pod: index_of(pod) or 0)
        assert [index_of(pod) for pod in by_index] == [0, 1, 2, 3, 4]
        first = by_index[0]
        assert first.metadata.labels[INDEX] == "0"
        assert (first.spec.hostname, first.metadata.generate_name) == ("work-0", "work-0-")
        variable = first.spec.containers[0].env[0]
        assert variable.name == "JOB_COMPLETION_INDEX"
        assert variable.value_from is not None
        assert variable.value_from.field_ref is not None
        assert variable.value_from.field_ref.field_path == f"metadata.labels['{INDEX}']"


@virtual
async def test_failed_pods_are_replaced_with_growing_delays_up_to_the_limit(client: Client, run: Run) -> None:
    kubelet = Kubelet(lambda pod: "Failed")
    async with run(jobs, kubelet):
        await client.create(job(backoffLimit=3))
        await asyncio.sleep(8)
        assert len(await pods(client)) == 1
        await asyncio.sleep(8)
        assert len(await pods(client)) == 2  # after 10 s
        await asyncio.sleep(20)
        assert len(await pods(client)) == 3  # after 20 more
        await asyncio.sleep(50)
        assert len(await pods(client)) == 4
        assert counts((await live(client)).status) == (0, 0, 4)
        reached = {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
        assert await conditions(client) == reached
        assert (await live(client)).status.completion_time is None


@virtual
async def test_restarts_of_containers_count_as_failures(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Running")):
        desired = job(backoffLimit=2)
        desired.spec.template.spec.restart_policy = "OnFailure"
        await client.create(desired)
        await asyncio.sleep(5)
        (pod,) = await pods(client)
        state = {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 2, "state": {}}
        patch = MergePatch({"status": {"containerStatuses": [state]}})
        await client.patch(Pod, pod.metadata.name, patch, "default", subresource="status")
        await asyncio.sleep(5)
        assert (await conditions(client))["Failed"] == "BackoffLimitExceeded"
        assert await pods(client) == []


@virtual
async def test_a_deadline_fails_the_job_and_deletes_its_pods(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Running")):
        await client.create(job(activeDeadlineSeconds=30, parallelism=2))
        await asyncio.sleep(25)
        assert counts((await live(client)).status) == (2, 0, 0)
        await asyncio.sleep(15)
        assert (await conditions(client))["Failed"] == "DeadlineExceeded"
        status = (await live(client)).status
        assert (counts(status), status.terminating) == ((0, 0, 2), 0)
        assert await pods(client) == []


@virtual
async def test_parallelism_may_change_and_zero_deletes_all_pods_without_a_failure(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Pending")):
        await client.create(job(parallelism=1, completions=5))
        await asyncio.sleep(3)
        for wanted in (3, 0, 2):
            await client.patch(Job, "work", MergePatch({"spec": {"parallelism": wanted}}), "default")
            await asyncio.sleep(3)
            status = (await live(client)).status
            assert (counts(status), status.terminating) == ((wanted, 0, 0), 0)
            assert len(await pods(client)) == wanted


@virtual
async def test_a_suspended_job_has_no_pods_and_its_deadline_does_not_run(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Running")):
        await client.create(job(suspend=True, activeDeadlineSeconds=100))
        await asyncio.sleep(3)
        status = (await live(client)).status
        assert (counts(status), status.start_time) == ((0, 0, 0), None)
        assert await conditions(client) == {"Suspended": "JobSuspended"}
        for suspend, running in ((False, 1), (True, 0), (False, 1)):
            await client.patch(Job, "work", MergePatch({"spec": {"suspend": suspend}}), "default")
            await asyncio.sleep(70)
            status = (await live(client)).status
            assert (counts(status), bool(status.start_time)) == ((running, 0, 0), not suspend)
        assert {c.type: c.reason for c in status.conditions} == {"Suspended": "JobResumed"}


@virtual
async def test_a_failure_policy_fails_the_job_or_ignores_the_failure(client: Client, run: Run) -> None:
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "NotIn", "values": [1]}},
    ]
    kubelet = Kubelet(lambda pod: "Failed 7")
    async with run(jobs, kubelet):
        await client.create(job(backoffLimit=0, podFailurePolicy={"rules": rules}))
        await asyncio.sleep(60)
        assert len(await pods(client)) >= 3  # ignored: tried again, with backoff
        assert (await live(client)).status.failed is None
        assert await conditions(client) == {}
        kubelet.says = lambda pod: "Failed 42"
        await asyncio.sleep(300)
        failed = next(c for c in (await live(client)).status.conditions if c.type == "Failed")
        assert failed.reason == "PodFailurePolicy"
        assert "failed with exit code 42 matching FailJob rule at index 1" in (failed.message or "")


@virtual
async def test_each_index_has_a_back_off_limit_of_its_own(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(by_index(i1="Failed"))):
        await client.create(job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1))
        await asyncio.sleep(120)
        status = (await live(client)).status
        assert (status.completed_indexes, status.failed_indexes) == ("0,2", "1")
        assert counts(status) == (0, 2, 2)
        assert (await conditions(client))["Failed"] == "FailedIndexes"
        tries = [pod for pod in await pods(client) if index_of(pod) == 1]
        counted = sorted(pod.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] for pod in tries)
        assert counted == ["0", "1"]
        assert all(pod.metadata.finalizers == [] for pod in await pods(client))


@virtual
async def test_too_many_failed_indexes_fail_the_job(client: Client, run: Run) -> None:
    spec = {"completions": 4, "parallelism": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 0}
    async with run(jobs, Kubelet(by_index(i0="Failed", i1="Failed", i3="Running"))):
        await client.create(job(**spec, maxFailedIndexes=1))
        await asyncio.sleep(60)
        assert (await conditions(client))["Failed"] == "MaxFailedIndexesExceeded"
        assert (await live(client)).status.failed_indexes == "0,1"


@virtual
async def test_a_success_policy_needs_some_indexes_only(client: Client, run: Run) -> None:
    policy = {"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]}
    async with run(jobs, Kubelet(by_index(i0="Running", i2="Running"))):
        await client.create(job(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy))
        await asyncio.sleep(30)
        assert await conditions(client) == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
        status = (await live(client)).status
        assert (status.completed_indexes, counts(status), status.terminating) == ("1", (0, 1, 0), 0)
        assert [index_of(pod) for pod in await pods(client)] == [1]


@virtual
async def test_a_deleted_pod_is_a_failure_and_is_replaced_at_once_or_when_it_has_ended(
    client: Client, run: Run
) -> None:
    for policy, together in (("TerminatingOrFailed", 2), ("Failed", 1)):
        async with run(jobs, Kubelet(lambda pod: "Running", takes=30)):
            await client.create(job(podReplacementPolicy=policy))
            await asyncio.sleep(60)
            (pod,) = await pods(client)
            await client.delete(Pod, pod.metadata.name, "default")
            await asyncio.sleep(20)
            assert len(await pods(client)) == together
            assert (await live(client)).status.terminating == 1
            await asyncio.sleep(60)
            assert counts((await live(client)).status) == (1, 0, 1)
        await client.patch(Job, "work", MergePatch({"metadata": {"finalizers": None}}), "default")
        await client.delete(Job, "work", "default", propagation="Background")
        for pod in await pods(client):
            await client.patch(Pod, pod.metadata.name, MergePatch({"metadata": {"finalizers": None}}), "default")
            await client.delete(Pod, pod.metadata.name, "default", grace_period=0)


@virtual
async def test_pods_of_a_deleted_job_are_released(client: Client, run: Run) -> None:
    collecting = asyncio.create_task(GarbageCollector().run(client))
    async with run(jobs, Kubelet(lambda pod: "Running")):
        await client.create(job(parallelism=2))
        await asyncio.sleep(5)
        assert all(pod.metadata.finalizers == [TRACKING] for pod in await pods(client))
        await client.delete(Job, "work", "default", propagation="Background")
        await asyncio.sleep(10)
        assert await pods(client) == []
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)


@virtual
async def test_an_orphan_is_adopted_with_its_finalizer(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Running")):
        made = await client.create(job(suspend=True))
        orphan = Pod(
            metadata=ObjectMeta(name="lost", namespace="default", labels=made.spec.template.metadata.labels),
            spec=made.spec.template.spec,
        )
        await client.create(orphan)
        await client.patch(Job, "work", MergePatch({"spec": {"suspend": False}}), "default")
        await asyncio.sleep(5)
        (pod,) = await pods(client)
        assert (pod.metadata.name, pod.metadata.finalizers) == ("lost", [TRACKING])


@virtual
async def test_a_job_of_another_controller_is_left_alone(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(succeeds)):
        await client.create(job(managedBy="example.com/other"))
        await asyncio.sleep(5)
        assert await pods(client) == []
        assert (await live(client)).status == JobStatus()
