"""The operator is away during a step, and finds what became of it when it starts again."""

from __future__ import annotations

import pytest

from konverge.check.model import OperatorAway, Plan, Run
from konverge.check.oracles import judge
from tests.check.gate.test_errors import config, small
from tests.check.small import CLAIMS, CONFIGS, THINGS, Api, Caches, Small, create, delete, reference, run

STEPS = (create("create", size=1), create("grow", size=2), delete(), create("create again", size=3))


def away(step: int, last: int, make: object = small) -> Run:
    return run(make, STEPS, Plan("crash", (OperatorAway(step, last),)))  # type: ignore[arg-type]


@pytest.mark.spec("K-19")
def test_a_whole_step_is_done_while_the_operator_is_away() -> None:
    made = away(1, 1)
    assert made.hit == ["the operator is away"]
    changed = next(change for change in made.changes if change.writer == "user" and change.moment.type == "MODIFIED")
    after = [exchange for exchange in made.exchanges if exchange.revision >= changed.revision]
    assert {exchange.incarnation for exchange in after} == {2}
    assert made.checkpoints[1].state["configmaps default/a"]["data"] == {"size": "2"}
    assert [checkpoint.blind for checkpoint in made.checkpoints] == [False] * 4
    assert made.exits == []  # it did not end by itself
    assert config(made)["data"] == {"size": "3"}


@pytest.mark.spec("K-19")
def test_several_steps_pass_unseen_and_their_states_are_not_compared() -> None:
    made = away(0, 2)
    assert [checkpoint.blind for checkpoint in made.checkpoints] == [True, True, False, False]
    assert {exchange.incarnation for exchange in made.exchanges if exchange.place} == {2}
    assert "configmaps default/a" not in made.checkpoints[2].state
    assert config(made)["data"] == {"size": "3"}
    assert judge(made, reference(small, STEPS)) == []


async def keep_claim(api: Api, caches: Caches) -> None:
    """A claim outlives its thing, with what was asked for last."""
    for name, item in caches[THINGS].items():
        metadata = {"name": name, "labels": {"size": str(item["spec"]["size"])}}
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        if await api.get(CLAIMS, name) is None:
            await api.create(CLAIMS, {"metadata": metadata, "spec": asked})
        else:
            await api.patch(CLAIMS, name, {"metadata": metadata})


@pytest.mark.spec("K-19")
def test_what_outlives_a_custom_resource_need_not_have_what_was_never_seen() -> None:
    steps = STEPS[:3]
    sane = reference(lambda: Small(keep_claim), steps)
    unseen = run(lambda: Small(keep_claim), steps, Plan("crash", (OperatorAway(1, 2),)))
    labels = [
        made.checkpoints[2].state["persistentvolumeclaims default/a"]["metadata"]["labels"]
        for made in (sane.run, unseen)
    ]
    assert labels == [{"size": "2"}, {"size": "1"}]
    assert judge(unseen, sane) == []


async def tidy_when_seen(api: Api, caches: Caches) -> None:
    """Deletes what belonged to a thing only if it saw the thing go: without a finalizer, and without an owner."""
    for name, item in caches[THINGS].items():
        if await api.get(CONFIGS, name) is None:
            await api.create(CONFIGS, {"metadata": {"name": name}, "data": {"size": str(item["spec"]["size"])}})
        _seen.add(name)
    for name in _seen - caches[THINGS].keys():
        _seen.discard(name)
        await api.delete(CONFIGS, name)


_seen: set[str] = set()


def forgetful() -> Small:
    class Forgets(Small):
        async def start(self, cluster: object, gate: object) -> object:  # type: ignore[override]
            _seen.clear()  # memory does not outlive the process
            return await super().start(cluster, gate)  # type: ignore[arg-type]

    return Forgets(tidy_when_seen)


@pytest.mark.spec("K-19")
def test_what_an_operator_forgets_while_it_is_away_is_found() -> None:
    steps = STEPS[:3]
    sane = reference(forgetful, steps)
    assert "configmaps default/a" not in sane.run.checkpoints[2].state
    made = run(forgetful, steps, Plan("crash", (OperatorAway(2, 2),)))
    assert ("state", "configmaps default/a", "") in [alarm.group for alarm in judge(made, sane)]
