"""Pod Security Standards: pods of every sort in namespaces of every level."""

from __future__ import annotations

from typing import Any

from tests.apiserver.exchanges import MERGE, Step

LABEL = "pod-security.kubernetes.io/"
NAMESPACES: dict[str, dict[str, str]] = {
    "ps-baseline": {"enforce": "baseline"},
    "ps-restricted": {"enforce": "restricted"},
    "ps-old": {"enforce": "baseline", "enforce-version": "v1.18"},
    "ps-warn": {"warn": "restricted", "warn-version": "v1.24"},
    "ps-free": {},
    "ps-bad-level": {"enforce": "nope"},
    "ps-bad-others": {"enforce-version": "1.2", "warn": "x", "audit": "y"},
}


def container(name: str = "c", **context: Any) -> Any:
    return {"name": name, "image": "i", "securityContext": context}


_CLEAN = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_SAFE = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_PROBE = {"httpGet": {"host": "x", "port": 1}}
PODS: list[dict[str, Any]] = [
    {"containers": [container()]},
    {"containers": [container(privileged=True), container("d", privileged=True)]},
    {"hostNetwork": True, "hostPID": True, "containers": [container()]},
    {
        "containers": [container(capabilities={"add": ["NET_RAW", "SYS_ADMIN"]})],
        "initContainers": [container("i", capabilities={"add": ["X"]})],
    },
    {
        "volumes": [
            {"name": "h", "hostPath": {"path": "/"}},
            {"name": "n", "nfs": {"server": "s", "path": "/p"}},
        ],
        "containers": [container()],
    },
    {"containers": [{**container(), "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]}]},
    {
        "securityContext": {"seLinuxOptions": {"type": "foo", "user": "u"}},
        "containers": [container(seLinuxOptions={"role": "r", "type": "container_t"})],
    },
    {
        "securityContext": {"seccompProfile": {"type": "Unconfined"}},
        "containers": [container(seccompProfile={"type": "Unconfined"})],
    },
    {
        "securityContext": {
            "sysctls": [{"name": "kernel.msgmax", "value": "1"}, {"name": "net.ipv4.tcp_rmem", "value": "1"}]
        },
        "containers": [container()],
    },
    {"securityContext": _SAFE, "containers": [container(**_CLEAN)]},
    {
        "securityContext": {"runAsNonRoot": False, "runAsUser": 0},
        "containers": [container(runAsUser=0, runAsNonRoot=False, capabilities={"drop": ["ALL"], "add": ["CHOWN"]})],
    },
    {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}, "containers": [container()]},
    {
        "containers": [
            {**container(), "livenessProbe": _PROBE, "lifecycle": {"preStop": {"httpGet": {"host": "y", "port": 1}}}}
        ]
    },
    {"hostUsers": False, "containers": [container(**_CLEAN, procMount="Unmasked")]},
    {"os": {"name": "windows"}, "containers": [container()]},
    {"hostNetwork": True, "securityContext": {"windowsOptions": {"hostProcess": True}}, "containers": [container()]},
]


def _steps() -> list[Step]:
    steps: list[Step] = []
    for name, modes in NAMESPACES.items():
        labels = {LABEL + key: value for key, value in modes.items()}
        steps.append(Step("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}))
        steps.append(Step("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}))
    steps.append(Step("GET", "/api/v1/namespaces/ps-free", settle=1))
    for name in ("ps-baseline", "ps-restricted", "ps-old", "ps-warn", "ps-free"):
        path = f"/api/v1/namespaces/{name}/pods?dryRun=All"
        steps += [Step("POST", path, {"metadata": {"name": f"p{i}"}, "spec": spec}) for i, spec in enumerate(PODS)]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": PODS[1]}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    job = {"spec": {"template": {"spec": {**PODS[1], "restartPolicy": "Never"}}}}
    cron_job = {"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "jobTemplate": job}}
    for name in ("ps-restricted", "ps-warn"):
        steps.append(Step("POST", f"/apis/apps/v1/namespaces/{name}/deployments?dryRun=All", deployment))
        steps.append(Step("POST", f"/apis/batch/v1/namespaces/{name}/cronjobs?dryRun=All", cron_job))
    for index in (1, 2, 0):
        body = {"metadata": {"name": f"q{index}"}, "spec": PODS[index]}
        steps.append(Step("POST", "/api/v1/namespaces/ps-free/pods", body))
    for level in ("restricted", "baseline", "foo"):
        change = {"metadata": {"labels": {f"{LABEL}enforce": level}}}
        steps.append(Step("PATCH", "/api/v1/namespaces/ps-free", change, MERGE, settle=1))
    generated = {"metadata": {"generateName": "generated-"}, "spec": PODS[1]}
    return [*steps, Step("POST", "/api/v1/namespaces/ps-baseline/pods?dryRun=All", generated)]


STEPS = _steps()
