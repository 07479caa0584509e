"""The node authorizer: a kubelet may use what the pods on its node need, and no more.

Reads of secrets, config maps, claims, volumes and accounts need a pod of the node that refers to the object; its own
Node, Lease and CSINode are known by their names. Everything else is what the role `system:node` grants. What a write
may contain is for admission (`admission/node_restriction.py`). Upstream: plugin/pkg/auth/authorizer/node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from konverge.apiserver.auth.rbac import Decision, MissingRole, Rbac, RoleRef
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.storage import Record
from konverge.apiserver.storage.records import Event
from konverge.apiserver.strategy import Obj

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
            record = self._store.durable_record(f"{attrs.group}/{attrs.resource}", attrs.name)
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


# --- how a node is related to other objects: through the pods that are bound to it
# The pods of every node are indexed with what they refer to, and volumes by the claim that they name: the volume that a
# claim names is the word of its author, who may name any. The indexes follow the store. They are built when the first
# kubelet asks: most servers never meet one. Upstream: plugin/pkg/auth/authorizer/node/graph.go.

Reference = tuple[str, str]
"""(plural, name): something in the namespace of the pod."""

MIRROR = "kubernetes.io/config.mirror"
_SECRET_VOLUMES = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_VOLUME_SECRETS = ("nodeExpandSecretRef", "nodePublishSecretRef", "nodeStageSecretRef", "secretRef")
"""Those that kubelets use; the controller of a CSI driver has others."""


def references(pod: Obj) -> Iterator[Reference]:
    """All that a pod needs from the API: secrets, config maps, claims, its account. Upstream: Graph.AddPod."""
    spec = pod.get("spec") or {}
    for secret in spec.get("imagePullSecrets") or ():
        yield "secrets", secret.get("name", "")
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            yield from _of_container(container)
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume, pod["metadata"].get("name", ""))
    for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        yield "resourceclaims", status.get("resourceClaimName", "")
    for claim in spec.get("resourceClaims") or ():
        yield "resourceclaims", claim.get("resourceClaimName", "")
    yield "serviceaccounts", spec.get("serviceAccountName", "")


def _of_container(container: Obj) -> Iterator[Reference]:
    for source in container.get("envFrom") or ():
        yield "secrets", (source.get("secretRef") or {}).get("name", "")
        yield "configmaps", (source.get("configMapRef") or {}).get("name", "")
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield "secrets", (source.get("secretKeyRef") or {}).get("name", "")
        yield "configmaps", (source.get("configMapKeyRef") or {}).get("name", "")


def _of_volume(volume: Obj, pod: str) -> Iterator[Reference]:
    yield "secrets", (volume.get("secret") or {}).get("secretName", "")
    yield "secrets", (volume.get("azureFile") or {}).get("secretName", "")
    yield "secrets", ((volume.get("csi") or {}).get("nodePublishSecretRef") or {}).get("name", "")
    for name in _SECRET_VOLUMES:
        yield "secrets", ((volume.get(name) or {}).get("secretRef") or {}).get("name", "")
    yield "configmaps", (volume.get("configMap") or {}).get("name", "")
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield "secrets", (source.get("secret") or {}).get("name", "")
        yield "configmaps", (source.get("configMap") or {}).get("name", "")
    yield "persistentvolumeclaims", (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
    if volume.get("ephemeral") is not None:
        yield "persistentvolumeclaims", f"{pod}-{volume.get('name', '')}"


class NodePods:
    """What the pods of each node refer to."""

    def __init__(self, store: Store) -> None:
        self._by_node = _Index(store, "/pods", _node_of, _used)
        self._by_claim = _Index(store, "/persistentvolumes", _claim_of, _secrets_of)

    def has_pod(self, node: str, key: str) -> bool:
        return key in self._by_node.of(node)

    def uses(self, node: str, plural: str, namespace: str, name: str) -> bool:
        """Whether a pod of the node refers to this object, itself or (a secret, a volume) through its claims."""
        reference, prefix = (plural, name), f"{namespace}/"
        pods = self._by_node.of(node)
        if plural == "persistentvolumes":
            return any(name in volumes for volumes in self._volumes(pods))
        if any(reference in used for key, used in pods.items() if key.startswith(prefix)):
            return True
        secret = (namespace, name)
        return plural == "secrets" and any(
            secret in secrets for volumes in self._volumes(pods) for secrets in volumes.values()
        )

    def _volumes(self, pods: dict[str, frozenset[Reference]]) -> Iterator[dict[str, frozenset[tuple[str, str]]]]:
        """The volumes of each claim of the pods, with the secrets that they name."""
        for key, used in pods.items():
            namespace = key.partition("/")[0]
            for plural, claim in used:
                if plural == "persistentvolumeclaims":
                    yield self._by_claim.of(f"{namespace}/{claim}")


class _Index:
    """What objects of a table refer to, by what each belongs to and then by its key."""

    def __init__(
        self,
        store: Store,
        table: str,
        owner: Callable[[Obj], str],
        content: Callable[[Obj], Iterator[tuple[str, str]]],
    ) -> None:
        self._store, self._table, self._owner, self._content = store, table, owner, content
        self._entries: dict[str, dict[str, frozenset[tuple[str, str]]]] | None = None

    def of(self, owner: str) -> dict[str, frozenset[tuple[str, str]]]:
        if self._entries is None:
            self._entries = {}
            table = self._store.table(self._table)
            for record in table.at(self._store.durable):
                self._add(record)
            self._store.subscribe(table.name, self._changed)
        return self._entries.get(owner, {})

    def _changed(self, event: Event) -> None:
        assert self._entries is not None
        if event.old is not None:
            owner = self._owner(event.old.decode())
            entries = self._entries.get(owner, {})
            entries.pop(event.key, None)
            if not entries:
                self._entries.pop(owner, None)
        if event.record is not None:
            self._add(event.record)

    def _add(self, record: Record) -> None:
        assert self._entries is not None
        obj = record.decode()
        if owner := self._owner(obj):
            content = frozenset(pair for pair in self._content(obj) if pair[1])
            self._entries.setdefault(owner, {})[record.key] = content


def _node_of(pod: Obj) -> str:
    return str((pod.get("spec") or {}).get("nodeName", ""))


def _used(pod: Obj) -> Iterator[Reference]:
    """What a kubelet may read for a pod: of a mirror pod it has all, and wrote it itself."""
    if MIRROR not in (pod["metadata"].get("annotations") or {}):
        yield from references(pod)


def _claim_of(volume: Obj) -> str:
    """The key of the claim that a volume names. Upstream: Graph.AddPV."""
    claim = (volume.get("spec") or {}).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _secrets_of(volume: Obj) -> Iterator[tuple[str, str]]:
    """(namespace, name) of the secrets that a persistent volume names for kubelets. Upstream: VisitPVSecretNames."""
    namespace = _claim_of(volume).partition("/")[0]
    for source in (volume.get("spec") or {}).values():
        if not isinstance(source, dict):
            continue
        for name in _VOLUME_SECRETS:
            reference = source.get(name)
            if isinstance(reference, dict):
                yield reference.get("namespace") or namespace, reference.get("name", "")
        if "secretName" in source:
            yield source.get("secretNamespace") or namespace, source["secretName"]
