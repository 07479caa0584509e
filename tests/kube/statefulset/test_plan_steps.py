"""What a StatefulSet does next, case by case: pods are written as `o+` (old template, available) and so on."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.kube.statefulset.plan import look_at, max_unavailable, partition, plan, uses_current_revision
from konverge.objects.kinds.apps_v1 import StatefulSetOrdinals, StatefulSetUpdateStrategy
from konverge.objects.kinds.core_v1 import Pod, PodCondition, PodSpec, PodStatus
from konverge.objects.times import now
from tests.kube.objects import rolling_update
from tests.kube.objects import statefulset as web

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-34")]

PHASES = {"+": "Running", "~": "Running", "-": "Running", "p": "Pending", "f": "Failed", "s": "Succeeded"}


def pod(ordinal: int | str, notation: str) -> Pod:
    """Old or new template; + available, ~ ready since now, - not ready, p pending, f failed, s succeeded; ! going."""
    since = now() if "~" in notation else "2025-01-01T00:00:00Z"
    meta = ObjectMeta(name=f"web-{ordinal}", uid=f"u{ordinal}", labels={"controller-revision-hash": notation[0]})
    if "!" in notation:
        meta.deletion_timestamp = "2026-01-01T00:00:00Z"
    conditions = [PodCondition(type="Ready", status="True", last_transition_time=since)]
    status = PodStatus(phase=PHASES[notation[1]], conditions=conditions if notation[1] in "+~" else [])
    return Pod(metadata=meta, spec=PodSpec(containers=[]), status=status)


def pods_of(situation: str, first: int = 0) -> list[Pod]:
    """`n+ . o-`: one word for each ordinal, a dot where there is no pod."""
    return [pod(number, word) for number, word in enumerate(situation.split(), first) if word != "."]


def steps(situation: str, replicas: int, first: int = 0, **spec: Any) -> str:
    """`discard 1 create 2 remove 4 replace 0`, without what is empty."""
    desired = web(replicas, min_ready_seconds=30, **spec)
    if first:
        desired.spec.ordinals = StatefulSetOrdinals(start=first)
    planned = plan(look_at(desired, pods_of(situation)), "n")
    lists = {
        "discard": planned.discard, "create": planned.create, "remove": planned.remove, "replace": planned.replace,
    }  # fmt: skip
    words = []
    for name, items in lists.items():
        numbers = [item if isinstance(item, int) else int(item.metadata.name[4:]) for item in items]
        words += [name, *map(str, numbers)] if numbers else []
    return " ".join(words)


@pytest.mark.parametrize(
    ("situation", "replicas", "ordered", "parallel"),
    [
        ("", 3, "create 0", "create 0 1 2"),
        ("n+", 3, "create 1", "create 1 2"),
        ("n-", 3, "", "create 1 2"),
        ("n~", 3, "", "create 1 2"),
        ("np", 3, "", "create 1 2"),
        ("n+!", 3, "", "create 1 2"),
        ("nf n+ n+", 3, "discard 0", "discard 0"),
        ("ns . n+", 3, "discard 0", "discard 0 create 1"),
        ("nf! n+ n+", 3, "", ""),
        (". n+ n+", 3, "create 0", "create 0"),
        ("n+ n+ n+ n+ n+", 3, "remove 4", "remove 4 3"),
        ("n+ n+ n+ n+ n+!", 3, "", "remove 3"),
        ("n+ n+ n+ n+ n-", 3, "remove 4", "remove 4 3"),  # the first that is not available may go
        ("n+ n+ n+ n- n-", 3, "", "remove 4 3"),
        ("n+ n+ n+ n- n+", 3, "remove 4", "remove 4 3"),
        ("n+ n+ n+ nf", 3, "remove 3", "remove 3"),
        ("n+ n- n+ n+", 3, "", "remove 3"),
        ("n+ n+", 0, "remove 1", "remove 1 0"),
    ],
)
def test_ordinals_are_filled_and_emptied(situation: str, replicas: int, ordered: str, parallel: str) -> None:
    assert steps(situation, replicas) == ordered
    assert steps(situation, replicas, pod_management_policy="Parallel") == parallel


@pytest.mark.parametrize(
    ("situation", "fields", "ordered", "parallel"),
    [
        ("o+ o+ o+", {}, "replace 2", "replace 2"),
        ("o+ o+ n+", {}, "replace 1", "replace 1"),
        ("n+ n+ n+", {}, "", ""),
        ("o+ o+ n-", {}, "", ""),
        ("o+ o+ o+!", {}, "", ""),
        ("o+ o- o+", {}, "", "replace 1"),  # at once, and no other
        ("o+ o- o-", {}, "", "replace 2 1"),
        ("o+ o+ o+", {"max_unavailable": 2}, "replace 2 1", "replace 2 1"),
        ("o+ o+ o+", {"max_unavailable": "50%"}, "replace 2", "replace 2"),
        ("o+ o- o+ o+", {"max_unavailable": 2}, "", "replace 1 3"),
        ("o+ o+ o+", {"partition": 1}, "replace 2", "replace 2"),
        ("o+ o+ n+", {"partition": 2}, "", ""),
        ("o+ o+ n+", {"partition": 1}, "replace 1", "replace 1"),
        ("o+ o- o+", {"partition": 2}, "", ""),
        ("o+ n+ o+", {"partition": 0}, "replace 2", "replace 2"),
    ],
)
def test_old_templates_are_replaced(situation: str, fields: dict[str, Any], ordered: str, parallel: str) -> None:
    size = len(situation.split())
    rolling = rolling_update(**fields)
    assert steps(situation, size, update_strategy=rolling) == ordered
    assert steps(situation, size, pod_management_policy="Parallel", update_strategy=rolling) == parallel
    on_delete = StatefulSetUpdateStrategy(type="OnDelete")
    assert "replace" not in steps(situation, size, update_strategy=on_delete)
    if not fields:
        assert steps(situation, size) == ordered


def test_the_first_ordinal_may_be_another_than_zero() -> None:
    assert steps("n+ n+ n+ n+", 2, first=3) == "create 4"
    assert steps(". . . n+ n+ n+", 2, first=3) == "remove 5"
    assert steps("n+ . . n+ n+", 2, first=3) == "remove 0"
    rolling = rolling_update(partition=1)
    assert steps(". . . o+ o+", 2, first=3, update_strategy=rolling) == "replace 4"


def test_a_pod_whose_name_is_no_ordinal_is_left_alone() -> None:
    view = look_at(web(1), [pod("x", "n+"), pod(0, "n+"), pod(2, "n+"), pod(7, "n+")])
    assert list(view.slots) == [0]
    assert [item.metadata.name for item in view.condemned] == ["web-7", "web-2"]


@pytest.mark.parametrize(
    ("value", "replicas", "expected"), [(None, 9, 1), (3, 9, 3), ("50%", 9, 4), ("10%", 5, 1), (0, 9, 1)]
)
def test_at_least_one_pod_may_be_unavailable(value: Any, replicas: int, expected: int) -> None:
    assert max_unavailable(web(replicas, update_strategy=rolling_update(max_unavailable=value))) == expected
    assert max_unavailable(web(replicas)) == 1
    assert partition(web(replicas, update_strategy=rolling_update(partition=2))) == 2
    assert partition(web(replicas, update_strategy=rolling_update())) == partition(web(replicas)) == 0


@pytest.mark.parametrize(
    ("strategy", "current", "expected"),
    [
        (None, 3, 0),
        (rolling_update(partition=2), 3, 2),
        (rolling_update(), 3, 0),
        (StatefulSetUpdateStrategy(type="RollingUpdate"), 3, 3),
        (StatefulSetUpdateStrategy(type="RollingUpdate"), None, 0),
        (StatefulSetUpdateStrategy(type="OnDelete"), 3, 0),
    ],
)
def test_which_ordinals_are_created_from_the_template_before(strategy: Any, current: Any, expected: int) -> None:
    desired = web(5)
    desired.spec.update_strategy = strategy
    desired.status.current_replicas = current
    assert [uses_current_revision(desired, ordinal) for ordinal in range(5)] == [n < expected for n in range(5)]
    desired.spec.ordinals = StatefulSetOrdinals(start=4)
    assert [uses_current_revision(desired, 4 + n) for n in range(5)] == [n < expected for n in range(5)]
