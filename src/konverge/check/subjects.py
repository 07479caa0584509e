"""What is checked, from what the user named: an operator in Python, a program, a file about either."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from konverge.check import accounts, profile
from konverge.check.campaign import Runner
from konverge.check.in_process import run_in_process
from konverge.check.inputs.samples import require_usable
from konverge.check.manifests import CannotCheck
from konverge.check.model import Obj, Run, Setup, Subject, Task
from konverge.check.operator import Declaration
from konverge.check.performing import failed
from konverge.check.workers import Workers
from konverge.operators.catalog import Operator
from konverge.operators.loading import LoadError, load

CONFIRMATIONS = 3
"""Repetitions of a finding on real time, where the same plan need not give the same run."""
FOR_PYTHON, FOR_PROGRAMS = 90.0, 480.0


_NOTHING_GIVEN = profile.Given()
_HERE = Path()


class InThisProcess:
    """One run after the other, on virtual time."""

    jobs = 1

    def __init__(self, declaration: Declaration | Operator) -> None:
        self._declaration = declaration

    def run(self, task: Task) -> Run:
        try:
            return run_in_process(task, self._declaration)
        except Exception:  # as in a worker: a run that fails says so, and the next begins
            return failed(task, f"the checker itself failed: {traceback.format_exc(limit=-8)}")

    def cancel(self) -> None:
        """There is never a run under way in another thread."""


class Checked(msgspec.Struct, kw_only=True):
    """An operator with what it needs."""

    subject: Subject
    setup: Setup
    samples: tuple[Obj, ...] = ()
    notes: list[str] = []
    roles_given: bool = False
    """By files, and not made from declarations."""
    operator: Operator | None = None
    """Of a target."""

    @property
    def definitions(self) -> list[Obj]:
        return [obj for obj in self.setup.objects if obj.get("kind") == "CustomResourceDefinition"]

    @property
    def budget(self) -> float:
        """Seconds of wall time, unless the user says otherwise."""
        return FOR_PROGRAMS if self.subject.command else FOR_PYTHON

    @property
    def repeats(self) -> int:
        return CONFIRMATIONS if self.subject.command else 1

    @contextmanager
    def runner(self, jobs: int) -> Iterator[Runner]:
        """`jobs` runs at once; 0 for as many as this machine is good for."""
        wanted = jobs or (_processors() if self.subject.target else 0)
        if self.operator is not None and wanted == 1:
            yield InThisProcess(declaration_of(self.operator))
            return
        with Workers(wanted) as workers:
            if self.operator is not None and workers.jobs == 1:
                # On virtual time, one after the other needs no process of its own.
                yield InThisProcess(declaration_of(self.operator))
                return
            self.notes += workers.notes
            yield workers


def declaration_of(operator: Operator) -> Declaration | Operator:
    """What is run: the author's manager, whose reconcilers are new in each life, or an operator of the catalogue."""
    return operator.manager or operator


def _processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def from_file(path: Path) -> Checked:
    """Of a check.toml. Raises CannotCheck."""
    return _of_profile(profile.load(path))


def from_given(given: profile.Given, folder: Path) -> Checked:
    """Of options. Raises CannotCheck."""
    return _of_profile(profile.make(given, folder))


def _of_profile(made: profile.Profile) -> Checked:
    operator = _loaded(made.subject.target) if made.subject.target else None
    return _usable(
        Checked(
            subject=made.subject,
            setup=made.setup if operator is None else _with_definitions(operator, made.setup),
            samples=made.samples,
            notes=list(made.notes),
            roles_given=bool(made.setup.account),
            operator=operator,
        )
    )


def _usable(checked: Checked) -> Checked:
    require_usable(checked.samples, checked.definitions)
    return checked


def from_target(
    reference: str, samples: Sequence[str] = (), given: profile.Given = _NOTHING_GIVEN, folder: Path = _HERE
) -> Checked:
    """An operator in Python, with samples of its own unless others are given; of `given` counts what has to be there
    before it starts. Raises CannotCheck."""
    operator = _loaded(reference)
    objects = profile.samples_of([Path(name) for name in samples]) if samples else operator.sample_objects()
    if not objects:
        raise CannotCheck(f"{reference} has no samples: give one with --sample, or put a sample.yaml beside its file")
    notes: list[str] = []
    setup = profile.setup_of(given, folder, notes)
    target = str(Path(reference).resolve()) if reference.endswith(".py") else reference
    return _usable(
        Checked(
            subject=Subject(target=target),
            setup=_with_definitions(operator, setup),
            samples=tuple(objects),
            notes=notes,
            roles_given=bool(setup.account),
            operator=operator,
        )
    )


def of_task(task: Task) -> Checked:
    """Of a task that is repeated. Raises CannotCheck."""
    operator = _loaded(task.subject.target) if task.subject.target else None
    return Checked(subject=task.subject, setup=task.setup, operator=operator)


def _loaded(reference: str) -> Operator:
    try:
        return load(reference)
    except LoadError as error:
        raise CannotCheck(str(error)) from error


HOME = "operators"
"""The namespace of an operator in Python: another one than that of the samples, as usual."""


def _with_definitions(operator: Operator, setup: Setup) -> Setup:
    """What the operator's own classes define, and the roles that its declarations ask for, unless files do."""
    names = {obj["metadata"]["name"] for obj in setup.objects if obj["kind"] == "CustomResourceDefinition"}
    own = [obj for obj in operator.definitions() if obj["metadata"]["name"] not in names]
    roles: list[Obj] = []
    account = setup.account
    if not account:
        roles, account = accounts.declared(operator.controllers(), HOME, operator.identity, operator.webhooks())
    return msgspec.structs.replace(setup, objects=(*own, *roles, *setup.objects), account=account)
