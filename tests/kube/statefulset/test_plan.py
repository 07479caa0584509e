"""What a StatefulSet does next, for any state of its pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import ObjectMeta
from konverge.kube.statefulset.identity import ordinal_of
from konverge.kube.statefulset.plan import look_at, max_unavailable, plan
from konverge.objects.kinds.core_v1 import (
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)
from tests.kube.objects import rolling_update
from tests.kube.objects import statefulset as web_statefulset

pytestmark = pytest.mark.spec("R-34")


states = st.sampled_from(["missing", "pending", "ready", "going", "failed"])


def made(ordinal: int, state: str, revision: str) -> Pod:
    condition = PodCondition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z")
    ready = state in ("ready", "going")
    return Pod(
        metadata=ObjectMeta(
            name=f"web-{ordinal}",
            labels={"controller-revision-hash": revision},
            deletion_timestamp="2026-01-01T00:00:00Z" if state == "going" else None,
        ),
        spec=PodSpec(containers=[]),
        status=PodStatus(
            phase={"pending": "Pending", "failed": "Failed"}.get(state, "Running"),
            conditions=[condition] if ready else [],
        ),
    )


@given(
    st.lists(st.tuples(states, st.sampled_from(["old", "new"])), max_size=7),
    st.integers(0, 5),
    st.integers(0, 3),
    st.sampled_from([1, 2, "50%"]),
    st.booleans(),
)
def test_a_plan_keeps_order_partition_and_availability(
    situation: list[tuple[str, str]], replicas: int, lowest: int, unavailable: Any, ordered: bool
) -> None:
    desired = web_statefulset(
        replicas,
        pod_management_policy="OrderedReady" if ordered else "Parallel",
        update_strategy=rolling_update(partition=lowest, max_unavailable=unavailable),
    )
    pods = [made(n, state, rev) for n, (state, rev) in enumerate(situation) if state != "missing"]
    view = look_at(desired, pods)
    steps = plan(view, "new")
    touched = [*steps.discard, *steps.remove, *steps.replace]
    assert all(pod.metadata.deletion_timestamp is None for pod in touched)
    assert len({pod.metadata.name for pod in touched}) == len(touched)
    assert all(view.slots[ordinal] is None for ordinal in steps.create)
    assert all(ordinal_of(pod) >= lowest for pod in steps.replace)
    assert all(ordinal_of(pod) >= replicas for pod in steps.remove)
    serving = [pod for pod in steps.replace if view.available(pod)]
    unavailable_now = sum(not view.available(pod) for pod in view.slots.values())
    assert len(serving) <= max(0, max_unavailable(desired) - unavailable_now)
    if ordered:
        assert len(steps.create) + len(steps.discard) + len(steps.remove) <= 1
        for ordinal in steps.create:
            assert all(view.available(view.slots[lower]) for lower in range(ordinal))


def test_in_a_parallel_set_unavailable_pods_come_first_and_others_as_the_budget_allows() -> None:
    desired = web_statefulset(4, pod_management_policy="Parallel", update_strategy=rolling_update(max_unavailable=2))
    pods = [made(0, "ready", "old"), made(1, "ready", "old"), made(2, "pending", "old"), made(3, "ready", "new")]
    assert [pod.metadata.name for pod in plan(look_at(desired, pods), "new").replace] == ["web-2", "web-1"]


def test_a_pod_that_does_not_run_holds_up_the_next_whatever_its_conditions_say() -> None:
    desired, first = web_statefulset(2), made(0, "ready", "new")
    assert plan(look_at(desired, [first]), "new").create == [1]
    first.status.phase = "Pending"
    assert plan(look_at(desired, [first]), "new").create == []
