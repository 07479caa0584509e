"""What the plugins do to pods: limits, accounts, priorities, tolerations, runtime classes, topology."""

from __future__ import annotations

from typing import Any

from tests.apiserver.exchanges import MERGE, Step

LIMITS, PODS = "/api/v1/namespaces/limits", "/api/v1/namespaces/pods"
SCHEDULING, NODES = "/apis/scheduling.k8s.io/v1/priorityclasses", "/api/v1/nodes"


def container(name: str = "c", requests: Any = None, limits: Any = None, **more: Any) -> Any:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"name": name, "image": "i", **({"resources": resources} if resources else {}), **more}


def pod(
    base: str,
    name: str,
    *containers: Any,
    query: str = "?dryRun=All",
    metadata: Any = None,
    settle: float = 0,
    **spec: Any,
) -> Step:
    body = {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": containers or (container(),), **spec},
    }
    return Step("POST", f"{base}/pods{query}", body, settle=settle)


def _namespace(name: str) -> list[Step]:
    account = Step("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    return [Step("POST", "/api/v1/namespaces", {"metadata": {"name": name}}), account]


def _limits() -> list[Step]:
    per_container = {
        "type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"},
        "min": {"memory": "10Mi"}, "max": {"memory": "1Gi"},
    }  # fmt: skip
    per_pod = {"type": "Pod", "min": {"cpu": "100m"}, "maxLimitRequestRatio": {"memory": "2"}}
    per_claim = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "1Ti"}}
    fits = container("c", {"memory": "100Mi"}, {"memory": "200Mi"})
    sidecar = container("i", {"memory": "10Mi", "cpu": "50m"}, {"memory": "20Mi"}, restartPolicy="Always")
    claim = {"accessModes": ["ReadWriteOnce"]}
    sized = {size: {**claim, "resources": {"requests": {"storage": size}}} for size in ("500Mi", "1Gi", "2Ti")}
    return [
        *_namespace("limits"),
        Step(
            "POST", f"{LIMITS}/limitranges", {"metadata": {"name": "a"}, "spec": {"limits": [per_container, per_pod]}}
        ),
        Step("POST", f"{LIMITS}/limitranges", {"metadata": {"name": "b"}, "spec": {"limits": [per_claim]}}),
        pod(LIMITS, "p0", settle=2),
        pod(LIMITS, "p1", container("c", {"memory": "5Mi"}, {"memory": "2Gi"})),
        pod(LIMITS, "p2", fits),
        pod(LIMITS, "p3", container("c", {"memory": "100Mi"}, {"memory": "300Mi"})),
        pod(LIMITS, "p4", fits, initContainers=[container("i", {"memory": "1Gi", "cpu": "50m"}, {"memory": "1Gi"})]),
        pod(LIMITS, "p5", fits, initContainers=[sidecar]),
        pod(LIMITS, "p6", container("c", {"memory": "0"}, {"memory": "1"})),
        pod(LIMITS, "p7", fits, resources={"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}}),
        Step("POST", f"{LIMITS}/pods", {"metadata": {"name": "x"}}),
        *(
            Step("POST", f"{LIMITS}/persistentvolumeclaims", {"metadata": {"name": size.lower()}, "spec": spec})
            for size, spec in sized.items()
        ),
        Step("POST", f"{LIMITS}/persistentvolumeclaims", {"metadata": {"name": "none"}, "spec": claim}),
    ]


def _accounts() -> list[Step]:
    def reads(name: str) -> Any:
        return [{"name": "E", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]

    strict = {
        "metadata": {"name": "strict", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "secrets": [{"name": "ok"}],
        "imagePullSecrets": [{"name": "pull"}],
    }
    token = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "x"}}]}}
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    mounted = [{"name": "x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    return [
        *_namespace("pods"),
        Step("POST", f"{PODS}/serviceaccounts", strict),
        pod(PODS, "a", container(env=reads("ok")), serviceAccountName="strict", settle=1),
        pod(PODS, "b", container(env=reads("no")), serviceAccountName="strict"),
        pod(
            PODS,
            "c",
            serviceAccountName="strict",
            initContainers=[container("i", envFrom=[{"secretRef": {"name": "no"}}])],
        ),
        pod(PODS, "d", serviceAccountName="strict", volumes=[{"name": "v", "secret": {"secretName": "no"}}]),
        pod(PODS, "e", serviceAccountName="strict", imagePullSecrets=[{"name": "zz"}]),
        pod(PODS, "m0", nodeName="n", metadata=mirror),
        pod(PODS, "m1", nodeName="n", serviceAccountName="strict", metadata=mirror),
        pod(PODS, "m2", container(env=reads("x")), nodeName="n", metadata=mirror),
        pod(PODS, "m3", nodeName="n", volumes=[token], metadata=mirror),
        pod(PODS, "v", volumes=[{"name": "kube-api-access-mine", "emptyDir": {}}]),
        pod(PODS, "w", container(), container("d", volumeMounts=mounted), volumes=[{"name": "x", "emptyDir": {}}]),
        pod(PODS, "n", serviceAccountName="none"),
    ]


def _priorities() -> list[Step]:
    never = {"metadata": {"name": "low"}, "value": 10, "preemptionPolicy": "Never"}
    default = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
    return [
        Step("POST", SCHEDULING, never),
        Step("POST", SCHEDULING, default),
        pod(PODS, "p1", priorityClassName="nosuch", settle=1),
        pod(PODS, "p2", priorityClassName="low", preemptionPolicy="PreemptLowerPriority"),
        pod(PODS, "p3", priority=3),
        pod(PODS, "p4", priorityClassName="system-node-critical"),
        pod(PODS, "p5"),
        Step("POST", SCHEDULING, {**default, "metadata": {"name": "other"}}),
        Step("PATCH", f"{SCHEDULING}/low", {"globalDefault": True}, MERGE),
        Step("PATCH", f"{SCHEDULING}/usual", {"description": "y"}, MERGE),
        Step("DELETE", f"{SCHEDULING}/usual"),
    ]


def _tolerations() -> list[Step]:
    not_ready, unreachable = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
    given = [
        {"key": not_ready, "operator": "Exists"},
        {"key": unreachable, "operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists", "effect": "NoExecute"},
        {"operator": "Exists", "effect": "NoSchedule"},
    ]
    return [
        pod(PODS, "t0", tolerations=given[:1], settle=1),
        *(pod(PODS, f"t{index}", tolerations=[toleration]) for index, toleration in enumerate(given[1:], 1)),
        pod(PODS, "live", query=""),
        Step("PATCH", f"{PODS}/pods/live", {"spec": {"tolerations": None, "priority": None}}, MERGE),
    ]


def _runtime_classes() -> list[Step]:
    toleration = {"key": "x", "operator": "Exists"}
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [toleration]}
    overhead = {"podFixed": {"cpu": "250m"}}
    body = {"metadata": {"name": "vm"}, "handler": "h", "overhead": overhead, "scheduling": scheduling}
    return [
        Step("POST", "/apis/node.k8s.io/v1/runtimeclasses", body),
        pod(PODS, "r0", runtimeClassName="vm", settle=1),
        pod(PODS, "r1", runtimeClassName="vm", nodeSelector={"a": "c"}),
        pod(PODS, "r2", runtimeClassName="vm", overhead={"cpu": "1"}),
        pod(PODS, "r3", overhead={"cpu": "1"}),
        pod(PODS, "r4", runtimeClassName="nosuch"),
        pod(PODS, "r5", runtimeClassName="vm", overhead={"cpu": "250m"}, tolerations=[toleration]),
    ]


def _nodes() -> list[Step]:
    zone = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    other = {"key": "a", "effect": "NoSchedule"}
    return [
        Step("POST", NODES, {"metadata": {"name": "n1", "labels": zone}, "spec": {"taints": [other]}}),
        Step("POST", f"{NODES}?dryRun=All", {"metadata": {"name": "n2"}, "spec": {"taints": [taint]}}),
        pod(PODS, "top", nodeName="n1", settle=1),
        Step("POST", f"{PODS}/pods/live/binding", {"target": {"kind": "Node", "name": "n1"}}),
        Step("GET", f"{PODS}/pods/live"),
    ]


STEPS = [*_limits(), *_accounts(), *_priorities(), *_tolerations(), *_runtime_classes(), *_nodes()]
