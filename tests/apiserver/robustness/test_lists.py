"""Lists under write load are states of the history; the judgement sees those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from tests.apiserver.api import Api
from tests.apiserver.robustness.lists import Attack, History, Listed, our_server

HISTORY = History({"a": 3}, 5, [(6, "b", True), (7, "a", True), (8, "b", False), (10, "c", True)])


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ([(5, {"a": 3})], ""),
        ([(6, {"a": 3, "b": 6})], ""),
        ([(9, {"a": 7})], ""),
        ([(9, {"a": 7}), (9, {})], ""),
        ([(10, {"a": 7}), (10, {"c": 10})], ""),
        ([(9, {"a": 7, "c": 10})], "newer"),
        ([(6, {"a": 7, "b": 6})], "newer"),
        ([(8, {"a": 7, "b": 6})], "different"),
        ([(7, {"a": 3, "b": 6})], "different"),
        ([(10, {"a": 7})], "different"),
        ([(10, {"a": 7, "c": 10}), (10, {"c": 10})], "different"),
        ([(7, {"a": 7}), (8, {})], "torn"),
    ],
)
def test_the_judgement(pages: list[tuple[int, dict[str, int]]], problem: str) -> None:
    assert Listed(pages).problem(HISTORY) == problem


def test_the_judgement_of_writes_and_events(api: Api) -> None:
    attack = Attack(api, 0, 0, acknowledged=[("b", 6), ("x", 9)])
    history = History({}, 5, [(6, "b", True), (6, "b", False)])
    assert attack.problems(history) == {"write unseen": 1, "event out of order": 1}


@pytest.mark.spec("T-01", "S-14")
async def test_lists_under_load_in_this_process(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path / "data") as server:
        attack = Attack(Api(server), lists=60, paged=40)
        history = await attack.run()
    assert attack.problems(history) == {}
    assert (len(attack.listed), len(attack.paged_lists) + attack.expired) == (60, 40)
    assert any(len(listed.pages) > 1 for listed in attack.paged_lists)
    assert attack.acknowledged


@pytest.mark.long
@pytest.mark.spec("T-01", "S-14")
async def test_a_thousand_lists_and_a_thousand_paged_ones_of_a_server_process() -> None:
    async with our_server() as api:
        attack = Attack(api, lists=1_000, paged=1_000)
        history = await attack.run()
    assert attack.problems(history) == {}
    assert len(attack.listed) + len(attack.paged_lists) == 2_000
