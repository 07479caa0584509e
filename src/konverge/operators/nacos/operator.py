"""The operator: one controller, its reconciler, and what the command line needs to know."""

from __future__ import annotations

from collections.abc import Iterable
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
from konverge.objects.kinds.networking_v1 import Ingress, NetworkPolicy
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.catalog import Operator
from konverge.operators.nacos.backup import kinds as backup_kinds
from konverge.operators.nacos.backup.controllers import backup_controllers
from konverge.operators.nacos.children.monitoring import PrometheusRule, ServiceMonitor
from konverge.operators.nacos.content import kinds as content_kinds
from konverge.operators.nacos.content.controllers import content_controllers
from konverge.operators.nacos.database import Databases, RealDatabases
from konverge.operators.nacos.resource import PAUSE, AnyNacos
from konverge.operators.nacos.server import HttpNacosServers
from konverge.operators.nacos.spec import NacosSpec
from konverge.operators.nacos.steps import (
    STEPS,
    Options,
    ReconcileState,
    Tools,
    record_early_end,
    record_progress,
    record_upgrade,
)
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM, Outcome, StepError, failed
from konverge.operators.nacos.steps.ownership import NOT_OWNED
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.operators.nacos.steps.rest import Rests
from konverge.operators.nacos.steps.upgrade.backups import AnyBackup
from konverge.operators.nacos.v1beta1 import VERSIONS
from konverge.runtime import (
    ChangePredicate,
    Context,
    Controller,
    NotOwned,
    Reconciler,
    Request,
    Result,
    Settings,
    Use,
    Watches,
    annotations_changed,
    any_of,
    generation_changed,
    is_true,
    labels_changed,
    set_condition,
)
from konverge.runtime.context import Caches
from konverge.runtime.webhooks.conversion import Conversion

REFERS = "refers"
"""The index of resources by what they refer to: `Secret ns/name`, `ConfigMap ns/name`."""
_OURS = "middleware=nacos"


class NacosReconciler(Reconciler[AnyNacos]):
    """Runs the six steps until one of them ends the reconcile; then writes the status once, if it changed."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self._rests = Rests()

    def forget(self, key: Request) -> None:
        """The resource is gone."""
        self.tools.forget(key)
        self._rests.forget(key)

    async def reconcile(self, ctx: Context[AnyNacos]) -> Result | None:
        if ctx.deleting:
            return None  # the garbage collector deletes the children
        if _paused(ctx):
            ctx.obj.status.publish_conditions()
            await ctx.save_status()
            return None
        if await self._rests.lasts(ctx, self.tools):
            self.tools.metrics.of(ctx.request).reconciles += 1
            return self._look_again()
        state = ReconcileState(ctx, self.tools)
        outcome = await _run_steps(state)
        record_early_end(state, outcome)
        record_progress(state, outcome)
        record_upgrade(state, outcome)
        ctx.obj.status.observed_generation = ctx.obj.metadata.generation
        ctx.obj.status.publish_conditions()
        saved = await ctx.save_status()
        self._rests.note(state, outcome, saved=saved)
        self._count(state, outcome)
        if outcome.kind == "hibernated":
            return None  # all that can wake it is watched
        if outcome.kind in ("done", "held"):
            return self._look_again()
        return Result(requeue_after=self.tools.options.requeue)

    def _look_again(self) -> Result:
        """Spread, so that clusters created together are not checked together."""
        return Result(requeue_after=self.tools.options.health_interval * clock.rng().uniform(0.9, 1.1))

    def _count(self, state: ReconcileState, outcome: Outcome) -> None:
        metrics = self.tools.metrics.of(state.key)
        metrics.reconciles += 1
        if not outcome.settled:
            metrics.ended_early[outcome.code] = metrics.ended_early.get(outcome.code, 0) + 1
        self.tools.metrics.record(state.key, state.status)


async def _run_steps(state: ReconcileState) -> Outcome:
    """The outcome of the step that ended the reconcile. The user sees in the status what the API server refuses."""
    outcome = CONTINUE
    try:
        for step in STEPS:
            outcome = await step(state)
            if outcome.ends:
                break
    except StepError as error:
        return error.outcome
    except (Invalid, Forbidden, BadRequest) as error:
        return failed(SYSTEM, "Refused", f"the API server refuses: {error}")
    except NotOwned as error:  # an object that appeared after PreCheck
        return failed(PARAMETER, NOT_OWNED, str(error))
    return outcome


def _paused(ctx: Context[AnyNacos]) -> bool:
    """By annotation: the operator changes nothing and repairs nothing."""
    paused = ctx.obj.metadata.annotations.get(PAUSE, "").lower() == "true"
    conditions, generation = ctx.obj.status.kube_conditions, ctx.obj.metadata.generation
    was_paused = is_true(conditions, "Paused")
    if paused:
        message = f"the annotation {PAUSE} is true"
        set_condition(conditions, "Paused", True, "Annotation", message, observed_generation=generation)
        if not was_paused:
            ctx.event("Paused", f"nothing is done while the annotation {PAUSE} is true")
    elif was_paused:
        set_condition(conditions, "Paused", False, "Resumed", observed_generation=generation)
    return paused


# ------------------------------------------------------------------ what triggers a reconcile


def _by_app(record: Record, meta: Meta) -> Iterable[str]:
    return (f"{meta.namespace}/{meta.labels.get('app', '')}",)


def _refers_to(record: Record, meta: Meta) -> Iterable[str]:
    """The Secrets and ConfigMaps that a resource names anywhere in its spec."""
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
            spec.tls.secret_ref if spec.tls is not None else None,
            spec.database.tls.ca_secret_ref if spec.database.tls is not None else None,
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
    return () if lister is None else list(lister.keys_by_index(REFERS, value))


def _of_pod(pod: Pod) -> Iterable[Request]:
    return (Request(pod.metadata.namespace, pod.metadata.labels.get("app", "")),)


def controllers(
    databases: Databases | None = None,
    nacos: HttpNacosServers | None = None,
    *,
    options: Options | None = None,
    namespaces: tuple[str, ...] = (),
) -> list[Controller[Any]]:
    """The controllers of the operator; by default with real databases and servers."""
    tools = Tools(
        databases=databases if databases is not None else RealDatabases(),
        servers=nacos if nacos is not None else HttpNacosServers(),
        options=options or Options(),
    )
    reconciler = NacosReconciler(tools)
    spec_changed = any_of(generation_changed, annotations_changed, labels_changed)

    @ChangePredicate
    def matters(change: Change) -> bool:
        if change.new is None:
            reconciler.forget(change.key)
        return spec_changed(change)

    return [
        Controller(
            AnyNacos,
            reconciler,
            name="nacos",
            owns=[ConfigMap, StatefulSet, Service, PodDisruptionBudget, Job, Secret, Ingress, NetworkPolicy],
            watches=[
                Watches(Pod, requests=_of_pod, label_selector=_OURS),
                Watches(Secret, lookup=_referring),
                Watches(ConfigMap, lookup=_referring),
            ],
            uses=[
                Use(AnyNacos, "patch"),  # an annotation that allows one change is removed after it
                Use(Pod, "patch", "delete"),
                Use(PersistentVolumeClaim, "patch", "delete", cached=True, label_selector=_OURS),
                Use(ServiceMonitor, "apply", "delete"),
                Use(PrometheusRule, "apply", "delete"),
                Use(AnyBackup, "list"),  # an upgrade may ask for one
            ],
            when=matters,
            namespaces=namespaces,
            indexes={AnyNacos: {REFERS: _refers_to}, Pod: {BY_APP: _by_app}, PersistentVolumeClaim: {BY_APP: _by_app}},
            metrics=tools.metrics.collect,
            versions=VERSIONS,
            settings=Settings(workers=32, timeout=120.0, max_retries=0, max_delay=60.0),
        ),
        *content_controllers(tools.servers, namespaces=namespaces),
        *backup_controllers(namespaces=namespaces),
    ]


OPERATOR = Operator(
    name="nacos",
    kinds=[*VERSIONS, *content_kinds.KINDS, *backup_kinds.KINDS],
    controllers=controllers,
    webhooks=lambda: [Conversion(*VERSIONS)],
    samples=(
        "samples/standalone.yaml",
        "samples/cluster-mysql.yaml",
        "samples/cluster-postgres.yaml",
        "samples/content.yaml",
    ),
)
