"""Changes of a custom resource that its API server accepts, one field each, and each with its way back."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from konverge.apiserver.field_errors import ErrorType, FieldError
from konverge.check.inputs import paths, values
from konverge.check.inputs.admission import Admission
from konverge.check.inputs.core_types import Schema
from konverge.check.inputs.fields import Field
from konverge.check.inputs.mutations import mutations
from konverge.check.inputs.paths import ABSENT
from konverge.check.inputs.proposals import Proposal
from konverge.check.inputs.scenarios import SCENARIOS
from konverge.check.model import Obj


class ChangeOfInput(msgspec.Struct, frozen=True, kw_only=True):
    """Custom resources that follow the sample; afterwards it is as in the sample again."""

    field: str
    path: paths.Path
    core: str
    name: str
    """ "scale up"; with the field it is the name of a step."""
    states: tuple[Obj, ...]
    """The custom resource, in turn."""
    about: tuple[str, ...]
    """For each state, the path of the field that it changes: first the switch of a part that is off, for instance."""
    bad: bool = False
    lasting: bool = False
    worth: int = 0
    remote: int = 0
    """What it is worth less for being far from the root, inside a type that operators mostly carry over, or in a part
    that the sample does not have."""
    objects: tuple[Obj, ...] = ()
    """What has to be created before."""


def changes(field: Field, sample: Obj, admission: Admission) -> list[ChangeOfInput]:
    """What users do with a field, the most valuable first; only what the schema and the rules accept.

    for change in changes(field, sample, Admission(definition, "v1")):
        print(change.field, change.name)
    """
    value = paths.get(sample, field.path)
    made = [_change(field, proposal, sample, admission) for proposal in _proposals(field, value)]
    return sorted((change for change in made if change is not None), key=lambda change: change.remote - change.worth)


def _proposals(field: Field, value: Any) -> Iterator[Proposal]:
    scenario = SCENARIOS.get(field.core)
    if scenario is None:
        yield from mutations(field, value)
        return
    known = list(scenario(field, value))
    names = {proposal.name for proposal in known}
    yield from known
    yield from (item for item in mutations(field, value) if item.name.startswith("remove") and item.name not in names)


def _change(field: Field, proposal: Proposal, sample: Obj, admission: Admission) -> ChangeOfInput | None:
    base, states, about = sample, [], []
    if field.switch and not field.given and paths.get(sample, field.switch) is not True:
        base = with_value(sample, field.switch, True, admission)
        if admission.errors(base, sample):
            return None
        states.append(base)
        about.append(paths.text(field.switch))
    last = base
    for value in proposal.values:
        state = accepted(base, last, field, value, admission)
        if state is not None and state != last:
            states.append(state)
            about.append(str(field))
            last = state
    if last is base:
        return None
    lasting = proposal.lasting or bool(admission.errors(sample, last))  # the API server refuses the way back
    return ChangeOfInput(
        field=str(field),
        path=field.path,
        core=field.core,
        name=proposal.name,
        states=tuple(states),
        about=tuple(about),
        bad=proposal.bad,
        lasting=lasting,
        worth=proposal.worth + (8 if field.given else 0),
        remote=4 * max(0, field.depth - 2)
        + (12 if field.inside else 0)
        + (0 if _is_in_use(field, sample) else _UNUSED),
        objects=proposal.objects,
    )


_UNUSED = 16
"""What a field is worth less in a part of the custom resource that the sample does not have: most likely it is off."""


def _is_in_use(field: Field, sample: Obj) -> bool:
    return paths.get(sample, field.path[:-1]) is not ABSENT


def accepted(base: Obj, last: Obj, field: Field, value: Any, admission: Admission) -> Obj | None:
    """The custom resource with another value, if the API server takes it: repaired where a rule asks for more."""
    try:
        state = with_value(base, field.path, value, admission)
    except (KeyError, TypeError, IndexError):
        return None
    before = paths.get(base, field.path)
    for _ in range(MOST_REPAIRS):
        errors = admission.field_errors(state, last)
        if not errors:
            return state
        candidates = _repaired(state, field, errors, admission)
        better = (item for item in candidates if len(admission.field_errors(item, last)) < len(errors))
        chosen = next(better, None)
        if chosen is None or paths.get(chosen, field.path) == before:
            return None
        state = chosen
    return None


MOST_REPAIRS = 4
"""Fields that are changed beside the one in question, because a rule asks for it."""


def with_value(obj: Obj, path: paths.Path, value: Any, admission: Admission) -> Obj:
    """A copy with a value, and with the parents that it needs; parents stay when their last value is removed."""
    made = copy.deepcopy(obj)
    here: Any = made
    for position, part in enumerate(path[:-1]):
        place = path[: position + 1]
        if isinstance(part, int):
            if part == len(here):
                here.append(values.item(admission.schema_at(place), str(path[position - 1]), 1))
        elif here.get(part) is None:
            here[part] = _parent(path[position + 1], part, admission.schema_at(place))
        here = here[part]
    last = path[-1]
    if value is ABSENT:
        if paths.get(here, (last,)) is not ABSENT:
            del here[last]
    else:
        here[last] = copy.deepcopy(value)
    return made


def _parent(below: str | int, name: str, schema: Schema) -> Any:
    made = values.smallest(schema, name)
    wanted = list if isinstance(below, int) else dict
    return copy.deepcopy(made) if isinstance(made, wanted) else wanted()


# ------------------------------------------------------------------ rules


def _repaired(state: Obj, field: Field, errors: Sequence[Any], admission: Admission) -> Iterator[Obj]:
    """Variants in which what is missing is there, or in which another field that a rule names has another value."""
    fields_missing = [error for error in errors if isinstance(error, FieldError) and error.type is ErrorType.REQUIRED]
    if fields_missing:
        filled = copy.deepcopy(state)
        for error in fields_missing:
            _fill(filled, paths.parsed(error.path), admission)
        yield filled
    for error in errors:
        if isinstance(error, FieldError) and error.type is ErrorType.INVALID:
            yield from _variants(state, field, error, admission)


def _fill(obj: Obj, path: paths.Path, admission: Admission) -> None:
    parent = paths.get(obj, path[:-1])
    if isinstance(parent, dict):
        name = str(path[-1])
        parent.setdefault(name, values.smallest(admission.schema_at(path), name))


MOST_VARIANTS = 12


def _variants(state: Obj, field: Field, error: FieldError, admission: Admission) -> Iterator[Obj]:
    """A rule that fails names the fields it is about: each of them with other values, one at a time."""
    around = paths.parsed(error.path)
    if around != field.path[: len(around)] and paths.get(state, around[:-1]) is not ABSENT:
        for value in _others(admission.schema_at(around), str(around[-1]), paths.get(state, around)):
            yield with_value(state, around, value, admission)
    while around and not isinstance(paths.get(state, around), dict):
        around = around[:-1]
    known = admission.schema_at(around).get("properties") or {}
    mentioned = [name for name in known if re.search(rf"\b{re.escape(name)}\b", error.detail)]
    made = 0
    for name in mentioned:
        path = (*around, name)
        if path == field.path[: len(path)]:
            continue
        for value in _others(known[name], name, paths.get(state, path)):
            made += 1
            if made > MOST_VARIANTS:
                return
            yield with_value(state, path, value, admission)


def _others(schema: Schema, name: str, now: Any) -> Iterator[Any]:
    """Other values of a field that stands in the way, or that is missing."""
    if now is not ABSENT:
        yield ABSENT
    if schema.get("type") == "boolean":
        yield from (choice for choice in (True, False) if choice is not now)
    elif schema.get("enum"):
        yield from (choice for choice in schema["enum"] if choice != now)
    elif now is ABSENT:
        yield values.smallest(schema, name)
