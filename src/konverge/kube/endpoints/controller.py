"""Endpoints and EndpointSlices: where the pods behind a Service are, and which of them serve.

One reconcile of a Service writes both: its pods are looked up once. Two more controllers are about Endpoints: those
whose Service is gone are deleted, and those that users made for a Service without a selector are mirrored to
slices.

Upstream: pkg/controller/endpoint, pkg/controller/endpointslice with k8s.io/endpointslice.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache import Change, IndexFunction
from konverge.cache.record import Meta, Record
from konverge.client import NotFound, merge_between
from konverge.kube import pods as podlib
from konverge.kube.endpoints import service_pods, subsets
from konverge.kube.endpoints.publish import (
    ANNOTATION,
    HEADLESS,
    MANAGED_BY,
    SERVICE_NAME,
    Form,
    Groups,
    Triggers,
    delete,
    publish,
)
from konverge.kube.endpoints.subsets import repack, with_readiness
from konverge.kube.pod_control import creating
from konverge.kube.pod_predicates import by_node, moved
from konverge.objects.kinds.core_v1 import EndpointAddress, Endpoints, Node, ObjectReference, Pod, Service
from konverge.objects.kinds.discovery_v1 import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
)
from konverge.objects.meta import Object, ObjectMeta
from konverge.runtime import Changed, Context, Controller, Reconciler, Request, Watches
from konverge.runtime.predicates import ChangePredicate, any_of, created, deleted, labels_changed

SLICE_CONTROLLER = "endpointslice-controller.k8s.io"
ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_CONTROLLER = "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
ZONE = "topology.kubernetes.io/zone"
CLOSE = ("PreferClose", "PreferSameZone", "PreferSameNode")

_RESERVED = {SERVICE_NAME, MANAGED_BY, HEADLESS}


class ServiceReconciler(Reconciler[Service]):
    def __init__(self, triggers: Triggers) -> None:
        self._triggers = triggers

    async def reconcile(self, ctx: Context[Service]) -> None:
        service = ctx.obj
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return
        pods = service_pods.selected(ctx)
        trigger = self._triggers.changed(service, pods)
        await write_endpoints(ctx, pods, trigger)
        await write_slices(ctx, pods, trigger)


# ------------------------------------------------------------------ Endpoints


# upstream: Controller.syncService (pkg/controller/endpoint/endpoints_controller.go)
async def write_endpoints(ctx: Context[Service], pods: list[Pod], trigger: str | None) -> None:
    service = ctx.obj
    observed = await ctx.get(Endpoints, service.metadata.name)
    wanted = subsets.of_service(service, pods)
    truncated = subsets.truncate(wanted)
    labels = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS}
    labels |= {HEADLESS: ""} if service_pods.is_headless(service) else {}
    labels[ENDPOINTS_MANAGED_BY] = ENDPOINTS_CONTROLLER
    annotations = dict(observed.metadata.annotations) if observed else {}
    annotations.pop(OVER_CAPACITY, None)
    annotations |= {OVER_CAPACITY: "truncated"} if truncated else {}
    if observed is None:
        annotations |= {ANNOTATION: trigger} if trigger else {}
        meta = ObjectMeta(name=service.metadata.name, namespace=service.metadata.namespace, labels=labels)
        meta.annotations = annotations
        with creating():
            await ctx.client.create(Endpoints(metadata=meta, subsets=wanted))
        return
    meta = msgspec.structs.replace(observed.metadata, labels=labels, annotations=annotations)
    desired = msgspec.structs.replace(observed, metadata=meta, subsets=wanted)
    if merge_between(observed, desired).body:
        annotations.pop(ANNOTATION, None)
        annotations |= {ANNOTATION: trigger} if trigger else {}
        await ctx.client.patch(Endpoints, meta.name, merge_between(observed, desired), meta.namespace)


# upstream: checkLeftoverEndpoints
class LeftoverReconciler(Reconciler[Endpoints]):
    """Endpoints without a Service: ours are always deleted, others when their Service is deleted or at the start."""

    def __init__(self, triggers: Triggers) -> None:
        self._triggers = triggers

    async def reconcile(self, ctx: Context[Endpoints]) -> None:
        meta = ctx.obj.metadata
        if await ctx.get(Service, meta.name) is not None:
            return
        self._triggers.forget(ctx.request)
        ours = meta.labels.get(ENDPOINTS_MANAGED_BY) == ENDPOINTS_CONTROLLER
        if ours or (LEADER not in meta.annotations and any(map(_leaves_orphans, ctx.reasons))):
            with contextlib.suppress(NotFound):
                await ctx.client.delete(Endpoints, meta.name, meta.namespace, uid=meta.uid)


def _leaves_orphans(reason: object) -> bool:
    return isinstance(reason, Changed) and (reason.kind == Service.__name__ or reason.change.initial)


# ------------------------------------------------------------------ slices


# upstream: Reconciler.Reconcile (k8s.io/endpointslice/reconciler.go)
async def write_slices(ctx: Context[Service], pods: list[Pod], trigger: str | None) -> None:
    service = ctx.obj
    existing = [
        slice_ for slice_ in ctx.indexed(EndpointSlice, OF_SERVICE, str(ctx.request))
        if slice_.metadata.labels.get(MANAGED_BY) == SLICE_CONTROLLER
    ]  # fmt: skip
    families = service_pods.families(service)
    form = Form(labels=_labels(service), trigger=trigger)
    for family in families:
        groups = await _groups(ctx, family, pods)
        await publish(ctx, [slice_ for slice_ in existing if _is_ours(slice_, service, (family,))], groups, form)
    for slice_ in existing:
        if not _is_ours(slice_, service, families):
            await delete(ctx, slice_)


def _is_ours(slice_: EndpointSlice, service: Service, families: Any) -> bool:
    owned = any(owner.uid == service.metadata.uid for owner in slice_.metadata.owner_references)
    return owned and slice_.address_type in families


def _labels(service: Service) -> dict[str, str]:
    labels = {name: value for name, value in service.metadata.labels.items() if name not in _RESERVED}
    labels |= {HEADLESS: ""} if service_pods.is_headless(service) else {}
    return {**labels, SERVICE_NAME: service.metadata.name, MANAGED_BY: SLICE_CONTROLLER}


# upstream: reconcileByAddressType
async def _groups(ctx: Context[Service], family: str, pods: list[Pod]) -> Groups:
    service, groups = ctx.obj, Groups(family)
    for pod in pods:
        if not service_pods.is_reachable(pod, terminating=True):
            continue
        group = groups.open(_ports(service, pod))
        node = await ctx.get(Node, pod.spec.node_name) if pod.spec.node_name else None
        if node is None and not service.spec.publish_not_ready_addresses:
            continue  # the pod is about to be garbage collected, or its node to register
        addresses = service_pods.addresses(pod, family)
        if addresses:
            group.append(_endpoint(service, pod, node, addresses))
    return groups


def _ports(service: Service, pod: Pod) -> list[EndpointPort]:
    return [
        EndpointPort(name=port.name or "", port=number, protocol=port.protocol, app_protocol=port.app_protocol)
        for port in service.spec.ports
        if (number := service_pods.port_number(pod, port)) is not None
    ]


# upstream: podToEndpoint
def _endpoint(service: Service, pod: Pod, node: Node | None, addresses: list[str]) -> Endpoint:
    meta, serving = pod.metadata, podlib.is_ready(pod)
    terminating = meta.deletion_timestamp is not None
    ready = bool(service.spec.publish_not_ready_addresses) or (serving and not terminating)
    endpoint = Endpoint(
        addresses=addresses,
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
        hostname=service_pods.hostname(pod, service),
        node_name=pod.spec.node_name or None,
        target_ref=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
        zone=(node.metadata.labels.get(ZONE) if node else None) or None,
    )
    if ready and service.spec.traffic_distribution in CLOSE:
        endpoint.hints = _hints(endpoint, by_node=service.spec.traffic_distribution == "PreferSameNode")
    return endpoint


def _hints(endpoint: Endpoint, *, by_node: bool) -> EndpointHints | None:
    """Hints by which clients near an endpoint use it. Upstream: trafficdist.ReconcileHints."""
    hints = EndpointHints(
        for_zones=[ForZone(name=endpoint.zone)] if endpoint.zone else [],
        for_nodes=[ForNode(name=endpoint.node_name)] if by_node and endpoint.node_name else [],
    )
    return hints if hints.for_zones or hints.for_nodes else None


# ------------------------------------------------------------------ mirroring

# Endpoints that users made for a Service without a selector are mirrored to slices: most clients read only slices.
# Upstream: pkg/controller/endpointslicemirroring.

MIRRORING_CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
OF_SERVICE = "endpoints/service"
LIMIT = 1000
"""Addresses of one subset that are mirrored. Upstream: the default of MirroringMaxEndpointsPerSubset."""

_NOT_COPIED = {ANNOTATION, "kubectl.kubernetes.io/last-applied-configuration"}


class MirroringReconciler(Reconciler[Endpoints]):
    # upstream: syncEndpoints
    async def reconcile(self, ctx: Context[Endpoints]) -> None:
        existing = [
            slice_ for slice_ in ctx.indexed(EndpointSlice, OF_SERVICE, str(ctx.request))
            if slice_.metadata.labels.get(MANAGED_BY) == MIRRORING_CONTROLLER
        ]  # fmt: skip
        service = await ctx.get(Service, ctx.request.name)
        if service is None or service.spec.selector or not _wants_mirror(ctx.obj):
            for slice_ in existing:
                await delete(ctx, slice_)
            return
        form = _mirror_form(ctx.obj)
        for groups in _mirrored_groups(ctx):
            ours = [slice_ for slice_ in existing if slice_.address_type == groups.family]
            await publish(ctx, ours, groups, form)


# upstream: shouldMirror
def _wants_mirror(endpoints: Endpoints) -> bool:
    return endpoints.metadata.labels.get(SKIP) != "true" and LEADER not in endpoints.metadata.annotations


def _mirror_form(endpoints: Endpoints) -> Form:
    meta = endpoints.metadata
    return Form(
        labels={**meta.labels, SERVICE_NAME: meta.name, MANAGED_BY: MIRRORING_CONTROLLER},
        annotations={name: value for name, value in meta.annotations.items() if name not in _NOT_COPIED},
        placeholder=False,
    )


def _mirrored_groups(ctx: Context[Endpoints]) -> list[Groups]:
    groups = {"IPv4": Groups("IPv4"), "IPv6": Groups("IPv6")}
    skipped = 0
    for subset in repack(ctx.obj.subsets):
        ports = [
            EndpointPort(name=port.name or "", port=port.port, protocol=port.protocol, app_protocol=port.app_protocol)
            for port in subset.ports
        ]
        listed = with_readiness(subset)
        for address, ready in listed[:LIMIT]:
            family = "IPv6" if ipaddress.ip_address(address.ip).version == 6 else "IPv4"
            groups[family].open(ports).append(_mirrored(address, ready))
        skipped += max(0, len(listed) - LIMIT)
    if skipped:
        ctx.warning(
            "TooManyAddressesToMirror",
            f"A max of {LIMIT} addresses can be mirrored to EndpointSlices per Endpoints subset. "
            f"{skipped} addresses were skipped",
        )
    return list(groups.values())


# upstream: addressToEndpoint
def _mirrored(address: EndpointAddress, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[str(ipaddress.ip_address(address.ip))],
        conditions=EndpointConditions(ready=ready),
        hostname=address.hostname or None,
        node_name=address.node_name,
        target_ref=address.target_ref,
    )


# ------------------------------------------------------------------ declaration


def _of_slice(slice_: EndpointSlice) -> list[Request]:
    service = slice_.metadata.labels.get(SERVICE_NAME)
    return [Request(slice_.metadata.namespace, service)] if service else []


@ChangePredicate
def _node_counts(change: Change) -> bool:
    """A node was added or deleted, or its zone changed. At the start the Services are reconciled in any case."""
    return not change.initial and any_of(created, deleted, labels_changed)(change)


def by_service(record: Record, meta: Meta) -> Iterable[str]:
    service = meta.labels.get(SERVICE_NAME)
    return [f"{meta.namespace}/{service}"] if service else []


def controllers() -> list[Controller[Any]]:
    triggers = Triggers()
    slice_index: dict[type[Object], dict[str, IndexFunction]] = {EndpointSlice: {OF_SERVICE: by_service}}
    return [
        Controller(
            Service,
            ServiceReconciler(triggers),
            name="endpoints",
            watches=[
                Watches(Pod, lookup=service_pods.services_of, when=moved),
                Watches(Node, lookup=service_pods.services_on, when=_node_counts),
                Watches(Endpoints),
                Watches(EndpointSlice, requests=_of_slice),
            ],
            indexes={
                Pod: {service_pods.LABELS: service_pods.by_labels, service_pods.NODE: by_node},
                Service: {service_pods.SELECTOR: service_pods.by_selector},
                **slice_index,
            },
        ),
        Controller(
            Endpoints,
            LeftoverReconciler(triggers),
            name="endpoints-leftover",
            when=created,
            watches=[Watches(Service, when=deleted)],
        ),
        Controller(
            Endpoints,
            MirroringReconciler(),
            name="endpointslice-mirroring",
            component="endpoint-slice-mirroring-controller",
            watches=[Watches(Service), Watches(EndpointSlice, requests=_of_slice)],
            indexes=slice_index,
        ),
    ]
