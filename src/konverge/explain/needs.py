"""Which lists explain an object of a kind. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from konverge.explain.links import is_custom
from konverge.explain.model import Ref
from konverge.explain.reading import Obj, at, label_selector, labels, text
from konverge.explain.world import World
from konverge.objects.labels import NOTHING, from_labels
from konverge.objects.resource import Resource

EVENTS = Resource("", "v1", "Event", "events")
_ADMISSION = "admissionregistration.k8s.io"
_RESOURCES = (
    Resource("", "v1", "Pod", "pods"),
    Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Resource("", "v1", "Service", "services"),
    Resource("", "v1", "LimitRange", "limitranges"),
    Resource("", "v1", "Secret", "secrets"),
    Resource("", "v1", "ConfigMap", "configmaps"),
    Resource("", "v1", "ServiceAccount", "serviceaccounts"),
    Resource("", "v1", "Node", "nodes", False),
    Resource("", "v1", "Namespace", "namespaces", False),
    Resource("", "v1", "PersistentVolume", "persistentvolumes", False),
    Resource("apps", "v1", "Deployment", "deployments"),
    Resource("apps", "v1", "ReplicaSet", "replicasets"),
    Resource("apps", "v1", "StatefulSet", "statefulsets"),
    Resource("apps", "v1", "DaemonSet", "daemonsets"),
    Resource("batch", "v1", "Job", "jobs"),
    Resource("batch", "v1", "CronJob", "cronjobs"),
    Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Resource("networking.k8s.io", "v1", "Ingress", "ingresses"),
    Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", False),
    Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
    Resource("coordination.k8s.io", "v1", "Lease", "leases"),
    Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", False),
    Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", False),
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False),
    Resource(_ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False),
    Resource(_ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False),
)
BY_KIND = {resource.kind: resource for resource in _RESOURCES}
METADATA_ONLY = frozenset(("Secret", "ConfigMap", "ServiceAccount"))
"""Kinds of which it matters whether an object is there, not what is in it."""
NOT_IN_OVERVIEWS = METADATA_ONLY | {"Lease", "EndpointSlice"}
"""Kinds that are never sick themselves, and many."""
WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")


@dataclass(frozen=True, slots=True)
class Query:
    """One list: of a namespace (or all), with selectors."""

    resource: Resource
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    @property
    def is_whole(self) -> bool:
        """It shows all objects, so that it shows as well what does not exist."""
        return not self.labels and not self.fields


def needs(ref: Ref, world: World) -> Iterator[Query]:
    """The lists that explain an object, other than those of what it names."""
    obj = world.get(ref) or {}
    yield from _events(ref)
    kind = ref.kind
    if is_custom(ref.group):
        yield from _whole(ref.namespace, "Pod", "PersistentVolumeClaim", "Service", *WORKLOADS)
    elif kind in WORKLOADS:
        yield from _of_workload(ref, obj, world)
    elif kind == "Pod":
        yield from _whole(ref.namespace, "PersistentVolumeClaim")
        if _is_unplaced(obj):
            yield from _whole("", "Node")
    elif kind == "PersistentVolumeClaim":
        yield from _whole("", "StorageClass")
        if text(obj, "metadata", "deletionTimestamp"):
            yield from _whole(ref.namespace, "Pod")
    elif kind == "Service":
        yield from _of_service(ref, obj)
    elif kind == "Ingress":
        yield from _whole(ref.namespace, "Service")
    elif kind == "PodDisruptionBudget":
        yield Query(BY_KIND["Pod"], ref.namespace, labels=_selector(obj))
        yield from _whole("", "Node")
    elif kind == "Node" and at(obj, "spec", "unschedulable") is True:
        yield Query(BY_KIND["Pod"], fields=f"spec.nodeName={ref.name}")
        yield from _whole("", "PodDisruptionBudget")
    elif kind == "Namespace" and text(obj, "metadata", "deletionTimestamp"):
        yield from _whole(ref.name, *(name for name, resource in BY_KIND.items() if resource.namespaced))
        yield from _whole("", "APIService")


def _events(ref: Ref) -> Iterator[Query]:
    if ref.namespace or is_custom(ref.group):
        yield Query(EVENTS, ref.namespace, fields="type=Warning")
    elif ref.kind == "Node":
        yield Query(EVENTS, fields=f"involvedObject.kind=Node,involvedObject.name={ref.name},type=Warning")


def _whole(namespace: str, *kinds: str) -> Iterator[Query]:
    for kind in kinds:
        yield Query(BY_KIND[kind], namespace if BY_KIND[kind].namespaced else "")


def _of_workload(ref: Ref, obj: Obj, world: World) -> Iterator[Query]:
    below = {"Deployment": ("ReplicaSet",), "CronJob": ("Job",)}.get(ref.kind, ())
    yield from _whole(ref.namespace, *below, "LimitRange")
    yield from _whole("", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    selector = _selector(obj)
    if ref.kind != "CronJob" and selector and not (ref.kind == "ReplicaSet" and world.owners(ref)):
        yield Query(BY_KIND["Pod"], ref.namespace, labels=selector)
    if ref.kind == "StatefulSet":
        yield from _whole(ref.namespace, "PersistentVolumeClaim")


def _selector(obj: Obj) -> str:
    selector = label_selector(at(obj, "spec", "selector"))
    return "" if selector == NOTHING else str(selector)


def _of_service(ref: Ref, obj: Obj) -> Iterator[Query]:
    selector = labels(obj, "spec", "selector")
    if selector:
        yield Query(BY_KIND["Pod"], ref.namespace, labels=str(from_labels(selector)))
    yield Query(BY_KIND["EndpointSlice"], ref.namespace, labels=f"kubernetes.io/service-name={ref.name}")


def _is_unplaced(obj: Obj) -> bool:
    return not text(obj, "spec", "nodeName") and text(obj, "status", "phase") in ("", "Pending")
