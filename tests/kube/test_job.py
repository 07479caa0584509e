"""Jobs: completions, indexes, backoff, deadlines, policies, suspension, counting exactly once, time to live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import ttl
from konverge.kube.gc.controller import GarbageCollector
from konverge.kube.job import controller as jobs
from konverge.kube.job import indexes, policies, tracking
from konverge.kube.job.members import INDEX, TRACKING, index_of
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.batch_v1 import Job, JobSpec, JobStatus, PodFailurePolicy, SuccessPolicy
from konverge.objects.kinds.batch_v1 import UncountedTerminatedPods as Uncounted
from konverge.objects.kinds.core_v1 import Event, Pod
from tests.kube.conftest import Run, pods
from tests.kube.kubelet import Kubelet

pytestmark = pytest.mark.spec("R-36")
virtual = pytest.mark.virtual


def work(**spec: Any) -> Job:
    container = {"name": "main", "image": "app:1"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return Job(
        metadata=ObjectMeta(name="work", namespace="default"), spec=from_dict(JobSpec, {"template": template, **spec})
    )


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
async def test_one_pod_that_succeeds(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(succeeds)):
        await client.create(work())
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
async def test_no_more_run_at_a_time_than_is_wished_nor_than_is_left(client: Client, run: Run) -> None:
    most = 0
    async with run(jobs, Kubelet(succeeds, takes=3)):
        await client.create(work(completions=7, parallelism=3))
        for _ in range(200):
            await asyncio.sleep(0.25)
            most = max(most, sum(pod.status.phase not in ("Succeeded", "Failed") for pod in await pods(client)))
        assert most == 3
        assert len(await pods(client)) == 7
        assert counts((await live(client)).status) == (0, 7, 0)


@virtual
async def test_every_index_once(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(succeeds)):
        await client.create(work(completions=5, parallelism=2, completionMode="Indexed"))
        await asyncio.sleep(30)
        status = (await live(client)).status
        assert (status.completed_indexes, status.succeeded) == ("0-4", 5)
        found = sorted(await pods(client), key=lambda pod: index_of(pod) or 0)
        assert [index_of(pod) for pod in found] == [0, 1, 2, 3, 4]
        first = found[0]
        assert first.metadata.labels[INDEX] == "0"
        assert (first.spec.hostname, first.metadata.generate_name) == ("work-0", "work-0-")
        variable = first.spec.containers[0].env[0]
        assert variable.name == "JOB_COMPLETION_INDEX"
        assert variable.value_from is not None
        assert variable.value_from.field_ref is not None
        assert variable.value_from.field_ref.field_path == f"metadata.labels['{INDEX}']"


@virtual
async def test_failures_are_tried_again_ever_more_slowly_until_the_limit(client: Client, run: Run) -> None:
    kubelet = Kubelet(lambda pod: "Failed")
    async with run(jobs, kubelet):
        await client.create(work(backoffLimit=3))
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
async def test_restarted_containers_count_too(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Running")):
        wish = work(backoffLimit=2)
        wish.spec.template.spec.restart_policy = "OnFailure"
        await client.create(wish)
        await asyncio.sleep(5)
        (pod,) = await pods(client)
        state = {"name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 2, "state": {}}
        patch = MergePatch({"status": {"containerStatuses": [state]}})
        await client.patch(Pod, pod.metadata.name, patch, "default", subresource="status")
        await asyncio.sleep(5)
        assert (await conditions(client))["Failed"] == "BackoffLimitExceeded"
        assert await pods(client) == []


@virtual
async def test_a_deadline_ends_everything(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Running")):
        await client.create(work(activeDeadlineSeconds=30, parallelism=2))
        await asyncio.sleep(25)
        assert counts((await live(client)).status) == (2, 0, 0)
        await asyncio.sleep(15)
        assert (await conditions(client))["Failed"] == "DeadlineExceeded"
        status = (await live(client)).status
        assert (counts(status), status.terminating) == ((0, 0, 2), 0)
        assert await pods(client) == []


@virtual
async def test_parallelism_may_change_and_zero_takes_all_away_without_a_failure(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Pending")):
        await client.create(work(parallelism=1, completions=5))
        await asyncio.sleep(3)
        for wanted in (3, 0, 2):
            await client.patch(Job, "work", MergePatch({"spec": {"parallelism": wanted}}), "default")
            await asyncio.sleep(3)
            status = (await live(client)).status
            assert (counts(status), status.terminating) == ((wanted, 0, 0), 0)
            assert len(await pods(client)) == wanted


@virtual
async def test_a_suspended_job_has_no_pods_and_its_clock_stands_still(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(lambda pod: "Running")):
        await client.create(work(suspend=True, activeDeadlineSeconds=100))
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
        await client.create(work(backoffLimit=0, podFailurePolicy={"rules": rules}))
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
async def test_indexes_have_limits_of_their_own(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(by_index(i1="Failed"))):
        await client.create(work(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1))
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
async def test_too_many_failed_indexes_end_the_job(client: Client, run: Run) -> None:
    spec = {"completions": 4, "parallelism": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 0}
    async with run(jobs, Kubelet(by_index(i0="Failed", i1="Failed", i3="Running"))):
        await client.create(work(**spec, maxFailedIndexes=1))
        await asyncio.sleep(60)
        assert (await conditions(client))["Failed"] == "MaxFailedIndexesExceeded"
        assert (await live(client)).status.failed_indexes == "0,1"


@virtual
async def test_a_success_policy_needs_some_indexes_only(client: Client, run: Run) -> None:
    policy = {"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]}
    async with run(jobs, Kubelet(by_index(i0="Running", i2="Running"))):
        await client.create(work(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy))
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
            await client.create(work(podReplacementPolicy=policy))
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
async def test_pods_of_a_job_that_went_are_let_go(client: Client, run: Run) -> None:
    collecting = asyncio.create_task(GarbageCollector().run(client))
    async with run(jobs, Kubelet(lambda pod: "Running")):
        await client.create(work(parallelism=2))
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
        made = await client.create(work(suspend=True))
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
async def test_another_ones_job_is_left_alone(client: Client, run: Run) -> None:
    async with run(jobs, Kubelet(succeeds)):
        await client.create(work(managedBy="example.com/other"))
        await asyncio.sleep(5)
        assert await pods(client) == []
        assert (await live(client)).status == JobStatus()


@virtual
async def test_a_finished_job_goes_after_its_time(client: Client, run: Run) -> None:
    collecting = asyncio.create_task(GarbageCollector().run(client))
    async with run(jobs, ttl, Kubelet(succeeds)):
        await client.create(work(ttlSecondsAfterFinished=60))
        await asyncio.sleep(50)
        assert (await conditions(client))["Complete"]
        await asyncio.sleep(30)
        assert (await client.list(Job, "default")).items == []
        assert await pods(client) == []
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)


# ------------------------------------------------------------------ pure parts


def model_of(text: str) -> set[int]:
    """The grammar, read in the plainest way."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        ends = [int(end) for end in part.split("-")]
        found |= set(range(ends[0], ends[-1] + 1))
    return found


@given(st.sets(st.integers(0, 60)))
def test_indexes_come_back_as_they_went(numbers: set[int]) -> None:
    text = indexes.render(numbers)
    assert model_of(text) == numbers
    assert indexes.parse(text, 100) == numbers
    assert indexes.parse(text, 30) == {number for number in numbers if number < 30}
    parts = text.split(",") if text else []
    # As short as can be: three in a row are one part, two are never joined.
    assert all(int(last) - int(first) >= 2 for first, _, last in (p.partition("-") for p in parts) if last)
    lonely = [int(part) for part in parts if "-" not in part]
    assert not any({number, number + 1, number + 2} <= set(lonely) for number in lonely)


@given(
    st.lists(st.sampled_from("abcdef"), unique=True),
    st.lists(st.sampled_from("uvwxyz"), unique=True),
    st.sets(st.sampled_from("abcdefuvwxyz")),
)
def test_settling_counts_each_uid_once(succeeded: list[str], failed: list[str], tracked: set[str]) -> None:
    status = JobStatus(uncounted_terminated_pods=Uncounted(succeeded=succeeded, failed=failed))
    tracking.settle(status, tracked)
    tracking.settle(status, tracked)
    left = status.uncounted_terminated_pods or Uncounted()
    assert (status.succeeded or 0) + len(left.succeeded) == len(succeeded)
    assert (status.failed or 0) + len(left.failed) == len(failed)
    assert set(left.succeeded) | set(left.failed) <= tracked


def test_success_rules() -> None:
    def met(done: set[int], **rule: Any) -> bool:
        return bool(policies.met(from_dict(SuccessPolicy, {"rules": [rule]}), 10, done))

    assert met({0, 1}, succeededCount=2)
    assert not met({0}, succeededCount=2)
    assert met({0, 3, 4}, succeededIndexes="0,3-4")
    assert not met({0, 3}, succeededIndexes="0,3-4")
    assert met({0, 3}, succeededIndexes="0,3-4", succeededCount=2)
    assert not met({7}, succeededIndexes="0,3-4", succeededCount=1)


def test_failure_rules_look_at_conditions_too() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    policy = from_dict(PodFailurePolicy, {"rules": [rule]})
    condition = {"type": "DisruptionTarget", "status": "True"}
    pod = from_dict(Pod, {"metadata": {"name": "p"}, "spec": {"containers": []}, "status": {"conditions": [condition]}})
    assert not policies.rule_on(policy, pod).counts
    assert policies.rule_on(policy, Pod(metadata=ObjectMeta(name="p"), spec=pod.spec)).counts
