"""Backup files and what is restored from them."""

from __future__ import annotations

import errno
import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge import clock
from konverge.apiserver.storage import database
from konverge.apiserver.storage.backup import BackupError, backup_rows, check_backup, encoded, new_backup
from konverge.apiserver.storage.folder import DataFolder, FolderError, FolderInUse
from konverge.apiserver.storage.integrity import existing_state
from konverge.apiserver.storage.restore import BUMP, fresh_revision, restore
from tests.apiserver.storage.corruptions import content, opened, write
from tests.sizes import examples

ROWS = [("/secrets", f"ns/{number}", bytes([number]) * number * 700) for number in range(100)]


def make_backup(path: Path, rows: list[tuple[str, str, bytes]] = ROWS) -> bytes:
    path.write_bytes(b"".join(encoded(77, rows)))
    return path.read_bytes()


def test_a_backup_is_read_as_it_was_written(tmp_path: Path) -> None:
    with new_backup(tmp_path / "a.backup") as file:
        file.writelines(encoded(77, ROWS))
    head, end = check_backup(tmp_path / "a.backup")
    assert (head.revision, end.count, list(backup_rows(tmp_path / "a.backup"))) == (77, 100, ROWS)
    assert (tmp_path / "a.backup").stat().st_mode & 0o077 == 0
    assert max(map(len, encoded(1, ROWS))) < 200_000


def test_an_empty_state_has_a_backup_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"".join(encoded(1, [])))
    assert check_backup(tmp_path / "a")[1].count == 0


@pytest.mark.spec("T-07")
@settings(max_examples=examples(1 / 2))
@given(st.data())
def test_any_other_bit_and_any_other_length_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("backups") / "a"
    whole = make_backup(path, ROWS[:4])
    place = data.draw(st.integers(0, len(whole) * 8 - 1))
    flipped = bytearray(whole)
    flipped[place // 8] ^= 1 << place % 8
    for damaged in (bytes(flipped), whole[: place // 8], whole + b"x"):
        path.write_bytes(damaged)
        with pytest.raises(BackupError):
            check_backup(path)
        with pytest.raises(BackupError):
            restore(path, path.with_name("data"))
        assert not path.with_name("data").exists()


@pytest.mark.spec("T-07")
def test_frames_that_are_left_out_twice_or_in_disorder_are_noticed(tmp_path: Path) -> None:
    pieces = list(encoded(77, ROWS))
    assert len(pieces) > 4
    first, second, *_, last = pieces
    for damaged in (
        [*pieces[:2], *pieces[3:]],
        [first, second, *pieces[1:]],
        [second, first, *pieces[2:]],
        [*pieces, last],
        [first, *pieces],
        pieces[:-1],
        pieces[1:],
    ):
        (tmp_path / "a").write_bytes(b"".join(damaged))
        with pytest.raises(BackupError):
            check_backup(tmp_path / "a")


def test_a_backup_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def fill() -> None:
        with new_backup(tmp_path / "a.backup") as file:
            file.write(b"".join(list(encoded(1, ROWS))[:-1]))

    with pytest.raises(BackupError):
        fill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("T-07")
async def test_a_restored_state_has_the_objects_and_no_revision_of_before(tmp_path: Path) -> None:
    store = opened(tmp_path / "data")
    await write(store, random.Random(1), 60)
    then = content(store)
    table = {name: table.at(store.durable) for name, table in store.tables.items()}
    rows = [(name, record.key, record.data) for name, records in table.items() for record in records]
    (tmp_path / "a").write_bytes(b"".join(encoded(store.durable, rows)))
    await write(store, random.Random(2), 60)
    newest = store.revision
    with pytest.raises(FolderInUse):
        restore(tmp_path / "a", tmp_path / "data", replace=True)
    await store.close()
    before = {path.name: path.read_bytes() for path in (tmp_path / "data").glob("state.db*")}
    with pytest.raises(FolderError, match="has a state already: give another folder, or --force"):
        restore(tmp_path / "a", tmp_path / "data")
    assert {path.name: path.read_bytes() for path in (tmp_path / "data").glob("state.db*")} == before

    _, seal, aside = restore(tmp_path / "a", tmp_path / "data", replace=True)
    assert aside is not None
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == before
    again = opened(tmp_path / "data")
    assert content(again)[1] == then[1]
    assert again.revision == again.durable == again.compacted == seal.revision >= newest + BUMP
    record = again.put(again.table("/secrets"), {"metadata": {"name": "new"}}, expected=0)
    assert record.revision == seal.revision + 1
    await again.settled(record.revision)
    await again.close()
    assert existing_state(tmp_path / "data" / "state.db").seal.revision == record.revision


@pytest.mark.spec("T-07")
def test_each_restore_begins_after_all_revisions_of_the_one_before(tmp_path: Path) -> None:
    """Also into another folder, which knows nothing of the first one: there the clock tells."""
    make_backup(tmp_path / "a")
    _, first, _ = restore(tmp_path / "a", tmp_path / "one")
    _, second, aside = restore(tmp_path / "a", tmp_path / "one", replace=True)
    _, third, _ = restore(tmp_path / "a", tmp_path / "two")
    assert second.revision >= first.revision + BUMP
    assert third.revision > first.revision
    assert aside is not None
    _, _, other = restore(tmp_path / "a", tmp_path / "one", replace=True)
    assert aside != other
    assert (first.id, first.count) != (second.id, second.count)


def test_restores_in_a_row_do_not_outrun_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later one elsewhere, which knows the backup alone, begins after what the clients of the first have seen."""
    now = [clock.now()]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    first = fresh_revision(1000)
    for _ in range(3):
        now[0] += 60
        first = fresh_revision(first)
    now[0] += 60
    assert fresh_revision(1000) > first


def test_a_fresh_revision_is_beyond_the_known_one_whatever_the_clock_says() -> None:
    now = int(clock.now() * 1_000_000)
    assert now <= fresh_revision(5) < now + 60_000_000
    assert fresh_revision(now * 2) == now * 2 + BUMP
    assert fresh_revision(2**52) < 2**53  # exact in every client that counts in floating point


def test_keys_of_the_folder_stay_and_only_the_state_is_moved(tmp_path: Path) -> None:
    make_backup(tmp_path / "a")
    restore(tmp_path / "a", tmp_path / "data")
    (tmp_path / "data" / "token").write_text("secret")
    (tmp_path / "data" / "state.db-wal").write_bytes(b"the log of the old state")
    _, _, aside = restore(tmp_path / "a", tmp_path / "data", replace=True)
    assert aside is not None
    assert (aside / "state.db-wal").read_bytes() == b"the log of the old state"
    assert sorted(path.name for path in (tmp_path / "data").iterdir() if path != aside) == [
        "lock",
        "state.db",
        "state.db-witness",
        "token",
    ]
    assert aside.stat().st_mode & 0o077 == 0
    DataFolder(tmp_path / "data").close()  # the lock is free


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def killed_state(folder: Path) -> dict[str, bytes]:
    """A state whose newest writes are only in its write-ahead log."""
    store = opened(folder / "running")
    await write(store, random.Random(3), 30)
    shutil.copytree(folder / "running", folder / "data")
    await store.close()
    assert any(files(folder / "data")["state.db-wal"])
    return files(folder / "data")


@pytest.mark.spec("T-07")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("name", ["state.db-witness", "state.db"])
async def test_a_restore_that_fails_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException
) -> None:
    """The log as well, without which the state would be older than what was acknowledged."""
    make_backup(tmp_path / "a")
    before = await killed_state(tmp_path)
    old = existing_state(tmp_path / "data" / "state.db")
    replace = Path.replace
    failed: list[Path] = []

    def fails(new: Path, to: Path) -> Path:
        if to.name == name and not failed:
            failed.append(to)
            raise error
        return replace(new, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fails)
        with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else FolderError):
            restore(tmp_path / "a", tmp_path / "data", replace=True)
    assert failed
    assert {**files(tmp_path / "data"), "lock": b""} == {**before, "lock": b""}
    assert existing_state(tmp_path / "data" / "state.db") == old
    restore(tmp_path / "a", tmp_path / "data", replace=True)
    assert existing_state(tmp_path / "data" / "state.db").seal.count == len(ROWS)


@pytest.mark.spec("T-07")
async def test_nothing_is_moved_before_the_new_state_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's error for a full disk; a power loss then must not find the folder changed either."""
    make_backup(tmp_path / "a")
    before = await killed_state(tmp_path)

    def full(*_: object) -> None:
        now = files(tmp_path / "data")
        assert {name: now.get(name) for name in before if name != "lock"} == {
            name: data for name, data in before.items() if name != "lock"
        }
        full_disk = sqlite3.OperationalError("database or disk is full")
        full_disk.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise full_disk

    monkeypatch.setattr(database, "_filled", full)
    with pytest.raises(FolderError, match="is full"):
        restore(tmp_path / "a", tmp_path / "data", replace=True)
    assert {**files(tmp_path / "data"), "lock": b""} == {**before, "lock": b""}


async def test_what_is_moved_aside_is_on_disk_before_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_backup(tmp_path / "a")
    before = await killed_state(tmp_path)
    synced: list[Path] = []

    def sync(folder: Path) -> None:
        if (tmp_path / "data" / "state.db-wal").exists():
            synced.append(folder)
            assert files(folder).items() >= {name: data for name, data in before.items() if name != "lock"}.items()

    monkeypatch.setattr("konverge.apiserver.storage.restore.sync_folder", sync)
    _, _, aside = restore(tmp_path / "a", tmp_path / "data", replace=True)
    assert synced == [aside, tmp_path / "data"]


async def test_a_state_that_cannot_be_put_back_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_backup(tmp_path / "a")
    before = await killed_state(tmp_path)

    def fails(new: Path, to: Path) -> Path:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(FolderError, match=r"the state that was there is in .*replaced-"):
        restore(tmp_path / "a", tmp_path / "data", replace=True)
    (aside,) = (tmp_path / "data").glob("replaced-*")
    assert files(aside) == {name: data for name, data in before.items() if name != "lock"}


@pytest.mark.parametrize("name", ["state.db-witness", "state.db"])
def test_a_failed_restore_into_a_new_folder_leaves_no_part_of_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make_backup(tmp_path / "a")
    replace = Path.replace

    def fails(new: Path, to: Path) -> Path:
        if to.name == name:
            raise OSError(errno.EIO, "Input/output error")
        return replace(new, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fails)
        with pytest.raises(FolderError, match="check the disk"):
            restore(tmp_path / "a", tmp_path / "data")
    assert list(files(tmp_path / "data")) == ["lock"]
    restore(tmp_path / "a", tmp_path / "data")


@pytest.mark.parametrize("name", ["state.db-witness", "state.db"])
def test_a_restore_that_a_crash_ends_leaves_no_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A server that starts then must not begin with nothing."""
    make_backup(tmp_path / "a")
    restore(tmp_path / "a", tmp_path / "data")
    old = existing_state(tmp_path / "data" / "state.db")
    replace = Path.replace

    def ends(new: Path, to: Path) -> Path:
        if to.name == name:
            raise KeyboardInterrupt
        return replace(new, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", ends)
        patched.setattr("konverge.apiserver.storage.restore._Room.put_back", lambda *_: None)  # the process is gone
        with pytest.raises(KeyboardInterrupt):
            restore(tmp_path / "a", tmp_path / "data", replace=True)
    if name == "state.db":
        with pytest.raises(FolderError, match="belongs to another state"):
            existing_state(tmp_path / "data" / "state.db")
    else:
        assert existing_state(tmp_path / "data" / "state.db") == old
    restore(tmp_path / "a", tmp_path / "data", replace=True)
    assert existing_state(tmp_path / "data" / "state.db").seal.count == len(ROWS)
