"""Salvage: whatever is damaged, all that is intact is saved, nothing that was never written, and the source is left."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from konverge.apiserver.storage.checksums import Seal
from konverge.apiserver.storage.folder import FolderError
from konverge.apiserver.storage.integrity import existing_state
from konverge.apiserver.storage.pages import PAGE, Pages
from konverge.apiserver.storage.restore import BUMP
from konverge.apiserver.storage.salvage import NothingSaved, salvage
from tests.apiserver.storage.corruptions import (
    DAMAGES,
    FILES,
    LOG,
    States,
    flip_a_bit,
    opened,
    remove,
    write,
)
from tests.apiserver.storage.test_integrity import make_old, written


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> States:
    return States(tmp_path_factory.mktemp("states"))


def saved(folder: Path) -> dict[tuple[str, str], bytes]:
    return {(table, key): data for table, key, data in existing_state(folder / "state.db").rows}


def acknowledged(states: States) -> dict[tuple[str, str], bytes]:
    return {(name, key): data for name, rows in states.expected["killed"][1].items() for key, data in rows.items()}


@pytest.mark.spec("T-06")
@pytest.mark.parametrize("variant", ["stopped", "killed"])
def test_of_a_whole_state_everything_is_saved(states: States, tmp_path: Path, variant: str) -> None:
    report = salvage(states.folder / variant, tmp_path / "saved")
    assert saved(tmp_path / "saved") == acknowledged(states)
    assert (report.complete, report.lost, report.older, report.unnamed) == (True, [], [], 0)
    assert report.saved == len(acknowledged(states))
    assert report.revision == report.reached == states.expected[variant][0]
    assert report.begins >= report.revision + BUMP


def salvaged(states: States, folder: Path, seed: int) -> None:
    """Damage a state and save it; what is saved must be true, and what is not must be reported."""
    rng = random.Random(seed)
    damage, variant = DAMAGES[seed % len(DAMAGES)], rng.choice(("stopped", "killed"))
    name = rng.choice(FILES[variant])
    shutil.copytree(states.folder / variant, folder / "damaged")
    damage(rng, folder / "damaged" / name, states)
    before = {path.name: path.read_bytes() for path in (folder / "damaged").iterdir()}
    text = f"seed {seed}: {damage.__name__} {name}, {variant}"
    report = salvage(folder / "damaged", folder / "saved")
    assert {path.name: path.read_bytes() for path in (folder / "damaged").iterdir()} == before, text
    truth, result = acknowledged(states), saved(folder / "saved")
    if report.complete:
        assert result == truth, text
    if damage.__name__ not in ("take_another_one", "take_an_older_one", "revert_a_page", "remove_all_but", "remove"):
        older = {(table, key) for table, key, _ in report.older}
        wrong = {where for where, data in result.items() if truth.get(where) != data} - older
        missing = truth.keys() - result.keys() - set(report.lost)
        cut = report.reached < states.expected[variant][0]
        assert cut or not wrong, text
        assert cut or len(missing) <= report.unnamed, text


@pytest.mark.spec("T-06")
def test_what_is_saved_is_true_and_the_rest_is_reported(states: States, tmp_path: Path) -> None:
    for seed in range(2 * len(DAMAGES)):
        check(states, tmp_path, seed)


@pytest.mark.long
def test_what_is_saved_of_many_damages(states: States, tmp_path: Path) -> None:
    for seed in range(1000, 1260):
        check(states, tmp_path, seed)


def check(states: States, folder: Path, seed: int) -> None:
    with contextlib.suppress(NothingSaved):  # the database is gone
        salvaged(states, folder / str(seed), seed)
    shutil.rmtree(folder / str(seed))


@pytest.mark.spec("T-06")
@pytest.mark.parametrize("seed", range(6))
def test_a_flipped_bit_in_the_log_costs_a_page_at_most(states: States, tmp_path: Path, seed: int) -> None:
    """SQLite itself loses everything from there on."""
    shutil.copytree(states.folder / "killed", tmp_path / "damaged")
    flip_a_bit(random.Random(seed), tmp_path / "damaged" / LOG, states)
    report = salvage(tmp_path / "damaged", tmp_path / "saved")
    truth = acknowledged(states)
    same = [where for where, data in saved(tmp_path / "saved").items() if truth.get(where) == data]
    assert len(same) >= len(truth) - PAGE // 250
    assert len(report.lost) + len(report.older) + report.unnamed <= PAGE // 250


def test_the_first_page_is_not_needed(states: States, tmp_path: Path) -> None:
    """With it SQLite would not find any table."""
    shutil.copytree(states.folder / "stopped", tmp_path / "damaged")
    path = tmp_path / "damaged" / "state.db"
    path.write_bytes(bytes(PAGE) + path.read_bytes()[PAGE:])
    salvage(tmp_path / "damaged", tmp_path / "saved")
    assert saved(tmp_path / "saved").items() >= acknowledged(states).items()


def test_what_was_deleted_does_not_come_back_from_an_older_page(states: States, tmp_path: Path) -> None:
    """The log says that it was deleted."""
    shutil.copytree(states.folder / "older", tmp_path / "damaged")
    for name in ("state.db-wal", "state.db-witness"):
        shutil.copy(states.folder / "killed" / name, tmp_path / "damaged" / name)
    salvage(tmp_path / "damaged", tmp_path / "saved")
    assert saved(tmp_path / "saved").keys() == acknowledged(states).keys()


def test_a_lost_log_is_reported_by_its_revisions(states: States, tmp_path: Path) -> None:
    shutil.copytree(states.folder / "killed", tmp_path / "damaged")
    remove(random.Random(0), tmp_path / "damaged" / LOG, states)
    report = salvage(tmp_path / "damaged", tmp_path / "saved")
    assert report.reached < report.revision == states.expected["killed"][0]
    assert not report.complete
    assert report.begins > report.revision


def test_keys_and_tokens_come_along_and_a_target_is_never_replaced(states: States, tmp_path: Path) -> None:
    shutil.copytree(states.folder / "stopped", tmp_path / "damaged")
    (tmp_path / "damaged" / "pki").mkdir()
    for name in ("token", "service-account.key", "pki/ca.pem"):
        (tmp_path / "damaged" / name).write_text(name)
    salvage(tmp_path / "damaged", tmp_path / "saved")
    for name in ("token", "service-account.key", "pki/ca.pem"):
        assert (tmp_path / "saved" / name).read_text() == name
        assert (tmp_path / "saved" / name).stat().st_mode & 0o077 == 0
    for target in ("saved", "damaged"):
        with pytest.raises(FolderError, match="has a state already"):
            salvage(tmp_path / "damaged", tmp_path / target)


@pytest.mark.spec("T-06")
def test_keys_are_copied_privately_and_before_there_is_a_state(
    states: States, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that finds the state without them would make others, and all credentials would end."""
    shutil.copytree(states.folder / "stopped", tmp_path / "damaged")
    (tmp_path / "damaged" / "token").write_text("secret")
    for name in ("state.db.new", "state.db-witness.new", "state.db.new-journal"):
        (tmp_path / "damaged" / name).write_text("left by a crash")

    def fails(folder: Path, *_: object) -> Seal:
        assert (folder / "token").read_text() == "secret"
        raise FolderError("full")

    created: list[int] = []
    replace = Path.replace

    def replaced(new: Path, to: Path) -> Path:
        created.append(new.stat().st_mode & 0o077)
        assert not to.exists()
        return replace(new, to)

    monkeypatch.setattr("konverge.apiserver.storage.salvage.create_fresh", fails)
    monkeypatch.setattr(Path, "replace", replaced)
    with pytest.raises(FolderError, match="full"):
        salvage(tmp_path / "damaged", tmp_path / "saved")
    assert created == [0]
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {"lock", "token"}


def test_from_nothing_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"x" * 10_000)
    with pytest.raises(FolderError, match=r"nothing in .* could be saved"):
        salvage(tmp_path, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


async def test_a_state_without_checksums_can_be_saved_too(tmp_path: Path) -> None:
    expected = await written(tmp_path / "new")
    make_old(tmp_path / "new", tmp_path / "old", killed=True)
    salvage(tmp_path / "old", tmp_path / "saved")
    truth = {(name, key): data for name, rows in expected[1].items() for key, data in rows.items()}
    assert saved(tmp_path / "saved") == truth


async def test_a_salvaged_state_can_be_used(states: States, tmp_path: Path) -> None:
    report = salvage(states.folder / "killed", tmp_path / "saved")
    store = opened(tmp_path / "saved")
    assert store.revision == store.compacted == report.begins
    await write(store, random.Random(1), 20)
    await store.close()
    assert existing_state(tmp_path / "saved" / "state.db").seal.revision == report.begins + 20


def test_pages_are_read_as_sqlite_reads_them(tmp_path: Path) -> None:
    """All types of values, and rows over many pages."""
    rows = [
        (number, value)
        for number, value in enumerate(
            [
                None,
                0,
                1,
                -1,
                127,
                -128,
                2**15,
                -(2**23),
                2**31,
                -(2**40),
                2**62,
                "",
                "text",
                "é" * 3000,
                b"",
                b"x" * 50_000,
            ]
        )
    ]
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("CREATE TABLE t (number INTEGER, value BLOB)")
        connection.execute("CREATE INDEX i ON t (value, number)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    pages = Pages(tmp_path / "a.db")
    assert [columns for _, columns in pages.rows() if len(columns) == 2] == rows
    assert {columns[:2] for _, columns in pages.index_entries()} == {(value, number) for number, value in rows}


def test_a_damaged_last_frame_costs_nothing_but_what_is_damaged(states: States, tmp_path: Path) -> None:
    """The frame that ends the last group: the others of the group count, and so does its page, row by row."""
    shutil.copytree(states.folder / "killed", tmp_path / "damaged")
    path = tmp_path / "damaged" / LOG
    data = bytearray(path.read_bytes())
    frame = PAGE + 24
    last = max(place for place in range(32, len(data) - frame, frame) if any(data[place : place + 24]))
    data[last + 20] ^= 1  # its checksum
    path.write_bytes(data)
    assert not salvage(tmp_path / "damaged", tmp_path / "saved").lost
    assert saved(tmp_path / "saved") == acknowledged(states)


async def test_an_object_whose_newest_state_is_lost_is_saved_as_it_was_before(tmp_path: Path) -> None:
    store = opened(tmp_path / "data")
    table = store.table("/secrets")
    for value in ("first", "second"):
        record = store.put(table, {"metadata": {"name": "x"}, "data": value * 20}, expected=None)
        await store.settled(record.revision)
    await store.close()
    path = tmp_path / "data" / "state.db"
    data = path.read_bytes()
    assert data.count(b"secondsecond") > 0
    path.write_bytes(data.replace(b"secondsecond", b"sEcondsecond"))
    report = salvage(tmp_path / "data", tmp_path / "saved")
    assert (report.older, report.lost, report.complete) == ([("/secrets", "x", record.revision - 1)], [], False)
    assert b"first" in saved(tmp_path / "saved")["/secrets", "x"]


def test_with_the_witness_of_another_state_nothing_is_called_complete(states: States, tmp_path: Path) -> None:
    shutil.copytree(states.folder / "stopped", tmp_path / "damaged")
    shutil.copy(states.folder / "other" / "state.db-witness", tmp_path / "damaged" / "state.db-witness")
    report = salvage(tmp_path / "damaged", tmp_path / "saved")
    assert (report.complete, report.witnessed) == (False, True)
    assert saved(tmp_path / "saved") == acknowledged(states)


def test_what_is_on_free_pages_was_deleted(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE t (value TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", [(f"{number} " * 900,) for number in range(20)])
        connection.commit()
        connection.execute("DELETE FROM t WHERE rowid > 2")
    rows = [columns for _, columns in Pages(tmp_path / "a.db").rows() if len(columns) == 1]
    assert len(rows) == 2
