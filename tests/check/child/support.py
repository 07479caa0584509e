"""Tasks for the small program of these tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from konverge.check.model import Apply, Delete, Plan, Run, Setup, Step, Subject, Task

PROGRAM = Path(__file__).with_name("program.py")
FIRST: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": "default"}}
REFERENCE = Plan("reference")
CREATE = Step("create", (Apply(FIRST),))
DELETE = Step("delete", (Delete("v1", "ConfigMap", "default", "first"),))


def task(
    setting: str = "", plan: Plan = REFERENCE, *, setup: Setup | None = None, steps: tuple[Step, ...] = (CREATE,),
    in_cluster: bool = False, quiet: float = 0.3, limit: float = 60.0, **environment: str,
) -> Task:  # fmt: skip
    subject = Subject(
        command=(sys.executable, str(PROGRAM)), environment={"SETTING": setting, **environment}, in_cluster=in_cluster
    )
    return Task(subject=subject, setup=setup or Setup(nodes=0), steps=steps, plan=plan, quiet=quiet, limit=limit)


def written(run: Run) -> list[tuple[int, str, str]]:
    """Incarnation, verb and name of the writes that changed something."""
    return [(item.incarnation, item.verb, item.place.name) for item in run.exchanges if item.place is not None]


def data(run: Run, name: str) -> dict[str, str]:
    found: dict[str, str] = run.checkpoints[-1].state[f"configmaps default/{name}"]["data"]
    return found
