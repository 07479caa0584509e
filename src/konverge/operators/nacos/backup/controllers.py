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
from konverge.operators.nacos.backup.kinds import KINDS, NacosBackup, NacosBackupSchedule
from konverge.operators.nacos.backup.retention import SCHEDULED_BY
from konverge.operators.nacos.backup.schedules import BY_SCHEDULE, ScheduleReconciler
from konverge.operators.nacos.content.place import by_app
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.runtime import Controller, Request, Settings, Use, Watches, generation_changed
from konverge.runtime.context import Caches

BY_NACOS = "backup-nacos"
"""The index by the Nacos: namespace and name."""
BY_UID = "uid"
"""The index of schedules by their uid."""
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
        Controller(
            NacosBackupSchedule,
            ScheduleReconciler(),
            watches=[Watches(NacosBackup, lookup=_schedules_of, when=_phase_changed)],
            uses=[Use(NacosBackup, "get", "create", "delete"), *_OPTIONAL],
            when=generation_changed,
            namespaces=namespaces,
            indexes={NacosBackup: {BY_SCHEDULE: _by_schedule}, NacosBackupSchedule: {BY_UID: _by_uid}},
            settings=_SETTINGS,
        ),
    ]


def nacos_of(kind: type[Any]) -> Any:
    def index(record: Record, meta: Meta) -> Iterable[str]:
        obj = _read(kind, record)
        return () if obj is None else (f"{meta.namespace}/{obj.spec.nacos_ref.name}",)

    return index


def _read(kind: type[Any], record: Record) -> Any:
    try:
        return from_json(kind, record.raw)
    except msgspec.ValidationError:  # it got past an older definition
        return None


def _waiting_for(nacos: AnyNacos, caches: Caches) -> Iterable[Request]:
    lister = caches.lister(NacosBackup)
    value = f"{nacos.metadata.namespace}/{nacos.metadata.name}"
    return () if lister is None else list(lister.keys_by_index(BY_NACOS, value))


def _by_schedule(record: Record, meta: Meta) -> Iterable[str]:
    backup = _read(NacosBackup, record)
    uid = backup.metadata.annotations.get(SCHEDULED_BY) if backup is not None else None
    return (uid,) if uid else ()


def _by_uid(record: Record, meta: Meta) -> Iterable[str]:
    return (meta.uid,)


def _schedules_of(backup: NacosBackup, caches: Caches) -> Iterable[Request]:
    lister, uid = caches.lister(NacosBackupSchedule), backup.metadata.annotations.get(SCHEDULED_BY)
    return () if lister is None or not uid else list(lister.keys_by_index(BY_UID, uid))


def _phase_changed(old: NacosBackup | None, new: NacosBackup | None) -> bool:
    return old is None or new is None or old.status.phase != new.status.phase


def _comes_or_goes(old: AnyNacos | None, new: AnyNacos | None) -> bool:
    return old is None or new is None
