"""The plugins of a few lines each: taints of new nodes, tolerations of pods, topology labels, the ingress class."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.apiserver.admission.plugin import Kind, Mutating, Step, spec_of
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS = 300
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_OLD_CLASS = "kubernetes.io/ingress.class"


class TaintNodesByCondition(Mutating):
    """No pod goes to a new node before it has said that it is ready."""

    def admit(self, kind: Kind) -> Step | None:
        return _taint if kind.writes("", "nodes", "CREATE") else None


def _taint(request: AdmissionRequest) -> None:
    assert request.obj is not None
    spec = spec_of(request.obj)
    taints = spec.get("taints") or []
    if all((taint.get("key"), taint.get("effect")) != (_NOT_READY, "NoSchedule") for taint in taints):
        spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]


class DefaultTolerationSeconds(Mutating):
    """Pods stay for five minutes on a node that does not answer."""

    def admit(self, kind: Kind) -> Step | None:
        return _tolerate if kind.writes("", "pods", "CREATE", "UPDATE") else None


def _tolerate(request: AdmissionRequest) -> None:
    assert request.obj is not None
    spec = spec_of(request.obj)
    tolerations = spec.get("tolerations") or []
    missing = [key for key in (_NOT_READY, _UNREACHABLE) if not _tolerates(tolerations, key)]
    if missing:
        spec["tolerations"] = [*tolerations, *map(_toleration, missing)]


def _toleration(key: str) -> Obj:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}


def _tolerates(tolerations: Iterable[Obj], key: str) -> bool:
    return any(
        (toleration.get("key") or key) == key and (toleration.get("effect") or "NoExecute") == "NoExecute"
        for toleration in tolerations
    )


class PodTopologyLabels(Mutating):
    """A pod carries the zone and the region of its node."""

    def admit(self, kind: Kind) -> Step | None:
        if kind.writes("", "pods", "CREATE"):
            return _label_pod
        binding = (kind.group, kind.plural, kind.subresource, kind.operation) == ("", "pods", "binding", "CREATE")
        return _label_binding if binding else None


def _label_pod(request: AdmissionRequest) -> None:
    assert request.obj is not None
    _copy_labels(request, request.obj["spec"].get("nodeName"))


def _label_binding(request: AdmissionRequest) -> None:
    assert request.obj is not None
    target = request.obj.get("target") or {}
    if target.get("kind") == "Node":
        _copy_labels(request, target.get("name"))


def _copy_labels(request: AdmissionRequest, node_name: str | None) -> None:
    assert request.obj is not None
    node = request.call.lookup("", "nodes", "", node_name) if node_name else None
    if node is None:
        return
    labels = node["metadata"].get("labels") or {}
    found = {label: labels[label] for label in _TOPOLOGY_LABELS if label in labels}
    if found:
        metadata = request.obj["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **found}


class DefaultIngressClass(Mutating):
    def admit(self, kind: Kind) -> Step | None:
        return _set_ingress_class if kind.writes("networking.k8s.io", "ingresses", "CREATE") else None


def _set_ingress_class(request: AdmissionRequest) -> None:
    assert request.obj is not None
    spec = spec_of(request.obj)
    annotations = request.obj["metadata"].get("annotations") or {}
    if spec.get("ingressClassName") is None and _OLD_CLASS not in annotations:
        found = newest_default(request.call.scan("networking.k8s.io", "ingressclasses"), (_DEFAULT_CLASS,))
        if found:
            spec["ingressClassName"] = found


def newest_default(classes: Iterable[Obj], annotations: Iterable[str]) -> str:
    """The class that is marked as the default; of several, the newest, and among those the first by name."""
    marked = [
        found["metadata"]
        for found in classes
        if any((found["metadata"].get("annotations") or {}).get(name) == "true" for name in annotations)
    ]
    newest = max((metadata["creationTimestamp"] for metadata in marked), default="")
    return min((str(m["name"]) for m in marked if m["creationTimestamp"] == newest), default="")
