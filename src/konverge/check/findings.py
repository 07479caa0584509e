"""Alarms of many runs, made into findings: grouped by cause, the worst first.

One run of one cause raises many alarms: a claim that stays small also shows in the volume, the pod and the status. The
alarm that counts is the first divergence at the worst severity; the others are its details. Runs whose alarm is in the
same group (oracle, object, field) are one finding, and so are those in which others did the same to several objects.
What the reference itself shows is reported once, for the reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from konverge.check.differences import ABSENT
from konverge.check.folding import folded
from konverge.check.inputs import remainder
from konverge.check.model import SEVERITIES, Alarm, Edit, Finding, Plan, Run, Severity, Step, Task
from konverge.check.names import Names
from konverge.check.oracles.foreign import FOREIGN
from konverge.check.reference import Reference
from konverge.check.sentences import sentence

Group = tuple[str, str, str]
OURS = "konverge"
"""The oracle about defects of Konverge itself: its field is a sentence with names in it."""

DERIVED = frozenset(
    (
        "/pods",
        "/endpoints",
        "/persistentvolumes",
        "apps/replicasets",
        "apps/controllerrevisions",
        "discovery.k8s.io/endpointslices",
    )
)
"""Made by the cluster of what operators write: they differ because something else does."""


class Evidence:
    """A run that raised alarms, with what it was compared with."""

    def __init__(
        self, task: Task, run: Run, reference: Reference, alarms: Sequence[Alarm], *, after: float = 0.0
    ) -> None:
        """`after`: seconds of the search."""
        self.run, self.reference, self.after = run, reference, after
        self.alarms = in_order(alarms, run)
        self.task = _up_to(task, run, self.first) if self.alarms else task

    @property
    def first(self) -> Alarm:
        return self.alarms[0]


def with_steps(task: Task, steps: tuple[Step, ...]) -> Task:
    """The task with another workload."""
    if task.plan.steps is None:
        return msgspec.structs.replace(task, steps=steps)
    return msgspec.structs.replace(task, plan=msgspec.structs.replace(task.plan, steps=steps))


def _up_to(task: Task, run: Run, alarm: Alarm) -> Task:
    """Up to the step of an alarm. The second of two perturbations may come later: then all steps stay."""
    names = [step.name for step in run.steps]
    last = alarm.step.removesuffix(", then")
    if last not in names or len(task.plan.perturbations) > 1:
        return task
    needed = run.steps[: names.index(last) + 1]
    return task if needed == run.steps else with_steps(task, needed)


def in_order(alarms: Iterable[Alarm], run: Run) -> list[Alarm]:
    """The worst first; of those the first in time; of those what the operator wrote before what follows from it."""
    positions = {checkpoint.step: number for number, checkpoint in enumerate(run.checkpoints)}

    def key(alarm: Alarm) -> tuple[int, int, bool, bool]:
        resource = alarm.object.partition(" ")[0]
        resource = resource if "/" in resource else f"/{resource}"
        return (
            SEVERITIES.index(alarm.severity),
            positions.get(alarm.step, len(positions)),
            resource in DERIVED,
            alarm.field.startswith("status"),
        )

    return sorted(alarms, key=key)


LEAVES_NO_TRACE = frozenset(("configuration", "effect", "needless writes", "permissions", "status"))
"""Alarms after which the next change of a chain begins from a good state all the same."""


def first_turn(run: Run, alarms: Sequence[Alarm]) -> tuple[list[Alarm], Plan | None]:
    """The alarms of a chain of changes up to the first that spoils what is behind it, and that as another plan."""
    positions = {step.name: number for number, step in enumerate(run.steps)}
    serious = [item for item in alarms if item.severity != "low" and item.oracle not in LEAVES_NO_TRACE and item.step]
    if not serious:
        return list(alarms), None
    first = min(serious, key=lambda alarm: positions.get(alarm.step, len(positions)))
    rest = remainder(run.plan, first.step)
    last = len(run.steps) - (len(rest.steps or ()) - 1 if rest is not None else 0)
    return [alarm for alarm in alarms if positions.get(alarm.step, 0) < last], rest


def by_chance(alarms: Sequence[Alarm]) -> tuple[list[Alarm], list[Alarm]]:
    """The alarms of a run without a fault, and those of them that tell it from the reference after the same steps: it
    is one more undisturbed run, and what differs between such says nothing."""
    return (
        [alarm for alarm in alarms if alarm.oracle not in BESIDE],
        [alarm for alarm in alarms if alarm.oracle in BESIDE],
    )


BESIDE = frozenset(("state", "deletion", "secrets"))
"""Oracles that compare with the reference, step by step."""


def by_cause(run: Run, alarms: Sequence[Alarm]) -> list[list[Alarm]]:
    """Alarms of one run by what led to them: one perturbation, or one field that was changed."""
    if run.plan.perturbations or run.plan.steps is None:
        return [list(alarms)] if alarms else []
    fields = {step.name: step.about or step.name for step in run.steps}
    causes: dict[str, list[Alarm]] = {}
    for alarm in alarms:
        causes.setdefault(fields.get(alarm.step, ""), []).append(alarm)
    return list(causes.values())


class Findings:
    """Collects evidence; `add` says whether it is the first of its group."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._groups: dict[Group, list[Evidence]] = {}
        self._known: set[Group] = set()
        """Groups that the reference shows by itself, or by chance."""
        self._seen_by_chance: set[Group] = set()

    def add_reference(self, task: Task, run: Run, reference: Reference, alarms: Iterable[Alarm]) -> None:
        """What a run in which nothing went wrong shows: one finding for each oracle, severity and step."""
        causes: dict[tuple[str, str, str], list[Alarm]] = {}
        for alarm in alarms:
            if group_of(alarm) not in self._known:
                self._known.add(group_of(alarm))
                causes.setdefault((alarm.oracle, alarm.severity, alarm.step), []).append(alarm)
        for mine in causes.values():
            evidence = Evidence(task, run, reference, mine)
            self._groups[group_of(evidence.first)] = [evidence]

    def add(
        self, task: Task, run: Run, reference: Reference, alarms: Iterable[Alarm], *, after: float = 0.0
    ) -> Finding | None:
        """The finding, if this evidence is the first for it."""
        fresh = self.fresh(alarms)
        if not fresh:
            return None
        evidence = Evidence(task, run, reference, fresh, after=after)
        group = cause_of(evidence)
        self._groups.setdefault(group, []).append(evidence)
        return self.finding(group) if len(self._groups[group]) == 1 else None

    def fresh(self, alarms: Iterable[Alarm]) -> list[Alarm]:
        """Those that no undisturbed run shows."""
        return [alarm for alarm in alarms if group_of(alarm) not in self._known]

    def forget(self, alarms: Iterable[Alarm]) -> None:
        """What a run in which nothing went wrong shows beside the reference. Two that do: it differs after faults, too,
        by chance. One alone may have had bad luck that no other has."""
        seen = {group_of(alarm) for alarm in alarms}
        chance = (seen & self._seen_by_chance) - self._known
        self._seen_by_chance |= seen
        if not chance:
            return
        self._known |= chance
        every = [evidence for group in self._groups.values() for evidence in group]
        self._groups = {}
        for evidence in every:
            if evidence.task.plan.pattern == "reference":
                self._groups.setdefault(group_of(evidence.first), []).append(evidence)
                continue
            evidence.alarms = [alarm for alarm in evidence.alarms if group_of(alarm) not in self._known]
            if evidence.alarms:
                self._groups.setdefault(cause_of(evidence), []).append(evidence)

    @property
    def groups(self) -> list[Group]:
        """The worst first; of those, what is seen in more runs."""

        def key(group: Group) -> tuple[int, int]:
            return _severity(self.evidence(group)[0]), -len(self._groups[group])

        return sorted(self._groups, key=key)

    def has(self, least: Severity, *, lasting: bool = False) -> bool:
        """Whether anything is as bad as that; `lasting`: in the reference, or when it was looked at again."""
        return any(
            _severity(evidence) <= SEVERITIES.index(least)
            and (not lasting or evidence.task.patience > 0 or evidence.task.plan.pattern == "reference")
            for every in self._groups.values()
            for evidence in every
        )

    def evidence(self, group: Group) -> list[Evidence]:
        """The worst first; of those the shortest: with the fewest perturbations and steps."""
        return sorted(
            self._groups[group],
            key=lambda item: (_severity(item), len(item.task.plan.perturbations), len(item.run.checkpoints)),
        )

    def finding(self, group: Group) -> Finding:
        every = self.evidence(group)
        best = every[0]
        return Finding(
            alarm=best.first,
            task=best.task,
            sentence=described(best, self._names),
            runs=len(every),
            patterns=tuple(dict.fromkeys(item.task.plan.pattern for item in every)),
            details=tuple(details(every)),
            after=min(item.after for item in every),
        )


def _severity(evidence: Evidence) -> int:
    return SEVERITIES.index(evidence.first.severity)


def described(evidence: Evidence, names: Names) -> str:
    plan = evidence.task.plan
    return sentence(plan, evidence.first, evidence.run.steps, evidence.reference, names)


def group_of(alarm: Alarm) -> Group:
    """With generated names folded; members of one StatefulSet are alike.

    >>> group_of(Alarm(oracle="state", severity="high", object="pods default/web-6d4cf56db6-x7k2p", sentence=""))
    ('state', 'pods default/web-*-*', '')
    >>> group_of(Alarm(oracle="state", severity="high", object="persistentvolumeclaims default/data-db-2", sentence=""))
    ('state', 'persistentvolumeclaims default/data-db-*', '')
    """
    field = re.sub(r"[\w.]*-[\w.-]*", "*", alarm.field) if alarm.oracle == OURS else alarm.field
    name = folded(alarm.object)
    if name.startswith(_OF_MEMBERS):
        name = re.sub(r"-\d+$", "-*", name)
    return alarm.oracle, name, field


def cause_of(evidence: Evidence) -> Group:
    """The group of a finding: that of its alarm, or what others did and was not put right, whatever object they chose;
    or an object that stays as a mistake of the user left it, whatever the mistake was; or a part of an object that
    keeps what was added to it, whatever that was.

    An operator that does not look after what it has made, or takes objects by their name, mostly does so with every
    kind of them: it is one mistake, and there is a plan for each kind. And one that puts what is asked for on top of
    what is there never takes away any field of it.
    """
    first, plan = evidence.first, evidence.task.plan
    edited = [folded(str(item.ref)) for item in plan.perturbations if isinstance(item, Edit)]
    if first.object in edited:
        return first.oracle, OF_OTHERS, "metadata.labels" if first.field.startswith("metadata.labels") else first.field
    if first.oracle == "recovery":  # whoever waits for health before anything else does so after any mistake
        return first.oracle, group_of(first)[1], ""
    if first.oracle == "path-dependence" and _is_kept(first):
        return first.oracle, group_of(first)[1], f"{_parent(first.field)}.*"
    if first.oracle == "foreign" and evidence.run.steps[0].name.startswith(FOREIGN.partition("{")[0]):
        return first.oracle, OF_OTHERS, first.field if first.field in ("", "status") else "taken"
    return group_of(first)


def _is_kept(alarm: Alarm) -> bool:
    """Whether a field is there that was not there before the user asked for it."""
    return bool(alarm.field) and alarm.expected == ABSENT and not alarm.step.endswith(", created again")


def _parent(field: str) -> str:
    """
    >>> _parent("spec.template.spec.containers[a.b].env"), _parent("metadata.annotations"), _parent("data")
    ('spec.template.spec.containers', 'metadata', '')
    """
    return re.sub(r"\[[^]]*\]", "", field).rpartition(".")[0]


OF_OTHERS = "changed by others"
"""In a group, in place of the object."""

_OF_MEMBERS = ("pods ", "persistentvolumeclaims ", "persistentvolumes ")


def details(every: Sequence[Evidence]) -> list[Alarm]:
    """What else the runs of a finding show, each group once: what they are about comes first."""
    main = group_of(every[0].first)
    others: dict[Group, Alarm] = {}
    for alarm in (*(evidence.first for evidence in every), *(alarm for evidence in every for alarm in evidence.alarms)):
        others.setdefault(group_of(alarm), alarm)
    others.pop(main, None)
    return list(others.values())
