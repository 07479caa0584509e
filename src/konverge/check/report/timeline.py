"""What happened in a run, in the order of the store: who changed what, beside the reference, up to the divergence."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.findings import Evidence
from konverge.check.model import Change, Run
from konverge.check.names import Names
from konverge.check.redaction import shown_value

_SIGNS = {"ADDED": "+", "MODIFIED": "~", "DELETED": "-"}


def lines(evidence: Evidence, names: Names) -> list[str]:
    """For a terminal."""
    return [*_header(evidence, names), *_events(evidence.run, names), *_log(evidence.run)]


def _header(evidence: Evidence, names: Names) -> Iterator[str]:
    divergence = first_divergence(evidence.run, evidence.reference.run)
    if divergence is not None:
        yield f"the first change that the undisturbed run does not have: revision {divergence.revision}"
        yield ""


def _events(run: Run, names: Names) -> Iterator[str]:
    step = -1
    crashes = {exchange.revisions[-1]: exchange for exchange in run.exchanges if exchange.error and exchange.revisions}
    for change in run.changes:
        if change.step != step:
            step = change.step
            yield f"── {run.steps[step].name}" if step < len(run.steps) else "──"
        yield f"{change.time:9.2f} s  {_writer(change):<11} {summary(change, names)}"
        if change.revision in crashes:
            yield f"{change.time:9.2f} s  ✗ {crashes[change.revision].error}"
    for exit_ in run.exits:
        yield f"{exit_.time:9.2f} s  ✗ the operator ended by itself: {exit_.error}"


def _writer(change: Change) -> str:
    """The operator with the number of its incarnation, from the second on."""
    return f"operator #{change.incarnation}" if change.incarnation > 1 else change.writer


def summary(change: Change, names: Names) -> str:
    """One change in a line."""
    what = f"{_SIGNS[change.moment.type]} {names.spoken(change.ref.resource, change.ref.name)}"
    if not change.moment.change:
        return what
    fields = change.moment.change.split(",")
    values = {path: (old, new) for path, old, new in change.differences}
    shown = []
    for path in fields[:3]:
        if path in values:
            old, new = (shown_value(change.ref.resource, path, value) for value in values[path])
            shown.append(f"{path}: {old[:30]} → {new[:30]}")
        else:
            shown.append(path)
    more = f" (+{len(fields) - 3})" if len(fields) > 3 else ""
    return f"{what}  {', '.join(shown)}{more}"


def _log(run: Run) -> Iterator[str]:
    if run.log:
        yield ""
        yield "the operator's log, its end:"
        yield from (f"  {line}" for line in run.log[-15:])


def first_divergence(run: Run, reference: Run) -> Change | None:
    """The first change of the run for which the reference has none of the same kind left, after what went wrong."""
    left: dict[object, int] = {}
    for change in reference.changes:
        left[_key(change)] = left.get(_key(change), 0) + 1
    for change in run.changes:
        key = _key(change)
        if not left.get(key):
            return change
        left[key] -= 1
    return None


def _key(change: Change) -> object:
    moment = change.moment
    return moment.type, moment.resource, moment.namespace, moment.name, moment.change, change.writer
