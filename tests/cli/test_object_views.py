"""What is shown of objects: how they are, and what changed in them."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.cli.object_changes import changes
from konverge.cli.object_health import Health, Sickness, health_of, state_of


def pod(phase: str = "Running", *, ready: bool = True, restarts: int = 0, **more: Any) -> dict[str, Any]:
    status = {"name": "c", "ready": ready, "restartCount": restarts, "state": more.pop("state", {"running": {}})}
    return {
        "kind": "Pod",
        "metadata": {"name": "p", **more.pop("metadata", {})},
        "spec": {"containers": [{"name": "c"}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [status],
            **more,
        },
    }


def custom(*conditions: tuple[str, str, str], **status: Any) -> dict[str, Any]:
    listed = [{"type": kind, "status": value, "message": message} for kind, value, message in conditions]
    return {"kind": "Shop", "metadata": {"generation": 2}, "status": {"conditions": listed, **status}}


WAITING = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}


@pytest.mark.parametrize(
    ("obj", "health"),
    [
        (pod(), Health(Sickness.FINE, "Running", "1/1")),
        (pod(restarts=3), Health(Sickness.RESTARTED, "Running", "1/1", 3)),
        (pod(ready=False), Health(Sickness.WAITING, "Running", "0/1")),
        (
            pod(ready=False, restarts=7, state=WAITING),
            Health(Sickness.FAILED, "CrashLoopBackOff", "0/1", 7, "back-off 5m0s"),
        ),
        (
            {
                "kind": "Pod",
                "metadata": {},
                "spec": {"containers": [{"name": "c"}]},
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes fit"}],
                },
            },
            Health(Sickness.WAITING, "Pending", "0/1", 0, "0/3 nodes fit"),
        ),
        (pod("Succeeded", ready=False, state={"terminated": {"exitCode": 0, "reason": "Completed"}}), None),
        (pod(metadata={"deletionTimestamp": "now"}), Health(Sickness.DELETING, "Terminating", "1/1")),
        (custom(("Ready", "True", "")), Health(Sickness.FINE, "ready")),
        (custom(("Ready", "False", "no image")), Health(Sickness.WAITING, "not ready", "", 0, "no image")),
        (custom(("Ready", "True", ""), ("Stalled", "True", "stuck")), Health(Sickness.FAILED, "ready", "", 0, "stuck")),
        (custom(("Ready", "True", ""), observedGeneration=1), Health(Sickness.WAITING, "ready")),
        (custom(phase="Failed"), Health(Sickness.FAILED, "Failed")),
        (custom(phase="Creating"), Health(Sickness.WAITING, "Creating")),
        (custom(phase="Running"), Health(Sickness.FINE, "Running")),
        ({"kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}, Health(Sickness.WAITING, "Pending")),
        ({"kind": "DaemonSet", "status": {"desiredNumberScheduled": 2, "numberReady": 1}}, None),
        (
            {"kind": "Shop", "metadata": {"deletionTimestamp": "now", "finalizers": ["a/b"]}},
            Health(Sickness.DELETING, "deleting", "", 0, "waits for a/b"),
        ),
        ({"kind": "Shop", "status": "odd", "spec": [1], "metadata": None}, Health(Sickness.WAITING, "converging")),
    ],
)
@pytest.mark.spec("O-24")
def test_how_an_object_is(obj: dict[str, Any], health: Health | None) -> None:
    if health is not None:
        assert health_of(obj) == health
    elif obj["kind"] == "Pod":
        assert health_of(obj).sickness == Sickness.FINE
    else:
        assert health_of(obj)[:3] == (Sickness.WAITING, "converging", "1/2")


@pytest.mark.spec("O-24")
def test_a_job_that_ran_is_fine_and_one_that_failed_is_not() -> None:
    def job(kind: str) -> dict[str, Any]:
        return {"kind": "Job", "spec": {}, "status": {"succeeded": 1, "conditions": [{"type": kind, "status": "True"}]}}

    assert health_of(job("Complete"))[:3] == (Sickness.FINE, "Completed", "1/1")
    assert health_of(job("Failed"))[:2] == (Sickness.FAILED, "Failed")
    assert health_of({"kind": "Job", "status": {"active": 1}}).sickness == Sickness.FINE


def test_what_is_deleted_says_so() -> None:
    assert state_of({"metadata": {"deletionTimestamp": "now"}, "spec": {"replicas": 1}}) == ("deleting", "0/1")
    assert state_of({}) == ("converging", "")


@pytest.mark.spec("O-23")
def test_changes_are_named_by_their_path() -> None:
    container = {"name": "web", "image": "a", "env": [{"name": "A", "value": "1"}]}
    old = {"spec": {"containers": [container, {"name": "log"}], "replicas": 2, "args": ["a", "b"]}, "status": {"a": 1}}
    new = {
        "spec": {
            "containers": [{**container, "image": "b", "env": []}],
            "replicas": 2,
            "args": ["a", "c"],
            "x": {"y": 1},
        },
        "status": {"a": 2},
    }
    assert changes(old, new) == [
        "spec.args[1] b → c",
        "spec.containers[web].env[A] removed",
        "spec.containers[web].image a → b",
        "spec.containers[log] removed",
        "and 1 more",
    ]
    assert changes(old, {**old, "status": {"a": 3}}) == []


@pytest.mark.spec("O-23")
def test_metadata_that_the_server_keeps_is_no_news() -> None:
    old = {"metadata": {"resourceVersion": "1", "managedFields": [], "labels": {"a": "b"}}}
    new = {
        "metadata": {
            "resourceVersion": "2",
            "generation": 5,
            "labels": {"a": "c"},
            "annotations": {"deployment.kubernetes.io/revision": "2"},
        }
    }
    assert changes(old, new) == ["metadata.labels.a b → c"]


@pytest.mark.spec("O-23")
def test_the_content_of_a_secret_is_never_shown() -> None:
    old, new = {"kind": "Secret", "data": {"password": "b2xk"}}, {"kind": "Secret", "data": {"password": "bmV3"}}
    assert changes(old, new) == ["data.password changed"]
    assert "bmV3" not in str(changes({"kind": "Secret"}, new))
