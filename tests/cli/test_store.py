"""`konverge store`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.storage.backup import backup_rows, check_backup
from konverge.apiserver.storage.integrity import existing_state
from konverge.cli import store
from konverge.cli.main import main, parser
from tests.apiserver.api import Api
from tests.apiserver.storage.corruptions import opened, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    async def fill() -> None:
        opened_store = opened(tmp_path / "data")
        await write(opened_store, random.Random(1), 60)
        await opened_store.close()

    asyncio.run(fill())
    return tmp_path / "data"


def damage(folder: Path) -> None:
    """One byte of one object, not of a copy in the history."""
    path = folder / "state.db"
    data = bytearray(path.read_bytes())
    content = next(row for _, _, row in existing_state(path).rows if data.count(row) == 1)
    data[data.index(content) + len(content) - 5] ^= 1
    path.write_bytes(data)


@pytest.mark.spec("T-06")
def test_check_says_whether_a_state_is_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = existing_state(folder / "state.db").seal.count
    assert main(["store", "check", str(folder)]) == 0
    assert capsys.readouterr().out == f"ok: {count} objects at revision 61\n"
    assert main(["store", "check", str(folder), "--output", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["ok"], facts["objects"], facts["revision"]) == (True, count, 61)

    damage(folder)
    assert main(["store", "check", str(folder)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("damaged: ")
    assert f"konverge store salvage {folder} --to NEW_DIR" in printed
    assert main(["store", "check", str(folder), "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


@pytest.mark.spec("T-06")
def test_a_server_does_not_start_on_a_damaged_state(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(folder)
    before = {path.name: path.read_bytes() for path in folder.glob("state.db*")}
    assert main(["apiserver", "--data-dir", str(folder)]) == 1
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert "is damaged (the checksum of" in printed.err
    assert f"konverge store salvage {folder} --to NEW_DIR" in printed.err
    assert {path.name: path.read_bytes() for path in folder.glob("state.db*")} == before


def test_what_cannot_be_checked_is_another_exit_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def check_while_it_is_used() -> int:
        used = opened(folder)
        status = await asyncio.to_thread(main, ["store", "check", str(folder)])
        await used.close()
        return status

    assert asyncio.run(check_while_it_is_used()) == 2
    assert "in use by process" in capsys.readouterr().err
    assert main(["store", "check", str(folder / "nowhere")]) == 1
    assert "does not exist" in capsys.readouterr().err
    (folder.parent / "empty").mkdir()
    assert main(["store", "check", str(folder.parent / "empty")]) == 1
    assert "there is no state in" in capsys.readouterr().err
    assert list((folder.parent / "empty").iterdir()) == []


@pytest.mark.spec("T-07")
def test_a_folder_is_backed_up_and_restored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = folder.parent / "a.backup", folder.parent / "other"
    before = existing_state(folder / "state.db")
    assert main(["store", "backup", str(folder), "--to", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: {before.seal.count} objects at revision 61\n"
    assert main(["store", "backup", str(folder), "--to", str(file)]) == 2
    assert "exists; give the name of a new file" in capsys.readouterr().err

    assert main(["store", "restore", str(file), "--to", str(other)]) == 0
    after = existing_state(other / "state.db")
    assert f"as at revision 61; revisions go on at {after.seal.revision}" in capsys.readouterr().out
    assert after.rows == before.rows
    assert main(["store", "restore", str(file), "--to", str(other)]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["store", "restore", str(file), "--to", str(other), "--force"]) == 0
    assert f"the state that was there is in {other}/replaced-{after.seal.revision}" in capsys.readouterr().out


def test_a_damaged_folder_is_not_backed_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(folder)
    assert main(["store", "backup", str(folder), "--to", str(folder.parent / "a")]) == 1
    assert "konverge store salvage" in capsys.readouterr().err
    assert not (folder.parent / "a").exists()
    (folder.parent / "b").write_text("no backup")
    assert main(["store", "restore", str(folder.parent / "b"), "--to", str(folder.parent / "c")]) == 1
    assert "is no backup" in capsys.readouterr().err
    assert not (folder.parent / "c").exists()


@pytest.mark.spec("T-06")
def test_salvage_lists_what_is_lost(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = existing_state(folder / "state.db").rows
    assert main(["store", "salvage", str(folder), "--to", str(folder.parent / "whole")]) == 0
    assert "nothing that was acknowledged is lost" in capsys.readouterr().out
    damage(folder)
    before = (folder / "state.db").read_bytes()
    assert main(["store", "salvage", str(folder), "--to", str(folder.parent / "saved")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{folder.parent}/saved: {len(rows) - 1} objects saved")
    ((kind, key),) = [line.removeprefix("lost: ").split() for line in lines if line.startswith("lost: ")]
    saved = existing_state(folder.parent / "saved" / "state.db").rows
    ((table, lost, _),) = set(rows) - set(saved)
    assert (kind, key) == (table.rpartition("/")[2] + (".apps" if table.startswith("apps") else ""), lost)
    assert (folder / "state.db").read_bytes() == before
    assert main(["store", "salvage", str(folder), "--to", str(folder.parent / "more"), "-o", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["lost"], report["complete"], report["saved"]) == ([[table, lost]], False, len(rows) - 1)
    assert main(["store", "salvage", str(folder), "--to", str(folder)]) == 1


@pytest.mark.spec("T-07")
async def test_a_server_that_runs_is_backed_up(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path / "data") as server:
        await Api(server).create("kept")
        url = await server.listen()
        (tmp_path / "kubeconfig").write_text(json.dumps(server.kubeconfig(url)))
        line = ["store", "backup", "--kubeconfig", str(tmp_path / "kubeconfig"), "--to", str(tmp_path / "a")]
        await store._back_up_server(parser().parse_args(line), tmp_path / "a")
        head, end = check_backup(tmp_path / "a")
        assert (head.revision, end.count) == (
            server.store.durable,
            sum(len(t.records) for t in server.store.tables.values()),
        )
        assert ("/configmaps", "default/kept") in [row[:2] for row in backup_rows(tmp_path / "a")]


def test_a_folder_and_a_kubeconfig_are_too_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "backup", str(tmp_path), "--kubeconfig", "x", "--to", str(tmp_path / "a")]) == 2
    assert "not both" in capsys.readouterr().err
