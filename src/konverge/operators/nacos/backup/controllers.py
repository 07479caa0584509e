"""The controllers of backups, and what leads to their reconciles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache.record import Meta, Record
from konverge.objects import from_json
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.operators.nacos.backup.backups import BackupReconciler
from konverge.operators.nacos.backup.kinds import KINDS, NacosBackup
from konverge.operators.nacos.content.place import by_app
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.runtime import Controller, Request, Settings, Use, Watches, generation_changed
from konverge.runtime.context import Caches

BY_NACOS = "backup-nacos"
"""The index by the Nacos: namespace and name."""
_SETTINGS = Settings(workers=4, timeout=60.0, max_retries=0, max_delay=60.0)
_OPTIONAL = tuple(Use(kind, optional=True) for kind in KINDS)
_PODS: Use[Pod] = Use(Pod, cached=True, label_selector="middleware=nacos")


def backup_controllers(*, namespaces: tuple[str, ...] = ()) -> list[Controller[Any]]:
    """One controller for each kind."""
    return [
        Controller(
            NacosBackup,
            BackupReconciler(),
            owns=[Job],
            watches=[Watches(AnyNacos, lookup=_waiting_for, when=_comes_or_goes)],
            uses=[_PODS, Use(PersistentVolumeClaim, "get"), *_OPTIONAL],
            when=generation_changed,
            namespaces=namespaces,
            indexes={NacosBackup: {BY_NACOS: nacos_of(NacosBackup)}, Pod: {BY_APP: by_app}},
            settings=_SETTINGS,
        ),
    ]


def nacos_of(kind: type[Any]) -> Any:
    def index(record: Record, meta: Meta) -> Iterable[str]:
        try:
            obj = from_json(kind, record.raw)
        except msgspec.ValidationError:
            return ()
        return (f"{meta.namespace}/{obj.spec.nacos_ref.name}",)

    return index


def _waiting_for(nacos: AnyNacos, caches: Caches) -> Iterable[Request]:
    lister = caches.lister(NacosBackup)
    value = f"{nacos.metadata.namespace}/{nacos.metadata.name}"
    return () if lister is None else list(lister.keys_by_index(BY_NACOS, value))


def _comes_or_goes(old: AnyNacos | None, new: AnyNacos | None) -> bool:
    return old is None or new is None
