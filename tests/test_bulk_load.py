"""A bulk load: no collection of cycles inside, and what it made may be frozen."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from konverge.bulk_load import bulk_load


@pytest.fixture
def collector() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_a_bulk_load_runs_without_collections_and_leaves_the_collector_as_it_was(
    collector: None, frozen: bool, enabled: bool, fails: bool
) -> None:
    if not enabled:
        gc.disable()

    def load() -> None:
        with bulk_load(lambda: frozen):
            assert not gc.isenabled()
            assert gc.get_freeze_count() == 0
            if fails:
                raise LookupError

    if fails:
        with pytest.raises(LookupError):
            load()
    else:
        load()
    assert gc.isenabled() is enabled
    assert (gc.get_freeze_count() > 0) is frozen
