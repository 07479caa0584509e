"""The node authorizer: a kubelet may use what the pods on its node need, and no more.

Reads of secrets, config maps, claims, volumes and accounts need a pod of the node that refers to the object; its own
Node, Lease and CSINode are known by their names. Everything else is what the role `system:node` grants. What a write
may contain is for admission (`admission/node_restriction.py`). Upstream: plugin/pkg/auth/authorizer/node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from konverge.apiserver.auth.node_pods import NodePods
from konverge.apiserver.auth.rbac import Decision, MissingRole, Rbac, RoleRef
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.go.strconv import quote

if TYPE_CHECKING:
    from konverge.apiserver.storage import Store

LEASES = "kube-node-lease"
_ROLE = RoleRef("ClusterRole", "", "system:node")
_READS = ("get", "list", "watch")
_OWN = ("get", "create", "update", "patch", "delete")
_ALLOWED, _NO_OPINION = Decision(True), Decision(False)


class NodeAuthorizer:
    """Decides for kubelets. The reason of a refusal is shown if no other authorizer allows the request."""

    def __init__(self, store: Store, rbac: Rbac) -> None:
        self._store, self._rbac = store, rbac
        self._pods = NodePods(store)
        self._by_resource: dict[tuple[str, str], Callable[[str, Attributes], Decision]] = {
            ("", "secrets"): self._read,
            ("", "configmaps"): self._read,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get,
            ("resource.k8s.io", "resourceclaims"): self._get,
            ("storage.k8s.io", "volumeattachments"): self._get,
            ("", "serviceaccounts"): self._account,
            ("coordination.k8s.io", "leases"): self._lease,
            ("storage.k8s.io", "csinodes"): self._csi_node,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("", "nodes"): self._node,
            ("", "pods"): self._pod,
        }

    def decide(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: Authorize."""
        special = self._by_resource.get((attrs.group, attrs.resource)) if attrs.is_resource else None
        if special is not None:
            return special(node, attrs)
        try:
            return _ALLOWED if any(rule.allows(attrs) for rule in self._rbac.rules(_ROLE)) else _NO_OPINION
        except MissingRole:
            return _NO_OPINION

    # --- by relation

    def _related(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorize."""
        if not attrs.name:
            return _refused("No Object name found")
        if self._is_related(node, attrs):
            return _ALLOWED
        return _refused(f"no relationship found between node '{node}' and this object")

    def _is_related(self, node: str, attrs: Attributes) -> bool:
        """Upstream: hasPathFrom."""
        if attrs.resource == "pods":
            return self._pods.has_pod(node, f"{attrs.namespace}/{attrs.name}")
        if attrs.resource in ("volumeattachments", "resourceslices"):
            record = self._store.get(f"{attrs.group}/{attrs.resource}", attrs.name)
            return record is not None and (record.decode().get("spec") or {}).get("nodeName") == node
        return self._pods.uses(node, attrs.resource, attrs.namespace, attrs.name)

    def _read(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizeReadNamespacedObject."""
        if attrs.verb not in _READS:
            return _refused("can only read resources of this type")
        if attrs.subresource:
            return _refused("cannot read subresource")
        if not attrs.namespace:
            return _refused("can only read namespaced object of this type")
        return self._related(node, attrs)

    def _get(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizeGet."""
        if attrs.verb != "get":
            return _refused("can only get individual resources of this type")
        return _refused("cannot get subresource") if attrs.subresource else self._related(node, attrs)

    def _claim(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizeStatusUpdate."""
        if attrs.subresource != "status":
            return self._get(node, attrs)
        if attrs.verb not in ("update", "patch"):
            return _refused("can only get/update/patch this type")
        return self._related(node, attrs)

    def _account(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizeServiceAccount, authorizeCreateToken."""
        if attrs.verb == "get" and not attrs.subresource:
            return self._read(node, attrs)
        if attrs.verb != "create" or not attrs.name:
            return _refused("can only create tokens for individual service accounts")
        if attrs.subresource != "token":
            return _refused("can only create token subresource of serviceaccount")
        return self._related(node, attrs)

    # --- by name

    def _lease(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizeLease."""
        if attrs.verb not in _OWN:
            return _refused("can only get, create, update, patch, or delete a node lease")
        if attrs.namespace != LEASES:
            return _refused(f"can only access leases in the {quote(LEASES)} system namespace")
        own = attrs.verb == "create" or attrs.name == node
        return _ALLOWED if own else _refused("can only access node lease with the same name as the requesting node")

    def _csi_node(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizeCSINode."""
        if attrs.subresource == "status":
            return _refused("CSINode status access requires CSIVolumeHealth feature")
        if attrs.subresource:
            return _refused("cannot authorize CSINode subresources")
        if attrs.verb not in _OWN:
            return _refused("can only get, create, update, patch, or delete a CSINode")
        own = attrs.verb == "create" or attrs.name == node
        return _ALLOWED if own else _refused("can only access CSINode with the same name as the requesting node")

    def _node(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizeNode."""
        if attrs.subresource:
            return _ALLOWED if attrs.subresource == "status" and attrs.verb in ("update", "patch") else _NO_OPINION
        if attrs.verb in ("create", "update", "patch"):
            return _ALLOWED
        if attrs.verb not in _READS:
            return _NO_OPINION
        if attrs.name == node:
            return _ALLOWED
        what = f"'{attrs.name}'" if attrs.name else "all nodes"
        return _refused(f"node '{node}' cannot read {what}, only its own Node object")

    # --- by selection

    def _slice(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizeResourceSlice."""
        if attrs.subresource:
            return _refused("cannot authorize ResourceSlice subresources")
        if attrs.verb == "create":
            return _ALLOWED
        if attrs.verb in ("get", "update", "patch", "delete"):
            return self._related(node, attrs)
        if attrs.verb not in ("watch", "list", "deletecollection"):
            known = "get, watch, list, create, update, patch, delete, deletecollection"
            return _refused(f"only the following verbs are allowed for a ResourceSlice: {known}")
        why = "can only list/watch/deletecollection resourceslices with nodeName field selector"
        return _ALLOWED if ("spec.nodeName", node) in attrs.fields else _refused(why)

    def _pod(self, node: str, attrs: Attributes) -> Decision:
        """Upstream: authorizePod."""
        if attrs.subresource:
            allowed = {"status": ("update", "patch"), "eviction": ("create",)}.get(attrs.subresource, ())
            return _ALLOWED if attrs.verb in allowed else _NO_OPINION
        if attrs.verb in ("create", "delete"):
            return _ALLOWED
        if attrs.verb not in _READS:
            return _NO_OPINION
        if attrs.verb != "get" and ("spec.nodeName", node) in attrs.fields:
            return _ALLOWED
        if attrs.verb != "get" and not attrs.name:
            return _refused("can only list/watch pods with spec.nodeName field selector")
        return self._related(node, attrs)


def _refused(why: str) -> Decision:
    return Decision(False, f"node: {why}")
