"""Why the operator wrote: what it had been shown, in the same burst of activity, of the same namespace.

A burst is what happens between two rests. A change that was delivered in it before a write may have caused the write;
one of another namespace, or of an earlier burst, has not. Upstream: the causality of Sieve (OSDI'22, section 4.2), seen
from the outside.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from konverge.check.differences import ABSENT
from konverge.check.model import Change, Exchange, Ref, Run

Paths = tuple[tuple[str, object, object], ...]


class History:
    """The changes of a run, by what plans ask for."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.changes = run.changes
        self._by_revision = {change.revision: change for change in run.changes}
        self._by_ref: dict[Ref, list[Change]] = {}
        for change in run.changes:
            self._by_ref.setdefault(change.ref, []).append(change)
        self.delivered = {
            delivery.revision: delivery.after
            for delivery in reversed(run.deliveries)  # the first delivery counts
            if delivery.revision in self._by_revision
        }
        """By the revision of a change: how many requests the operator had made when it was first shown."""

    def of(self, exchange: Exchange) -> list[Change]:
        """What a write changed."""
        return [self._by_revision[revision] for revision in exchange.revisions if revision in self._by_revision]

    def later(self, change: Change) -> Iterator[Change]:
        """What became of an object after a change; also of another object of the same name."""
        return (other for other in self._by_ref[change.ref] if other.revision > change.revision)

    def earlier(self, change: Change) -> list[Change]:
        """What became of an object before a change, newest first."""
        return [other for other in reversed(self._by_ref[change.ref]) if other.revision < change.revision]

    def causes(self, exchange: Exchange) -> list[Change]:
        """What may have caused a write: of every resource the last change that the operator had been shown."""
        made = self.of(exchange)
        if not made:
            return []
        step, namespace = made[0].step, made[0].ref.namespace
        latest: dict[str, Change] = {}
        for change in self.changes:
            shown = self.delivered.get(change.revision)
            near = change.ref.namespace == namespace or not change.ref.namespace or not namespace
            if shown is not None and shown <= exchange.number and change.step == step and near:
                latest[change.ref.resource] = change
        return list(latest.values())

    def caused(self, change: Change) -> bool:
        """Whether the operator changed something after it was shown a change, in the same burst and namespace."""
        shown = self.delivered.get(change.revision)
        if shown is None:
            return False
        for exchange in self.run.exchanges:
            made = self.of(exchange) if exchange.number >= shown else []
            if any(other.step == change.step and other.ref.namespace == change.ref.namespace for other in made):
                return True
        return False


class Destruction(msgspec.Struct, frozen=True):
    """A write of the operator that took something away, which came back later."""

    exchange: Exchange
    change: Change
    back: Change


def destructions(history: History) -> Iterator[Destruction]:
    """Deletions, scale-downs, finalizers removed, claims changed, Secrets overwritten: those that were reverted."""
    for exchange in history.run.exchanges:
        for change in history.of(exchange) if exchange.status < 400 else ():
            taken = exchange.verb in ("delete", "deletecollection") or change.moment.type == "DELETED"
            if not taken and not any(_takes_away(change.ref.resource, path) for path in change.differences):
                continue
            back = next((later for later in history.later(change) if _brings_back(change, later)), None)
            if back is not None:
                yield Destruction(exchange, change, back)


def _takes_away(resource: str, difference: tuple[str, object, object]) -> bool:
    path, old, new = difference
    if path.endswith("replicas") and path.startswith("spec."):
        return isinstance(old, int) and isinstance(new, int) and new < old
    if path.startswith("metadata.finalizers"):
        return old != ABSENT
    if resource == "/persistentvolumeclaims":
        return path.startswith(("spec.", "metadata.ownerReferences", "metadata.labels", "metadata.annotations"))
    return resource == "/secrets" and path.startswith(("data", "stringData"))


def _brings_back(change: Change, later: Change) -> bool:
    if later.moment.type == "ADDED":
        return True
    before = {path: (old, new) for path, old, new in change.differences}
    for path, _, value in later.differences:
        old, new = before.get(path, (None, None))
        if path in before and (value == old or (isinstance(value, int) and isinstance(new, int) and value > new)):
            return True
    return False


class Cancelled(msgspec.Struct, frozen=True):
    """A change of others that was taken back later: who sees neither sees nothing."""

    since: Change
    until: Change


def cancelled(history: History) -> Iterator[Cancelled]:
    """Changes that others took back: the user's own, and of those by the cluster what the operator reacted to."""
    for change in history.changes:
        if change.writer == "operator":
            continue
        until = _taken_back(history, change)
        if until is None or until.writer == "operator":
            continue
        first = _first_sign(history, change)
        if change.writer == "user" or any(
            history.caused(sign) for sign in {first.revision: first, change.revision: change}.values()
        ):
            yield Cancelled(first, until)


def _taken_back(history: History, change: Change) -> Change | None:
    if change.moment.type == "DELETED":
        return next(history.later(change), None)  # there is nothing but its creation
    if change.moment.type == "ADDED":
        return None
    before = {path: old for path, old, _ in change.differences if path.startswith(("spec", "metadata.", "data"))}
    wanted = {path: old for path, old in before.items() if not path.startswith(_VERSIONS)}
    for later in history.later(change) if wanted else ():
        if later.moment.type != "MODIFIED":
            return None
        if any(_restores(wanted, path, new) for path, _, new in later.differences):
            return later
    return None


def _restores(wanted: dict[str, object], path: str, new: object) -> bool:
    """Whether a path has its old value again. What was added may go with all that is around it."""
    if path in wanted:
        return new == wanted[path]
    if new is not None and new != ABSENT:
        return False
    around = (f"{path}.", f"{path}[")
    return any(
        old == ABSENT and (added.startswith(around) or path.startswith(f"{added}.")) for added, old in wanted.items()
    )


_VERSIONS = ("metadata.generation", "metadata.resourceVersion", "metadata.managedFields", "metadata.deletion")


def _first_sign(history: History, change: Change) -> Change:
    """Of a deletion, the change that announced it."""
    if change.moment.type != "DELETED":
        return change
    for earlier in history.earlier(change):
        if earlier.moment.type == "ADDED":
            break
        if any(path == "metadata.deletionTimestamp" for path, _, _ in earlier.differences):
            return earlier
    return change
