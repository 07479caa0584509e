"""A restart of the operator alone replaces no pods.

What varies from run to run, and what sums up something else, is not compared with the reference. In one run it is:
where the undisturbed operator leaves the template of a workload as it was before a step, one that was restarted leaves
it as well. A digest that is made with a seed of the process, of a map whose order varies, or of the time changes with
every restart, and all pods are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from konverge.check.differences import Masks, differences, is_digest
from konverge.check.model import Alarm, Checkpoint, Run
from konverge.check.oracles.state import pairs
from konverge.check.reference import Reference

_WORKLOADS = ("apps/statefulsets ", "apps/deployments ", "apps/daemonsets ")


def restarts(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per workload."""
    if run is reference.run or run.plan.pattern != "crash":
        return
    said: set[str] = set()
    for (before, expected_before), (after, expected_after) in pairwise(pairs(run, reference)):
        for key in after.state:
            if key in said or not key.startswith(_WORKLOADS) or _changes(key, expected_before, expected_after):
                continue
            for path in _changes(key, before, after):
                if _counts(key.partition(" ")[0], path, reference.masks):
                    said.add(key)
                    yield _alarm(key, path, after)
                    break


def _changes(key: str, before: Checkpoint, after: Checkpoint) -> list[str]:
    """The fields of a template that are not as before, if it is the same workload."""
    one, other = before.state.get(key), after.state.get(key)
    if one is None or other is None or one["metadata"].get("uid") != other["metadata"].get("uid"):
        return []
    earlier, later = ((item.get("spec") or {}).get("template") for item in (one, other))
    return [path for path, _, _ in differences(earlier, later, "spec.template")]


def _counts(resource: str, path: str, masks: Masks) -> bool:
    """Whether it is not compared with the reference, and that is not because the user does not want it to be."""
    return (is_digest(path) or masks.hides(resource, path)) and not masks.names(resource, path)


def _alarm(key: str, path: str, checkpoint: Checkpoint) -> Alarm:
    return Alarm(
        oracle="restarts",
        severity="medium",
        object=key,
        field=path,
        sentence=f"{path} of {key} is another one, which replaces its pods; without the fault it stays as it was",
        step=checkpoint.step,
    )
