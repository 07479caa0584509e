"""What clients see is what one server without faults could have shown them, whatever happens to disk, power and clock.

`make seeds` plays a thousand seeds, the fast suite a few. One alone: `python -m tests.apiserver.robustness.story SEED`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

from konverge.apiserver.storage import sqlite
from konverge.apiserver.storage.folder import FolderError
from konverge.apiserver.storage.store import Store
from konverge.apiserver.storage.table import Table
from tests.apiserver.robustness.story import Story

SEEDS = int(os.environ.get("KONVERGE_SEEDS", "16"))
AT_ONCE = 4


@pytest.fixture
def unheard() -> Iterator[None]:
    """A server whose disk fails has much to say."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.limit(600)
@pytest.mark.spec("T-01", "T-10")
@pytest.mark.usefixtures("unheard")
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_every_history_is_linearizable(first: int) -> None:
    play(range(first, min(first + AT_ONCE, SEEDS)))


def play(seeds: range) -> None:
    for seed in seeds:
        story = Story(seed)
        try:
            story.run()
        except BaseException as error:
            error.add_note(f"seed {seed}: {'; '.join(story.faults)}")
            raise
        assert story.operations > 0


async def _at_once(self: Store, revision: int) -> None:
    pass


def _not_at_all(self: Table, event: object, revision: int) -> None:
    pass


_put = Store.put


def _over_others(self: Store, table: Table, obj: Any, *, expected: int | None, **more: Any) -> Any:
    """Updates by a large body are computed aside, and others write in between."""
    return _put(self, table, obj, expected=None if expected else expected, **more)


@pytest.mark.usefixtures("unheard")
@pytest.mark.parametrize(
    ("target", "name", "instead"),
    [
        (Store, "settled", _at_once),
        (Table, "revert", _not_at_all),
        (Store, "durable_record", Store.get),
        (Store, "put", _over_others),
    ],
    ids=["answers before the disk", "keeps what is not stored", "shows what is not stored", "overwrites others"],
)
def test_a_server_that_breaks_a_promise_is_noticed(
    monkeypatch: pytest.MonkeyPatch, target: type, name: str, instead: object
) -> None:
    monkeypatch.setattr(target, name, instead)
    with pytest.raises(AssertionError):
        play(range(20))


@pytest.mark.usefixtures("unheard")
def test_a_disk_that_is_not_waited_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated power loss is one: without syncs acknowledged writes are gone, or the state is damaged."""
    opened = sqlite._opened

    def hasty(*arguments: object) -> object:
        connection = opened(*arguments)  # type: ignore[arg-type]
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(sqlite, "_opened", hasty)
    with pytest.raises((AssertionError, FolderError)):
        play(range(20))
