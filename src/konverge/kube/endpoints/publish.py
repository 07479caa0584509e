"""From endpoints to the EndpointSlices of a Service (or of user-made Endpoints), with the fewest writes.

No slice grows over its size. Slices that must change anyway are filled first; what is left goes into one untouched
slice if that has room for all of it, else into new ones. So one pod that comes or goes is one write, whatever the size
of the Service.

Upstream: reconcileByPortMapping and finalize (k8s.io/endpointslice/reconciler.go).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.client import NotFound, merge_between
from konverge.kube.endpoints.port_order import slice_ports
from konverge.kube.pod_control import creating
from konverge.objects.kinds.core_v1 import Pod, Service
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointPort, EndpointSlice
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Request, set_controller_reference

ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"

PortsKey = tuple[tuple[str, int | None, str | None, str | None], ...]
Content = tuple[list[EndpointPort], list[Endpoint]]
Identity = tuple[tuple[str, ...], str, str, str]

SIZE = 100
"""Endpoints in one slice. Upstream: the default of MaxEndpointsPerSlice."""


class Groups(msgspec.Struct):
    """The endpoints of one address type, grouped by the ports that they offer."""

    family: str
    ports: dict[PortsKey, list[EndpointPort]] = msgspec.field(default_factory=dict)
    endpoints: dict[PortsKey, list[Endpoint]] = msgspec.field(default_factory=dict)

    def open(self, ports: Iterable[EndpointPort]) -> list[Endpoint]:
        """The endpoints with these ports, to which the caller adds."""
        ordered = slice_ports(ports)
        key = _key(ordered)
        self.ports.setdefault(key, ordered)
        return self.endpoints.setdefault(key, [])


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What all slices of one owner have in common."""

    labels: dict[str, str]
    annotations: dict[str, str] | None = None
    """All annotations that slices should have; None leaves those they have."""
    trigger: str | None = None
    """The time of the change, written as an annotation."""
    placeholder: bool = True
    """Whether there is an empty slice when there is no endpoint at all."""


class Plan(msgspec.Struct):
    created: list[Content] = msgspec.field(default_factory=list)
    updated: dict[str, Content] = msgspec.field(default_factory=dict)
    deleted: list[str] = msgspec.field(default_factory=list)


def plan(existing: list[EndpointSlice], groups: Groups, *, placeholder: bool) -> Plan:
    """The slices of one address type to create, update and delete."""
    result = Plan()
    present: dict[PortsKey, dict[str, list[Endpoint]]] = {}
    for slice_ in existing:
        present.setdefault(_key(slice_ports(slice_.ports)), {})[slice_.metadata.name] = slice_.endpoints
    for key, endpoints in groups.endpoints.items():
        arrangement = arrange(present.pop(key, {}), endpoints)
        for name, kept in arrangement.changed.items():
            if kept:
                result.updated[name] = (groups.ports[key], kept)
            else:
                result.deleted.append(name)
        result.created += [(groups.ports[key], content) for content in arrangement.created]
    result.deleted += [name for unwanted in present.values() for name in unwanted]
    if placeholder and not result.created and len(result.deleted) == len(existing):
        result.created.append(([], []))
    while result.created and result.deleted:  # a slice that would be deleted is updated instead
        result.updated[result.deleted.pop(0)] = result.created.pop()
    return result


def _key(ports: Iterable[EndpointPort]) -> PortsKey:
    return tuple((port.name or "", port.port, port.protocol, port.app_protocol) for port in ports)


# ------------------------------------------------------------------ endpoints over slices


def identity(endpoint: Endpoint) -> Identity:
    """What makes an endpoint the same one while its conditions change."""
    target = endpoint.target_ref
    place = ((target.namespace or "") if target else "", (target.name or "") if target else "")
    return tuple(sorted(endpoint.addresses)), endpoint.hostname or "", *place


class Arrangement(msgspec.Struct):
    """The changes of the slices of one group of ports."""

    changed: dict[str, list[Endpoint]] = msgspec.field(default_factory=dict)
    """The new content of slices by name; an empty one is deleted."""
    created: list[list[Endpoint]] = msgspec.field(default_factory=list)
    """New slices."""


def arrange(existing: dict[str, list[Endpoint]], desired: Iterable[Endpoint], size: int = SIZE) -> Arrangement:
    """Distribute the desired endpoints, given the slices of the same ports and address type."""
    rest = {identity(endpoint): endpoint for endpoint in desired}
    plan, untouched = Arrangement(), dict[str, list[Endpoint]]()
    for name, present in existing.items():
        kept = [match for endpoint in present if (match := rest.pop(identity(endpoint), None)) is not None]
        (untouched if kept == present and present else plan.changed)[name] = kept
    left = list(rest.values())
    for name in sorted(plan.changed, key=lambda name: -len(plan.changed[name])):
        if plan.changed[name]:
            left = _fill(plan.changed[name], left, size)
    if left:
        fitting = [name for name, kept in untouched.items() if len(kept) + len(left) <= size]
        if fitting:
            name = max(fitting, key=lambda name: len(untouched[name]))
            plan.changed[name] = [*untouched[name], *left]
        else:
            plan.created = [left[start : start + size] for start in range(0, len(left), size)]
    return plan


def _fill(kept: list[Endpoint], left: list[Endpoint], size: int) -> list[Endpoint]:
    room = max(0, size - len(kept))
    kept += left[:room]
    return left[room:]


# ------------------------------------------------------------------ writing


async def publish(ctx: Context[Any], existing: list[EndpointSlice], groups: Groups, form: Form) -> None:
    """Create, update and delete the slices of one address type."""
    steps = plan(existing, groups, placeholder=form.placeholder)
    if not ctx.deleting:  # else the garbage collector would delete what we create
        for content in steps.created:
            await _create(ctx, groups.family, content, form)
    for slice_ in existing:
        if slice_.metadata.name in steps.deleted:
            await delete(ctx, slice_)
        else:
            await _update(ctx, slice_, steps.updated.get(slice_.metadata.name, (slice_.ports, slice_.endpoints)), form)


async def _create(ctx: Context[Any], family: str, content: Content, form: Form) -> None:
    owner = ctx.obj.metadata
    meta = ObjectMeta(generate_name=f"{owner.name}-", namespace=owner.namespace, labels=dict(form.labels))
    meta.annotations = _annotations(form.annotations or {}, form)
    desired = EndpointSlice(metadata=meta, address_type=family, ports=content[0], endpoints=content[1])
    set_controller_reference(ctx.obj, desired)
    with creating():
        await ctx.client.create(desired)


async def _update(ctx: Context[Any], observed: EndpointSlice, content: Content, form: Form) -> None:
    meta = msgspec.structs.replace(observed.metadata, labels=form.labels, owner_references=[])
    if form.annotations is not None:
        meta.annotations = form.annotations
    desired = msgspec.structs.replace(observed, metadata=meta, ports=content[0], endpoints=content[1])
    set_controller_reference(ctx.obj, desired)
    if not merge_between(observed, desired).body:
        return
    meta.annotations = _annotations(meta.annotations, form)
    await ctx.client.patch(EndpointSlice, meta.name, merge_between(observed, desired), meta.namespace)


async def delete(ctx: Context[Any], slice_: EndpointSlice) -> None:
    with contextlib.suppress(NotFound):
        await ctx.client.delete(EndpointSlice, slice_.metadata.name, slice_.metadata.namespace)


def _annotations(present: dict[str, str], form: Form) -> dict[str, str]:
    others = {name: value for name, value in present.items() if name != ANNOTATION}
    return {**others, ANNOTATION: form.trigger} if form.trigger else others


# ------------------------------------------------------------------ times of changes


class Triggers:
    """When the change happened that an Endpoints or a slice shows: clients measure their latency from there.

    That is the oldest change since the last reconcile: of a pod's readiness, or of the Service's creation. Times are
    texts of one form, so they sort. Upstream: TriggerTimeTracker (k8s.io/endpointslice/util/trigger_time_tracker.go).
    """

    def __init__(self) -> None:
        self._known: dict[Request, dict[str, str]] = {}

    def changed(self, service: Service, pods: list[Pod]) -> str | None:
        """The oldest change that no earlier reconcile has seen; the Service's creation at the first one."""
        request = Request(service.metadata.namespace, service.metadata.name)
        present = {pod.metadata.name: time for pod in pods if (time := _ready_changed(pod))}
        before = self._known.get(request)
        self._known[request] = present
        if before is None:
            return service.metadata.creation_timestamp
        return min((time for name, time in present.items() if time > before.get(name, "")), default=None)

    def forget(self, request: Request) -> None:
        self._known.pop(request, None)


def _ready_changed(pod: Pod) -> str | None:
    return next((c.last_transition_time for c in pod.status.conditions if c.type == "Ready"), None)
