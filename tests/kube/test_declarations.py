"""How the built-in controllers present themselves: their names in metrics and logs, and the source of their events."""

from __future__ import annotations

import pytest

from konverge import kube

pytestmark = pytest.mark.spec("R-30")

# Name -> the component of its events, by which users filter them; empty where it makes none.
COMPONENTS = {
    "clusterrole-aggregation": "",
    "cronjob": "cronjob-controller",
    "daemonset": "daemonset-controller",
    "deployment": "deployment-controller",
    "disruption": "controllermanager",
    "endpoints": "",
    "endpoints-leftover": "",
    "endpointslice-mirroring": "endpoint-slice-mirroring-controller",
    "horizontalpodautoscaler": "horizontal-pod-autoscaler",
    "job": "job-controller",
    "job-orphans": "",
    "namespace": "",
    "node-lifecycle": "node-controller",
    "pod-garbage-collector": "",
    "pv-protection": "",
    "pvc-protection": "",
    "vac-protection": "",
    "csr-signing": "",
    "replicaset": "replicaset-controller",
    "replicationcontroller": "replication-controller",
    "resourcequota": "",
    "root-ca-certificate-publisher": "",
    "serviceaccount": "",
    "serviceaccount-token": "",
    "stale-disruption": "",
    "statefulset": "statefulset-controller",
    "taint-eviction": "taint-eviction-controller",
    "ttl-after-finished": "",
}


def test_every_controller_has_its_name_and_the_component_of_upstream() -> None:
    controllers = kube.all_controllers(authority=lambda: (b"", b""))
    assert {controller.name: controller.component for controller in controllers} == COMPONENTS
    assert len(controllers) == len(COMPONENTS)


def test_the_garbage_collector_runs_beside_the_controllers() -> None:
    assert [service.name for service in kube.services()] == ["garbage-collector"]
