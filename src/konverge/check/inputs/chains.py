"""Runs that are made of changes of the custom resource: several in a row, each with its way back.

A `Turn` is one change and the way back to the sample. A chain is a run of several turns: after each, the cluster has to
be as before (`oracles.path_dependence`, `oracles.recovery`). Whatever cannot be undone ends its chain: what it led to
has to be the same as what a new custom resource with the same spec leads to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from konverge import clock
from konverge.check.inputs import paths
from konverge.check.inputs.admission import Admission
from konverge.check.inputs.asked_for import is_protected, keeps_data
from konverge.check.inputs.changes import ChangeOfInput, changes, with_value
from konverge.check.inputs.core_types import snake
from konverge.check.inputs.fields import fields
from konverge.check.inputs.references import references
from konverge.check.inputs.samples import by_kind, deletion, placed, version_of
from konverge.check.model import Action, Apply, Obj, Pattern, Plan, Step

LENGTH: dict[Pattern, int] = {"input": 3, "recovery": 2}
"""Turns of a chain, by pattern: what is behind the first alarm of a run says nothing, and mistakes often raise one."""
TOGETHER = 8
"""Changes that are made one on top of the other before the custom resource is deleted and created as it then is."""
MISTAKEN = 2
"""Mistakes of each custom resource with which it is created as well."""
KEPT = 75
"""What it is worth to ask that data be kept, and to delete the custom resource."""
ROTATED, MISTAKEN_REFERENCE = 90, 60
"""What it is worth to give a Secret another content, and to empty it or take it away."""
_AGAIN = 12
"""What a change is worth less for each that was like it: the same type under the same name in another component."""


_FIRST = 4
"""The first change of a kind counts as if it were so much nearer to the root: there may be no nearer one."""
_STOPS = re.compile(r"paus|suspend|hibernat|sleep|protect|manage|stop|skip|disable|maintenance|run(ning)?$")
"""Fields after which an operator rightly does nothing with others."""


class Turn(msgspec.Struct, frozen=True):
    """Steps of one change, and of the way back if there is one."""

    steps: tuple[Step, ...]
    worth: float
    bad: bool = False
    lasting: bool = False
    kind: tuple[str, str, str] = ("", "", "")
    """The type of the field, its name, and what is done with it: the annotations of a pod and those of a Service are
    of one type, and an operator has a place of its own for each."""
    change: ChangeOfInput | None = None
    sample: Obj = {}


def campaign(
    samples: Sequence[Obj],
    definitions: Sequence[Obj],
    seed: int = 0,
    *,
    namespace: str = "default",
    apart: bool = False,
) -> Iterator[Plan]:
    """Plans of the patterns "input" and "recovery", the most valuable first; every field is changed once, then again.

    for plan in campaign(samples, definitions):
        print([step.name for step in plan.steps])

    `apart`: each change has a run of its own, for operators that need long for one.

    After an alarm that leaves the run in a bad state, `remainder` gives what was behind it.
    """
    objects = [placed(sample, namespace, definitions) for sample in samples]
    create = Step("create", tuple(Apply(obj) for obj in objects))
    chance = clock.seeded(seed)
    chains: list[tuple[float, Plan]] = []
    for alike, definition in by_kind(objects, definitions):
        ranked = _ranked(_turns(alike, definition, objects, namespace), chance if seed else None)
        for number, sample in enumerate(alike):
            turns = [turn for turn in ranked if turn.sample is sample]
            for pattern, length in LENGTH.items():
                chosen = [turn for turn in turns if turn.bad == (pattern == "recovery")]
                chains += _chained(pattern, chosen, create, objects, sample, 1 if apart else length)
            if not number:
                chains += _together(turns, create, sample, Admission(definition, version_of(sample)))
                chains += _from_the_beginning(turns, create, objects, sample)
            chains += _kept(turns, create, objects, sample)
    yield from (plan for _, plan in sorted(chains, key=lambda item: -item[0]))


def _turns(alike: Sequence[Obj], definition: Obj, objects: Sequence[Obj], namespace: str) -> Iterator[Turn]:
    """Of the first sample of a kind every field; of each other one those that it sets, and that an earlier one does not
    set in the same way. What they refer to, once."""
    known: set[str] = set()
    values: dict[str, list[Any]] = {}
    for number, sample in enumerate(alike):
        admission = Admission(definition, version_of(sample))
        for field in fields(definition, version_of(sample), sample):
            earlier = values.setdefault(str(field), [])
            value = paths.get(sample, field.path)
            if number and (not field.given or value in earlier):
                continue
            earlier.append(value)
            for change in changes(field, sample, admission):
                yield _turn(change, sample, namespace)
        for name, there, back, bad in references(objects, sample):
            if name not in known:
                known.add(name)
                yield _turn_of_reference(name, there, back, bad, sample)


def _turn(change: ChangeOfInput, sample: Obj, namespace: str) -> Turn:
    beside = [placed(obj, sample["metadata"].get("namespace", namespace)) for obj in change.objects]
    before: tuple[Action, ...] = tuple(Apply(obj) for obj in beside)
    after: tuple[Action, ...] = tuple(deletion(obj) for obj in beside)
    steps: list[Step] = []
    for number, (state, about) in enumerate(zip(change.states, change.about, strict=True)):
        name = f"{change.field}: {change.name}" + (f" ({number + 1})" if number else "")
        mistake = change.bad and about == change.field
        actions = (*(before if about == change.field else ()), Apply(state))
        steps.append(
            Step(
                name,
                actions,
                about=about,
                core=change.core if about == change.field else "",
                expect="harmless" if mistake else "",
            )
        )
    if not change.lasting:
        steps.append(Step(f"{change.field}: {change.name}, back", (Apply(sample), *after), about=change.field))
    kind = (change.core, str(change.path[-1]), change.name)
    return Turn(tuple(steps), change.worth, change.bad, change.lasting, kind, change, sample)


def _turn_of_reference(name: str, there: Action, back: Action, bad: bool, sample: Obj) -> Turn:
    """What users do with a Secret or a ConfigMap that the custom resource refers to."""
    steps = (
        Step(name, (there,), expect="harmless" if bad else ""),
        Step(f"{name}, back", (back,)),
    )
    worth = MISTAKEN_REFERENCE if bad else ROTATED
    return Turn(steps, worth, bad, False, ("reference", "", name.rpartition(" ")[2]), sample=sample)


def _ranked(turns: Iterable[Turn], chance: Random | None) -> list[Turn]:
    """By worth; the second change of a field and the second of a kind are worth less than the first of others.

    Mistakes are counted for themselves: they have chains of their own.
    """
    seen: Counter[object] = Counter()
    ranked = []
    for turn in sorted(turns, key=lambda item: _remote(item) - item.worth):
        same_field = (turn.change.field if turn.change is not None else turn.kind, turn.bad)
        remote = _remote(turn) / (1 if seen[turn.kind] else _FIRST)
        worth = turn.worth - remote - _AGAIN * (seen[turn.kind] + seen[same_field])
        worth += chance.uniform(-5, 5) if chance is not None else 0.0
        seen[turn.kind] += 1
        seen[same_field] += 1
        ranked.append(msgspec.structs.replace(turn, worth=worth))
    return sorted(ranked, key=lambda item: -item.worth)


def _remote(turn: Turn) -> int:
    return turn.change.remote if turn.change is not None else 0


def _chained(
    pattern: Pattern, turns: Sequence[Turn], create: Step, objects: Sequence[Obj], sample: Obj, size: int
) -> Iterator[tuple[float, Plan]]:
    """Chains of turns that can be undone, each with at most one at its end that cannot."""
    lasting = [turn for turn in turns if turn.lasting]
    others = [turn for turn in turns if not turn.lasting]
    while others or lasting:
        chosen, others = others[:size], others[size:]
        last = lasting[:1] if not chosen or not others or (lasting and lasting[0].worth >= chosen[-1].worth) else []
        lasting = lasting[len(last) :]
        steps = [step for turn in sorted(chosen, key=_scales) for step in turn.steps]
        for turn in last:
            steps += [*turn.steps, *_recreation(turn.steps[-1], objects, sample)]
        yield max(turn.worth for turn in (*chosen, *last)), Plan(pattern, steps=(create, *steps))


def _scales(turn: Turn) -> bool:
    """Some operators cannot scale down: what comes after would be tried on more members than the sample has."""
    return turn.kind[0] == "Replicas"


def _recreation(step: Step, objects: Sequence[Obj], sample: Obj) -> Iterator[Step]:
    """Delete, and create with the spec that was there: the state has to be the same."""
    applied = [action for action in step.actions if isinstance(action, Apply) and _is_same(action.object, sample)]
    made = tuple(Apply(applied[-1].object) if _is_same(obj, sample) else Apply(obj) for obj in objects)
    yield Step(f"{step.name}, deleted", tuple(deletion(obj) for obj in reversed(objects)))
    yield Step(f"{step.name}, created again", made, about=step.about)


def _is_same(obj: Obj, other: Obj) -> bool:
    return (obj["kind"], obj["metadata"]["name"]) == (other["kind"], other["metadata"]["name"])


def _together(turns: Sequence[Turn], create: Step, sample: Obj, admission: Admission) -> Iterator[tuple[float, Plan]]:
    """Changes one on top of the other, and then the custom resource deleted and created as it is by then."""
    usable = [turn.change for turn in turns if turn.change is not None and not turn.bad and not turn.lasting]
    usable = [change for change in usable if not change.objects and not _STOPS.search(snake(change.field))]
    for start in range(0, len(usable), TOGETHER):
        current, steps = sample, []
        for change in usable[start : start + TOGETHER]:
            following = _on_top(current, change, admission)
            if following is not None:
                current = following
                steps.append(Step(f"{change.field}: {change.name} too", (Apply(current),), about=change.field))
        if len(steps) > 1:
            tail = _recreation(steps[-1], [sample], sample)
            worth = usable[start].worth - 2 * _AGAIN
            yield worth, Plan("input", steps=(create, *steps, *tail))


def _from_the_beginning(
    turns: Sequence[Turn], create: Step, objects: Sequence[Obj], sample: Obj
) -> Iterator[tuple[float, Plan]]:
    """A custom resource that is created with a mistake, which is then corrected: it has never been well before."""
    mistakes = [turn for turn in turns if turn.bad and turn.change is not None and not turn.lasting]
    for turn in mistakes[:MISTAKEN]:
        wrong = next(step for step in turn.steps if step.expect)
        deleted, created = _recreation(wrong, objects, sample)
        beside = tuple(
            item for item in wrong.actions if not (isinstance(item, Apply) and _is_same(item.object, sample))
        )
        created = msgspec.structs.replace(
            created, name=f"{wrong.name}, from the beginning", actions=(*beside, *created.actions), expect="harmless"
        )
        yield turn.worth - 2 * _AGAIN, Plan("recovery", steps=(create, deleted, created, turn.steps[-1]))


def _kept(turns: Sequence[Turn], create: Step, objects: Sequence[Obj], sample: Obj) -> Iterator[tuple[float, Plan]]:
    """The custom resource is asked to keep its data, or is no longer protected from deletion, and deleted."""
    for turn in turns:
        for step in turn.steps:
            asked = [item.object for item in step.actions if isinstance(item, Apply) and _is_same(item.object, sample)]
            if not turn.bad and asked and _shows_what_is_kept(asked[-1], sample):
                deleted, _ = _recreation(step, objects, sample)
                yield KEPT, Plan("input", steps=(create, step, deleted))


def _shows_what_is_kept(asked: Obj, sample: Obj) -> bool:
    """Whether its deletion shows what the deletion of the sample does not show."""
    is_other = keeps_data(asked) != keeps_data(sample) or is_protected(sample)
    return bool(keeps_data(asked)) and not is_protected(asked) and is_other


def _on_top(current: Obj, change: ChangeOfInput, admission: Admission) -> Obj | None:
    value = paths.get(change.states[-1], change.path)
    try:
        made = with_value(current, change.path, value, admission)
    except (KeyError, TypeError, IndexError):
        return None
    return made if made != current and not admission.errors(made, current) else None


def with_recreation(plan: Plan, step: str) -> Plan | None:
    """The turn of a step once more, and then the custom resource deleted and created as the step had it.

    A change that led to nothing is a mistake of the operator if a new custom resource leads to something else.

    >>> sample, changed = (Apply({"kind": "A", "metadata": {"name": "a"}, "spec": n}) for n in (1, 2))
    >>> steps = (Step("create", (sample,)), Step("x: up", (changed,)), Step("x: up, back", (sample,)))
    >>> [step.name for step in with_recreation(Plan("input", steps=steps), "x: up").steps]
    ['create', 'x: up', 'x: up, deleted', 'x: up, created again']
    """
    steps = plan.steps or ()
    names = [item.name for item in steps]
    if step not in names or step.endswith(" too"):
        return None
    position = names.index(step)
    begin = max(number for number in range(position) if number == 0 or names[number].endswith(_ENDS)) + 1
    objects = [action.object for action in steps[0].actions if isinstance(action, Apply)]
    changed = [action.object for action in steps[position].actions if isinstance(action, Apply)]
    sample = next((obj for obj in objects if changed and _is_same(obj, changed[-1])), None)
    if sample is None:
        return None
    made = (steps[0], *steps[begin : position + 1], *_recreation(steps[position], objects, sample))
    return msgspec.structs.replace(plan, steps=made)


_ENDS = (", back", ", created again")
"""How the last step of a turn is named."""


def remainder(plan: Plan, step: str) -> Plan | None:
    """What a plan of the campaign had behind the turn of this step: after an alarm, it starts from the sample again.

    >>> steps = [Step(name, ()) for name in ("create", "a: up", "a: up, back", "b: up", "b: up, back")]
    >>> [step.name for step in remainder(Plan("input", steps=tuple(steps)), "a: up").steps]
    ['create', 'b: up', 'b: up, back']
    """
    steps = plan.steps or ()
    names = [item.name for item in steps]
    if step not in names:
        return None
    position = names.index(step)
    while position < len(names) - 1 and not names[position].endswith((*_ENDS, "create")):
        position += 1
    rest = steps[position + 1 :]
    return msgspec.structs.replace(plan, steps=(steps[0], *rest)) if rest else None
