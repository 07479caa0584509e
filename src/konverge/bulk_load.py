"""The cyclic garbage collector while much is made that stays.

Bulk loads create millions of short-lived objects and no reference cycles. So the collector is off while caches fill and
while a cluster starts, and what they hold is frozen afterwards: a later full collection does not visit it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bulk_load(freeze: Callable[[], bool]) -> Iterator[None]:
    """No cyclic garbage collection inside; what was created inside is frozen at the end, if `freeze` says so.

    There is no collection before the freeze: it would visit everything that was just created, in vain. What is frozen
    is never collected, so a process that runs many managers one after the other, as tests do, must not do this each
    time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if freeze():
            gc.freeze()
        if enabled:
            gc.enable()
