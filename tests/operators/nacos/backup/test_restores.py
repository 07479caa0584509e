"""NacosRestore: servers stop, one Job replaces the database, servers start; never without need, never twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from konverge.client import Invalid, MergePatch, NotFound
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.operators.nacos import names
from konverge.operators.nacos.backup import restores
from konverge.operators.nacos.resource import ALLOW, PAUSE, Nacos
from tests.operators.nacos.backup.test_backups import by_mortals
from tests.operators.nacos.backup.world import (
    CLAIM,
    EMBEDDED,
    KEY,
    MY,
    PG,
    BackupWorld,
    a_backed_up_nacos,
    condition,
    message,
    prepared,
)
from tests.operators.nacos.world import SPACE, is_ready

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-60")]
KIND = "NacosRestore"


class Restored(BackupWorld):
    async def restore(self, name: str = "back", **spec: Any) -> Any:
        given = {"nacosRef": {"name": "nacos"}, "backupRef": {"name": "first"}}
        return await self.create(KIND, name, {**given, **spec})

    async def restore_until(self, phase: str, name: str = "back") -> Any:
        return await self.until(phase, name, KIND, limit=900)

    async def ready(self, name: str = "nacos") -> Nacos:
        for _ in range(300):
            nacos = await self.world.nacos(name)
            if nacos.status.phase == "Running" and is_ready(nacos):
                return nacos
            await self.world.advance(1.0)
        raise AssertionError(nacos.status)

    async def marked(self, name: str = "nacos") -> bool:
        return names.RESTORE in (await self.world.nacos(name)).metadata.annotations

    async def keeps_away(self, name: str) -> bool:
        """Whether no server runs, by the mark of this restore."""
        mark = (await self.world.nacos("nacos")).metadata.annotations.get(names.RESTORE, "")
        return mark.startswith(f"{name}/") and not await self.world.pods()

    def phase_of(self, backup: str) -> str:
        stored = self.world.cluster.server.objects.scan("nacos.io", "nacosbackups")
        (found,) = (item for item in stored if item["metadata"]["name"] == backup)
        return str(found["status"]["phase"])

    async def restoring_pods(self) -> list[Pod]:
        pods = (await self.client.list(Pod, SPACE)).items
        return [pod for pod in pods if "-restore-" in pod.metadata.name and pod.status.phase == "Running"]

    def watch_servers(self, seen: list[int]) -> None:
        """Note how many servers there are whenever a restore changes the database."""

        def note(env: dict[str, str]) -> None:
            pods = self.world.cluster.server.objects.scan("", "pods")
            seen.append(sum(pod["metadata"].get("labels", {}).get("app") == "nacos" for pod in pods))

        self.simulated.jobs.restoring = note


async def stored(backups: BackupWorld, host: str = "pg") -> Restored:
    """A backup of one configuration, which is lost after it."""
    database = backups.database(host)
    database.content.configs[KEY] = "a: 1"
    await backups.back_up()
    await backups.until("Completed")
    del database.content.configs[KEY]
    return Restored(backups.world, backups.simulated)


@asynccontextmanager
async def half_restored() -> AsyncIterator[Restored]:
    """The restore `back` has broken off, and keeps the servers away."""
    async with a_backed_up_nacos(MY) as backups:
        world = await stored(backups, "my")
        world.simulated.jobs.broken_off = 3
        await world.restore()
        await world.restore_until("Failed")
        world.simulated.jobs.broken_off = 0
        yield world


@pytest.mark.parametrize(("spec", "host"), [(PG, "pg"), (MY, "my")])
async def test_a_restore(spec: dict[str, Any], host: str) -> None:
    async with a_backed_up_nacos(spec) as backups:
        world = await stored(backups, host)
        servers: list[int] = []
        world.watch_servers(servers)
        pods = {pod.metadata.uid for pod in await world.world.pods()}
        await world.restore()
        restore = await world.restore_until("Completed")
        assert world.database(host).content.configs == {KEY: "a: 1"}
        assert servers == [0], "no server runs while the database is replaced"
        assert condition(restore) == condition(restore, "Complete") == ("True", "Restored")
        assert message(restore) == "Nacos nacos has the data of first"
        assert restore.status.start_time < restore.status.completion_time
        assert (restore.status.step, restore.status.attempt, restore.status.touched) == ("Starting", 1, False)
        assert not await world.marked()
        nacos = await world.ready()
        assert nacos.status.ready_replicas == 1
        assert pods.isdisjoint(pod.metadata.uid for pod in await world.world.pods())
        await world.world.advance(100.0)
        assert world.simulated.jobs.done.count("nacos-restore") == 1


async def test_into_another_nacos() -> None:
    async with a_backed_up_nacos() as backups:
        world = await stored(backups)
        world.world.databases.servers["pg", 5432].add("other", "nacos", "word")
        await world.world.up("other", {**PG, "postgres": {**PG["postgres"], "database": "other"}})
        await world.restore(nacosRef={"name": "other"})
        await world.restore_until("Completed")
        server = world.world.databases.servers["pg", 5432]
        assert server.databases["other"].content.configs == {KEY: "a: 1"}
        assert server.databases["nacos"].content.configs == {}
        assert not await world.marked()


async def test_the_administrator_is_the_one_of_the_secret_again() -> None:
    async with a_backed_up_nacos({**PG, "adminCredentialsSecretRef": {"name": "admin"}}) as backups:
        world = await stored(backups)
        await world.world.replace_secret("admin", username="nacos", password="second")
        await world.world.change("nacos", config="a=1\n")
        await world.world.advance(30.0)
        await world.ready()
        assert world.database().accepts("nacos", "second")
        await world.restore()
        await world.restore_until("Completed")
        assert world.database().content.configs == {KEY: "a: 1"}
        assert world.database().accepts("nacos", "second"), "not the password of the backup"


async def test_a_nacos_that_hibernates_stays_asleep() -> None:
    async with a_backed_up_nacos() as backups:
        world = await stored(backups)
        await world.world.change("nacos", hibernate=True)
        await world.world.until("nacos", "Hibernated")
        await world.restore()
        await world.restore_until("Completed")
        nacos = await world.world.nacos("nacos")
        assert nacos.status.phase == "Hibernated"
        assert not await world.marked()
        assert world.database().content.configs == {KEY: "a: 1"}


async def test_the_nacos_says_why_it_sleeps() -> None:
    async with a_backed_up_nacos() as backups:
        world = await stored(backups)
        world.simulated.jobs.duration = 60.0
        restore = await world.restore()
        await world.until_reason("Restoring", "back", KIND)
        await world.world.advance(30.0)
        nacos = await world.world.nacos("nacos")
        assert nacos.status.phase == "Hibernated"
        assert f"back/{restore.metadata.uid}" in next(
            entry.message for entry in nacos.status.kube_conditions if entry.type == "Hibernated"
        )
        assert nacos.spec.hibernate is False, "the user's spec is left alone"
        assert await world.world.pods() == []
        await world.back_up("meanwhile")
        waiting = await world.until_reason("Restoring", "meanwhile")
        assert waiting.status.phase == "Pending"
        await world.restore_until("Completed")
        await world.until("Completed", "meanwhile")


class TestRefusals:
    pytestmark = pytest.mark.spec("N-61")

    async def test_a_database_that_is_not_empty(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            world.database().content.configs[KEY] = "newer"
            await world.restore()
            restore = await world.restore_until("Failed")
            assert condition(restore, "Failed") == ("True", "JobFailed")
            assert "overwrite: true" in message(restore)
            assert world.database().content.configs == {KEY: "newer"}
            assert not restore.status.touched
            await world.ready()
            assert not await world.marked()
            await world.restore("again", overwrite=True)
            await world.restore_until("Completed", "again")
            assert world.database().content.configs == {KEY: "a: 1"}

    async def test_data_that_is_not_what_was_stored(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            for file in world.files().values():
                file.data += b"!"
            await world.restore()
            restore = await world.restore_until("Failed")
            assert "is not what was stored" in message(restore)
            assert world.database().content.configs == {}
            await world.ready()

    async def test_data_that_is_gone(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            for volume in world.simulated.jobs.volumes.values():
                volume.clear()
            await world.restore()
            assert "there is no file" in message(await world.restore_until("Failed"))

    @pytest.mark.parametrize(
        ("change", "reason", "words"),
        [
            ({"engine": "mysql"}, "EngineMismatch", "is of mysql, and Nacos nacos uses postgresql"),
            ({"nacosVersion": "3.0.0", "schema": "since-2.5"}, "VersionMismatch", "restore into version 3.0"),
            ({"schema": "since-2.5"}, "VersionMismatch", "schema since-2.5"),
            ({"nacosVersion": "2.5.0"}, "VersionMismatch", "2.5.0"),
            ({"nacosVersion": ""}, "VersionUnknown", "set spec.version"),
            ({"phase": "Failed"}, "BackupFailed", "choose another one"),
        ],
    )
    async def test_a_backup_that_does_not_fit(self, change: dict[str, str], reason: str, words: str) -> None:
        """Before a server is stopped."""
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            await self._edit(world, change)
            before = await world.world.uids()
            await world.restore()
            restore = await world.restore_until("Failed")
            assert condition(restore) == ("False", reason)
            assert words in message(restore)
            assert await world.world.uids() == before
            assert world.simulated.jobs.done == ["nacos-backup"]

    @staticmethod
    async def _edit(world: BackupWorld, status: dict[str, str]) -> None:
        backup = await world.get()
        await world.client.patch(type(backup), "first", MergePatch({"status": status}), SPACE, subresource="status")
        await world.world.advance(1.0)

    @pytest.mark.parametrize("version", ["2.4.0", "2.4.9", "2.0.3"])
    async def test_versions_that_fit(self, version: str) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            await self._edit(world, {"nacosVersion": version})
            await world.restore()
            await world.restore_until("Completed")

    async def test_what_is_missing_is_waited_for(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = Restored(backups.world, backups.simulated)
            await world.restore()
            waiting = await world.until_reason("BackupNotFound", "back", KIND)
            assert waiting.status.phase == "Pending"
            await world.restore("elsewhere", nacosRef={"name": "absent"})
            await world.until_reason("NacosNotFound", "elsewhere", KIND)
            world.simulated.jobs.duration = 40.0
            await world.back_up()
            await world.until_reason("BackupNotComplete", "back", KIND)
            assert not await world.marked()
            await world.restore_until("Completed")

    async def test_a_nacos_that_is_paused(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            for value in ("True", None):
                patch = MergePatch({"metadata": {"annotations": {PAUSE: value}}})
                await world.client.patch(Nacos, "nacos", patch, SPACE)
                if value:
                    await world.restore()
                    assert PAUSE in message(await world.until_reason("NacosPaused", "back", KIND))
                    assert not await world.marked()
            await world.restore_until("Completed")

    @pytest.mark.spec("N-83")
    @pytest.mark.parametrize("hibernate", [True, False], ids=["asleep", "awake"])
    async def test_a_database_that_is_not_in_force(self, hibernate: bool) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            server = world.world.databases.servers["pg", 5432]
            server.add("two", "nacos", "word")
            server.databases["two"].content.configs[KEY] = "of others"
            await world.world.change("nacos", hibernate=hibernate)
            await world.world.until("nacos", "Hibernated" if hibernate else "Running")
            await world.world.change("nacos", postgres={"database": "two"})
            await world.world.advance(30.0)
            await world.restore(overwrite=True)
            waiting = await world.until_reason("ChangeHeld", "back", KIND)
            assert waiting.status.phase == "Pending"
            assert not await world.marked()
            assert server.databases["two"].content.configs == {KEY: "of others"}
            await world.world.change("nacos", postgres={"database": "nacos"})
            await world.restore_until("Completed")
            assert server.databases["nacos"].content.configs == {KEY: "a: 1"}
            assert server.databases["two"].content.configs == {KEY: "of others"}

    @pytest.mark.spec("N-83")
    async def test_an_engine_that_is_not_in_force_does_not_end_a_restore(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            await world.world.change("nacos", database={"type": "embedded"}, postgres={"host": ""})
            await world.restore()
            await world.until_reason("ChangeHeld", "back", KIND)
            await world.world.change("nacos", database={"type": "postgresql"}, postgres={"host": "pg"})
            await world.restore_until("Completed")

    @pytest.mark.spec("N-83")
    async def test_a_database_that_is_edited_after_the_beginning(self) -> None:
        """The servers have stopped; a Job that is lost is not made again for another database."""
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            server = world.world.databases.servers["pg", 5432]
            server.add("two", "nacos", "word")
            world.simulated.jobs.duration = 60.0
            await world.restore(overwrite=True)
            while not (jobs := [job for job in await world.jobs() if "-restore-" in job.metadata.name]):
                await world.world.advance(1.0)
            await world.world.change("nacos", postgres={"database": "two"})
            await world.client.delete(Job, jobs[0].metadata.name, SPACE, propagation="Background")
            waiting = await world.until_reason("ChangeHeld", "back", KIND)
            assert waiting.status.phase == "Running"
            assert await world.marked()
            await world.world.advance(60.0)
            assert not [job for job in await world.jobs() if "-restore-" in job.metadata.name]
            allowed = MergePatch({"metadata": {"annotations": {ALLOW: "database=postgresql://pg:5432/two"}}})
            await world.client.patch(Nacos, "nacos", allowed, SPACE)
            await world.restore_until("Completed")
            assert server.databases["two"].content.configs == {KEY: "a: 1"}

    @pytest.mark.spec("N-83")
    async def test_configurations_go_to_the_servers_that_run(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = Restored(backups.world, backups.simulated)
            await world.back_up(method="Configuration")
            await world.until("Completed")
            await world.world.change("nacos", postgres={"database": "two"})
            await world.world.advance(30.0)
            await world.restore(overwrite=True)
            restore = await world.until_reason("Starting", "back", KIND)
            assert restore.status.step == "Starting", "its Job has done its work"

    async def test_a_claim_that_is_gone(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            await world.client.delete(PersistentVolumeClaim, CLAIM, SPACE)
            await world.restore()
            await world.until_reason("VolumeMissing", "back", KIND)
            assert not await world.marked()

    async def test_an_embedded_database(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            await world.world.up("small", EMBEDDED)
            await world.restore(nacosRef={"name": "small"})
            restore = await world.restore_until("Failed")
            assert condition(restore) == ("False", "EngineMismatch")

    async def test_nothing_of_it_changes(self) -> None:
        async with prepared() as backups:
            world = Restored(backups.world, backups.simulated)
            await world.restore()
            for spec in (
                {"nacosRef": {"name": "other"}},
                {"backupRef": {"name": "other"}},
                {"overwrite": True},
                {"image": "other"},
                {"timeoutSeconds": 61},
            ):
                with pytest.raises(Invalid, match="cannot change"):
                    await world.patch("back", KIND, **spec)


class TestOrder:
    async def test_two_restores_of_one_nacos(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            world.simulated.jobs.duration = 30.0
            await world.restore("one")
            await world.until_reason("Restoring", "one", KIND)
            await world.restore("two", overwrite=True)
            waiting = await world.until_reason("AnotherRestore", "two", KIND)
            assert waiting.status.phase == "Pending"
            assert (await world.get("one", KIND)).status.phase == "Running"
            await world.restore_until("Completed", "one")
            await world.restore_until("Completed", "two")
            assert world.simulated.jobs.done.count("nacos-restore") == 2

    async def test_a_backup_at_work_comes_first(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            world.simulated.jobs.duration = 30.0
            await world.back_up("second")
            await world.until_reason("Running", "second")
            await world.restore()
            await world.until_reason("BackupRunning", "back", KIND)
            assert not await world.marked()
            await world.restore_until("Completed")

    async def test_a_backup_that_began_unseen_ends_before_the_database_changes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It and the restore begin at once, and neither cache has the other's status yet."""
        monkeypatch.setattr(restores, "_require_alone", lambda ctx: None)
        async with a_backed_up_nacos(MY) as backups:
            world = await stored(backups, "my")
            phases: list[str] = []
            world.simulated.jobs.restoring = lambda env: phases.append(world.phase_of("second"))
            world.simulated.jobs.duration = 60.0
            await world.back_up("second")
            await world.until_reason("Running", "second")
            await world.restore()
            await world.until_reason("BackupRunning", "back", KIND)
            assert await world.marked()
            await world.restore_until("Completed")
            assert phases == ["Completed"]

    async def test_a_backup_without_a_job_does_not_hold_a_restore(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its Job is lost, and the next one waits for the restore: they must not wait for each other."""
        monkeypatch.setattr(restores, "_require_alone", lambda ctx: None)
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            world.simulated.jobs.duration = 60.0
            await world.back_up("second")
            await world.until_reason("Running", "second")
            await world.restore()
            await world.until_reason("BackupRunning", "back", KIND)
            (job,) = [job for job in await world.jobs() if "-backup-" in job.metadata.name]
            await world.client.delete(Job, job.metadata.name, SPACE, propagation="Background")
            await world.until_reason("Restoring", "second")
            await world.restore_until("Completed")
            await world.until("Completed", "second")

    async def test_a_backup_that_is_read_stays(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            await world.patch("first", deletionPolicy="Delete")
            world.simulated.jobs.duration = 30.0
            await world.restore()
            await world.until_reason("Restoring", "back", KIND)
            await world.delete()
            assert "NacosRestore back reads the data" in message(await world.until_reason("InUse"))
            await world.restore_until("Completed")
            await world.until_gone()
            assert world.files() == {}


class TestFailures:
    async def test_half_a_restore_keeps_the_servers_away(self) -> None:
        async with a_backed_up_nacos(MY) as backups:
            world = await stored(backups, "my")
            world.simulated.jobs.broken_off = 3
            await world.restore()
            restore = await world.restore_until("Failed")
            assert restore.status.touched
            assert "half restored" in message(restore)
            assert "Lost connection" in message(restore)
            await world.world.advance(120.0)
            assert await world.marked()
            assert await world.world.pods() == []
            world.simulated.jobs.broken_off = 0
            await world.restore("again", overwrite=True)
            await world.restore_until("Completed", "again")
            assert world.database("my").content.configs == {KEY: "a: 1"}
            assert not await world.marked()

    @pytest.mark.spec("N-84")
    async def test_half_of_the_configurations_leaves_the_servers_as_they_are(self) -> None:
        """They are written one by one, to servers that run: the database is whole."""
        async with a_backed_up_nacos(MY) as backups:
            world = Restored(backups.world, backups.simulated)
            await world.back_up(method="Configuration")
            await world.until("Completed")
            world.simulated.jobs.broken_off = 137
            await world.restore()
            restore = await world.restore_until("Failed")
            assert not restore.status.touched
            assert "half restored" not in message(restore)
            assert not await world.marked()
            await world.ready()

    async def test_its_deletion_starts_them(self) -> None:
        async with a_backed_up_nacos(MY) as backups:
            world = await stored(backups, "my")
            world.simulated.jobs.broken_off = 137
            await world.restore()
            await world.restore_until("Failed")
            world.database("my").initialise("2.0")
            await world.delete("back", KIND)
            await world.until_gone("back", KIND)
            assert not await world.marked()
            await world.ready()

    @pytest.mark.spec("N-84")
    async def test_another_restore_that_is_refused_does_not_start_them(self) -> None:
        async with half_restored() as world:
            world.database("my").content.configs[KEY] = "half"
            await world.restore("again")
            again = await world.restore_until("Failed", "again")
            assert condition(again) == ("False", "HalfRestored")
            assert message(again) == (
                "the database of Nacos nacos was half restored by NacosRestore back: restore it with overwrite: true"
            )
            assert not again.status.touched
            await world.world.advance(120.0)
            await world.delete("again", KIND)
            await world.until_gone("again", KIND)
            assert await world.keeps_away("back")
            await world.delete("back", KIND)
            await world.until_gone("back", KIND)
            assert not await world.marked()

    @pytest.mark.spec("N-84")
    async def test_nor_does_one_that_fails_before_it_has_changed_anything(self) -> None:
        async with half_restored() as world:
            world.simulated.jobs.failure = "no space left on device"
            await world.restore("again", overwrite=True)
            again = await world.restore_until("Failed", "again")
            assert again.status.touched
            assert "half restored, and the servers stay away" in message(again)
            await world.world.advance(120.0)
            assert await world.keeps_away("again")
            await world.restore("refused")
            refused = await world.restore_until("Failed", "refused")
            assert "by NacosRestore again" in message(refused)
            world.simulated.jobs.failure = ""
            await world.restore("third", overwrite=True)
            third = await world.restore_until("Completed", "third")
            assert not third.status.touched
            assert world.database("my").content.configs == {KEY: "a: 1"}
            assert not await world.marked()

    @pytest.mark.spec("N-84")
    async def test_its_deletion_starts_them_though_another_was_half_done_before(self) -> None:
        async with half_restored() as world:
            world.simulated.jobs.failure = "no space left on device"
            await world.restore("again", overwrite=True)
            await world.restore_until("Failed", "again")
            world.database("my").initialise("2.0")
            await world.delete("again", KIND)
            await world.until_gone("again", KIND)
            assert not await world.marked()
            await world.ready()

    @pytest.mark.spec("N-84")
    async def test_one_that_is_deleted_before_it_has_changed_anything_leaves_them_away(self) -> None:
        """Though a Job of it is complete: the one that has read the manifest."""
        async with half_restored() as world:
            place = {"claimName": CLAIM, "path": (await world.get()).status.path}
            given = {"backupRef": None, "source": {"volume": place}, "image": "registry.invalid/mysql:8.4"}
            await world.restore("again", overwrite=True, **given)
            await world.until_reason("PodWaiting", "again", KIND)
            assert await world.keeps_away("again")
            await world.delete("again", KIND)
            await world.until_gone("again", KIND)
            await world.world.advance(120.0)
            assert await world.keeps_away("back")
            world.database("my").initialise("2.0")
            await world.delete("back", KIND)
            await world.until_gone("back", KIND)
            assert not await world.marked()
            await world.ready()

    @pytest.mark.spec("N-84")
    async def test_one_that_is_deleted_with_the_first_starts_them(self) -> None:
        async with half_restored() as world:
            await world.restore("again", overwrite=True, image="registry.invalid/mysql:8.4")
            await world.until_reason("PodWaiting", "again", KIND)
            world.database("my").initialise("2.0")
            await world.delete("again", KIND)
            await world.delete("back", KIND)
            for name in ("back", "again"):
                await world.until_gone(name, KIND)
            assert not await world.marked()
            await world.ready()

    @pytest.mark.spec("N-84")
    @pytest.mark.parametrize("code", [0, 3])
    async def test_one_that_is_deleted_at_work_starts_them_when_its_job_is_complete(self, code: int) -> None:
        async with half_restored() as world:
            world.simulated.jobs.broken_off = code
            world.simulated.jobs.duration = 60.0
            await world.restore("again", overwrite=True)
            while not await world.restoring_pods():
                await world.world.advance(1.0)
            await world.world.advance(5.0)
            await world.delete("again", KIND)
            await world.until_gone("again", KIND)
            if code:
                assert await world.keeps_away("back")
                return
            assert not await world.marked()
            await world.ready()
            assert world.database("my").content.configs == {KEY: "a: 1"}

    async def test_postgresql_goes_back_by_itself(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            world.simulated.jobs.failure = "pg_restore: error: connection lost"
            await world.restore()
            restore = await world.restore_until("Failed")
            assert not restore.status.touched
            await world.ready()

    async def test_a_job_that_others_delete_is_made_again_while_the_servers_sleep(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            world.simulated.jobs.duration = 60.0
            await world.restore(overwrite=True)
            await world.until_reason("Restoring", "back", KIND)
            while not (jobs := [job for job in await world.jobs() if "-restore-" in job.metadata.name]):
                await world.world.advance(1.0)
            await world.world.advance(5.0)
            await world.client.delete(Job, jobs[0].metadata.name, SPACE, propagation="Background")
            restore = await world.restore_until("Completed")
            assert restore.status.attempt == 2

    async def test_a_pod_that_outlives_its_job_is_waited_for(self) -> None:
        """Two would load the same tables at once."""
        async with a_backed_up_nacos(MY) as backups:
            world = await stored(backups, "my")
            world.simulated.jobs.duration = 60.0
            await world.restore(overwrite=True)
            await world.until_reason("Restoring", "back", KIND)
            while not (pods := await world.restoring_pods()):
                await world.world.advance(1.0)
            (pod,) = pods
            held = MergePatch({"metadata": {"finalizers": ["example.com/held"]}})
            await world.client.patch(Pod, pod.metadata.name, held, SPACE)
            job = pod.metadata.labels["app"]
            await world.client.delete(Job, job, SPACE, propagation="Background")
            waiting = await world.until_reason("PodEnding", "back", KIND)
            assert job in message(waiting)
            assert not [job for job in await world.jobs() if "-restore-" in job.metadata.name]
            await world.client.patch(Pod, pod.metadata.name, MergePatch({"metadata": {"finalizers": None}}), SPACE)
            assert (await world.restore_until("Completed")).status.attempt == 2

    async def test_a_deletion_waits_for_a_job_at_work(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            world.simulated.jobs.duration = 60.0
            await world.restore()
            while not any("-restore-" in job.metadata.name for job in await world.jobs()):
                await world.world.advance(1.0)
            await world.world.advance(5.0)
            await world.delete("back", KIND)
            await world.world.advance(20.0)
            assert await world.marked()
            assert not await world.gone("back", KIND)
            await world.until_gone("back", KIND)
            assert not await world.marked()
            await world.ready()
            assert world.database().content.configs == {KEY: "a: 1"}

    async def test_a_pod_that_does_not_start_does_not_hold_a_deletion(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            await world.restore(image="registry.invalid/postgres:17")
            await world.until_reason("PodWaiting", "back", KIND)
            await world.delete("back", KIND)
            await world.until_gone("back", KIND)
            await world.ready()
            assert world.database().content.configs == {}

    async def test_a_nacos_that_goes(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            await world.world.change("nacos", hibernate=False)
            world.simulated.jobs.duration = 60.0
            await world.restore()
            await world.until_reason("Restoring", "back", KIND)
            await world.client.delete(Nacos, "nacos", SPACE)
            await world.until_reason("NacosNotFound", "back", KIND)
            await world.delete("back", KIND)
            await world.until_gone("back", KIND)

    async def test_a_mark_that_nobody_owns_is_replaced(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = await stored(backups)
            patch = MergePatch({"metadata": {"annotations": {names.RESTORE: "gone/123"}}})
            await world.client.patch(Nacos, "nacos", patch, SPACE)
            await world.world.until("nacos", "Hibernated")
            await world.restore()
            await world.restore_until("Completed")
            assert not await world.marked()


@pytest.mark.limit(180)
async def test_processes_of_one_write_each() -> None:
    """The operator is killed after every write: the database is replaced once, while no server runs."""
    async with prepared() as backups:
        async with backups.world.operating():
            world = await stored(backups)
        servers: list[int] = []
        world.watch_servers(servers)
        await world.restore()
        lives = await by_mortals(
            world, lambda restore: restore is not None and restore.status.phase == "Completed", name="back", kind=KIND
        )
        assert lives >= 6
        assert servers == [0]
        assert world.database().content.configs == {KEY: "a: 1"}
        assert not await world.marked()
        with suppress(NotFound):
            assert (await world.client.list(Pod, SPACE)).items
