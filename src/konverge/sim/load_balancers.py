"""Simulated load balancers: a Service of that type gets an address of its own, and gives it back."""

from __future__ import annotations

from typing import Any

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Service
from konverge.runtime import Context, Controller, Result
from konverge.sim.network import BALANCERS, Addresses


class Balancers:
    """The part of a cloud that Services know."""

    def __init__(self) -> None:
        self.addresses = Addresses(BALANCERS)

    def controllers(self) -> list[Controller[Any]]:
        return [Controller(Service, self.reconcile, name="load-balancers")]

    async def reconcile(self, ctx: Context[Service]) -> Result | None:
        service = ctx.obj
        present = [entry.ip for entry in service.status.load_balancer.ingress] if service.status.load_balancer else []
        wanted: list[str] = []
        if service.spec.type == "LoadBalancer" and not service.spec.load_balancer_class and not ctx.deleting:
            if present and present[0]:
                self.addresses.keep(service.metadata.uid, present[0])
            wanted = [service.spec.load_balancer_ip or self.addresses.of(service.metadata.uid)]
        else:
            self.addresses.release(service.metadata.uid)
        if present != wanted:
            ingress = [{"ip": ip, "ipMode": "VIP"} for ip in wanted] or None
            body = MergePatch({"status": {"loadBalancer": {"ingress": ingress}}})
            meta = service.metadata
            await ctx.client.patch(Service, meta.name, body, meta.namespace, subresource="status")
        return None
