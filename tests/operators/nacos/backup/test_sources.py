"""A restore without its NacosBackup: the manifest and the data are checked first, and a refusal has changed nothing."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from konverge.client import Invalid
from konverge.objects import from_dict
from konverge.operators.nacos.backup.backups import reads
from konverge.operators.nacos.backup.kinds import NacosBackup, NacosRestore
from konverge.operators.nacos.backup.manifest import SUFFIX
from konverge.sim.nacos.buckets import StoredFile
from tests.operators.nacos.backup.test_backups import by_mortals
from tests.operators.nacos.backup.test_restores import KIND, Restored
from tests.operators.nacos.backup.world import (
    BUCKET,
    CLAIM,
    KEY,
    MY,
    S3,
    BackupWorld,
    a_backed_up_nacos,
    condition,
    message,
    prepared,
)

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-69")]


async def orphaned(backups: BackupWorld, storage: dict[str, Any], host: str = "pg") -> tuple[Restored, str]:
    """A backup whose resource is gone, as are the data of the Nacos; and the path of the stored data."""
    database = backups.database(host)
    database.content.configs[KEY] = "a: 1"
    await backups.back_up(storage=storage)
    backup = await backups.until("Completed")
    await backups.delete()
    await backups.until_gone()
    del database.content.configs[KEY]
    return Restored(backups.world, backups.simulated), backup.status.path


async def restore(world: Restored, name: str = "back", **spec: Any) -> None:
    await world.create(KIND, name, {"nacosRef": {"name": "nacos"}, **spec})


def in_volume(path: str) -> dict[str, Any]:
    return {"volume": {"claimName": CLAIM, "path": path}}


async def test_from_a_volume_and_from_a_bucket() -> None:
    async with a_backed_up_nacos() as backups:
        await backups.bucket()
        world, path = await orphaned(backups, {"volume": {"claimName": CLAIM, "path": "deep"}})
        servers: list[int] = []
        world.watch_servers(servers)
        await restore(world, source=in_volume(path))
        restored = await world.restore_until("Completed")
        assert world.database().content.configs == {KEY: "a: 1"}
        assert message(restored) == f"Nacos nacos has the data of pvc://{CLAIM}/{path}"
        assert (restored.status.backup_uid, restored.status.claim_name, restored.status.path) == ("", CLAIM, path)
        assert world.simulated.jobs.done == ["nacos-backup", "nacos-inspect", "nacos-restore"]
        world.database().content.configs[KEY] = "a: 2"
        await backups.back_up("second", storage={"s3": S3})
        key = (await backups.until("Completed", "second")).status.path
        await backups.delete("second")
        await backups.until_gone("second")
        world.database().content.configs.clear()
        await world.ready()
        await restore(world, "again", source={"s3": {**S3, "key": key}})
        restored = await world.restore_until("Completed", "again")
        assert world.database().content.configs == {KEY: "a: 2"}
        assert message(restored) == f"Nacos nacos has the data of s3://{BUCKET}/{key}"
        assert servers == [0, 0]


async def test_refusals_change_nothing() -> None:
    async with a_backed_up_nacos() as backups:
        world, path = await orphaned(backups, {"volume": {"claimName": CLAIM}})
        (volume,) = world.simulated.jobs.volumes.values()
        full = f"/backup/{path}"
        good = msgspec.json.decode(volume[full + SUFFIX].data)
        pods = {pod.metadata.uid for pod in await world.world.pods()}
        world.database().content.configs[KEY] = "newer"

        async def refused(name: str, expected: str, words: str, **change: Any) -> None:
            volume[full + SUFFIX] = StoredFile(world.database().content, msgspec.json.encode({**good, **change}))
            await restore(world, name, source=in_volume(path), overwrite=True)
            failed = await world.restore_until("Failed", name)
            assert condition(failed) == ("False", expected), message(failed)
            assert words in message(failed)
            assert world.database().content.configs == {KEY: "newer"}
            assert not await world.marked()

        await refused("format", "ManifestInvalid", "has format 2", format=2)
        await refused("digest", "ChecksumMismatch", "is not what was stored", sha256="0" * 64)
        await refused("engine", "EngineMismatch", f"pvc://{CLAIM}/{path} is of mysql", engine="mysql")
        await refused("version", "VersionMismatch", "restore into version 3.1", nacosVersion="3.1.0")
        await refused("unknown", "VersionUnknown", "set spec.version", nacosVersion="")
        del volume[full + SUFFIX]
        await restore(world, "bare", source=in_volume(path), overwrite=True)
        assert condition(await world.restore_until("Failed", "bare")) == ("False", "ManifestMissing")
        assert {pod.metadata.uid for pod in await world.world.pods()} >= pods, "no server has stopped"
        assert world.simulated.jobs.done.count("nacos-restore") == 0


async def test_what_is_missing_is_waited_for() -> None:
    async with a_backed_up_nacos() as backups:
        await backups.bucket()
        world, path = await orphaned(backups, {"s3": S3})
        source = {"s3": {**S3, "key": path, "credentialsSecret": {"name": "later"}}}
        await restore(world, source=source)
        assert (await world.until_reason("CredentialsMissing", "back", KIND)).status.phase == "Pending"
        await world.world.secret("later", accessKeyId="konverge", secretAccessKey="wrong")
        await world.until_reason("InvalidCredentials", "back", KIND)
        await world.world.replace_secret("later", accessKeyId="konverge", secretAccessKey="open sesame")
        await world.restore_until("Completed")
        assert world.database().content.configs == {KEY: "a: 1"}


@pytest.mark.limit(180)
async def test_processes_of_one_write_each() -> None:
    async with prepared(MY) as backups:
        async with backups.world.operating():
            world, path = await orphaned(backups, {"volume": {"claimName": CLAIM}}, "my")
        await restore(world, source=in_volume(path))
        ended = ("Completed", "Failed")
        await by_mortals(world, lambda obj: obj is not None and obj.status.phase in ended, name="back", kind=KIND)
        assert (await world.get("back", KIND)).status.phase == "Completed"
        assert world.database("my").content.configs == {KEY: "a: 1"}
        assert world.simulated.jobs.done == ["nacos-backup", "nacos-inspect", "nacos-restore"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "either a NacosBackup (backupRef) or the place of its data (source)"),
        ({"backupRef": {"name": "first"}, "source": in_volume("a.dump")}, "either a NacosBackup"),
        ({"source": {}}, "either volume or s3"),
        ({"source": in_volume("../a.dump")}, "should match"),
        ({"source": {"s3": S3}}, "key"),
    ],
)
async def test_the_definition(spec: dict[str, Any], words: str) -> None:
    async with prepared() as backups:
        with pytest.raises(Invalid, match=re.escape(words)):
            await backups.create(KIND, "back", {"nacosRef": {"name": "nacos"}, **spec})


async def test_a_source_cannot_change() -> None:
    async with prepared() as backups:
        await backups.create(KIND, "back", {"nacosRef": {"name": "nacos"}, "source": in_volume("a.dump")})
        for change in ({"source": in_volume("b.dump")}, {"source": None, "backupRef": {"name": "first"}}):
            with pytest.raises(Invalid, match="cannot change"):
                await backups.patch("back", KIND, **change)


@pytest.mark.parametrize(
    ("storage", "source", "expected"),
    [
        ({"volume": {"claimName": "a"}}, {"volume": {"claimName": "a", "path": "x"}}, True),
        ({"volume": {"claimName": "a"}}, {"volume": {"claimName": "b", "path": "x"}}, False),
        ({"volume": {"claimName": "a"}}, {"volume": {"claimName": "a", "path": "y"}}, False),
        ({"volume": {"claimName": "a"}}, {"s3": {**S3, "key": "x"}}, False),
        ({"s3": S3}, {"volume": {"claimName": "a", "path": "x"}}, False),
        ({"s3": S3}, {"s3": {**S3, "endpoint": f"{S3['endpoint']}/", "key": "x"}}, True),
        ({"s3": {**S3, "endpoint": f"{S3['endpoint']}/"}}, {"s3": {**S3, "key": "x"}}, True),
        ({"s3": S3}, {"s3": {**S3, "key": "y"}}, False),
        ({"s3": S3}, {"s3": {**S3, "bucket": "other", "key": "x"}}, False),
    ],
)
def test_data_that_is_read_is_not_deleted(storage: dict[str, Any], source: dict[str, Any], expected: bool) -> None:
    nacos = {"nacosRef": {"name": "nacos"}}
    backup = from_dict(NacosBackup, {"spec": {**nacos, "storage": storage}, "status": {"path": "x"}})
    reader = from_dict(NacosRestore, {"spec": {**nacos, "source": source}})
    assert reads(reader, backup) is expected
    reader.status.phase = "Completed"
    assert not reads(reader, backup)
