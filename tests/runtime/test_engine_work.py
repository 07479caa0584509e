"""Workers of a running controller: how many, at which pace, and what they leave behind."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from konverge.cache.record import Key
from konverge.client import Client, ConnectionLost, MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Secret
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.objects.meta import ObjectMeta
from konverge.runtime import (
    Context,
    Controller,
    Manager,
    Reconciler,
    Request,
    Result,
    Settings,
    Source,
    TerminalError,
    Watches,
)
from konverge.runtime.engine import KEYS_PER_TURN, LOW, reference, running_engines
from tests.runtime.objects import SPACE, config_map, secret

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-03")]


def now() -> float:
    return asyncio.get_running_loop().time()


def workers(of: str = "secret") -> list[str]:
    return sorted(task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(f"{of} worker"))


async def ten_seconds(ctx: Context[Secret]) -> None:
    await asyncio.sleep(10)


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that is content."""


@pytest.mark.spec("R-13")
async def test_there_are_as_many_workers_as_keys_at_the_same_time_up_to_the_limit(client: Client) -> None:
    async with Manager(client).add(Controller(Secret, ten_seconds, workers=3)).running() as manager:
        await asyncio.sleep(1)
        assert workers() == []
        for count, name in enumerate("abcd", 1):
            await client.create(secret(name))
            await asyncio.sleep(0.1)
            assert workers() == [f"secret worker {number}" for number in range(min(count, 3))]
            assert len(manager.engines["secret"].numbers.running) == min(count, 3)


async def test_it_is_known_for_how_long_the_oldest_key_waits(client: Client) -> None:
    async with Manager(client).add(Controller(Secret, ten_seconds, workers=1)).running() as manager:
        numbers = manager.engines["secret"].numbers
        await client.create(secret("a"))
        await asyncio.sleep(1)
        assert numbers.oldest() == 0.0, "it is in work, and none waits"
        await client.create(secret("b"))
        await asyncio.sleep(4)
        assert numbers.oldest() == pytest.approx(4, abs=0.1)


async def test_the_running_controllers_are_listed_by_name(client: Client) -> None:
    manager = Manager(client)
    for name in ("b", "c", "a"):
        manager.add(Controller(Secret, nothing, name=name))
    assert running_engines() == []
    async with manager.running():
        await asyncio.sleep(1)
        assert [engine.controller.name for engine in running_engines()] == ["a", "b", "c"]


async def test_keys_one_after_the_other_need_one_worker(client: Client) -> None:
    async with Manager(client).add(Controller(Secret, nothing, workers=3)).running():
        for name in "abcd":
            await client.create(secret(name))
            await asyncio.sleep(1)
        assert workers() == ["secret worker 0"]


async def test_the_number_of_workers_is_that_of_the_settings_unless_the_controller_has_its_own(client: Client) -> None:
    for name in "abcd":
        await client.create(secret(name))
    here = (SPACE,)
    manager = Manager(client, settings=Settings(workers=2))
    manager.add(Controller(Secret, ten_seconds, name="few", namespaces=here, workers=1))
    manager.add(Controller(Secret, ten_seconds, name="usual", namespaces=here))
    async with manager.running():
        await asyncio.sleep(1)
        assert {name: len(engine.numbers.running) for name, engine in manager.engines.items()} == {"few": 1, "usual": 2}


async def test_other_tasks_run_between_reconciles_that_never_wait(client: Client) -> None:
    reconciled = 0
    seen: list[int] = []

    async def count(ctx: Context[Secret]) -> None:
        nonlocal reconciled
        reconciled += 1

    async def look() -> None:
        while reconciled < 5 * KEYS_PER_TURN:
            seen.append(reconciled)
            await asyncio.sleep(0)

    for number in range(5 * KEYS_PER_TURN):
        await client.create(secret(f"s{number}"))
    async with Manager(client, paused=["secret"]).add(Controller(Secret, count, workers=1)).running() as manager:
        looking = asyncio.create_task(look())
        manager.engines["secret"].queue.resume()
        await looking
    seen.append(reconciled)
    assert max(after - before for before, after in itertools.pairwise(seen)) <= KEYS_PER_TURN


@pytest.mark.spec("R-14")
async def test_keys_that_fail_come_again_no_faster_than_the_rate_of_all_retries(client: Client) -> None:
    async def fail_once(ctx: Context[Secret]) -> None:
        if ctx.request.name not in times:
            times[ctx.request.name] = []
            raise RuntimeError("no luck")
        times[ctx.request.name].append(now())

    times: dict[str, list[float]] = {}
    for name in "abcde":
        await client.create(secret(name))
    settings = Settings(base_delay=0.001, rate_limiter_qps=0.1, rate_limiter_burst=2)
    async with Manager(client, settings=settings).add(Controller(Secret, fail_once)).running():
        began = now()
        await asyncio.sleep(60)
    assert sorted(round(at - began) for (at,) in times.values()) == [0, 0, 10, 20, 30]


@pytest.mark.spec("R-21")
async def test_a_reconciler_without_a_cleanup_leaves_no_finalizer_and_sees_deletions(client: Client) -> None:
    class Plain(Reconciler[Secret]):
        async def reconcile(self, ctx: Context[Secret]) -> None:
            seen.append(ctx.deleting)

    seen: list[bool] = []
    made = secret("a")
    made.metadata.finalizers = ["other.dev/hold"]
    await client.create(made)
    async with Manager(client).add(Controller(Secret, Plain())).running():
        await asyncio.sleep(1)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(1)
        assert (await client.get(Secret, "a", SPACE)).metadata.finalizers == ["other.dev/hold"]
    assert seen == [False, True]


# ------------------------------------------------------------------ the end


@pytest.mark.spec("R-04", "R-23")
async def test_after_the_end_neither_mapper_nor_source_nor_resync_is_at_work(client: Client) -> None:
    mapped: list[float] = []

    def fails(cm: ConfigMap) -> Iterable[Request]:
        mapped.append(now())
        raise ValueError("no")

    async def silent() -> Any:
        await asyncio.Event().wait()
        yield Request(SPACE, "a")

    before = asyncio.all_tasks()
    await client.create(config_map("a"))
    controller = Controller(
        Secret,
        nothing,
        watches=[Watches(ConfigMap, requests=fails)],
        sources=[Source(name="silent", requests=silent)],
        namespaces=(SPACE,),
    )
    async with Manager(client).add(controller).running():
        await asyncio.sleep(1)
        names = {task.get_name() for task in asyncio.all_tasks() - before}
        assert {"secret resync", "secret silent", "controller secret"} <= names
        assert len(mapped) == 1
    assert asyncio.all_tasks() == before
    await asyncio.sleep(600)
    assert len(mapped) == 1


@pytest.mark.spec("R-04", "R-05")
async def test_a_worker_that_is_cancelled_ends_and_its_reconcile_is_no_failure(client: Client) -> None:
    await client.create(secret("a"))
    manager = Manager(client, shutdown_timeout=5).add(Controller(Secret, ten_seconds))
    async with manager.running():
        await asyncio.sleep(1)
    numbers = manager.engines["secret"].numbers
    assert (numbers.errors, numbers.panics, numbers.timeouts, dict(numbers.running)) == (0, 0, 0, {})
    assert numbers.time.count == 1
    assert now() == pytest.approx(6, abs=0.1)


# ------------------------------------------------------------------ by hand


async def test_a_step_gives_its_key_back(client: Client) -> None:
    notes: list[str] = []

    async def reconcile(ctx: Context[Secret]) -> None:
        notes.append(", ".join(map(str, ctx.reasons)))

    async with Manager(client, paused=["secret"]).add(Controller(Secret, reconcile)).running() as manager:
        engine = manager.engines["secret"]
        assert await engine.step() is None
        await client.create(secret("a"))
        await asyncio.sleep(1)
        item = await engine.step()
        assert item is not None
        assert item.key == Request(SPACE, "a")
        assert await engine.step() is None
        await client.patch(Secret, "a", MergePatch({"stringData": {"a": "1"}}), SPACE)
        await asyncio.sleep(1)
        await engine.step()
    assert notes == ["Secret default/a added", "Secret default/a updated: data"]


@pytest.mark.spec("R-12")
async def test_the_reasons_of_a_postponed_key_are_not_those_of_its_successor(client: Client) -> None:
    """The key is postponed, its object goes, and another one comes under the same name."""
    reasons: list[list[str]] = []

    async def reconcile(ctx: Context[Secret]) -> Result | None:
        reasons.append([str(reason) for reason in ctx.reasons])
        return None

    async with Manager(client, paused=["secret"]).add(Controller(Secret, reconcile)).running() as manager:
        engine = manager.engines["secret"]
        await client.create(secret("a"))
        await asyncio.sleep(1)
        item = engine.queue.take()
        assert item is not None
        engine._postpone(item)
        engine.queue.done(item.key)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(2)
        while await engine.step():
            pass
        await client.create(secret("a"))
        await asyncio.sleep(1)
        await engine.step()
    assert reasons == [["Secret default/a added"]]


@pytest.mark.spec("R-12", "R-16")
async def test_a_postponed_key_comes_back_with_the_priority_that_it_had(client: Client) -> None:
    """Whole caches of keys may be postponed; what changes meanwhile is not to wait behind them."""
    for name in "ab":
        await client.create(secret(name))
    async with Manager(client, paused=["secret"]).add(Controller(Secret, nothing)).running() as manager:
        queue = manager.engines["secret"].queue
        await asyncio.sleep(1)
        await client.create(secret("c"))
        await asyncio.sleep(1)
        taken = [queue.take() for _ in "abc"]
        postponed = [item for item in taken if item is not None]
        assert [(item.key.name, item.priority) for item in postponed] == [("c", 0), ("a", LOW), ("b", LOW)]
        for item in reversed(postponed):
            manager.engines["secret"]._postpone(item)
            queue.done(item.key)
        await asyncio.sleep(0.9)
        assert queue.take() is None
        await asyncio.sleep(0.2)
        again = [queue.take() for _ in "abc"]
        assert [(item.key.name, item.priority) for item in again if item] == [("c", 0), ("b", LOW), ("a", LOW)]


@pytest.mark.spec("R-12")
@pytest.mark.parametrize(("error", "caught_up"), [(None, True), (ConnectionLost("away"), False)])
async def test_a_key_is_not_current_while_the_server_cannot_say_what_became_of_its_write(
    client: Client, error: Exception | None, caught_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def waiting(request: object) -> None:
        if error is not None:
            raise error

    async with Manager(client).add(Controller(Secret, nothing)).running() as manager:
        engine = manager.engines["secret"]
        monkeypatch.setattr(engine.writes, "caught_up", waiting)
        assert await engine.caught_up(Request(SPACE, "a")) is caught_up


# ------------------------------------------------------------------ reports


@pytest.mark.spec("R-30", "R-20")
async def test_an_event_about_a_failure_names_the_object_and_its_version(client: Client) -> None:
    async def fail(ctx: Context[PodDisruptionBudget]) -> None:
        raise TerminalError("never")

    made = await client.create(PodDisruptionBudget(metadata=ObjectMeta(name="a", namespace=SPACE)))
    async with Manager(client).add(Controller(PodDisruptionBudget, fail)).running():
        await asyncio.sleep(10)
    (event,) = await client.list(Event, SPACE)
    about = event.involved_object
    assert (about.api_version, about.kind) == ("policy/v1", "PodDisruptionBudget")
    assert (about.namespace, about.name, about.uid) == (SPACE, "a", made.metadata.uid)
    assert about.resource_version == made.metadata.resource_version
    assert event.type == "Warning"


def test_an_object_of_unknown_version_is_referred_to_without_one() -> None:
    about = reference(Secret.resource, Key(SPACE, "a"), "uid", 0)
    assert about.metadata.resource_version == ""
