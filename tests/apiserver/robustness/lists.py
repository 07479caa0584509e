"""The attack on lists: while clients write as fast as they can, every list must be one state of the history.

    python -m tests.apiserver.robustness.lists [--lists 1000] [--paged 1000] [--real]

It starts a server as a process with its state on disk (or, with `--real`, kube-apiserver with etcd), lists and pages
under load, and prints how many lists were wrong:

- *newer*: an item is newer than the resourceVersion of its list;
- *different*: the items are not the state of that revision;
- *torn*: the pages of one list name different revisions.

What was the state of a revision is known from a watch from before the first write, which every acknowledged write must
be part of.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from konverge.apiserver import ApiServer
from konverge.wire.pool import ConnectionPool
from konverge.wire.tls import TlsOptions
from tests.apiserver.api import CONFIG_MAPS, MERGE, Api

PROGRAM = Path(__file__).with_name("server_process.py")
WRITERS, NAMES, READERS, PAGE = 4, 15, 4, 7

Items = dict[str, int]
"""The revision of each object, by name."""


@dataclass
class History:
    """All changes, in the order of their revisions."""

    start: Items
    since: int
    changes: list[tuple[int, str, bool]] = field(default_factory=list)
    """(revision, name, whether it is there afterwards)"""

    def at(self, revision: int) -> Items:
        """The state of a revision."""
        state = dict(self.start)
        for changed, name, exists in self.changes:
            if changed > revision:
                break
            if exists:
                state[name] = changed
            else:
                state.pop(name, None)
        return state


@dataclass
class Listed:
    """What a client got: its pages, each with its revision."""

    pages: list[tuple[int, Items]]

    def problem(self, history: History) -> str:
        """What is wrong with it, or ""."""
        revision = self.pages[0][0]
        if any(page != revision for page, _ in self.pages):
            return "torn"
        items: Items = {}
        for _, page in self.pages:
            items |= page
        if any(item > revision for item in items.values()):
            return "newer"
        complete = len(items) == sum(len(page) for _, page in self.pages)
        return "" if complete and items == history.at(revision) else "different"


@dataclass
class Attack:
    api: Api
    lists: int
    paged: int
    seed: int = 0
    acknowledged: list[tuple[str, int]] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)
    paged_lists: list[Listed] = field(default_factory=list)
    expired: int = 0
    """Pages that came too late."""
    _written: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> History:
        for number in range(PAGE + 1):  # so that there is always more than a page
            await self.api.create(f"kept-{number}")
        first = await self._page({})
        history = History(first[1], first[0])
        watching = asyncio.create_task(self._watch(history))
        writing = [asyncio.create_task(self._write(number)) for number in range(WRITERS)]
        for task in writing:
            task.add_done_callback(lambda _: self._written.set())  # one that failed is reported below
        await self._written.wait()  # lists that have all ended before the first write would prove nothing
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(READERS):
                    group.create_task(self._read(number))
        finally:
            for task in writing:
                task.cancel()
            await asyncio.wait(writing)
        for task in writing:
            if not task.cancelled() and task.exception() is not None:
                raise AssertionError("a writer failed") from task.exception()
        await self.api.create("last-of-all")
        async with asyncio.timeout(60):
            await watching
        return history

    # --- the clients

    async def _write(self, number: int) -> None:
        rng, exists = random.Random(self.seed * 100 + number), set[str]()
        while True:
            name = f"w{number}-{rng.randrange(NAMES)}"
            path = f"{CONFIG_MAPS}/{name}"
            if name not in exists:
                made = await self.api.create(name, data={"n": str(rng.random())})
            elif rng.random() < 0.4:
                await self.api.call("DELETE", path)
                exists.discard(name)
                continue
            else:
                made = await self.api.call("PATCH", path, {"data": {"n": str(rng.random())}}, content_type=MERGE)
            exists.add(name)
            self.acknowledged.append((name, int(made["metadata"]["resourceVersion"])))
            self._written.set()

    async def _read(self, number: int) -> None:
        for count, kept, limit in ((self.lists, self.listed, 0), (self.paged, self.paged_lists, PAGE)):
            for _ in range(count // READERS + (number < count % READERS)):
                listed = await self._list(limit)
                if listed is not None:
                    kept.append(listed)

    async def _list(self, limit: int) -> Listed | None:
        query: dict[str, str] = {"limit": str(limit)} if limit else {}
        pages: list[tuple[int, Items]] = []
        while True:
            page = await self._page(query)
            if page[2] is None:
                self.expired += 1
                return None
            pages.append(page[:2])
            if not page[2]:
                return Listed(pages)
            query = {"limit": str(limit), "continue": page[2]}

    async def _page(self, query: dict[str, str]) -> tuple[int, Items, str | None]:
        response = await self.api.send("GET", CONFIG_MAPS, query=query)
        if response.status == 410:
            return 0, {}, None
        assert response.status == 200, response.body[:300]
        body = json.loads(response.body)
        items = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in body["items"] or ()}
        return int(body["metadata"]["resourceVersion"]), items, body["metadata"].get("continue") or ""

    async def _watch(self, history: History) -> None:
        async with self.api.watch(resourceVersion=str(history.since)) as watch:
            while True:
                event = await watch.next()
                metadata = event["object"]["metadata"]
                history.changes.append((int(metadata["resourceVersion"]), metadata["name"], event["type"] != "DELETED"))
                if metadata["name"] == "last-of-all":
                    return

    # --- the judgement

    def problems(self, history: History) -> Counter[str]:
        """How many lists and paged lists have which problem; writes that no watcher saw."""
        counts: Counter[str] = Counter()
        for what, all_listed in (("list", self.listed), ("paged list", self.paged_lists)):
            for listed in all_listed:
                if problem := listed.problem(history):
                    counts[f"{what} {problem}"] += 1
        seen = {(name, revision) for revision, name, _ in history.changes}
        counts["write unseen"] += sum(write not in seen for write in self.acknowledged)
        revisions = [revision for revision, _, _ in history.changes]
        counts["event out of order"] += sum(a >= b for a, b in itertools.pairwise(revisions))
        return +counts


# --- the servers


def api_of(url: str, token: str, ca_file: str = "") -> tuple[Api, ConnectionPool]:
    """A client for a server that listens; the pool is to be closed."""
    pool = ConnectionPool(url, tls=TlsOptions(ca_file=ca_file) if ca_file else None)
    return Api(cast("ApiServer", SimpleNamespace(token=token, transport=pool))), pool


@asynccontextmanager
async def our_server() -> AsyncIterator[Api]:
    """A server as a process, with its state on disk."""
    with tempfile.TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), f"{folder}/data", stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            url, token = (await process.stdout.readline()).decode().split()
            api, pool = api_of(url, token)
            try:
                yield api
            finally:
                await pool.aclose()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


@asynccontextmanager
async def real_server() -> AsyncIterator[Api]:
    """kube-apiserver with etcd, where they are."""
    from tools import real_binaries
    from tools.control_plane import ControlPlane

    folder, note = real_binaries.find()
    if folder is None:
        raise SystemExit(note)
    with ControlPlane(folder) as plane:
        api, pool = api_of(plane.url, plane.token, str(plane.ca_file))
        try:
            yield api
        finally:
            await pool.aclose()


async def attack(arguments: argparse.Namespace) -> int:
    async with real_server() if arguments.real else our_server() as api:
        started = time.monotonic()
        work = Attack(api, arguments.lists, arguments.paged, arguments.seed)
        history = await work.run()
        problems = work.problems(history)
    seconds = time.monotonic() - started
    writes = len(history.changes)
    print(f"{len(work.listed)} lists and {len(work.paged_lists)} paged lists during {writes} writes in {seconds:.0f} s")
    print(f"{work.expired} paged lists expired")
    for problem in _PROBLEMS:
        print(f"{problem}: {problems[problem]}")
    return 1 if problems else 0


_PROBLEMS: Iterable[str] = [
    *(f"{what} {problem}" for what in ("list", "paged list") for problem in ("newer", "torn", "different")),
    "write unseen",
    "event out of order",
]


def main() -> int:
    parser = argparse.ArgumentParser(description="List under write load, and compare each list with the history.")
    parser.add_argument("--lists", type=int, default=1000)
    parser.add_argument("--paged", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--real", action="store_true", help="attack kube-apiserver with etcd")
    return asyncio.run(attack(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
