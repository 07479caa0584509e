"""Pods that go on with the configuration that they started with."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.model import Apply, Crash, Place, Plan, Run, Step
from konverge.check.oracles import judge
from konverge.check.oracles.configuration import configuration
from konverge.check.reference import reference_of
from tests.check.oracles.histories import KEY, THING, History, obj

Obj = dict[str, Any]

STEPS = (
    Step("create", (Apply({**THING, "spec": {"ticks": 1}}),)),
    Step("spec.ticks: one more", (Apply({**THING, "spec": {"ticks": 2}}),), about="spec.ticks"),
)
MOUNTED = {"volumes": [{"name": "config", "configMap": {"name": "a"}}]}
SECRET = {"volumes": [{"name": "config", "secret": {"secretName": "a"}}]}
MOUNT = {"name": "config", "mountPath": "/conf"}


def pod(spec: Obj, container: Obj, uid: str = "first-pod") -> Obj:
    container = {"name": "main", "image": "x", **container}
    made = obj("Pod", "a-0", spec={"containers": [container], **spec}, status={"phase": "Running"})
    made["metadata"]["uid"] = uid
    return made


def run_of(
    spec: Obj, container: Obj, *, kind: str = "ConfigMap", uid: str = "first-pod", ready: tuple[str, str] = ("", "")
) -> Run:
    """The content changes in the second step; the pod is the same unless it has another uid. `ready` is what the custom
    resource says of itself at both rests."""
    resource = {"ConfigMap": "configmaps", "Secret": "secrets"}[kind]
    history = History(STEPS, "input")

    def state(ticks: int, uid: str) -> Obj:
        content = {"conf": f"ticks={ticks}", "other": "same"}
        return {
            KEY: {
                **THING,
                "spec": {"ticks": ticks},
                "status": {"kubeConditions": [{"type": "Ready", "status": ready[ticks - 1], "reason": "MembersNotUp"}]},
            },
            f"{resource} default/a": obj(kind, data=content),
            "pods default/a-0": pod(spec, container, uid),
        }

    history.change("ADDED", f"{resource} default/a").change("ADDED", "pods default/a-0", by="cluster")
    history.rest(state(1, "first-pod"))
    history.change("MODIFIED", f"{resource} default/a", ("data.conf", "ticks=1", "ticks=2"))
    return history.rest(state(2, uid)).run


def said(run: Run) -> list[tuple[str, str]]:
    return [(alarm.severity, alarm.object) for alarm in configuration(run, reference_of(run, run))]


ALARM = [("medium", "configmaps default/a")]


@pytest.mark.spec("K-85")
@pytest.mark.parametrize(
    ("ready", "severity"),
    [
        (("False", "False"), "low"),
        (("True", "False"), "medium"),
        (("False", "True"), "medium"),
        (("True", "True"), "medium"),
        (("Unknown", "Unknown"), "medium"),
    ],
)
def test_pods_of_a_resource_that_was_not_ready_before_wait_for_that(ready: tuple[str, str], severity: str) -> None:
    run = run_of(MOUNTED, {"volumeMounts": [MOUNT]}, ready=ready)
    assert said(run) == [(severity, "configmaps default/a")]


@pytest.mark.spec("K-85")
@pytest.mark.parametrize(
    ("uid", "owner", "pod_ready", "says_ready", "severity"),
    [
        ("second-pod", "set", "False", "False", "low"),
        ("", "set", "False", "False", "medium"),  # none of them was replaced
        ("old-pod", "set", "False", "False", "medium"),
        ("second-pod", "other-set", "False", "False", "medium"),
        ("second-pod", "", "False", "False", "medium"),
        ("second-pod", "set", "True", "False", "medium"),  # it came up, and the others were forgotten
        ("second-pod", "set", "False", "True", "medium"),  # nobody is told
    ],
)
def test_pods_wait_behind_a_first_one_that_does_not_come_up(
    uid: str, owner: str, pod_ready: str, says_ready: str, severity: str
) -> None:
    run = run_of(MOUNTED, {"volumeMounts": [MOUNT]}, ready=("True", says_ready))
    before, now = (checkpoint.state for checkpoint in run.checkpoints)

    def member(uid: str, owner: str, ready: str) -> Obj:
        made = pod(MOUNTED, {"volumeMounts": [MOUNT]}, uid)
        made["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "uid": owner, "controller": True}]
        made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
        return made

    for state in (before, now):
        state["pods default/a-0"] = member("first-pod", "set", "True")
    before["pods default/a-1"] = member("old-pod", "set", "True")
    if uid:
        now["pods default/a-1"] = member(uid, owner, pod_ready)
    assert said(run) == [(severity, "configmaps default/a")]


@pytest.mark.spec("K-57")
@pytest.mark.parametrize(
    ("spec", "container"),
    [
        (MOUNTED, {"volumeMounts": [MOUNT]}),
        (MOUNTED, {"volumeMounts": [{**MOUNT, "subPath": "conf"}]}),
        ({**MOUNTED, "initContainers": [{"name": "copy", "volumeMounts": [MOUNT]}]}, {}),
        ({"volumes": [{"name": "config", "projected": {"sources": [{"configMap": {"name": "a"}}]}}]},
         {"volumeMounts": [MOUNT]}),
        ({}, {"envFrom": [{"configMapRef": {"name": "a"}}]}),
        ({}, {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "conf"}}}]}),
    ],
)  # fmt: skip
def test_pods_that_stay_as_they_are(spec: Obj, container: Obj) -> None:
    run = run_of(spec, container)
    assert said(run) == ALARM
    assert said(run_of(spec, container, uid="second-pod")) == []  # they were replaced
    assert "configuration" in {alarm.oracle for alarm in judge(run, reference_of(run, run))}


@pytest.mark.spec("K-57")
@pytest.mark.parametrize(
    ("spec", "container"),
    [
        ({}, {}),
        (MOUNTED, {}),  # nothing mounts it
        ({"volumes": [{"name": "config", "configMap": {"name": "b"}}]}, {"volumeMounts": [MOUNT]}),
        ({"volumes": [{"name": "config", "configMap": {"name": "a", "items": [{"key": "other", "path": "x"}]}}]},
         {"volumeMounts": [MOUNT]}),
        ({}, {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "other"}}}]}),
        ({}, {"envFrom": [{"secretRef": {"name": "a"}}]}),
    ],
)  # fmt: skip
def test_what_a_pod_does_not_use(spec: Obj, container: Obj) -> None:
    assert said(run_of(spec, container)) == []


@pytest.mark.spec("K-57")
def test_a_folder_that_somebody_reads_again_is_fine() -> None:
    folder = {"volumeMounts": [MOUNT]}
    beside = {**MOUNTED, "initContainers": [{"name": "config-reloader", "restartPolicy": "Always"}]}
    assert said(run_of(beside, folder)) == []
    for server in ("told by a connection", "told by exec", "told by its pod"):
        run = run_of(MOUNTED, folder)
        if server == "told by a connection":
            run.applications = {"app": (1,)}
        elif server == "told by exec":
            run.reads = {"get /pods/exec": 1}
        else:
            written = next(change for change in run.changes if change.step == 1)
            pod_change = History(STEPS).change("MODIFIED", "pods default/a-0").run.changes[0]
            pod_change.step, pod_change.revision = 1, written.revision + 1
            run.changes.append(pod_change)
        assert said(run) == [], server
    run = run_of(MOUNTED, folder)
    for steps in ((0,), (0, 1)):  # in another step, or all the time
        run.applications = {"app": steps}
        assert said(run) == ALARM


@pytest.mark.spec("K-57")
def test_secrets_count_where_a_start_reads_them_and_nobody_is_told() -> None:
    variable = {"envFrom": [{"secretRef": {"name": "a"}}]}
    assert said(run_of({}, variable, kind="Secret")) == [("medium", "secrets default/a")]
    assert said(run_of(SECRET, {"volumeMounts": [MOUNT]}, kind="Secret")) == []  # certificates are read again
    run = run_of({}, variable, kind="Secret")
    run.applications = {"app": (1,)}  # a password is changed by a connection
    assert said(run) == []


@pytest.mark.spec("K-57")
def test_what_others_wrote_and_faults_do_not_count() -> None:
    folder = {"volumeMounts": [MOUNT]}
    run = run_of(MOUNTED, folder)
    for change in run.changes:
        change.writer = "user"
    assert said(run) == []
    run = run_of(MOUNTED, folder)
    run.plan = Plan("crash", (Crash(Place("update", "/configmaps", "default", "a")),))
    assert said(run) == []
    run = run_of(MOUNTED, folder)
    run.checkpoints[1].refused = "no"
    assert said(run) == []


@pytest.mark.spec("K-85")
@pytest.mark.parametrize(
    ("key", "replicas", "severity"),
    [
        ("apps/statefulsets default/a", 5, "low"),
        ("apps/deployments default/a", 5, "low"),
        ("apps/statefulsets default/a", 3, "medium"),
        ("apps/replicasets default/a", 5, "medium"),  # those of a Deployment change in every roll-out
    ],
)
def test_what_the_configuration_says_of_the_number_of_pods_is_for_those_that_join(
    key: str, replicas: int, severity: str
) -> None:
    run = run_of(MOUNTED, {"volumeMounts": [MOUNT]})
    for checkpoint, number in zip(run.checkpoints, (3, replicas), strict=True):
        checkpoint.state[key] = obj("StatefulSet", spec={"replicas": number})
    run.checkpoints[1].state["apps/statefulsets default/new"] = obj("StatefulSet", spec={"replicas": 1})
    assert said(run) == [(severity, "configmaps default/a")]
