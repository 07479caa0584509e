"""Webhooks of an installed operator, behind a Service, with certificates that its replicas issue and renew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from konverge.runtime.rbac import Permission
from konverge.runtime.webhooks.admission import MutatingHook, ValidatingHook
from konverge.runtime.webhooks.certificates.keeper import Keeper
from konverge.runtime.webhooks.certificates.material import Lifetimes
from konverge.runtime.webhooks.certificates.publishing import Publisher, Targets
from konverge.runtime.webhooks.permissions import webhook_permissions
from konverge.runtime.webhooks.places import Place, Serving, listening
from konverge.runtime.webhooks.registry import PORT, Webhooks


@dataclass(frozen=True, slots=True, kw_only=True)
class InCluster(Place):
    """Behind a Service; its name is that of the Secret and of the configurations, too, unless they are given."""

    service: str
    namespace: str
    secret: str = ""
    configuration: str = ""
    address: tuple[str, int] = ("", PORT)
    lifetimes: Lifetimes = field(default_factory=Lifetimes)

    @property
    def secret_name(self) -> str:
        return self.secret or self.service

    @property
    def configuration_name(self) -> str:
        return self.configuration or self.service

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which the API server may call. Upstream: serverName (apiserver/pkg/util/webhook)."""
        host = f"{self.service}.{self.namespace}.svc"
        return (host, f"{host}.cluster.local", f"{self.service}.{self.namespace}", self.service)

    def targets(self, webhooks: Webhooks) -> Targets:
        hooks = webhooks.routes.values()
        return Targets(
            service=self.service,
            namespace=self.namespace,
            validating=self.configuration_name if any(isinstance(hook, ValidatingHook) for hook in hooks) else "",
            mutating=self.configuration_name if any(isinstance(hook, MutatingHook) for hook in hooks) else "",
            definitions=tuple(webhooks.definitions),
        )

    def permissions(self, webhooks: Webhooks) -> list[Permission]:
        return webhook_permissions(
            webhooks.routes.values(),
            namespace=self.namespace,
            secret=self.secret_name,
            configuration=self.configuration_name,
        )

    @asynccontextmanager
    async def serving(self, at_work: Serving) -> AsyncIterator[None]:
        keeper = Keeper(
            at_work.client,
            Publisher(at_work.client, self.targets(at_work.webhooks)),
            owner=at_work.name,
            namespace=self.namespace,
            secret=self.secret_name,
            hosts=self.hosts,
            lifetimes=self.lifetimes,
        )
        at_work.checks.append(lambda: keeper.problem)
        shown = await keeper.first()
        async with listening(at_work, shown, self.address):
            keeping = asyncio.create_task(keeper.run(), name="webhook certificates")
            try:
                yield
            finally:
                keeping.cancel()
                await asyncio.wait([keeping])
