"""Runs made by hand, for the oracles."""

from __future__ import annotations

from typing import Any

from konverge.check.differences import changed_paths
from konverge.check.folding import folded
from konverge.check.model import (
    Apply,
    Change,
    Checkpoint,
    Delete,
    Exchange,
    Moment,
    Pattern,
    Place,
    Plan,
    Ref,
    Run,
    Step,
)
from konverge.check.reference import Reference, reference_of

THING = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "default"}}
STEPS = (
    Step("create", (Apply(THING),)),
    Step("delete", (Delete("example.dev/v1", "Thing", "default", "a"),)),
    Step("create again", (Apply(THING),)),
)
KEY = "example.dev/things default/a"


def ref(key: str) -> Ref:
    resource, _, name = key.partition(" ")
    namespace, _, name = name.rpartition("/")
    return Ref(resource if "/" in resource else f"/{resource}", namespace, name)


class History:
    """Changes, requests and checkpoints one after the other."""

    def __init__(self, steps: tuple[Step, ...] = STEPS, pattern: Pattern = "crash", **plan: Any) -> None:
        self.run = Run(plan=Plan(pattern, **plan), seed=0, steps=steps)
        self._step = 0
        self.time = 0.0

    def change(
        self, type: Any, key: str, *differences: tuple[str, Any, Any], by: Any = "operator", incarnation: int = 1
    ) -> History:
        self.time += 1
        target = ref(key)
        moment = Moment(type, target.resource, target.namespace, folded(target.name), changed_paths(differences))
        change = Change(
            revision=len(self.run.changes) + 1,
            time=self.time,
            moment=moment,
            ref=target,
            uid=f"uid of {key}",
            writer=by,
            incarnation=incarnation,
            differences=differences,
            step=self._step,
        )
        self.run.changes.append(change)
        return self

    def request(self, verb: str, key: str, *, status: int = 200, error: str = "", effective: bool = False) -> History:
        self.time += 0.5
        target = ref(key)
        place = Place(verb, target.resource, target.namespace, target.name) if effective else None
        self.run.exchanges.append(
            Exchange(
                number=len(self.run.exchanges),
                incarnation=1,
                verb=verb,
                resource=target.resource,
                namespace=target.namespace,
                name=target.name,
                status=status,
                began=self.time,
                revision=len(self.run.changes),
                revisions=(len(self.run.changes),) if effective else (),
                place=place,
                error=error,
            )
        )
        return self

    def rest(self, state: dict[str, Any] | None = None, *, rested: bool = True, quiet: float = 60.0) -> History:
        self.time += quiet
        name = self.run.steps[self._step].name
        shown = Checkpoint(step=name, revision=len(self.run.changes), time=self.time, state=state or {}, rested=rested)
        self.run.checkpoints.append(shown)
        self._step += 1
        return self


def reference(history: History) -> Reference:
    history.run.plan = Plan("reference")
    return reference_of(history.run, history.run)


def obj(kind: str, name: str = "a", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{kind}-{name}", **more.pop("metadata", {})}
    return {"kind": kind, "metadata": metadata, **more}
