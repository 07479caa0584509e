"""Views at the gate: each is one that a real API server may show, and is released at rest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.check.model import (
    Apply,
    Checkpoint,
    Delete,
    Gap,
    Lag,
    LateOwnWrites,
    Moment,
    Plan,
    Run,
    Stale,
    Step,
)
from tests.check.small import CONFIGS, THINGS, Api, Caches, Small, create, delete, run, thing

RESOURCE = "demo.dev/things"


def moment(type_: Any, change: str = "", occurrence: int = 1, resource: str = RESOURCE, name: str = "a") -> Moment:
    return Moment(type_, resource, "default", name, change, occurrence)


class Watched:
    """Runs an operator that does nothing but look, and what each of its incarnations saw."""

    def __init__(self, steps: tuple[Step, ...], plan: Plan, *, first: str = "0", watches: tuple[str, ...] = (THINGS,)):
        self.seen: list[list[tuple[str, str, str]]] = []
        self.sizes: list[list[Any]] = []
        """The size of the Thing at every look, by incarnation."""
        self._first, self._watches = first, watches
        self.run = run(self._make, steps, plan)

    def _make(self) -> Small:
        made = Small(self._look, self._watches, self._first)
        made_seen = made.seen
        self.seen.append(made_seen)
        return made

    async def _look(self, api: Api, caches: Caches) -> None:
        self.sizes.append([caches[THINGS][name]["spec"].get("size") for name in sorted(caches[THINGS])])

    @property
    def events(self) -> list[tuple[str, str]]:
        """Types and names, in their order."""
        return [(type_, name) for items in self.seen for type_, name, _ in items]


def at(run: Run, name: str) -> Checkpoint:
    return next(checkpoint for checkpoint in run.checkpoints if checkpoint.step == name)


RECREATE = (create("create", size=1), delete(), create("again", size=2))
STALE = Stale(RESOURCE, moment("ADDED"), moment("ADDED", occurrence=2))


@pytest.mark.spec("K-12")
def test_a_stale_start_shows_the_old_list_and_the_rest_at_rest() -> None:
    watched = Watched(RECREATE, Plan("stale", (STALE,)))
    assert not watched.run.missed
    assert watched.events[3:] == [("LISTED", "things"), ("DELETED", "a"), ("ADDED", "a")]
    assert watched.sizes == [[], [1], [], [1], [2]]
    listed = [delivery for delivery in watched.run.deliveries if delivery.listed and delivery.incarnation == 2]
    first = next(change for change in watched.run.changes if change.moment == moment("ADDED"))
    assert listed[0].revision == first.revision
    assert not at(watched.run, "again").blind  # released, and at rest again


@pytest.mark.spec("K-12")
def test_a_stale_start_may_be_from_right_before_a_moment() -> None:
    watched = Watched(RECREATE, Plan("stale", (Stale(RESOURCE, moment("ADDED"), moment("ADDED", occurrence=2), True),)))
    assert not watched.run.missed
    assert watched.events[3:] == [("LISTED", "things"), ("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


@pytest.mark.spec("K-12")
@pytest.mark.parametrize("first", ["", "1"])
def test_lists_that_must_be_fresh_are_fresh(first: str) -> None:
    """No resourceVersion, or not older than one: then there is no stale start."""
    watched = Watched(RECREATE, Plan("stale", (STALE,)), first=first)
    assert watched.run.missed
    restarted = max(index for index, event in enumerate(watched.events) if event[0] == "LISTED")
    assert watched.events[restarted:] == [("LISTED", "things")]
    assert watched.sizes[-1] == [2]


@pytest.mark.spec("K-12")
def test_single_objects_are_fresh_while_a_view_is_stale() -> None:
    read: list[Any] = []

    async def look(api: Api, caches: Caches) -> None:
        present = await api.get(THINGS, "a")
        cached = caches[THINGS].get("a")
        read.append((cached and cached["spec"]["size"], present and present["spec"]["size"]))

    run(lambda: Small(look), RECREATE, Plan("stale", (STALE,)))
    assert (1, 2) in read


@pytest.mark.spec("K-12")
def test_a_view_never_goes_back_within_an_incarnation() -> None:
    """Once the fresh state was listed, a list of any version is no older."""
    listed: list[str] = []

    async def look(api: Api, caches: Caches) -> None:
        for query in ("", "?resourceVersion=0"):
            answer = await api.call("GET", f"{THINGS}{query}")
            listed.append(",".join(str(item["spec"]["size"]) for item in answer["items"]))

    run(lambda: Small(look, (CONFIGS,)), RECREATE, Plan("stale", (STALE,)))
    assert listed[-2:] == ["2", "2"]


@pytest.mark.spec("K-13")
def test_a_lagging_watch_comes_late_and_whole() -> None:
    steps = (
        create("create", size=1),
        Step("change", (Apply(thing(size=2)), Apply(thing(size=3)))),
        create("more", size=4),
    )
    watched = Watched(steps, Plan("own-writes", (Lag(RESOURCE, moment("MODIFIED", "spec.size")),)))
    assert not watched.run.missed
    assert [event for event in watched.events if event[0] == "MODIFIED"] == [("MODIFIED", "a")] * 3
    assert [checkpoint.blind for checkpoint in watched.run.checkpoints] == [False, False, False]
    times = {change.revision: change.time for change in watched.run.changes if change.moment.type == "MODIFIED"}
    late = [
        delivery.time - times[delivery.revision] for delivery in watched.run.deliveries if delivery.revision in times
    ]
    assert late[0] > 0
    assert late[1] > 0
    assert late[2] == 0


@pytest.mark.spec("K-13")
def test_a_lag_holds_one_resource_alone() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    steps = (
        create("create", size=1),
        Step("both", (Apply(thing(size=2)), Apply(config))),
    )
    lag = Lag(RESOURCE, moment("MODIFIED", "spec.size"))
    watched = Watched(steps, Plan("own-writes", (lag,)), watches=(THINGS, CONFIGS))
    assert watched.events.index(("ADDED", "c")) < watched.events.index(("MODIFIED", "a"))


@pytest.mark.spec("K-14")
def test_a_state_passes_unseen_and_the_client_lists_again() -> None:
    steps = (create("create", size=3), create("down", size=1), create("up", size=3))
    gap = Gap(RESOURCE, moment("MODIFIED", "spec.size"), moment("MODIFIED", "spec.size", 2))
    watched = Watched(steps, Plan("gap", (gap,)))
    assert not watched.run.missed
    assert [1] not in watched.sizes
    assert ("ERROR", "things") in watched.events
    assert watched.events[-1] == ("LISTED", "things")
    assert [checkpoint.blind for checkpoint in watched.run.checkpoints] == [False, True, False]


@pytest.mark.spec("K-14")
def test_a_deletion_passes_unseen() -> None:
    gap = Gap(RESOURCE, moment("DELETED"), moment("ADDED", occurrence=2))
    watched = Watched(RECREATE, Plan("gap", (gap,)))
    assert not watched.run.missed
    assert watched.sizes == [[], [1], [2]]


@pytest.mark.spec("K-110")
def test_what_the_user_deletes_beside_it_is_gone_before_it_is_created_again() -> None:
    """As with `kubectl delete`, which waits for finalizers; applied before that, it would go all the same."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    held = {**config, "metadata": {**config["metadata"], "finalizers": ["demo.dev/slow"]}}
    steps = (
        Step("create", (Apply(thing(size=1)), Apply(held))),
        Step("delete", (*delete().actions, Delete("v1", "ConfigMap", "default", "c"))),
        Step("again", (Apply(thing(size=2)), Apply(held))),
    )
    gap = Gap(RESOURCE, moment("DELETED"), moment("ADDED", occurrence=2))
    done = run(lambda: Small(_let_go, (THINGS, CONFIGS)), steps, Plan("gap", (gap,)))
    assert not done.missed
    assert "configmaps default/c" in at(done, "again").state


async def _let_go(api: Api, caches: Caches) -> None:
    for name, config in caches[CONFIGS].items():
        if config["metadata"].get("deletionTimestamp"):
            await asyncio.sleep(3.0)
            await api.patch(CONFIGS, name, {"metadata": {"finalizers": None}})


@pytest.mark.spec("K-14")
def test_a_watch_from_after_the_gap_goes_on() -> None:
    """410 comes to those who have not come so far, once."""
    steps = (create("create", size=3), create("down", size=1), create("up", size=3), create("on", size=4))
    gap = Gap(RESOURCE, moment("MODIFIED", "spec.size"), moment("MODIFIED", "spec.size", 2))
    watched = Watched(steps, Plan("gap", (gap,)))
    assert [event[0] for event in watched.events].count("ERROR") == 1
    assert watched.events[-1] == ("MODIFIED", "a")
    assert watched.sizes[-1] == [4]


@pytest.mark.spec("K-15")
def test_own_writes_are_seen_late_and_all_else_flows() -> None:
    made: list[Small] = []

    def small() -> Small:
        made.append(Small(guarded_mirror, (THINGS, CONFIGS)))
        return made[-1]

    async def guarded_mirror(api: Api, caches: Caches) -> None:
        for name in caches[THINGS]:
            if name not in caches[CONFIGS] and await api.get(CONFIGS, name) is None:
                await api.create(CONFIGS, {"metadata": {"name": name}})

    steps = (Step("create", (Apply(thing("a")), Apply(thing("b")))),)
    late = run(small, steps, Plan("own-writes", (LateOwnWrites("/configmaps", 7.0),)))
    assert not late.missed
    made_at = {change.revision: change.time for change in late.changes if change.moment.resource == "/configmaps"}
    shown = {delivery.revision: delivery.time for delivery in late.deliveries if delivery.resource == "/configmaps"}
    assert {name for type_, name, _ in made[0].seen if type_ == "ADDED"} == {"a", "b"}
    assert [shown[revision] - made_at[revision] for revision in made_at] == [pytest.approx(7.0)] * 2
    assert not late.checkpoints[-1].blind
