"""Each rule by itself: a state that every other rule would accept."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from konverge.apiserver.storage.checksums import chained, row_checksum
from konverge.apiserver.storage.database import Damaged
from konverge.apiserver.storage.integrity import existing_state, read_state
from konverge.apiserver.storage.pages import PAGE
from konverge.apiserver.storage.witness import Witness
from tests.apiserver.storage.corruptions import opened, write

pytestmark = pytest.mark.spec("T-06")

INDEX_LEAF = 0x0A


@pytest.fixture
def state(tmp_path: Path) -> Path:
    async def fill() -> None:
        store = opened(tmp_path)
        await write(store, random.Random(4), 90)
        await store.close()

    asyncio.run(fill())
    existing_state(tmp_path / "state.db")
    return tmp_path / "state.db"


def change(state: Path, statement: str, *values: object) -> None:
    """As SQLite itself would: every page stays as it must be."""
    with closing(sqlite3.connect(state)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def refused(state: Path, text: str) -> None:
    with pytest.raises(Damaged, match=text):
        read_state(state)


def test_another_object_with_a_right_checksum(state: Path) -> None:
    """The page of an earlier time."""
    table, key, data = existing_state(state).rows[3]
    other = data.replace(b'"data"', b'"date"')
    statement = "UPDATE current SET data = ?, checksum = ? WHERE tbl = ? AND key = ?"
    change(state, statement, other, row_checksum(table, key, other), table, key)
    refused(state, "or others than were written")


def test_an_object_more_and_an_object_less(state: Path) -> None:
    table, key, data = existing_state(state).rows[3]
    change(state, "DELETE FROM current WHERE tbl = ? AND key = ?", table, key)
    refused(state, "objects of")
    other = "ns/other"
    checksum = row_checksum(table, other, data)
    change(state, "INSERT INTO current VALUES (?, ?, ?, ?)", table, other, data, checksum)
    refused(state, "or others than were written")


def test_an_object_under_another_name(state: Path) -> None:
    table, key, _ = existing_state(state).rows[3]
    change(state, "UPDATE current SET key = 'ns/other' WHERE tbl = ? AND key = ?", table, key)
    refused(state, "the checksum of 'ns/other' in .* is wrong")


@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_part_of_the_history_that_is_gone_or_changed(state: Path, place: int) -> None:
    revision, changes, _ = existing_state(state).log[place]
    change(state, "UPDATE log SET changes = ? WHERE revision = ?", changes + b"x", revision)
    refused(state, f"its history is broken at revision {revision}")
    change(state, "DELETE FROM log WHERE revision = ?", revision)
    refused(state, "its history is broken" if place != -1 else "its history ends at revision")


def test_the_end_of_the_history_with_right_checksums(state: Path) -> None:
    log = existing_state(state).log
    revision, changes, _ = log[-1]
    checksum = chained(log[-2][2], revision, changes + b"x")
    change(state, "UPDATE log SET changes = ?, checksum = ? WHERE revision = ?", changes + b"x", checksum, revision)
    refused(state, f"its history ends at revision {revision}")


@pytest.mark.parametrize(
    "statement", ["UPDATE seal SET data = x'00'", "UPDATE seal SET data = 'text'", "DELETE FROM seal"]
)
def test_a_seal_that_is_none(state: Path, statement: str) -> None:
    change(state, statement)
    refused(state, "its seal cannot be read")


@pytest.mark.parametrize("column", ["tbl", "key", "data", "checksum"])
def test_columns_of_another_type(state: Path, column: str) -> None:
    value = "'text'" if column in ("data", "checksum") else "x'ff'"
    change(state, f"UPDATE current SET {column} = {value} WHERE rowid = (SELECT min(rowid) FROM current)")
    refused(state, "is wrong")


@pytest.mark.parametrize("slots", [1, 2])
def test_the_newest_mark_counts(state: Path, slots: int) -> None:
    seal = existing_state(state).seal
    witness = Witness(state)
    for number in range(slots):
        witness.write(msgspec.structs.replace(seal, revision=seal.revision + 1 + number))
    witness.close()
    refused(state, f"ends at revision {seal.revision}, but revision {seal.revision + slots} was acknowledged")


def test_the_same_revision_by_another_way(state: Path) -> None:
    seal = existing_state(state).seal
    witness = Witness(state)
    for _ in range(2):
        witness.write(msgspec.structs.replace(seal, chain=seal.chain ^ 1))
    witness.close()
    refused(state, f"at revision {seal.revision} it is not what was acknowledged")


def alter(state: Path, page_kind: int, edit: Callable[[bytearray], None]) -> None:
    data = bytearray(state.read_bytes())
    places = [place for place in range(PAGE, len(data), PAGE) if data[place] == page_kind]
    page = data[places[0] : places[0] + PAGE]
    edit(page)
    data[places[0] : places[0] + PAGE] = page
    state.write_bytes(data)


def test_an_index_that_names_another_object(state: Path) -> None:
    """SQLite would not find the row when it is written next, and keep both."""

    def rename(page: bytearray) -> None:
        place = page.rindex(b"ns/n1") + 4
        page[place] = ord("0")

    alter(state, INDEX_LEAF, rename)
    refused(state, "is damaged")


async def test_a_free_list_that_names_pages_in_use(tmp_path: Path) -> None:
    """SQLite would write over them later."""
    store = opened(tmp_path)
    table = store.table("/secrets")
    for number in range(30):
        store.put(table, {"metadata": {"name": f"n{number}"}, "data": "x" * 9000}, expected=0)
    await store.settled(store.revision)
    for number in range(20):
        store.remove(table, f"n{number}", expected=None)
    for _ in range(100):  # until the history has dropped them
        await store.settled(store.put(table, {"metadata": {"name": "n"}}, expected=None).revision)
    await store.close()
    state = tmp_path / "state.db"
    data = bytearray(state.read_bytes())
    trunk = int.from_bytes(data[32:36], "big")
    assert trunk
    place = (trunk - 1) * PAGE
    leaves = int.from_bytes(data[place + 4 : place + 8], "big")
    assert leaves
    data[place + 8 : place + 12] = (2).to_bytes(4, "big")
    state.write_bytes(data)
    refused(state, "is damaged")
