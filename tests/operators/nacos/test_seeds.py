"""Random scenarios: a hundred in the long suite (`make seeds`), or as many as `KONVERGE_NACOS_SEEDS=1000` says.

A scenario takes one to two seconds of CPU time: a hundred take a minute on two idle cores, a thousand ten or more.
`KONVERGE_NACOS_FIRST_SEED` is the first seed.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import pytest

from tests.operators.nacos.scenario import run_scenario

SEEDS = int(os.environ.get("KONVERGE_NACOS_SEEDS", "100"))
DAY_2 = max(1, SEEDS // 4)
FIRST = int(os.environ.get("KONVERGE_NACOS_FIRST_SEED", "0"))


@pytest.fixture
def no_logs() -> Iterator[None]:
    """Faults are intended here; only the end counts."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module", autouse=True)
def frozen() -> Iterator[None]:
    """The garbage collector skips earlier objects, which saves a quarter of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.long
@pytest.mark.limit(600)
@pytest.mark.spec("N-14", "N-15", "N-18", "N-20")
@pytest.mark.usefixtures("no_logs")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_a_scenario_ends_as_declared_or_with_the_true_reason(seed: int) -> None:
    assert run_scenario(seed)


@pytest.mark.long
@pytest.mark.limit(600)
@pytest.mark.spec("N-44", "N-49", "N-56")
@pytest.mark.usefixtures("no_logs")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + DAY_2))
def test_a_scenario_with_sleep_held_upgrades_and_backups_ends_as_declared(seed: int) -> None:
    assert run_scenario(seed, day_2=True)
