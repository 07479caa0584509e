"""Containers in networks of their own, as a cluster gives them; what is in such a network is tested in tests/sim/podnet
and, with programs that use it, in tests/real.
"""

from __future__ import annotations

import ipaddress
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from konverge.apiserver import certificates
from konverge.objects.kinds.core_v1 import Event, Node, Pod
from konverge.sim.cluster import Cluster
from konverge.sim.podnet import network
from konverge.sim.processes import ProcessRule, RuleError, read_rules
from konverge.sim.processes.isolation import why_no_roots, why_not
from tests.sim.conftest import SPACE
from tests.sim.podnet.support import WHY_NOT
from tests.sim.processes.image_files import small_root
from tests.sim.processes.support import is_ready, is_running, main_status, output, process_cluster, until, until_gone
from tests.sim.processes.test_added_containers import debug, has_ended
from tests.sim.processes.test_roots import box
from tests.sim.processes.test_sessions import ran
from tools import real_packages

pytestmark = pytest.mark.spec("S-52")

WHY_NO_CONTAINERS = why_not() or why_no_roots()
WHY = WHY_NO_CONTAINERS or WHY_NOT
possible = pytest.mark.skipif(bool(WHY), reason=f"containers cannot have a network of their own here: {WHY}")
containers = pytest.mark.skipif(bool(WHY_NO_CONTAINERS), reason=f"no containers here: {WHY_NO_CONTAINERS}")

INTERFACES = "cat /proc/net/dev /proc/net/fib_trie /etc/resolv.conf /etc/hosts; echo server $KUBERNETES_SERVICE_HOST"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_root(tmp_path_factory.mktemp("image"))


@asynccontextmanager
async def cluster_of(root: Path, **options: Any) -> AsyncIterator[Cluster]:
    rules = [ProcessRule(image="box:*", root=str(root), network="pod"), ProcessRule(image="plain:*", root=str(root))]
    async with process_cluster(*rules, **options) as cluster:
        yield cluster


@possible
async def test_a_pod_has_its_address_and_an_interface_of_its_own(root: Path) -> None:
    async with cluster_of(root) as cluster:
        said = "\n".join(await output(cluster, box("look", INTERFACES)))
        pod = await until(cluster.client, "look", lambda pod: pod.status.pod_ip)
    address = pod.status.pod_ip
    assert address is not None
    assert address.startswith("10.")
    assert [line.split(":")[0].strip() for line in said.splitlines() if ":" in line and "eth" in line] == ["eth0"]
    assert address in said
    assert f"nameserver {address.rpartition('.')[0]}.1" in said
    assert f"search {SPACE}.svc.cluster.local svc.cluster.local cluster.local" in said
    assert f"{address}\tlook" in said, "its own name is in its hosts file"
    assert "kubernetes" not in said, "names of others are asked for, not in the hosts file"
    assert "server 10.96.0.1" in said


@possible
async def test_commands_beside_it_are_in_its_network_and_the_next_pod_has_another(root: Path) -> None:
    async with cluster_of(root) as cluster:
        await cluster.client.create(box("web", "exec sleep 100000"))
        pod = await until(cluster.client, "web", is_running)
        assert (pod.status.pod_ip or "none").encode() in await addresses_of_web(cluster)
        await cluster.client.delete(Pod, "web", SPACE, grace_period=0)
        await until_gone(cluster.client, "web")
        await cluster.client.create(box("web", "exec sleep 100000"))
        other = await until(cluster.client, "web", is_running)
        assert other.status.pod_ip != pod.status.pod_ip
        assert (pod.status.pod_ip or "none").encode() not in await addresses_of_web(cluster)


async def addresses_of_web(cluster: Cluster) -> bytes:
    channels, _ = await ran(cluster, ["cat", "/proc/net/fib_trie"], "stdout")
    return channels[1]


@possible
@pytest.mark.parametrize("image", ["box:1", "plain:1"])
async def test_sysctls_are_set_where_they_are_the_pods_own(root: Path, image: str) -> None:
    names = ("kernel.shm_rmid_forced", "net.ipv4.tcp_fin_timeout")
    paths = [Path("/proc/sys", *name.split(".")) for name in names]
    before = [path.read_text().strip() for path in paths]
    values = [str(1 - int(before[0])), str(int(before[1]) + 7)]
    sysctls = [{"name": name, "value": value} for name, value in zip(names, values, strict=True)]
    async with cluster_of(root) as cluster:
        security = {"securityContext": {"sysctls": sysctls}}
        said = await output(cluster, box("set", f"cat {paths[0]} {paths[1]}", image=image, pod=security))
    assert said == [values[0], values[1] if image == "box:1" else before[1]]
    assert [path.read_text().strip() for path in paths] == before, "this machine's stay as they were"


@possible
async def test_this_machines_network_is_for_pods_of_other_rules(root: Path) -> None:
    look = "ls -iL /proc/self/ns/net"
    other = {"name": "other", "image": "plain:1", "command": ["sleep", "100000"], "restartPolicy": "Always"}
    async with cluster_of(root) as cluster:
        ours = Path("/proc/self/ns/net").stat().st_ino
        for name, pod in (
            ("host", box("host", look, image="plain:1", pod={"hostNetwork": True})),
            ("plain", box("plain", look, image="plain:1")),
            ("mixed", box("mixed", look, pod={"initContainers": [other]})),
        ):
            assert f"{ours} " in (await output(cluster, pod))[0], name
        for name in ("host", "plain"):
            found = await until(cluster.client, name, lambda pod: pod.status.pod_ip)
            assert (found.status.pod_ip or "").startswith("127.")


@possible
@pytest.mark.spec("S-58")
async def test_who_asks_for_the_nodes_network_shares_it_with_others_of_the_node(root: Path) -> None:
    look = "ls -iL /proc/self/ns/net; cat /proc/net/fib_trie"
    seen: dict[str, str] = {}
    async with cluster_of(root, nodes=2) as cluster:
        for name, node in (("one", "node-1"), ("two", "node-1"), ("three", "node-2")):
            pod = box(name, look, pod={"hostNetwork": True, "nodeName": node})
            said = await output(cluster, pod)
            seen[name] = said[0].split()[0]
            found = await until(cluster.client, name, lambda pod: pod.status.pod_ip)
            address = await node_address(cluster, node)
            assert found.status.pod_ip == found.status.host_ip == address
            assert f"-- {address}" in "\n".join(said)
    assert seen["one"] == seen["two"] != seen["three"]
    assert str(Path("/proc/self/ns/net").stat().st_ino) not in seen.values()


async def node_address(cluster: Cluster, name: str) -> str:
    node = await cluster.client.get(Node, name)
    return next(entry.address for entry in node.status.addresses if entry.type == "InternalIP")


@possible
async def test_an_ephemeral_container_is_in_the_network_of_its_pod_whatever_its_rule_says(root: Path) -> None:
    async with cluster_of(root) as cluster:
        await cluster.client.create(box("web", "exec sleep 100000"))
        before = await until(cluster.client, "web", is_running)
        await debug(cluster, "web", "", image="plain:1", command=["cat", "/proc/net/fib_trie"], args=[])
        pod = await until(cluster.client, "web", has_ended)
        assert pod.status.pod_ip == before.status.pod_ip
        assert f"{pod.status.pod_ip}\n" in await cluster.client.log("web", SPACE, container="debug")


@possible
async def test_pods_keep_their_addresses_when_the_cluster_comes_back(root: Path, tmp_path: Path) -> None:
    before: list[str | None] = []
    for run in range(2):
        async with cluster_of(root, data_dir=tmp_path / "data") as cluster:
            if run == 0:
                await cluster.client.create(box("first", "exec sleep 100000"))
                await until(cluster.client, "first", is_running)
                await cluster.client.create(box("web", "exec sleep 100000", pod={"restartPolicy": "Always"}))
            pod = await until(cluster.client, "web", partial(_runs_again, run))
            assert (pod.status.pod_ip or "none").encode() in await addresses_of_web(cluster)
            before.append(pod.status.pod_ip)
        assert before[0] == before[-1]
    async with process_cluster(
        ProcessRule(image="box:*", root=str(root)), data_dir=tmp_path / "data"
    ) as cluster:  # the rule has another network now
        await until(cluster.client, "web", lambda pod: (pod.status.pod_ip or "").startswith("127."))


def _runs_again(restarts: int, pod: Pod) -> bool:
    status = main_status(pod)
    return is_running(pod) and status is not None and status.restart_count == restarts


@possible
@pytest.mark.spec("S-53")
async def test_services_names_and_the_api_server_from_inside(tmp_path: Path) -> None:
    rule = ProcessRule(image="box:*", root=str(busybox_root(tmp_path / "image")), network="pod")
    async with process_cluster(rule, controllers=("endpoints",)) as cluster:
        await cluster.listen()
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
        meta = {"name": "web", "namespace": SPACE}
        await cluster.client.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
        probe = {"httpGet": {"path": "/sh", "port": 8080}, "periodSeconds": 1}
        server = box("server", "exec httpd -f -p 8080 -h /bin", readinessProbe=probe)
        server.metadata.labels = {"app": "web"}
        await cluster.client.create(server)
        await until(cluster.client, "server", is_ready)
        asked = ("http://web/sh", f"http://web.{SPACE}.svc.cluster.local/sh", "http://$WEB_SERVICE_HOST/sh")
        fetched = "; ".join(f"until wget -q -O /dev/null {url} 2>/dev/null; do :; done; echo fetched" for url in asked)
        health = "wget -q -O - http://kubernetes.default:$KUBERNETES_SERVICE_PORT/livez; echo"
        said = await output(cluster, box("client", f"{fetched}; {health}"))
    assert said == ["fetched", "fetched", "fetched", "ok"]


@pytest.mark.spec("S-53")
def test_the_api_servers_certificate_is_good_for_its_service() -> None:
    certificate = x509.load_pem_x509_certificate(certificates.make(("127.0.0.1",)).server)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ipaddress.ip_address("10.96.0.1") in names.get_values_for_type(x509.IPAddress)
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)


def busybox_root(folder: Path) -> Path:
    program = real_packages.busybox()
    if program is None:
        pytest.skip(real_packages.advice(["busybox-static"]))
    (folder / "bin").mkdir(parents=True)
    for name in ("sh", "wget", "httpd"):
        shutil.copy(program, folder / "bin" / name)
    return folder


@containers
@pytest.mark.spec("S-54")
async def test_where_it_is_refused_pods_are_on_this_machines_network_and_it_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = 'import socket, sys; socket.socket(fileno=int(sys.argv[1])).send(b\'{"error": "not here", "errno": 1}\')'
    monkeypatch.setattr(network, "KEEPER", (sys.executable, "-I", "-S", "-c", refuses))
    async with cluster_of(root) as cluster:
        seen = await output(cluster, box("look", "ls -iL /proc/self/ns/net"))
        pod = await until(cluster.client, "look", lambda pod: pod.status.pod_ip)
        events = cluster.client.watch(Event, "default", resource_version="0")
        async with aclosing(events):
            async for event in events:
                if event.object.reason == "NoPodNetwork":
                    break
        assert event.object.message == "process pods are on this machine's network: not here"
    assert f"{Path('/proc/self/ns/net').stat().st_ino} " in seen[0]
    assert (pod.status.pod_ip or "").startswith("127.")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"image": "a", "root": "/srv", "network": "bridge"}, "network is 'bridge'; it may be host, pod"),
        ({"image": "a", "command": ["true"], "network": "pod"}, "only a container with a `root`"),
    ],
)
def test_rules_that_make_no_sense(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(RuleError, match=message):
        read_rules([rule])
