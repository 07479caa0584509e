"""Whether processors have room for more, from what the kernel counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge import clock
from konverge.check.spare_time import SpareTime, used_and_spare

pytestmark = pytest.mark.spec("K-86")


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    return moment


def test_idle_processors_and_programs_that_step_back_are_spare(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 20 3 400 5000 6 7 80000 900000 9000000\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert used_and_spare(stat) == (1 + 3 + 6 + 7 + 80000, 20 + 400 + 5000)


@pytest.mark.parametrize("text", ["", "cpu 1 2 3 4 5 6 7\n", "cpu a b c d e f g h\n"])
def test_where_the_kernel_says_nothing_of_it_nothing_is_known(tmp_path: Path, text: str) -> None:
    (tmp_path / "stat").write_text(text)
    assert used_and_spare(tmp_path / "stat") is None
    assert used_and_spare(tmp_path / "none") is None


def test_it_speaks_of_the_time_since_the_last_answer(now: list[float]) -> None:
    counted = [(1000.0, 5000.0)]
    spare = SpareTime(lambda: counted[0])
    now[0] += SpareTime.EVERY - 0.1
    counted[0] = (1030.0, 5010.0)
    assert spare.share() is None
    now[0] += 0.1
    assert spare.share() == 0.25
    assert spare.share() is None
    now[0] += SpareTime.EVERY
    assert spare.share() is None, "nothing was counted"
    now[0] += SpareTime.EVERY
    counted[0] = (1030.0, 5020.0)
    assert spare.share() == 1.0


def test_a_restart_forgets_what_was_before(now: list[float]) -> None:
    counted = [(0.0, 0.0)]
    spare = SpareTime(lambda: counted[0])
    now[0] += SpareTime.EVERY
    counted[0] = (0.0, 100.0)
    spare.restart()
    assert spare.share() is None
    now[0] += SpareTime.EVERY
    counted[0] = (100.0, 100.0)
    assert spare.share() == 0.0


def test_what_is_known_at_one_end_alone_says_nothing(now: list[float]) -> None:
    counted: list[tuple[float, float] | None] = [None]
    spare = SpareTime(lambda: counted[0])
    for known in ((1.0, 1.0), None):
        counted[0] = known
        now[0] += SpareTime.EVERY
        assert spare.share() is None
