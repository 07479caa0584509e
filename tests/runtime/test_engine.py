"""A running controller on an embedded API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.client import Client, MergePatch, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.objects.meta import ObjectMeta
from konverge.observe import logs
from konverge.runtime import (
    Context,
    Controller,
    Manager,
    Reconciler,
    Request,
    Result,
    Resync,
    Settings,
    Source,
    Timer,
    Watches,
    generation_changed,
    labels_changed,
)
from konverge.sim.loop import VirtualLoop
from tests.runtime.objects import SPACE, config_map, secret

pytestmark = pytest.mark.virtual


def now() -> float:
    return asyncio.get_running_loop().time()


class Notes:
    """A reconciler that records when it ran and why, and then calls a function of the test."""

    def __init__(self, *outcomes: Any) -> None:
        self.runs: list[tuple[str, float, list[str]]] = []
        self._outcomes = list(outcomes)

    async def __call__(self, ctx: Context[Secret]) -> Result | None:
        self.runs.append((ctx.request.name, now(), [str(reason) for reason in ctx.reasons]))
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.runs]

    @property
    def times(self) -> list[float]:
        return [at for _, at, _ in self.runs]


async def settle(seconds: float = 1.0) -> None:
    assert isinstance(asyncio.get_running_loop(), VirtualLoop), "mark the test as virtual: nothing waits then"
    await asyncio.sleep(seconds)


@pytest.mark.spec("R-02", "R-03", "R-19")
async def test_existing_objects_are_reconciled_and_then_changed_ones(client: Client) -> None:
    await client.create(secret("old"))
    notes = Notes()
    async with Manager(client).add(Controller(Secret, notes)).running():
        await settle()
        await client.create(secret("new"))
        await settle()
        await client.patch(Secret, "new", MergePatch({"stringData": {"a": "1"}}), SPACE)
        await settle()
    assert notes.names == ["old", "new", "new"]
    assert notes.runs[0][2] == ["Secret default/old listed"]
    assert notes.runs[1][2] == ["Secret default/new added"]
    assert notes.runs[2][2] == ["Secret default/new updated: data"]


@pytest.mark.spec("R-16", "R-03")
async def test_changes_go_before_the_first_list_and_before_resyncs(client: Client) -> None:
    for name in ("old1", "old2"):
        await client.create(secret(name))
    notes = Notes()
    controller = Controller(Secret, notes, settings=Settings(resync_period=1000))
    async with Manager(client, paused=["secret"]).add(controller).running() as manager:
        engine = manager.engines["secret"]
        await client.create(secret("new"))
        await client.patch(Secret, "old2", MergePatch({"stringData": {"a": "1"}}), SPACE)
        await settle()
        while await engine.step():
            pass
        assert notes.names == ["new", "old2", "old1"]
        notes.runs.clear()
        await settle(1200)  # a resync
        await client.patch(Secret, "new", MergePatch({"stringData": {"a": "1"}}), SPACE)
        await settle()
        while await engine.step():
            pass
        assert notes.names == ["new", "old1", "old2"]


async def test_changes_go_after_what_was_asked_for_before(client: Client) -> None:
    for name in ("a", "b"):
        await client.create(secret(name))
    notes = Notes()
    async with Manager(client, paused=["secret"]).add(Controller(Secret, notes)).running() as manager:
        engine = manager.engines["secret"]
        while await engine.step():
            pass
        notes.runs.clear()
        engine.queue.add(Request(SPACE, "b"))
        await client.patch(Secret, "a", MergePatch({"stringData": {"a": "1"}}), SPACE)
        await settle()
        while await engine.step():
            pass
    assert notes.names == ["b", "a"]


@pytest.mark.spec("R-19")
async def test_a_deleted_object_is_not_an_error(client: Client) -> None:
    notes = Notes(Result(requeue_after=5))
    async with Manager(client).add(Controller(Secret, notes)).running() as manager:
        await client.create(secret("a"))
        await settle()
        await client.delete(Secret, "a", SPACE)
        await settle(10)
        numbers = manager.engines["secret"].numbers
    assert notes.names == ["a"]
    assert numbers.errors == 0


@pytest.mark.spec("R-03", "R-28", "R-31")
async def test_every_reconcile_is_counted_and_has_a_number(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        scope = logs.scope.get()
        scopes.append(scope and (scope.controller, scope.subject, scope.reconcile_id))
        running.append(list(engine.numbers.running))
        await asyncio.sleep(2)

    scopes: list[Any] = []
    running: list[list[object]] = []
    async with Manager(client, paused=["secret"]).add(Controller(Secret, reconcile, workers=1)).running() as manager:
        engine = manager.engines["secret"]
        for name in ("a", "b"):
            await client.create(secret(name))
        await settle()
        assert engine.is_busy()  # two keys, one worker
        await engine.step()
        assert not engine.is_busy()
        await engine.step()
        numbers = engine.numbers
    a, b = Request(SPACE, "a"), Request(SPACE, "b")
    assert scopes == [("secret", a, 1), ("secret", b, 2)]
    assert running == [[a], [b]]
    assert numbers.running == {}
    assert (numbers.time.count, numbers.time.total) == (2, 4)
    assert (numbers.event_to_reconcile.count, numbers.event_to_reconcile.total) == (2, 1 + 3)
    assert numbers.results["success"] == 2


@pytest.mark.spec("R-22", "R-09")
async def test_owned_objects_lead_to_their_owner(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        seen.append([str(reason) for reason in ctx.reasons])
        await ctx.apply(config_map(ctx.request.name, of=ctx.obj.metadata.name))

    seen: list[list[str]] = []
    async with Manager(client).add(Controller(Secret, reconcile, owns=[ConfigMap])).running():
        await client.create(secret("a"))
        await settle()
        await client.delete(ConfigMap, "a", SPACE)
        await settle()
        made = await client.get(ConfigMap, "a", SPACE)
    assert seen == [["Secret default/a added"], ["ConfigMap default/a deleted"]]
    assert made.data == {"of": "a"}
    (owner,) = made.metadata.owner_references
    assert (owner.kind, owner.name, owner.controller) == ("Secret", "a", True)


@pytest.mark.spec("R-23")
async def test_watched_objects_lead_to_the_requests_of_the_mapping(client: Client) -> None:
    notes = Notes()
    watch = Watches(
        ConfigMap,
        requests=lambda cm: [Request(SPACE, name) for name in (cm.data.get("for") or "").split()],
        when=lambda old, new: new is not None and new.metadata.name.startswith("c"),
    )
    await client.create(secret("a"))
    await client.create(secret("b"))
    async with Manager(client).add(Controller(Secret, notes, watches=[watch])).running():
        await settle()
        notes.runs.clear()
        await client.create(config_map("c1", **{"for": "a"}))
        await client.create(config_map("other", **{"for": "b"}))
        await settle()
        await client.patch(ConfigMap, "c1", MergePatch({"data": {"for": "b"}}), SPACE)
        await settle()
    assert sorted(notes.names) == ["a", "a", "b"]  # what it was for, and what it is for


@pytest.mark.spec("R-23")
async def test_predicates_decide_which_changes_count(client: Client) -> None:
    notes = Notes()
    async with Manager(client).add(Controller(Secret, notes, when=labels_changed)).running():
        await client.create(secret("a"))
        await settle()
        await client.patch(Secret, "a", MergePatch({"stringData": {"x": "1"}}), SPACE)
        await settle()
        await client.patch(Secret, "a", MergePatch({"metadata": {"labels": {"l": "1"}}}), SPACE)
        await settle()
    assert [run[2] for run in notes.runs] == [["Secret default/a added"], ["Secret default/a updated: metadata.labels"]]
    assert generation_changed  # used with kinds that have generations, in the operators' tests


@pytest.mark.spec("R-23")
async def test_an_external_source_asks_for_reconciles(client: Client) -> None:
    async def ticks() -> AsyncIterator[Request]:
        for _ in range(2):
            await asyncio.sleep(10)
            yield Request(SPACE, "a")

    notes = Notes()
    await client.create(secret("a"))
    controller = Controller(Secret, notes, sources=[Source(name="ticks", requests=ticks)])
    async with Manager(client).add(controller).running():
        await settle(25)
    assert [run[2] for run in notes.runs][1:] == [["ticks: default/a"], ["ticks: default/a"]]


@pytest.mark.spec("R-03", "R-11")
async def test_every_object_is_reconciled_again_after_the_resync_period(client: Client) -> None:
    notes = Notes()
    await client.create(secret("a"))
    controller = Controller(Secret, notes, settings=Settings(resync_period=600))
    async with Manager(client).add(controller).running():
        await settle(700)
    assert notes.runs[1][2] == [str(Resync())]
    assert 540 <= notes.times[1] <= 661


@pytest.mark.spec("R-19", "R-14")
async def test_requeue_after_comes_back_in_time_and_forgets_failures(client: Client) -> None:
    notes = Notes(Result(requeue_after=30), None)
    await client.create(secret("a"))
    async with Manager(client).add(Controller(Secret, notes)).running():
        await settle(100)
    assert len(notes.runs) == 2
    assert notes.times[1] - notes.times[0] == pytest.approx(30)
    assert notes.runs[1][2] == [str(Timer(30))]


@pytest.mark.spec("R-15", "R-20", "R-05")
async def test_a_failing_key_backs_off_and_does_not_disturb_others(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        runs.setdefault(ctx.request.name, []).append(now())
        if ctx.request.name == "bad":
            raise RuntimeError("no luck")

    runs: dict[str, list[float]] = {}
    settings = Settings(base_delay=1, max_delay=8, max_retries=0)
    async with Manager(client, settings=settings).add(Controller(Secret, reconcile)).running():
        await client.create(secret("bad"))
        await client.create(secret("good"))
        await settle(25)
    gaps = [round(b - a) for a, b in zip(runs["bad"], runs["bad"][1:], strict=False)]
    assert gaps == [1, 2, 4, 8, 8]
    assert len(runs["good"]) == 1


@pytest.mark.spec("R-05", "R-20")
async def test_a_reconcile_that_hangs_is_cancelled_and_retried(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        began.append(now())
        await asyncio.Event().wait()

    began: list[float] = []
    settings = Settings(timeout=60, base_delay=1, max_delay=1)
    async with Manager(client, settings=settings).add(Controller(Secret, reconcile)).running() as manager:
        await client.create(secret("a"))
        await settle(100)
        numbers = manager.engines["secret"].numbers
        assert numbers.timeouts == 1
    assert [round(at) for at in began] == [0, 61]


@pytest.mark.spec("R-05")
async def test_a_reconciler_that_cancels_itself_costs_one_attempt(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        runs.append(now())
        if len(runs) == 1:
            raise asyncio.CancelledError

    runs: list[float] = []
    async with Manager(client).add(Controller(Secret, reconcile)).running():
        await client.create(secret("a"))
        await settle()
    assert len(runs) == 2


@pytest.mark.spec("R-12", "R-25")
async def test_own_writes_start_no_reconcile_and_the_steady_state_makes_no_request(client: Client, caplog: Any) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        wrote.append(await ctx.apply(config_map(ctx.request.name, a="1")))

    wrote: list[bool] = []
    controller = Controller(Secret, reconcile, owns=[ConfigMap], settings=Settings(resync_period=60))
    async with Manager(client).add(controller).running() as manager:
        await client.create(secret("a"))
        await settle(600)
        numbers = manager.engines["secret"].numbers
    assert wrote[0] is True
    assert not any(wrote[1:])
    assert len(wrote) > 5  # the resyncs
    assert numbers.echoes == 1


@pytest.mark.spec("R-12")
async def test_a_write_is_visible_to_the_next_reconcile(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> Result | None:
        counter = await ctx.get(ConfigMap, "counter")
        count = int(counter.data["n"]) if counter else 0
        seen.append(count)
        await ctx.apply(config_map("counter", n=str(count + 1)))
        return Result(requeue=True) if count < 20 else None

    seen: list[int] = []
    settings = Settings(base_delay=0.0001, max_delay=0.0001)
    controller = Controller(Secret, reconcile, owns=[ConfigMap], settings=settings)
    async with Manager(client).add(controller).running():
        await client.create(secret("a"))
        await settle(60)
    assert seen == list(range(21))


@pytest.mark.spec("R-25")
async def test_a_field_left_out_is_given_up_and_drift_is_repaired(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        await ctx.apply(config_map(ctx.request.name, **desired))

    desired = {"a": "1", "b": "2"}
    await client.create(secret("s"))
    async with Manager(client).add(Controller(Secret, reconcile, owns=[ConfigMap])).running():
        await settle()
        del desired["b"]
        await client.patch(Secret, "s", MergePatch({"stringData": {"poke": "1"}}), SPACE)
        await settle()
        assert (await client.get(ConfigMap, "s", SPACE)).data == {"a": "1"}
        await client.patch(ConfigMap, "s", MergePatch({"data": {"a": "drifted", "other": "mine"}}), SPACE)
        await settle()
        assert (await client.get(ConfigMap, "s", SPACE)).data == {"a": "1", "other": "mine"}


@pytest.mark.spec("R-21")
async def test_cleanup_runs_before_the_object_is_removed_and_is_retried(client: Client) -> None:
    class Careful(Reconciler[Secret]):
        async def reconcile(self, ctx: Context[Secret]) -> None:
            steps.append("reconcile" if "konverge.dev/secret" in ctx.obj.metadata.finalizers else "too early")

        async def cleanup(self, ctx: Context[Secret]) -> None:
            steps.append("cleanup")
            if steps.count("cleanup") == 1:
                raise RuntimeError("not yet")

    steps: list[str] = []
    async with Manager(client, settings=Settings(base_delay=5)).add(Controller(Secret, Careful())).running():
        await client.create(secret("a"))
        await settle()
        assert (await client.get(Secret, "a", SPACE)).metadata.finalizers == ["konverge.dev/secret"]
        await client.delete(Secret, "a", SPACE)
        await settle()
        assert (await client.get(Secret, "a", SPACE)).metadata.deletion_timestamp  # it stays while clean-up fails
        await settle(10)
        with pytest.raises(NotFound):
            await client.get(Secret, "a", SPACE)
    assert steps == ["reconcile", "cleanup", "cleanup"]


@pytest.mark.spec("R-10")
async def test_reads_of_undeclared_kinds_go_to_the_server_with_a_warning(client: Client, caplog: Any) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        results.append(await ctx.get(ConfigMap, "settings"))

    results: list[ConfigMap | None] = []
    await client.create(config_map("settings", a="1"))
    await client.create(secret("a"))
    with caplog.at_level(logging.WARNING):
        async with Manager(client).add(Controller(Secret, reconcile)).running() as manager:
            await settle()
            assert len(manager.caches.informers) == 1
    assert results[0] is not None
    assert results[0].data == {"a": "1"}
    assert "ConfigMap is not declared by this controller" in caplog.text


@pytest.mark.spec("R-04")
async def test_shutdown_finishes_queued_keys(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        await asyncio.sleep(3)
        finished.append(ctx.request.name)

    finished: list[str] = []
    for name in ("a", "b", "c"):
        await client.create(secret(name))
    async with Manager(client).add(Controller(Secret, reconcile, workers=1)).running():
        await settle()
    assert sorted(finished) == ["a", "b", "c"]


@pytest.mark.spec("R-04")
async def test_shutdown_cancels_reconciles_that_do_not_finish_in_time(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        await asyncio.Event().wait()

    await client.create(secret("a"))
    controller = Controller(Secret, reconcile, settings=Settings(timeout=3600))
    async with Manager(client, shutdown_timeout=30).add(controller).running():
        await settle()
    assert now() == pytest.approx(31, abs=0.1)


async def test_saving_the_status_of_a_deleted_object_is_not_a_failure(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    saved: list[bool] = []

    async def reconcile(ctx: Context[PodDisruptionBudget]) -> None:
        await ctx.client.delete(PodDisruptionBudget, ctx.request.name, ctx.request.namespace)
        ctx.obj.status.current_healthy = 3
        saved.append(await ctx.save_status())

    manager = Manager(client)
    manager.add(Controller(PodDisruptionBudget, reconcile))
    with caplog.at_level(logging.INFO):
        async with manager.running():
            await client.create(PodDisruptionBudget(metadata=ObjectMeta(name="one", namespace=SPACE)))
            await asyncio.sleep(60)
    assert saved == [False]
    assert "not found" not in caplog.text
