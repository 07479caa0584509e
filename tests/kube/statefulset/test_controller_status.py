"""The status of a StatefulSet."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube.statefulset.controller import available_after, status_of
from konverge.objects.kinds.apps_v1 import StatefulSet
from tests.kube.objects import statefulset as web
from tests.kube.statefulset.test_plan_steps import pods_of

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-34")]


def counted(situation: str, replicas: int = 3, *, deleted: str = "", current: str = "o") -> StatefulSet:
    desired = web(replicas, min_ready_seconds=30)
    desired.metadata.generation = 4
    gone = {f"u{number}" for number in deleted}
    desired.status = status_of(desired, pods_of(situation), gone, current, "n", 2)
    return desired


@pytest.mark.parametrize(
    ("situation", "deleted", "replicas", "ready", "available", "current", "updated"),
    [
        ("n+ n~ o-", "", 3, 2, 1, 1, 2),
        ("n+ n~ o-", "2", 3, 2, 1, None, 2),
        ("n+! o+ o+", "", 3, 3, 3, 2, None),
        ("np nf o+", "", 3, 1, 1, 1, 2),
        ("", "", 0, None, 0, None, None),
    ],
)
def test_the_status_counts_pods(
    situation: str, deleted: str, replicas: int, ready: Any, available: int, current: Any, updated: Any
) -> None:
    status = counted(situation, deleted=deleted).status
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (replicas, ready, available)
    assert (status.current_replicas, status.updated_replicas) == (current, updated)
    assert (status.observed_generation, status.collision_count) == (4, 2)
    assert (status.current_revision, status.update_revision) == ("o", "n")


@pytest.mark.parametrize(
    ("situation", "replicas", "complete"),
    [
        ("n+ n+ n+", 3, True),
        ("n+ n~ n+", 3, True),
        ("n+ n+ n-", 3, False),
        ("n+ n+ o+", 3, False),
        ("n+ n+", 3, False),
        ("n+ n+ n+ n+", 3, False),
        ("", 0, True),
    ],
)
def test_the_new_template_becomes_the_current_one_when_all_pods_have_it(
    situation: str, replicas: int, complete: bool
) -> None:
    status = counted(situation, replicas).status
    assert status.current_revision == ("n" if complete else "o")
    if complete:
        assert status.current_replicas == status.updated_replicas
    assert status.update_revision == "n"


async def test_the_next_look_is_when_a_pod_becomes_available_by_age() -> None:
    desired = web(3, min_ready_seconds=30)
    assert available_after(desired, pods_of("n+ n- n~")) == 30
    assert available_after(desired, pods_of("n+ n-")) == 0
    assert available_after(desired, []) == 0
    assert available_after(web(3), pods_of("n~")) == 0
