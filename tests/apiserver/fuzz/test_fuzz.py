"""No request is answered by a defect (see fuzzer.py). `make seeds` sends for about a minute, the fast suite less."""

from __future__ import annotations

import pytest

from konverge.apiserver.merge import json_patch
from tests.apiserver.fuzz.fuzzer import play
from tests.apiserver.fuzz.samples import CONFORMANCE, SCENARIOS, samples


@pytest.mark.spec("T-12")
def test_no_request_is_answered_by_a_defect() -> None:
    assert play(samples(SCENARIOS), 1, 4000) == []


@pytest.mark.long
@pytest.mark.limit(600)
@pytest.mark.spec("T-12")
@pytest.mark.parametrize("seed", range(100, 104))
def test_nor_many_requests(seed: int) -> None:
    assert play(samples(SCENARIOS, CONFORMANCE), seed, 30_000) == []


def _defective(*arguments: object) -> object:
    raise ZeroDivisionError


def test_a_defect_is_noticed_with_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_patch, "apply", _defective)
    defects = play(samples(SCENARIOS), 1, 1000)
    assert any(line.startswith("seed 1, request ") and "the server failed" in line for line in defects)
    assert any("ZeroDivisionError" in line for line in defects)
