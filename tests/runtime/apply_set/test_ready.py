"""When an object is ready for those that depend on it."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import Condition, CustomResource, Model
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.apps_v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, PersistentVolumeClaim, Pod, Service
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.runtime.apply_set.ready import unready

pytestmark = pytest.mark.spec("R-63")


class LampSpec(Model):
    pass


class LampStatus(Model):
    conditions: list[Condition] = []


class Lamp(CustomResource[LampSpec, LampStatus], group="tests.konverge.dev", version="v1"):
    """Has conditions."""


class PlainStatus(Model):
    on: bool = False


class Plain(CustomResource[LampSpec, PlainStatus], group="tests.konverge.dev", version="v1"):
    """Has none."""


def condition(type: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": type, "status": status, **more}]}


ROLLED = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
TWO = {"replicas": 2}
SAME = {"currentRevision": "r", "updateRevision": "r"}
SPREAD = {"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}

READY: list[tuple[type[Any], dict[str, Any], dict[str, Any]]] = [
    (Deployment, TWO, ROLLED),
    (Deployment, {"replicas": 0}, {"observedGeneration": 2}),
    (Deployment, {}, {**ROLLED, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}),
    (StatefulSet, TWO, {**ROLLED, **SAME}),
    (StatefulSet, {**TWO, "updateStrategy": {"type": "OnDelete"}}, {"observedGeneration": 2}),
    (StatefulSet, {}, {"observedGeneration": 2, "replicas": 1, "readyReplicas": 1, **SAME}),
    (StatefulSet, {"replicas": 0}, {"observedGeneration": 2}),
    (DaemonSet, {}, {"observedGeneration": 2}),
    (ReplicaSet, {}, {"observedGeneration": 2, "availableReplicas": 1}),
    (
        StatefulSet,
        {**TWO, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
        {**ROLLED, "updatedReplicas": 1, "currentRevision": "r", "updateRevision": "s"},
    ),
    (DaemonSet, {}, SPREAD),
    (DaemonSet, {"updateStrategy": {"type": "OnDelete"}}, {**SPREAD, "updatedNumberScheduled": 0}),
    (ReplicaSet, TWO, ROLLED),
    (Job, {}, condition("Complete")),
    (Pod, {}, condition("Ready")),
    (Pod, {}, {"phase": "Succeeded", **condition("Ready", "False")}),
    (PersistentVolumeClaim, {}, {"phase": "Bound"}),
    (Namespace, {}, {"phase": "Active"}),
    (Service, {"type": "ClusterIP"}, {"loadBalancer": {}}),
    (Service, {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}),
    (CustomResourceDefinition, {}, condition("Established")),
    (PodDisruptionBudget, {}, {"observedGeneration": 2}),
    (ConfigMap, {}, {}),
    (Lamp, {}, condition("Ready")),
    (Lamp, {}, condition("Lit", "False")),  # it has conditions, and none of them is about readiness
    (Plain, {}, {}),
]

UNREADY: list[tuple[type[Any], dict[str, Any], dict[str, Any], str]] = [
    (Deployment, TWO, {}, "was not seen by its controller yet"),
    (Deployment, TWO, {**ROLLED, "observedGeneration": 1}, "has a change that its controller has not seen yet"),
    (Deployment, TWO, {**ROLLED, "updatedReplicas": 1}, "has 1 of 2 replicas updated"),
    (Deployment, TWO, {**ROLLED, "replicas": 3}, "has 1 old replicas left"),
    (Deployment, TWO, {**ROLLED, "availableReplicas": 1}, "has 1 of 2 replicas available"),
    (Deployment, {}, {"observedGeneration": 2}, "has 0 of 1 replicas updated"),
    (
        Deployment,
        TWO,
        {**ROLLED, **condition("Progressing", "False", reason="ProgressDeadlineExceeded")},
        "makes no progress: its deadline is exceeded",
    ),
    (StatefulSet, TWO, {}, "was not seen by its controller yet"),
    (StatefulSet, TWO, {**ROLLED, **SAME, "readyReplicas": 1}, "has 1 of 2 replicas ready"),
    (StatefulSet, TWO, {**ROLLED, **SAME, "replicas": 3}, "has 1 replicas too many"),
    (StatefulSet, TWO, {**ROLLED, **SAME, "updateRevision": "s"}, "has 2 of 2 replicas updated"),
    (
        StatefulSet,
        {**TWO, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
        {**ROLLED, "updatedReplicas": 0},
        "has 0 of 1 replicas updated",
    ),
    (StatefulSet, {}, {"observedGeneration": 2}, "has 0 of 1 replicas ready"),
    (StatefulSet, {"replicas": 0}, {"observedGeneration": 2, "replicas": 1}, "has 1 replicas too many"),
    (
        StatefulSet,
        {},
        {"observedGeneration": 2, "readyReplicas": 1, **SAME, "updateRevision": "s"},
        "has 0 of 1 replicas updated",
    ),
    (
        StatefulSet,
        {**TWO, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
        {"observedGeneration": 2, "readyReplicas": 2},
        "has 0 of 1 replicas updated",
    ),
    (DaemonSet, {}, {}, "was not seen by its controller yet"),
    (DaemonSet, {}, {**SPREAD, "updatedNumberScheduled": 1}, "has 1 of 2 pods updated"),
    (DaemonSet, {}, {**SPREAD, "numberAvailable": 1}, "has 1 of 2 pods available"),
    (DaemonSet, {}, {"observedGeneration": 2, "desiredNumberScheduled": 1}, "has 0 of 1 pods updated"),
    (
        DaemonSet,
        {"updateStrategy": {"type": "OnDelete"}},
        {"observedGeneration": 2, "desiredNumberScheduled": 1},
        "has 0 of 1 pods available",
    ),
    (ReplicaSet, {}, {"observedGeneration": 2}, "has 0 of 1 replicas available"),
    (ReplicaSet, TWO, {}, "was not seen by its controller yet"),
    (ReplicaSet, TWO, {**ROLLED, "availableReplicas": 1}, "has 1 of 2 replicas available"),
    (ReplicaSet, {}, {**ROLLED, "availableReplicas": 0}, "has 0 of 1 replicas available"),
    (Job, {}, {"active": 1}, "is not complete"),
    (Job, {}, condition("Failed", message="too often"), "failed: too often"),
    (Job, {}, condition("Failed", reason="BackoffLimitExceeded"), "failed: BackoffLimitExceeded"),
    (Job, {}, condition("Failed"), "failed: no reason was given"),
    (Pod, {}, {"phase": "Running"}, "is not Ready"),
    (PersistentVolumeClaim, {}, {"phase": "Pending"}, "is Pending"),
    (PersistentVolumeClaim, {}, {}, "is without a phase yet"),
    (Namespace, {}, {"phase": "Terminating"}, "is Terminating"),
    (Service, {"type": "LoadBalancer"}, {"loadBalancer": {}}, "has no load balancer yet"),
    (CustomResourceDefinition, {}, {}, "is not Established"),
    (CustomResourceDefinition, {}, condition("NamesAccepted", "False", message="taken"), "is refused: taken"),
    (CustomResourceDefinition, {}, condition("NamesAccepted", "False", reason="Taken"), "is refused: Taken"),
    (PodDisruptionBudget, {}, {"observedGeneration": 1}, "has a change that its controller has not seen yet"),
    (Lamp, {}, {}, "has no conditions yet"),
    (Lamp, {}, condition("Ready", "False", message="no bulb"), "is not Ready: no bulb"),
    (Lamp, {}, condition("Ready", "Unknown", reason="Dark"), "is not Ready: Dark"),
    (Lamp, {}, condition("Reconciling", message="at work"), "is Reconciling: at work"),
    (Lamp, {}, condition("Stalled", reason="Fuse"), "is Stalled: Fuse"),
]


def made(spec: dict[str, Any], status: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "generation": 2, **meta}, "spec": spec, "status": status}


@pytest.mark.parametrize(("kind", "spec", "status"), READY)
def test_ready(kind: type[Any], spec: dict[str, Any], status: dict[str, Any]) -> None:
    assert unready(kind, made(spec, status)) == ""
    assert unready(kind, made(spec, status, deletionTimestamp="2026-01-01T00:00:00Z")) == "is being deleted"


@pytest.mark.parametrize(("kind", "spec", "status", "problem"), UNREADY)
def test_not_ready(kind: type[Any], spec: dict[str, Any], status: dict[str, Any], problem: str) -> None:
    assert unready(kind, made(spec, status)) == problem


def test_an_object_without_spec_and_status() -> None:
    assert unready(ConfigMap, {"metadata": {"name": "a"}}) == ""
