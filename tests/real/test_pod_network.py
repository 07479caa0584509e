"""kubectl on containers in networks of their own: busybox and agnhost reach each other as in any cluster.

The images are those of `test_containers`; here all of them have `network: pod`.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.sim.podnet.network import why_no_network
from tests.real.embedded import LIMIT, Tool, konverge_process
from tests.real.test_containers import agnhost_archive, ended, pod, up_command
from tests.sim.processes.support import marked

pytestmark = [pytest.mark.spec("S-52"), pytest.mark.limit(240)]

WEB = """
apiVersion: v1
kind: ConfigMap
metadata: {name: pages}
data: {index.html: "a page"}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: peers}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 8080}]}
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
      containers:
      - name: http
        image: busybox:1
        command: [httpd, -f, -p, "8080", -h, /srv]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /index.html, port: http}, periodSeconds: 1}
        livenessProbe: {exec: {command: [wget, -q, -O, /dev/null, "http://127.0.0.1:8080/"]}, periodSeconds: 5}
        volumeMounts: [{name: pages, mountPath: /srv}]
      volumes: [{name: pages, configMap: {name: pages}}]
"""


def with_network(folder: Path, kubectl: Path) -> list[str]:
    """The arguments of a cluster whose containers have networks of their own; kubectl is an image too."""
    if why := why_no_network():
        pytest.skip(f"pods cannot have a network of their own here: {why}")
    command, rules = up_command(folder), folder / "rules.yaml"
    (folder / "kubectl").mkdir()
    shutil.copy(kubectl, folder / "kubectl" / "kubectl")
    own = {"image": "kubectl:*", "root": str(folder / "kubectl"), "command": ["/kubectl"]}
    changed = [{**rule, "network": "pod"} for rule in (*yaml.safe_load(rules.read_text()), own)]
    rules.write_text(yaml.safe_dump(changed))
    return command


@pytest.fixture(scope="module")
def cluster(kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    folder = tmp_path_factory.mktemp("network")
    with konverge_process(*with_network(folder, kubectl)) as line:
        assert line.startswith("{")
        tool = Tool(kubectl, folder / "kubeconfig", folder)
        tool("apply", "-f", "-", stdin=WEB)
        tool("rollout", "status", "deployment/web", f"--timeout={LIMIT / 2:.0f}s")
        yield tool


@pytest.fixture(scope="module")
def agnhost(cluster: Tool) -> Tool:
    agnhost_archive(cluster.home / "agnhost.tar")
    return cluster


def script(name: str, text: str) -> str:
    return pod(name, "busybox:1", container={"command": ["sh", "-c", text]}, restartPolicy="Never")


def web_addresses(k: Tool) -> list[str]:
    return k("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.podIP}").split()


def test_pods_listen_on_the_same_port_and_others_reach_them(cluster: Tool) -> None:
    addresses = web_addresses(cluster)
    assert len(set(addresses)) == 2
    fetched = "; ".join(f"wget -q -O - http://{address}:8080/index.html; echo" for address in addresses)
    refused = "wget -q -O - http://127.0.0.1:8080/ 2>&1; true"
    said = ended(cluster, "direct", script("direct", f"{fetched}; {refused}")).splitlines()
    assert said[:2] == ["a page", "a page"]
    assert "Connection refused" in said[2], "loopback is not the pod's own"


@pytest.mark.spec("S-53")
def test_services_are_reached_by_their_names_and_addresses(cluster: Tool) -> None:
    address = cluster("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    names = ("web", "web.default", "web.default.svc.cluster.local", address, "$WEB_SERVICE_HOST:$WEB_SERVICE_PORT")
    text = "; ".join(f"wget -q -O - http://{name}/index.html; echo" for name in names)
    assert ended(cluster, "named", script("named", text)).splitlines() == ["a page"] * len(names)
    said = ended(cluster, "peers", script("peers", "nslookup peers.default.svc.cluster.local"))
    assert all(f"Address: {address}" in said for address in web_addresses(cluster))
    missing = script("missing", "wget -q -O - http://nobody/ 2>&1; wget -q -O - http://10.96.200.200/ 2>&1; true")
    said = ended(cluster, "missing", missing)
    assert "bad address" in said
    assert "Connection refused" in said


def test_the_api_server_reaches_them(cluster: Tool) -> None:
    name = cluster("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
    prefix = "/api/v1/namespaces/default"
    assert cluster("get", "--raw", f"{prefix}/pods/{name}:8080/proxy/index.html") == "a page"
    assert cluster("get", "--raw", f"{prefix}/services/web:80/proxy/index.html") == "a page"
    assert "inet addr" in cluster("exec", name, "--", "ifconfig", "eth0")
    command = [str(cluster.program), "--kubeconfig", str(cluster.kubeconfig), "port-forward", f"pod/{name}", ":8080"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
        try:
            assert forwarding.stdout is not None
            port = int(forwarding.stdout.readline().split("127.0.0.1:")[1].split()[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/index.html", timeout=30) as answer:
                assert answer.read() == b"a page"
        finally:
            forwarding.terminate()


def test_containers_of_one_pod_share_their_loopback(cluster: Tool) -> None:
    command = ["httpd", "-f", "-p", "127.0.0.1:8080", "-h", "/bin"]
    server = {"name": "serving", "image": "busybox:1", "command": command, "restartPolicy": "Always"}
    asks = {"command": ["sh", "-c", "until wget -q -O /dev/null http://127.0.0.1:8080/sh; do :; done; echo reached"]}
    both = pod("both", "busybox:1", container=asks, restartPolicy="Never", initContainers=[server])
    assert ended(cluster, "both", both).splitlines()[-1].endswith("reached")


def on_the_host(name: str, text: str) -> str:
    manifest = yaml.safe_load(script(name, text))
    manifest["spec"]["hostNetwork"] = True
    return yaml.safe_dump(manifest)


@pytest.mark.spec("S-58")
def test_who_asks_for_the_nodes_network_has_it_and_reaches_pods(cluster: Tool) -> None:
    fetched = "; ".join(f"wget -q -O - http://{address}:8080/index.html; echo" for address in web_addresses(cluster))
    said = ended(cluster, "host", on_the_host("host", f"grep -c $POD_IP /proc/net/fib_trie; {fetched}"))
    found, *pages = said.splitlines()
    assert int(found) > 0
    assert pages == ["a page", "a page"]
    node = cluster("get", "pod", "host", "-o", "jsonpath={.status.hostIP} {.status.podIP}").split()
    assert node[0] == node[1]


FETCH = "until wget -q -O - http://{}:{}/index.html 2>/dev/null; do :; done; echo"


@pytest.mark.spec("S-58")
def test_node_ports_are_reached_on_the_node(cluster: Tool) -> None:
    cluster("expose", "deployment/web", "--name=outside", "--type=NodePort", "--port=8080")
    port = cluster("get", "service", "outside", "-o", "jsonpath={.spec.ports[0].nodePort}")
    [node, _] = cluster("get", "nodes", "-o", "jsonpath={.items[*].status.addresses[*].address}").split()
    assert ended(cluster, "ports", script("ports", FETCH.format(node, port))) == "a page"
    assert ended(cluster, "local-port", on_the_host("local-port", FETCH.format("127.0.0.1", port))) == "a page"
    cluster("delete", "service", "outside")
    refused = f"until wget -O - http://{node}:{port}/ 2>&1 | grep refused; do :; done"
    assert "refused" in ended(cluster, "no-port", script("no-port", refused))


@pytest.mark.spec("S-58")
def test_a_port_of_the_node_leads_to_its_pod(cluster: Tool) -> None:
    server: dict[str, Any] = {
        "command": ["httpd", "-f", "-p", "8080", "-h", "/bin"],
        "ports": [{"containerPort": 8080, "hostPort": 8081}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    cluster("apply", "-f", "-", stdin=pod("hosted", "busybox:1", container=server))
    cluster("wait", "pod/hosted", "--for=condition=Ready", f"--timeout={LIMIT / 2:.0f}s")
    node = cluster("get", "pod", "hosted", "-o", "jsonpath={.status.hostIP}")
    fetch = f"wget -q -O /dev/null http://{node}:8081/sh && echo fetched"
    assert ended(cluster, "fetches", script("fetches", fetch)) == "fetched"
    cluster("delete", "pod", "hosted")
    refused = script("refused", f"until wget -O /dev/null http://{node}:8081/sh 2>&1 | grep refused; do :; done")
    assert "refused" in ended(cluster, "refused", refused)


@pytest.mark.spec("S-53")
def test_kubectl_in_a_pod_is_its_service_account(cluster: Tool) -> None:
    asks = ("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    said = ended(cluster, "whoami", pod("whoami", "kubectl:1", *asks, restartPolicy="Never"))
    assert said == "system:serviceaccount:default:default"


@pytest.mark.spec("S-53")
def test_agnhost_reaches_the_api_server_by_its_service(agnhost: Tool) -> None:
    agnhost("apply", "-f", "-", stdin=pod("inside", "agnhost:2", "inclusterclient", "--poll-interval=1"))
    said = agnhost.until(lambda text: text.count("calling /healthz") > 1, "logs", "inside")
    assert "authz_header=" in said
    assert "status=failed" not in said
    agnhost("delete", "pod", "inside")


@pytest.mark.spec("S-53")
def test_agnhost_by_tcp_and_udp_behind_a_service(agnhost: Tool) -> None:
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}
    manifest = yaml.safe_load(pod("netexec", "agnhost:2", "netexec", container={"readinessProbe": probe}))
    manifest["metadata"]["labels"] = {"app": "netexec"}
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "udp", "port": 90, "targetPort": 8081}]
    ports[1]["protocol"] = "UDP"
    spec = {"selector": {"app": "netexec"}, "ports": ports, "sessionAffinity": "ClientIP"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "netexec"}, "spec": spec}
    agnhost("apply", "-f", "-", stdin=yaml.safe_dump_all([manifest, service]))
    agnhost("wait", "pod/netexec", "--for=condition=Ready", f"--timeout={LIMIT / 2:.0f}s")
    assert ended(agnhost, "asks", script("asks", "wget -q -O - http://netexec/hostname")) == "netexec"
    connect = ("connect", "netexec:90", "--protocol=udp", "--timeout=10s")
    ended(agnhost, "connect", pod("connect", "agnhost:2", *connect, restartPolicy="Never"))
    agnhost("delete", "pod", "netexec", "asks", "connect")


@pytest.mark.spec("S-16")
def test_agnhost_is_asked_for_its_health_by_grpc(agnhost: Tool) -> None:
    probe = {"grpc": {"port": 5000}, "periodSeconds": 1, "failureThreshold": 1}
    manifest = pod("health", "agnhost:2", "grpc-health-checking", container={"readinessProbe": probe})
    agnhost("apply", "-f", "-", stdin=manifest)
    agnhost("wait", "pod/health", "--for=condition=Ready", f"--timeout={LIMIT / 2:.0f}s")
    agnhost("get", "--raw", "/api/v1/namespaces/default/pods/health:8080/proxy/make-not-serving")
    agnhost("wait", "pod/health", "--for=condition=Ready=false", f"--timeout={LIMIT / 2:.0f}s")
    said = agnhost.until(lambda text: "NOT_SERVING" in text, "get", "events", "-o=jsonpath={.items[*].message}")
    assert 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")' in said
    agnhost("delete", "pod", "health")


@pytest.mark.spec("S-54")
def test_nothing_is_left_of_networks_when_the_cluster_is_killed(kubectl: Path, tmp_path: Path) -> None:
    before = socket.if_nameindex()
    command = [sys.executable, "-m", "konverge.cli.main", *with_network(tmp_path, kubectl)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("{")
            k = Tool(kubectl, tmp_path / "kubeconfig", tmp_path)
            k("apply", "-f", "-", stdin=pod("long", "busybox:1", container={"command": ["sleep", "100000"]}))
            k("wait", "pod/long", "--for=condition=Ready", f"--timeout={LIMIT / 2:.0f}s")
            uid = k("get", "pod", "long", "-o", "jsonpath={.metadata.uid}")
            spaces = {Path(f"/proc/{pid}/ns/net").stat().st_ino for pid in marked(uid)}
            assert spaces - {Path("/proc/self/ns/net").stat().st_ino}
            keepers = _keepers_of(process.pid)
            assert len(keepers) == 1
        finally:
            process.send_signal(signal.SIGKILL)
    end = time.monotonic() + LIMIT
    while marked(uid) or any(Path(f"/proc/{keeper}").exists() for keeper in keepers):
        assert time.monotonic() < end, "a container or a network outlives its cluster"
    assert socket.if_nameindex() == before


def _keepers_of(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task").glob("*/children")
    numbers = [int(number) for path in children for number in path.read_text().split()]
    return [number for number in numbers if b"keeper.py" in Path(f"/proc/{number}/cmdline").read_bytes()]
