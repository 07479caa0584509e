"""kubectl on a whole cluster: it works on ours, and prints the same, as on a real one.

The same commands run on `konverge up` and on kube-apiserver with the real controllers, the real scheduler and kwok's
nodes; what they print is compared without what differs from run to run (generated names, addresses, ages, and how many
steps of a rollout a command happened to see).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.real.clusters import ours_on_ours, real_on_real
from tests.real.embedded import Tool

COMMANDS = """
create deployment web --image=nginx:1.25 --replicas=3
rollout status deployment/web
get deployment web -o wide
get replicaset -o wide
get pods -o custom-columns=READY:.status.conditions[?(@.type=="Ready")].status,PHASE:.status.phase
describe deployment web
set image deployment/web nginx=nginx:1.26
rollout status deployment/web
annotate deployment/web kubernetes.io/change-cause=second
rollout history deployment/web
rollout history deployment/web --revision=2
rollout undo deployment/web
rollout status deployment/web
rollout history deployment/web
rollout pause deployment/web
set image deployment/web nginx=nginx:1.27
rollout undo deployment/web
rollout resume deployment/web
rollout status deployment/web
rollout restart deployment/web
rollout status deployment/web
scale deployment/web --replicas=5
wait --for=condition=Available deployment/web --timeout=150s
wait --for=jsonpath={.status.readyReplicas}=5 deployment/web --timeout=150s
expose deployment/web --port=80
describe service web
rollout status statefulset/db
get statefulset -o wide
set image statefulset/db c=postgres:17
rollout status statefulset/db
rollout history statefulset/db
rollout undo statefulset/db
rollout status statefulset/db
describe statefulset db
rollout status daemonset/agent
get daemonset -o wide
describe daemonset agent
create job once --image=busybox -- true
wait --for=condition=Complete job/once --timeout=150s
get job once
describe job once
create cronjob tick --image=busybox --schedule=0_0_1_1_* -- true
get cronjob tick
describe cronjob tick
create pdb p --selector=app=web --min-available=3
wait --for=jsonpath={.status.disruptionsAllowed}=2 pdb/p --timeout=150s
get pdb
describe pdb p
cordon node-1
get nodes -o custom-columns=NAME:.metadata.name,OFF:.spec.unschedulable
drain node-1 --ignore-daemonsets --force --delete-emptydir-data --timeout=150s
wait --for=jsonpath={.status.readyReplicas}=5 deployment/web --timeout=150s
get pods -l app=web -o custom-columns=NODE:.spec.nodeName
uncordon node-1
run one --image=nginx --restart=Never --annotations=sim.konverge.dev/behaviour=runs
wait --for=condition=Ready pod/one --timeout=150s
delete pod one
create namespace gone
create configmap c -n gone --from-literal=a=b
delete namespace gone --timeout=150s
delete deployment web --cascade=foreground --timeout=150s
delete statefulset db --timeout=150s
get replicaset,pods -l app=web
api-resources -o name
"""
SHOWN = {
    "rollout history deployment/web": "second",
    "describe job once": "Job completed",
    "get pods -l app=web -o custom-columns=NODE:.spec.nodeName": "node-2\n" * 5,
}
"""What a command prints that controllers write in their own time; until then it is repeated."""
BEFORE = {"rollout status statefulset/db": "StatefulSet", "rollout status daemonset/agent": "DaemonSet"}


def workload(kind: str) -> str:
    name = "db" if kind == "StatefulSet" else "agent"
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "postgres:16"}]}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    if kind == "StatefulSet":
        spec |= {"serviceName": "db", "replicas": 2}
    return json.dumps({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})


def outputs(kubectl: Tool) -> list[str]:
    """What each command prints, one after the other."""
    printed: list[str] = []
    for line in COMMANDS.strip().splitlines():
        kind = BEFORE.get(line)
        if kind and f"{kind.lower()}/" in line and not any(f"{kind} made" in text for text in printed):
            kubectl("apply", "-f", "-", stdin=workload(kind))
            printed.append(f"{kind} made")
        words = [word.replace("_", " ") if "_*" in word else word for word in line.split(" ")]
        if line in SHOWN:
            kubectl.until(lambda text, expected=SHOWN[line]: expected in text, *words)  # type: ignore[misc]
        done = kubectl.run(*words)
        printed.append(f"$ {line}\n" + plain(done.stdout + done.stderr, line))
    return printed


def plain(text: str, command: str) -> str:
    """The text without what differs from run to run."""
    text = re.sub(r"\b(web|agent|once)-[a-z0-9]{5,10}(-[a-z0-9]{5})?\b", r"\1-<gen>", text)
    text = re.sub(r"pod-template-hash=\w+", "pod-template-hash=<hash>", text)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>", text)
    text = re.sub(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "<time>", text)
    text = re.sub(r"\b\d+(\.\d+){3}(:\d+)?\b", "<address>", text)
    text = re.sub(r"restartedAt: \S+", "restartedAt: <time>", text)
    text = re.sub(r"\b\d+[smh](\d+s)?( \(x\d+ over \d+\w+\))?(?=\s|$)", "<age>", text)
    lines = [re.sub(r" +", " ", line).rstrip() for line in text.splitlines()]
    if command.startswith("rollout status"):
        lines = lines[-1:]
    if command.startswith(("drain", "describe statefulset")) or "Endpoints:" in text:
        lines = sorted(
            {line for line in lines if not line.startswith(("evicting", "error when", "Endpoints:", "pod/"))}
        )
    if "Events:" in lines:  # in the order of their ages, which are whole seconds
        at = lines.index("Events:")
        lines[at:] = sorted(set(lines[at:]))
    return "\n".join(line for line in lines if not re.fullmatch(r"[ -]*", line))


METRICS = {"nodes.metrics.k8s.io", "pods.metrics.k8s.io"}
"""Of a metrics server, which only the simulated cluster has."""


@pytest.mark.limit(900)
@pytest.mark.blocking("waits for kubectl, which does the work")
@pytest.mark.spec("R-32", "R-33", "R-34", "R-35", "R-36", "R-39", "S-16")
def test_kubectl_prints_the_same_of_our_cluster_as_of_a_real_one(binaries: Path, tmp_path: Path, kubectl: Path) -> None:
    printed = []
    for name, cluster in (("ours", ours_on_ours), ("real", real_on_real)):
        folder = tmp_path / name
        folder.mkdir()
        with cluster(binaries, folder) as kubeconfig:
            printed.append(outputs(Tool(kubectl, kubeconfig, folder)))
    ours, real = printed
    at = next(index for index, text in enumerate(ours) if text.startswith("$ api-resources"))
    served = ours[at].splitlines()
    assert set(served) >= METRICS
    ours[at] = "\n".join(line for line in served if line not in METRICS)
    assert ours == real
