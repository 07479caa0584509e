"""Backups, as an upgrade asks for them. Their kind may not exist in a cluster, so they are read from the API server."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.client import Forbidden, NotFound
from konverge.objects import Object, Resource, field, times
from konverge.objects.durations import duration_seconds
from konverge.operators.nacos.resource import GROUP
from konverge.operators.nacos.steps.state import ReconcileState

_FIELD = "spec.upgrade.requireBackupWithin"


class AnyBackup(Object):
    """A NacosBackup, unchecked."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)


AnyBackup.resource = Resource(GROUP, "v1alpha1", "NacosBackup", "nacosbackups")


class BackupCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The name of the backup that is young enough, or a reason and a message why there is none."""

    name: str = ""
    reason: str = ""
    message: str = ""


async def check_backup(state: ReconcileState, within: str) -> BackupCheck:
    """Whether a backup of this Nacos was completed within a time such as 24h."""
    try:
        backups = (await state.ctx.client.list(AnyBackup, state.key.namespace)).items
    except NotFound:
        message = (
            f"{_FIELD} asks for a backup, and the cluster has no kind NacosBackup: apply the definitions of this "
            "release and create one, or take the field out"
        )
        return BackupCheck(reason="BackupKindMissing", message=message)
    except Forbidden:
        message = f"{_FIELD} asks for a backup, and the operator may not list them: apply the role of this release"
        return BackupCheck(reason="BackupsUnreadable", message=message)
    completed = [(moment, backup) for backup in backups if (moment := _completed(state, backup))]
    if not completed:
        message = f"{_FIELD} asks for a backup of the last {within}, and none is completed: create a NacosBackup"
        return BackupCheck(reason="BackupMissing", message=message)
    moment, newest = max(completed, key=lambda entry: (times.parse_time(entry[0]), entry[1].metadata.name))
    if times.seconds_since(moment) > duration_seconds(within):
        message = (
            f"{_FIELD} asks for a backup of the last {within}, and the newest, {newest.metadata.name}, was completed "
            f"at {moment}: create another NacosBackup"
        )
        return BackupCheck(reason="BackupTooOld", message=message)
    return BackupCheck(name=newest.metadata.name)


def _completed(state: ReconcileState, backup: AnyBackup) -> str:
    """When a backup of this very Nacos was completed; empty where it is none, or not there for long."""
    reference = backup.spec.get("nacosRef")
    of_us = isinstance(reference, dict) and reference.get("name") == state.key.name
    uid = backup.status.get("nacosUid") or state.ctx.obj.metadata.uid  # of an earlier Nacos of this name: other data
    if not of_us or uid != state.ctx.obj.metadata.uid or backup.metadata.deletion_timestamp is not None:
        return ""
    moment = backup.status.get("completionTime")
    if backup.status.get("phase") != "Completed" or not isinstance(moment, str):
        return ""
    try:
        times.parse_time(moment)
    except ValueError:
        return ""
    return moment
