"""The data folder: only its owner reads it, one server uses it, and what is wrong with it is said in a sentence."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from konverge.apiserver.server import ApiServer
from konverge.apiserver.storage import folder
from konverge.apiserver.storage.folder import DataFolder, FolderError
from konverge.apiserver.storage.sqlite import SqliteJournal

pytestmark = pytest.mark.spec("T-04")


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.fixture(autouse=True)
def _generous_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


async def test_everything_in_it_is_private_whatever_the_umask(tmp_path: Path) -> None:
    data = tmp_path / "deep" / "data"
    async with ApiServer(data_dir=data) as server:
        server.certificates("127.0.0.1")
        assert mode(data) == "0o700"
        files = {path.name: mode(path) for path in data.rglob("*") if path.is_file()}
        assert {"state.db", "state.db-wal", "token"} <= set(files)
        assert set(files.values()) == {"0o600"}


def test_what_an_earlier_version_left_open_is_closed_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("state.db", "state.db-wal", "token", "notes.txt"):
        (tmp_path / name).touch(mode=0o644)
    tmp_path.chmod(0o755)
    with closing(DataFolder(tmp_path)):
        assert mode(tmp_path) == "0o700"
        assert [mode(tmp_path / name) for name in ("state.db", "state.db-wal", "token")] == ["0o600"] * 3
        assert mode(tmp_path / "notes.txt") == "0o644"
    assert len(caplog.messages) == 1
    assert "state.db-wal" in caplog.messages[0]
    caplog.clear()
    with closing(DataFolder(tmp_path)):
        assert caplog.messages == []


def test_an_empty_folder_becomes_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with closing(DataFolder(tmp_path)):
        assert mode(tmp_path) == "0o700"


def test_a_folder_with_other_things_keeps_its_mode_unless_others_write_there(tmp_path: Path) -> None:
    (tmp_path / "project.py").touch()
    tmp_path.chmod(0o755)
    with closing(DataFolder(tmp_path)):
        assert mode(tmp_path) == "0o755"
    tmp_path.chmod(0o777)
    with pytest.raises(FolderError, match="a folder of its own"):
        DataFolder(tmp_path)


def test_what_belongs_to_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state.db").touch(mode=0o644)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(FolderError, match=f"belongs to user {os.getuid()}"):
        DataFolder(tmp_path)
    assert (mode(tmp_path), mode(tmp_path / "state.db")) == ("0o755", "0o644")


def test_one_holder_at_a_time_and_its_process_is_named(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    with pytest.raises(FolderError, match=rf"{tmp_path} is in use by process {os.getpid()}: "):
        DataFolder(tmp_path)
    first.close()
    first.close()
    DataFolder(tmp_path).close()


async def test_a_second_server_changes_nothing(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(FolderError, match="in use"):
            ApiServer(data_dir=tmp_path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    async with ApiServer(data_dir=tmp_path) as again:
        assert again.token == server.token


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="is a file"):
        DataFolder(tmp_path / "file")
    with pytest.raises(FolderError, match="cannot be used"):
        DataFolder(tmp_path / "file" / "below")


def test_a_state_that_is_none_is_named_and_let_go(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"not a database at all, but long enough to have a header" * 40)
    for _ in range(2):
        with pytest.raises(FolderError, match=r"state\.db is damaged or of another program"):
            SqliteJournal(tmp_path / "state.db")


async def test_a_record_that_cannot_be_read_is_reported_as_damage(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection, connection:
        connection.execute("UPDATE log SET changes = ?", (b"\xff\xff",))
    for _ in range(2):  # the lock is let go
        with pytest.raises(FolderError, match="damaged"):
            SqliteJournal(tmp_path / "state.db")


def test_a_state_that_another_program_has_open_is_said_to_be(tmp_path: Path) -> None:
    SqliteJournal(tmp_path / "state.db")._connection.close()
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(FolderError, match="open in another program"):
            SqliteJournal(tmp_path / "state.db")


def test_the_name_of_a_new_folder_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(folder, "sync_folder", synced.append)
    DataFolder(tmp_path / "data").close()
    assert synced == [tmp_path]
    DataFolder(tmp_path / "data").close()
    assert synced == [tmp_path]
