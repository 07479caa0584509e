"""Pages of damaged files: what is damaged costs itself, and no intact page or frame besides."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from konverge.apiserver.storage.pages import PAGE, Pages
from konverge.apiserver.storage.salvage import salvage
from tests.apiserver.storage.corruptions import LOG, States
from tests.apiserver.storage.test_salvage import acknowledged, saved

FRAME = PAGE + 24


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> States:
    return States(tmp_path_factory.mktemp("states"))


@pytest.mark.spec("T-06")
def test_a_log_of_zeros_has_no_frames(states: States, tmp_path: Path) -> None:
    """A server that has not written since its start leaves one."""
    shutil.copytree(states.folder / "stopped", tmp_path / "damaged")
    (tmp_path / "damaged" / LOG).write_bytes(bytes(32 + 9 * FRAME))
    assert salvage(tmp_path / "damaged", tmp_path / "saved").complete
    assert saved(tmp_path / "saved") == acknowledged(states)


@pytest.mark.spec("T-06")
@pytest.mark.parametrize("block", [0, 1, 5])
def test_the_frames_after_a_block_of_zeros_count(states: States, tmp_path: Path, block: int) -> None:
    shutil.copytree(states.folder / "killed", tmp_path / "damaged")
    path = tmp_path / "damaged" / LOG
    data = bytearray(path.read_bytes())
    data[block * PAGE : (block + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(data)
    report = salvage(tmp_path / "damaged", tmp_path / "saved")
    assert report.reached == states.expected["killed"][0]
    truth = acknowledged(states)
    same = [where for where, data in saved(tmp_path / "saved").items() if truth.get(where) == data]
    assert len(same) >= len(truth) - 2 * PAGE // 250


@pytest.mark.spec("T-06")
def test_frames_of_an_earlier_use_of_the_log_do_not_count(states: States, tmp_path: Path) -> None:
    """They come after those of this use, and may be more; without the header, too."""
    shutil.copytree(states.folder / "killed", tmp_path / "damaged")
    path = tmp_path / "damaged" / LOG
    data = path.read_bytes()
    used = [place for place in range(32, len(data) - FRAME + 1, FRAME) if any(data[place : place + 24])]
    old = b"".join(data[place : place + 8] + b"old salt" + data[place + 16 : place + FRAME] for place in used[:9])
    path.write_bytes(bytes(24) + data[24 : used[-1] + FRAME] + len(used) * old)
    assert salvage(tmp_path / "damaged", tmp_path / "saved").complete
    assert saved(tmp_path / "saved") == acknowledged(states)


def with_free_pages(path: Path, tables: int) -> set[str]:
    """A database with a free list, whose pages keep what they held; returns what is not deleted."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("PRAGMA secure_delete = OFF")
        for table in range(tables):
            connection.execute(f"CREATE TABLE t{table} (value TEXT)")
        for table in range(tables):
            rows = [(f"{table} {number} " * 300,) for number in range(20)]
            connection.executemany(f"INSERT INTO t{table} VALUES (?)", rows)
        connection.commit()
        for table in range(tables):
            connection.execute(f"DELETE FROM t{table} WHERE rowid > ?", (1 if table == 0 else 14,))
        left = [connection.execute(f"SELECT value FROM t{table}").fetchall() for table in range(tables)]
    return {value for rows in left for (value,) in rows}


def values(path: Path) -> set[str]:
    return {str(columns[0]) for _, columns in Pages(path).rows() if len(columns) == 1}


@pytest.mark.spec("T-06")
def test_a_damaged_free_list_hides_no_page_that_is_used(tmp_path: Path) -> None:
    """Its start, its count, and each of its entries, bit by bit; one of the tables has a single page."""
    path = tmp_path / "a.db"
    left = with_free_pages(path, 3)
    assert values(path) == left
    data = path.read_bytes()
    trunk = (int.from_bytes(data[32:36], "big") - 1) * PAGE
    entries = int.from_bytes(data[trunk + 4 : trunk + 8], "big")
    assert entries > 5
    places = [*range(32, 40), *range(trunk, trunk + 8 + 4 * entries)]
    for place in places:
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            assert values(path) >= left, (place - trunk, bit)


def test_a_free_list_that_ends_in_itself_is_no_list(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    left = with_free_pages(path, 1)
    data = bytearray(path.read_bytes())
    trunk = (int.from_bytes(data[32:36], "big") - 1) * PAGE
    data[trunk : trunk + 4] = data[32:36]
    path.write_bytes(data)
    assert values(path) > left


@pytest.mark.parametrize("size", [2 * PAGE + 600, 1 << 26])
def test_a_row_whose_pages_have_no_end_is_left_out(tmp_path: Path, size: int) -> None:
    """A page that names itself as the next, with a size that two pages could hold, and one that no file of four can."""
    place = 100
    cell = bytes([0x80 | size >> 21, 0x80 | size >> 14 & 0x7F, 0x80 | size >> 7 & 0x7F, size & 0x7F, 1])
    local = 489 + (size - 489) % (PAGE - 4)
    local = local if local <= PAGE - 35 else 489
    leaf = bytes([0x0D, 0, 0, 0, 1, 0, 0, 0, 0, place]).ljust(place, b"\0") + cell + bytes(local) + b"\0\0\0\3"
    path = tmp_path / "a.db"
    path.write_bytes(bytes(PAGE) + leaf.ljust(PAGE, b"\0") + b"\0\0\0\4".ljust(PAGE, b"\0") + bytes(PAGE))
    if size < 4 * PAGE:
        assert list(Pages(path).rows()) == [(1, ())]
    path.write_bytes(bytes(PAGE) + leaf.ljust(PAGE, b"\0") + b"\0\0\0\3".ljust(PAGE, b"\0") + bytes(PAGE))
    assert list(Pages(path).rows()) == []
