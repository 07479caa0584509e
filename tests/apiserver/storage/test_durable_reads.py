"""No client sees what is not on disk: a journal that is held back shows what each answer rests on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver import ApiServer
from konverge.apiserver.storage import Event, HistoryLimits, Store
from konverge.apiserver.storage.failures import Failed
from konverge.apiserver.storage.store import Listener
from konverge.wire.message import Response
from tests.apiserver.api import CONFIG_MAPS, MERGE, Api


class HeldJournal:
    """Writes nothing; what counts as written is decided by the test."""

    def __init__(self) -> None:
        self.appended: list[int] = []
        self.listener: Listener

    def start(self, listener: Listener) -> None:
        self.listener = listener

    def append(self, table: str, event: Event) -> None:
        self.appended.append(event.revision)

    def compact(self, revision: int) -> None:
        pass

    async def close(self) -> None:
        pass

    def release(self) -> None:
        """Everything so far is on disk."""
        self.listener.on_durable(self.appended[-1])


@pytest.fixture
def held(server: ApiServer) -> HeldJournal:
    """From now on the server's writes wait for the test."""
    journal = HeldJournal()
    server.store._journal = journal
    server.store.open(server.store.revision, server.store.compacted)
    return journal


async def begin(api: Api, method: str, path: str, body: Any = None, **more: Any) -> asyncio.Task[Response]:
    """A request that has come as far as it can without the journal."""
    task = asyncio.create_task(api.send(method, path, body, **more))
    for _ in range(20):
        await asyncio.sleep(0)
    return task


async def names(api: Api, **query: Any) -> tuple[list[str], int]:
    listed = await api.call("GET", CONFIG_MAPS, query=query)
    revision = int(listed["metadata"]["resourceVersion"])
    assert all(int(item["metadata"]["resourceVersion"]) <= revision for item in listed["items"])
    return [item["metadata"]["name"] for item in listed["items"]], revision


@pytest.mark.spec("T-01")
async def test_an_object_is_seen_when_it_is_on_disk(api: Api, held: HeldJournal) -> None:
    revision = api.server.store.durable
    creating = await begin(api, "POST", CONFIG_MAPS, {"metadata": {"name": "new"}})
    assert not creating.done()
    assert await names(api) == ([], revision)
    assert await names(api, limit=1) == ([], revision)
    assert await names(api, fieldSelector="metadata.name=new") == ([], revision)
    assert (await api.send("GET", f"{CONFIG_MAPS}/new")).status == 404
    held.release()
    made = json.loads((await creating).body)
    assert await names(api) == (["new"], int(made["metadata"]["resourceVersion"]))
    assert (await api.send("GET", f"{CONFIG_MAPS}/new")).status == 200


@pytest.mark.spec("T-01")
async def test_a_change_and_a_deletion_are_seen_when_they_are_on_disk(api: Api, held: HeldJournal) -> None:
    creating = [await begin(api, "POST", CONFIG_MAPS, {"metadata": {"name": name}}) for name in ("gone", "kept")]
    held.release()
    await asyncio.gather(*creating)
    before = await names(api)
    deleting = await begin(api, "DELETE", f"{CONFIG_MAPS}/gone")
    patching = await begin(api, "PATCH", f"{CONFIG_MAPS}/kept", {"data": {"a": "b"}}, content_type=MERGE)
    assert await names(api) == before == (["gone", "kept"], before[1])
    assert (await api.send("GET", f"{CONFIG_MAPS}/gone")).status == 200
    assert "data" not in await api.call("GET", f"{CONFIG_MAPS}/kept")
    async with api.watch(
        sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    ) as watch:
        shown = [await watch.next() for _ in range(3)]
        assert {event["object"]["metadata"].get("name") for event in shown[:2]} == {"gone", "kept"}
        assert int(shown[2]["object"]["metadata"]["resourceVersion"]) == before[1]
        assert not deleting.done()
        assert not patching.done()
        held.release()
        assert [(await watch.next())["type"] for _ in range(2)] == ["DELETED", "MODIFIED"]
    await deleting
    await patching
    assert (await names(api))[0] == ["kept"]
    assert (await api.send("GET", f"{CONFIG_MAPS}/gone")).status == 404


WRITES = {
    "create again": ("POST", CONFIG_MAPS, {"metadata": {"name": "x"}}, {}, 409),
    "old version": ("PUT", f"{CONFIG_MAPS}/x", {"metadata": {"name": "x", "resourceVersion": "1"}}, {}, 409),
    "wrong uid": ("DELETE", f"{CONFIG_MAPS}/x", {"preconditions": {"uid": "other"}}, {}, 409),
    "invalid": ("PATCH", f"{CONFIG_MAPS}/x", {"metadata": {"name": "y"}}, {"content_type": MERGE}, 400),
    "dry run": ("PATCH", f"{CONFIG_MAPS}/x?dryRun=All", {"data": {"a": "b"}}, {"content_type": MERGE}, 200),
    "dry creation": ("POST", f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "x"}}, {}, 409),
    "no change": ("PATCH", f"{CONFIG_MAPS}/x", {}, {"content_type": MERGE}, 200),
}


@pytest.mark.spec("T-01")
@pytest.mark.parametrize("case", WRITES)
async def test_an_answer_waits_for_the_writes_that_it_rests_on(api: Api, held: HeldJournal, case: str) -> None:
    method, path, body, headers, code = WRITES[case]
    creating = await begin(api, "POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
    answering = await begin(api, method, path, body, **headers)
    assert not creating.done()
    assert not answering.done(), f"answered {(await answering).status} before the object is on disk"
    held.release()
    assert ((await creating).status, (await answering).status) == (201, code)


@pytest.mark.spec("T-01")
async def test_a_refusal_that_rests_on_a_lost_write_is_no_refusal(api: Api, held: HeldJournal) -> None:
    creating = await begin(api, "POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
    again = await begin(api, "POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
    held.listener.on_failed(Failed("no space left on device"))
    held.listener.on_truth(api.server.store.durable)
    assert [(await request).status for request in (creating, again)] == [503, 503]


@pytest.mark.spec("T-01", "S-05")
async def test_pages_are_one_list_while_writes_are_on_their_way_to_disk(api: Api, held: HeldJournal) -> None:
    creating = [await begin(api, "POST", CONFIG_MAPS, {"metadata": {"name": name}}) for name in "aceg"]
    held.release()
    await asyncio.gather(*creating)
    query = {"limit": 2}
    page = await api.call("GET", CONFIG_MAPS, query=query)
    on_the_way = [await begin(api, "POST", CONFIG_MAPS, {"metadata": {"name": name}}) for name in "bdfh"]
    on_the_way.append(await begin(api, "DELETE", f"{CONFIG_MAPS}/g"))
    items, revision = page["items"], page["metadata"]["resourceVersion"]
    while token := page["metadata"].get("continue"):
        page = await api.call("GET", CONFIG_MAPS, query={**query, "continue": token})
        assert page["metadata"]["resourceVersion"] == revision
        items += page["items"]
    assert [item["metadata"]["name"] for item in items] == ["a", "c", "e", "g"]
    held.release()
    await asyncio.gather(*on_the_way)
    assert (await names(api))[0] == ["a", "b", "c", "d", "e", "f", "h"]


# --- the store alone, with any course of writes

STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "remove", "sync"]), st.sampled_from(["a", "b", "c", "ns/a", "ns/b"])),
    max_size=60,
)


@pytest.mark.spec("T-01", "S-05")
@given(steps=STEPS, prefix=st.sampled_from(["", "ns/"]), after=st.sampled_from(["", "b", "ns/b"]))
def test_every_state_is_the_state_at_its_revision(steps: list[tuple[str, str]], prefix: str, after: str) -> None:
    journal = HeldJournal()
    store = Store(journal=journal, history=HistoryLimits(events=3))
    store.open(1, 0)
    table = store.table("t")
    states: dict[int, dict[str, int]] = {1: {}}
    for number, (step, key) in enumerate(steps):
        namespace, _, name = key.rpartition("/")
        present = states[store.revision]
        if step == "put":
            metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
            store.put(table, {"metadata": metadata, "n": number}, expected=None)
            states[store.revision] = {**present, key: number}
        elif step == "remove" and key in present:
            store.remove(table, key, expected=None)
            states[store.revision] = {other: value for other, value in present.items() if other != key}
        elif step == "sync" and journal.appended:
            journal.release()
        durable = states[store.durable]
        at = {record.key: record.decode()["n"] for record in table.at(store.durable, prefix, after)}
        assert list(at) == sorted(at)
        assert at == {key: n for key, n in durable.items() if key.startswith(prefix) and key >= max(prefix, after)}
        for key in ("a", "ns/a", "ns/b"):
            record = store.durable_record("t", key)
            assert (record and record.decode()["n"]) == durable.get(key)
