"""What makes a state refused, and what does not: a missing witness, another format, a start that was interrupted."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.apiserver.storage import integrity
from konverge.apiserver.storage.checksums import Seal
from konverge.apiserver.storage.database import Damaged, create_database
from konverge.apiserver.storage.folder import FolderError
from konverge.apiserver.storage.integrity import existing_state, read_state
from konverge.apiserver.storage.sqlite import SqliteJournal
from konverge.apiserver.storage.witness import Witness, create, marks, witness_path
from tests.apiserver.storage.corruptions import content, opened, write

OLD_SCHEMA = """
CREATE TABLE IF NOT EXISTS current (tbl TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tbl, key));
CREATE TABLE IF NOT EXISTS log (revision INTEGER PRIMARY KEY, changes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""


async def written(folder: Path, writes: int = 60) -> Any:
    store = opened(folder)
    await write(store, random.Random(3), writes)
    result = content(store)
    await store.close()
    return result


def make_old(folder: Path, target: Path, *, killed: bool) -> None:
    """The state of a folder in the format without checksums; `killed`: its end is in the write-ahead log."""
    state = existing_state(folder / "state.db")
    target.mkdir()
    scratch = target if not killed else target.with_name("scratch")
    scratch.mkdir(exist_ok=True)
    with closing(sqlite3.connect(scratch / "state.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(OLD_SCHEMA)
        connection.executemany("INSERT INTO current VALUES (?, ?, ?)", state.rows)
        connection.executemany("INSERT INTO log VALUES (?, ?)", [row[:2] for row in state.log])
        values = {"revision": state.seal.revision, "compacted": state.seal.compacted}
        connection.executemany("INSERT INTO state VALUES (?, ?)", values.items())
        if killed:
            for path in scratch.glob("state.db*"):
                shutil.copy(path, target)


def interrupt(path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open a state, and end just before a complete file gets this name."""
    replace = Path.replace

    def ends(new: Path, to: Path) -> Path:
        if to.name == target:
            raise KeyboardInterrupt
        return replace(new, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", ends)
        with pytest.raises(KeyboardInterrupt):
            SqliteJournal(path)


@pytest.mark.spec("T-06")
@pytest.mark.parametrize("killed", [False, True])
async def test_a_state_without_checksums_gets_them_once(
    tmp_path: Path, killed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    expected = await written(tmp_path / "new")
    make_old(tmp_path / "new", tmp_path / "old", killed=killed)
    with pytest.raises(integrity.OldFormat):
        existing_state(tmp_path / "old" / "state.db")
    for _ in range(2):
        store = opened(tmp_path / "old")
        assert content(store) == expected
        await store.close()
    assert sum("had no checksums" in message for message in caplog.messages) == 1
    assert read_state(tmp_path / "old" / "state.db").seal.count == sum(map(len, expected[1].values()))


async def test_an_upgrade_that_was_interrupted_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = await written(tmp_path / "new")
    make_old(tmp_path / "new", tmp_path / "old", killed=True)

    interrupt(tmp_path / "old" / "state.db", "state.db", monkeypatch)
    assert witness_path(tmp_path / "old" / "state.db").exists()
    store = opened(tmp_path / "old")
    assert content(store) == expected
    await store.close()


async def test_the_old_version_may_go_on_after_an_interrupted_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await written(tmp_path / "new", 30)
    make_old(tmp_path / "new", tmp_path / "old", killed=False)
    interrupt(tmp_path / "old" / "state.db", "state.db", monkeypatch)
    expected = await written(tmp_path / "new", 30)
    make_old(tmp_path / "new", tmp_path / "later", killed=False)
    shutil.copy(tmp_path / "later" / "state.db", tmp_path / "old" / "state.db")
    store = opened(tmp_path / "old")
    assert content(store) == expected
    await store.close()


async def test_an_upgraded_state_without_history_outlives_a_power_loss(tmp_path: Path) -> None:
    """Its witness is then as the upgrade left it, while the database has gone on."""
    await opened(tmp_path / "new").close()
    make_old(tmp_path / "new", tmp_path / "old", killed=False)
    with closing(sqlite3.connect(tmp_path / "old" / "state.db")) as connection, connection:
        connection.execute("DELETE FROM state")  # killed before its first write
    store = opened(tmp_path / "old")
    witness = witness_path(tmp_path / "old" / "state.db")
    before = witness.read_bytes()
    await write(store, random.Random(3), 1)
    expected = content(store)
    await store.close()
    witness.write_bytes(before)
    store = opened(tmp_path / "old")
    assert content(store) == expected
    await store.close()


async def test_an_old_copy_without_checksums_beside_a_newer_witness_is_refused(tmp_path: Path) -> None:
    await written(tmp_path / "new", 30)
    make_old(tmp_path / "new", tmp_path / "old", killed=False)
    await written(tmp_path / "new", 30)
    shutil.copy(tmp_path / "old" / "state.db", tmp_path / "new" / "state.db")
    with pytest.raises(Damaged, match="it was replaced"):
        SqliteJournal(tmp_path / "new" / "state.db")


async def test_a_damaged_state_without_checksums_is_not_upgraded(tmp_path: Path) -> None:
    await written(tmp_path / "new")
    make_old(tmp_path / "new", tmp_path / "old", killed=False)
    path = tmp_path / "old" / "state.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET rootpage = 2 WHERE name = 'log'")
    before = path.read_bytes()
    with pytest.raises(FolderError, match="damaged"):
        SqliteJournal(path)
    assert path.read_bytes() == before


async def test_an_earlier_version_refuses_this_format_and_leaves_it(tmp_path: Path) -> None:
    """It begins with these statements, and reports the error of the last one."""
    await written(tmp_path)
    before = read_state(tmp_path / "state.db")
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        connection.executescript(OLD_SCHEMA)
        with pytest.raises(sqlite3.OperationalError, match="no such column: name"):
            connection.execute("SELECT name, value FROM state")
    assert read_state(tmp_path / "state.db") == before


async def test_a_format_of_a_later_version_is_refused(tmp_path: Path) -> None:
    await written(tmp_path)
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(FolderError, match="format 3, this Konverge knows 2: use the newer"):
        SqliteJournal(tmp_path / "state.db")


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        connection.execute("CREATE TABLE songs (name)")
    with pytest.raises(Damaged, match="of another program"):
        SqliteJournal(tmp_path / "state.db")


@pytest.mark.spec("T-06")
async def test_without_its_witness_a_state_is_refused(tmp_path: Path) -> None:
    await written(tmp_path)
    witness = witness_path(tmp_path / "state.db")
    whole = witness.read_bytes()
    witness.unlink()
    with pytest.raises(Damaged, match=r"state\.db-witness is missing"):
        SqliteJournal(tmp_path / "state.db")
    for data in (b"", bytes(len(whole)), whole[:10]):
        witness.write_bytes(data)
        with pytest.raises(Damaged, match=r"state\.db-witness is damaged"):
            SqliteJournal(tmp_path / "state.db")


async def test_half_a_witness_is_enough(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = await written(tmp_path)
    witness = witness_path(tmp_path / "state.db")
    whole = witness.read_bytes()
    for half in (whole[:4096] + bytes(4096), bytes(4096) + whole[4096:]):
        caplog.clear()
        witness.write_bytes(half)
        store = opened(tmp_path)
        assert content(store) == expected
        assert "damaged in part" in caplog.text
        await store.close()


@pytest.mark.spec("T-06")
async def test_a_witness_that_missed_the_last_writes_is_no_alarm(tmp_path: Path) -> None:
    """After a power loss: it is not synced with every commit. What it knows may even be dropped from the log."""
    store = opened(tmp_path)
    earlier = []
    for _ in range(4):
        earlier.append(witness_path(tmp_path / "state.db").read_bytes())
        await write(store, random.Random(5), 40)
    expected = content(store)
    assert store.compacted > 0
    await store.close()
    for data in earlier:
        witness_path(tmp_path / "state.db").write_bytes(data)
        again = opened(tmp_path)
        assert content(again) == expected
        await again.close()


async def test_a_copy_of_the_state_that_went_another_way_is_refused(tmp_path: Path) -> None:
    """It has the same identity, and a higher revision than the witness knows."""
    await written(tmp_path / "a", 30)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for folder, writes, seed in (("a", 4, 1), ("b", 9, 2)):
        store = opened(tmp_path / folder)
        for _ in range(writes):
            await write(store, random.Random(seed), 1)
        await store.close()
    shutil.copy(tmp_path / "b" / "state.db", tmp_path / "a" / "state.db")
    with pytest.raises(Damaged, match="not what was acknowledged"):
        SqliteJournal(tmp_path / "a" / "state.db")


@pytest.mark.parametrize("target", ["state.db-witness", "state.db"])
def test_a_first_start_that_was_interrupted_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    interrupt(tmp_path / "state.db", target, monkeypatch)
    assert not (tmp_path / "state.db").exists()
    SqliteJournal(tmp_path / "state.db").release()
    assert existing_state(tmp_path / "state.db").seal.count == 0


def test_where_nothing_was_there_is_nothing_to_check(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="there is no state in"):
        existing_state(tmp_path / "state.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("T-06")
async def test_the_witness_is_written_before_a_write_is_acknowledged(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(5):
        metadata = {"name": f"n{number}"}
        record = store.put(store.table("/configmaps"), {"metadata": metadata}, expected=0)
        await store.settled(record.revision)
        known = [mark.revision for mark in marks(tmp_path / "state.db") if mark is not None]
        assert max(known) == record.revision
        assert len(known) == 2
    await store.close()


async def test_the_newest_mark_stays_until_the_other_slot_is_written(tmp_path: Path) -> None:
    """If the power fails in the middle of the first write after a start, one mark is left, and it is the newest."""
    path = tmp_path / "state.db"
    seal = create_database(path, Seal(id=bytes(16), revision=0))
    for revision in range(1, 9):
        witness = Witness(path)
        before = [mark.revision for mark in marks(path) if mark is not None]
        witness.write(msgspec.structs.replace(seal, revision=revision))
        witness.close()
        after = [mark.revision for mark in marks(path) if mark is not None]
        assert sorted(after) == [max(before), revision]


def test_a_state_that_may_not_be_read_is_not_said_to_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    (tmp_path / "state.db" / "x").touch()
    with pytest.raises(FolderError, match="cannot be opened") as refused:
        read_state(tmp_path / "state.db")
    assert not isinstance(refused.value, Damaged)


async def test_a_witness_that_cannot_be_written_fails_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(witness: Witness, seal: Seal) -> None:
        raise OSError("no space left on device")

    store = opened(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Witness, "write", fails)
        await write(store, random.Random(1), 5)
    assert "state.db-witness cannot be written" in caplog.text
    expected = content(store)
    await store.close()
    again = opened(tmp_path)
    assert content(again) == expected
    await again.close()


async def test_a_group_that_was_not_committed_does_not_count(tmp_path: Path) -> None:
    """The sum over all rows is that of the last commit; a rollback needs no correction."""
    store = opened(tmp_path)
    await write(store, random.Random(1), 20)
    journal = store._journal
    assert isinstance(journal, SqliteJournal)
    kept = journal._seal
    event = store.table("/secrets").events[-1]
    journal._group_end = event.revision + 1
    journal._execute(
        [("/secrets", msgspec.structs.replace(event, key="ns/never", old=None, revision=event.revision + 1))]
    )
    journal._connection.execute("ROLLBACK")
    assert journal._seal == kept
    await write(store, random.Random(2), 20)
    await store.close()
    assert existing_state(tmp_path / "state.db").seal.revision == store.revision


async def test_a_row_that_vanished_while_the_server_runs_is_noticed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    table = store.table("/configmaps")
    record = store.put(table, {"metadata": {"name": "x"}}, expected=0)
    await store.settled(record.revision)
    journal = store._journal
    assert isinstance(journal, SqliteJournal)
    journal._connection.execute("DELETE FROM current WHERE key = 'x'")
    store.put(table, {"metadata": {"name": "x"}, "data": "new"}, expected=None)
    with pytest.raises(Exception, match="'x' of '/configmaps' is not on disk any more"):
        await store.settled(store.revision)
    await store.close()


def test_a_new_state_with_rows_and_a_log_is_read_as_it_was_made(tmp_path: Path) -> None:
    rows = [("/secrets", f"ns/{number}", b"{}") for number in range(3)]
    start = Seal(id=bytes(16), revision=9, compacted=4, base=77, base_revision=4)
    seal = create_database(tmp_path / "state.db", start, rows, [(6, b"a"), (9, b"b")])
    state = existing_state(tmp_path / "state.db")
    assert (state.seal, state.rows, [row[:2] for row in state.log]) == (seal, rows, [(6, b"a"), (9, b"b")])
    assert (seal.revision, seal.compacted, seal.count, seal.base) == (9, 4, 3, 77)
    create(tmp_path / "state.db", msgspec.structs.replace(seal, revision=10))
    with pytest.raises(Damaged, match="ends at revision 9, but revision 10 was acknowledged"):
        existing_state(tmp_path / "state.db")


async def test_no_file_is_touched_by_a_check(tmp_path: Path) -> None:
    store = opened(tmp_path / "live")
    await write(store, random.Random(1), 30)
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    await store.close()
    for folder in ("live", "killed"):
        before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / folder).iterdir()}
        existing_state(tmp_path / folder / "state.db")
        after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / folder).iterdir()}
        assert after == before
