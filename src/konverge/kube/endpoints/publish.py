"""From endpoints to the EndpointSlices of a Service (or of hand-made Endpoints), with the fewest writes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge.client import NotFound, merge_between
from konverge.kube.creation import creating
from konverge.kube.endpoints.port_order import slice_ports
from konverge.kube.endpoints.slices import arrange
from konverge.kube.endpoints.trigger_times import ANNOTATION
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointPort, EndpointSlice
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, set_controller_reference

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"

PortsKey = tuple[tuple[str, int | None, str | None, str | None], ...]
Content = tuple[list[EndpointPort], list[Endpoint]]


@dataclass(slots=True)
class Groups:
    """The endpoints of one address type, grouped by the ports that they offer."""

    family: str
    ports: dict[PortsKey, list[EndpointPort]] = field(default_factory=dict)
    endpoints: dict[PortsKey, list[Endpoint]] = field(default_factory=dict)

    def open(self, ports: Iterable[EndpointPort]) -> list[Endpoint]:
        """The group of these ports, to be added to."""
        ordered = slice_ports(ports)
        key = _key(ordered)
        self.ports.setdefault(key, ordered)
        return self.endpoints.setdefault(key, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What all slices of one owner have in common."""

    labels: dict[str, str]
    annotations: dict[str, str] | None = None
    """All the annotations that slices have; None leaves them alone."""
    trigger: str | None = None
    """The time of the change, told with each write."""
    placeholder: bool = True
    """Without any endpoint there is still one slice, and it is empty."""


@dataclass(slots=True)
class Plan:
    created: list[Content] = field(default_factory=list)
    updated: dict[str, Content] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)


def plan(existing: list[EndpointSlice], groups: Groups, *, placeholder: bool) -> Plan:
    """What becomes of the slices of one address type."""
    made = Plan()
    present: dict[PortsKey, dict[str, list[Endpoint]]] = {}
    for found in existing:
        present.setdefault(_key(slice_ports(found.ports)), {})[found.metadata.name] = found.endpoints
    for key, endpoints in groups.endpoints.items():
        arrangement = arrange(present.pop(key, {}), endpoints)
        for name, kept in arrangement.changed.items():
            if kept:
                made.updated[name] = (groups.ports[key], kept)
            else:
                made.deleted.append(name)
        made.created += [(groups.ports[key], some) for some in arrangement.made]
    made.deleted += [name for unwanted in present.values() for name in unwanted]
    if placeholder and not made.created and len(made.deleted) == len(existing):
        made.created.append(([], []))
    while made.created and made.deleted:  # a slice that would go is written anew instead
        made.updated[made.deleted.pop(0)] = made.created.pop()
    return made


def _key(ports: Iterable[EndpointPort]) -> PortsKey:
    return tuple((port.name or "", port.port, port.protocol, port.app_protocol) for port in ports)


# ------------------------------------------------------------------ writing


async def publish(ctx: Context[Any], existing: list[EndpointSlice], groups: Groups, form: Form) -> None:
    """Make the slices of one address type as they should be."""
    made = plan(existing, groups, placeholder=form.placeholder)
    if not ctx.deleting:  # else the garbage collector takes away what we would make
        for content in made.created:
            await _create(ctx, groups.family, content, form)
    for found in existing:
        if found.metadata.name in made.deleted:
            await delete(ctx, found)
        else:
            await _update(ctx, found, made.updated.get(found.metadata.name, (found.ports, found.endpoints)), form)


async def _create(ctx: Context[Any], family: str, content: Content, form: Form) -> None:
    owner = ctx.obj.metadata
    meta = ObjectMeta(generate_name=f"{owner.name}-", namespace=owner.namespace, labels=dict(form.labels))
    meta.annotations = _annotations(form.annotations or {}, form)
    wish = EndpointSlice(metadata=meta, address_type=family, ports=content[0], endpoints=content[1])
    set_controller_reference(ctx.obj, wish)
    with creating():
        await ctx.client.create(wish)


async def _update(ctx: Context[Any], found: EndpointSlice, content: Content, form: Form) -> None:
    meta = msgspec.structs.replace(found.metadata, labels=form.labels, owner_references=[])
    if form.annotations is not None:
        meta.annotations = form.annotations
    wish = msgspec.structs.replace(found, metadata=meta, ports=content[0], endpoints=content[1])
    set_controller_reference(ctx.obj, wish)
    if not merge_between(found, wish).body:
        return
    meta.annotations = _annotations(meta.annotations, form)
    await ctx.client.patch(EndpointSlice, meta.name, merge_between(found, wish), meta.namespace)


async def delete(ctx: Context[Any], found: EndpointSlice) -> None:
    with contextlib.suppress(NotFound):
        await ctx.client.delete(EndpointSlice, found.metadata.name, found.metadata.namespace)


def _annotations(present: dict[str, str], form: Form) -> dict[str, str]:
    others = {name: value for name, value in present.items() if name != ANNOTATION}
    return {**others, ANNOTATION: form.trigger} if form.trigger else others
