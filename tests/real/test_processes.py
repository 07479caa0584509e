"""The real kubectl on process pods: a small Python HTTP server as the image, which is started, inspected and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.real.embedded import Tool, konverge_process
from tests.sim.processes.support import PYTHON

pytestmark = [pytest.mark.spec("S-16"), pytest.mark.limit(600)]

RULES = f"""
- image: "web:*"
  mounts: [/scratch]
  files: {json.dumps(PYTHON)}
  command: ["{sys.executable}", -u, -m, http.server, "{{port:http}}", --bind, "{{pod_ip}}", -d, "{{mount:/srv}}"]
"""
OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: pages}
data: {index.html: "first"}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 8080, targetPort: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: http
        image: web:1
        env: [{name: GREETING, value: "hi from $(POD_IP)"}]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /index.html, port: http}, periodSeconds: 1}
        volumeMounts: [{name: pages, mountPath: /srv}, {name: scratch, mountPath: /scratch}]
      volumes: [{name: pages, configMap: {name: pages}}, {name: scratch, emptyDir: {}}]
"""


@pytest.fixture(scope="module")
def cluster(kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    folder = tmp_path_factory.mktemp("processes")
    rules, kubeconfig = folder / "rules.yaml", folder / "kubeconfig"
    rules.write_text(RULES)
    up = ["up", "--processes", str(rules), "--operators", "none", "--nodes", "1", "--kubeconfig", str(kubeconfig)]
    with konverge_process(*up, "--output", "json") as line:
        assert line.startswith("{")
        tool = Tool(kubectl, kubeconfig, folder)
        tool("apply", "-f", "-", stdin=OBJECTS)
        tool("rollout", "status", "deployment/web", "--timeout=120s")
        yield tool


def pod(k: Tool) -> tuple[str, str]:
    """The name and the address of the only pod."""
    output = k("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name} {.items[0].status.podIP}")
    name, address = output.split()
    return name, address


def page(address: str, port: int = 8080, path: str = "/index.html") -> str:
    with urllib.request.urlopen(f"http://{address}:{port}{path}", timeout=60) as answer:
        return str(answer.read().decode())


@contextmanager
def beside(k: Tool, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A kubectl command that runs until the block ends."""
    environment = {**os.environ, "KUBECONFIG": str(k.kubeconfig), "HOME": str(k.home)}
    command = [str(k.program), *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_the_server_answers_on_its_pods_address(cluster: Tool) -> None:
    _, address = pod(cluster)
    assert page(address) == "first"


def test_logs_are_shown_and_followed(cluster: Tool) -> None:
    name, address = pod(cluster)
    assert "Serving HTTP on" in cluster("logs", name)
    with beside(cluster, "logs", "-f", name, "--tail=1") as following:
        assert following.stdout is not None
        assert following.stdout.readline()
        page(address, path="/index.html?followed")
        assert any("followed" in line for line in following.stdout)


def test_exec_runs_in_the_pods_environment(cluster: Tool) -> None:
    name, address = pod(cluster)
    assert cluster("exec", name, "--", "sh", "-c", "echo $GREETING") == f"hi from {address}"
    assert cluster("exec", "-i", name, "--", "cat", stdin="through") == "through"
    failed = cluster.run("exec", name, "--", "sh", "-c", "exit 3")
    assert (failed.returncode, failed.stderr.strip()) == (3, "command terminated with exit code 3")


def test_cp_copies_both_ways(cluster: Tool, tmp_path: Path) -> None:
    name, _ = pod(cluster)
    (tmp_path / "there").write_text("copied")
    cluster("cp", str(tmp_path / "there"), f"{name}:/scratch/note")
    cluster("cp", f"{name}:/scratch/note", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "copied"


def test_port_forward_reaches_pods_and_services(cluster: Tool) -> None:
    name, _ = pod(cluster)
    for target in (f"pod/{name}", "service/web"):
        with beside(cluster, "port-forward", target, ":8080", "--address", "127.0.0.1") as forwarding:
            assert forwarding.stdout is not None
            port = int(forwarding.stdout.readline().split("->")[0].rsplit(":", 1)[1])
            assert page("127.0.0.1", port) == page("127.0.0.1", port) == "first"


def test_attach_shows_the_output(cluster: Tool) -> None:
    name, _ = pod(cluster)
    with beside(cluster, "attach", name) as attached:
        assert attached.stdout is not None
        # Each readiness probe makes the server say something.
        assert any("GET" in line for line in attached.stdout)


def test_a_killed_process_is_restarted_and_counted(cluster: Tool) -> None:
    name, _ = pod(cluster)
    mark = cluster("get", "pod", name, "-o", "jsonpath={.metadata.uid}") + "/http"
    os.kill(processes(mark, "http.server")[0], signal.SIGKILL)
    cluster("wait", f"pod/{name}", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "--timeout=120s")
    cluster("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=120s")
    code = "jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}"
    assert cluster("get", "pod", name, "-o", code) == "137"
    assert "Serving HTTP on" in cluster("logs", name, "--previous")


def processes(mark: str, argument: str = "") -> list[int]:
    """The processes of a container, or those of them with this argument."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                variables, arguments = ((entry / name).read_bytes().split(b"\0") for name in ("environ", "cmdline"))
            except OSError:
                continue
            if f"KONVERGE_CONTAINER={mark}".encode() in variables and argument.encode() in (b"", *arguments):
                pids.append(int(entry.name))
    return pids


def test_a_restart_and_a_deletion_end_the_processes(cluster: Tool) -> None:
    old, _ = pod(cluster)
    cluster("rollout", "restart", "deployment/web")
    cluster("rollout", "status", "deployment/web", "--timeout=120s")
    cluster("wait", f"pod/{old}", "--for=delete", "--timeout=120s")
    new, address = pod(cluster)
    assert new != old
    assert page(address) == "first"
    uid = cluster("get", "pod", new, "-o", "jsonpath={.metadata.uid}")
    cluster("delete", "deployment", "web", "--cascade=foreground")
    cluster("wait", f"pod/{new}", "--for=delete", "--timeout=120s")
    assert processes(f"{uid}/http") == []


def test_a_simulated_pod_says_what_to_do(cluster: Tool) -> None:
    cluster("run", "plain", "--image=nginx")
    cluster("wait", "pod/plain", "--for=condition=Ready", "--timeout=120s")
    assert "--processes" in cluster.fails("exec", "plain", "--", "ls")
    assert "simulated run 1 began" in cluster("logs", "plain")
