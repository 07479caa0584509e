"""What was generated once (a password, a certificate) stays as it is when the operator starts again."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.differences import ABSENT
from konverge.check.model import Alarm, Run
from konverge.check.oracles.history import edited, key, shared_steps
from konverge.check.reference import Reference

_DATA = ("data.", "stringData.")


def secrets(run: Run, reference: Reference) -> Iterator[Alarm]:
    """A value of a Secret that the operator overwrites, where it does not without the fault."""
    if run is reference.run:
        return
    steps = shared_steps(run, reference.run)
    usual = {(step, name, path) for step, name, path, _ in _overwritten(reference.run, steps)}
    said: set[tuple[str, str]] = set()
    for step, name, path, incarnation in _overwritten(run, steps):
        if (step, name, path) in usual or (name, path) in said:
            continue
        said.add((name, path))
        again = " when it starts again" if incarnation > 1 else ""
        yield Alarm(
            oracle="secrets",
            severity="high",
            object=name,
            field=path,
            sentence=f"the operator replaces {path} of {name}{again}: whoever has the old value is locked out",
            step=run.steps[step].name,
        )


def _overwritten(run: Run, steps: int) -> Iterator[tuple[int, str, str, int]]:
    others = edited(run)
    for change in run.changes:
        mine = change.ref.resource == "/secrets" and change.writer == "operator" and change.moment.type == "MODIFIED"
        if not mine or change.step >= steps or change.ref in others:
            continue
        for path, old, new in change.differences:
            if path.startswith(_DATA) and old not in (ABSENT, "", None) and new != old:
                yield change.step, key(change), path, change.incarnation
