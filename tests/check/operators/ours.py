"""Our own operators as what is checked."""

from __future__ import annotations

from typing import Any

from konverge.check.in_process import run_in_process
from konverge.check.inputs.samples import placed
from konverge.check.model import Plan, Run, Setup, Step, Subject, Task
from konverge.check.reference import Reference, reference_of
from konverge.check.workload import basic
from konverge.operators.catalog import Operator, find

SAMPLES = {
    "webapp": ("hello",),
    "nacos": ("nacos-cluster", "nacos-cluster-mysql"),
    "wukong": ("smallest",),
}


class Checked:
    """One of our operators with a sample, on seeds of its own."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.operator: Operator = find(name)
        self.seed = seed
        groups = {kind.resource.group for kind in self.operator.kinds}
        samples = [item for item in self.operator.sample_objects() if item["metadata"]["name"] in SAMPLES[name]]
        mine = [item for item in samples if item["apiVersion"].partition("/")[0] in groups]
        before: list[dict[str, Any]] = [placed(item, "default") for item in samples if item not in mine]
        self.setup = Setup(objects=(*self.operator.definitions(), *before))
        self.steps: tuple[Step, ...] = basic(mine)

    def run(self, plan: Plan, seed: int | None = None) -> Run:
        task = Task(
            subject=Subject(target=self.operator.name),
            setup=self.setup,
            steps=self.steps,
            plan=plan,
            seed=self.seed if seed is None else seed,
        )
        return run_in_process(task, self.operator)

    def reference(self) -> Reference:
        return reference_of(self.run(Plan("reference")), self.run(Plan("reference"), seed=self.seed + 1))
