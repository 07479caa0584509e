"""Backups of a server that runs: all objects of one revision, for administrators only."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.http.backup import _snapshot
from konverge.apiserver.storage import Store
from konverge.apiserver.storage.backup import backup_rows, check_backup
from konverge.apiserver.storage.restore import restore
from tests.apiserver.api import CONFIG_MAPS, Api

BACKUP = "/konverge/v1/backup"


@pytest.mark.spec("T-07")
@pytest.mark.parametrize("durable", [True, False])
async def test_a_backup_is_the_state_at_its_revision_while_others_write(tmp_path: Path, durable: bool) -> None:
    async with ApiServer(data_dir=tmp_path / "data" if durable else None) as server:
        api = Api(server)
        for number in range(60):
            await api.create(f"n{number}", data={"k": "x" * 9000})
        stop = asyncio.Event()

        async def churn() -> None:
            turn = 0
            while not stop.is_set():
                turn += 1
                await api.patch(f"{CONFIG_MAPS}/n{turn % 60}", {"data": {"k": f"{turn}" * 3000}})
                await api.create(f"new-{turn}")

        writer = asyncio.create_task(churn())
        for number in range(3):
            (tmp_path / f"{number}").write_bytes((await api.send("GET", BACKUP)).body)
            head, _ = check_backup(tmp_path / f"{number}")
            at = await api.call(
                "GET", CONFIG_MAPS, query={"resourceVersion": head.revision, "resourceVersionMatch": "Exact"}
            )
            listed = {
                f"default/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in at["items"]
            }
            rows = {key: data for table, key, data in backup_rows(tmp_path / f"{number}") if table == "/configmaps"}
            saved = {key: json.loads(data)["metadata"]["resourceVersion"] for key, data in rows.items()}
            assert {key: version for key, version in saved.items() if key.startswith("default/")} == listed
            assert len(saved) > 60
        stop.set()
        await writer


@pytest.mark.spec("T-07")
async def test_only_who_may_read_the_path_gets_one() -> None:
    async with ApiServer() as server:
        api = Api(server)
        ann = {"impersonate_user": "ann"}
        assert (await api.send("GET", BACKUP)).status == 200
        assert (await api.send("GET", BACKUP, **ann)).status == 403
        assert (await api.send("GET", BACKUP, authorization="")).status in (401, 403)
        roles = "/apis/rbac.authorization.k8s.io/v1"
        everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        for name, rule in (("all", everything), ("backup", {"nonResourceURLs": [BACKUP], "verbs": ["get"]})):
            await api.create(name, f"{roles}/clusterroles", rules=[rule])
            binding = {
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
            }
            await api.create(name, f"{roles}/clusterrolebindings", **binding)
            assert (await api.send("GET", BACKUP, **ann)).status == (403 if name == "all" else 200)
        assert (await api.send("POST", BACKUP, {})).status == 405


@pytest.mark.spec("T-07")
async def test_after_a_restore_watches_of_before_end_with_gone(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path / "data") as server:
        api = Api(server)
        await api.create("kept")
        (tmp_path / "backup").write_bytes((await api.send("GET", BACKUP)).body)
        late = await api.create("late")
        seen = int(late["metadata"]["resourceVersion"])
        token = server.token
    restore(tmp_path / "backup", tmp_path / "data", replace=True)
    async with ApiServer(data_dir=tmp_path / "data") as server:
        api = Api(server)
        assert server.token == token
        listed = await api.call("GET", CONFIG_MAPS)
        assert "kept" in [item["metadata"]["name"] for item in listed["items"]]
        assert "late" not in [item["metadata"]["name"] for item in listed["items"]]
        assert int(listed["metadata"]["resourceVersion"]) > seen
        for version in (seen, seen - 1):
            async with api.watch(resourceVersion=version) as watch:
                assert (await watch.next())["object"]["code"] == 410
        created = await api.create("new")
        assert int(created["metadata"]["resourceVersion"]) > seen


async def test_a_snapshot_begins_again_when_history_that_it_needs_is_dropped() -> None:
    store = Store()
    for name in ("a", "b"):
        store.put(store.table(name), {"metadata": {"name": "x"}}, expected=0)
    snapshot = asyncio.create_task(_snapshot(store))
    await asyncio.sleep(0)  # it has seen the first table
    for name in ("a", "b"):
        store.put(store.table(name), {"metadata": {"name": "y"}}, expected=0)
    store.compact(store.revision)
    revision, tables = await snapshot
    assert revision == store.revision
    assert {name: [record.name for record in records] for name, records in tables.items()} == {
        "a": ["x", "y"],
        "b": ["x", "y"],
    }
