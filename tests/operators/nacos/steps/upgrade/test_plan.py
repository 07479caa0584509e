"""What an edit of the image means, whatever is under way."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.operators.nacos.resource import UpgradeStatus
from konverge.operators.nacos.steps.upgrade.plan import Situation, active, goes_back, next_move, path_problem
from konverge.operators.nacos.versions import UNKNOWN, NacosVersion, read_version

pytestmark = pytest.mark.spec("N-53")
A, B, C, D = "n:v2.3.2", "n:v2.4.3", "n:v2.5.0", "n:v3.0.3"
VERSIONS = {A: "2.3.2", B: "2.4.3", C: "2.5.0", D: "3.0.3", "m:v2.4.3": "2.4.3", "n:v2.2.0": "2.2.0"}


def record(before: str, after: str, step: Any = "Rolling", done: int = 0) -> UpgradeStatus:
    members = [f"nacos-{number}" for number in range(done)]
    return UpgradeStatus(
        from_version=VERSIONS[before], to=VERSIONS[after], image=after, step=step, members_done=members
    )


def move(
    image: str, wanted: str, under_way: UpgradeStatus | None = None, *, running: str = "2.3.2", **options: Any
) -> str:
    situation = Situation(
        record=under_way,
        running=read_version(running),
        image=image,
        wanted=read_version(VERSIONS.get(wanted, "")),
        wanted_image=wanted,
        **{"engine": "mysql", **options},
    )
    return next_move(situation)


@pytest.mark.parametrize("under_way", [None, record(A, A, "Done"), UpgradeStatus()])
def test_nothing_is_under_way(under_way: UpgradeStatus | None) -> None:
    assert move(A, A, under_way) == "none"
    assert move(A, B, under_way) == "begin"
    assert move("m:v2.3.2", A, under_way) == "none", "the same version"
    assert move(B, A, under_way, running="2.4.3") == "begin", "downgrades that were allowed, too"
    assert move(A, "n:latest", under_way) == "none"
    assert move(A, "n:latest", under_way, strict=True) == "begin"
    assert move("n:latest", B, under_way, running="") == "none", "of an unknown version"


@pytest.mark.parametrize("step", ["Preflight", "Migrating"])
def test_before_the_stateful_set_has_the_image(step: str) -> None:
    waiting = record(A, B, step)
    assert move(A, B, waiting) == "resume"
    assert move(A, C, waiting) == "begin"
    assert move(A, A, waiting) == "cancel"
    assert move(A, "n:latest", waiting) == "cancel"
    assert move(B, B, waiting) == "roll", "killed before the status was written"


def test_while_servers_are_replaced() -> None:
    assert move(B, B, record(A, B)) == "roll"
    assert move(B, B, record(A, B, "Verifying", 3)) == "roll"
    assert move(B, A, record(A, B, done=2)) == "redirect"
    assert move(B, "n:v2.2.0", record(A, B, done=2)) == "redirect", "an older schema adds nothing"
    assert move(B, "m:v2.4.3", record(A, B, done=2)) == "redirect"
    assert move(B, "n:latest", record(A, B)) == "cancel"
    assert move(B, "n:latest", record(A, B), strict=True) == "begin"


def test_a_third_version_with_another_schema() -> None:
    assert move(B, C, record(A, B, done=1)) == "later"
    assert move(B, C, record(A, B, done=0)) == "redirect", "no server works with the second one"
    assert move(B, C, record(A, B, done=1), engine="postgresql") == "later"
    assert move(B, C, record(A, B, done=1), engine="embedded") == "redirect", "each server has its own"
    assert move(C, D, record(B, C, done=1)) == "redirect", "the same schema"


def test_what_is_active() -> None:
    assert active(None) is None
    assert active(UpgradeStatus()) is None
    assert active(record(A, B, "Done")) is None
    rolling = record(A, B)
    assert active(rolling) is rolling


def test_what_goes_back() -> None:
    assert goes_back(record(A, B), read_version("2.3.2"))
    assert goes_back(record(A, B), read_version("2.2.0"))
    assert not goes_back(record(A, B), read_version("2.3.3"))


@pytest.mark.spec("N-49")
@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("2.0.0", "2.0.1", ""),
        ("2.0.0", "3.9.9", ""),
        ("2.5.1", "3.0.0", ""),
        ("1.4.8", "2.0.0", "Nacos 1.4.8 has no direct way to 2.0.0: go to 2.0 or 2.1 first, by the guide of Nacos"),
        ("2.5.0", "4.0.0", "Nacos 4.0.0 is not known to this operator: upgrade the operator first"),
        ("3.0.0", "2.5.0", ""),
        ("1.4.1", "1.4.0", ""),
    ],
)
def test_the_known_paths(before: str, after: str, problem: str) -> None:
    assert path_problem(read_version(before), read_version(after)) == problem


@pytest.mark.spec("N-49")
def test_an_unknown_version_has_no_path() -> None:
    assert path_problem(NacosVersion(2, 4, 3), UNKNOWN).endswith("set spec.version")
