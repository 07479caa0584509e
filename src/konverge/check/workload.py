"""The workload when the user gives none: what users do with one sample.

It is small, since every plan repeats it: a crash after every write of ten steps is a hundred runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.check.inputs.admission import Admission
from konverge.check.inputs.changes import ChangeOfInput, changes
from konverge.check.inputs.fields import Field, fields
from konverge.check.inputs.samples import deletion, placed, subjects, version_of
from konverge.check.model import Action, Apply, Obj, Step

BUDGET = 6
"""Steps between the creation and the deletion."""


def default(
    samples: Sequence[Obj], definitions: Sequence[Obj], *, budget: int = BUDGET, namespace: str = "default"
) -> tuple[Step, ...]:
    """Create, scale, grow storage, switch parts on and off, change what reaches the children, delete, create again.

        steps = default(samples, definitions)

    Each change is of one field of the first sample that has a definition; the next one starts from where it is again as
    in the sample, but for scaling, which goes up and down, and for storage, which cannot shrink.
    """
    objects = [placed(sample, namespace, definitions) for sample in samples]
    create: tuple[Action, ...] = tuple(Apply(obj) for obj in objects)
    delete: tuple[Action, ...] = tuple(deletion(obj) for obj in reversed(objects))
    between = _between(objects, definitions, budget)
    return (Step("create", create), *between, Step("delete", delete), Step("create again", create))


def _between(objects: Sequence[Obj], definitions: Sequence[Obj], budget: int) -> list[Step]:
    known = subjects(objects, definitions)
    if not known or budget <= 0:
        return []
    sample, definition = known[0]
    admission = Admission(definition, version_of(sample))
    steps: list[Step] = []
    last: list[Step] = []
    for change in _chosen(fields(definition, version_of(sample), sample), sample, admission):
        made = _steps(change, sample)
        if len(steps) + len(last) + len(made) <= budget:
            (last if change.lasting else steps).extend(made)
    return steps + last


def _chosen(every: Sequence[Field], sample: Obj, admission: Admission) -> list[ChangeOfInput]:
    """One change of each sort, in the order of what they are worth to a run with a fault."""
    chosen: list[ChangeOfInput] = []
    for sort in (_is_scale, _is_storage, _is_switch, _is_carried, _is_service, _is_plain):
        candidates = [field for field in every if sort(field)]
        made = (change for field in candidates for change in changes(field, sample, admission) if not change.bad)
        made = (change for change in made if sort is not _is_storage or change.name == "grow")
        best = max(made, key=lambda change: change.worth - change.remote, default=None)
        if best is not None:
            chosen.append(best)
    return chosen


def _is_scale(field: Field) -> bool:
    return field.core == "Replicas" and not field.inside


def _is_storage(field: Field) -> bool:
    known = ("StorageSize", "Amounts", "ResourceRequirements", "VolumeResourceRequirements")
    return field.core in known and (field.given or field.depth <= 2)


def _is_switch(field: Field) -> bool:
    """A part that can be switched on: what is off in the sample is off because it is optional."""
    return (
        field.kind == "boolean"
        and not field.inside
        and field.name in ("enabled", "enable")
        and not (field.given or field.default)
    )


def _is_carried(field: Field) -> bool:
    """What an operator hands on to the pods."""
    return field.core in ("ResourceRequirements", "EnvVars", "Tolerations", "Labels", "Annotations") or (
        field.core == "Image" and field.given
    )


def _is_service(field: Field) -> bool:
    return field.core in ("ServiceType", "Port")


def _is_plain(field: Field) -> bool:
    return not field.core and field.given and field.kind in ("string", "integer", "map", "array")


def _steps(change: ChangeOfInput, sample: Obj) -> list[Step]:
    """The change in one step (two for a part that is off), and back; of storage only there, since it cannot shrink."""
    states = change.states[: 1 + (change.about[0] != change.field)]
    steps = [
        Step(f"{change.field}: {change.name}{_number(position)}", (Apply(state),), about=about, core=change.core)
        for position, (state, about) in enumerate(zip(states, change.about, strict=False))
    ]
    back = (
        [] if change.lasting else [Step(f"{change.field}: {change.name}, back", (Apply(sample),), about=change.field)]
    )
    return steps + back


def _number(position: int) -> str:
    return f" ({position + 1})" if position else ""


def basic(samples: Sequence[Obj], namespace: str = "default") -> tuple[Step, ...]:
    """Create, delete, and create again with the same name."""
    return default(samples, (), namespace=namespace)
