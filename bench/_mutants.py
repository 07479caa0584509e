"""Mutants of operators: mistakes that people make, put in at run time; each must be found by the plain checker.

    for result in tried(): ...        # name, found or not, by what, CPU seconds

The files of bench/check/mutants have `MUTANTS`. A mutant is tried as a user would check the operator: two reference
runs, then plans by value, until something above "low" is found or its CPU seconds are used up.
"""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from konverge.check.branches import Branches
from konverge.check.collector import what_stays_is_frozen
from konverge.check.in_process import run_in_process
from konverge.check.inputs.samples import placed
from konverge.check.model import Alarm, Plan, Run, Setup, Subject, Task
from konverge.check.oracles import judge
from konverge.check.planning import planner_for
from konverge.check.reference import Reference, reference_of
from konverge.check.workload import default
from konverge.operators.catalog import Operator, find

FOLDER = Path(__file__).parent / "check" / "mutants"
SAMPLES = {
    "webapp": ("hello",),
    "nacos": ("nacos-cluster", "nacos-cluster-mysql"),
    "wukong": ("smallest",),
}
STEPS = {"webapp": 2, "nacos": 0, "wukong": 2}
"""Changes of the custom resource in the workload; a Nacos cluster that grows costs more than all its plans."""
CPU = 60.0
"""Seconds that a mutant may cost."""


Patch = AbstractContextManager[None] | tuple[AbstractContextManager[None], ...]
"""What puts a mistake in, for as long as it is entered."""


@dataclass(frozen=True)
class Mutant:
    """One mistake."""

    name: str
    about: str
    """What is wrong, in one sentence."""
    patch: Callable[[], Patch]


@dataclass(frozen=True)
class Result:
    """How a mutant fared."""

    name: str
    about: str
    found: Alarm | None
    plan: Plan
    """That found it, or was the last."""
    plans: int
    cpu: float


@contextmanager
def replaced(owner: Any, **values: Any) -> Iterator[None]:
    """Attributes of a module or class are others inside the block."""
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


def returning(value: Any) -> Callable[..., Any]:
    """A function with this one answer, whatever it is asked."""
    return lambda *arguments, **more: value


def answering(value: Any) -> Callable[..., Any]:
    """The same, awaited."""

    async def answer(*arguments: Any, **more: Any) -> Any:
        return value

    return answer


def mutants(operator: str) -> list[Mutant]:
    """Those of one operator."""
    spec = importlib.util.spec_from_file_location(f"mutants_{operator}", FOLDER / f"{operator}.py")
    if spec is None or spec.loader is None:
        raise LookupError(f"there is no file of mutants for {operator}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: list[Mutant] = module.MUTANTS
    return made


def tried(operators: tuple[str, ...] = tuple(SAMPLES), names: tuple[str, ...] = ()) -> Iterator[Result]:
    """Every mutant of these operators, or those named, one after the other."""
    with quiet():
        for operator in operators:
            for mutant in mutants(operator):
                if not names or mutant.name in names:
                    yield attempt(operator, mutant)


@contextmanager
def quiet() -> Iterator[None]:
    """What a broken operator logs is of no interest here."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def attempt(operator: str, mutant: Mutant) -> Result:
    """One mutant, until it is found."""
    began = time.process_time()
    with ExitStack() as stack:
        runs = Runs(operator, Path(stack.enter_context(TemporaryDirectory())))
        patches = mutant.patch()
        for patch in patches if isinstance(patches, tuple) else (patches,):
            stack.enter_context(patch)
        plan, alarm = Plan("reference"), None
        try:
            reference = runs.reference()
        except NoReference as error:
            broken = Alarm(oracle="reference", severity="high", object="operator", sentence=str(error))
            return Result(mutant.name, mutant.about, broken, plan, 0, time.process_time() - began + runs.elsewhere)
        alarm = worst(judge(reference.run, reference))
        plans = runs.planner(reference, (), 0).plans if alarm is None else []
        stack.enter_context(what_stays_is_frozen())  # as the checker does it
        done = 0
        for plan in plans:
            done += 1
            alarm = worst(judge(runs.run(plan), reference))
            if alarm is not None or time.process_time() - began + runs.elsewhere > CPU:
                break
        return Result(mutant.name, mutant.about, alarm, plan, done, time.process_time() - began + runs.elsewhere)


def worst(alarms: list[Alarm]) -> Alarm | None:
    """The first that is above "low"."""
    return next((alarm for alarm in alarms if alarm.severity != "low"), None)


def summary(results: list[Result]) -> str:
    """As `python -m bench check --mutants` shows it: one line each, and the sum."""
    return "\n".join(
        [*map(line, results), f"{sum(item.found is not None for item in results)} of {len(results)} found"]
    )


def line(result: Result) -> str:
    """What became of one."""
    verdict = "found" if result.found else "NOT FOUND"
    sentence = result.found.sentence[:90] if result.found else result.about
    return f"{verdict:9} {result.name:24} {result.plans:3} plans {result.cpu:5.1f} CPU-s  {sentence}"


class NoReference(Exception):
    """Without any fault the operator does not do what it should: that is a finding, and the only one."""


class Runs:
    """Runs of one of our operators with a sample."""

    def __init__(self, operator: str, folder: Path, seed: int = 0) -> None:
        """`folder` is where runs branch off the undisturbed one."""
        self.operator = find(operator)
        groups = {kind.resource.group for kind in self.operator.kinds}
        samples = [item for item in self.operator.sample_objects() if item["metadata"]["name"] in SAMPLES[operator]]
        mine = [item for item in samples if item["apiVersion"].partition("/")[0] in groups]
        before = [placed(item, "default") for item in samples if item not in mine]
        self.planner = planner_for(mine, self.operator.definitions(), "default")
        self.elsewhere = 0.0
        """CPU seconds of other processes."""
        self._folder = folder
        self._base = Task(
            subject=Subject(target=self.operator.name),
            setup=Setup(objects=(*self.operator.definitions(), *before)),
            steps=default(mine, self.operator.definitions(), budget=STEPS[operator]),
            plan=Plan("reference"),
            seed=seed,
        )
        self._branches: Branches | None = None

    def run(self, plan: Plan) -> Run:
        assert self._branches is not None  # after the reference
        run = self._branches.run(msgspec.structs.replace(self._base, plan=plan))
        self.elsewhere += run.cpu
        return run

    def reference(self) -> Reference:
        here = _Here(self.operator)
        first = here.run(msgspec.structs.replace(self._base, branches=str(self._folder)))
        self.elsewhere += first.cpu
        second = here.run(msgspec.structs.replace(self._base, seed=self._base.seed + 1))
        for run in (first, second):
            if run.problem or not run.checkpoints or not run.checkpoints[0].rested:
                raise NoReference(run.problem or "it does not come to rest with the sample")
        reference = reference_of(first, second)
        self._branches = Branches(here, self._base, reference, self._folder)
        return reference


class _Here:
    """Carries out runs in this process, which notices by itself what they cost."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def run(self, task: Task) -> Run:
        run = run_in_process(task, self._operator)
        if not task.branches:
            run.cpu = 0.0
        return run
