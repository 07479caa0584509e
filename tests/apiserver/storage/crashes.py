"""Kill a writing server at random moments and see what is on disk: a program of its own, run by test_crashes.

    python crashes.py FOLDER ROUNDS SEED

Each round forks a writer that acknowledges what is settled over a pipe, kills it with SIGKILL after a random time, then
opens the folder again and compares it with every acknowledgement so far. Unacknowledged writes may be there or not;
acknowledged ones must be, in the state, in the order of revisions, and in what a watch sees.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from konverge.apiserver.storage import HistoryLimits, Store
from konverge.apiserver.storage.sqlite import SqliteJournal

TABLE = "/configmaps"
LIMITS = HistoryLimits(events=400)
WRITERS = 8


async def opened(folder: Path) -> Store:
    journal = SqliteJournal(folder / "state.db")
    store = Store(history=LIMITS, journal=journal)
    journal.load(store)
    return store


async def write_forever(folder: Path, out: int, seed: int) -> None:
    store = await opened(folder)
    table = store.table(TABLE)
    rng = random.Random(seed)

    async def writer() -> None:
        while True:
            name = f"c{rng.randrange(40)}"
            old = table.records.get(f"ns/{name}")
            value = "x" * rng.randrange(3000)
            if old is not None and rng.random() < 0.3:
                last = store.remove(table, f"ns/{name}", expected=old.revision)
                ack = [last.revision, name, None]
            else:
                obj = {"metadata": {"name": name, "namespace": "ns"}, "data": value}
                record = store.put(table, obj, expected=old.revision if old is not None else 0)
                ack = [record.revision, name, len(value)]
            await store.settled(ack[0])
            os.write(out, json.dumps(ack).encode() + b"\n")

    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(writer())


def run_until_killed(folder: Path, seed: int, seconds: float) -> list[list[Any]]:
    """Acknowledgements of one life of the writer."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            asyncio.run(write_forever(folder, write, seed))
        finally:
            os._exit(1)
    os.close(write)
    data, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([read], [], [], left)[0]:
            data += os.read(read, 1 << 16)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while chunk := os.read(read, 1 << 16):
        data += chunk
    os.close(read)
    lines = data.split(b"\n")
    return [json.loads(line) for line in lines[:-1]]


async def check(folder: Path, acked: dict[int, list[Any]]) -> None:
    store = await opened(folder)
    table = store.table(TABLE)
    newest: dict[str, list[Any]] = {}
    for revision in sorted(acked):
        newest[acked[revision][1]] = acked[revision]
    assert store.revision >= max(acked, default=1), "an acknowledged revision is gone"
    for revision, name, size in newest.values():
        record = table.records.get(f"ns/{name}")
        assert record is None or record.revision >= revision or size is None, f"{name} is older than acknowledged"
        if size is None:
            assert record is None or record.revision > revision, f"{name} was deleted at {revision} and is back"
        elif record is None:
            assert any(e.key == f"ns/{name}" and e.revision > revision for e in table.events), f"{name} is lost"
        elif record.revision == revision:
            assert len(record.decode()["data"]) == size, f"{name} has another content than acknowledged"
    events = table.since(store.compacted)
    revisions = [event.revision for event in events]
    assert revisions == sorted(set(revisions)), "revisions repeat or go back"
    seen = {event.revision: event for event in events}
    for revision, (_, name, size) in acked.items():
        if revision > store.compacted:
            event = seen[revision]
            assert event.key == f"ns/{name}", f"the watch shows {event.key} at {revision}, not {name}"
            assert (event.record is None) == (size is None)
            if event.record is not None:
                assert len(event.record.decode()["data"]) == size
    state = {key: record.revision for key, record in table.records.items()}
    for event in reversed(events):  # undoing the whole history must lead to a state that existed
        if event.old is None:
            assert state.pop(event.key, None) == event.revision or event.record is None
        else:
            assert event.old.revision < event.revision
            state[event.key] = event.old.revision
    await store.close()


def main() -> None:
    folder, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    acked: dict[int, list[Any]] = {}
    total = 0
    for number in range(rounds):
        for ack in run_until_killed(folder, seed + number, rng.uniform(0.005, 0.1)):
            assert ack[0] not in acked, "a revision was given twice"
            acked[ack[0]] = ack
            total += 1
        asyncio.run(check(folder, acked))
    print(f"{rounds} kills, {total} acknowledged writes")


if __name__ == "__main__":
    main()
