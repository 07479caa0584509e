"""States that pass unseen, and own writes that are seen late."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.causes import Cancelled, History, cancelled
from konverge.check.model import Gap, LateOwnWrites, Plan
from konverge.check.reference import Reference


def gaps(reference: Reference) -> Iterator[Plan]:
    """For every change of others that was taken back."""
    history = History(reference.run)
    seen: set[Gap] = set()
    for item in cancelled(history):
        gap = Gap(item.since.ref.resource, item.since.moment, item.until.moment)
        if gap not in seen and not _needs_operator(history, item):
            seen.add(gap)
            yield Plan("gap", (gap,))


def _needs_operator(history: History, item: Cancelled) -> bool:
    """Whether the object could go only because the operator let it: unseen, it would stay."""
    between = (change for change in history.later(item.since) if change.revision < item.until.revision)
    deletion = item.until.moment.type == "ADDED"
    return deletion and any(change.writer == "operator" for change in between)


def late_own_writes(reference: Reference) -> Iterator[Plan]:
    """For every resource that the operator writes and watches."""
    watched = {delivery.resource for delivery in reference.run.deliveries}
    written = {change.ref.resource for change in reference.run.changes if change.writer == "operator"}
    for resource in sorted(watched & written):
        yield Plan("own-writes", (LateOwnWrites(resource),))
