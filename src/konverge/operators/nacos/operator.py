"""The operator: one controller, its reconciler, and what the command line needs to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from konverge import clock
from konverge.cache.record import Meta, Record
from konverge.cache.store import Change
from konverge.client import BadRequest, Forbidden, Invalid
from konverge.objects import Object, from_dict, from_json
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects.kinds.networking_v1 import Ingress
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.catalog import Operator
from konverge.operators.nacos.children.monitoring import ServiceMonitor
from konverge.operators.nacos.database import Databases, RealDatabases
from konverge.operators.nacos.resource import PAUSE, AnyNacos, Nacos
from konverge.operators.nacos.server import HttpNacosServers, NacosServers
from konverge.operators.nacos.spec import NacosSpec
from konverge.operators.nacos.steps import STEPS, Options, Round, Stop, Tools, interrupted
from konverge.operators.nacos.steps.members import BY_APP
from konverge.operators.nacos.steps.stop import SYSTEM
from konverge.runtime import (
    Context,
    Controller,
    Reconciler,
    Request,
    Result,
    Settings,
    Watch,
    annotations_changed,
    any_of,
    generation_changed,
    is_true,
    labels_changed,
    set_condition,
)
from konverge.runtime.context import Caches

REFERS = "refers"
"""The index of resources by what they refer to: `Secret ns/name`, `ConfigMap ns/name`."""
_OURS = "middleware=nacos"


@dataclass(frozen=True, slots=True)
class Report:
    """A round as the document's tables show one."""

    key: Request
    step: str
    """The step at which it ended."""
    requests: tuple[str, ...]
    asked: tuple[str, ...]
    before: str
    phase: str
    requeue: float | None
    """Seconds until the next round; None: the round came to its end."""


class NacosReconciler(Reconciler[AnyNacos]):
    """One round: the six steps, until one of them ends it; then one write of the status, if that changed."""

    def __init__(self, tools: Tools, told: Callable[[Report], None] | None = None) -> None:
        self.tools = tools
        self._told = told

    async def reconcile(self, ctx: Context[AnyNacos]) -> Result | None:
        if ctx.deleting:
            return None  # the children go by their owner references
        if _paused(ctx):
            await ctx.save_status()
            return None
        before, round = ctx.obj.status.phase, Round(ctx, self.tools)
        stop = await self._steps(round)
        if stop is not None:
            interrupted(round, stop)
        ctx.obj.status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        options = self.tools.options
        self._account(round, before, stop, None if stop is None else options.requeue)
        again = options.requeue if stop is not None else options.health_interval * clock.rng().uniform(0.9, 1.1)
        return Result(requeue_after=again)

    async def _steps(self, round: Round) -> Stop | None:
        """What ended the round early, if anything did. What the API server will not have is the user's to see."""
        try:
            for step in STEPS:
                await step(round)
        except Stop as stop:
            return stop
        except (Invalid, Forbidden, BadRequest) as refused:
            return Stop(SYSTEM, "Refused", f"the API server refuses: {refused}")
        return None

    def _account(self, round: Round, before: str, stop: Stop | None, requeue: float | None) -> None:
        numbers = self.tools.numbers.of(round.key)
        numbers.rounds += 1
        if stop is not None:
            numbers.interrupted[stop.code] = numbers.interrupted.get(stop.code, 0) + 1
        self.tools.numbers.take(round.key, round.status)
        if self._told is not None:
            asked, phase = tuple(sorted(round.asked)), round.status.phase
            self._told(Report(round.key, round.step, tuple(round.requests), asked, before, phase, requeue))


def _paused(ctx: Context[AnyNacos]) -> bool:
    """By annotation: everything stays as it is, also what is broken."""
    paused = ctx.obj.metadata.annotations.get(PAUSE, "").lower() == "true"
    conditions = ctx.obj.status.kube_conditions
    if paused:
        if set_condition(conditions, "Paused", True, "Annotation", f"the annotation {PAUSE} is true"):
            ctx.event("Paused", f"nothing is done while the annotation {PAUSE} is true")
    elif is_true(conditions, "Paused"):
        set_condition(conditions, "Paused", False, "Resumed")
    return paused


# ------------------------------------------------------------------ what leads to a round


def _by_app(record: Record, meta: Meta) -> Iterable[str]:
    return (f"{meta.namespace}/{meta.labels.get('app', '')}",)


def _refers_to(record: Record, meta: Meta) -> Iterable[str]:
    """Which Secrets and ConfigMaps a resource names, wherever in its spec."""
    try:
        spec = from_dict(NacosSpec, from_json(AnyNacos, record.raw).spec)
    except msgspec.ValidationError:
        return ()
    secrets = {
        ref.name
        for ref in (
            spec.postgres.credentials_secret_ref,
            spec.postgres.tls.ca_secret_ref,
            spec.database.mysql_credentials_secret_ref,
            spec.admin_credentials_secret_ref,
            spec.identity_secret_ref,
            spec.certification.token_secret_ref,
        )
        if ref is not None
    }
    configs = {ref.name for ref in (spec.user_config_ref, spec.internal_config_ref) if ref is not None}
    return [
        *(f"Secret {meta.namespace}/{name}" for name in sorted(secrets) if name),
        *(f"ConfigMap {meta.namespace}/{name}" for name in sorted(configs) if name),
    ]


def _referring(obj: Object, caches: Caches) -> Iterable[Request]:
    """The resources that name this object."""
    lister = caches.lister(AnyNacos)
    meta = obj.metadata
    value = f"{type(obj).resource.kind} {meta.namespace}/{meta.name}"
    return () if lister is None else list(lister.informer.keys_by_index(REFERS, value))


def _of_pod(pod: Pod) -> Iterable[Request]:
    return (Request(pod.metadata.namespace, pod.metadata.labels.get("app", "")),)


def controllers(
    databases: Databases | None = None,
    nacos: NacosServers | None = None,
    *,
    options: Options | None = None,
    told: Callable[[Report], None] | None = None,
    namespaces: tuple[str, ...] = (),
) -> list[Controller[Any]]:
    """The controllers of the operator. Without databases and servers, the real ones. `told` hears of every round."""
    tools = Tools(
        databases=databases if databases is not None else RealDatabases(),
        servers=nacos if nacos is not None else HttpNacosServers(),
        options=options or Options(),
    )
    wish_changed = any_of(generation_changed, annotations_changed, labels_changed)

    def matters(change: Change) -> bool:
        if change.new is None:
            tools.forget(change.key)
        return wish_changed(change)

    return [
        Controller(
            AnyNacos,
            NacosReconciler(tools, told),
            name="nacos",
            owns=[ConfigMap, StatefulSet, Service, PodDisruptionBudget, Job, Secret, Ingress],
            makes=[ServiceMonitor],
            watches=[
                Watch(kind=Pod, requests=_of_pod, label_selector=_OURS),
                Watch(kind=PersistentVolumeClaim, label_selector=_OURS),
                Watch(kind=Secret, lookup=_referring),
                Watch(kind=ConfigMap, lookup=_referring),
            ],
            writes=[Pod, PersistentVolumeClaim],
            predicate=matters,
            namespaces=namespaces,
            indexes={AnyNacos: {REFERS: _refers_to}, Pod: {BY_APP: _by_app}},
            metrics=tools.numbers.collect,
            settings=Settings(workers=32, timeout=120.0, max_retries=0, max_delay=60.0),
        )
    ]


OPERATOR = Operator(
    name="nacos",
    kinds=[Nacos],
    controllers=controllers,
    samples=("samples/standalone.yaml", "samples/cluster-mysql.yaml", "samples/cluster-postgres.yaml"),
)
