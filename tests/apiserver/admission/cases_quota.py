"""ResourceQuota: scopes, object counts, compute resources, storage, services."""

from __future__ import annotations

from typing import Any

from tests.apiserver.exchanges import MERGE, Step

BASE = "/api/v1/namespaces/quota"


def container(name: str = "c", requests: Any = None, limits: Any = None) -> Any:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"name": name, "image": "i", "resources": resources}


def _scoped(operator: str, *values: str) -> dict[str, Any]:
    return {
        "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}
    }


_COMPUTE = {
    "pods": "3", "limits.cpu": "1", "limits.memory": "1Gi", "requests.ephemeral-storage": "1Gi",
    "requests.nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi",
}  # fmt: skip
_GOLD = "gold.storageclass.storage.k8s.io/requests.storage"
QUOTAS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("best-effort", {"pods": "1"}, {"scopes": ["BestEffort"]}),
    ("compute", _COMPUTE, {"scopes": ["NotBestEffort"]}),
    ("terminating", {"pods": "1"}, {"scopes": ["Terminating"]}),
    ("priority", {"pods": "1"}, _scoped("In", "system-node-critical")),
    ("affinity", {"pods": "0"}, {"scopes": ["CrossNamespacePodAffinity"]}),
    ("services", {"services": "2", "services.nodeports": "1", "services.loadbalancers": "1"}, {}),
    ("storage", {"requests.storage": "3Gi", "persistentvolumeclaims": "2", _GOLD: "1Gi"}, {}),
    ("counts", {"count/deployments.apps": "1", "count/pods": "20", "count/roles.rbac.authorization.k8s.io": "1"}, {}),
]


def _quotas() -> list[Step]:
    steps = [
        Step("POST", "/api/v1/namespaces", {"metadata": {"name": "quota"}}),
        Step("POST", f"{BASE}/serviceaccounts", {"metadata": {"name": "default"}}),
    ]
    for name, hard, spec in QUOTAS:
        quota = {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}
        status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        steps.append(Step("POST", f"{BASE}/resourcequotas", quota))
        steps.append(Step("PATCH", f"{BASE}/resourcequotas/{name}/status", status, MERGE))
    half_known = {"hard": {"count/secrets": "5", "secrets": "5"}, "used": {"count/secrets": "0"}}
    unfilled = {"count/leases.coordination.k8s.io": "0"}
    return [
        *steps,
        Step("POST", f"{BASE}/resourcequotas", {"metadata": {"name": "half"}, "spec": {"hard": half_known["hard"]}}),
        Step("PATCH", f"{BASE}/resourcequotas/half/status", {"status": half_known}, MERGE),
        Step("POST", f"{BASE}/resourcequotas", {"metadata": {"name": "unfilled"}, "spec": {"hard": unfilled}}),
        Step("GET", f"{BASE}/resourcequotas/half", settle=2),
    ]


def _pod(name: str, *containers: Any, query: str = "", **spec: Any) -> Step:
    body = {"metadata": {"name": name}, "spec": {"containers": containers or (container(),), **spec}}
    return Step("POST", f"{BASE}/pods{query}", body)


def _pods() -> list[Step]:
    some = {"cpu": "1m", "memory": "1Mi"}
    large = container("c", {"ephemeral-storage": "1Mi"}, {"cpu": "600m", "memory": "100Mi"})
    affinity = {"topologyKey": "a", "namespaces": ["x"], "labelSelector": {}}
    return [
        _pod("be1"),
        _pod("be2"),
        _pod("be3", query="?dryRun=All"),
        _pod("n0", container("c", {"cpu": "1m"})),
        _pod("n1", large),
        _pod("n2", large),
        _pod("n3", container("c", {"ephemeral-storage": "1Mi"}, {**some, "memory": "2Gi", "nvidia.com/gpu": "2"})),
        _pod("n4", container("c", None, {**some, "hugepages-2Mi": "6Mi"})),
        _pod("n5", container(), container("d", {"cpu": "1"}), initContainers=[container("i")]),
        _pod("n6", resources={"limits": {"cpu": "300m", "memory": "10Mi"}}),
        _pod("t1", container("c", {"ephemeral-storage": "1Mi"}, some), activeDeadlineSeconds=5),
        _pod("t2", container("c", None, some), activeDeadlineSeconds=5),
        _pod("p1", container("c", None, some), priorityClassName="system-node-critical"),
        _pod("p2", container("c", None, some), priorityClassName="system-node-critical"),
        _pod(
            "af",
            container("c", None, some),
            affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [affinity]}},
        ),
        Step("PATCH", f"{BASE}/pods/n1", {"spec": {"activeDeadlineSeconds": 9}}, MERGE),
    ]


def _service(name: str, query: str = "?dryRun=All", **spec: Any) -> Step:
    ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    return Step("POST", f"{BASE}/services{query}", {"metadata": {"name": name}, "spec": {"ports": ports, **spec}})


def _claim(name: str, size: str, **spec: Any) -> Step:
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return Step("POST", f"{BASE}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": claim_spec})


def _others() -> list[Step]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    roles, deployments = "/apis/rbac.authorization.k8s.io/v1/namespaces/quota/roles", "/apis/apps/v1/namespaces/quota"
    event = {"metadata": {"name": "a", "namespace": "quota"}, "involvedObject": {"namespace": "quota"}}
    return [
        _service("a"),
        _service("b", type="NodePort"),
        _service("c", type="LoadBalancer"),
        _service("kept", ""),
        Step("PATCH", f"{BASE}/services/kept", {"spec": {"type": "NodePort"}}, MERGE),
        _claim("a", "2Gi", storageClassName="gold"),
        _claim("b", "1Gi", storageClassName="gold"),
        _claim("c", "3Gi"),
        _claim("d", "1500M", storageClassName=""),
        _claim("e", "1Ki"),
        *(Step("POST", f"{deployments}/deployments", {"metadata": {"name": n}, "spec": spec}) for n in "ab"),
        *(Step("POST", roles, {"metadata": {"name": name}}) for name in "ab"),
        Step("POST", f"{BASE}/secrets", {"metadata": {"name": "a"}}),
        Step("POST", "/apis/coordination.k8s.io/v1/namespaces/quota/leases", {"metadata": {"name": "a"}}),
        Step("POST", f"{BASE}/events", event),
    ]


STEPS = [
    *_quotas(),
    *_pods(),
    *_others(),
    *(Step("GET", f"{BASE}/resourcequotas/{name}") for name, _, _ in QUOTAS),
]
