"""Backups in a bucket: what is stored stays, what is refused is said, and what is deleted is its own."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from konverge.client import Invalid
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos.backup.manifest import SUFFIX
from konverge.sim.nacos.buckets import StoredFile
from tests.operators.nacos.backup.test_backups import by_mortals
from tests.operators.nacos.backup.test_restores import Restored
from tests.operators.nacos.backup.world import (
    BUCKET,
    CLAIM,
    EMBEDDED,
    ENDPOINT,
    KEY,
    MY,
    S3,
    BackupWorld,
    a_backed_up_nacos,
    condition,
    message,
    prepared,
)
from tests.operators.nacos.world import SPACE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-67")]
STORAGE: dict[str, Any] = {"s3": {**S3, "prefix": "prod"}}


async def test_a_backup_and_its_restore() -> None:
    async with a_backed_up_nacos() as backups:
        await backups.bucket()
        database = backups.database()
        database.content.configs[KEY] = "a: 1"
        await backups.back_up(storage=STORAGE)
        backup = await backups.until("Completed")
        status = backup.status
        assert status.path == f"prod/{SPACE}/nacos/first-{backup.metadata.uid[:8]}-1.dump"
        assert status.location == f"s3://{BUCKET}/{status.path}"
        stored = backups.objects()[status.path]
        assert (status.size, status.sha256) == (len(stored.data), stored.sha256)
        assert backups.everything() == {}, "nothing is in a volume"
        manifest = msgspec.json.decode(
            backups.simulated.jobs.storage.endpoints[ENDPOINT].buckets[BUCKET][status.path + SUFFIX].data
        )
        assert manifest == {
            "format": 1,
            "backup": f"{SPACE}/first",
            "nacos": "nacos",
            "nacosVersion": "2.4.3",
            "method": "Database",
            "engine": "postgresql",
            "schema": "until-2.4",
            "created": status.start_time,
            "size": status.size,
            "sha256": status.sha256,
        }
        del database.content.configs[KEY]
        world = Restored(backups.world, backups.simulated)
        await world.restore()
        restore = await world.restore_until("Completed")
        assert database.content.configs == {KEY: "a: 1"}
        assert (restore.status.claim_name, restore.status.path) == ("", status.path)
        assert restore.status.s3 == backup.spec.storage.s3


@pytest.mark.spec("N-61")
async def test_a_restore_that_cannot_read_its_data_stops_no_server() -> None:
    async with a_backed_up_nacos() as backups:
        endpoint = await backups.bucket()
        backups.database().content.configs[KEY] = "a: 1"
        await backups.back_up(storage=STORAGE)
        backup = await backups.until("Completed")
        world = Restored(backups.world, backups.simulated)
        pods = {pod.metadata.uid for pod in await world.world.pods() if pod.metadata.labels["app"] == "nacos"}
        endpoint.down = True
        await world.restore(overwrite=True)
        restore = await world.restore_until("Failed")
        assert condition(restore) == ("False", "EndpointUnreachable")
        endpoint.down = False
        await world.restore("other", overwrite=True)
        stored = endpoint.buckets[BUCKET]
        other = StoredFile(backups.database().content, b"other")
        manifest = msgspec.json.decode(stored[backup.status.path + SUFFIX].data, type=dict)
        manifest |= {"size": len(other.data), "sha256": other.sha256}
        stored[backup.status.path] = other
        stored[backup.status.path + SUFFIX] = StoredFile(other.content, msgspec.json.encode(manifest))
        restore = await world.restore_until("Failed", "other")
        assert condition(restore) == ("False", "ChecksumMismatch")
        assert "is not what NacosBackup first stored" in message(restore)
        after = {pod.metadata.uid for pod in await world.world.pods() if pod.metadata.labels["app"] == "nacos"}
        assert after == pods
        assert world.simulated.jobs.done.count("nacos-restore") == 0


async def test_configurations_alone() -> None:
    async with a_backed_up_nacos(EMBEDDED) as backups:
        await backups.bucket()
        await backups.back_up(storage=STORAGE, method="Configuration")
        backup = await backups.until("Completed")
        assert list(backups.objects()) == [backup.status.path]
        assert backup.status.path.endswith("-1.jsonl.gz")


class TestRefusals:
    async def test_an_endpoint_that_is_away_and_comes_back(self) -> None:
        async with a_backed_up_nacos() as backups:
            (await backups.bucket()).down = True
            await backups.back_up(storage=STORAGE)
            backup = await backups.until_reason("EndpointUnreachable")
            assert backup.status.phase == "Running"
            assert "tries again: https://s3.example does not answer" in message(backup)
            assert len(await backups.world.events("EndpointUnreachable")) == 1
            await backups.world.advance(120.0)
            backups.simulated.jobs.storage.endpoints[ENDPOINT].down = False
            backup = await backups.until("Completed", limit=600)
            assert list(backups.objects()) == [backup.status.path]
            assert len(await backups.world.events("EndpointUnreachable")) == 1

    async def test_one_that_stays_away(self) -> None:
        async with a_backed_up_nacos() as backups:
            (await backups.bucket()).down = True
            await backups.back_up(storage=STORAGE)
            while (backup := await backups.get()).status.phase != "Failed":
                await backups.world.advance(60.0)
            assert condition(backup) == ("False", "EndpointUnreachable")
            assert "does not answer" in message(backup)
            assert backups.objects() == {}

    async def test_a_job_whose_time_is_over_says_what_was_wrong(self) -> None:
        async with a_backed_up_nacos() as backups:
            (await backups.bucket()).down = True
            await backups.back_up(storage=STORAGE, timeoutSeconds=60)
            while (backup := await backups.get()).status.phase != "Failed":
                await backups.world.advance(60.0)
            assert condition(backup) == ("False", "EndpointUnreachable")
            assert "does not answer" in message(backup)

    @pytest.mark.parametrize(
        ("fault", "reason", "words"),
        [
            ({"buckets": {}}, "BucketNotFound", "create it"),
            ({"denied": True}, "AccessDenied", "allow s3:PutObject"),
            ({"region": "eu-west-1"}, "WrongRegion", "set region: eu-west-1"),
            ({"untrusted": True}, "TLSNotTrusted", "caSecret"),
            ({"users": {"konverge": "another"}}, "InvalidCredentials", "correct the Secret"),
        ],
    )
    async def test_what_the_condition_says(self, fault: dict[str, Any], reason: str, words: str) -> None:
        async with a_backed_up_nacos() as backups:
            endpoint = await backups.bucket()
            for name, value in fault.items():
                setattr(endpoint, name, value)
            await backups.back_up(storage=STORAGE)
            backup = await backups.until_reason(reason)
            assert words in message(backup)
            assert "open sesame" not in message(backup)

    async def test_a_secret_that_is_missing_is_waited_for(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.bucket(secret=False)
            await backups.back_up(storage=STORAGE)
            backup = await backups.until_reason("CredentialsMissing")
            assert (backup.status.phase, message(backup)) == ("Pending", f"there is no Secret {SPACE}/s3; create it")
            await backups.world.replace_secret("s3", accessKeyId="konverge")
            await backups.world.advance(20.0)
            assert message(await backups.get()) == "Secret s3 has no secretAccessKey; add it"
            await backups.world.replace_secret("s3", accessKeyId="konverge", secretAccessKey="open sesame")
            await backups.until("Completed")

    async def test_a_secret_that_is_rotated_between_two_attempts(self) -> None:
        async with a_backed_up_nacos() as backups:
            endpoint = await backups.bucket()
            endpoint.users = {"konverge": "new"}
            await backups.back_up(storage=STORAGE)
            await backups.until_reason("InvalidCredentials")
            await backups.world.replace_secret("s3", accessKeyId="konverge", secretAccessKey="new")
            await backups.until("Completed")
            assert len(backups.objects()) == 1

    @pytest.mark.parametrize(
        ("storage", "words"),
        [
            ({"s3": S3, "volume": {"claimName": CLAIM}}, "either volume or s3"),
            ({"s3": {**S3, "endpoint": "s3.example"}}, "should match"),
            ({"s3": {**S3, "endpoint": "https://user:word@s3.example"}}, "should match"),
            ({"s3": {**S3, "bucket": "A_B"}}, "should match"),
            ({"s3": {**S3, "prefix": "../x"}}, "should match"),
            ({"s3": {**S3, "credentialsSecret": {"name": "s3", "accessKeyIdKey": "../x"}}}, "should match"),
        ],
    )
    async def test_the_definition(self, storage: dict[str, Any], words: str) -> None:
        async with prepared() as backups:
            with pytest.raises(Invalid, match=re.escape(words)):
                await backups.back_up(storage=storage)


class TestDeletion:
    async def test_the_objects_go_and_those_of_others_stay(self) -> None:
        async with a_backed_up_nacos() as backups:
            endpoint = await backups.bucket()
            first = await backups.back_up(storage=STORAGE, deletionPolicy="Delete")
            begin = f"first-{first.metadata.uid[:8]}-1"
            await backups.back_up(begin, storage=STORAGE)
            await backups.until("Completed", begin)
            backup = await backups.until("Completed")
            other = StoredFile(backups.database().content, b"x")
            endpoint.buckets[BUCKET][f"{backup.status.path}.old"] = other
            await backups.delete()
            await backups.until_gone()
            left = (await backups.get(begin)).status.path
            assert set(backups.objects()) == {left, f"{backup.status.path}.old"}
            assert f"{backup.status.path}{SUFFIX}" not in endpoint.buckets[BUCKET]
            assert f"{left}{SUFFIX}" in endpoint.buckets[BUCKET]

    async def test_retain(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.bucket()
            await backups.back_up(storage=STORAGE)
            backup = await backups.until("Completed")
            await backups.delete()
            await backups.until_gone()
            assert list(backups.objects()) == [backup.status.path]

    async def test_an_endpoint_that_is_away_is_waited_for(self) -> None:
        async with a_backed_up_nacos() as backups:
            endpoint = await backups.bucket()
            await backups.back_up(storage=STORAGE, deletionPolicy="Delete")
            await backups.until("Completed")
            endpoint.down = True
            await backups.delete()
            backup = await backups.until_reason("DeletionFailed")
            assert "does not answer" in message(backup)
            assert "deletionPolicy: Retain ends the wait" in message(backup)
            endpoint.down = False
            await backups.until_gone(limit=900)
            assert backups.objects() == {}

    async def test_a_secret_that_is_gone_is_waited_for_and_named(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.bucket()
            await backups.back_up(storage=STORAGE, deletionPolicy="Delete")
            await backups.until("Completed")
            await backups.client.delete(Secret, "s3", SPACE)
            await backups.delete()
            backup = await backups.until_reason("CredentialsMissing")
            assert message(backup).startswith(f"there is no Secret {SPACE}/s3; create it; deletionPolicy: Retain")
            await backups.patch("first", deletionPolicy="Retain")
            await backups.until_gone()
            assert len(backups.objects()) == 1

    async def test_of_a_schedule(self) -> None:
        """What has had its time goes from where it is, though the schedule stores elsewhere by now."""
        async with a_backed_up_nacos() as backups:
            await backups.bucket()
            spec = {
                "nacosRef": {"name": "nacos"},
                "storage": STORAGE,
                "schedule": "* * * * *",
                "retention": {"keepLast": 1},
            }
            await backups.create("NacosBackupSchedule", "often", spec)
            while len(backups.objects()) < 1:
                await backups.world.advance(5.0)
            (old,) = backups.objects()
            await backups.patch("often", "NacosBackupSchedule", storage={"s3": None, "volume": {"claimName": CLAIM}})
            while old in backups.objects():
                await backups.world.advance(5.0)
            assert backups.objects() == {}
            assert backups.files()


@pytest.mark.limit(120)
async def test_processes_of_one_write_each() -> None:
    async with prepared(MY) as backups:
        await backups.bucket()
        await backups.back_up(storage=STORAGE, deletionPolicy="Delete")
        await by_mortals(backups, lambda backup: backup is not None and backup.status.phase == "Completed")
        backup = await backups.get()
        assert list(backups.objects()) == [backup.status.path]
        assert backups.simulated.jobs.done == ["nacos-backup"]
        await backups.delete()
        await by_mortals(backups, lambda backup: backup is None)
        assert backups.objects() == {}


async def test_a_pod_that_is_killed_between_the_data_and_its_manifest() -> None:
    async with a_backed_up_nacos() as backups:
        await backups.bucket()
        backups.simulated.jobs.cut_off = 99
        await backups.back_up(storage=STORAGE)
        while not backups.objects():
            await backups.world.advance(1.0)
        (path,) = backups.objects()
        await restore_of(backups, "half", path)
        restore = await backups.until("Failed", "half", "NacosRestore", limit=900)
        assert condition(restore) == ("False", "ManifestMissing")
        backups.simulated.jobs.cut_off = 0
        await backups.until("Completed", limit=900)
        await restore_of(backups, "whole", path, overwrite=True)
        await backups.until("Completed", "whole", "NacosRestore", limit=900)


async def restore_of(backups: BackupWorld, name: str, key: str, **spec: Any) -> None:
    given = {"nacosRef": {"name": "nacos"}, "source": {"s3": {**S3, "key": key}}}
    await backups.create("NacosRestore", name, {**given, **spec})
