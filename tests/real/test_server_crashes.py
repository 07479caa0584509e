"""kill -9 of the whole server while clients write: what was answered is there after the restart, and in the watch."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.real.raw_sockets import Connection, Server, running

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 16
KILLS = 30

Acknowledged = dict[int, tuple[str, str]]
"""By revision: the name, and the value written (empty for a deletion)."""


async def write_until_killed(server: Server, acknowledged: Acknowledged, rng: random.Random, life: int) -> None:
    """Creates, updates and deletions; after a random number of answers the server is killed."""
    before, left = len(acknowledged), rng.randrange(1, 250)

    async def writer(number: int) -> None:
        connection = await server.open()
        count = 0
        try:
            while True:
                count += 1
                name, value = f"w{number}-{count % 5}", f"{life}.{number}.{count}"
                obj = {"metadata": {"name": name}, "data": {"value": value}}
                status, answer = await connection.ask("POST", CONFIG_MAPS, obj)
                if status == 409 and count % 3:
                    status, answer = await connection.ask("PUT", f"{CONFIG_MAPS}/{name}", obj)
                elif status == 409:
                    status, _ = await connection.ask("DELETE", f"{CONFIG_MAPS}/{name}")
                    continue
                if status < 300:
                    acknowledged[int(answer["metadata"]["resourceVersion"])] = (name, value)
                if len(acknowledged) - before >= left:
                    server.process.popen.kill()
        except (asyncio.IncompleteReadError, OSError):
            return  # killed
        finally:
            await connection.close()

    await asyncio.gather(*map(writer, range(WRITERS)))


async def check(server: Server, acknowledged: Acknowledged, marks: int) -> None:
    """The watch from the beginning sends every acknowledged write, in order, and ends in the state of a list."""
    watcher, client = await server.open(), await server.open()
    status, listed = await client.ask("GET", f"{CONFIG_MAPS}?resourceVersion=0")
    assert status == 200
    latest = max(acknowledged, default=1)
    assert int(listed["metadata"]["resourceVersion"]) >= latest, "an acknowledged revision is gone"
    assert (await client.ask("POST", CONFIG_MAPS, {"metadata": {"generateName": "mark-"}}))[0] == 201
    watcher.send("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=1")
    assert await watcher.head() == 200
    seen, state, order = await _followed(watcher, marks)
    assert order == sorted(set(order)), "revisions repeat or go back"
    for revision, (name, value) in acknowledged.items():
        assert seen.get(revision) == (name, value), f"the watch shows {seen.get(revision)} at {revision}"
    present = {item["metadata"]["name"]: item["data"]["value"] for item in listed["items"] if "data" in item}
    assert state == present
    await watcher.close()
    await client.close()


async def _followed(watcher: Connection, marks: int) -> tuple[Acknowledged, dict[str, str], list[int]]:
    """What a watch sends until so many marks have come: each check leaves one."""
    seen: Acknowledged = {}
    state: dict[str, str] = {}
    order: list[int] = []
    async for event in watcher.events():
        metadata = event["object"]["metadata"]
        order.append(int(metadata["resourceVersion"]))
        if metadata["name"].startswith("mark-"):
            marks -= 1
            if not marks:
                break
        elif event["type"] == "DELETED":
            state.pop(metadata["name"])
        elif "data" in event["object"]:
            state[metadata["name"]] = event["object"]["data"]["value"]
            seen[order[-1]] = (metadata["name"], event["object"]["data"]["value"])
    return seen, state, order


@pytest.mark.spec("S-14")
@pytest.mark.blocking
@pytest.mark.limit(600)
async def test_a_server_killed_while_clients_write_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    rng, acknowledged = random.Random(5), Acknowledged()
    for life in range(1, KILLS + 1):
        with running(tmp_path, "--data-dir", str(tmp_path / "data")) as server:
            if life > 1:
                await check(server, acknowledged, life - 1)
            await write_until_killed(server, acknowledged, rng, life)
    assert len(acknowledged) > KILLS
