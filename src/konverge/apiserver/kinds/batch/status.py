"""The status of a Job.

Since anyone may run a Job controller (`managedBy`), the server keeps the status consistent. Most rules only hold for
what an update changes, so that a status which already breaks one can still be written: a rule is a row of
(what must have changed, what is wrong, where, with what message).

Upstream: pkg/apis/batch/validation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from konverge.apiserver.field_errors import OMIT, FieldError, invalid, required
from konverge.apiserver.kinds.batch.indexes import BadIndexes, count, overlap
from konverge.apiserver.kinds.framework.declare import IMMUTABLE, Report, same_rule, section
from konverge.apiserver.kinds.rules.numbers import not_negative
from konverge.apiserver.strategy import Obj


def _uncounted(value: Any, path: str, report: Report) -> bool:  # upstream: validateJobStatus
    """Pods that have ended but are not counted yet: each once."""
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate((value.get("uncountedTerminatedPods") or {}).get(name) or ()):
            place = f"{path}.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                report.invalid(place, uid, "must not be empty")
            elif uid in seen:
                report.duplicate(place, uid)
            seen.add(uid)
    return True


job_status = section(  # upstream: validateJobStatus
    "status", same_rule(("active", "succeeded", "failed", "ready", "terminating"), not_negative), _uncounted
)


def _is(status: Obj, kind: str, value: str = "True") -> bool:
    return any(c.get("type") == kind and c.get("status") == value for c in status.get("conditions") or ())


@dataclass(frozen=True, slots=True)
class _Change:
    """A status before and after, and the spec that it is about."""

    spec: Obj
    old: Obj
    new: Obj

    def of(self, *names: str) -> bool:
        return any(self.old.get(name) != self.new.get(name) for name in names)

    def to(self, *kinds: str) -> bool:
        """Whether one of these conditions has become true or is no longer so."""
        return any(_is(self.old, kind) != _is(self.new, kind) for kind in kinds)

    @property
    def finished(self) -> bool:
        return _is(self.new, "Complete") or _is(self.new, "Failed")

    @property
    def finishing(self) -> bool:
        return self.finished != (_is(self.old, "Complete") or _is(self.old, "Failed"))

    @property
    def indexed(self) -> bool:
        return self.spec.get("completionMode") == "Indexed"


def _conditions(detail: str) -> FieldError:
    return invalid("status.conditions", OMIT, detail)


_Row = tuple[Callable[[_Change], bool], Callable[[_Change], bool], Callable[[_Change], FieldError]]


def _row(when: Callable[[_Change], bool], wrong: Callable[[_Change], bool], detail: str, at: str = "") -> _Row:
    """`at` is the member that is shown; without it, the conditions are at fault."""
    if not at:
        return when, wrong, lambda c: _conditions(detail)
    return when, wrong, lambda c: invalid(f"status.{at}", c.new.get(at), detail)


def _missing(when: Callable[[_Change], bool], wrong: Callable[[_Change], bool], detail: str, at: str) -> _Row:
    return when, wrong, lambda c: required(f"status.{at}", detail)


def _bad_indexes(change: _Change, name: str) -> str:
    try:
        count(change.new.get(name) or "", change.spec["completions"])
    except BadIndexes as bad:
        return f"error parsing {name}: {bad}"
    return ""


def _index_row(name: str, applies: Callable[[_Change], bool]) -> _Row:
    return (
        lambda c: c.of(name) and c.spec.get("completions") is not None and applies(c),
        lambda c: bool(_bad_indexes(c, name)),
        lambda c: invalid(f"status.{name}", c.new.get(name) or "", _bad_indexes(c, name)),
    )


def _overlap(change: _Change) -> int | None:  # upstream: validateFailedIndexesNotOverlapCompleted
    completed, failed = change.new.get("completedIndexes") or "", change.new.get("failedIndexes") or ""
    return overlap(completed, failed, change.spec.get("completions") or 0)


def _always(change: _Change) -> bool:
    return True


def _exclusive(kind: str, other: str, when: Callable[[_Change], bool]) -> _Row:
    detail = f"cannot set {kind}=True and {other}=true conditions"
    return _row(when, lambda c: _is(c.new, kind) and _is(c.new, other), detail)


def _none_when_finished(name: str) -> _Row:
    detail = f"{name}>0 is invalid for finished job"
    return _row(lambda c: c.finishing or c.of(name), lambda c: (c.new.get(name) or 0) > 0 and c.finished, detail, name)


_STATE: tuple[_Row, ...] = (  # upstream: validateJobStatus
    _exclusive("Complete", "Failed", lambda c: c.to("Complete", "Failed")),
    _exclusive("Complete", "FailureTarget", lambda c: c.to("Complete", "FailureTarget")),
    _row(
        lambda c: c.to("Complete") or c.of("completionTime"),
        lambda c: c.new.get("completionTime") is not None and not _is(c.new, "Complete"),
        "cannot set completionTime when there is no Complete=True condition",
        "completionTime",
    ),
    _missing(
        lambda c: c.to("Complete") or c.of("completionTime"),
        lambda c: c.new.get("completionTime") is None and _is(c.new, "Complete"),
        "completionTime is required for Complete jobs",
        "completionTime",
    ),
    _row(
        lambda c: c.of("startTime", "completionTime"),
        lambda c: bool(c.new.get("startTime") and (c.new.get("completionTime") or "~") < c.new["startTime"]),
        "must be equal to or after `startTime`",
        "completionTime",
    ),
    _row(
        lambda c: c.to("Failed") or c.of("failedIndexes"),
        lambda c: _is(c.new, "Failed") and not _is(c.new, "FailureTarget"),
        "cannot set Failed=True condition without the FailureTarget=true condition",
    ),
    _row(
        lambda c: c.to("Complete", "SuccessCriteriaMet"),
        lambda c: _is(c.new, "Complete") and not _is(c.new, "SuccessCriteriaMet"),
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    ),
    _none_when_finished("active"),
    _missing(
        lambda c: (
            (c.finishing or c.of("startTime"))
            and not (c.spec.get("suspend") is True and c.spec.get("completions") == 0)
        ),
        lambda c: c.new.get("startTime") is None and c.finished,
        "startTime is required for finished job",
        "startTime",
    ),
    _row(
        lambda c: c.finishing or c.of("uncountedTerminatedPods"),
        lambda c: c.finished and any((c.new.get("uncountedTerminatedPods") or {}).values()),
        "must be empty for finished job",
        "uncountedTerminatedPods",
    ),
    _index_row("completedIndexes", _always),
    _index_row(
        "failedIndexes",
        lambda c: c.spec.get("backoffLimitPerIndex") is not None and c.new.get("failedIndexes") is not None,
    ),
    _row(
        lambda c: c.of("completedIndexes"),
        lambda c: bool(c.new.get("completedIndexes")) and not c.indexed,
        "cannot set non-empty completedIndexes when non-indexed completion mode",
        "completedIndexes",
    ),
    _row(
        lambda c: c.of("failedIndexes"),
        lambda c: c.spec.get("backoffLimitPerIndex") is None and c.new.get("failedIndexes") is not None,
        "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
        "failedIndexes",
    ),
    (
        lambda c: c.of("failedIndexes", "completedIndexes") and c.spec.get("completions") is not None,
        lambda c: _overlap(c) is not None,
        lambda c: invalid(
            "status.failedIndexes",
            c.new.get("failedIndexes"),
            f"failedIndexes and completedIndexes overlap at index: {_overlap(c)}",
        ),
    ),
    _none_when_finished("terminating"),
    _row(
        lambda c: c.of("ready", "active"),
        lambda c: c.new.get("ready") is not None and c.new["ready"] > (c.new.get("active") or 0),
        "cannot set more ready pods than active",
        "ready",
    ),
    _exclusive("SuccessCriteriaMet", "Failed", _always),
    _exclusive("SuccessCriteriaMet", "FailureTarget", _always),
    _row(
        lambda c: c.spec.get("successPolicy") is not None,
        lambda c: _is(c.new, "Complete") and not _is(c.new, "SuccessCriteriaMet"),
        "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
    ),
)


def _less(name: str) -> Callable[[_Change], bool]:
    return lambda c: (c.new.get(name) or 0) < (c.old.get(name) or 0)


def _terminal(kind: str) -> _Row:
    detail = f"cannot disable the terminal {kind}=True condition"
    return _row(_always, lambda c: _is(c.old, kind) and not _is(c.new, kind), detail)


_STEPS: tuple[_Row, ...] = (  # upstream: ValidateJobStatusUpdate
    _terminal("Failed"),
    _terminal("Complete"),
    _terminal("FailureTarget"),
    _row(_always, _less("failed"), "cannot decrease the failed counter", "failed"),
    _row(
        lambda c: not c.indexed or c.spec.get("completions") != c.spec.get("parallelism"),
        _less("succeeded"),
        "cannot decrease the succeeded counter",
        "succeeded",
    ),
    _row(
        lambda c: c.old.get("completionTime") is not None and c.new.get("completionTime") is not None,
        lambda c: c.of("completionTime"),
        IMMUTABLE,
        "completionTime",
    ),
    _row(
        lambda c: not (_is(c.old, "Suspended") and _is(c.new, "Suspended", "False")),
        lambda c: c.old.get("startTime") is not None and c.of("startTime") and not c.spec.get("suspend"),
        "field is immutable for unsuspended job once set",
        "startTime",
    ),
    _row(
        _always,
        lambda c: _is(c.old, "SuccessCriteriaMet") and not _is(c.new, "SuccessCriteriaMet"),
        "cannot disable the SuccessCriteriaMet=True condition",
    ),
    _row(
        lambda c: _is(c.old, "Complete") and not _is(c.old, "SuccessCriteriaMet"),
        lambda c: _is(c.new, "SuccessCriteriaMet"),
        "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
    ),
)


def job_status_change(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateJobUpdateStatus
    """All rows, in the order in which the real server checks them."""
    change = _Change(new["spec"], old.get("status") or {}, new.get("status") or {})
    for when, wrong, error in (*_STATE, *_STEPS):
        if when(change) and wrong(change):
            report.add(error(change))
    return True
