"""The ReplicationController: the predecessor of the ReplicaSet, with a plain map for its selector. It works the same
way.

Upstream: pkg/controller/replication, which adapts the ReplicaSet controller as well.
"""

from __future__ import annotations

from typing import Any

from konverge.kube.adoption import ORPHANS, adoptable, adopters, orphans
from konverge.kube.replicaset import StatusClasses, reconcile_replicas
from konverge.objects import labels
from konverge.objects.kinds.core_v1 import (
    Pod,
    ReplicationController,
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from konverge.runtime import Context, Controller, Reconciler, Result, Watch

CLASSES = StatusClasses(ReplicationControllerStatus, ReplicationControllerCondition, terminating=False)


class ReplicationControllerReconciler(Reconciler[ReplicationController]):
    async def reconcile(self, ctx: Context[ReplicationController]) -> Result | None:
        return await reconcile_replicas(ctx, labels.from_labels(ctx.obj.spec.selector), CLASSES)


def controllers() -> list[Controller[Any]]:
    return [
        Controller(
            ReplicationController,
            ReplicationControllerReconciler(),
            component="replication-controller",
            owns=[Pod],
            watches=[Watch(kind=Pod, lookup=adopters(ReplicationController, labels.from_labels), predicate=adoptable)],
            indexes={Pod: {ORPHANS: orphans}},
        )
    ]
