"""The sizes of replica sets during a rolling update, for any input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import ObjectMeta
from konverge.kube.deployment import rolling
from konverge.kube.deployment.replicasets import bounds, unavailable_allowed
from konverge.kube.pods import replicas_of
from konverge.objects import LabelSelector
from konverge.objects.kinds.apps_v1 import (
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
