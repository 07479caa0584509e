"""A journal that fails is seen: by health checks, by clients, and when the server starts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.storage import sqlite
from konverge.apiserver.storage.folder import FolderError
from tests.apiserver.api import CONFIG_MAPS, Api

HEALTH = ("/healthz", "/livez", "/readyz")


@pytest.mark.spec("T-02")
async def test_health_and_answers_say_that_the_disk_is_full(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        api = Api(server)
        await api.create("before")
        journal = server._journal
        assert journal is not None
        (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
        journal._connection.execute(f"PRAGMA max_page_count = {pages}")
        refused = await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "lost"}, "data": {"a": "x" * 100_000}})
        assert refused.status == 500
        assert b"cannot be written to disk: database or disk is full" in refused.body
        assert (await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "later"}})).status == 500
        for path in HEALTH:
            answer = await api.send("GET", path)
            assert answer.status == 500
            assert "[-]etcd failed: reason withheld\n" in answer.body.decode()
            assert f"{path[1:]} check failed" in answer.body.decode()
            assert (await api.send("GET", f"{path}/etcd")).status == 500
            assert (await api.send("GET", f"{path}/ping")).status == 200
            assert (await api.send("GET", f"{path}?exclude=etcd")).status == 200
        listed = await api.call("GET", CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in listed["items"]] == ["before"]
    async with ApiServer(data_dir=tmp_path) as server:
        listed = await Api(server).call("GET", CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in listed["items"]] == ["before"]


@pytest.mark.spec("T-02")
async def test_a_server_on_a_disk_that_fails_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "sync_file", fails)
        server = ApiServer(data_dir=tmp_path)
        with pytest.raises(FolderError, match=r"cannot be written \(.*Input/output error\): check the disk"):
            await server.start()
    async with ApiServer(data_dir=tmp_path) as again:  # the lock of the folder is free
        assert (await Api(again).send("GET", "/readyz")).status == 200
