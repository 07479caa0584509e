"""How alarms become findings: which counts, what is one cause, and what a chain of changes still owes."""

from __future__ import annotations

import msgspec
import pytest

from konverge.check.differences import ABSENT, Masks
from konverge.check.findings import Evidence, Findings, by_cause, by_chance, first_turn, group_of, in_order
from konverge.check.model import (
    Alarm,
    Checkpoint,
    Crash,
    Edit,
    Place,
    Plan,
    Ref,
    Run,
    Setup,
    Severity,
    Step,
    Subject,
    Task,
)
from konverge.check.names import Names
from konverge.check.planning import planner_for
from konverge.check.reference import Reference
from konverge.check.snapshot import Counted, Snapshot

NAMES = ("create", "a: up", "a: up, back", "b: up", "b: up, back")
STEPS = tuple(Step(name, (), about=name.partition(":")[0] if ":" in name else "") for name in NAMES)
CHAIN = Plan("input", steps=STEPS)
CRASH = Plan("crash", (Crash(Place("create", "/pods", "default", "x")),))


def alarm(
    object_: str, step: str = "create", severity: Severity = "high", oracle: str = "state", field: str = ""
) -> Alarm:
    return Alarm(oracle=oracle, severity=severity, object=object_, field=field, sentence=object_, step=step)


def run_of(plan: Plan) -> Run:
    run = Run(plan=plan, seed=0, steps=STEPS)
    run.checkpoints = [Checkpoint(step=step.name, revision=0, time=0.0, state={}) for step in STEPS]
    return run


def task_of(plan: Plan) -> Task:
    return Task(subject=Subject(), setup=Setup(), steps=STEPS, plan=plan)


REFERENCE = Reference(run=run_of(Plan("reference")), masks=Masks())


@pytest.mark.spec("K-45")
def test_the_first_divergence_of_the_worst_severity_counts() -> None:
    mild = alarm("services default/s", severity="low")
    pod = alarm("pods default/web-0", "a: up")
    status = alarm("apps/statefulsets default/web", "a: up", field="status.replicas")
    cause = alarm("apps/statefulsets default/web", "a: up", field="spec.replicas")
    later = alarm("services default/s", "b: up")
    assert in_order([mild, later, pod, status, cause], run_of(CRASH)) == [cause, status, pod, later, mild]


@pytest.mark.spec("K-45")
def test_runs_of_one_group_are_one_finding_with_everything_else_as_details() -> None:
    findings = Findings(Names())
    claim, pod, other = (alarm(f"{kind} default/x") for kind in ("persistentvolumeclaims", "pods", "services"))
    assert findings.add(task_of(CRASH), run_of(CRASH), REFERENCE, [pod, claim]) is not None
    assert findings.add(task_of(CRASH), run_of(CRASH), REFERENCE, [claim, other]) is None
    assert findings.add(task_of(CRASH), run_of(CRASH), REFERENCE, []) is None
    [group] = findings.groups
    finding = findings.finding(group)
    assert finding.alarm == claim
    assert finding.runs == 2
    assert set(finding.details) == {pod, other}


@pytest.mark.spec("K-45")
def test_the_worst_come_first_and_then_what_is_seen_more_often() -> None:
    findings = Findings(Names())
    seldom, often, mild = (
        alarm("services default/a"),
        alarm("services default/b"),
        alarm("services default/c", severity="low"),
    )
    for shown in ([mild], [mild], [mild], [seldom], [often], [often]):
        findings.add(task_of(CRASH), run_of(CRASH), REFERENCE, shown)
    assert [group[1][-1] for group in findings.groups] == ["b", "a", "c"]


@pytest.mark.spec("K-45")
def test_fields_of_a_chain_are_causes_of_their_own_and_a_fault_is_one() -> None:
    first, second = alarm("services default/a", "a: up, back"), alarm("services default/b", "b: up")
    assert by_cause(run_of(CHAIN), [first, second]) == [[first], [second]]
    assert by_cause(run_of(CRASH), [first, second]) == [[first, second]]
    assert by_cause(run_of(CRASH), []) == []


@pytest.mark.spec("K-45")
def test_what_comes_behind_a_spoilt_turn_is_tried_again_from_the_sample() -> None:
    spoilt, follows = alarm("services default/a", "a: up, back"), alarm("services default/a", "b: up")
    kept, rest = first_turn(run_of(CHAIN), [spoilt, follows])
    assert kept == [spoilt]
    assert rest is not None
    assert [step.name for step in rest.steps or ()] == ["create", "b: up", "b: up, back"]
    harmless = alarm("services default/a", "a: up", "medium", "effect")
    assert first_turn(run_of(CHAIN), [harmless, follows]) == ([harmless, follows], None)


@pytest.mark.spec("K-46")
def test_evidence_ends_with_the_step_of_its_alarm() -> None:
    def names(plan: Plan, step: str) -> list[str]:
        task = Task(subject=Subject(), setup=Setup(), steps=STEPS, plan=plan)
        reference = Reference(run=run_of(Plan("reference")), masks=Masks())
        made = Evidence(task, run_of(plan), reference, [alarm("services default/a", step)]).task
        return [item.name for item in made.plan.steps or made.steps]

    assert names(CHAIN, "a: up") == ["create", "a: up"]
    assert names(CRASH, "create") == ["create"]
    assert names(Plan("reference"), "a: up, back") == ["create", "a: up", "a: up, back"]
    assert names(CRASH, "create, then") == ["create"]
    assert names(CRASH, "") == list(NAMES)  # of the whole run
    assert names(Plan("crash", CRASH.perturbations * 2), "create") == list(NAMES)  # the second may come later


@pytest.mark.spec("K-45")
def test_a_finding_is_as_bad_as_the_worst_run_that_shows_it() -> None:
    findings = Findings(Names())
    for name, severity in (("a", "low"), ("a", "high"), ("b", "medium")):
        plan = Plan("crash", (Crash(Place("create", "/pods", "default", f"{name}-{severity}")),))
        shown = alarm(f"services default/{name}", severity=severity)  # type: ignore[arg-type]
        findings.add(task_of(plan), run_of(plan), Reference(run=run_of(plan), masks=Masks()), [shown])
    assert [findings.finding(group).alarm.severity for group in findings.groups] == ["high", "medium"]
    worst = findings.finding(findings.groups[0])
    assert "a-high" in str(worst.task.plan), "its file shows the worst"


def test_defects_of_our_own_are_one_group_whatever_pod_they_hit() -> None:
    one, other = (alarm("konverge", oracle="konverge", field=f"pod web-{name} is deleted by another") for name in "ab")
    assert group_of(one) == group_of(other)
    assert group_of(alarm("konverge", oracle="konverge", field="pod web-a is bound twice")) != group_of(one)


@pytest.mark.spec("K-49")
def test_faults_and_changes_of_input_share_the_time() -> None:
    from konverge.check.subjects import from_target

    checked = from_target("webapp")
    run = run_of(Plan("reference"))
    run.seconds = 5.0
    planner = planner_for(checked.samples, checked.setup.objects, "default")
    inputs = planner(Reference(run=run, masks=Masks()), (), 0).plans
    assert {plan.pattern for plan in inputs} >= {"input", "recovery"}
    assert all(plan.seconds > 0 for plan in inputs if plan.steps)
    only = planner(Reference(run=run, masks=Masks()), ("recovery",), 0).plans
    assert {plan.pattern for plan in only} == {"recovery"}
    assert planner(Reference(run=run, masks=Masks()), ("crash",), 0).plans == []


@pytest.mark.spec("K-45")
def test_members_of_one_set_are_one_cause() -> None:
    claims = [group_of(alarm(f"persistentvolumeclaims default/data-db-{number}")) for number in (0, 2)]
    assert claims[0] == claims[1]
    assert group_of(alarm("services default/db-0")) != group_of(alarm("services default/db-1"))


def edit(name: str, patch: dict[str, object] | None = None) -> Plan:
    return Plan("edits", (Edit(Ref("/services", "default", name), patch, 0),))


def groups_of(*shown: tuple[Plan, Alarm], steps: tuple[Step, ...] = STEPS) -> list[list[Alarm]]:
    """The alarms of each finding, after one run for each of these."""
    findings = Findings(Names())
    for plan, item in shown:
        run = run_of(plan)
        run.steps = steps
        findings.add(task_of(plan), run, REFERENCE, [item])
    made = [findings.finding(group) for group in findings.groups]
    return [[finding.alarm, *finding.details] for finding in made]


@pytest.mark.spec("K-73")
def test_what_others_did_to_several_objects_alike_is_one_finding() -> None:
    a, b = (alarm(f"services default/{name}") for name in "ab")
    assert groups_of((edit("a"), a), (edit("b"), b)) == [[a, b]]
    assert groups_of((edit("c"), a), (edit("c"), b)) == [[a], [b]], "what follows from an edit of another object"
    assert groups_of((CRASH, a), (CRASH, b)) == [[a], [b]]
    owner = alarm("services default/b", field="metadata.ownerReferences")
    assert groups_of((edit("a"), a), (edit("b"), owner)) == [[a], [owner]]
    labels = [alarm(f"services default/{name}", field=f"metadata.labels.{name}") for name in "ab"]
    assert groups_of((edit("a"), labels[0]), (edit("b"), labels[1])) == [labels]


@pytest.mark.spec("K-73")
def test_objects_of_others_that_are_taken_by_their_names_are_one_finding() -> None:
    theirs = (Step("others have Service a", ()), *STEPS)
    adopted, overwritten, deleted, unsaid = (
        alarm(f"services default/{name}", oracle="foreign", field=field)
        for name, field in (("a", "metadata.ownerReferences"), ("b", "spec.ports"), ("c", ""), ("d", "status"))
    )
    plan = Plan("edits", steps=theirs)
    shown = [(plan, item) for item in (adopted, overwritten, deleted, unsaid)]
    assert groups_of(*shown, steps=theirs) == [[adopted, overwritten], [deleted], [unsaid]]
    assert groups_of(*shown[:2]) == [[adopted], [overwritten]], "of another custom resource beside"
    assert groups_of((plan, alarm("a")), (plan, alarm("b")), steps=theirs) == [[alarm("a")], [alarm("b")]]


@pytest.mark.spec("K-73")
def test_an_object_that_stays_as_any_mistake_left_it_is_one_finding() -> None:
    plan = Plan("recovery", steps=STEPS)
    one, two, other = (
        alarm(f"apps/statefulsets default/{name}", "a: up, back", oracle="recovery", field=field)
        for name, field in (("a", "spec.image"), ("a", "spec.affinity"), ("b", "spec.image"))
    )
    assert groups_of((plan, one), (plan, two), (plan, other)) == [[one, two], [other]]


@pytest.mark.spec("K-128")
def test_what_a_part_of_an_object_keeps_of_what_was_added_is_one_finding() -> None:
    """Whoever puts what is asked for on top of what is there takes no field away."""

    def kept(field: str, object_: str = "a", expected: str = ABSENT, step: str = "a: up, back") -> Alarm:
        made = alarm(f"apps/statefulsets default/{object_}", step, oracle="path-dependence", field=field)
        return msgspec.structs.replace(made, expected=expected)

    plan, spec = Plan("input", steps=STEPS), "spec.template.spec"
    one, two, three = (kept(f"{spec}.{name}") for name in ("tolerations", "hostPID", "containers[a.b]"))
    apart = [
        kept("spec.template.metadata.annotations"),
        kept(f"{spec}.nodeSelector", object_="b"),
        kept(f"{spec}.priority", expected="5"),
        kept(f"{spec}.hostname", step="a: up, created again"),
    ]
    every = [(plan, item) for item in (one, two, three, *apart)]
    assert groups_of(*every) == [[one, two, three], *([item] for item in apart)]
    findings = Findings(Names())
    for _, item in every[:3]:
        findings.add(task_of(plan), run_of(plan), REFERENCE, [item, alarm("pods default/a-0", severity="low")])
    (group,) = findings.groups
    assert [item.field for item in findings.finding(group).details] == [two.field, three.field, ""]


@pytest.mark.spec("K-79")
def test_what_a_run_without_a_fault_shows_beside_the_reference_is_chance() -> None:
    varies, status, wrong, later = (alarm(f"services default/{name}") for name in "abcd")
    findings = Findings(Names())
    own = alarm("services default/own")
    findings.add_reference(task_of(Plan("reference")), REFERENCE.run, REFERENCE, [own])
    for shown in ([varies, wrong], [varies, status], [varies]):
        findings.add(task_of(CRASH), run_of(CRASH), REFERENCE, shown)
    assert len(findings.groups) == 2
    findings.forget([varies, later])
    assert len(findings.groups) == 2, "one run may have had bad luck"
    findings.forget([varies])
    findings.forget([varies])
    assert {findings.finding(group).alarm for group in findings.groups} == {own, wrong, status}
    assert all(not findings.finding(group).details for group in findings.groups)
    assert findings.add(task_of(CRASH), run_of(CRASH), REFERENCE, [varies]) is None
    assert findings.add(task_of(CRASH), run_of(CRASH), REFERENCE, [varies, later]) is not None


@pytest.mark.spec("K-79")
def test_of_a_run_without_a_fault_only_what_is_compared_with_the_reference_is_chance() -> None:
    every = [alarm("a", oracle=name) for name in ("state", "deletion", "secrets", "path-dependence", "crash", "effect")]
    assert by_chance(every) == (every[3:], every[:3])


@pytest.mark.spec("K-23")
def test_changes_of_a_slow_program_have_runs_of_their_own() -> None:
    from konverge.check.subjects import from_target

    checked = from_target("webapp")
    planner = planner_for(checked.samples, checked.setup.objects, "default")

    def longest(seconds: float, *snapshots: Snapshot) -> tuple[int, int]:
        run = run_of(Plan("reference"))
        run.seconds, run.snapshots = seconds * len(STEPS), list(snapshots)
        plans = planner(Reference(run=run, masks=Masks()), ("input", "recovery"), 0).plans
        turns = [[step for step in plan.steps or () if step.name.endswith(", back")] for plan in plans]
        return max(map(len, turns)), sum(map(len, turns))

    counted = Counted(first=0, time=0.0, incarnation=1, requests=0)
    snapshot = Snapshot(step=0, revision=0, records={}, counted=counted)
    assert longest(21.0, snapshot)[0] == 1
    assert longest(20.0, snapshot)[0] == longest(21.0)[0] == 3
    assert longest(21.0, snapshot)[1] == longest(21.0)[1], "the same changes"


@pytest.mark.spec("K-103")
def test_only_what_is_as_bad_as_wanted_is_enough() -> None:
    findings = Findings(Names())
    assert not findings.has("low")
    findings.add(task_of(CRASH), run_of(CRASH), REFERENCE, [alarm("services default/a", severity="medium")])
    assert [findings.has(least) for least in ("high", "medium", "low")] == [False, True, True]
