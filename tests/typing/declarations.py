"""Declarations that a type checker must accept, lambdas included. Not run: only checked."""

from __future__ import annotations

from konverge import (
    ChangePredicate,
    Context,
    Controller,
    Index,
    Owns,
    Request,
    Use,
    Watches,
    all_of,
    any_of,
    generation_changed,
    labels_changed,
    not_,
)
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret


async def reconcile(ctx: Context[ConfigMap]) -> None:
    for secret in ctx.indexed(Secret, "type", "Opaque"):
        print(secret.type)


def data_changed(old: Secret | None, new: Secret | None) -> bool:
    return old is None or new is None or old.data != new.data


spec_or_labels = any_of(generation_changed, labels_changed)

Controller(
    ConfigMap,
    reconcile,
    owns=[
        Deployment,
        Owns(Secret, when=data_changed, metadata_only=True, every_owner=True),
        Owns(Pod, when=lambda old, new: old is None or new is None or old.spec != new.spec),
    ],
    watches=[
        Secret,
        Watches(Secret, requests=lambda secret: [Request(secret.metadata.namespace, "web")], when=labels_changed),
        Watches(Pod, lookup=lambda pod, caches: [], when=not_(labels_changed)),
        Watches(Secret, requests=lambda secret: [], when=all_of(spec_or_labels, data_changed)),
    ],
    uses=[Use(Node, "get", "list", "watch"), Use(Pod, "create", subresource="eviction"), Use(Secret, "apply")],
    when=lambda old, new: new is not None and bool(new.data),
    indexes=[Index(Secret, "type", lambda secret: [secret.type or ""])],
)
Controller(ConfigMap, reconcile, when=ChangePredicate(lambda change: change.key.name != "ignored"))
Controller(ConfigMap, reconcile, when=spec_or_labels, indexes={Pod: {"node": lambda pod: [pod.spec.node_name or ""]}})
