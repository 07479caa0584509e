"""Damage a state in many ways and see whether a server notices: for test_corruptions.

A state is made once, as a server leaves it that was stopped and one that was killed, with copies of its files from
earlier. A seed chooses what happens to one of the files. After that a server either refuses the state, or has exactly
what was acknowledged and can go on with it.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from konverge.apiserver.storage import HistoryLimits, Store
from konverge.apiserver.storage.folder import FolderError
from konverge.apiserver.storage.sqlite import SqliteJournal

PAGE = 4096
LIMITS = HistoryLimits(events=60)
DATABASE, LOG, WITNESS = "state.db", "state.db-wal", "state.db-witness"
FILES = {"stopped": (DATABASE, WITNESS), "killed": (DATABASE, LOG, WITNESS)}

Content = tuple[int, dict[str, dict[str, Any]], list[tuple[int, str, Any, Any]]]


def opened(folder: Path) -> Store:
    journal = SqliteJournal(folder / DATABASE)
    store = Store(history=LIMITS, journal=journal)
    journal.load(store)
    return store


def content(store: Store) -> Content:
    """Everything that a client can see: revision, objects, history."""
    objects = {name: {key: r.data for key, r in table.records.items()} for name, table in store.tables.items()}
    events = [
        (e.revision, e.key, e.record and e.record.data, e.old and e.old.data)
        for _, table in sorted(store.tables.items())
        for e in table.events
        if e.revision > store.compacted
    ]
    return store.revision, {name: rows for name, rows in objects.items() if rows}, events


async def write(store: Store, rng: random.Random, writes: int) -> None:
    """Objects of all sizes, some changed and removed, in groups of several."""
    for _ in range(writes):
        table = store.table(rng.choice(("/configmaps", "/secrets", "apps/deployments")))
        name = f"n{rng.randrange(25)}"
        if f"ns/{name}" in table.records and rng.random() < 0.3:
            store.remove(table, f"ns/{name}", expected=None)
        else:
            data = rng.randbytes(rng.choice((20, 200, 900, 3000, 9000)) // 2).hex()
            store.put(table, {"metadata": {"name": name, "namespace": "ns"}, "data": data}, expected=None)
        if rng.random() < 0.5:
            await store.settled(store.revision)
    await store.settled(store.revision)


class States:
    """The folders: `stopped` and `killed`, `older` of the same state, `other` of another one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.expected: dict[str, Content] = {}
        asyncio.run(self._make())

    async def _make(self) -> None:
        rng = random.Random(1)
        for name in ("other", "live"):
            store = opened(self.folder / name)
            await write(store, rng, 150)
            await store.close()
        store = opened(self.folder / "live")
        await write(store, rng, 60)
        shutil.copytree(self.folder / "live", self.folder / "older")
        await write(store, rng, 60)
        shutil.copytree(self.folder / "live", self.folder / "killed")
        self.expected["killed"] = self.expected["stopped"] = content(store)
        await store.close()
        shutil.copytree(self.folder / "live", self.folder / "stopped")


Damage = Callable[[random.Random, Path, States], None]


def flip_a_bit(rng: random.Random, path: Path, states: States) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(_written(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def flip_a_bit_of_a_header(rng: random.Random, path: Path, states: States) -> None:
    """Of the file, of a page or of a frame: where a single bit means most."""
    data = bytearray(path.read_bytes())
    unit = PAGE + 24 if path.name == LOG else PAGE
    place = rng.randrange(max(1, _written(data) // unit)) * unit + rng.randrange(100)
    data[min(place, len(data) - 1)] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def scramble(rng: random.Random, path: Path, states: States) -> None:
    data = bytearray(path.read_bytes())
    place = rng.randrange(_written(data))
    data[place : place + 64] = rng.randbytes(len(data[place : place + 64]))
    path.write_bytes(data)


def zero_a_page(rng: random.Random, path: Path, states: States) -> None:
    data = bytearray(path.read_bytes())
    size = rng.choice((512, PAGE))
    place = rng.randrange(max(1, _written(data) // size)) * size
    data[place : place + size] = bytes(len(data[place : place + size]))
    path.write_bytes(data)


def revert_a_page(rng: random.Random, path: Path, states: States) -> None:
    """A write that the disk said it had done."""
    data, old = bytearray(path.read_bytes()), (states.folder / "older" / path.name).read_bytes()
    places = [p for p in range(0, min(len(data), len(old)), PAGE) if data[p : p + PAGE] != old[p : p + PAGE]]
    if places:
        place = rng.choice(places)
        data[place : place + PAGE] = old[place : place + PAGE]
        path.write_bytes(data)


def misplace_a_page(rng: random.Random, path: Path, states: States) -> None:
    data = bytearray(path.read_bytes())
    pages = max(1, _written(data) // PAGE)
    source, target = rng.randrange(pages) * PAGE, rng.randrange(pages) * PAGE
    data[target : target + PAGE] = data[source : source + PAGE]
    path.write_bytes(data)


def truncate(rng: random.Random, path: Path, states: States) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(_written(data))])


def remove(rng: random.Random, path: Path, states: States) -> None:
    path.unlink()


def take_an_older_one(rng: random.Random, path: Path, states: States) -> None:
    shutil.copy(states.folder / "older" / path.name, path)


def take_another_one(rng: random.Random, path: Path, states: States) -> None:
    source = states.folder / "other" / path.name
    shutil.copy(source if source.exists() else states.folder / "older" / path.name, path)


def remove_all_but(rng: random.Random, path: Path, states: States) -> None:
    for name in FILES["killed"]:
        if name != path.name:
            (path.parent / name).unlink(missing_ok=True)


DAMAGES: tuple[Damage, ...] = (
    flip_a_bit,
    flip_a_bit,
    flip_a_bit_of_a_header,
    flip_a_bit_of_a_header,
    scramble,
    zero_a_page,
    revert_a_page,
    misplace_a_page,
    truncate,
    remove,
    take_an_older_one,
    take_another_one,
    remove_all_but,
)


def _written(data: bytes | bytearray) -> int:
    """Without the zeros at the end: space that is prepared and not used."""
    return max(1, len(bytes(data).rstrip(b"\0")))


def outcome(states: States, seed: int, folder: Path) -> tuple[str, str]:
    """What was done, and what came of it: "refused", "harmless", or what went unnoticed."""
    rng = random.Random(seed)
    variant = rng.choice(("stopped", "killed"))
    damage, name = DAMAGES[seed % len(DAMAGES)], rng.choice(FILES[variant])
    shutil.copytree(states.folder / variant, folder)
    damage(rng, folder / name, states)
    return f"{damage.__name__} {name}, {variant}", asyncio.run(_served(states.expected[variant], folder, rng))


async def _served(expected: Content, folder: Path, rng: random.Random) -> str:
    before = {path.name: path.read_bytes() for path in folder.glob("state.db*")}
    try:
        store = opened(folder)
    except FolderError as error:
        unchanged = {path.name: path.read_bytes() for path in folder.glob("state.db*")} == before
        named = "`konverge store salvage" in str(error)
        return "refused" if unchanged and named else f"refused, but unchanged={unchanged}: {error}"
    if content(store) != expected:
        await store.close()
        return f"a server has revision {store.revision} and goes on; {expected[0]} was acknowledged"
    await write(store, rng, 20)
    later = content(store)
    await store.close()
    again = opened(folder)
    same = content(again) == later
    await again.close()
    return "harmless" if same else "what was written later is not there"
