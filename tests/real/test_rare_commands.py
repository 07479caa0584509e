"""Commands of kubectl that few people use, on the real server and on ours: the same output, word for word."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.real.embedded import Tool
from tools.control_plane import ControlPlane

pytestmark = [pytest.mark.spec("S-01"), pytest.mark.limit(600)]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "x:1"}]}}
"""
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: cm, labels: {app: web}}
data: {a: '1'}
"""
OTHER = CONFIG_MAP.replace("name: cm", "name: other")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: x}]}
"""
EVENT = """
apiVersion: v1
kind: Event
metadata: {name: e}
involvedObject: {kind: Pod, name: p, namespace: odd, apiVersion: v1}
reason: Odd
message: happened
type: Warning
count: 3
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
"""
ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r}
rules: [{apiGroups: [''], resources: [pods], verbs: [list]}]
"""
PRUNE = "apply -f - --prune --prune-allowlist=core/v1/ConfigMap"
Command = str | tuple[str, str]
"""Its arguments, and what it reads."""

GROUPS: dict[str, list[Command]] = {
    "diff, prune, replace": [
        ("diff -f -", DEPLOYMENT),
        ("apply -f -", DEPLOYMENT),
        ("diff -f -", DEPLOYMENT.replace("replicas: 2", "replicas: 3")),
        ("diff --server-side -f -", DEPLOYMENT.replace("x:1", "x:2")),
        ("diff -f -", DEPLOYMENT.replace("replicas: 2", "replicas: two")),
        (f"{PRUNE} -l app=web", f"{CONFIG_MAP}---{OTHER}"),
        (f"{PRUNE} -l app=web", CONFIG_MAP),
        (f"{PRUNE} --all --dry-run=server", OTHER),
        ("replace -f -", CONFIG_MAP),
        ("replace --force -f -", CONFIG_MAP),
        ("replace -f -", OTHER),
        ("replace --force -f -", OTHER),
        ("apply view-last-applied deploy web", ""),
        ("apply set-last-applied -f -", CONFIG_MAP),
        ("apply --server-side --force-conflicts -f -", OTHER),
        ("apply --server-side -f - --field-manager=two", OTHER.replace("'1'", "'2'")),
        ("delete -f -", OTHER),
        "delete cm --all --wait=false",
    ],
    "wait, events": [
        ("apply -f -", DEPLOYMENT + "---" + POD + "---" + CONFIG_MAP),
        "wait --for=jsonpath='{.spec.replicas}'=2 deploy/web --timeout=60s",
        "wait --for=jsonpath='{.spec.replicas}'=3 deploy/web --timeout=3s",
        "wait --for=jsonpath='{.metadata.name}' cm/cm --timeout=60s",
        "wait --for=jsonpath='{.spec.[' deploy/web",
        "wait --for=delete cm/none --timeout=60s",
        "wait --for=create cm/none --timeout=3s",
        "wait --for=condition=Ready pod/p --timeout=3s",
        ("apply -f -", EVENT),
        "events",
        "events --for pod/p",
        "events --types=Normal",
        "events -A --types=Warning --for=pod/p",
        "events --for none/p",
        "get events --sort-by=.lastTimestamp",
    ],
    "auth": [
        "auth can-i --list",
        "auth can-i --list --as=nobody",
        "auth can-i get pods --as=nobody",
        "auth can-i get none",
        "auth can-i get pods/log",
        "auth can-i get /logs",
        "auth whoami -o yaml",
        "create role r --verb=get --resource=pods,none",
        "create role r --verb=get,frob --resource=pods",
        ("auth reconcile -f -", ROLE),
        "create rolebinding rb --role=r --user=u",
        "create token default --duration=1s",
        "create token none",
        "certificate approve none",
    ],
    "debug, cp and what needs a kubelet": [
        ("apply -f -", POD),
        "debug pod/p --image=busybox -c dbg --attach=false",
        "debug pod/p --image=busybox -c dbg --attach=false",
        "debug pod/none --image=busybox",
        "debug pod/p --image=busybox --target=none --attach=false -c d3",
        "debug pod/p --copy-to=p2 --image=busybox --attach=false -c dd",
        "debug node/none --image=busybox --attach=false",
        "cp p:/etc/x /tmp/none/x",
        "cp /etc/hostname none:/x",
        "exec p -- ls",
        "logs p",
        "logs p -c none",
        "attach p",
        "port-forward p 8080",
        "top pods",
        "top nodes",
        "describe pod p",
        "delete pod p --grace-period=0 --force",
    ],
    "rollout, scale, autoscale": [
        ("apply -f -", DEPLOYMENT),
        "rollout history deploy/web",
        "rollout undo deploy/web",
        "rollout undo deploy/web --to-revision=7",
        "rollout history deploy/web --revision=9",
        "rollout restart cm/none",
        "rollout pause deploy/web",
        "rollout pause deploy/web",
        "rollout restart deploy/web",
        "rollout resume deploy/web",
        "rollout resume deploy/web",
        "rollout status deploy/web --timeout=3s",
        "autoscale deploy web --min=1 --max=3 --cpu=50%",
        "autoscale deploy web --min=5 --max=3 --name=w2",
        "autoscale deploy web --max=3 --memory=200Mi --name=w3",
        "get hpa",
        "get hpa web -o yaml",
        "get hpa w3 -o yaml",
        "describe hpa web",
        "scale deploy/web --replicas=4 --current-replicas=9",
        "scale deploy/web --replicas=4",
        "scale cm/none --replicas=4",
        'patch deploy web --subresource=scale --type=merge -p \'{"spec":{"replicas":1}}\'',
        "get deploy web --subresource=scale -o yaml",
        "set image deploy/web c=x:9",
        "set image deploy/web none=x:9",
        "set env deploy/web A=b",
        "set resources deploy/web --limits=cpu=1,memory=1Mi",
        "expose deploy/web --port=80",
        "expose deploy/web --port=80",
        "describe deploy web",
        "delete deploy web --now",
        "delete deploy none",
    ],
}
CHANGING = {
    r"[0-9a-f]{8}-[0-9a-f-]{27}": "UID",
    r"20\d\d-\d\d-\d\dT[0-9:.]+Z|[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} 20\d\d [^\n]*": "TIME",
    r"resourceVersion: ?\"?\d+\"?": "REVISION",
    r"127\.0\.0\.1:\d+": "ADDRESS",
    r"/tmp/(LIVE|MERGED)-\d+": "FOLDER",
    r"(---|\+\+\+) FOLDER\S*\s[^\n]*": "FILE",
    r"\b\d+(s|m\d*s?|ms|us|µs|d)\b": "AGE",
    r"eyJ[\w.-]+": "TOKEN",
    r"X509SHA256=\w+": "CERTIFICATE",
    r"(?<=kube-api-access-)\w{5}|(?<=debugger-)\w{5}": "NAME",
    r"\b10\.\d+\.\d+\.\d+": "IP",
    r" +": " ",
}


def _normal(text: str) -> str:
    for pattern, word in CHANGING.items():
        text = re.sub(pattern, word, text)
    return text


@pytest.fixture(scope="module")
def tools(
    real_server: ControlPlane, embedded_server: Path, kubectl: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tool, Tool]:
    configs = (real_server.kubeconfig, embedded_server)
    real, ours = (Tool(kubectl, config, tmp_path_factory.mktemp("home"), "odd") for config in configs)
    for tool in (real, ours):
        tool("create", "namespace", "odd")
        tool("create", "serviceaccount", "default")
    return real, ours


@pytest.mark.parametrize("group", GROUPS)
def test_rare_commands_print_the_same(tools: tuple[Tool, Tool], group: str) -> None:
    differing = {}
    for command in GROUPS[group]:
        arguments, stdin = command if isinstance(command, tuple) else (command, "")
        done = [tool.run(*shlex.split(arguments), stdin=stdin) for tool in tools]
        real, ours = ((run.returncode, _normal(run.stdout), _normal(run.stderr)) for run in done)
        if ours != real:
            differing[arguments] = {"real": real, "ours": ours}
    assert not differing
