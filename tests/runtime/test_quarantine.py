"""One object, predicate, mapper, index or source that fails: reported, contained, taken up again when it works."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal

import pytest
from prometheus_client.parser import text_string_to_metric_families

from konverge.cache.record import Meta, Record
from konverge.client import Client, MergePatch
from konverge.objects import Model
from konverge.objects.kinds.core_v1 import ConfigMap, Event, Secret
from konverge.objects.model import field
from konverge.runtime import Context, Controller, Manager, Request, Settings, Source, Use, Watches
from konverge.runtime.context import Caches
from tests.runtime.objects import SPACE, config_map, secret
from tests.runtime.test_manager import ask
from tests.runtime.test_retries import now, owner_reference

HERE = (SPACE,)

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-05")]


class Numbers(Model):
    n: Literal["1", "2", "3"] = "1"


class Strict(ConfigMap):
    """A ConfigMap whose content has a type, so that some of them cannot be decoded."""

    data: Numbers = field(default_factory=Numbers)


class Seen:
    """A reconciler that records the names it is called for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def __call__(self, ctx: Context[Any]) -> None:
        self.names.append(ctx.request.name)

    def taken(self) -> list[str]:
        names, self.names = self.names, []
        return sorted(names)


class Recorded:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(self, reason: str, message: str, *, about: Any, type: str = "Normal") -> None:
        assert type == "Warning"
        self.events.append((f"{about.kind} {about.metadata.name}", reason, message))

    @property
    def about(self) -> list[tuple[str, str]]:
        return [(about, reason) for about, reason, _ in self.events]


async def change(client: Client, name: str, **data: str | None) -> None:
    await client.patch(ConfigMap, name, MergePatch({"data": data}), SPACE)
    await asyncio.sleep(1)


async def metric(manager: Manager, name: str) -> dict[str, float]:
    _, text = await ask(manager, "/metrics")
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return {next(iter(sample.labels.values())): sample.value for sample in samples}


# ------------------------------------------------------------------ objects


async def test_a_primary_that_cannot_be_decoded_is_reported_and_the_others_go_on(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    recorder, seen = Recorded(), Seen()
    for name, n in (("a", "1"), ("bad", "x"), ("c", "3")):
        await client.create(config_map(name, n=n))
    settings = Settings(resync_period=100)
    controller = Controller(Strict, seen, namespaces=HERE, name="strict", settings=settings)
    async with Manager(client, recorder=recorder).add(controller).running() as manager:
        await asyncio.sleep(1)
        assert seen.taken() == ["a", "c"]
        assert recorder.about == [("ConfigMap bad", "ObjectQuarantined")]
        assert "'x'" in recorder.events[0][2]
        numbers = manager.engines["strict"].numbers
        assert (numbers.errors, numbers.panics, numbers.results["success"]) == (1, 0, 2)
        # Not failing readiness: the process can do nothing about it.
        assert (await ask(manager, "/readyz"))[0] == 200
        status, text = await ask(manager, "/readyz?verbose")
        assert status == 200
        assert "[!]quarantine: configmaps in default default/bad cannot be read as Strict by strict" in text
        assert "quarantine" not in (await ask(manager, "/healthz?verbose"))[1]
        assert (await metric(manager, "informer_quarantined_objects"))["configmaps in default"] == 1
        await asyncio.sleep(250)  # resyncs: it is not retried in a storm, and not reported again
        assert numbers.queue.retries == 0
        assert len(recorder.events) == 1
        assert caplog.text.count("it is left out until it changes") == 1
        seen.taken()
        await change(client, "bad", n="y")  # another version that cannot be read
        assert recorder.about == [("ConfigMap bad", "ObjectQuarantined")] * 2
        await change(client, "bad", n="2")
        assert "bad" in seen.taken()
        assert "quarantine" not in (await ask(manager, "/readyz?verbose"))[1]
        assert (await metric(manager, "informer_quarantined_objects"))["configmaps in default"] == 0
        assert (await metric(manager, "informer_quarantined_total"))["configmaps in default"] == 2


async def test_a_primary_whose_latest_state_cannot_be_received_is_not_reconciled_by_an_earlier_one(
    client: Client,
) -> None:
    seen = Seen()
    await client.create(config_map("a", n="1"))
    manager = Manager(client, recorder=Recorded()).add(Controller(ConfigMap, seen, namespaces=HERE))
    async with manager.running():
        await asyncio.sleep(1)
        assert seen.taken() == ["a"]
        (informer,) = manager.caches.informers.values()
        informer.reflectors[0].watching.receive = lambda raw: 1 // 0  # type: ignore[assignment, return-value]
        await change(client, "a", n="2")
        manager.engines["configmap"].queue.add(Request(SPACE, "a"))
        await asyncio.sleep(1)
        assert seen.taken() == []
        assert informer.quarantine.count == 1


async def test_what_the_cache_cannot_hold_is_read_live(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        one = await ctx.get(ConfigMap, "a")
        every = await ctx.list(ConfigMap)
        wrote = await ctx.apply(config_map("a", n="5"), own=False)
        seen.append((one and one.data, len(every), wrote))

    seen: list[Any] = []
    await client.create(config_map("a", n="1"))
    controller = Controller(Secret, reconcile, uses=[Use(ConfigMap, cached=True)])
    manager = Manager(client, recorder=Recorded()).add(controller)
    async with manager.running():
        informer = next(i for i in manager.caches.informers.values() if i.spec.resource == ConfigMap.resource)
        informer.reflectors[0].watching.receive = lambda raw: 1 // 0  # type: ignore[assignment, return-value]
        await change(client, "a", n="2")
        await client.create(config_map("b"))
        await client.create(secret("s"))
        await asyncio.sleep(1)
    assert seen == [({"n": "2"}, 2, True)]


async def test_the_event_reaches_the_api_server(client: Client) -> None:
    await client.create(config_map("bad", n="x"))
    async with Manager(client).add(Controller(Strict, Seen(), namespaces=HERE, name="strict")).running():
        await asyncio.sleep(1)
    (event,) = [event for event in await client.list(Event, SPACE) if event.reason == "ObjectQuarantined"]
    made = await client.get(ConfigMap, "bad", SPACE)
    about = event.involved_object
    assert (about.api_version, about.kind, about.name, about.uid) == ("v1", "ConfigMap", "bad", made.metadata.uid)
    assert event.type == "Warning"


async def test_an_owned_object_that_cannot_be_decoded_still_leads_to_its_owner(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None:
        names.append(ctx.request.name)
        if ctx.request.name == "a":
            await ctx.owned(Strict)

    names: list[str] = []
    for name in ("a", "b"):
        await client.create(secret(name))
    child = config_map("child", n="x")
    child.metadata.owner_references = [owner_reference(await client.get(Secret, "a", SPACE))]
    settings = Settings(base_delay=1, max_delay=100)
    controller = Controller(Secret, reconcile, namespaces=HERE, owns=[Strict], settings=settings)
    await client.create(child)
    async with Manager(client, recorder=Recorded()).add(controller).running() as manager:
        await asyncio.sleep(50)
        numbers = manager.engines["secret"].numbers
        assert numbers.results["success"] == 1  # b
        assert numbers.errors > 3  # a: its read names the object, and is retried
        errors = numbers.errors
        await change(client, "child", n="2")
        assert (numbers.results["success"], numbers.errors) == (2, errors)


# ------------------------------------------------------------------ the author's functions


async def test_a_predicate_that_raises_lets_the_change_through(client: Client) -> None:
    def only_labelled(old: ConfigMap | None, new: ConfigMap | None) -> bool:
        assert new is not None
        return bool(int(new.metadata.labels["wanted"]))

    recorder, seen = Recorded(), Seen()
    await client.create(config_map("a"))
    controller = Controller(ConfigMap, seen, namespaces=HERE, when=only_labelled)
    async with Manager(client, recorder=recorder).add(controller).running() as manager:
        await asyncio.sleep(1)
        assert seen.taken() == ["a"]
        assert recorder.about == [("ConfigMap a", "ObjectQuarantined")]
        for wanted, names in (("0", []), ("1", ["a"])):
            await client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"wanted": wanted}}}), SPACE)
            await asyncio.sleep(1)
            assert seen.taken() == names
            assert "quarantine" not in (await ask(manager, "/readyz?verbose"))[1]


def by_for(cm: ConfigMap) -> Iterable[Request]:
    """Maps to the names in `for`; one that begins with a digit is an error."""
    for name in (cm.data.get("for") or "").split():
        if name[0].isdigit():
            raise ValueError(f"{name} is no name")
        yield Request(SPACE, name)


async def test_a_mapper_that_raises_costs_one_object_and_what_it_knew_is_kept(client: Client) -> None:
    recorder, seen = Recorded(), Seen()
    for name in ("a", "b"):
        await client.create(secret(name))
    await client.create(config_map("first", **{"for": "1"}))  # in the first list
    controller = Controller(Secret, seen, namespaces=HERE, watches=[Watches(ConfigMap, requests=by_for)])
    async with Manager(client, recorder=recorder).add(controller).running() as manager:
        await asyncio.sleep(1)
        assert seen.taken() == ["a", "b"]
        await client.create(config_map("good", **{"for": "b"}))
        await asyncio.sleep(1)
        assert seen.taken() == ["b"]
        assert recorder.about == [("ConfigMap first", "ObjectQuarantined")]
        await change(client, "good", **{"for": "a 1"})  # what it gave before it failed, and what it was for before
        assert seen.taken() == ["a", "b"]
        await change(client, "good", **{"for": "b"})  # the old state fails, as was reported; the new one does not
        assert seen.taken() == ["a", "b"]
        assert len(recorder.events) == 2
        assert (await ask(manager, "/readyz?verbose"))[1].count("cannot be mapped") == 1
        await client.delete(ConfigMap, "first", SPACE)
        await asyncio.sleep(1)
        assert "quarantine" not in (await ask(manager, "/readyz?verbose"))[1]


async def test_a_watched_object_that_cannot_be_decoded_costs_one_object(client: Client) -> None:
    recorder, seen = Recorded(), Seen()
    await client.create(secret("a"))
    watch = Watches(Strict, requests=lambda cm: [Request(SPACE, "a")])
    async with (
        Manager(client, recorder=recorder).add(Controller(Secret, seen, namespaces=HERE, watches=[watch])).running()
    ):
        await client.create(config_map("bad", n="x"))
        await asyncio.sleep(1)
        assert seen.taken() == ["a"]
        assert recorder.about == [("ConfigMap bad", "ObjectQuarantined")]
        await change(client, "bad", n="1")
        assert seen.taken() == ["a"]


async def test_a_mapper_that_gives_something_else_than_a_request_is_reported(client: Client) -> None:
    recorder, seen = Recorded(), Seen()
    watch: Watches[ConfigMap] = Watches(ConfigMap, requests=lambda cm: ["a"])  # type: ignore[list-item]
    await client.create(secret("a"))
    async with (
        Manager(client, recorder=recorder).add(Controller(Secret, seen, namespaces=HERE, watches=[watch])).running()
    ):
        await client.create(config_map("cm"))
        await asyncio.sleep(1)
        await client.create(secret("b"))
        await asyncio.sleep(1)
    assert seen.taken() == ["a", "b"]
    assert "'a' is not a Request" in recorder.events[0][2]


async def test_a_mapper_that_failed_on_another_object_is_called_again(client: Client) -> None:
    def lookup(cm: ConfigMap, caches: Caches) -> list[Request]:
        calls.append(now())
        lister = caches.lister(Secret)
        assert lister is not None
        if lister.get("switch", SPACE) is None:
            raise LookupError("there is no switch")
        return [Request(SPACE, "a")]

    calls: list[float] = []
    recorder, seen = Recorded(), Seen()
    await client.create(secret("a"))
    await client.create(config_map("cm"))
    controller = Controller(Secret, seen, namespaces=HERE, watches=[Watches(ConfigMap, lookup=lookup)])
    async with Manager(client, recorder=recorder).add(controller).running() as manager:
        await asyncio.sleep(200)
        assert len(calls) == 4  # at first, and about every minute
        assert all(54 <= after - before <= 66 for before, after in itertools.pairwise(calls))
        assert len(recorder.events) == 1
        seen.taken()
        await client.create(secret("switch"))
        await asyncio.sleep(66)
        assert seen.taken() == ["a", "switch"]
        assert "quarantine" not in (await ask(manager, "/readyz?verbose"))[1]
        await asyncio.sleep(300)
        assert len(calls) == 5
        await client.delete(Secret, "switch", SPACE)
        await change(client, "cm", n="1")
        assert len(calls) == 6 + 1  # the old state and the new one
        await client.delete(ConfigMap, "cm", SPACE)
        await asyncio.sleep(300)
        assert len(calls) == 8  # its last state, and then no more
    await asyncio.sleep(300)
    assert len(calls) == 8


async def test_an_index_that_raises_costs_one_object(client: Client) -> None:
    def by_number(record: Record, meta: Meta) -> list[str]:
        return [str(int(meta.labels["n"]))]

    async def reconcile(ctx: Context[Secret]) -> None:
        found.append([cm.metadata.name for cm in ctx.indexed(ConfigMap, "n", "1")])

    found: list[list[str]] = []
    recorder = Recorded()
    for name, n in (("good", "1"), ("bad", "x")):
        made = config_map(name)
        made.metadata.labels = {"n": n}
        await client.create(made)
    await client.create(secret("a"))
    controller = Controller(
        Secret, reconcile, namespaces=HERE, uses=[Use(ConfigMap, cached=True)], indexes={ConfigMap: {"n": by_number}}
    )
    async with Manager(client, recorder=recorder).add(controller).running():
        await asyncio.sleep(1)
    assert found == [["good"]]
    assert recorder.about == [("ConfigMap bad", "ObjectQuarantined")]


async def test_a_recorder_that_raises_costs_nothing_but_its_events(client: Client) -> None:
    class Broken:
        def event(self, *_: object, **__: object) -> None:
            raise OSError("disk full")

    async def reconcile(ctx: Context[Any]) -> None:
        names.append(ctx.request.name)
        raise RuntimeError("no")

    names: list[str] = []
    await client.create(config_map("bad", n="x"))
    settings = Settings(base_delay=1, max_delay=10, max_retries=1)
    controller = Controller(Strict, reconcile, namespaces=HERE, name="strict", settings=settings)
    async with Manager(client, recorder=Broken()).add(controller).running():
        await client.create(config_map("a", n="1"))
        await asyncio.sleep(25)
    assert names == ["a"] * 4  # 0, 1, 11, 21


# ------------------------------------------------------------------ sources


class Flaky:
    """A source that does what its script says, one line per start: requests, and then an end or an error."""

    def __init__(self, *script: tuple[float, Exception | None]) -> None:
        self.starts: list[float] = []
        self._script = list(script)

    async def __call__(self) -> AsyncIterator[Request]:
        self.starts.append(now())
        seconds, error = self._script.pop(0) if self._script else (10_000.0, None)
        await asyncio.sleep(seconds)
        yield Request(SPACE, "a")
        if error is not None:
            raise error


@pytest.mark.spec("R-23")
async def test_a_source_that_ends_or_raises_is_started_again_with_back_off(client: Client) -> None:
    short, broken = (0.0, None), (0.0, OSError("away"))
    source = Flaky(short, broken, broken, short, broken, broken, broken, broken, (500.0, None), short)
    seen = Seen()
    await client.create(secret("a"))
    controller = Controller(Secret, seen, namespaces=HERE, sources=[Source(name="flaky", requests=source)])
    async with Manager(client).add(controller).running() as manager:
        await asyncio.sleep(3)
        assert "[!]sources: secret flaky: away" in (await ask(manager, "/readyz?verbose"))[1]
        assert (await ask(manager, "/readyz"))[0] == 200
        await asyncio.sleep(900)
        numbers = manager.engines["secret"].numbers
        assert numbers.source_restarts == {"flaky": 10}
        assert "sources" not in (await ask(manager, "/readyz?verbose"))[1]
        assert (await metric(manager, "controller_source_restarts_total")) == {"secret": 10}
    gaps = [after - before for before, after in itertools.pairwise(source.starts)]
    due = [1, 2, 4, 8, 16, 32, 60, 60, 501, 2]  # after it was healthy for long, from the beginning
    assert all(least <= gap <= least * 1.2 + 1e-6 for gap, least in zip(gaps, due, strict=True)), gaps
    assert len(seen.names) == 11  # the first list, and one for each start that gave a request
    assert len(set(gaps[6:8])) == 2  # with jitter


async def test_a_source_that_cannot_even_start_and_one_that_gives_nonsense_are_contained(client: Client) -> None:
    def refuses() -> AsyncIterator[Request]:
        raise OSError("no port")

    async def nonsense() -> AsyncIterator[Any]:
        yield None

    seen = Seen()
    sources = [Source(name="refuses", requests=refuses), Source(name="nonsense", requests=nonsense)]
    async with Manager(client).add(Controller(Secret, seen, namespaces=HERE, sources=sources)).running() as manager:
        await asyncio.sleep(10)
        await client.create(secret("a"))
        await asyncio.sleep(1)
        numbers = manager.engines["secret"].numbers
    assert seen.names == ["a"]
    assert numbers.source_restarts == {"refuses": 4, "nonsense": 4}
