"""A state that is not what was acknowledged is refused: no damage goes unnoticed (see corruptions.py)."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.apiserver.storage.corruptions import DAMAGES, States, outcome


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> States:
    return States(tmp_path_factory.mktemp("states"))


def outcomes(states: States, seeds: range, folder: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    unnoticed = {}
    for seed in seeds:
        damage, result = outcome(states, seed, folder / "damaged")
        shutil.rmtree(folder / "damaged")
        counted[result] += 1
        if result not in ("refused", "harmless"):
            unnoticed[seed] = f"{damage}: {result}"
    assert not unnoticed
    return counted


@pytest.mark.spec("T-06")
def test_each_kind_of_damage_is_refused_or_harmless(states: States, tmp_path: Path) -> None:
    counted = outcomes(states, range(2 * len(DAMAGES)), tmp_path)
    assert counted["refused"] > len(DAMAGES) // 2


@pytest.mark.long
@pytest.mark.spec("T-06")
def test_of_many_damages_none_goes_unnoticed(states: States, tmp_path: Path) -> None:
    counted = outcomes(states, range(1000, 1400), tmp_path)
    assert counted["refused"] > 120
    assert counted["harmless"] > 0  # free space, an older witness
