"""Which backup lets an upgrade begin."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from konverge.client import Forbidden, NotFound
from konverge.objects import Status
from konverge.objects.meta import ObjectMeta
from konverge.operators.nacos.backup.kinds import NacosBackup, NacosBackupSpec, NacosBackupStatus
from konverge.operators.nacos.steps.upgrade.backups import AnyBackup, BackupCheck, check_backup
from tests.operators.nacos.steps.bench import NAME, Bench, ago
from tests.operators.nacos.world import EMBEDDED

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-52")]


def backup(name: str, seconds: float, **changes: Any) -> AnyBackup:
    status = {"phase": "Completed", "completionTime": ago(seconds), "nacosUid": "uid-nacos"}
    spec = {"nacosRef": {"name": NAME}}
    return AnyBackup(metadata=ObjectMeta(name=name), spec=spec, status={**status, **changes})


async def checked(*backups: AnyBackup, within: str = "1h") -> BackupCheck:
    bench = Bench(EMBEDDED)
    bench.objects.put(*backups)
    return await check_backup(bench.state, within)


async def test_the_newest_counts() -> None:
    assert await checked(backup("b", 600), backup("a", 300), backup("c", 900)) == BackupCheck(name="a")
    assert await checked(backup("a", 300), backup("b", 300)) == BackupCheck(name="b")


@pytest.mark.parametrize(("seconds", "reason"), [(3600, ""), (3601, "BackupTooOld"), (-60, "")])
async def test_the_age(seconds: float, reason: str) -> None:
    assert (await checked(backup("a", seconds))).reason == reason


async def test_an_old_one_is_named_without_a_text_that_changes_every_second() -> None:
    entry = backup("a", 7200)
    check = await checked(entry)
    assert check.name == ""
    assert f"the newest, a, was completed at {entry.status['completionTime']}: create another" in check.message
    assert "of the last 1h" in check.message


@pytest.mark.parametrize(
    "other",
    [
        backup("a", 60, phase="Running"),
        backup("a", 60, phase=""),
        backup("a", 60, completionTime=None),
        backup("a", 60, completionTime="yesterday"),
        backup("a", 60, nacosUid="of an earlier one"),
        AnyBackup(metadata=ObjectMeta(name="a"), spec={"nacosRef": {"name": "other"}}, status=backup("", 60).status),
        AnyBackup(metadata=ObjectMeta(name="a"), spec={"nacosRef": NAME}, status=backup("", 60).status),
        AnyBackup(metadata=ObjectMeta(name="a"), status=backup("", 60).status),
    ],
)
async def test_what_does_not_count(other: AnyBackup) -> None:
    assert (await checked(other)).reason == "BackupMissing"


async def test_one_that_is_being_deleted_does_not_count() -> None:
    entry = backup("a", 60)
    entry.metadata.deletion_timestamp = ago(1)
    assert (await checked(entry)).reason == "BackupMissing"


async def test_one_without_a_uid_counts_by_its_reference() -> None:
    assert (await checked(backup("a", 60, nacosUid=""))).name == "a"


@pytest.mark.parametrize(
    ("error", "reason", "advice"),
    [
        (NotFound(Status()), "BackupKindMissing", "apply the definitions of this release and create one"),
        (Forbidden(Status()), "BackupsUnreadable", "apply the role of this release"),
    ],
)
async def test_what_cannot_be_read(error: Exception, reason: str, advice: str) -> None:
    bench = Bench(EMBEDDED)
    bench.objects.refused["list NacosBackup"] = error
    check = await check_backup(bench.state, "1h")
    assert (check.name, check.reason) == ("", reason)
    assert check.message.startswith("spec.upgrade.requireBackupWithin asks for a backup, and ")
    assert advice in check.message


def test_the_kind_is_that_of_backups() -> None:
    assert AnyBackup.resource == NacosBackup.resource
    assert {"nacosRef"} <= {info.encode_name for info in msgspec.structs.fields(NacosBackupSpec)}
    assert {"phase", "completionTime", "nacosUid"} <= {
        info.encode_name for info in msgspec.structs.fields(NacosBackupStatus)
    }
