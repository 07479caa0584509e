"""Errors at the gate: the operator is answered as by an API server in trouble, at the write that was named."""

from __future__ import annotations

import asyncio

import pytest

from konverge.check.model import Apply, Delete, Edit, Exchange, Place, Plan, Ref, Refuse, Run, Step
from tests.check.small import CONFIGS, CONVERTED, DEFINITION, THINGS, Api, Caches, Obj, Refused, Small, create, run

STEPS = (create("create", size=1), create("grow", size=2))


async def copy_size(api: Api, caches: Caches) -> None:
    """A ConfigMap for every Thing; updated, not patched."""
    for name, thing in caches[THINGS].items():
        wanted = str(thing["spec"]["size"])
        present = await api.get(CONFIGS, name)
        if present is None:
            await api.create(CONFIGS, {"metadata": {"name": name}, "data": {"size": wanted}})
        elif present["data"]["size"] != wanted:
            await api.update(CONFIGS, {**present, "data": {"size": wanted}})


def small() -> Small:
    return Small(copy_size)


def writes(run: Run) -> list[Exchange]:
    return [exchange for exchange in run.exchanges if exchange.resource == "/configmaps"]


def config(run: Run) -> Obj:
    return run.checkpoints[-1].state["configmaps default/a"]


CREATE = Place("create", "/configmaps", "default", "a")
UPDATE = Place("update", "/configmaps", "default", "a", "data.size")


@pytest.mark.spec("K-10")
@pytest.mark.parametrize(
    ("answer", "status"),
    [("conflict", 409), ("error", 500), ("unavailable", 503), ("throttled", 429), ("timeout", 504)],
)
def test_a_refused_write_has_no_effect_and_is_tried_again(answer: str, status: int) -> None:
    refused = run(small, STEPS, Plan("errors", (Refuse(UPDATE, answer),)))  # type: ignore[arg-type]
    assert not refused.missed
    assert [(item.verb, item.status, len(item.revisions)) for item in writes(refused)] == [
        ("create", 201, 1),
        ("update", status, 0),
        ("update", 200, 1),
    ]
    assert writes(refused)[1].error == f"{answer}, by the check"
    assert [item.perturbed for item in writes(refused)] == [False, True, False]
    assert len(refused.hit) == 1
    assert config(refused)["data"] == {"size": "2"}


@pytest.mark.spec("K-10")
def test_a_lost_answer_is_that_of_a_write_that_took_effect() -> None:
    lost = run(small, STEPS, Plan("errors", (Refuse(CREATE, "lost"),)))
    assert not lost.missed
    assert [(item.verb, item.status, len(item.revisions)) for item in writes(lost)] == [
        ("create", 504, 1),
        ("update", 200, 1),
    ]


@pytest.mark.spec("K-10")
def test_a_write_is_refused_as_often_as_asked_for() -> None:
    refused = run(small, STEPS, Plan("errors", (Refuse(CREATE, "unavailable", times=3),)))
    assert [item.status for item in writes(refused)] == [503, 503, 503, 201, 200]


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(("pause", "statuses"), [(9.0, [503, 503, 503, 201]), (30.0, [503, 201])])
def test_trouble_ends_after_a_while_however_few_have_met_it(pause: float, statuses: list[int]) -> None:
    async def seldom(api: Api, caches: Caches) -> None:
        try:
            await copy_size(api, caches)
        except Refused:
            await asyncio.sleep(pause - 1.0)
            raise

    refused = run(lambda: Small(seldom), STEPS[:1], Plan("errors", (Refuse(CREATE, "unavailable", times=4),)))
    assert [item.status for item in writes(refused)] == statuses


@pytest.mark.spec("K-10")
def test_a_place_is_known_by_what_the_write_would_change() -> None:
    """An update that would change nothing, or something else, passes."""

    async def restless(api: Api, caches: Caches) -> None:
        await copy_size(api, caches)
        for name in caches[THINGS]:
            present = await api.get(CONFIGS, name)
            assert present is not None
            await api.update(CONFIGS, present)  # nothing
            await api.update(CONFIGS, {**present, "metadata": {**present["metadata"], "labels": {"app": name}}})

    refused = run(lambda: Small(restless), STEPS, Plan("errors", (Refuse(UPDATE, "error"),)))
    assert [exchange.status for exchange in writes(refused)].count(500) == 1
    failed = next(index for index, exchange in enumerate(writes(refused)) if exchange.status == 500)
    assert writes(refused)[failed + 1].place == UPDATE  # the next attempt changes what was named


@pytest.mark.spec("K-10")
@pytest.mark.parametrize("definition", [DEFINITION, CONVERTED], ids=["one version", "converted versions"])
def test_a_write_to_a_custom_resource_is_refused(definition: Obj) -> None:
    async def tell_size(api: Api, caches: Caches) -> None:
        for name, thing in caches[THINGS].items():
            if thing.get("status") != thing["spec"]:
                await api.patch(THINGS, f"{name}/status", {"status": thing["spec"]})

    place = Place("patch", "demo.dev/things/status", "default", "a", "status.size")
    plan = Plan("errors", (Refuse(place, "conflict"),))
    refused = run(lambda: Small(tell_size), STEPS, plan, definition=definition)
    assert not refused.missed
    assert [item.status for item in refused.exchanges if item.resource == place.resource] == [200, 409, 200]


@pytest.mark.spec("K-10")
def test_a_read_may_fail_too() -> None:
    place = Place("get", "/configmaps", "", "", occurrence=2)
    refused = run(small, STEPS, Plan("errors", (Refuse(place, "error"),)))
    assert not refused.missed
    assert config(refused)["data"] == {"size": "2"}


@pytest.mark.spec("K-10")
def test_an_error_whose_place_never_comes_is_said() -> None:
    other = Place("update", "/configmaps", "default", "b", "data.size")
    assert run(small, STEPS, Plan("errors", (Refuse(other, "error"),))).missed


@pytest.mark.spec("K-87")
def test_an_edit_that_the_api_server_refuses_is_no_defect_of_the_checker() -> None:
    wrong = Edit(Ref("/configmaps", "default", "a"), {"data": {"no name": "x"}}, 0)
    refused = run(small, STEPS, Plan("edits", (wrong,)))
    assert refused.problem.startswith("the API server refused the change by another client: ConfigMap ")
    assert [checkpoint.step for checkpoint in refused.checkpoints] == ["create"], "nothing more is to be seen"


@pytest.mark.spec("K-89")
def test_the_last_step_alone_has_patience_beyond_its_rest() -> None:
    plain, patient = (run(small, STEPS, patience=seconds) for seconds in (0.0, 5000.0))
    first, last = ([checkpoint.time for checkpoint in each.checkpoints] for each in (plain, patient))
    assert last[0] == first[0]
    assert last[1] >= first[1] + 5000.0


@pytest.mark.spec("K-89")
def test_what_goes_wrong_after_the_last_step_is_not_waited_for_before() -> None:
    edit = Plan("edits", (Edit(Ref("/configmaps", "default", "a"), {"data": {"size": "7"}}, 1),))
    plain, patient = (run(small, STEPS, edit, patience=seconds) for seconds in (0.0, 5000.0))
    assert [each.checkpoints[1].time for each in (plain, patient)] == [plain.checkpoints[1].time] * 2


async def let_go(api: Api, caches: Caches) -> None:
    """The operator's finalizer of a Thing that is deleted."""
    for name, thing in caches[THINGS].items():
        metadata = thing["metadata"]
        if metadata.get("deletionTimestamp") and FINALIZER in metadata["finalizers"]:
            left = [item for item in metadata["finalizers"] if item != FINALIZER]
            await api.patch(THINGS, name, {"metadata": {"finalizers": left or None}})


FINALIZER = "demo.dev/let-go"
MOVED = "metadata.finalizers[0],metadata.finalizers[1]"
"""What changes when the first of two goes."""


@pytest.mark.spec("K-141")
@pytest.mark.parametrize(
    ("others", "change", "left"), [((), "", set()), (("demo.dev/others",), MOVED, {"demo.dev/others"})]
)
@pytest.mark.parametrize("answer", ["conflict", "error"])
def test_an_object_that_goes_with_its_last_finalizer_is_found_before_it_goes(
    answer: str, others: tuple[str, ...], change: str, left: set[str]
) -> None:
    metadata = {"name": "a", "namespace": "default", "finalizers": [FINALIZER, *others]}
    thing = {"apiVersion": "demo.dev/v1", "kind": "Thing", "metadata": metadata, "spec": {"size": 1}}
    steps = (Step("create", (Apply(thing),)), Step("delete", (Delete("demo.dev/v1", "Thing", "default", "a"),)))
    place = Place("patch", "demo.dev/things", "default", "a", change)
    refused = run(lambda: Small(let_go), steps, Plan("errors", (Refuse(place, answer),)))  # type: ignore[arg-type]
    assert not refused.missed
    assert [item.perturbed for item in refused.exchanges if item.verb == "patch"] == [True, False]
    present = refused.checkpoints[-1].state.get("demo.dev/things default/a")
    assert set(present["metadata"]["finalizers"] if present else ()) == left
