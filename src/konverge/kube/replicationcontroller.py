"""The ReplicationController: the ReplicaSet of older days, with a plain map for its selector. It works the same way."""

from __future__ import annotations

from typing import Any

from konverge.kube.adoption import ORPHANS, adoptable, orphans
from konverge.kube.replicaset import Form, keep
from konverge.objects import labels
from konverge.objects.kinds.core_v1 import (
    Pod,
    ReplicationController,
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Watch, controller_of
from konverge.runtime.context import Caches

FORM = Form(ReplicationControllerStatus, ReplicationControllerCondition, terminating=False)


class ReplicationControllerReconciler(Reconciler[ReplicationController]):
    async def reconcile(self, ctx: Context[ReplicationController]) -> Result | None:
        return await keep(ctx, labels.from_labels(ctx.obj.spec.selector), FORM)


def _of_orphan(pod: Pod, caches: Caches) -> list[Request]:
    lister = caches.lister(ReplicationController)
    if lister is None or controller_of(pod) is not None or not pod.metadata.labels:
        return []
    return [
        Request(found.metadata.namespace, found.metadata.name)
        for found in lister.list(pod.metadata.namespace)
        if labels.from_labels(found.spec.selector).matches(pod.metadata.labels)
    ]


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            ReplicationController,
            ReplicationControllerReconciler(),
            component="replication-controller",
            owns=[Pod],
            watches=[Watch(kind=Pod, lookup=_of_orphan, predicate=adoptable)],
            indexes={Pod: {ORPHANS: orphans}},
        )
    ]
