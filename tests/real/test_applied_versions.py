"""Server-side apply across versions of a kind, on the real server and on ours: the same answers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.admission.hooks import WebhookServer, webhook_server
from tests.apiserver.api import APPLY, MERGE
from tests.apiserver.crd import applied_versions as versions
from tests.apiserver.crd.recordings import DEFINITIONS, Row
from tests.real.sides import NAMESPACE, Side, thorough

KINDS = count()


class Hook:
    """The webhook of both servers, on a loop and a thread of its own."""

    def __init__(self, server: WebhookServer, webhook: versions.Webhook) -> None:
        self.place = {"url": f"{server.url}/convert", "caBundle": server.bundle}
        self.webhook = webhook


@contextmanager
def _hook() -> Iterator[Hook]:
    started, stop = threading.Event(), asyncio.Event()
    hooks: list[Hook] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with webhook_server() as server:
            server.replies["convert"] = webhook = versions.Webhook()
            hooks.append(Hook(server, webhook))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait(60)
    try:
        yield hooks[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with _hook() as hook:
        yield hook


def _box(side: Side, group: str, version: str, name: str) -> tuple[int, Any]:
    body = {"apiVersion": f"{group}/{version}", "kind": "Box", "metadata": {"name": name}}
    code, answer = side.send("POST", f"/apis/{group}/{version}/namespaces/{NAMESPACE}/boxes", body, dryRun="All")
    return code, answer


def define(side: Side, definition: Row) -> None:
    """Until objects can be made in every version."""
    code, answer = side.send("POST", DEFINITIONS, definition)
    assert code == 201, answer
    for version in ("v0", "v1", "v2"):
        while _box(side, definition["spec"]["group"], version, "probe")[0] != 201:
            time.sleep(0.05)


def drop(side: Side, definition: Row, version: str) -> None:
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    live = side.send("GET", path)[1]
    kept = [entry for entry in live["spec"]["versions"] if entry["name"] != version]
    code, answer = side.send("PATCH", path, {"spec": {"versions": kept}}, MERGE)  # its controllers write it, too
    assert code == 200, answer
    group = definition["spec"]["group"]
    path = f"/apis/{group}/v1/namespaces/{NAMESPACE}/boxes/a"
    probe = {"apiVersion": f"{group}/v1", "kind": "Box", "metadata": {"name": "a"}}
    # The versions that are left learn of it a moment later; then what was owned in it cannot be converted any more.
    while side.send("PATCH", path, probe, APPLY, fieldManager="probe", dryRun="All")[0] != 500:
        time.sleep(0.05)


def performed(side: Side, definition: Row, steps: list[versions.Step], webhook: versions.Webhook) -> list[Row]:
    group, answers = definition["spec"]["group"], []
    for step in steps:
        if step[0] == "webhook":
            webhook.fails = step[1] == "fails"
        elif step[0] == "drop":
            drop(side, definition, step[1])
        else:
            exchange = versions.exchange(step, group, NAMESPACE, lambda path: side.send("GET", path)[1])
            method, path, body, media, query = exchange
            code, answer = side.send(method, path, body, media, **query)
            answers.append(json.loads(json.dumps(versions.seen(code, answer)).replace(group, f"a.{versions.GROUP}")))
    return answers


@pytest.mark.spec("S-29", "S-07")
@pytest.mark.parametrize("name", versions.SEQUENCES)
@pytest.mark.parametrize("form", versions.FORMS)
def test_versions_are_applied_alike(sides: tuple[Side, Side], hook: Hook, form: str, name: str) -> None:
    storage, by_webhook = versions.FORMS[form]
    definition = versions.definition(f"k{next(KINDS)}", storage, hook.place if by_webhook else None)
    answers = []
    for side in sides:
        define(side, definition)
        answers.append(performed(side, definition, versions.SEQUENCES[name], hook.webhook))
    assert answers[1] == answers[0]


small = st.sampled_from(["1", "2"])


def _specs(version: str) -> st.SearchStrategy[Row]:
    common = {
        "color": small,
        "depth": st.sampled_from(["of v1", "of v2", "2"]),
        "args": st.lists(small, max_size=2),
        "env": st.dictionaries(st.sampled_from(["a", "b"]), small, max_size=2),
        "tags": st.lists(small, max_size=2, unique=True),
    }
    return st.fixed_dictionaries(
        {}, optional=common | {versions.RENAMED[version]: small, versions.ALONE[version]: small}
    )


def _steps(version: str) -> st.SearchStrategy[versions.Step]:
    verbs = st.sampled_from(["apply", "apply", "force", "merge", "put", "create"])
    return st.tuples(
        verbs, st.just(version), st.sampled_from(["one", "two"]), _specs(version).map(lambda spec: {"spec": spec})
    )


@pytest.fixture(scope="module")
def boxes(sides: tuple[Side, Side], hook: Hook) -> dict[str, Row]:
    """A kind for each stored version."""
    definitions = {}
    for storage in ("v1", "v2"):
        definitions[storage] = versions.definition(f"random-{storage}", storage, hook.place)
        for side in sides:
            define(side, definitions[storage])
    return definitions


@pytest.mark.spec("S-29", "S-07")
@thorough(80)
@given(
    storage=st.sampled_from(["v1", "v2"]),
    steps=st.lists(st.sampled_from(["v1", "v2"]).flatmap(_steps), min_size=2, max_size=6),
)
def test_versions_are_written_alike_in_any_order(
    sides: tuple[Side, Side], boxes: dict[str, Row], hook: Hook, storage: str, steps: list[versions.Step]
) -> None:
    definition = boxes[storage]
    first = ("apply", "v1", "one", {"spec": {"size": "1"}})
    answers = []
    for side in sides:
        answers.append(performed(side, definition, [first, *steps], hook.webhook))
        side.send("DELETE", f"/apis/{definition['spec']['group']}/v1/namespaces/{NAMESPACE}/boxes/a")
    assert answers[1] == answers[0]
