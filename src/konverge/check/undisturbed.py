"""Whether a run in which nothing goes wrong can be a reference, and what keeps it from being a good one."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import Run, Step
from konverge.check.reference import Reference


def without_last(steps: tuple[Step, ...], run: Run) -> tuple[Step, ...]:
    """The workload without the change after which a run without faults did not go on; empty if it went to its end.

    An operator that crashes again and again, or never rests, after one setting can still be tested with the others.
    """
    if len(run.checkpoints) >= len(steps):
        return ()
    about = next((step.about for step in steps if step.name == last_step(run)), "")
    return tuple(step for step in steps if step.about != about) if about else ()


def last_step(run: Run) -> str:
    """The name of the last step of a run that was reached."""
    return run.checkpoints[-1].step.removesuffix(", then")


def why_no_reference(run: Run) -> str:
    """Why a run without perturbations is no reference; empty if it is one."""
    if run.problem:
        return f"the operator could not be run: {run.problem}"
    if not run.checkpoints:
        return "the operator could not be run: it ended before the first step"
    first = run.checkpoints[0]
    if first.refused:
        return f"the API server refused the sample: {first.refused}; correct it, or give another with --sample"
    if run.exits and not any(checkpoint.rested for checkpoint in run.checkpoints):
        return f"the operator ended by itself: {run.exits[-1].error}"
    if not first.rested:
        return (
            "the operator does not come to rest with the sample: it still changes something, or waits for something "
            "that is not there; give stand-ins for what it talks to with --simulate"
        )
    if not any(exchange.place is not None for exchange in run.exchanges):
        return (
            "the operator wrote nothing after the sample was created: check that it watches the sample's kind and "
            "namespace, and that it may (its log is above)"
        )
    return ""


def unhealthy(reference: Reference) -> Iterator[str]:
    """What keeps a reference from being a good one, without making it useless."""
    for checkpoint in reference.run.checkpoints:
        if not checkpoint.rested:
            yield f"without any fault, the step {checkpoint.step!r} never came to rest: nothing after it was tested"
        elif checkpoint.refused:
            yield f"the API server refused the step {checkpoint.step!r}: {checkpoint.refused}"
        unready = sorted(key for key, obj in checkpoint.state.items() if key.startswith("pods ") and not _ready(obj))
        if unready:
            yield (
                f"without any fault, {len(unready)} pods are not ready after the step {checkpoint.step!r} "
                f"({unready[0]}): what needs them was not tested; --simulate gives them what they lack"
            )
            return


def _ready(pod: dict[str, object]) -> bool:
    status = pod.get("status")
    if not isinstance(status, dict) or status.get("phase") == "Succeeded":
        return isinstance(status, dict)
    conditions = status.get("conditions") or []
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
