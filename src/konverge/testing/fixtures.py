"""The fixtures with plain names. The plugin registers each of them, unless another plugin has one of the same name.

A suite can build on one in its conftest: `def cluster(cluster): …` gets ours and returns what its tests get.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from konverge.client import Client
    from konverge.sim import Cluster
    from konverge.testing.checks import KonvergeCheck
    from konverge.testing.loops import TestLoop
    from konverge.testing.operators import RunOperator
    from konverge.testing.real import RealCluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest, konverge_loop: TestLoop) -> Iterator[Cluster]:
    """A whole Kubernetes in this process, on virtual time (see `konverge.sim.Cluster`)."""
    from konverge.bulk_load import bulk_load
    from konverge.testing.fixture_functions import cluster_of

    with bulk_load(lambda: False):  # nothing of a cluster is garbage while it starts: a seventh of the time
        held = konverge_loop.enter(cluster_of(request))
    yield held.value
    held.leave()


@pytest.fixture
def real_cluster(request: pytest.FixtureRequest, konverge_loop: TestLoop, tmp_path: Path) -> Iterator[RealCluster]:
    """A whole Kubernetes on a socket and on the machine's clock: `url`, `kubeconfig`, `environment`, `client`."""
    from konverge.testing.fixture_functions import real_cluster_of

    with real_cluster_of(request, tmp_path) as cluster:
        yield cluster


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Client:
    """A client of this test's cluster, with all rights, on which no fault happens."""
    name = "real_cluster" if "real_cluster" in request.fixturenames else "cluster"
    chosen: Client = request.getfixturevalue(name).client
    return chosen


@pytest.fixture
def operator(request: pytest.FixtureRequest, konverge_loop: TestLoop) -> RunOperator:
    """`async with operator(manager):` runs an operator on this test's cluster."""
    from konverge.testing.fixture_functions import operator_of

    return operator_of(request)


@pytest.fixture
def object_snapshot(request: pytest.FixtureRequest) -> SnapshotAssertion:
    """Snapshots of objects (syrupy), without what differs from run to run: `assert objects == object_snapshot`."""
    from konverge.testing.snapshots import ObjectSnapshots

    snapshot: SnapshotAssertion = request.getfixturevalue("snapshot")
    return snapshot.use_extension(ObjectSnapshots)


@pytest.fixture
def konverge_check(request: pytest.FixtureRequest, tmp_path: Path) -> KonvergeCheck:
    """`konverge_check(manager, sample="cr.yaml").assert_no_findings()`: what can go wrong goes wrong, and is judged."""
    from konverge.testing.checks import KonvergeCheck

    return KonvergeCheck(tmp_path, request.node.nodeid)
