"""Tests of operators: what `pytest` gets from `pip install konverge[test]`, and helpers for any test.

    async def test_the_app_runs(client, operator):
        async with operator(manager):
            await client.create(shop)
            await eventually(lambda: is_running(client, "shop"))

The fixtures (`cluster`, `real_cluster`, `client`, `operator`) are in `konverge.testing.plugin`, which pytest loads by
itself. docs/testing.md is the guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.lazy_imports import lazy_names

if TYPE_CHECKING:
    from konverge.testing.checks import CheckResult as CheckResult
    from konverge.testing.checks import KonvergeCheck as KonvergeCheck
    from konverge.testing.loops import TestLoop as TestLoop
    from konverge.testing.operators import RunOperator as RunOperator
    from konverge.testing.real import RealCluster as RealCluster
    from konverge.testing.round_trips import RoundTripLoss as RoundTripLoss
    from konverge.testing.round_trips import assert_round_trips as assert_round_trips
    from konverge.testing.snapshots import ObjectSnapshots as ObjectSnapshots
    from konverge.testing.snapshots import masked as masked
    from konverge.testing.waiting import eventually as eventually
    from konverge.testing.waiting import settled as settled
    from konverge.testing.writes import Write as Write
    from konverge.testing.writes import assert_no_writes as assert_no_writes

# Lazy: pytest loads the plugin in every suite, also where no test has to do with Kubernetes.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "konverge.testing.checks": "CheckResult KonvergeCheck",
        "konverge.testing.loops": "TestLoop",
        "konverge.testing.operators": "RunOperator",
        "konverge.testing.real": "RealCluster",
        "konverge.testing.round_trips": "RoundTripLoss assert_round_trips",
        "konverge.testing.snapshots": "ObjectSnapshots masked",
        "konverge.testing.waiting": "eventually settled",
        "konverge.testing.writes": "Write assert_no_writes",
    },
)
