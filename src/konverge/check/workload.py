"""The workload when the user gives none: what users do with one sample."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.check.model import Action, Apply, Delete, Obj, Step


def basic(samples: Sequence[Obj], namespace: str = "default") -> tuple[Step, ...]:
    """Create, delete, and create again with the same name."""
    objects = [placed(sample, namespace) for sample in samples]
    create: tuple[Action, ...] = tuple(Apply(obj) for obj in objects)
    delete: tuple[Action, ...] = tuple(_deletion(obj) for obj in reversed(objects))
    return (Step("create", create), Step("delete", delete), Step("create again", create))


def placed(sample: Obj, namespace: str) -> Obj:
    """The sample in a namespace, if it names none."""
    metadata = sample["metadata"]
    return {**sample, "metadata": {"namespace": namespace, **metadata}}


def _deletion(obj: Obj) -> Delete:
    metadata = obj["metadata"]
    return Delete(obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"])
