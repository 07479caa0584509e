"""Who may have how much: decisions without a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.operators.wukong.grants import Asking, covers, decide, exceeded, too_much, used, wanted
from konverge.operators.wukong.spec_quota import Grant, QuotaSpec, QuotaUse

pytestmark = pytest.mark.spec("W-29")

Disks = dict[str, str]


def grant(name: str, cpu: int = 2, memory: str = "2Gi", disks: Disks | None = None) -> Grant:
    return Grant(name=name, uid=f"uid-{name}", cpu=cpu, memory=memory, disks={"a": "10Gi"} if disks is None else disks)


def asking(name: str, cpu: int = 2, memory: str = "2Gi", disks: Disks | None = None, **more: Any) -> Asking:
    wants = grant(name, cpu, memory, disks)
    return Asking(name=name, uid=wants.uid, created=more.pop("created", "2026-01-01T00:00:00Z"), wants=wants, **more)


def names(limits: QuotaSpec, *machines: Asking, granted: tuple[Grant, ...] = ()) -> tuple[list[str], list[str]]:
    """Who has something, and who waits."""
    decision = decide(limits, machines, granted)
    return [entry.name for entry in decision.granted], [entry.name for entry in decision.waiting]


def test_machines_get_their_turn_by_creation_then_name_then_uid() -> None:
    late = asking("a", created="2026-01-02T00:00:00Z")
    assert names(QuotaSpec(machines=1), late, asking("b")) == (["b"], ["a"])
    assert names(QuotaSpec(machines=1), asking("c"), asking("b")) == (["b"], ["c"])
    assert names(QuotaSpec(), late, asking("b")) == (["b", "a"], [])


def test_one_that_does_not_fit_does_not_hold_up_those_after_it() -> None:
    assert names(QuotaSpec(cpu=4), asking("a"), asking("b", cpu=3), asking("c")) == (["a", "c"], ["b"])


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (QuotaSpec(machines=0), "machines: 0 of 0 in use, 1 more asked for, 1 too much"),
        (QuotaSpec(cpu=1), "cpu: 0 of 1 in use, 2 more asked for, 1 too much"),
        (QuotaSpec(memory="1Gi"), "memory: 0 of 1Gi in use, 2Gi more asked for, 1Gi too much"),
        (QuotaSpec(storage="9Gi"), "storage: 0 of 9Gi in use, 10Gi more asked for, 1Gi too much"),
    ],
)
def test_each_limit_is_named_with_what_is_too_much(limits: QuotaSpec, text: str) -> None:
    (entry,) = decide(limits, [asking("a")], []).waiting
    assert (entry.name, entry.uid, entry.message) == ("a", "uid-a", text)


@pytest.mark.parametrize(
    "limits", [QuotaSpec(machines=1), QuotaSpec(cpu=2), QuotaSpec(memory="2Gi"), QuotaSpec(storage="10Gi")]
)
def test_what_fits_exactly_fits(limits: QuotaSpec) -> None:
    assert names(limits, asking("a")) == (["a"], [])


def test_what_was_granted_stays_under_a_lower_limit_and_only_more_has_to_fit() -> None:
    limits = QuotaSpec(machines=0, cpu=1)
    assert names(limits, asking("a"), granted=(grant("a"),)) == (["a"], [])
    bigger = decide(limits, [asking("a", memory="3Gi")], [grant("a")])
    assert bigger.waiting == [], "memory is not limited"
    assert bigger.granted == [grant("a", memory="3Gi")]
    more = decide(limits, [asking("a", cpu=3)], [grant("a")])
    assert more.granted == [grant("a")]
    assert more.waiting[0].message == "cpu: 2 of 1 in use, 1 more asked for, 2 too much"


def test_what_was_built_before_is_granted_first_whatever_the_limit() -> None:
    old = asking("z", built=True, created="2026-01-09T00:00:00Z")
    assert names(QuotaSpec(machines=1), asking("a"), old) == (["z"], ["a"])
    again = decide(QuotaSpec(), [asking("z", cpu=9, built=True)], [grant("z")])
    assert again.granted == [grant("z", cpu=9)], "one that has a grant asks like any other"
    assert decide(QuotaSpec(cpu=2), [asking("z", cpu=9, built=True)], [grant("z")]).granted == [grant("z")]


def test_a_machine_that_is_gone_frees_its_place() -> None:
    assert names(QuotaSpec(machines=1), asking("b"), granted=(grant("a"),)) == (["b"], [])
    other = Asking(name="a", uid="another", created="", wants=Grant(name="a", uid="another"))
    (entry,) = decide(QuotaSpec(machines=1), [other], [grant("a")]).granted
    assert entry.uid == "another"


def test_what_is_not_asked_for_any_more_is_free_once_the_machine_is_settled() -> None:
    smaller = {"cpu": 1, "memory": "1Gi", "disks": {"a": "10Gi"}}
    before = grant("a", disks={"a": "10Gi", "b": "5Gi"})
    assert decide(QuotaSpec(), [asking("a", **smaller)], [before]).granted == [grant("a", **smaller)]
    assert decide(QuotaSpec(), [asking("a", settled=False, **smaller)], [before]).granted == [before]
    kept = decide(QuotaSpec(), [asking("a", left_over=frozenset({"b"}))], [before])
    assert kept.granted == [before], "its claim is still there"


def test_a_disk_counts_with_the_most_it_ever_had() -> None:
    result = decide(QuotaSpec(), [asking("a", disks={"a": "8Gi", "c": "1Gi"})], [grant("a")])
    assert result.granted == [grant("a", disks={"a": "10Gi", "c": "1Gi"})]


def test_an_instancetype_counts_only_where_nothing_of_it_is_limited() -> None:
    machine = asking("a", cpu=0, memory="0", by_instancetype=True)
    for limits in (QuotaSpec(cpu=9), QuotaSpec(memory="9Gi")):
        (entry,) = decide(limits, [machine], []).waiting
        assert entry.message.startswith("an instancetype cannot be counted")
        before = decide(limits, [asking("a", cpu=0, memory="0", by_instancetype=True, built=True)], [])
        assert (len(before.granted), before.waiting) == (1, []), "it was there before"
        again = decide(limits, [machine], before.granted)
        assert (len(again.granted), again.waiting) == (1, [])
        changed = decide(limits, [asking("a", cpu=0, memory="0", by_instancetype=True, settled=False)], [grant("a")])
        assert [entry.name for entry in changed.waiting] == ["a"], "it had been counted"
    assert names(QuotaSpec(machines=1, storage="1Ti"), machine) == (["a"], [])


@pytest.mark.parametrize(
    ("wants", "expected"),
    [
        ({}, True),
        ({"cpu": 1}, True),
        ({"cpu": 3}, False),
        ({"memory": "2048Mi"}, True),
        ({"memory": "2049Mi"}, False),
        ({"disks": {}}, True),
        ({"disks": {"a": "10241Mi"}}, False),
        ({"disks": {"a": "10Gi", "b": "1Gi"}}, False),
    ],
)
def test_a_grant_covers_what_is_not_more(wants: dict[str, Any], expected: bool) -> None:
    assert covers(grant("a"), grant("a", **wants)) is expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, Grant(name="a", uid="u")),
        ({"cpu": 2, "memory": "2Gi"}, Grant(name="a", uid="u", cpu=2, memory="2Gi")),
        ({"cpu": "x", "memory": "x"}, Grant(name="a", uid="u")),
        ({"memory": 7, "disks": 7}, Grant(name="a", uid="u")),
        (
            {"disks": [{"name": "a", "size": "1Gi"}, {"name": "b", "existingClaim": "x"}, "c"]},
            Grant(name="a", uid="u", disks={"a": "1Gi"}),
        ),
    ],
)
def test_what_a_spec_asks_for(spec: dict[str, Any], expected: Grant) -> None:
    assert wanted(spec, "a", "u") == expected


def test_use_is_summed_up_and_compared() -> None:
    assert used([]) == QuotaUse(machines=0, cpu=0, memory="0", storage="0")
    both = used([grant("a"), grant("b", cpu=1, memory="512Mi", disks={"a": "1Gi", "b": "2Gi"})])
    assert both == QuotaUse(machines=2, cpu=3, memory="2560Mi", storage="13Gi")
    assert exceeded(QuotaSpec(machines=2, cpu=3, memory="2560Mi", storage="13Gi"), both) == []
    assert exceeded(QuotaSpec(machines=1, cpu=2, memory="2Gi", storage="12Gi"), both) == [
        "machines: 2 of 1 in use",
        "cpu: 3 of 2 in use",
        "memory: 2560Mi of 2Gi in use",
        "storage: 13Gi of 12Gi in use",
    ]


SIZES = st.sampled_from(("0", "1Gi", "2Gi", "3Gi"))
AMOUNTS = st.tuples(st.integers(0, 3), SIZES, st.dictionaries(st.sampled_from("ab"), SIZES))
LIMITS = st.builds(
    QuotaSpec,
    machines=st.none() | st.integers(0, 6),
    cpu=st.none() | st.integers(0, 9),
    memory=st.none() | st.integers(0, 9).map("{}Gi".format),
    storage=st.none() | st.integers(0, 9).map("{}Gi".format),
)


@given(LIMITS, st.lists(st.tuples(AMOUNTS, st.none() | AMOUNTS), max_size=8))
def test_who_waits_would_not_fit_and_what_is_granted_does(limits: QuotaSpec, machines: list[Any]) -> None:
    """The sum that is carried on is that of all grants: nothing fits into it any more, and no limit is passed by it."""
    asked = [asking(str(number), *wants, settled=False) for number, (wants, _) in enumerate(machines)]
    before = [grant(str(number), *had) for number, (_, had) in enumerate(machines) if had is not None]
    decision = decide(limits, asked, before)
    have, wants = {entry.uid: entry for entry in decision.granted}, {machine.uid: machine.wants for machine in asked}
    total = used(decision.granted)
    for waiting in decision.waiting:
        mine = have.get(waiting.uid)
        assert mine is None or not covers(mine, wants[waiting.uid])
        more = decide(QuotaSpec(), [machine for machine in asked if machine.uid == waiting.uid], [mine] if mine else [])
        assert too_much(limits, total, used([mine] if mine else []), used(more.granted))
    if not exceeded(limits, used(before)):
        assert not exceeded(limits, total)


def test_the_message_says_what_all_before_it_have_been_given() -> None:
    first, second = asking("a", disks={"a": "1Gi"}, cpu=3), asking("b", disks={"a": "2Gi"}, cpu=1)
    last = asking("c", cpu=7, memory="9Gi", disks={"a": "9Gi"})
    limits = QuotaSpec(machines=2, cpu=9, memory="9Gi", storage="9Gi")
    (entry,) = decide(limits, [first, second, last], [grant("a", disks={"a": "512Mi"})]).waiting
    assert entry.message == (
        "machines: 2 of 2 in use, 1 more asked for, 1 too much; cpu: 4 of 9 in use, 7 more asked for, 2 too much; "
        "memory: 4Gi of 9Gi in use, 9Gi more asked for, 4Gi too much; "
        "storage: 3Gi of 9Gi in use, 9Gi more asked for, 3Gi too much"
    )
