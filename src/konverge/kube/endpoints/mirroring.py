"""Endpoints that users made for a Service without a selector, mirrored to slices: most clients read only slices.

Upstream: pkg/controller/endpointslicemirroring.
"""

from __future__ import annotations

import ipaddress

from konverge.kube.endpoints.publish import ANNOTATION, MANAGED_BY, SERVICE_NAME, Form, Groups, delete, publish
from konverge.kube.endpoints.subsets import repack, with_readiness
from konverge.objects.kinds.core_v1 import EndpointAddress, Endpoints, Service
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from konverge.runtime import Context, Reconciler

CONTROLLER = "endpointslicemirroring-controller.k8s.io"
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
            if slice_.metadata.labels.get(MANAGED_BY) == CONTROLLER
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
        labels={**meta.labels, SERVICE_NAME: meta.name, MANAGED_BY: CONTROLLER},
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
