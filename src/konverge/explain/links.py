"""What an object owns, uses and selects: the edges of the tree. Pure.

Owner references hold for every kind. What built-in kinds use is known; custom resources are searched for fields that
look like references (`secretName`, `configMapRef`, `{kind, name}`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from konverge.explain.model import Link, Ref
from konverge.explain.reading import Obj, at, items, label_selector, labels, mapping, number, text, walk
from konverge.explain.world import World, reference
from konverge.objects.labels import from_labels

BUILT_IN = frozenset(
    [
        "apps",
        "autoscaling",
        "batch",
        "extensions",
        "policy",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "metrics.k8s.io",
        "custom.metrics.k8s.io",
        "external.metrics.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    ]
) | {""}
"""The groups of Kubernetes itself. Others end with k8s.io as well, such as gateway.networking.k8s.io."""
CLUSTER_KINDS = frozenset(("Node", "StorageClass", "PersistentVolume", "Namespace", "IngressClass", "PriorityClass"))


def is_custom(group: str) -> bool:
    """Kinds of this group are defined by others than Kubernetes itself."""
    return group not in BUILT_IN


def links(ref: Ref, world: World) -> list[Link]:
    """Everything that stands below an object, each once: first what it owns, then what it uses."""
    obj = world.get(ref)
    if obj is None:
        return []
    edges = [Link("owns", child) for child in world.owned(ref)]
    special = _KINDS.get((ref.group, ref.kind))
    if special is not None:
        edges += special(ref, obj, world)
    elif is_custom(ref.group):
        edges += custom_references(ref, obj, world)
    unique: dict[Ref, Link] = {}
    for link in edges:
        known = unique.get(link.ref)
        if link.ref != ref and (known is None or (link.required and not known.required)):
            unique[link.ref] = link if known is None else known._replace(required=True)
    return list(unique.values())


# ------------------------------------------------------------------ pods


def pod_links(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    spec = mapping(obj, "spec")
    if text(spec, "nodeName"):
        yield Link("runs on", Ref("Node", text(spec, "nodeName")))
    yield from _claims(ref, spec)
    yield from pod_sources(ref, spec)
    if text(spec, "serviceAccountName"):
        yield Link("uses", Ref("ServiceAccount", text(spec, "serviceAccountName"), ref.namespace))


def _claims(ref: Ref, spec: Obj) -> Iterator[Link]:
    for volume in items(spec, "volumes"):
        name = text(volume, "persistentVolumeClaim", "claimName")
        if not name and isinstance(volume.get("ephemeral"), dict):
            name = f"{ref.name}-{text(volume, 'name')}"
        if name:
            yield Link("mounts", Ref("PersistentVolumeClaim", name, ref.namespace))


def pod_sources(ref: Ref, spec: Obj) -> Iterator[Link]:
    """The Secrets and ConfigMaps of a pod: in volumes, in variables, for pulling images."""

    def link(kind: str, source: Any, key: str, relation: str, *, required: bool = True) -> Iterator[Link]:
        if text(source, key):
            needed = required and at(source, "optional") is not True
            yield Link(relation, Ref(kind, text(source, key), ref.namespace), needed)

    for volume in items(spec, "volumes"):
        for part in (volume, *items(volume, "projected", "sources")):
            yield from link("Secret", part.get("secret"), "secretName" if part is volume else "name", "mounts")
            yield from link("ConfigMap", part.get("configMap"), "name", "mounts")
    for container in (*items(spec, "initContainers"), *items(spec, "containers")):
        for source in items(container, "envFrom"):
            yield from link("Secret", source.get("secretRef"), "name", "reads")
            yield from link("ConfigMap", source.get("configMapRef"), "name", "reads")
        for variable in items(container, "env"):
            yield from link("Secret", at(variable, "valueFrom", "secretKeyRef"), "name", "reads")
            yield from link("ConfigMap", at(variable, "valueFrom", "configMapKeyRef"), "name", "reads")
    for secret in items(spec, "imagePullSecrets"):  # without it, an image that everyone may pull is still pulled
        yield from link("Secret", secret, "name", "pulls with", required=False)


# ------------------------------------------------------------------ other built-in kinds


def _stateful_set(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    templates = [text(template, "metadata", "name") for template in items(obj, "spec", "volumeClaimTemplates")]
    first = number(obj, "spec", "ordinals", "start")
    for ordinal in range(first, first + min(max(number(obj, "spec", "replicas", default=1), 0), 1000)):
        if world.get(Ref("Pod", f"{ref.name}-{ordinal}", ref.namespace)) is not None:
            continue  # its claims stand below the pod
        for template in templates:
            claim = Ref("PersistentVolumeClaim", f"{template}-{ref.name}-{ordinal}", ref.namespace)
            if world.get(claim) is not None:
                yield Link("mounts", claim)


def _claim(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    if text(obj, "spec", "storageClassName"):
        # A class is only a label where a volume is bound by hand.
        unbound = text(obj, "status", "phase") != "Bound" and not text(obj, "spec", "volumeName")
        name = text(obj, "spec", "storageClassName")
        yield Link("uses", Ref("StorageClass", name, group="storage.k8s.io"), unbound)
    if text(obj, "spec", "volumeName"):
        yield Link("is bound to", Ref("PersistentVolume", text(obj, "spec", "volumeName")))


def service_pods(ref: Ref, obj: Obj, world: World) -> list[Ref]:
    selector = labels(obj, "spec", "selector")
    return world.pods(ref.namespace, from_labels(selector)) if selector else []


def _service(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    for pod in service_pods(ref, obj, world):
        yield Link("selects", pod)


def _slice(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    for endpoint in items(obj, "endpoints"):
        link = reference(endpoint.get("targetRef"), ref.namespace, "leads to")
        if link is not None:
            yield link._replace(required=False)


def _ingress(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    backends = [mapping(obj, "spec", "defaultBackend")]
    for rule in items(obj, "spec", "rules"):
        backends += [mapping(path, "backend") for path in items(rule, "http", "paths")]
    for backend in backends:
        if text(backend, "service", "name"):
            yield Link("leads to", Ref("Service", text(backend, "service", "name"), ref.namespace))
    for tls in items(obj, "spec", "tls"):
        if text(tls, "secretName"):
            yield Link("uses", Ref("Secret", text(tls, "secretName"), ref.namespace))
    if text(obj, "spec", "ingressClassName"):
        yield Link("uses", Ref("IngressClass", text(obj, "spec", "ingressClassName"), group="networking.k8s.io"))


def _autoscaler(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    link = reference(mapping(obj, "spec", "scaleTargetRef"), ref.namespace, "scales")
    if link is not None:
        yield link


def _budget(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    for pod in world.pods(ref.namespace, label_selector(at(obj, "spec", "selector"))):
        yield Link("protects", pod)


def _api_service(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    link = reference(mapping(obj, "spec", "service"), "", "is served by", "Service")
    if link is not None:
        yield link


def _webhooks(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    for webhook in items(obj, "webhooks"):
        link = reference(mapping(webhook, "clientConfig", "service"), "", "calls", "Service")
        if link is not None:
            yield link


def _volume(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    if text(obj, "spec", "storageClassName"):
        yield Link("uses", Ref("StorageClass", text(obj, "spec", "storageClassName"), group="storage.k8s.io"), False)


_KINDS: dict[tuple[str, str], Callable[[Ref, Obj, World], Iterator[Link]]] = {
    ("", "Pod"): pod_links,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume,
    ("", "Service"): _service,
    ("apps", "StatefulSet"): _stateful_set,
    ("discovery.k8s.io", "EndpointSlice"): _slice,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("policy", "PodDisruptionBudget"): _budget,
    ("apiregistration.k8s.io", "APIService"): _api_service,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
}


# ------------------------------------------------------------------ custom resources

_NAMED = (
    (re.compile(r"(?i).*secret(name|ref|keyref)?"), "Secret", ""),
    (re.compile(r"(?i).*config-?map(name|ref|keyref)?"), "ConfigMap", ""),
    (re.compile(r"(?i).*(?:claim|pvc|persistentvolumeclaim)(name|ref)"), "PersistentVolumeClaim", ""),
    (re.compile(r"(?i).*serviceaccount(name|ref)?"), "ServiceAccount", ""),
    (re.compile(r"(?i).*storageclass(name|ref)?"), "StorageClass", "storage.k8s.io"),
)
"""Fields by name. `secret: x` may be the secret itself; `secretName: x` and `secretRef: {name: x}` cannot."""


def custom_references(ref: Ref, obj: Obj, world: World) -> Iterator[Link]:
    """What the spec of a custom resource seems to name. Only a field that is surely a name of an existing kind counts
    as required, and only what exists is shown otherwise."""
    for key, value in walk(mapping(obj, "spec")):
        link = _by_key(key, value, ref.namespace) or (
            reference(value, ref.namespace, "refers to") if key.lower().endswith("ref") else None
        )
        if link is None:
            continue
        if link.ref.kind in CLUSTER_KINDS:
            link = link._replace(ref=link.ref._replace(namespace=""))
        if world.get(link.ref) is not None or link.required:
            yield link


def _by_key(key: str, value: Any, namespace: str) -> Link | None:
    for pattern, kind, group in _NAMED:
        match = pattern.fullmatch(key)
        if match is None:
            continue
        name = value if isinstance(value, str) else text(value, "name") or text(value, "claimName")
        if not name or len(name) > 253:
            return None
        place = text(value, "namespace") or namespace
        needed = match[1] is not None and at(value, "optional") is not True
        return Link("refers to", Ref(kind, name, place, group), needed)
    return None
