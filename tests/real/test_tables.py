"""Tables side by side: the same objects in all their states, and what `kubectl get -o wide` shows of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.real.sides import NAMESPACE, Side, our_side

pytestmark = pytest.mark.spec("S-11")

Obj = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
BATCH = f"/apis/batch/v1/namespaces/{NAMESPACE}"
NETWORK = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}"
OLD = "2020-01-01T00:00:00Z"
GIVEN = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|10\.96\.\d+\.\d+|:3\d{4}/|\b\d+[smhdy](\d+[smhdy])?\b"
    r"|\b(?!2020)20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"
)

CONTAINERS = [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]
TEMPLATE = {"metadata": {"labels": {"app": "t"}}, "spec": {"containers": CONTAINERS}}
SELECTOR = {
    "matchLabels": {"app": "t"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "x", "operator": "Exists"},
        {"key": "y", "operator": "DoesNotExist"},
        {"key": "z", "operator": "NotIn", "values": ["q"]},
    ],
}
SELECTED = {"metadata": {"labels": {"app": "t", "tier": "a", "x": "1"}}, "spec": {"containers": CONTAINERS}}


def container(name: str, ready: bool = False, restarts: int = 0, last: Obj | None = None, **state: Obj) -> Obj:
    status: Obj = {"name": name, "image": "i", "imageID": "", "ready": ready, "restartCount": restarts}
    if state:
        status["state"] = state
    if last:
        status["lastState"] = {"terminated": last}
    return status


def ended(code: int = 0, **more: Any) -> Obj:
    return {"exitCode": code, "finishedAt": OLD, "startedAt": OLD, **more}


RUNNING: Obj = {"running": {"startedAt": OLD}}
INIT = [{"name": "i", "image": "i"}, {"name": "j", "image": "i"}]
SIDECAR = [{"name": "i", "image": "i", "restartPolicy": "Always"}, {"name": "j", "image": "i"}]
READY = {"type": "Ready", "status": "True"}
PODS: dict[str, tuple[Obj, Obj]] = {
    "plain": ({}, {}),
    "running": ({}, {"phase": "Running", "conditions": [READY], "containerStatuses": [
        container("a", True, **RUNNING), container("b", True, 3, ended(), **RUNNING)]}),
    "waiting": ({}, {"containerStatuses": [container("a", waiting={"reason": "ImagePullBackOff"}), container("b")]}),
    "crashing": ({}, {"phase": "Running", "containerStatuses": [
        container("a", restarts=2, last=ended(1), waiting={"reason": "CrashLoopBackOff"})]}),
    "succeeded": ({}, {"phase": "Succeeded", "containerStatuses": [
        container("a", terminated=ended(reason="Completed")), container("b", terminated=ended(reason="Completed"))]}),
    "failed": ({}, {"phase": "Failed", "containerStatuses": [
        container("a", terminated=ended(reason="Completed")), container("b", terminated=ended(7, reason="Error"))]}),
    "signalled": ({}, {"phase": "Failed", "containerStatuses": [container("a", terminated=ended(9, signal=9))]}),
    "exited": ({}, {"phase": "Failed", "containerStatuses": [container("a", terminated=ended(3))]}),
    "half": ({}, {"phase": "Running", "containerStatuses": [
        container("a", terminated=ended(reason="Completed")), container("b", True, **RUNNING)]}),
    "half-ready": ({}, {"phase": "Running", "conditions": [READY], "containerStatuses": [
        container("a", terminated=ended(reason="Completed")), container("b", True, **RUNNING)]}),
    "evicted": ({}, {"phase": "Failed", "reason": "Evicted"}),
    "init-first": ({"initContainers": INIT}, {"initContainerStatuses": [container("i", **RUNNING), container("j")]}),
    "init-second": ({"initContainers": INIT}, {"initContainerStatuses": [
        container("i", terminated=ended()), container("j", waiting={"reason": "PodInitializing"})]}),
    "init-failed": ({"initContainers": INIT}, {"initContainerStatuses": [
        container("i", restarts=2, last=ended(1), terminated=ended(1, reason="Error"))]}),
    "init-code": ({"initContainers": INIT}, {"initContainerStatuses": [container("i", terminated=ended(5))]}),
    "init-waiting": ({"initContainers": INIT}, {"initContainerStatuses": [
        container("i", waiting={"reason": "ErrImagePull"})]}),
    "sidecar": ({"initContainers": SIDECAR}, {"phase": "Running", "initContainerStatuses": [
        {**container("i", True, 1, ended(), **RUNNING), "started": True}, container("j", terminated=ended())],
        "containerStatuses": [container("a", True, **RUNNING), container("b", True, **RUNNING)]}),
    "nominated": ({}, {"phase": "Pending", "nominatedNodeName": "n2"}),
    "gated": ({"schedulingGates": [{"name": "example.com/g"}]}, {}),
    "placed": ({"nodeName": "n1",
                "readinessGates": [{"conditionType": "a.example/x"}, {"conditionType": "b.example/y"}]},
               {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
                "conditions": [{"type": "a.example/x", "status": "True"}]}),
}  # fmt: skip


def pod(name: str) -> tuple[str, Obj, Obj]:
    spec, status = PODS[name]
    return f"{CORE}/pods", {"metadata": {"name": name}, "spec": {"containers": CONTAINERS, **spec}}, status


def job(name: str, spec: Obj, status: Obj) -> tuple[str, Obj, Obj]:
    template = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
    return f"{BATCH}/jobs", {"metadata": {"name": name}, "spec": {"template": template, **spec}}, status


def service(name: str, status: Obj | None = None, **spec: Any) -> tuple[str, Obj, Obj]:
    ports = [{"name": "p", "port": 80, "targetPort": 8080}, {"name": "q", "port": 53, "protocol": "UDP"}]
    return f"{CORE}/services", {"metadata": {"name": name}, "spec": {"ports": ports, **spec}}, status or {}


def ingress(name: str, hosts: list[str], status: Obj | None = None, **spec: Any) -> tuple[str, Obj, Obj]:
    paths = [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]
    rules = [{**({"host": host} if host else {}), "http": {"paths": paths}} for host in hosts]
    return f"{NETWORK}/ingresses", {"metadata": {"name": name}, "spec": {"rules": rules, **spec}}, status or {}


def resource_metric(name: str, **target: Any) -> Obj:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def hpa(name: str, metrics: list[Obj], current: list[Obj] | None) -> tuple[str, Obj, Obj]:
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 9,
        "metrics": metrics,
    }
    status = {"desiredReplicas": 1, "currentReplicas": 1, "currentMetrics": current, "conditions": None}
    path = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
    return path, {"metadata": {"name": name}, "spec": spec}, {} if current is None else status


def storage_class(name: str, **annotations: str) -> tuple[str, Obj, Obj]:
    metadata = {"name": name, "annotations": annotations}
    return "/apis/storage.k8s.io/v1/storageclasses", {"metadata": metadata, "provisioner": "p.example.com"}, {}


CLAIM = {"accessModes": ["ReadWriteMany", "ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
LIMITED = {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {
    "type": "Queue", "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50}}}}  # fmt: skip
CASES: list[tuple[str, Obj, Obj]] = [
    *map(pod, PODS),
    (f"{APPS}/deployments", {"metadata": {"name": "d"}, "spec": {"selector": SELECTOR, "template": SELECTED}},
     {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2}),
    (f"{APPS}/replicasets", {"metadata": {"name": "rs"}, "spec": {"replicas": 2, "selector": SELECTOR,
                                                                  "template": SELECTED}}, {"replicas": 2}),
    (f"{APPS}/statefulsets", {"metadata": {"name": "s"}, "spec": {
        "serviceName": "s", "replicas": 0, "selector": {"matchLabels": {"app": "t"}}, "template": TEMPLATE}}, {}),
    (f"{APPS}/daemonsets", {"metadata": {"name": "ds"}, "spec": {
        "selector": {"matchLabels": {"app": "t"}}, "template": {**TEMPLATE, "spec": {
            "containers": CONTAINERS, "nodeSelector": {"b": "2", "a": "1"}}}}},
     {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 1}),
    (f"{APPS}/controllerrevisions", {"metadata": {"name": "free"}, "revision": 3, "data": {}}, {}),
    (f"{APPS}/controllerrevisions", {"metadata": {"name": "owned", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}]},
        "revision": 4, "data": {"a": 1}}, {}),
    job("running", {}, {}),
    job("many", {"parallelism": 3}, {}),
    job("suspended", {"suspend": True}, {"conditions": [{"type": "Suspended", "status": "True"}]}),
    job("started", {}, {"startTime": OLD, "active": 1}),
    (f"{BATCH}/cronjobs", {"metadata": {"name": "cj"}, "spec": {"schedule": "* * * * *", "timeZone": "Etc/UTC",
        "jobTemplate": {"spec": {"template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}}}},
     {"lastScheduleTime": OLD, "active": [{"kind": "Job", "name": "x"}]}),
    service("headless", clusterIP="None"),
    service("external", type="ExternalName", externalName="a.example.com"),
    service("pending", type="LoadBalancer"),
    service("balanced", {"loadBalancer": {"ingress": [{"ip": "10.9.9.9"}, {"hostname": "b.example.com"}]}},
            type="LoadBalancer", externalIPs=["192.0.2.7"]),
    service("extra", externalIPs=["192.0.2.8", "192.0.2.9"], selector={"b": "2", "a": "1"}),
    ingress("few", ["a.example.com", ""]),
    ingress("many", [f"h{n}.example.com" for n in range(5)], {"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}},
            tls=[{"hosts": ["h0.example.com"]}], ingressClassName="nginx"),
    (f"{NETWORK}/networkpolicies", {"metadata": {"name": "np"}, "spec": {"podSelector": SELECTOR}}, {}),
    (f"{NETWORK}/networkpolicies", {"metadata": {"name": "all"}, "spec": {"podSelector": {}}}, {}),
    ("/apis/networking.k8s.io/v1/ingressclasses", {
        "metadata": {"name": "nginx", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "k.example.com/c", "parameters": {
            "apiGroup": "k.example.com", "kind": "Params", "name": "p", "scope": "Cluster"}}}, {}),
    (f"{CORE}/endpoints", {"metadata": {"name": "ep"}, "subsets": [
        {"addresses": [{"ip": f"10.0.0.{n}"} for n in range(1, 4)],
         "ports": [{"name": "w", "port": 1}, {"name": "x", "port": 2}]}]}, {}),
    (f"{CORE}/endpoints", {"metadata": {"name": "ep6"}, "subsets": [
        {"addresses": [{"ip": "2001:db8::1"}], "ports": [{"port": 1}]}]}, {}),
    (f"{CORE}/endpoints", {"metadata": {"name": "none"}}, {}),
    (f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices", {
        "metadata": {"name": "es"}, "addressType": "IPv4", "ports": [{"name": "a", "port": 1}, {"name": "b"}],
        "endpoints": [{"addresses": [f"10.0.0.{n}"]} for n in range(5)]}, {}),
    (f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices", {
        "metadata": {"name": "empty"}, "addressType": "FQDN", "endpoints": []}, {}),
    hpa("unknown", [resource_metric("cpu", type="Utilization", averageUtilization=50)], None),
    hpa("known", [resource_metric("cpu", type="Utilization", averageUtilization=50),
                  resource_metric("memory", type="AverageValue", averageValue="1Gi")],
        [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "5m"}}},
         {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "1024Mi"}}}]),
    hpa("others", [
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
        {"type": "External", "external": {"metric": {"name": "e"}, "target": {"type": "Value", "value": "30"}}},
        {"type": "Object", "object": {
            "metric": {"name": "o"}, "describedObject": {"apiVersion": "k.example.com/v1", "kind": "K", "name": "n"},
                                      "target": {"type": "AverageValue", "averageValue": "2"}}}], None),
    (f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
     {"metadata": {"name": "min"}, "spec": {"minAvailable": "50%", "selector": {}}}, {}),
    (f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
     {"metadata": {"name": "max"}, "spec": {"maxUnavailable": 2, "selector": {}}}, {}),
    (f"{CORE}/persistentvolumeclaims", {"metadata": {"name": "open"}, "spec": CLAIM}, {}),
    (f"{CORE}/persistentvolumeclaims", {"metadata": {"name": "bound"}, "spec": {**CLAIM, "volumeName": "pv-t",
                                                                                "storageClassName": "fast"}},
     {"phase": "Bound", "accessModes": ["ReadOnlyMany", "ReadWriteOnce"], "capacity": {"storage": "2048Mi"}}),
    ("/api/v1/persistentvolumes", {"metadata": {"name": "pv-t"}, "spec": {
        "capacity": {"storage": "2048Mi"}, "accessModes": ["ReadWriteMany", "ReadWriteOncePod"][:1],
        "hostPath": {"path": "/x"}, "claimRef": {"namespace": "n", "name": "c"}}}, {"phase": "Bound"}),
    (f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}},
     {"hard": {"pods": "4", "limits.cpu": "2", "requests.memory": "1Gi"}, "used": {"pods": "1", "limits.cpu": "500m"}}),
    (f"{CORE}/events", {"metadata": {"name": "e"}, "involvedObject": {
        "kind": "Pod", "name": "p", "namespace": NAMESPACE, "fieldPath": "spec.containers{a}"},
        "reason": "R", "message": " padded\n", "type": "Warning", "count": 4,
        "source": {"component": "kubelet", "host": "n1"}, "firstTimestamp": OLD, "lastTimestamp": OLD}, {}),
    (f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events", {
        "metadata": {"name": "series"}, "regarding": {"kind": "Node", "name": "n", "namespace": NAMESPACE},
        "reason": "R", "action": "A", "note": "n", "type": "Normal", "reportingController": "c.example.com/x",
        "reportingInstance": "i", "eventTime": "2020-01-01T00:00:00.000000Z",
        "series": {"count": 5, "lastObservedTime": "2020-01-01T00:00:00.000000Z"}}, {}),
    ("/api/v1/nodes", {"metadata": {"name": "n-t", "labels": {
        "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "db"}},
        "spec": {"unschedulable": True}},
     {"conditions": [{"type": "Ready", "status": "False"}], "addresses": [
         {"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.9"}],
      "nodeInfo": {**dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeProxyVersion", "operatingSystem"), ""),
                   "kubeletVersion": "v1.37.1", "osImage": "Some OS", "kernelVersion": "6.1", "architecture": "arm64",
                   "containerRuntimeVersion": "cri://1"}}),
    ("/api/v1/nodes", {"metadata": {"name": "n-new"}}, {}),
    (f"{CORE}/configmaps", {"metadata": {"name": "cm"}, "data": {"a": "1"}, "binaryData": {"b": "AA=="}}, {}),
    (f"{CORE}/secrets", {"metadata": {"name": "sec"}, "data": {"a": "AA=="}, "type": "example.com/x"}, {}),
    (f"{CORE}/replicationcontrollers", {"metadata": {"name": "rc"}, "spec": {"selector": {"app": "t"},
                                                                            "template": TEMPLATE}}, {"replicas": 2}),
    (f"{CORE}/podtemplates", {"metadata": {"name": "pt"}, "template": TEMPLATE}, {}),
    (f"{CORE}/limitranges", {"metadata": {"name": "lr"}, "spec": {"limits": []}}, {}),
    storage_class("sc-old", **{"storageclass.kubernetes.io/is-default-class": "true"}),
    storage_class("sc-other", **{"storageclass.beta.kubernetes.io/is-default-class": "true"}),
    storage_class("sc-plain"),
    ("/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "drv.example.com"}, "spec": {
        "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
        "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}, {}),
    ("/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": "n-t"}, "spec": {
        "drivers": [{"name": "drv.example.com", "nodeID": "1", "topologyKeys": []}]}}, {}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent-t"}, "value": 7}, {}),
    (f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases", {
        "metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}, {}),
    (f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings", {"metadata": {"name": "rb"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": [
            {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "User", "name": "v", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}, {}),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
     {"metadata": {"name": "pl-t"}, "spec": LIMITED}, {}),
    ("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", {"metadata": {"name": "vb"}, "spec": {
        "policyName": "p", "validationActions": ["Deny"], "paramRef": {
            "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [
                {"key": "k", "operator": "In", "values": ["x", "y"]}]}, "parameterNotFoundAction": "Deny"}}}, {}),
    ("/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1.tables.example.com"}, "spec": {
        "group": "tables.example.com", "version": "v1", "service": {"namespace": "n", "name": "s"},
        "groupPriorityMinimum": 10, "versionPriority": 10}}, {}),
]  # fmt: skip


@pytest.fixture(scope="module")
def both(real_side: Side, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    with our_side(tmp_path_factory.mktemp("tables")) as ours:
        ours.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        ours.send("POST", f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield real_side, ours


def plain(cell: Any) -> Any:
    """Ages and times depend on the moment; identities, addresses and node ports on the server."""
    return GIVEN.sub("<given>", cell) if isinstance(cell, str) else cell


def table(side: Side, path: str, name: str) -> Any:
    """The row of one object out of the list, and the columns."""
    side.headers["Accept"] = TABLE
    try:
        code, answer = side.send("GET", path, includeObject="Metadata")
    finally:
        del side.headers["Accept"]
    assert code == 200, answer
    rows = [row for row in answer["rows"] if row["object"]["metadata"]["name"] == name]
    return answer["columnDefinitions"], [([*map(plain, row["cells"])], row.get("conditions")) for row in rows]


def wait_until_judged(side: Side, path: str) -> None:
    """Whether an APIService is available is found out by the server itself, in its own time."""
    while not side.send("GET", path)[1]["status"].get("conditions"):
        pass


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].rpartition('/')[2]}-{case[1]['metadata']['name']}")
def test_both_servers_show_the_same_row(both: tuple[Side, Side], case: tuple[str, Obj, Obj]) -> None:
    path, obj, status = case
    name = obj["metadata"]["name"]
    for side in both:
        code, made = side.send("POST", path, obj)
        assert code == 201, made.get("message")
        if status:
            code, made = side.send("PUT", f"{path}/{name}/status", {**made, "status": status})
            assert code == 200, made.get("message")
    if path.endswith("/apiservices"):
        for side in both:
            wait_until_judged(side, f"{path}/{name}")
    real, ours = (table(side, path, name) for side in both)
    assert ours == real
    assert len(ours[1]) == 1
