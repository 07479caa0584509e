"""NacosBackup: one Job dumps the database to a volume, and the status says what was stored."""

from __future__ import annotations

import re
from typing import Any

import pytest

from konverge.client import Invalid, MergePatch
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.operators.nacos.resource import ALLOW, PAUSE, Nacos
from tests.operators.nacos.backup.world import (
    CLAIM,
    EMBEDDED,
    KEY,
    MY,
    BackupWorld,
    a_backed_up_nacos,
    condition,
    message,
    prepared,
)
from tests.operators.nacos.content.world import APP, ContentWorld
from tests.operators.nacos.test_killed import Mortal
from tests.operators.nacos.world import SPACE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-56")]
TWO = "database=postgresql://pg:5432/two"


async def test_a_backup_of_postgresql() -> None:
    async with a_backed_up_nacos() as backups:
        backups.database().content.configs[KEY] = "a: 1"
        await backups.back_up(storage={"volume": {"claimName": CLAIM, "path": "deep/down"}})
        running = await backups.until("Running")
        assert condition(running) == ("False", "Running") or condition(running) == ("False", "Started")
        backup = await backups.until("Completed")
        status = backup.status
        uid = backup.metadata.uid[:8]
        assert status.path == f"deep/down/nacos/first-{uid}-1.dump"
        assert status.location == f"pvc://{CLAIM}/{status.path}"
        file = backups.files()[status.path]
        assert file.content.configs == {KEY: "a: 1"}
        assert (status.size, status.sha256) == (len(file.data), file.sha256)
        assert (status.engine, status.nacos_version, status.schema) == ("postgresql", "2.4.3", "until-2.4")
        assert status.nacos_uid == (await backups.world.nacos("nacos")).metadata.uid
        assert status.image == "postgres:17"
        assert status.start_time < status.completion_time
        assert status.observed_generation == 1
        assert condition(backup) == condition(backup, "Complete") == ("True", "Stored")
        assert condition(backup, "Failed") == ("", "")
        assert message(backup) == f"{status.size} bytes are at {status.location}"
        assert await backups.world.events("Stored") == [message(backup)]
        await backups.world.advance(5.0)
        assert await backups.jobs() == [], "its result is in the status"


async def test_a_backup_of_mysql() -> None:
    async with a_backed_up_nacos(MY) as backups:
        await backups.back_up(image="mariadb:11")
        backup = await backups.until("Completed")
        assert backup.status.path.endswith("-1.sql.gz")
        assert (backup.status.engine, backup.status.schema) == ("mysql", "until-2.4")
        assert backup.status.image == "mariadb:11"
        assert set(backups.files()) == {backup.status.path}


async def test_an_embedded_database_has_no_dump() -> None:
    async with a_backed_up_nacos(EMBEDDED) as backups:
        await backups.back_up()
        backup = await backups.until("Failed")
        assert condition(backup) == ("False", "EmbeddedDatabase")
        assert condition(backup, "Failed") == ("True", "EmbeddedDatabase")
        assert "choose method: Configuration" in message(backup)
        assert backup.status.completion_time
        assert await backups.jobs() == []


async def test_a_nacos_that_hibernates_is_backed_up() -> None:
    async with a_backed_up_nacos() as backups:
        await backups.world.change("nacos", hibernate=True)
        await backups.world.until("nacos", "Hibernated")
        await backups.back_up()
        backup = await backups.until("Completed")
        assert backup.status.nacos_version == "2.4.3"


async def test_what_is_missing_is_waited_for() -> None:
    async with a_backed_up_nacos() as backups:
        await backups.client.delete(PersistentVolumeClaim, CLAIM, SPACE)
        await backups.back_up()
        await backups.back_up("other", nacosRef={"name": "absent"})
        backup = await backups.until_reason("VolumeMissing")
        assert backup.status.phase == "Pending"
        assert "create it" in message(backup)
        other = await backups.until_reason("NacosNotFound", "other")
        assert message(other) == f"there is no Nacos {SPACE}/absent"
        assert await backups.jobs() == []
        await backups.world.advance(100.0)
        assert len(await backups.world.events("VolumeMissing")) == 1
        await backups.claim()
        await backups.until("Completed")


async def test_two_backups_at_once_have_data_of_their_own() -> None:
    async with a_backed_up_nacos() as backups:
        for name in ("first", "second"):
            await backups.back_up(name)
        paths = {(await backups.until("Completed", name)).status.path for name in ("first", "second")}
        assert set(backups.files()) == paths
        assert len(paths) == 2


async def test_a_job_that_fails() -> None:
    async with a_backed_up_nacos() as backups:
        backups.simulated.jobs.failure = "pg_dump: error: could not write: No space left on device"
        await backups.back_up()
        backup = await backups.until("Failed", limit=600)
        assert condition(backup, "Failed") == ("True", "JobFailed")
        assert "No space left on device" in message(backup)
        assert "backoff limit" in message(backup)
        assert backups.files() == {}
        assert len(await backups.jobs()) == 1, "its logs say why"
        backups.simulated.jobs.failure = ""
        await backups.world.advance(600.0)
        assert (await backups.get()).status.phase == "Failed", "for good"


async def test_a_database_that_is_away() -> None:
    async with a_backed_up_nacos() as backups:
        backups.world.databases.servers["pg", 5432].down = True
        await backups.back_up()
        backup = await backups.until("Failed", limit=600)
        assert "Connection refused" in message(backup)


async def test_a_pod_that_does_not_start_is_reported() -> None:
    async with a_backed_up_nacos() as backups:
        await backups.back_up(image="registry.invalid/postgres:17", timeoutSeconds=60)
        backup = await backups.until_reason("PodWaiting")
        assert backup.status.phase == "Running"
        assert "registry.invalid/postgres:17" in message(backup)
        failed = await backups.until("Failed")
        assert "deadline" in message(failed)


class TestConfiguration:
    pytestmark = pytest.mark.spec("N-62")

    @pytest.mark.parametrize("spec", [EMBEDDED, MY], ids=["embedded", "mysql"])
    async def test_there_and_back(self, spec: dict[str, Any]) -> None:
        async with a_backed_up_nacos(spec) as backups:
            servers = ContentWorld(backups.world, backups.simulated)
            await servers.servers.publish(APP, "a: 1", "yaml", "")
            await servers.servers.create_namespace("dev", "dev", "")
            await backups.back_up(method="Configuration", deletionPolicy="Delete")
            backup = await backups.until("Completed")
            assert backup.status.path.endswith("-1.jsonl.gz")
            assert backup.status.image.startswith("konverge:")
            assert set(backups.files()) == {backup.status.path}
            uids = await backups.world.uids()
            await servers.servers.publish(APP, "a: 2", "yaml", "")
            restore = {"nacosRef": {"name": "nacos"}, "backupRef": {"name": "first"}}
            await backups.create("NacosRestore", "refused", restore)
            refused = await backups.until("Failed", "refused", "NacosRestore")
            assert "overwrite: true" in message(refused)
            assert await servers.content() == "a: 2"
            await backups.create("NacosRestore", "back", {**restore, "overwrite": True})
            restored = await backups.until("Completed", "back", "NacosRestore")
            assert restored.status.method == "Configuration"
            assert await servers.content() == "a: 1"
            assert await backups.world.uids() == uids, "no server was stopped"
            await backups.delete()
            await backups.until_gone()
            assert backups.files() == {}

    async def test_servers_that_sleep_are_waited_for(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.world.change("nacos", hibernate=True)
            await backups.world.until("nacos", "Hibernated")
            await backups.back_up(method="Configuration")
            waiting = await backups.until_reason("NacosHibernated")
            assert waiting.status.phase == "Pending"
            await backups.world.change("nacos", hibernate=False)
            await backups.until("Completed")

    async def test_the_job(self) -> None:
        async with a_backed_up_nacos({**EMBEDDED, "adminCredentialsSecretRef": {"name": "admin"}}) as backups:
            backups.simulated.jobs.duration = 60.0
            await backups.back_up(method="Configuration", image="registry/konverge:1")
            await backups.until_reason("Running")
            (job,) = [job for job in await backups.jobs() if "-backup-" in job.metadata.name]
            container = job.spec.template.spec.containers[0]
            assert container.image == "registry/konverge:1"
            assert container.command == ["python", "-m", "konverge.operators.nacos.backup.transfer", "backup"]
            plain = {variable.name: variable.value for variable in container.env if variable.value_from is None}
            assert (plain["NACOS_ADDRESS"], plain["NACOS_MAJOR"]) == (f"nacos.{SPACE}.svc", "2")
            secrets = {
                variable.name: variable.value_from.secret_key_ref
                for variable in container.env
                if variable.value_from is not None
            }
            assert {name: ref.name for name, ref in secrets.items() if ref is not None} == {
                "IDENTITY_KEY": "nacos-auth",
                "IDENTITY_VALUE": "nacos-auth",
                "ADMIN_USERNAME": "admin",
                "ADMIN_PASSWORD": "admin",
            }
            assert all(ref is not None and ref.optional for ref in secrets.values())


class TestLostJobs:
    async def test_a_job_that_others_delete_is_made_again(self) -> None:
        async with a_backed_up_nacos() as backups:
            backups.simulated.jobs.duration = 30.0
            await backups.back_up()
            await backups.until_reason("Running")
            (job,) = await backups.jobs()
            await backups.client.delete(Job, job.metadata.name, SPACE, propagation="Background")
            backup = await backups.until("Completed")
            assert backup.status.attempt == 2
            assert backup.status.path.endswith("-2.dump")
            assert backup.status.sha256 == backups.files()[backup.status.path].sha256
            assert await backups.world.events("JobLost")

    async def test_not_for_ever(self) -> None:
        async with a_backed_up_nacos() as backups:
            backups.simulated.jobs.duration = 300.0
            await backups.back_up()
            for attempt in (1, 2, 3):
                await backups.world.advance(20.0)
                assert (await backups.get()).status.attempt == attempt
                for job in await backups.jobs():
                    await backups.client.delete(Job, job.metadata.name, SPACE, propagation="Background")
            backup = await backups.until("Failed")
            assert condition(backup) == ("False", "JobLost")
            assert "3 Jobs were lost" in message(backup)

    async def test_a_result_that_cannot_be_read(self) -> None:
        async with a_backed_up_nacos() as backups:
            backups.simulated.jobs.silent = True
            await backups.back_up()
            while (await backups.get()).status.attempt < 2:
                await backups.world.advance(1.0)
            backups.simulated.jobs.silent = False
            backup = await backups.until("Completed")
            assert backup.status.path.endswith(f"-{backup.status.attempt}.dump")
            assert backup.status.sha256 == backups.files()[backup.status.path].sha256

    async def test_a_job_of_others_is_left_alone(self) -> None:
        async with prepared() as backups:
            backup = await backups.back_up()
            name = f"first-backup-{backup.metadata.uid[:8]}-1"
            pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
            body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": SPACE}}
            await backups.client.create({**body, "spec": {"template": {"spec": pod}}})
            async with backups.world.operating():
                backup = await backups.until_reason("NotOwned")
                assert "belongs to others" in message(backup)
                assert backups.files() == {}
                await backups.client.delete(Job, name, SPACE, propagation="Background")
                await backups.until("Completed")


async def test_a_nacos_that_is_replaced_meanwhile() -> None:
    async with a_backed_up_nacos() as backups:
        backups.simulated.jobs.duration = 60.0
        await backups.back_up()
        await backups.until_reason("Running")
        await backups.client.delete(Nacos, "nacos", SPACE)
        await backups.world.advance(10.0)
        (job,) = [job for job in await backups.jobs() if "-backup-" in job.metadata.name]
        await backups.client.delete(Job, job.metadata.name, SPACE, propagation="Background")
        await backups.until_reason("NacosNotFound")
        await backups.world.up("nacos", {**EMBEDDED})
        backup = await backups.until("Failed")
        assert condition(backup) == ("False", "NacosReplaced")


async def test_a_nacos_that_moves_to_another_engine_meanwhile() -> None:
    """The path and the manifest name the first one."""
    async with a_backed_up_nacos() as backups:
        backups.simulated.jobs.duration = 60.0
        await backups.back_up()
        await backups.until_reason("Running")
        patch = {
            "metadata": {"annotations": {ALLOW: "database=mysql://my:3306/nacos"}},
            "spec": {"database": MY["database"], "postgres": None},
        }
        await backups.world.client.patch(Nacos, "nacos", MergePatch(patch), SPACE)
        (job,) = [job for job in await backups.jobs() if "-backup-" in job.metadata.name]
        await backups.client.delete(Job, job.metadata.name, SPACE, propagation="Background")
        backup = await backups.until("Failed")
        assert condition(backup) == ("False", "EngineChanged")
        assert "has moved from postgresql to mysql" in message(backup)
        assert not any(path.endswith(".sql.gz") for path in backups.files())


@pytest.mark.spec("N-83")
class TestAnEditThatIsHeld:
    """A dump of the database that it names would be kept as one of the servers'."""

    async def test_of_another_database(self) -> None:
        async with a_backed_up_nacos() as backups:
            backups.database().content.configs[KEY] = "a: 1"
            backups.world.databases.servers["pg", 5432].add("two", "nacos", "word")
            await backups.world.change("nacos", postgres={"database": "two"})
            await backups.world.advance(30.0)
            await backups.back_up()
            waiting = await backups.until_reason("ChangeHeld")
            assert waiting.status.phase == "Pending"
            assert message(waiting) == (
                "Nacos nacos works with postgresql://pg:5432/nacos, and its spec names postgresql://pg:5432/two: take "
                "the edit back, or allow it"
            )
            await backups.world.advance(60.0)
            assert backups.files() == {}
            assert await backups.jobs() == []
            await backups.world.change("nacos", postgres={"database": "nacos"})
            await backups.until("Completed")
            (file,) = backups.files().values()
            assert file.content.configs == {KEY: "a: 1"}

    async def test_of_another_mysql_while_it_is_paused(self) -> None:
        async with a_backed_up_nacos(MY) as backups:
            backups.world.databases.servers["my", 3306].add("two", "nacos", "word")
            paused = MergePatch({"metadata": {"annotations": {PAUSE: "true"}}})
            await backups.world.client.patch(Nacos, "nacos", paused, SPACE)
            await backups.world.change("nacos", database={"mysqlDb": "two"})
            await backups.back_up()
            assert "mysql://my:3306/two" in message(await backups.until_reason("ChangeHeld"))
            assert backups.files() == {}

    async def test_of_another_engine_does_not_end_a_backup(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.world.change("nacos", database={"type": "embedded"}, postgres={"host": ""})
            await backups.back_up()
            await backups.until_reason("ChangeHeld")
            await backups.world.change("nacos", database={"type": "postgresql"}, postgres={"host": "pg"})
            await backups.until("Completed")

    async def test_before_a_lost_job_is_made_again(self) -> None:
        async with a_backed_up_nacos() as backups:
            backups.world.databases.servers["pg", 5432].add("two", "nacos", "word")
            backups.simulated.jobs.duration = 60.0
            await backups.back_up()
            await backups.until("Running")
            await backups.world.change("nacos", postgres={"database": "two"})
            await backups.world.advance(10.0)
            (job,) = await backups.jobs()
            await backups.client.delete(Job, job.metadata.name, SPACE, propagation="Background")
            await backups.until_reason("ChangeHeld")
            assert await backups.jobs() == []

    async def test_the_configurations_come_from_the_servers(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.world.change("nacos", postgres={"database": "two"})
            await backups.world.advance(30.0)
            await backups.back_up(method="Configuration")
            await backups.until("Completed")

    @pytest.mark.parametrize("hibernate", [False, True], ids=["awake", "asleep"])
    async def test_once_it_is_allowed(self, hibernate: bool) -> None:
        """In force with servers that run by the next step, and with others when it is allowed."""
        async with a_backed_up_nacos() as backups:
            server = backups.world.databases.servers["pg", 5432]
            server.add("two", "nacos", "word")
            await backups.world.change("nacos", hibernate=hibernate)
            await backups.world.until("nacos", "Hibernated" if hibernate else "Running")
            await backups.world.change("nacos", postgres={"database": "two"})
            await backups.back_up()
            await backups.until_reason("ChangeHeld")
            server.databases["two"].content.configs[KEY] = "b: 1"
            for name, reason in (("database=postgresql://pg:5432/three", "ChangeHeld"), (TWO, "Stored")):
                allowed = MergePatch({"metadata": {"annotations": {ALLOW: name}}})
                await backups.world.client.patch(Nacos, "nacos", allowed, SPACE)
                await backups.world.advance(40.0)
                assert condition(await backups.get())[1] == reason
            (file,) = backups.files().values()
            assert file.content.configs == {KEY: "b: 1"}

    async def test_an_allowance_counts_when_the_servers_have_followed(self) -> None:
        async with a_backed_up_nacos() as backups:
            backups.world.databases.servers["pg", 5432].add("two", "nacos", "word")
            patch = {
                "metadata": {"annotations": {ALLOW: TWO, PAUSE: "true"}},
                "spec": {"postgres": {"database": "two"}},
            }
            await backups.world.client.patch(Nacos, "nacos", MergePatch(patch), SPACE)
            await backups.back_up()
            await backups.until_reason("ChangeHeld")
            awake = MergePatch({"metadata": {"annotations": {PAUSE: None}}})
            await backups.world.client.patch(Nacos, "nacos", awake, SPACE)
            await backups.until("Completed")


@pytest.mark.parametrize("name", ["a" * 63, "b." * 31 + "b", "x" * 253])
async def test_long_names(name: str) -> None:
    async with a_backed_up_nacos() as backups:
        backup = await backups.back_up(name, deletionPolicy="Delete")
        await backups.until("Running", name)
        while not await backups.jobs():
            await backups.world.advance(1.0)
        (job,) = await backups.jobs()
        assert len(job.metadata.name) <= 63
        assert backup.metadata.uid[:8] in job.metadata.name
        await backups.until("Completed", name)
        await backups.delete(name)
        await backups.until_gone(name)
        assert backups.files() == {}


@pytest.mark.limit(120)
async def test_processes_of_one_write_each() -> None:
    """The operator is killed after every write: one Job, one file, one result."""
    async with prepared() as backups:
        await backups.back_up(deletionPolicy="Delete")
        lives = await by_mortals(backups, lambda backup: backup is not None and backup.status.phase == "Completed")
        assert lives >= 3
        backup = await backups.get()
        assert backup.status.attempt == 1
        assert list(backups.files()) == [backup.status.path]
        assert backups.simulated.jobs.done == ["nacos-backup"]
        await backups.delete()
        await by_mortals(backups, lambda backup: backup is None)
        assert backups.files() == {}


async def by_mortals(backups: BackupWorld, holds: Any, *, name: str = "first", kind: str = "NacosBackup") -> int:
    """Processes of one write each, until the resource is so; how many there were."""
    for lives in range(80):
        client = Mortal(backups.client, 1)
        async with backups.world.operating(client=client):
            for _ in range(60):
                await backups.world.advance(1.0)
                if holds(None if await backups.gone(name, kind) else await backups.get(name, kind)):
                    return lives
                if client.calls.dead.is_set():
                    break
    raise AssertionError((await backups.get(name, kind)).status)


class TestDeletion:
    pytestmark = pytest.mark.spec("N-57")

    async def test_the_data_stays_by_default(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.back_up()
            backup = await backups.until("Completed")
            await backups.delete()
            await backups.until_gone()
            assert set(backups.files()) == {backup.status.path}
            assert await backups.world.events("Retained") == [f"the data stays at {backup.status.location}"]

    async def test_or_is_deleted_by_a_job(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.back_up("other")
            other = await backups.until("Completed", "other")
            await backups.back_up(deletionPolicy="Delete")
            backup = await backups.until("Completed")
            await backups.delete()
            await backups.until_gone()
            assert set(backups.files()) == {other.status.path}
            assert await backups.world.events("DataDeleted") == [f"the data at {backup.status.location} was deleted"]

    async def test_with_a_nacos_that_is_gone(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.back_up(deletionPolicy="Delete")
            await backups.until("Completed")
            await backups.client.delete(Nacos, "nacos", SPACE)
            await backups.delete()
            await backups.until_gone()
            assert backups.files() == {}

    async def test_while_it_is_being_made(self) -> None:
        """What is being written is not left behind."""
        async with a_backed_up_nacos() as backups:
            backups.simulated.jobs.duration, backups.simulated.jobs.stop = 60.0, 10.0
            await backups.back_up(deletionPolicy="Delete")
            await backups.until_reason("Running")
            await backups.delete()
            await backups.world.advance(8.0)
            assert backups.simulated.jobs.done == ["nacos-backup"], "its pod is still there"
            await backups.until_gone()
            assert backups.simulated.jobs.done == ["nacos-backup", "nacos-delete"]
            assert backups.files() == {}

    async def test_before_it_began(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.back_up(nacosRef={"name": "absent"}, deletionPolicy="Delete")
            await backups.until_reason("NacosNotFound")
            await backups.delete()
            await backups.until_gone(limit=5)
            assert backups.simulated.jobs.done == []

    async def test_a_volume_that_is_gone_does_not_hold_it(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.back_up(deletionPolicy="Delete")
            await backups.until("Completed")
            await backups.client.delete(PersistentVolumeClaim, CLAIM, SPACE)
            await backups.delete()
            await backups.until_gone(limit=20)
            assert "is gone" in (await backups.world.events("Released"))[0]

    async def test_a_job_that_fails_is_tried_again(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.back_up(deletionPolicy="Delete")
            await backups.until("Completed")
            backups.simulated.jobs.failure = "rm: Read-only file system"
            await backups.delete()
            backup = await backups.until_reason("DeletionFailed")
            assert "Read-only file system" in message(backup)
            assert "deletionPolicy: Retain ends the wait" in message(backup)
            deletion = next(job for job in await backups.jobs() if job.metadata.name.startswith("first-delete-"))
            image = deletion.spec.template.spec.containers[0].image
            assert image == backup.status.image, "no other: this one could be pulled"
            backups.simulated.jobs.failure = ""
            await backups.until_gone(limit=400)
            assert backups.files() == {}

    async def test_retain_ends_the_wait(self) -> None:
        async with a_backed_up_nacos() as backups:
            await backups.back_up(deletionPolicy="Delete")
            await backups.until("Completed")
            backups.simulated.jobs.failure = "rm: Read-only file system"
            await backups.delete()
            await backups.until_reason("DeletionFailed")
            await backups.patch("first", deletionPolicy="Retain")
            await backups.until_gone(limit=20)
            assert len(backups.files()) == 1


class TestTheDefinition:
    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            ({"storage": {}}, "either volume or s3"),
            ({"storage": {"volume": {"claimName": CLAIM, "path": "../up"}}}, "should match"),
            ({"storage": {"volume": {"claimName": CLAIM, "path": "/root"}}}, "should match"),
            ({"storage": {"volume": {"claimName": CLAIM, "path": "a/../b"}}}, "should match"),
            ({"storage": {"volume": {"claimName": "A b"}}}, "should match"),
            ({"timeoutSeconds": 59}, "greater than or equal to 60"),
            ({"method": "Magic"}, "Unsupported value"),
            ({"nacosRef": {"name": ""}}, "at least 1 char"),
        ],
    )
    async def test_refuses(self, spec: dict[str, Any], words: str) -> None:
        async with prepared() as backups:
            with pytest.raises(Invalid, match=re.escape(words)):
                await backups.back_up(**spec)

    async def test_only_the_deletion_policy_changes(self) -> None:
        async with prepared() as backups:
            await backups.back_up()
            await backups.patch("first", deletionPolicy="Delete")
            for spec in (
                {"nacosRef": {"name": "other"}},
                {"storage": {"volume": {"claimName": "other"}}},
                {"image": "other"},
                {"timeoutSeconds": 61},
            ):
                with pytest.raises(Invalid, match="cannot change; create another resource"):
                    await backups.patch("first", **spec)


async def test_what_the_job_may_do() -> None:
    """Pod Security's standard "restricted", no token, and nothing secret outside of Secrets."""
    async with a_backed_up_nacos() as backups:
        backups.simulated.jobs.duration = 60.0
        await backups.back_up(timeoutSeconds=120)
        await backups.until_reason("Running")
        (job,) = [job for job in await backups.jobs() if "-backup-" in job.metadata.name]
        pods = await backups.client.list(Pod, SPACE, label_selector=f"app={job.metadata.name}")
        (pod,) = pods.items
        assert pod.spec.automount_service_account_token is False
        context, container = pod.spec.security_context, pod.spec.containers[0]
        assert context is not None
        assert container.security_context is not None
        assert (context.run_as_non_root, context.fs_group, context.run_as_user) == (True, 65532, 65532)
        assert container.security_context.read_only_root_filesystem
        assert container.security_context.allow_privilege_escalation is False
        assert "word" not in {variable.value for variable in container.env}
        assert all("$" in word or "word" not in word.split() for word in container.command)
        assert {v.name for v in container.env if v.value_from is not None} == {"PGUSER", "PGPASSWORD"}
        assert (job.spec.active_deadline_seconds, job.spec.backoff_limit) == (120, 2)
        assert job.spec.pod_replacement_policy == "Failed"
