"""The sizes of replica sets during a rolling update, for any input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import ObjectMeta
from konverge.kube.deployment import rolling
from konverge.kube.deployment.replicasets import DESIRED, MAXIMUM, bounds, unavailable_allowed
from konverge.kube.pods import replicas_of
from konverge.objects import LabelSelector
from konverge.objects.kinds.apps_v1 import (
    Deployment,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from tests.kube.objects import deployment as web_deployment

pytestmark = pytest.mark.spec("R-32")


def sized(name: str, replicas: int, available: int) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name),
        spec=ReplicaSetSpec(replicas=replicas, selector=LabelSelector()),
        status=ReplicaSetStatus(replicas=replicas, available_replicas=min(available, replicas)),
    )


numbers = st.integers(0, 12)


amounts = st.one_of(st.integers(0, 5), st.sampled_from(["0%", "10%", "25%", "50%", "100%"]))


@given(st.integers(0, 12), amounts, amounts, numbers, numbers, st.lists(st.tuples(numbers, numbers), max_size=3))
def test_no_scaling_step_breaks_surge_or_availability(
    wanted: int, surge: Any, unavailable: Any, size: int, healthy: int, others: list[tuple[int, int]]
) -> None:
    strategy = DeploymentStrategy(
        type="RollingUpdate", rolling_update=RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    )
    deployment = web_deployment(wanted, strategy=strategy)
    new = sized("new", size, healthy)
    old = [sized(f"old-{number}", *numbers) for number, numbers in enumerate(others)]
    total = size + sum(replicas_of(rs) for rs in old)
    up = rolling.scale_up(deployment, new, old)
    if up.get("new", size) > size:
        assert total - size + up["new"] <= wanted + bounds(deployment)[0]
    down = rolling.scale_down(deployment, new, old)
    assert all(0 <= replicas <= replicas_of(rs) for rs in old if (replicas := down.get(rs.metadata.name)) is not None)
    # At worst, what goes was available: what is left must still be enough, if it was before.
    lost = sum(
        max(0, min(replicas_of(rs) - down.get(rs.metadata.name, replicas_of(rs)), rs.status.available_replicas or 0)
            - (replicas_of(rs) - (rs.status.available_replicas or 0)))
        for rs in old
    )  # fmt: skip
    available = sum(rs.status.available_replicas or 0 for rs in [new, *old])
    least = wanted - unavailable_allowed(deployment)
    if available >= least:
        assert available - lost >= least


def rolling_web(wanted: int, surge: Any, unavailable: Any) -> Deployment:
    fields = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    return web_deployment(wanted, strategy=DeploymentStrategy(type="RollingUpdate", rolling_update=fields))


@pytest.mark.parametrize(
    ("wanted", "surge", "new", "old", "expected"),
    [
        (10, 0, 0, 10, None),
        (10, 2, 0, 10, 2),
        (10, 2, 0, 5, 7),
        (10, 2, 0, 12, None),
        (10, 2, 0, 20, None),
        (10, 2, 2, 9, 3),
        (10, 2, 0, 0, 10),  # never more than are wanted
        (10, 5, 8, 0, 10),
        (10, 2, 10, 2, None),
        (10, 2, 11, 2, 10),
        (0, 2, 3, 0, 0),
    ],
)
def test_the_new_set_grows_as_far_as_the_surge_allows(
    wanted: int, surge: int, new: int, old: int, expected: int | None
) -> None:
    deployment = rolling_web(wanted, surge, 0)
    sizes = rolling.scale_up(deployment, sized("new", new, new), [sized("a", old, old), sized("b", 0, 0)])
    assert sizes == ({} if expected is None else {"new": expected})
    if not new:
        assert rolling.first_size(deployment, [sized("a", old, old)]) == (expected or 0)


def test_a_recreated_set_gets_all_its_pods_at_once() -> None:
    recreated = web_deployment(10, strategy=DeploymentStrategy(type="Recreate"))
    assert rolling.first_size(recreated, [sized("a", 10, 10)]) == 10
    assert rolling.grown(recreated, 3, 10) == 10


@pytest.mark.parametrize(
    ("wanted", "unavailable", "new", "old", "expected"),
    [
        (10, 0, (0, 0), [(10, 10)], {}),
        (10, 2, (0, 0), [(10, 10)], {"old-0": 8}),
        (10, 2, (2, 0), [(8, 8)], {}),
        (10, 2, (2, 2), [(8, 8)], {"old-0": 6}),
        (10, 2, (2, 2), [(9, 9)], {"old-0": 6}),
        (10, 2, (10, 10), [(2, 2)], {"old-0": 0}),
        (10, 2, (0, 0), [(10, 8)], {"old-0": 8}),  # those that are not available go first
        (10, 2, (0, 0), [(10, 5)], {"old-0": 8}),
        (10, 2, (0, 0), [(8, 8), (2, 0)], {"old-1": 0}),
        (10, 2, (0, 0), [(3, 0), (7, 7)], {"old-0": 1}),
        (10, 2, (0, 0), [(3, 3), (7, 7)], {"old-0": 1}),
        (10, 5, (0, 0), [(3, 3), (7, 7)], {"old-0": 0, "old-1": 5}),
        (10, 4, (0, 0), [(1, 0), (1, 0), (8, 8)], {"old-0": 0, "old-1": 0, "old-2": 6}),
        (10, 2, (3, 1), [(10, 10)], {"old-0": 7}),
        (10, 2, (4, 0), [(10, 10)], {"old-0": 8}),
        (10, 2, (10, 10), [(0, 0)], {}),
        (10, 2, (12, 12), [], {}),
        (1, 1, (1, 0), [(1, 1)], {"old-0": 0}),
    ],
)
def test_old_sets_shrink_as_far_as_availability_allows(
    wanted: int, unavailable: int, new: tuple[int, int], old: list[tuple[int, int]], expected: dict[str, int]
) -> None:
    others = [sized(f"old-{number}", *numbers) for number, numbers in enumerate(old)]
    assert rolling.scale_down(rolling_web(wanted, 5, unavailable), sized("new", *new), others) == expected


def test_pods_that_a_set_is_about_to_lose_do_not_count_as_available() -> None:
    new, old = sized("new", 2, 2), sized("old", 4, 4)
    new.status.available_replicas = 6  # it was just scaled down
    assert rolling.scale_down(rolling_web(6, 1, 1), new, [old]) == {"old": 3}


def noted(name: str, size: int, before: int, *, age: int = 0, desired: int | None = None) -> ReplicaSet:
    """A set that was sized for a Deployment with so many pods at most."""
    made = sized(name, size, size)
    made.metadata.creation_timestamp = f"2026-01-01T00:0{age}:00Z"
    annotations = {MAXIMUM: str(before), DESIRED: str(before if desired is None else desired)}
    made.metadata.annotations = annotations
    return made


@pytest.mark.parametrize(
    ("before", "wanted", "surge", "new", "old", "expected"),
    [
        (10, 12, 0, 10, [], "12"),
        (10, 5, 0, 10, [], "5"),
        (5, 10, 0, 2, [3], "4 6"),
        (5, 3, 0, 2, [3], "1 2"),
        (9, 4, 0, 8, [1], "4 0"),
        (7, 10, 0, 2, [3, 2], "3 4 3"),
        (13, 8, 0, 2, [8, 3], "1 5 2"),
        (3, 4, 0, 1, [1, 1], "2 1 1"),  # what is left over goes to the newest
        (3, 2, 0, 1, [1, 1], "1 1 0"),  # or from the oldest
        (6, 0, 0, 3, [2, 1], "0 0 0"),
        (6, 0, 4, 3, [2, 1], "0 0 0"),
        (0, 6, 0, 0, [0, 0], "6 - -"),
        (12, 20, 2, 6, [6], "11 11"),
        (13, 50, 6, 5, [8], "22 34"),
        (4, 5, 0, None, [2, 2], "3 2"),
        (10, 14, 0, None, [7, 3], "10 4"),
        (3, 5, 0, None, [0, 0], "5 -"),  # without any pod the newest set
        (10, 10, 0, 5, [5], "5 5"),
        (0, 10, 0, 4, [4], "5 5"),  # nothing noted: what the Deployment has now counts
        (5, 4, 0, None, [], ""),
    ],
)
def test_a_rollout_is_scaled_in_proportion(
    before: int, wanted: int, surge: int, new: int | None, old: list[int], expected: str
) -> None:
    deployment = rolling_web(wanted, surge, 0)
    deployment.status.replicas = sum(old) + (new or 0)
    newest = None if new is None else noted("new", new, before, age=9)
    others = [noted(f"old-{number}", size, before, age=8 - number) for number, size in enumerate(old)]
    sizes = rolling.rescale(deployment, newest, others[::-1])
    names = [*(["new"] if new is not None else []), *(rs.metadata.name for rs in others)]
    assert " ".join(str(sizes.get(name, "-")) for name in names) == expected


def test_once_all_new_pods_are_available_scaling_ends_the_old_sets() -> None:
    deployment = rolling_web(4, 1, 1)
    old = [noted("old-0", 1, 5), noted("old-1", 0, 5)]
    new = noted("new", 4, 5, desired=4)
    assert rolling.rescale(deployment, new, old) == {"old-0": 0}
    broken = noted("new", 4, 5, desired=4)
    broken.status.available_replicas = 3
    assert rolling.rescale(deployment, broken, old)["old-0"] == 1
    stale = noted("new", 4, 5, desired=3)
    assert rolling.rescale(deployment, stale, old)["old-0"] == 1
    smaller = noted("new", 3, 5, desired=4)
    smaller.status.available_replicas = 4
    assert rolling.rescale(deployment, smaller, old)["old-0"] == 1
    recreated = web_deployment(9, strategy=DeploymentStrategy(type="Recreate"))
    assert rolling.rescale(recreated, new, old) == {}


def test_a_deployment_was_scaled_if_a_set_was_sized_for_another_number() -> None:
    deployment = rolling_web(4, 1, 1)
    assert not rolling.was_scaled(deployment, [])
    assert not rolling.was_scaled(deployment, [noted("a", 4, 5, desired=4)])
    assert rolling.was_scaled(deployment, [noted("a", 4, 5, desired=4), noted("b", 1, 5, desired=3)])
    assert not rolling.was_scaled(deployment, [noted("a", 0, 5, desired=3)])
    assert not rolling.was_scaled(deployment, [sized("a", 3, 3)])  # not noted


@pytest.mark.parametrize(
    ("wanted", "surge", "unavailable", "expected", "allowed"),
    [
        (10, 3, 2, (3, 2), 2),
        (10, "25%", "25%", (3, 2), 2),
        (10, "0%", "0%", (0, 1), 1),
        (10, 0, 0, (0, 1), 1),
        (10, None, None, (0, 1), 1),
        (10, 1, 0, (1, 0), 0),
        (2, 0, 5, (0, 5), 2),
        (0, 1, 5, (1, 5), 0),
    ],
)
def test_the_bounds_of_a_rolling_update(
    wanted: int, surge: Any, unavailable: Any, expected: tuple[int, int], allowed: int
) -> None:
    deployment = rolling_web(wanted, surge, unavailable)
    assert bounds(deployment) == expected
    assert unavailable_allowed(deployment) == allowed
    deployment.spec.strategy = DeploymentStrategy(type="Recreate", rolling_update=RollingUpdateDeployment(max_surge=1))
    assert bounds(deployment) == (0, 0)
    assert unavailable_allowed(deployment) == 0
    deployment.spec.strategy = None
    assert bounds(deployment) == (0, 0)
