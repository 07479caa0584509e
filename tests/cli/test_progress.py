"""How far something is: quiet for two seconds, then a line that is drawn over itself, or one now and then."""

from __future__ import annotations

import io

import pytest

from konverge import clock
from konverge.cli import progress as module
from konverge.cli.check_listener import Shown
from konverge.cli.main import main
from konverge.cli.progress import Progress
from konverge.sim import scenario
from konverge.sim.faults import Plan
from konverge.sim.scenario import Outcome


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [0.0]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    return moment


@pytest.mark.spec("O-26")
def test_on_a_terminal_one_line_is_drawn_over_itself_and_disappears(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    with Progress(stream) as progress:
        for done in range(4):
            progress.show("x" * 100, done=done, total=4, unit="seeds")
            now[0] += 1.0
    frames = stream.getvalue().split("\r\x1b[K")
    assert [frame[:12] for frame in frames] == ["", "0 of 4 seeds", "1 of 4 seeds", "2 of 4 seeds", "3 of 4 seeds", ""]
    assert max(map(len, frames)) < 40
    assert "\n" not in stream.getvalue()


@pytest.mark.spec("O-26")
def test_elsewhere_there_is_a_line_now_and_then_and_none_for_what_is_quick(now: list[float]) -> None:
    stream = io.StringIO()
    with Progress(stream) as progress:
        for done in range(30):
            progress.show("now it", done=done, total=30)
            now[0] += 1.0
    assert stream.getvalue().splitlines() == [
        "2 of 30, now it, about 28 s left",
        "12 of 30, now it, about 18 s left",
        "22 of 30, now it, about 8 s left",
    ]


@pytest.mark.spec("O-26")
def test_sim_says_how_far_it_is_and_prints_its_result_alone(
    now: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_seed(seed: int, plan: Plan | None = None) -> Outcome:
        now[0] += module.LINE_EVERY
        return Outcome(seed, plan or Plan(()))

    monkeypatch.setattr(scenario, "run_seed", run_seed)
    assert main(["sim", "--count", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "3 of 3 seeds came through\n"
    assert printed.err.splitlines() == ["1 of 3 seeds, now 1, about 20 s left", "2 of 3 seeds, now 2, about 10 s left"]


@pytest.mark.spec("K-86")
def test_no_more_time_is_promised_than_there_is() -> None:
    assert module.remaining(30.0, 10, 30, 45.0) == ", about 45 s left"
    assert module.remaining(30.0, 10, 30, 60.1) == ", about 1 min left"
    assert module.remaining(30.0, 10, 30, -5.0) == ", about 0 s left"


@pytest.mark.spec("K-86")
def test_plans_that_are_added_do_not_change_the_pace_of_a_check(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    shown = Shown()
    for done, total in ((1, 41), (10, 41), (20, 42), (1, 4), (3, 4)):
        now[0] += 10.0
        shown.progress("crash", done, total, most=1000.0)
    assert stream.getvalue().splitlines() == [
        "1 of 41 runs, crash, about 7 min left",
        "10 of 41 runs, crash, about 1 min left",
        "20 of 42 runs, crash, about 33 s left",
        "3 of 4 runs, crash, about 3 s left",
    ]
