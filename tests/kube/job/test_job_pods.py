"""The pods of a Job: when they ended, what they count for, and how they are built."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube.job import job_pods
from konverge.kube.job.job_pods import finished_at, index_of, is_failed, is_valid, parse_indexes, pod_for
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Pod, PodTemplateSpec
from konverge.objects.times import parse_time
from tests.kube.job.made import at, container, indexed, pod
from tests.kube.objects import job

pytestmark = pytest.mark.spec("R-36")


def ended(status: dict[str, Any], spec: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    document = {"metadata": {"name": "p", "creationTimestamp": at(1), **metadata}, "status": status}
    return from_dict(Pod, {**document, "spec": {"containers": [], **(spec or {})}})


SIDECAR = {"initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}]}


@pytest.mark.parametrize(
    ("seen", "minute"),
    [
        (ended({"containerStatuses": [container("a", ended=3), container("b", ended=5)]}), 5),
        (ended({"containerStatuses": [container("a", ended=3), container("b")]}), 1),
        (ended({"containerStatuses": [{**container("a"), "state": None}]}), 1),
        (
            ended(
                {
                    "containerStatuses": [container("a", ended=3)],
                    "initContainerStatuses": [container("side", ended=7), container("init", ended=9)],
                },
                SIDECAR,
            ),
            7,
        ),
        (
            ended(
                {"containerStatuses": [container("a", ended=3)], "initContainerStatuses": [container("side")]}, SIDECAR
            ),
            1,
        ),
        (
            ended(
                {"containerStatuses": [container("a", ended=3)], "initContainerStatuses": [container("init")]}, SIDECAR
            ),
            3,
        ),
        (ended({"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": at(6)}]}), 6),
        (ended({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at(6)}]}), 1),
        (ended({"conditions": [{"type": "Other", "status": "False", "lastTransitionTime": at(6)}]}), 1),
        (ended({"conditions": [{"type": "Ready", "status": "False"}]}), 1),
        (ended({}, deletionTimestamp=at(8)), 8),
        (ended({}, deletionTimestamp=at(8), deletionGracePeriodSeconds=120), 6),
        (ended({}, deletionTimestamp=at(8), deletionGracePeriodSeconds=2**55), 8),
        (ended({}), 1),
    ],
)
def test_when_a_pod_ended(seen: Pod, minute: int) -> None:
    assert finished_at(seen) == parse_time(at(minute))


def test_a_pod_without_any_time_ended_long_ago() -> None:
    seen = ended({})
    seen.metadata.creation_timestamp = None
    assert finished_at(seen).year == 1970


@pytest.mark.parametrize(
    ("seen", "at_once", "when_ended"),
    [
        (pod("p", "Failed"), True, True),
        (pod("p", "Running"), False, False),
        (pod("p", "Succeeded"), False, False),
        (pod("p", "Running", going=True), True, False),
        (pod("p", "Succeeded", going=True), False, False),
        (pod("p", "Failed", going=True), True, True),
    ],
)
def test_whether_a_pod_failed(seen: Pod, at_once: bool, when_ended: bool) -> None:
    assert is_failed(seen, job()) is at_once
    assert is_failed(seen, job(podReplacementPolicy="Failed")) is when_ended


@pytest.mark.parametrize(
    ("index", "expected", "valid"), [(0, 0, True), (4, 4, True), (5, 5, False), ("x", None, False), (None, None, False)]
)
def test_an_index_counts_below_the_completions(index: Any, expected: int | None, valid: bool) -> None:
    seen = pod("p", index=index)
    assert index_of(seen) == expected
    assert is_valid(seen, indexed(5)) is valid
    assert is_valid(seen, job())
    endless = indexed(5)
    endless.spec.completions = None
    assert not is_valid(seen, endless)


@pytest.mark.parametrize(("text", "expected"), [("3", 3), ("2147483647", 2147483647), ("2147483648", 0), ("-1", 0)])
def test_a_count_in_an_annotation(text: str, expected: int) -> None:
    assert job_pods.number(pod("p", failures=text), job_pods.FAILURES) == expected
    assert job_pods.number(pod("p"), job_pods.FAILURES) == 0
    assert job_pods.number(None, job_pods.FAILURES) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []), ("3", [3]), ("1,3", [1, 3]), ("1-3", [1, 2, 3]), ("3-9", [3, 4]), ("4", [4]), ("5", []),
        ("3-1", []), ("x,2", [2]), ("1-x", []), ("1-", []), ("-1", []), ("2,,3", [2, 3]),
    ],
)  # fmt: skip
def test_indexes_in_a_text(text: str, expected: list[int]) -> None:
    assert sorted(parse_indexes(text, 5)) == expected


def test_a_pod_has_the_finalizer_once() -> None:
    owner = job()
    made = pod_for(owner, None, None)
    assert made.metadata.finalizers == [job_pods.TRACKING]
    assert made.metadata.generate_name == "work-"
    assert made.metadata.annotations == {}
    owner.spec.template.metadata.finalizers = ["other", job_pods.TRACKING]
    assert pod_for(owner, None, None).metadata.finalizers == ["other", job_pods.TRACKING]


def test_a_pod_of_an_index_knows_it() -> None:
    owner = indexed()
    containers = [{"name": "main"}, {"name": "own", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]}]
    spec = {"restartPolicy": "Never", "containers": containers, "initContainers": [{"name": "init"}]}
    owner.spec.template = from_dict(PodTemplateSpec, {"metadata": {"labels": {"a": "b"}}, "spec": spec})
    made = pod_for(owner, 3, (2, 0))
    assert made.metadata.generate_name == "work-3-"
    assert made.spec.hostname == "work-3"
    assert made.metadata.labels == {"a": "b", job_pods.INDEX: "3"}
    assert made.metadata.annotations == {job_pods.INDEX: "3", job_pods.FAILURES: "2"}
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{job_pods.INDEX}']"}}
    added = [{"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]
    both = (*made.spec.init_containers, *made.spec.containers)
    assert [[to_dict(variable) for variable in item.env] for item in both] == [
        added, added, [{"name": "JOB_COMPLETION_INDEX", "value": "7"}],
    ]  # fmt: skip
    assert owner.spec.template.spec.containers[0].env == []
    ignored = pod_for(owner, 3, (2, 1)).metadata.annotations
    assert ignored == {job_pods.INDEX: "3", job_pods.FAILURES: "2", job_pods.IGNORED_FAILURES: "1"}
    assert job_pods.FAILURES not in pod_for(owner, 3, None).metadata.annotations


def test_a_long_name_is_cut_before_the_index() -> None:
    owner = indexed()
    owner.metadata.name = "a" * 63
    assert pod_for(owner, 12, None).metadata.generate_name == "a" * 54 + "-12-"
