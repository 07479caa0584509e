"""What a kubelet refuses before a pod begins: sysctls, an operating system, no room, ports that are taken. Pure.

A pod that a scheduler has placed passes. One that was bound by hand may not: it ends as Failed, with the reason.
Upstream: predicateAdmitHandler.Admit (pkg/kubelet/lifecycle/predicate.go), patternAllowlist.Admit (pkg/kubelet/sysctl).
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge.kube.placement import node_matches, untolerated
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.sim.scheduler.filters import ports_taken
from konverge.sim.scheduler.state import ClusterState, NodeInfo, PodInfo, describe

Refusal = tuple[str, str]
"""Reason and message."""

SAFE_SYSCTLS = frozenset(  # upstream: safeSysctls
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_notsent_lowat",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
_OUT_OF = {
    "cpu": "OutOfcpu",
    "memory": "OutOfmemory",
    "ephemeral-storage": "OutOfephemeral-storage",
    "pods": "OutOfpods",
}


class Rooms:
    """The admitted pods of every node."""

    def __init__(self) -> None:
        self._state = ClusterState()

    def refusal(self, pod: Pod, node: Node) -> Refusal | None:
        """Why the node's kubelet does not take a pod, or None."""
        self._state.node_changed(node.metadata.name, node)
        place = self._state.nodes[node.metadata.name]
        return next(_refusals(pod, describe(pod), place), None)

    def add(self, pod: Pod) -> None:
        self._state.place(pod, pod.spec.node_name or "")

    def remove(self, pod: Pod) -> None:
        """It has ended: others may have its room."""
        self._state.drop((pod.metadata.namespace, pod.metadata.name))


def _refusals(pod: Pod, info: PodInfo, place: NodeInfo) -> Iterator[Refusal]:
    yield from _sysctls(pod)
    if pod.spec.os is not None and pod.spec.os.name != "linux":
        yield "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
    yield from _lacking(info, place)
    if not node_matches(pod.spec, place.node):
        yield _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if info.ports and ports_taken(info, place):
        yield _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    if untolerated(pod.spec, place.node.spec.taints, ("NoExecute",)) is not None:
        yield _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")


def _predicate(name: str, why: str) -> Refusal:
    return name, f"Predicate {name} failed: {why}"


def _sysctls(pod: Pod) -> Iterator[Refusal]:
    context = pod.spec.security_context
    for sysctl in context.sysctls if context is not None else ():
        name = sysctl.name.replace("/", ".")  # upstream: NormalizeName
        shared = "ipc" if name.startswith("kernel.shm") else "network"
        if name not in SAFE_SYSCTLS:
            yield "SysctlForbidden", f'forbidden sysctl: "{name}" not allowlisted'
        elif pod.spec.host_ipc if shared == "ipc" else pod.spec.host_network:
            yield "SysctlForbidden", f'forbidden sysctl: "{name}" not allowed with host {shared} enabled'


def _lacking(info: PodInfo, place: NodeInfo) -> Iterator[Refusal]:
    """In the order in which the scheduler's resource filter looks. Upstream: fitsRequest."""
    if not place.offers:
        return  # a node that does not say what it has
    for name in ("pods", "cpu", "memory", "ephemeral-storage", *sorted(info.requests.keys() - _OUT_OF.keys())):
        requested, used, capacity = info.requests.get(name, 0), place.used[name], place.offers.get(name, 0)
        if not requested or used + requested <= capacity or (name not in _OUT_OF and name not in place.offers):
            continue
        unit = 1 if name == "cpu" else 1000
        amounts = f"requested: {requested // unit}, used: {used // unit}, capacity: {capacity // unit}"
        yield _OUT_OF.get(name, f"OutOf{name}"), f"Node didn't have enough resource: {name}, {amounts}"
