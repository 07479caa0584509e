"""A crash after every write of the operator that changed something."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import Crash, Plan
from konverge.check.reference import Reference


def crashes(reference: Reference) -> Iterator[Plan]:
    """In the order of the reference."""
    for exchange in reference.run.exchanges:
        if exchange.place is not None and exchange.status < 400:
            yield Plan("crash", (Crash(exchange.place),))
