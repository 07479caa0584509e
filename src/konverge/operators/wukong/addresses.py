"""The loop of a WukongAddress: a Service of type LoadBalancer that keeps its address and changes its machine.

The Service is there as long as the WukongAddress is, so the load balancer keeps the address reserved. It selects the
pod of one machine, or of none: two at once are impossible. A move is two writes. First the Service selects nothing;
when the API has no endpoint of the former machine any more, it selects the next one. Both are seen in the Service
itself, so an operator that is killed in between goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.cache.record import Meta, Record
from konverge.client import BadRequest, Forbidden, Invalid, NotFound
from konverge.objects import ObjectMeta, from_json
from konverge.objects.kinds.core_v1 import Service, ServicePort, ServiceSpec
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.operators.wukong import names
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.readiness import refuse, say
from konverge.operators.wukong.resource import AnyWukong, WukongAddress
from konverge.operators.wukong.templates import resolved_spec
from konverge.operators.wukong.texts import is_address
from konverge.runtime import Context, NotOwned, Reconciler, Request, Result
from konverge.runtime.context import Caches
from konverge.runtime.owners import is_controlled_by

DETACHED = "vm.novasphere.dev/detached"
"""What a Service selects that leads nowhere: no pod has it. Without a selector its endpoints would stay."""
SERVICE_NAME = "kubernetes.io/service-name"
MOVING = 1.0
"""Seconds between two looks at endpoints that are about to go."""


class AddressReconciler(Reconciler[WukongAddress]):
    """One reconcile."""

    def __init__(self, options: Options) -> None:
        self.options = options

    async def reconcile(self, ctx: Context[WukongAddress]) -> Result | None:
        if ctx.deleting:
            return None  # the Service goes with its owner
        again = await self._run(ctx)
        ctx.obj.status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        return None if again is None else Result(requeue_after=again)

    async def _run(self, ctx: Context[WukongAddress]) -> float | None:
        """Seconds until the next look; None when only a change can lead to anything."""
        name = names.address(ctx.request.name)
        live = await ctx.get(Service, name)
        if live is not None and is_controlled_by(live, ctx.obj):
            _note(ctx, live)
        obstacle = await _obstacle(ctx)
        desired = "" if obstacle else ctx.obj.spec.wukong_name or ""
        try:
            target, moving = await _next(ctx, desired)
            await ctx.apply(service_for(ctx.obj, target, wanted_ip(ctx.obj, live)))
        except NotOwned as error:
            return refuse(ctx, "NotOurs", str(error), self.options.error)
        except (Invalid, Forbidden, BadRequest) as error:
            if isinstance(error, Forbidden) and error.namespace_terminating:
                raise
            return refuse(ctx, "Refused", f"the API server refuses: {error}", self.options.error)
        _attach(ctx, target)
        if moving:
            say(ctx, False, "Detaching", f"{moving}: the address leads nowhere until that is gone")
            return MOVING
        if obstacle:
            return refuse(ctx, *obstacle, None)
        return _judge(ctx, live)


async def _next(ctx: Context[WukongAddress], desired: str) -> tuple[str, str]:
    """The machine that the Service may select now, and what has to go before it selects the desired one.

    What decides is read from the server: a cache may still show the machine before the last one.
    """
    try:
        live = await ctx.client.get(Service, names.address(ctx.request.name), ctx.request.namespace)
    except NotFound:
        return desired, ""
    present = machine_of(live)
    if present == desired or not is_controlled_by(live, ctx.obj):
        return desired, ""
    if present:
        return "", f"it was taken from Wukong {present}" if desired else ""
    selector = f"{SERVICE_NAME}={live.metadata.name}"
    slices = await ctx.client.list(EndpointSlice, ctx.request.namespace, label_selector=selector)
    left = sorted({address for entry in slices for endpoint in entry.endpoints for address in endpoint.addresses})
    return ("", f"endpoint {', '.join(left)} is still there") if left else (desired, "")


async def _obstacle(ctx: Context[WukongAddress]) -> tuple[str, str] | None:
    """Why the address cannot lead to the machine that the spec names: reason and message."""
    name = ctx.obj.spec.wukong_name
    if not name:
        return None
    wukong = await ctx.get(AnyWukong, name)
    if wukong is None or wukong.metadata.deletion_timestamp:
        return "WukongNotFound", f"there is no Wukong {name}: the address is kept in reserve"
    networks = resolved_spec(wukong).get("networks")
    for network in networks if isinstance(networks, list) else ():
        if isinstance(network, dict) and network.get("primary") and network.get("name") != names.POD_NETWORK:
            return "NoPodNetwork", f"Wukong {name} is not on the pod network, by which an address leads to a machine"
    return None


def wanted_ip(address: WukongAddress, live: Service | None) -> str:
    """The address to ask for: that of the spec, or the one that a Service had which was deleted."""
    had = address.status.address if is_address(address.status.address) else ""
    asked = live.spec.load_balancer_ip if live is not None else had
    return address.spec.address or (had if asked == had else "")


MACHINES_OF = "machines"
"""The index of addresses by the machine that they name."""


def machine_named(record: Record, meta: Meta) -> Iterable[str]:
    return (f"{meta.namespace}/{from_json(WukongAddress, record.raw).spec.wukong_name or ''}",)


def addresses_of(wukong: AnyWukong, caches: Caches) -> Iterable[Request]:
    """The addresses that name a machine."""
    lister, place = caches.lister(WukongAddress), wukong.metadata
    return () if lister is None else lister.keys_by_index(MACHINES_OF, f"{place.namespace}/{place.name}")


def machine_of(service: Service) -> str:
    """The machine that a Service leads to; empty for none."""
    return (service.spec.selector or {}).get(names.LABEL, "")


def service_for(address: WukongAddress, machine: str, ip: str = "") -> Service:
    """The Service, leading to a machine or nowhere, and asking for an address of which it knows."""
    place, spec = address.metadata, address.spec
    return Service(
        metadata=ObjectMeta(
            name=names.address(place.name),
            namespace=place.namespace,
            labels={names.MANAGED_BY: names.OPERATOR},
            annotations=dict(spec.annotations),
        ),
        spec=ServiceSpec(
            type="LoadBalancer",
            selector={names.LABEL: machine} if machine else {DETACHED: place.uid},
            load_balancer_class=spec.load_balancer_class,
            load_balancer_ip=ip or None,
            ports=[
                ServicePort(
                    name=port.name, port=port.port, target_port=port.target_port or port.port, protocol=port.protocol
                )
                for port in spec.ports
            ],
        ),
    )


# ------------------------------------------------------------------ what is said


def _note(ctx: Context[WukongAddress], live: Service) -> None:
    """The address, and a host name where a cloud gives one in its place. What was there once stays on record."""
    balancer = live.status.load_balancer
    given = [entry.ip or entry.hostname or "" for entry in (balancer.ingress if balancer is not None else ())]
    if given and given[0]:
        ctx.obj.status.address = given[0]


def _attach(ctx: Context[WukongAddress], target: str) -> None:
    status, before = ctx.obj.status, ctx.obj.status.attached_to
    status.attached_to, status.service_name = target, names.address(ctx.request.name)
    if before and before != target:
        ctx.event("Detached", f"the address does not lead to Wukong {before} any more")
    if target and before != target:
        ctx.event("Attached", f"the address leads to Wukong {target}")


def _judge(ctx: Context[WukongAddress], live: Service | None) -> float | None:
    spec, status = ctx.obj.spec, ctx.obj.status
    if live is None or not status.address:
        message = "no load balancer has given an address: is there one (MetalLB, kube-vip, a cloud's) with a free one?"
        say(ctx, False, "AddressPending", message)
    elif spec.address and status.address != spec.address:
        return refuse(ctx, "OtherAddress", f"the load balancer gave {status.address} in place of {spec.address}", None)
    elif status.attached_to:
        say(ctx, True, "Attached", f"{status.address} leads to Wukong {status.attached_to}")
    else:
        say(ctx, True, "Reserved", f"{status.address} leads to no machine")
    return None
