"""Many stories: a hundred in the long suite (`make seeds`), and `KONVERGE_NACOS_SEEDS=1000` as many as one likes.

A story takes one to two seconds of CPU time: a hundred take about a minute on two idle cores, a thousand ten or more.
`KONVERGE_NACOS_FIRST_SEED` says where to begin.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import pytest

from tests.operators.nacos.story import tell

SEEDS = int(os.environ.get("KONVERGE_NACOS_SEEDS", "100"))
FIRST = int(os.environ.get("KONVERGE_NACOS_FIRST_SEED", "0"))


@pytest.fixture
def unheard() -> Iterator[None]:
    """Much goes wrong on purpose; what counts is how it ends."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module", autouse=True)
def frozen() -> Iterator[None]:
    """What was there before is not looked through again for every story: that is a quarter of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.long
@pytest.mark.limit(600)
@pytest.mark.spec("N-14", "N-15", "N-18", "N-20")
@pytest.mark.usefixtures("unheard")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_a_story_ends_as_declared_or_with_the_true_reason(seed: int) -> None:
    assert tell(seed)
