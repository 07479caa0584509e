"""The node authorizer: a kubelet may use what the pods on its node need, and no more.

Reads of secrets, config maps, claims, volumes and accounts need a pod of the node that refers to the object; its own
Node, Lease and CSINode are known by their names. Everything else is what the role `system:node` says. What a write may
contain is for admission (`admission/node_restriction.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from konverge.apiserver.auth.node_pods import NodePods
from konverge.apiserver.auth.rbac import Decision, MissingRole, Rbac, RoleRef
from konverge.apiserver.auth.rules import Ask
from konverge.apiserver.go.strconv import quote

if TYPE_CHECKING:
    from konverge.apiserver.storage import Store

LEASES = "kube-node-lease"
_ROLE = RoleRef("ClusterRole", "", "system:node")
_READS = ("get", "list", "watch")
_OWN = ("get", "create", "update", "patch", "delete")
_ALLOWED, _SILENT = Decision(True), Decision(False)


class NodeAuthorizer:
    """Decides for kubelets; a refusal's reason is said where nobody else allows it."""

    def __init__(self, store: Store, rbac: Rbac) -> None:
        self._store, self._rbac = store, rbac
        self._pods = NodePods(store)
        self._by_resource: dict[tuple[str, str], Callable[[str, Ask], Decision]] = {
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

    def decide(self, node: str, ask: Ask) -> Decision:
        special = self._by_resource.get((ask.group, ask.resource)) if ask.is_resource else None
        if special is not None:
            return special(node, ask)
        try:
            return _ALLOWED if any(rule.allows(ask) for rule in self._rbac.rules(_ROLE)) else _SILENT
        except MissingRole:
            return _SILENT

    # --- by relation

    def _related(self, node: str, ask: Ask) -> Decision:
        if not ask.name:
            return _refused("No Object name found")
        if self._is_related(node, ask):
            return _ALLOWED
        return _refused(f"no relationship found between node '{node}' and this object")

    def _is_related(self, node: str, ask: Ask) -> bool:
        if ask.resource == "pods":
            return self._pods.has_pod(node, f"{ask.namespace}/{ask.name}")
        if ask.resource in ("volumeattachments", "resourceslices"):
            record = self._store.get(f"{ask.group}/{ask.resource}", ask.name)
            return record is not None and (record.decode().get("spec") or {}).get("nodeName") == node
        return self._pods.uses(node, ask.resource, ask.namespace, ask.name)

    def _read(self, node: str, ask: Ask) -> Decision:
        if ask.verb not in _READS:
            return _refused("can only read resources of this type")
        if ask.subresource:
            return _refused("cannot read subresource")
        if not ask.namespace:
            return _refused("can only read namespaced object of this type")
        return self._related(node, ask)

    def _get(self, node: str, ask: Ask) -> Decision:
        if ask.verb != "get":
            return _refused("can only get individual resources of this type")
        return _refused("cannot get subresource") if ask.subresource else self._related(node, ask)

    def _claim(self, node: str, ask: Ask) -> Decision:
        if ask.subresource != "status":
            return self._get(node, ask)
        if ask.verb not in ("update", "patch"):
            return _refused("can only get/update/patch this type")
        return self._related(node, ask)

    def _account(self, node: str, ask: Ask) -> Decision:
        if ask.verb == "get" and not ask.subresource:
            return self._read(node, ask)
        if ask.verb != "create" or not ask.name:
            return _refused("can only create tokens for individual service accounts")
        if ask.subresource != "token":
            return _refused("can only create token subresource of serviceaccount")
        return self._related(node, ask)

    # --- by name

    def _lease(self, node: str, ask: Ask) -> Decision:
        if ask.verb not in _OWN:
            return _refused("can only get, create, update, patch, or delete a node lease")
        if ask.namespace != LEASES:
            return _refused(f"can only access leases in the {quote(LEASES)} system namespace")
        mine = ask.verb == "create" or ask.name == node
        return _ALLOWED if mine else _refused("can only access node lease with the same name as the requesting node")

    def _csi_node(self, node: str, ask: Ask) -> Decision:
        if ask.subresource == "status":
            return _refused("CSINode status access requires CSIVolumeHealth feature")
        if ask.subresource:
            return _refused("cannot authorize CSINode subresources")
        if ask.verb not in _OWN:
            return _refused("can only get, create, update, patch, or delete a CSINode")
        mine = ask.verb == "create" or ask.name == node
        return _ALLOWED if mine else _refused("can only access CSINode with the same name as the requesting node")

    def _node(self, node: str, ask: Ask) -> Decision:
        if ask.subresource:
            return _ALLOWED if ask.subresource == "status" and ask.verb in ("update", "patch") else _SILENT
        if ask.verb in ("create", "update", "patch"):
            return _ALLOWED
        if ask.verb not in _READS:
            return _SILENT
        if ask.name == node:
            return _ALLOWED
        what = f"'{ask.name}'" if ask.name else "all nodes"
        return _refused(f"node '{node}' cannot read {what}, only its own Node object")

    # --- by selection

    def _slice(self, node: str, ask: Ask) -> Decision:
        if ask.subresource:
            return _refused("cannot authorize ResourceSlice subresources")
        if ask.verb == "create":
            return _ALLOWED
        if ask.verb in ("get", "update", "patch", "delete"):
            return self._related(node, ask)
        if ask.verb not in ("watch", "list", "deletecollection"):
            known = "get, watch, list, create, update, patch, delete, deletecollection"
            return _refused(f"only the following verbs are allowed for a ResourceSlice: {known}")
        words = "can only list/watch/deletecollection resourceslices with nodeName field selector"
        return _ALLOWED if ("spec.nodeName", node) in ask.fields else _refused(words)

    def _pod(self, node: str, ask: Ask) -> Decision:
        if ask.subresource:
            mine = {"status": ("update", "patch"), "eviction": ("create",)}.get(ask.subresource, ())
            return _ALLOWED if ask.verb in mine else _SILENT
        if ask.verb in ("create", "delete"):
            return _ALLOWED
        if ask.verb not in _READS:
            return _SILENT
        if ask.verb != "get" and ("spec.nodeName", node) in ask.fields:
            return _ALLOWED
        if ask.verb != "get" and not ask.name:
            return _refused("can only list/watch pods with spec.nodeName field selector")
        return self._related(node, ask)


def _refused(why: str) -> Decision:
    return Decision(False, f"node: {why}")
