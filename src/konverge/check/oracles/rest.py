"""The cluster comes to rest after every step, and at rest the operator writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from konverge.check.folding import folded
from konverge.check.model import Alarm, Change, Exchange, Run, Severity
from konverge.check.oracles.history import key, shared_steps, step_of
from konverge.check.reference import Reference

STORM = 30.0
"""Writes a minute at one object that are more than untidy."""

LEAST = 20
"""Fewer than so many are no storm, however short the rest was."""

READS = 50
"""So many times the requests of the reference are a storm."""

_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_NO_WRITES = ("authorization.k8s.io/", "authentication.k8s.io/", "/events", "events.k8s.io/", "coordination.k8s.io/")


def no_rest(run: Run, reference: Reference) -> Iterator[Alarm]:
    """A step that never came to rest, where the reference did; with the cycle."""
    for checkpoint in run.checkpoints:
        if checkpoint.rested:
            continue
        step = step_of(run, checkpoint)
        shared = run is not reference.run and step < shared_steps(run, reference.run)
        if shared and reference.beside(run, checkpoint) is None:
            continue  # nor did the reference
        changes = [change for change in run.changes if change.step == step]
        known = _cycle(changes)
        cycle = known or _frequent(changes)
        shown = " → ".join(_shown(change) for change in cycle[:6]) or "reads alone"
        yield Alarm(
            oracle="no rest",
            severity=_unrest(known, changes),
            object=key(cycle[0]) if cycle else "operator",
            sentence=f"the cluster never comes to rest; for ever: {shown}",
            step=checkpoint.step,
            actual=len(changes),
        )


def _unrest(cycle: list[Change], changes: list[Change]) -> Severity:
    """What goes round for ever is high, unless it is only said in a status, or the cluster does it by itself: pods that
    cannot start are tried again and again. Where nothing goes round it may just be slow."""
    if changes and all(change.writer == "cluster" for change in cycle or changes[-LAST:]):
        return "low"
    if changes and (not cycle or all(change.moment.change.startswith("status") for change in cycle)):
        return "medium"
    return "high"


LAST = 100
"""So many last changes of a step tell who keeps it from rest."""


def _cycle(changes: list[Change]) -> list[Change]:
    """The shortest sequence of changes that the history ends with three times."""
    forms = [(change.moment.type, key(change), change.moment.change) for change in changes]
    for length in range(1, min(len(forms) // 3, 40) + 1):
        last = forms[-length:]
        if forms[-2 * length : -length] == last and forms[-3 * length : -2 * length] == last:
            return changes[-length:]
    return []


def _frequent(changes: list[Change]) -> list[Change]:
    counted = Counter(key(change) for change in changes[-200:] if change.writer != "user")
    return [
        next(change for change in reversed(changes) if key(change) == name) for name, times in counted.most_common(3)
    ]


def _shown(change: Change) -> str:
    what = {"ADDED": "makes", "DELETED": "deletes", "MODIFIED": "changes"}[change.moment.type]
    fields = f" ({change.moment.change[:60]})" if change.moment.change else ""
    return f"{change.writer} {what} {key(change)}{fields}"


# ------------------------------------------------------------------ writes at rest


def needless(run: Run, reference: Reference) -> Iterator[Alarm]:
    """Writes at rest that change nothing, by object; and far more requests than usual."""
    usual = {} if run is reference.run else _needless(reference.run)
    for place, (rate, count, step) in _needless(run).items():
        storm = rate >= STORM and count >= LEAST
        if place in usual and not (storm and usual[place][0] < STORM):
            continue
        verb, resource, name = place
        severity: Severity = "medium" if storm else "low"
        yield Alarm(
            oracle="needless writes",
            severity=severity,
            object=f"{resource.removeprefix('/')} {name}",
            field=verb,
            sentence=f"at rest the operator goes on to {verb} {resource.removeprefix('/')} {name}, which changes"
            f" nothing: {count} times, {rate:.0f} a minute",
            step=step,
            actual=count,
        )
    yield from _requests(run, reference)


def _requests(run: Run, reference: Reference) -> Iterator[Alarm]:
    if run is reference.run:
        return
    mine, usual = sum(run.reads.values()), sum(reference.run.reads.values())
    if mine > 2000 and mine > READS * usual:
        most = Counter(run.reads).most_common(1)[0][0]
        yield Alarm(
            oracle="needless writes",
            severity="medium",
            object="operator",
            field=most,
            sentence=f"the operator sends {mine} requests (without the fault: {usual}), most of them: {most}",
            expected=usual,
            actual=mine,
        )


def _needless(run: Run) -> dict[tuple[str, str, str], tuple[float, int, str]]:
    """By verb, resource and folded name: the most a minute, how many, and after which step."""
    worst: dict[tuple[str, str, str], tuple[float, int, str]] = {}
    for checkpoint in run.checkpoints:
        began = max((change.time for change in run.changes if change.time <= checkpoint.time), default=0.0)
        counted = Counter(
            (exchange.verb, exchange.resource, folded(f"{exchange.namespace}/{exchange.name}".lstrip("/")))
            for exchange in run.exchanges
            if began < exchange.began <= checkpoint.time and _changes_nothing(exchange)
        )
        for place, times in counted.items():
            rate = 60.0 * times / max(checkpoint.time - began, 1.0)
            if times > 1 and rate > worst.get(place, (0.0, 0, ""))[0]:
                worst[place] = (rate, times, checkpoint.step)
    return worst


def _changes_nothing(exchange: Exchange) -> bool:
    writes = exchange.verb in _WRITES and 0 < exchange.status < 400
    return writes and exchange.place is None and not exchange.resource.startswith(_NO_WRITES)
