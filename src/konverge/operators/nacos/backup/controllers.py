"""The controllers of backups, and what leads to their reconciles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache.record import Meta, Record
from konverge.objects import from_json
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod, Secret
from konverge.operators.nacos import names
from konverge.operators.nacos.backup.backups import BackupReconciler
from konverge.operators.nacos.backup.kinds import KINDS, NacosBackup, NacosBackupSchedule, NacosRestore
from konverge.operators.nacos.backup.restores import BACKUPS as BY_NACOS
from konverge.operators.nacos.backup.restores import BY_NACOS as RESTORES
from konverge.operators.nacos.backup.restores import RestoreReconciler
from konverge.operators.nacos.backup.retention import SCHEDULED_BY
from konverge.operators.nacos.backup.schedules import BY_SCHEDULE, ScheduleReconciler
from konverge.operators.nacos.content.place import by_app
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.steps.pods import BY_APP
from konverge.operators.nacos.steps.state import HIBERNATED
from konverge.runtime import Controller, Request, Settings, Use, Watches, find_condition, generation_changed, is_true
from konverge.runtime.context import Caches

RESTORES_OF_BACKUP = "backup"
"""The index of restores by their backup: namespace and name."""
BY_UID = "uid"
"""The index of schedules by their uid."""
_SETTINGS = Settings(workers=4, timeout=60.0, max_retries=0, max_delay=60.0)
_OPTIONAL = (
    *(Use(kind, optional=True) for kind in KINDS),
    Use(NacosRestore, cached=True, optional=True),
)
_PODS: Use[Pod] = Use(Pod, cached=True, label_selector="middleware=nacos")


def backup_controllers(*, namespaces: tuple[str, ...] = ()) -> list[Controller[Any]]:
    """One controller for each kind."""
    return [
        Controller(
            NacosBackup,
            BackupReconciler(),
            owns=[Job],
            watches=[Watches(AnyNacos, lookup=_waiting_for, when=_comes_or_goes)],
            uses=[_PODS, Use(PersistentVolumeClaim, "get"), Use(Secret, "get"), *_OPTIONAL],
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
        Controller(
            NacosRestore,
            RestoreReconciler(),
            owns=[Job],
            watches=[
                Watches(AnyNacos, lookup=_restored_into, when=_sleep_changed),
                Watches(NacosBackup, lookup=_restores_near, when=_phase_changed),
                Watches(NacosRestore, lookup=_restores_near, when=_phase_changed),
            ],
            uses=[
                _PODS,
                Use(AnyNacos, "patch"),
                Use(PersistentVolumeClaim, "get"),
                Use(Secret, "get"),
                *_OPTIONAL,
            ],
            when=generation_changed,
            namespaces=namespaces,
            indexes={
                NacosRestore: {RESTORES: nacos_of(NacosRestore), RESTORES_OF_BACKUP: _by_backup},
                NacosBackup: {BY_NACOS: nacos_of(NacosBackup)},
                Pod: {BY_APP: by_app},
            },
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


def _restored_into(nacos: AnyNacos, caches: Caches) -> Iterable[Request]:
    return _restores_of(caches, nacos.metadata.namespace, nacos.metadata.name)


def _restores_near(obj: Any, caches: Caches) -> Iterable[Request]:
    """Those that may wait for a backup, or for another restore: all of its namespace that are of the same Nacos, and
    all that name the backup."""
    lister = caches.lister(NacosRestore)
    if lister is None:
        return ()
    meta = obj.metadata
    same = _restores_of(caches, meta.namespace, obj.spec.nacos_ref.name)
    named = lister.keys_by_index(RESTORES_OF_BACKUP, f"{meta.namespace}/{meta.name}")
    return {request for request in (*same, *named) if (request.name, type(obj)) != (meta.name, NacosRestore)}


def _restores_of(caches: Caches, namespace: str, name: str) -> Iterable[Request]:
    lister = caches.lister(NacosRestore)
    return () if lister is None else list(lister.keys_by_index(RESTORES, f"{namespace}/{name}"))


def _sleep_changed(old: AnyNacos | None, new: AnyNacos | None) -> bool:
    return _sleep(old) != _sleep(new)


def _sleep(nacos: AnyNacos | None) -> tuple[Any, ...]:
    """What a restore waits for."""
    if nacos is None:
        return ()
    asleep = find_condition(nacos.status.kube_conditions, HIBERNATED)
    meta, ready = nacos.metadata, is_true(nacos.status.kube_conditions, "Ready")
    return meta.uid, meta.annotations.get(names.RESTORE), nacos.status.phase, ready, asleep and asleep.message


def _by_backup(record: Record, meta: Meta) -> Iterable[str]:
    restore = _read(NacosRestore, record)
    ref = restore.spec.backup_ref if restore is not None else None
    return () if ref is None else (f"{meta.namespace}/{ref.name}",)


def _phase_changed(old: Any, new: Any) -> bool:
    return old is None or new is None or old.status.phase != new.status.phase


def _comes_or_goes(old: AnyNacos | None, new: AnyNacos | None) -> bool:
    return old is None or new is None
