"""Any set of objects, however odd, is explained: nothing raises, and everything ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.explain import Explainer, Health, Ref, World, as_json, grouped
from konverge.explain.explainer import LONGEST
from konverge.explain.rules import _RULES

pytestmark = pytest.mark.spec("O-80")

NAMES = st.sampled_from(["a", "b", "c", "web-0"])
KINDS = st.sampled_from([*_RULES, ("", "Secret"), ("", "Event"), ("storage.k8s.io", "StorageClass"), ("x.io", "Thing")])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(["", "a", "b", "True", "False", "Pending", "Failed", "Ready", "2026-01-01T00:00:00Z", "\x1b[31m"]),
)
PLAIN = """
spec status replicas readyReplicas conditions type reason message phase nodeName volumes name containers secret
containerStatuses state waiting terminated exitCode selector matchLabels app storageClassName secretName secretRef
observedGeneration scaleTargetRef kind finalizers suspend paused template webhooks endpoints targetRef rules"""
KEYS = st.sampled_from(PLAIN.split())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
CONDITIONS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Ready", "Available", "Progressing", "PodScheduled", "Failed", "ReplicaFailure"]),
        "status": st.sampled_from(["True", "False", "Unknown"]),
        "message": st.sampled_from(["", "exceeded quota: q, requested: a=1, used: a=1, limited: a=1", "0/1 nodes"]),
    }
)


@st.composite
def objects(draw: st.DrawFn) -> Any:
    if draw(st.integers(0, 19)) == 0:
        return draw(VALUES)
    group, kind = draw(KINDS)
    owners = [{"uid": draw(NAMES), "name": draw(NAMES), "kind": "Thing"} for _ in range(draw(st.integers(0, 2)))]
    meta: dict[str, Any] = {"name": draw(NAMES), "namespace": "n", "uid": draw(NAMES), "ownerReferences": owners}
    meta |= draw(
        st.fixed_dictionaries({}, optional={"deletionTimestamp": LEAVES, "labels": VALUES, "finalizers": VALUES})
    )
    status = draw(st.one_of(VALUES, st.fixed_dictionaries({"conditions": st.lists(CONDITIONS, max_size=3)})))
    return {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "metadata": draw(st.one_of(st.just(meta), VALUES)) if draw(st.integers(0, 9)) == 0 else meta,
        "spec": draw(VALUES),
        "status": status,
        "involvedObject": {"kind": kind, "namespace": "n", "name": draw(NAMES)},
        "message": draw(LEAVES),
    }


@given(st.lists(objects(), max_size=8), st.sampled_from([0.0, 1.8e9]))
def test_anything_has_an_answer(everything: list[Any], now: float) -> None:
    for listed in (None, [("", "Pod", "n")]):
        explainer = Explainer(World(everything, now=now, listed=listed))
        refs = list(explainer.world)
        for ref in refs:
            answer = explainer.why(ref)
            chain = [step.ref for step in answer.chain]
            assert chain[0] == ref
            assert len(set(chain)) == len(chain)
            assert answer.sentence.startswith(str(ref))
            assert (answer.health is Health.READY) or len(answer.sentence) > len(str(ref)) + 1
            answer.tree = explainer.tree(ref)
            assert as_json(answer)["ref"]["name"] == ref.name
        sick = explainer.sick()
        assert sum(len(members) for _, members in grouped(sick)) == len(sick)
        assert bool(sick) == any(explainer.why(ref).worst not in (Health.READY, Health.UNKNOWN) for ref in refs)


def owned(name: str, *owners: str, **more: Any) -> dict[str, Any]:
    references = [{"uid": owner} for owner in owners]
    meta = {"name": name, "uid": name, "namespace": "n", "ownerReferences": references}
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": meta, **more}


def test_owners_in_a_ring_end() -> None:
    waiting = {"status": {"conditions": [{"type": "Ready", "status": "False", "message": "not yet"}]}}
    part = owned("a", "b", **waiting) | {"kind": "Part"}
    explainer = Explainer(World([part, owned("b", "c"), owned("c", "a")]))
    answer = explainer.why(Ref("Thing", "b", "n", "x.io"))
    assert [step.ref.name for step in answer.chain] == ["b", "a"]
    tree = explainer.tree(Ref("Part", "a", "n", "x.io"))
    assert [tree.children[0].ref.name, tree.children[0].children[0].ref.name] == ["c", "b"]
    assert [answer.ref.name for answer in explainer.sick()]


WAITING = {"status": {"conditions": [{"type": "Ready", "status": "False", "message": "not yet"}]}}


def test_a_long_ring_is_shown_in_parts() -> None:
    things = [owned(str(number), str((number - 1) % 400), **WAITING) for number in range(400)]
    explainer = Explainer(World(things))
    answers = explainer.sick()
    assert {len(answer.chain) for answer in answers} == {LONGEST}
    assert len(answers) == 13, "no more than it takes to name all of them"
    assert {step.ref for answer in answers for step in answer.chain} == set(explainer.world)
    assert max(len(answer.sentence) for answer in answers) < 1500


def test_of_a_chain_the_beginning_is_walked_as_far_as_a_sentence_goes() -> None:
    things = [owned("0"), *(owned(str(number), str(number - 1)) for number in range(1, LONGEST - 1))]
    end = owned("end", str(LONGEST - 2), **WAITING) | {"kind": "Part"}
    answer = Explainer(World([*things, end])).why(Ref("Thing", "0", "n", "x.io"))
    assert (len(answer.chain), answer.chain[-1].ref.name, answer.health) == (LONGEST, "end", Health.WAITING)
    assert answer.sentence.endswith("Part end, which is not ready: not yet")


def test_an_event_that_is_read_again_counts_once() -> None:
    def event(name: str, uid: str, count: int) -> dict[str, Any]:
        meta = {"name": name, "namespace": "n", "uid": uid}
        about = {"kind": "Thing", "namespace": "n", "name": "t"}
        return {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about, "count": count}

    world = World([owned("t"), event("a", "1", 1), event("b", "2", 1), event("a", "1", 5), event("a", "3", 7)])
    assert [entry["count"] for entry in world.events(Ref("Thing", "t", "n", "x.io"))] == [5, 1, 7]


def test_many_events_are_not_compared_with_each_other() -> None:
    class Counted(dict[str, Any]):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = None  # type: ignore[assignment]

    about = {"kind": "Thing", "namespace": "n", "name": "t"}
    kind = {"apiVersion": "v1", "kind": "Event", "involvedObject": about}
    World([Counted(kind, metadata={"name": f"e{number}", "namespace": "n"}) for number in range(100)])
    assert Counted.compared == 0


def test_a_chain_longer_than_the_stack_ends() -> None:
    links = [owned(str(number), str(number - 1)) for number in range(1, 1500)]
    last = {"status": {"conditions": [{"type": "Ready", "status": "False", "message": "the end"}]}}
    end = owned("last", "1499", **last) | {"kind": "Part"}
    explainer = Explainer(World([owned("0"), *links, end]))
    first = Ref("Thing", "0", "n", "x.io")
    answer = explainer.why(first)
    assert (len(answer.chain), answer.health, answer.worst) == (LONGEST, Health.WAITING, Health.WAITING)
    assert answer.sentence.endswith("Thing 30, which waits for Thing 31, which waits for others")
    assert "last" in {step.ref.name for answer in explainer.sick() for step in answer.chain}, "the cause is shown"
    deepest = explainer.tree(first)
    while deepest.children:
        deepest = deepest.children[0]
    assert deepest.cut == 1


def unplaced(name: str, message: str) -> dict[str, Any]:
    state = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    meta = {"name": name, "namespace": "n", "uid": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": "Pending", "conditions": [state]}}


def test_what_has_one_cause_is_one_group() -> None:
    full = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available"
    objects_ = [unplaced("a", full), unplaced("b", full.replace("cpu", "memory")), unplaced("c", "0/3 nodes: odd")]
    groups = grouped(Explainer(World(objects_)).sick())
    assert [[member.ref.name for member in members] for _, members in groups] == [["a", "b"], ["c"]]
