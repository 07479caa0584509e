"""`metrics.k8s.io/v1beta1`, which `kubectl top` and the horizontal pod autoscaler ask: what simulated pods use.

On a cluster this is an aggregated API (metrics-server); here the embedded server serves it itself. What a container
uses is a script, as its behaviour is:

    sim.konverge.dev/cpu: 250m
    sim.konverge.dev/memory: "web: 200Mi; proxy: 20Mi"
    sim.konverge.dev/cpu: total 2

`total` is the load of all ready pods of the same controller together: with more replicas, each of them has less to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.apiserver import ApiServer, status
from konverge.apiserver.http import respond
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Call
from konverge.objects import labels, times
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.quantity import Format, Quantity, QuantityError
from konverge.objects.resource import Resource
from konverge.runtime import controller_of
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubelet.behaviour import groups
from konverge.sim.kubelet.containers import ContainerState, Mode
from konverge.sim.kubelet.machine import PodMachine
from konverge.wire.message import Response

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
ANNOTATIONS = {"cpu": "sim.konverge.dev/cpu", "memory": "sim.konverge.dev/memory"}
WINDOW = "15s"
_IDLE = {"cpu": Quantity("1m"), "memory": Quantity("16Mi")}
"""What a container without a script uses."""
_SYSTEM = {"cpu": Quantity("100m"), "memory": Quantity("512Mi")}
"""What a node uses for itself."""
_FORMATS = {"cpu": Format.DECIMAL_SI, "memory": Format.BINARY_SI}

Obj = dict[str, Any]


def plug_in(server: ApiServer, kubelet: Kubelet) -> None:
    metrics = Metrics(server, kubelet)
    for kind, plural, namespaced in (("PodMetrics", "pods", True), ("NodeMetrics", "nodes", False)):
        verbs = frozenset(("get", "list"))
        entry = {"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": sorted(verbs)}
        resource = Resource(GROUP, VERSION, kind, plural, namespaced)
        server.registry.add(Served(resource=resource, verbs=verbs, entries=[entry]))
    server.extensions.handlers[GROUP, "pods", ""] = metrics.pods
    server.extensions.handlers[GROUP, "nodes", ""] = metrics.nodes


class Metrics:
    """What runs now, and what it uses."""

    def __init__(self, server: ApiServer, kubelet: Kubelet) -> None:
        self._server = server
        self._kubelet = kubelet

    async def pods(self, call: Call) -> Response:
        machines = sorted(self._kubelet.machines.values(), key=lambda machine: _place(machine.pod))
        items = [
            item
            for machine in machines
            if call.info.namespace in ("", machine.pod.metadata.namespace) and (item := self._pod(machine)) is not None
        ]
        return _answer(call, "PodMetrics", "pods", items)

    async def nodes(self, call: Call) -> Response:
        items = [self._node(name, dict(found)) for name, found in self._nodes()]
        return _answer(call, "NodeMetrics", "nodes", items)

    def _nodes(self) -> Iterator[tuple[str, dict[str, str]]]:
        for node in self._server.objects.scan("", "nodes"):
            meta = node["metadata"]
            if meta["name"] not in self._kubelet.lost:
                yield meta["name"], meta.get("labels") or {}

    def _pod(self, machine: PodMachine) -> Obj | None:
        """None: its containers do not all run, so there is nothing to collect yet."""
        meta, states = machine.pod.metadata, _collected(machine)
        if not states or machine.pod.spec.node_name in self._kubelet.lost:
            return None
        uses = [{"name": state.name, "usage": _texts(self._usage(machine, state.name))} for state in states]
        return {**_head(meta.name, meta.labels, meta.namespace), "containers": uses}

    def _node(self, name: str, found: dict[str, str]) -> Obj:
        used = dict(_SYSTEM)
        for machine in self._kubelet.machines.values():
            if machine.pod.spec.node_name == name:
                for state in _collected(machine):
                    used = {kind: used[kind] + use for kind, use in self._usage(machine, state.name).items()}
        return {**_head(name, found), "usage": _texts(used)}

    def _usage(self, machine: PodMachine, container: str) -> dict[str, Quantity]:
        return {kind: self._used(machine, container, kind) for kind in ANNOTATIONS}

    def _used(self, machine: PodMachine, container: str, kind: str) -> Quantity:
        script = groups(machine.pod.metadata.annotations.get(ANNOTATIONS[kind], ""))
        text = script.get(container) or script.get("") or ""
        total = text.startswith("total ")
        try:
            amount = Quantity(text.removeprefix("total ").strip()) if text else _IDLE[kind]
        except QuantityError:
            return _IDLE[kind]
        if not total:
            return amount
        scale = -3 if kind == "cpu" else 0
        return Quantity.of(amount.scaled(scale) // self._sharing(machine), scale, _FORMATS[kind])

    def _sharing(self, machine: PodMachine) -> int:
        """The ready pods of its controller, itself included."""
        owner = controller_of(machine.pod)
        others = [
            other
            for other in self._kubelet.machines.values()
            if other is not machine
            and owner is not None
            and (theirs := controller_of(other.pod)) is not None
            and theirs.uid == owner.uid
            and all(state.ready for state in other.mains.values())
        ]
        return len(others) + 1


def _collected(machine: PodMachine) -> list[ContainerState]:
    """The containers of a pod whose use is known; all of them or none."""
    states = [*machine.mains.values(), *(state for state in machine.inits.values() if state.sidecar)]
    return states if machine.ending is None and all(state.mode is Mode.RUNNING for state in states) else []


def _place(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _texts(usage: dict[str, Quantity]) -> dict[str, str]:
    return {kind: str(amount) for kind, amount in usage.items()}


def _head(name: str, own: dict[str, str], namespace: str = "") -> Obj:
    meta: Obj = {"name": name, **({"namespace": namespace} if namespace else {}), "creationTimestamp": times.now()}
    return {"metadata": {**meta, **({"labels": dict(own)} if own else {})}, "timestamp": times.now(), "window": WINDOW}


def _answer(call: Call, kind: str, plural: str, items: list[Obj]) -> Response:
    """One of them or a list, by labels and by name."""
    api_version = f"{GROUP}/{VERSION}"
    respond.settle_form(call)
    if call.info.name:
        match = next((item for item in items if item["metadata"]["name"] == call.info.name), None)
        if match is None:
            raise status.not_found(GROUP, plural, call.info.name)
        return respond.answer(call, 200, {"kind": kind, "apiVersion": api_version, **match})
    try:
        selector = labels.parse((call.query.get("labelSelector") or [""])[0])
    except labels.SelectorError as error:
        raise status.bad_request(str(error)) from None
    chosen = [item for item in items if selector.matches(item["metadata"].get("labels") or {})]
    listed = {"kind": f"{kind}List", "apiVersion": api_version, "metadata": {}, "items": chosen}
    return respond.answer(call, 200, listed)
