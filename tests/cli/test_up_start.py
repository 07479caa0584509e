"""How `konverge up` begins."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator

import pytest

from konverge.cli import up


@pytest.fixture
def collector() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


def test_nothing_is_collected_until_it_is_ready(collector: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def start(arguments: argparse.Namespace, ready: Callable[[], None]) -> int:
        seen.append(gc.isenabled())
        ready()
        seen.append(gc.isenabled())
        return 3

    monkeypatch.setattr(up, "_run", start)
    assert up.run(argparse.Namespace()) == 3
    assert seen == [False, True]
