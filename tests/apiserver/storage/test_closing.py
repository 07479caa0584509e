"""The end of a store: what was begun is stored, what comes later is refused, and a disk that hangs holds nothing up."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.http import writes
from konverge.apiserver.storage import Store, Table
from konverge.apiserver.storage import sqlite as journals
from konverge.apiserver.storage.failures import Failed, InDoubt
from konverge.apiserver.storage.records import Draft, draft_of
from konverge.apiserver.storage.witness import Witness
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.storage.faulty_disk import BROKEN, Fault, FaultyDisk
from tests.apiserver.storage.test_recovery import healed, obj, on_disk, opened, put

pytestmark = pytest.mark.spec("T-05")
LARGE = {f"k{number}": "v" * 50 for number in range(1_000)}


@pytest.fixture(autouse=True)
def small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "LOG_BYTES", 64 * 1024)


async def test_a_request_of_this_process_is_stored_before_the_server_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is computed beside the loop when the server is stopped."""
    arrived, go_on = threading.Event(), threading.Event()

    def held(obj: object) -> Draft:
        arrived.set()
        assert go_on.wait(60)
        return draft_of(obj)  # type: ignore[arg-type]

    monkeypatch.setattr(writes, "draft_of", held)
    server = ApiServer(data_dir=tmp_path, disk=FaultyDisk())
    async with server:
        api = Api(server)
        sending = asyncio.create_task(api.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}, "data": LARGE}))
        while not arrived.is_set():
            await asyncio.sleep(0)
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0.01)
        assert not stopping.done()
        go_on.set()
        await stopping
    assert (await sending).status == 201
    async with ApiServer(data_dir=tmp_path) as again:
        assert (await Api(again).call("GET", f"{CONFIG_MAPS}/x"))["data"] == LARGE


@pytest.mark.virtual
async def test_a_write_after_the_end_is_refused_and_can_be_sent_again(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path, disk=FaultyDisk()) as server:
        api = Api(server)
        await api.create("x")
    for _ in range(2):
        answer = await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "y"}})
        assert (answer.status, answer.headers.get("retry-after")) == (503, "2")
        await server.stop()
    assert (await api.send("GET", f"{CONFIG_MAPS}/x")).status == 200


@pytest.mark.virtual
async def test_a_request_that_does_not_end_holds_the_end_up_for_a_moment(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path, disk=FaultyDisk()) as server:

        async def endless(call: object) -> None:
            await asyncio.Event().wait()

        server.extensions.before["", "configmaps"] = endless
        sending = asyncio.create_task(Api(server).send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}}))
        await asyncio.sleep(1)
        await server.stop()
        assert asyncio.get_running_loop().time() <= 10
        sending.cancel()


@pytest.mark.virtual
async def test_nothing_is_written_after_the_end_of_a_journal_that_recovers(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    await put(store, "a", "1")
    disk.fail("commit", fault=Fault(BROKEN))
    with pytest.raises(Failed):
        await put(store, "b")
    disk.work()
    await store.close()
    with pytest.raises(Failed, match="stopping"):
        await put(store, "c")
    await asyncio.sleep(60)
    with pytest.raises(Failed, match="stopping"):
        await put(store, "c")
    assert (await on_disk(tmp_path))[0] == {"a": "1"}


async def test_a_disk_that_hangs_does_not_hold_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a commit nor the sync of the witness answers; writers hear that their writes are in doubt."""
    monkeypatch.setattr(journals, "CLOSE_SECONDS", 0.05)
    hanging, end = threading.Event(), threading.Event()
    main = threading.current_thread()

    def hang(*arguments: object) -> None:
        assert threading.current_thread() is not main, "the loop waits for the disk"
        hanging.set()
        assert end.wait(60)

    store = opened(tmp_path, FaultyDisk())
    await put(store, "a", "1")
    monkeypatch.setattr(Witness, "write", hang)
    monkeypatch.setattr(os, "fsync", hang)
    writing = asyncio.create_task(put(store, "b", "2"))
    while not hanging.is_set():
        await asyncio.sleep(0)
    try:
        await store.close()
        with pytest.raises(InDoubt):
            await writing
    finally:
        end.set()


@pytest.mark.virtual
async def test_a_callback_that_fails_does_not_end_the_recovery(tmp_path: Path) -> None:
    """Of those who follow writes that were taken back, or the recovery itself."""
    disk = FaultyDisk()
    store = opened(tmp_path, disk)
    seen: list[str] = []

    def fails(*arguments: object) -> None:
        raise ValueError("no")

    def reverted(table: Table, key: str) -> None:
        seen.append(key)

    for callback in (fails, reverted):
        store.on_revert(callback)
    store.on_recovery(fails)
    store.on_recovery(lambda: seen.append("recovered"))
    await put(store, "a", "1")
    disk.fail("commit", fault=Fault(BROKEN))
    store.subscribe("t", lambda event: fails() if event.key == "b" else None)
    with pytest.raises(Failed):
        await put(store, "b", "2")
    await healed(store, disk)
    assert seen == ["b", "recovered"]
    await put(store, "c", "3")
    await store.close()
    assert (await on_disk(tmp_path))[0] == {"a": "1", "c": "3"}


@pytest.mark.virtual
async def test_what_was_written_in_the_last_moment_is_stored(tmp_path: Path) -> None:
    store: Store = opened(tmp_path, FaultyDisk())
    for number in range(3 * journals.GROUP):
        store.put(store.table("t"), obj(f"n{number}", "1"), expected=0)
    await store.close()
    assert len((await on_disk(tmp_path))[0]) == 3 * journals.GROUP
