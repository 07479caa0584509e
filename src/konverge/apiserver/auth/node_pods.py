"""How a node is related to other objects: through the pods that are bound to it.

The pods of every node are indexed with what they refer to, and the index follows the store. It is built when the first
kubelet asks: most servers never meet one. Upstream: plugin/pkg/auth/authorizer/node/graph.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from konverge.apiserver.storage import Record
from konverge.apiserver.storage.records import Event
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.storage import Store

Reference = tuple[str, str]
"""(plural, name): something in the namespace of the pod."""

MIRROR = "kubernetes.io/config.mirror"
_SECRET_VOLUMES = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_VOLUME_SECRETS = (
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
    "secretRef",
)


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
    """The index."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._nodes: dict[str, dict[str, frozenset[Reference]]] | None = None
        """By node, then by the pod's key."""

    def has_pod(self, node: str, key: str) -> bool:
        return key in self._indexed().get(node, {})

    def uses(self, node: str, plural: str, namespace: str, name: str) -> bool:
        """Whether a pod of the node refers to this object, itself or (a secret, a volume) through its claims."""
        reference, prefix = (plural, name), f"{namespace}/"
        pods = self._indexed().get(node, {})
        if plural == "persistentvolumes":
            return any(volume == name for volume, _ in self._volumes(pods))
        if any(reference in used for key, used in pods.items() if key.startswith(prefix)):
            return True
        return plural == "secrets" and any((namespace, name) in secrets for _, secrets in self._volumes(pods))

    def _volumes(self, pods: dict[str, frozenset[Reference]]) -> Iterator[tuple[str, set[tuple[str, str]]]]:
        """The volumes behind the claims of pods, each with the secrets that it names."""
        for key, used in pods.items():
            namespace = key.partition("/")[0]
            for plural, claim in used:
                record = self._store.get("/persistentvolumeclaims", f"{namespace}/{claim}")
                if plural == "persistentvolumeclaims" and record is not None:
                    name = (record.decode().get("spec") or {}).get("volumeName", "")
                    volume = self._store.get("/persistentvolumes", name)
                    if volume is not None:
                        yield name, set(_secrets_of(volume.decode(), namespace))

    def _indexed(self) -> dict[str, dict[str, frozenset[Reference]]]:
        if self._nodes is None:
            self._nodes = {}
            table = self._store.table("/pods")
            for record in table.records.values():
                self._add(record)
            self._store.subscribe(table.name, self._changed)
        return self._nodes

    def _changed(self, event: Event) -> None:
        assert self._nodes is not None
        if event.old is not None:
            self._nodes.get(_node_of(event.old.decode()), {}).pop(event.key, None)
        if event.record is not None:
            self._add(event.record)

    def _add(self, record: Record) -> None:
        assert self._nodes is not None
        pod = record.decode()
        node = _node_of(pod)
        if node:
            mirror = MIRROR in (pod["metadata"].get("annotations") or {})
            used = [] if mirror else [(plural, name) for plural, name in references(pod) if name]
            self._nodes.setdefault(node, {})[record.key] = frozenset(used)


def _node_of(pod: Obj) -> str:
    return str((pod.get("spec") or {}).get("nodeName", ""))


def _secrets_of(volume: Obj, namespace: str) -> Iterator[tuple[str, str]]:
    """(namespace, name) of the secrets that a persistent volume names. Upstream: VisitPVSecretNames."""
    for source in (volume.get("spec") or {}).values():
        if not isinstance(source, dict):
            continue
        for name in _VOLUME_SECRETS:
            reference = source.get(name)
            if isinstance(reference, dict):
                yield reference.get("namespace") or namespace, reference.get("name", "")
        if "secretName" in source:
            yield source.get("secretNamespace") or namespace, source["secretName"]
