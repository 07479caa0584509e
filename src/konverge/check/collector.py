"""The cyclic garbage collector during a check.

Modules and what they keep are there until the process ends, and a full collection visits all of them: a fifth of the
CPU of a run of Nacos. They are complete after a first run, since much is imported when it is needed.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def freeze_what_stays() -> None:
    """After a first run: what there is now is not visited any more."""
    gc.collect()  # else the first run's cluster would stay, too
    gc.freeze()


@contextmanager
def what_stays_is_frozen() -> Iterator[None]:
    """The same, inside the block: for a process that goes on after a check, as one of pytest does."""
    is_frozen = gc.get_freeze_count() > 0  # by somebody else, who wants it to stay so
    freeze_what_stays()
    try:
        yield
    finally:
        if not is_frozen:
            gc.unfreeze()
