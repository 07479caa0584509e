"""What is known in the end: what was repeated, how often it showed, and in which order findings are listed."""

from __future__ import annotations

import threading

import pytest

from konverge.check import conclusion as module
from konverge.check.budget import Budget
from konverge.check.conclusion import Conclusion, rank
from konverge.check.findings import Findings
from konverge.check.model import Alarm, Crash, Finding, Place, Plan, Run, Severity, Task
from konverge.check.names import Names
from konverge.check.reference import Reference
from konverge.check.shrink import Shrinker
from tests.check.campaign.test_findings import REFERENCE, alarm, run_of, task_of


def crash(name: str) -> Plan:
    return Plan("crash", (Crash(Place("create", "/pods", "default", name)),))


class Scripted:
    """Runs of a plan show an alarm of its name as often as its script says; the first is the search's own."""

    def __init__(self, jobs: int = 1, **shown: tuple[bool, ...]) -> None:
        self.jobs = jobs
        self._shown = {name: list(script) for name, script in shown.items()}
        self.severities: dict[str, Severity] = {}
        self.runs: list[str] = []
        self.never = threading.Event()

    def run(self, task: Task) -> Run:
        name = _name(task.plan)
        self.runs.append(name)
        if name == "hangs":
            self.never.wait()
        return run_of(task.plan)

    def judge(self, run: Run, reference: Reference) -> list[Alarm]:
        name = _name(run.plan)
        script = self._shown[name]
        shown = alarm(f"services default/{_group(run.plan)}", severity=self.severities.get(name, "high"))
        return [shown] if script and script.pop(0) else []


def _name(plan: Plan) -> str:
    [item] = plan.perturbations
    assert isinstance(item, Crash)
    return item.place.name


def _group(plan: Plan) -> str:
    """`a1` and `a2` are two plans that show the same."""
    return _name(plan).rstrip("0123456789")


def concluded(
    runner: Scripted,
    severities: dict[str, Severity],
    *,
    budget: float = 1e6,
    left: float = 1e6,
    least: Severity = "low",
) -> list[Finding]:
    runner.severities = severities
    findings = Findings(Names())
    for name, severity in severities.items():
        plan = crash(name)
        findings.add(
            task_of(plan), run_of(plan), REFERENCE, [alarm(f"services default/{_group(plan)}", severity=severity)]
        )
    shrinker = Shrinker(runner, runner.judge, Names(), Budget(budget), repeats=3)
    conclusion = Conclusion(shrinker, findings, Budget(left), runner.jobs, shrink=False, least=least)
    try:
        conclusion.draw(lambda done, total: None)
    finally:
        runner.never.set()
    return [finding for finding, _ in conclusion.ranked()]


def names(findings: list[Finding]) -> list[str]:
    return [finding.alarm.object.rpartition("/")[2] for finding in findings]


@pytest.mark.spec("K-46")
def test_what_never_showed_again_is_listed_after_all_that_did() -> None:
    runner = Scripted(lost=(), mild=(True, True), rare=(False, True, False))
    findings = concluded(runner, {"lost": "high", "mild": "medium", "rare": "high"})
    assert names(findings) == ["rare", "mild", "lost"]
    assert [finding.confirmed for finding in findings] == [(1, 3), (2, 2), (0, 3)]
    assert [finding.alarm.severity for finding in findings] == ["high", "medium", "low"]


@pytest.mark.spec("K-89")
def test_the_worst_is_repeated_first() -> None:
    runner = Scripted(mild=(True, True), note=(True,), bad=(True, True))
    concluded(runner, {"mild": "medium", "note": "low", "bad": "high"})
    assert runner.runs == ["bad", "bad", "mild", "mild", "note"]


@pytest.mark.spec("K-89")
def test_what_there_was_no_time_to_repeat_keeps_its_severity() -> None:
    findings = concluded(Scripted(a=()), {"a": "high"}, budget=-1.0)
    assert [(finding.confirmed, finding.alarm.severity) for finding in findings] == [((0, 0), "high")]


@pytest.mark.spec("K-46")
def test_what_several_plans_have_shown_is_repeated_until_one_shows_it() -> None:
    runner = Scripted(a1=(False,), a2=(True, True), once=(True, True, True))
    findings = concluded(runner, {"a1": "high", "a2": "high", "once": "high"})
    assert runner.runs == ["a1", "a2", "once", "once"]
    assert {name: finding.confirmed for name, finding in zip(names(findings), findings, strict=True)} == {
        "a": (1, 2),
        "once": (2, 2),
    }
    [several] = [finding for finding in findings if finding.runs == 2]
    assert _name(several.task.plan) == "a2", "its file shows what showed again"


@pytest.mark.spec("K-45")
def test_labels_and_annotations_come_behind_what_they_are_about() -> None:
    findings = Findings(Names())
    for name, field in (("a", "spec.template.metadata.labels.x"), ("b", "spec.template.spec.nodeSelector")):
        plan = crash(name)
        findings.add(task_of(plan), run_of(plan), REFERENCE, [alarm(f"services default/{name}", field=field)])
    known = [(findings.finding(group), findings.evidence(group)[0]) for group in findings.groups]
    assert names([item[0] for item in sorted(known, key=lambda item: rank(*item))]) == ["b", "a"]


@pytest.mark.spec("K-46")
def test_a_note_is_repeated_once() -> None:
    runner = Scripted(note=(True, True))
    concluded(runner, {"note": "low"})
    assert runner.runs == ["note"]


def test_what_is_less_than_asked_for_is_reported_as_it_was_seen() -> None:
    runner = Scripted(mild=(True, True), note=(True,))
    findings = concluded(runner, {"mild": "medium", "note": "low"}, least="medium")
    assert runner.runs == ["mild", "mild"]
    assert [(finding.alarm.severity, finding.confirmed) for finding in findings] == [
        ("medium", (2, 2)),
        ("low", (0, 0)),
    ]


@pytest.mark.spec("K-45")
def test_what_needs_no_fault_comes_first_of_its_severity() -> None:
    runner = Scripted(b=(True, True))
    plan = crash("b")
    findings = Findings(Names())
    reference = task_of(Plan("reference"))
    findings.add_reference(
        reference, REFERENCE.run, REFERENCE, [alarm("services default/own"), alarm("x", severity="low")]
    )
    for _ in range(3):
        findings.add(task_of(plan), run_of(plan), REFERENCE, [alarm("services default/b")])
    shrinker = Shrinker(runner, runner.judge, Names(), Budget(1e6), repeats=3)
    conclusion = Conclusion(shrinker, findings, Budget(1e6), 1, shrink=False)
    conclusion.draw(lambda done, total: None)
    assert names([finding for finding, _ in conclusion.ranked()]) == ["own", "b", "x"]


@pytest.mark.spec("K-49")
def test_a_repetition_that_never_ends_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE", 1.0)
    runner = Scripted(2, hangs=(), b=(True, True))
    findings = concluded(runner, {"hangs": "high", "b": "high"}, left=1e-9)
    assert sorted(names(findings)) == ["b", "hangs"]
    assert {finding.confirmed for finding in findings} == {(0, 0), (2, 2)}


@pytest.mark.spec("K-49")
def test_what_there_is_no_time_for_is_reported_as_it_was_seen() -> None:
    runner = Scripted(a=(True, True))
    [finding] = concluded(runner, {"a": "high"}, budget=1e-9)
    assert finding.confirmed == (0, 0)
    assert runner.runs == []


CLAIM = "persistentvolumeclaims default/a"


@pytest.mark.spec("K-78")
@pytest.mark.parametrize(
    ("lost", "first"),
    [
        (Alarm(oracle="deletion", severity="high", object=CLAIM, sentence=""), True),
        (Alarm(oracle="deletion", severity="high", object="persistentvolumes pvc-*", sentence=""), True),
        (Alarm(oracle="secrets", severity="high", object="secrets default/a", sentence="", field="data.x"), True),
        (Alarm(oracle="state", severity="high", object=CLAIM, sentence="", expected=1, actual=0), True),
        (Alarm(oracle="state", severity="high", object=CLAIM, sentence="", field="metadata.deletionTimestamp"), True),
        (Alarm(oracle="state", severity="high", object=CLAIM, sentence="", expected=0, actual=1), False),
        (Alarm(oracle="state", severity="high", object=CLAIM, sentence="", field="spec.x", actual=0), False),
        (Alarm(oracle="deletion", severity="high", object="services default/a", sentence=""), False),
        (Alarm(oracle="orphans", severity="high", object=CLAIM, sentence="", actual=0), False),
        (Alarm(oracle="deletion", severity="medium", object=CLAIM, sentence=""), False),
    ],
)
def test_what_loses_data_comes_first_of_its_severity(lost: Alarm, first: bool) -> None:
    findings = Findings(Names())
    for plan, shown in ((crash("b"), alarm("services default/b")), (crash("b2"), alarm("services default/b"))):
        findings.add(task_of(plan), run_of(plan), REFERENCE, [shown])
    findings.add(task_of(crash("a")), run_of(crash("a")), REFERENCE, [lost])
    known = [(findings.finding(group), findings.evidence(group)[0]) for group in findings.groups]
    known.sort(key=lambda item: rank(*item))
    assert (known[0][0].alarm == lost) is first
