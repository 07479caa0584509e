"""kubectl on process pods that are containers: busybox of the distribution, agnhost from Go modules as its own image.

agnhost is what Kubernetes' conformance tests run in their pods; here it says what it finds where a volume, a token and
an address should be.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.sim.processes.isolation import why_no_roots, why_not
from tests.real.embedded import LIMIT, Tool, konverge_process
from tests.sim.processes.support import marked
from tools import real_binaries, real_packages
from tools.control_plane import free_port

pytestmark = [pytest.mark.spec("S-46"), pytest.mark.limit(240)]

PAGES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: pages}
data: {index.html: "a page"}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: "hidden"}
"""
WEB = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {runAsUser: 1000, runAsGroup: 1000, runAsNonRoot: true}
      containers:
      - name: http
        image: busybox:1
        command: [sh, -c, "echo serving on $POD_IP; exec httpd -f -p $POD_IP:8080 -h /srv"]
        readinessProbe: {httpGet: {path: /index.html, port: 8080}, periodSeconds: 1}
        livenessProbe: {exec: {command: [test, -d, /srv]}, periodSeconds: 1}
        volumeMounts: [{name: pages, mountPath: /srv}, {name: data, mountPath: /data}]
      volumes: [{name: pages, configMap: {name: pages}}, {name: data, emptyDir: {}}]
"""


def busybox_root(folder: Path) -> Path:
    """A file system of nothing but busybox under all of its names."""
    program = real_packages.busybox()
    if program is None:
        pytest.skip(real_packages.advice(["busybox-static"]))
    (folder / "bin").mkdir(parents=True)
    shutil.copy(program, folder / "bin/busybox")
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in set(listed) - {"busybox"}:
        (folder / "bin" / name).symlink_to("busybox")
    return folder


def agnhost_archive(path: Path) -> Path:
    """As `docker export` would write it."""
    program = real_binaries.cache() / "agnhost"
    if not program.exists():
        pytest.skip("no agnhost: `python -m tools.real_binaries agnhost` builds it from Go modules")
    with tarfile.open(path, "w") as archive:
        archive.add(program, "agnhost")
    return path


def up_command(folder: Path) -> list[str]:
    """The arguments of a cluster whose images are in this folder. Skips where there can be none."""
    why = why_not() or why_no_roots()
    if why:
        pytest.skip(f"containers cannot have a root of their own here: {why}")
    rules = [
        {"image": "busybox:*", "root": str(busybox_root(folder / "busybox"))},
        {"image": "agnhost:*", "root": str(folder / "agnhost.tar"), "command": ["/agnhost"]},
    ]
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    options = ["--operators", "none", "--nodes", "1", "--kubeconfig", str(folder / "kubeconfig"), "--output", "json"]
    return ["up", "--processes", str(folder / "rules.yaml"), *options]


@pytest.fixture(scope="module")
def cluster(kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    folder = tmp_path_factory.mktemp("containers")
    with konverge_process(*up_command(folder)) as line:
        assert line.startswith("{")
        tool = Tool(kubectl, folder / "kubeconfig", folder)
        tool("apply", "-f", "-", stdin=PAGES)
        yield tool


@pytest.fixture(scope="module")
def agnhost(cluster: Tool) -> Tool:
    agnhost_archive(cluster.home / "agnhost.tar")
    return cluster


def pod(name: str, image: str, *args: str, container: dict[str, Any] | None = None, **spec: Any) -> str:
    main = {"name": "main", "image": image, "args": list(args), **(container or {})}
    whole = {"terminationGracePeriodSeconds": 1, "containers": [main], **spec}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole})


def ended(k: Tool, name: str, manifest: str) -> str:
    """What a pod says that runs to its end, which must be good."""
    k("apply", "-f", "-", stdin=manifest)
    k("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={LIMIT / 2:.0f}s")
    return k("logs", name)


def test_busybox_serves_pages_and_finds_others_by_their_names(cluster: Tool) -> None:
    cluster("apply", "-f", "-", stdin=WEB)
    cluster("rollout", "status", "deployment/web", f"--timeout={LIMIT / 2:.0f}s")
    assert "serving on 127." in cluster("logs", "deploy/web")
    script = "wget -q -O - http://web:8080/index.html; echo; wget -q -O - http://web.default.svc.cluster.local:8080/"
    client = pod("client", "busybox:1", container={"command": ["sh", "-c", script]}, restartPolicy="Never")
    assert ended(cluster, "client", client) == "a page\na page"


def test_exec_cp_and_terminals_are_in_the_container(cluster: Tool, tmp_path: Path) -> None:
    name = cluster("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
    assert cluster("exec", name, "--", "sh", "-c", "id -u; hostname; pwd; ls").split()[:3] == ["1000", name, "/"]
    (tmp_path / "file").write_text("there and back")
    cluster("cp", str(tmp_path / "file"), f"{name}:/data/file")
    assert cluster("exec", name, "--", "cat", "/data/file") == "there and back"
    cluster("cp", f"{name}:/data/file", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_text() == "there and back"
    refused = cluster.run("exec", name, "--", "touch", "/srv/index.html")
    assert "Read-only file system" in refused.stderr


def test_agnhost_finds_its_volumes_with_their_modes(agnhost: Tool) -> None:
    items = [{"key": "index.html", "path": "sub/index.html", "mode": 0o444}]
    mounttest = pod(
        "mounttest",
        "agnhost:2",
        "mounttest",
        "--file_content=/etc/key/key",
        "--file_mode=/etc/key/key",
        "--file_owner=/etc/key/key",
        "--file_perm=/etc/pages/sub/index.html",
        container={
            "volumeMounts": [{"name": "key", "mountPath": "/etc/key"}, {"name": "pages", "mountPath": "/etc/pages"}]
        },
        volumes=[
            {"name": "key", "secret": {"secretName": "key", "defaultMode": 0o400}},
            {"name": "pages", "configMap": {"name": "pages", "items": items}},
        ],
        securityContext={"runAsUser": 1000, "runAsGroup": 2000},
        restartPolicy="Never",
    )
    said = ended(agnhost, "mounttest", mounttest)
    assert 'content of file "/etc/key/key": hidden' in said
    assert 'mode of file "/etc/key/key": -r--------' in said
    assert 'perms of file "/etc/pages/sub/index.html": -r--r--r--' in said
    assert 'owner UID of "/etc/key/key": 1000' in said
    assert 'owner GID of "/etc/key/key": 2000' in said


def test_agnhost_reaches_the_api_server_as_any_client_in_a_cluster(agnhost: Tool) -> None:
    agnhost("apply", "-f", "-", stdin=pod("inside", "agnhost:2", "inclusterclient", "--poll-interval=1"))
    said = agnhost.until(lambda text: text.count("calling /healthz") > 1, "logs", "inside")
    assert "authz_header=" in said
    assert "status=failed" not in said
    agnhost("delete", "pod", "inside")


def test_agnhost_answers_over_http(agnhost: Tool) -> None:
    port = free_port()
    probe = {"httpGet": {"path": "/healthz", "port": port}, "periodSeconds": 1}
    args = ("netexec", f"--http-port={port}", f"--udp-port={port}", "--udp-listen-addresses=$(POD_IP)")
    agnhost("apply", "-f", "-", stdin=pod("netexec", "agnhost:2", *args, container={"readinessProbe": probe}))
    agnhost("wait", "pod/netexec", "--for=condition=Ready", f"--timeout={LIMIT / 2:.0f}s")
    address = agnhost("get", "pod", "netexec", "-o", "jsonpath={.status.podIP}")
    with urllib.request.urlopen(f"http://{address}:{port}/hostname", timeout=30) as answer:
        assert answer.read() == b"netexec"
    agnhost("delete", "pod", "netexec")


def test_nothing_is_left_of_containers_when_the_cluster_is_killed(kubectl: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "konverge.cli.main", *up_command(tmp_path)]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("{")
            k = Tool(kubectl, tmp_path / "kubeconfig", tmp_path)
            closing = "mkdir /data/closed; touch /data/closed/file; chmod 0 /data/closed; echo ready; exec sleep 100000"
            volume = {"volumes": [{"name": "data", "emptyDir": {}}]}
            mount = {"command": ["sh", "-c", closing], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
            k("apply", "-f", "-", stdin=pod("long", "busybox:1", container=mount, **volume))
            k.until(lambda text: "ready" in text, "logs", "long")
            uid = k("get", "pod", "long", "-o", "jsonpath={.metadata.uid}")
            assert marked(uid)
            assert list(temporary.glob("konverge-processes-*"))
        finally:
            process.send_signal(signal.SIGKILL)
    end = time.monotonic() + LIMIT
    while marked(uid) or list(temporary.glob("konverge-processes-*")):
        assert time.monotonic() < end, "a container outlives its cluster"
