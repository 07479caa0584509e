"""NodeRestriction: a kubelet writes about its own node and the pods on it only.

What kubelets may ask for at all is decided by `auth/node_authorizer.py`; here is what their writes may contain. No
other client is restricted. Upstream: plugin/pkg/admission/noderestriction.
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.apiserver import status
from konverge.apiserver.admission.plugin import Kind, Mutating, Step, refusal
from konverge.apiserver.auth.node_authorizer import LEASES, MIRROR, references
from konverge.apiserver.auth.well_known import kubelet_of
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj

_LABELS = frozenset(
    """
    kubernetes.io/hostname kubernetes.io/os kubernetes.io/arch beta.kubernetes.io/os beta.kubernetes.io/arch
    topology.kubernetes.io/zone topology.kubernetes.io/region failure-domain.beta.kubernetes.io/zone
    failure-domain.beta.kubernetes.io/region node.kubernetes.io/instance-type beta.kubernetes.io/instance-type
    """.split()  # noqa: SIM905
)
_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED = "node-restriction.kubernetes.io"
_KUBERNETES_DOMAINS = ("kubernetes.io", "k8s.io")
_SAME_NAME_ONLY = "can only access {} with the same name as the requesting node"
_VOLUME_USES = {
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
}
_SOURCE_USES = {
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


class NodeRestriction(Mutating):
    def admit(self, kind: Kind) -> Step | None:
        step = _STEPS.get((kind.group, kind.plural))
        if step is None:
            return None

        def check(request: AdmissionRequest) -> None:
            node = kubelet_of(request.user.name, request.user.groups)
            if node:
                step(request, node)

        return check


# --- pods


def _pod(request: AdmissionRequest, node: str) -> None:
    """Upstream: admitPod, admitPodEviction."""
    subresource, operation, shown = request.subresource, request.operation, quote(node)
    if subresource == "status":
        _pod_status(request, node)
    elif subresource == "eviction":
        if _node_of_pod(request, request.name) != node:
            raise refusal(request, f"node {node} can only evict pods with spec.nodeName set to itself")
    elif subresource:
        allowed = "only 'status' and 'eviction' are allowed"
        raise refusal(request, f"unexpected pod subresource {quote(subresource)}, {allowed}")
    elif operation == "CREATE":
        _mirror_pod(request, node)
    elif operation != "DELETE":
        allowed = f"node {shown} can only create and delete mirror pods"
        raise refusal(request, f"unexpected operation {quote(operation)}, {allowed}")
    elif _node_of_pod(request, request.name) != node:
        raise refusal(request, f"node {shown} can only delete pods with spec.nodeName set to itself")


def _stored(request: AdmissionRequest, kind: str, namespace: str, name: str) -> Obj:
    """A pod or a node; 404 without it."""
    obj = request.call.lookup("", f"{kind}s", namespace, name)
    if obj is None:
        raise status.not_found("", kind, name)
    return obj


def _node_of_pod(request: AdmissionRequest, name: str) -> str:
    return str(_stored(request, "pod", request.namespace, name)["spec"].get("nodeName", ""))


def _mirror_pod(request: AdmissionRequest, node: str) -> None:
    """Upstream: admitPodCreate."""
    pod, shown = request.new, quote(node)
    if MIRROR not in (pod["metadata"].get("annotations") or {}):
        raise refusal(
            request, f"pod does not have {quote(MIRROR)} annotation, node {shown} can only create mirror pods"
        )
    if (pod.get("spec") or {}).get("nodeName", "") != node:
        raise refusal(request, f"node {shown} can only create pods with spec.nodeName set to itself")
    owners = pod["metadata"].get("ownerReferences") or []
    if len(owners) > 1:
        raise refusal(request, f"node {shown} can only create pods with a single owner reference set to itself")
    if not owners or [owners[0].get(part) for part in ("apiVersion", "kind", "name")] != ["v1", "Node", node]:
        raise refusal(request, f"node {shown} can only create pods with an owner reference set to itself")
    _owner(request, owners[0], node)
    used = _used(pod)
    if used:
        raise refusal(request, f"node {shown} can not create pods that reference {used}")


def _owner(request: AdmissionRequest, owner: Obj, node: str) -> None:
    if not owner.get("controller"):
        why = f"node {quote(node)} can only create pods with a controller owner reference set to itself"
        raise refusal(request, why)
    if owner.get("blockOwnerDeletion"):
        raise refusal(request, f"node {quote(node)} must not set blockOwnerDeletion on an owner reference")
    uid = _stored(request, "node", "", node)["metadata"]["uid"]
    if owner.get("uid", "") != uid:
        raise refusal(request, f"node {node} UID mismatch: expected {owner.get('uid', '')} got {uid}")


def _used(pod: Obj) -> str:
    """What of the API a pod uses; "" if it could run without an API server."""
    if pod["spec"].get("serviceAccountName"):
        return "serviceaccounts"
    kinds = {kind for kind, name in references(pod) if name}
    for kind in ("secrets", "configmaps"):
        if kind in kinds:
            return kind
    if pod["spec"].get("resourceClaims"):
        return "resourceclaims"
    for volume in pod["spec"].get("volumes") or ():
        sources = (volume.get("projected") or {}).get("sources") or ()
        uses = [label for name, label in _VOLUME_USES.items() if volume.get(name) is not None]
        uses += [label for source in sources for name, label in _SOURCE_USES.items() if source.get(name) is not None]
        if uses:
            return uses[0]
    return ""


def _pod_status(request: AdmissionRequest, node: str) -> None:
    """Upstream: admitPodStatus."""
    if request.operation != "UPDATE":
        raise refusal(request, f"unexpected operation {quote(request.operation)}")
    new, old, shown = request.new, request.before, quote(node)
    if (old["spec"].get("nodeName") or "") != node:
        why = "can only update pod status for pods with spec.nodeName set to itself"
        raise refusal(request, f"node {shown} {why}")
    if (new["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        raise refusal(request, f"node {shown} cannot update labels through pod status")
    for name, label in (
        ("resourceClaimStatuses", "resource claim statues"),
        ("extendedResourceClaimStatus", "extended resource claim status"),
        ("nodeAllocatableResourceClaimStatuses", "node allocatable resource claim statuses"),
    ):
        if ((new.get("status") or {}).get(name) or None) != ((old.get("status") or {}).get(name) or None):
            raise refusal(request, f"node {shown} cannot update {label}")


# --- its own objects


def _node(request: AdmissionRequest, node: str) -> None:
    """Upstream: admitNode."""
    name, shown = _name_of(request), quote(node)
    if name != node:
        raise refusal(request, f"node {shown} is not allowed to modify node {quote(name)}")
    new, old = request.obj, request.old
    if new is None or request.operation not in ("CREATE", "UPDATE"):
        return
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    source = spec.get("configSource")
    if source is not None and (old is None or source != before.get("configSource")):
        creating = "create pods with a non-nil configSource"
        updating = "update configSource to a new non-nil configSource"
        raise refusal(request, f"node {shown} is not allowed to {creating if old is None else updating}")
    if old is not None:
        _require_same(request, node, spec.get("taints"), before.get("taints"), "taints")
        owners = [obj["metadata"].get("ownerReferences") for obj in (new, old)]
        _require_same(request, node, owners[0], owners[1], "ownerReferences")
    labels, old_labels = new["metadata"].get("labels") or {}, ((old or {}).get("metadata") or {}).get("labels") or {}
    changed = {key for key in labels.keys() | old_labels.keys() if labels.get(key) != old_labels.get(key)}
    wrong = ", ".join(sorted(key for key in changed if _is_restricted(key)))
    if wrong and old is None:
        raise refusal(request, f"node {shown} is not allowed to set the following labels: {wrong}")
    if wrong:
        raise refusal(request, f"is not allowed to modify labels: {wrong}")


def _require_same(request: AdmissionRequest, node: str, new: object, old: object, what: str) -> None:
    if (new or None) != (old or None):
        raise refusal(request, f"node {quote(node)} is not allowed to modify {what}")


def _is_restricted(label: str) -> bool:
    """Labels that steer pods to nodes are not the kubelet's to set. Upstream: getForbiddenLabels."""
    domain = label.partition("/")[0] if "/" in label else ""
    if _within(domain, (_RESTRICTED,)):
        return True
    return _within(domain, _KUBERNETES_DOMAINS) and label not in _LABELS and not _within(domain, _LABEL_DOMAINS)


def _within(domain: str, domains: Iterable[str]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in domains)


def _name_of(request: AdmissionRequest) -> str:
    if request.name or request.obj is None:
        return request.name
    return str(request.obj["metadata"].get("name", ""))


def _lease(request: AdmissionRequest, node: str) -> None:
    if request.namespace != LEASES:
        raise refusal(request, f"can only access leases in the {quote(LEASES)} system namespace")
    if _name_of(request) != node:
        raise refusal(request, _SAME_NAME_ONLY.format("node lease"))


def _csi_node(request: AdmissionRequest, node: str) -> None:
    if _name_of(request) != node:
        raise refusal(request, _SAME_NAME_ONLY.format("CSINode"))


def _slice(request: AdmissionRequest, node: str) -> None:
    verb, obj = ("create", request.obj) if request.operation == "CREATE" else ("delete", request.old)
    if request.operation in ("CREATE", "DELETE") and ((obj or {}).get("spec") or {}).get("nodeName") != node:
        raise refusal(request, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


# --- on behalf of pods


def _claim(request: AdmissionRequest, node: str) -> None:
    if request.subresource != "status":
        raise refusal(request, "may only update PVC status")


def _token(request: AdmissionRequest, node: str) -> None:
    """Upstream: admitServiceAccount."""
    if request.operation != "CREATE" or request.subresource != "token":
        return
    reference = (request.new.get("spec") or {}).get("boundObjectRef") or {}
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not reference.get("name"):
        raise refusal(request, "node requested token not bound to a pod")
    if not reference.get("uid"):
        raise refusal(request, "node requested token with a pod binding without a uid")
    pod = _stored(request, "pod", request.namespace, reference["name"])
    if pod["metadata"]["uid"] != reference["uid"]:
        why = "does not match the UID in record. The object might have been deleted and then recreated"
        raise refusal(request, f"the UID in the bound object reference ({reference['uid']}) {why}")
    if pod["spec"].get("nodeName") != node:
        raise refusal(request, "node requested token bound to a pod scheduled on a different node")


_STEPS = {
    ("", "pods"): _pod,
    ("", "nodes"): _node,
    ("", "persistentvolumeclaims"): _claim,
    ("", "serviceaccounts"): _token,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("resource.k8s.io", "resourceslices"): _slice,
}
