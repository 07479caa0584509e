"""An outcome with hostile names, values and logs, for the tests of all reports."""

from __future__ import annotations

from konverge.check.campaign import Outcome, Performed
from konverge.check.differences import Masks
from konverge.check.findings import Evidence, group_of
from konverge.check.model import (
    Alarm,
    Apply,
    Change,
    Crash,
    Exchange,
    Finding,
    Moment,
    Place,
    Plan,
    Ref,
    Run,
    Setup,
    Step,
    Subject,
    Task,
)
from konverge.check.reference import Reference

HOSTILE = "</script><img src=x onerror=document.title='run'>\x1b[2J"
PASSWORD = "aHVudGVyMg=="
PLACE = Place("create", "/configmaps", "default", "first")
NEXT = Place("patch", "/secrets", "default", "login", "data.password")
SAMPLE = {"apiVersion": "example.com/v1", "kind": "Kept", "metadata": {"name": "note"}, "spec": {"text": HOSTILE}}
LOGIN = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": PASSWORD}}
STEPS = (
    Step("create", (Apply(LOGIN), Apply(SAMPLE))),
    Step("change", (Apply({**SAMPLE, "spec": {"text": "b"}}),), about="spec.text"),
)
ALARM = Alarm(
    oracle="state",
    severity="high",
    object="secrets default/login",
    field="data.password",
    sentence="the password of secrets default/login changed",
    step="create",
    expected=PASSWORD,
    actual="b3RoZXI=",
)
DETAIL = Alarm(oracle="state", severity="medium", object=f"pods default/{HOSTILE}", sentence=HOSTILE, step="create")


def change(revision: int, place: Place, kind: str, incarnation: int = 1) -> Change:
    ref = Ref(place.resource, place.namespace, place.name)
    differences = (("data.password", PASSWORD, "b3RoZXI="),) if place is NEXT else ()
    moment = Moment(kind, place.resource, place.namespace, place.name, place.change)  # type: ignore[arg-type]
    return Change(
        revision=revision,
        time=float(revision),
        moment=moment,
        ref=ref,
        uid="",
        writer="operator",
        incarnation=incarnation,
        differences=differences,
    )


def exchange(revision: int, place: Place, error: str = "", incarnation: int = 1) -> Exchange:
    return Exchange(
        number=revision,
        incarnation=incarnation,
        verb=place.verb,
        resource=place.resource,
        namespace=place.namespace,
        name=place.name,
        status=0 if error else 200,
        began=float(revision),
        revision=revision - 1,
        revisions=(revision,),
        place=place,
        error=error,
    )


def outcome() -> Outcome:
    base = Task(subject=Subject(target=HOSTILE), setup=Setup(), steps=STEPS, plan=Plan("reference"))
    undisturbed = Run(plan=base.plan, seed=0, steps=STEPS)
    undisturbed.exchanges = [exchange(5, PLACE)]
    undisturbed.changes = [change(5, PLACE, "ADDED")]
    reference = Reference(run=undisturbed, masks=Masks(), varying=("pods:spec.x",))
    plan = Plan("crash", (Crash(PLACE),))
    run = Run(plan=plan, seed=0, steps=STEPS, log=[f"1: {HOSTILE}"], hit=["crash after it"])
    run.exchanges = [exchange(5, PLACE, "crash after it"), exchange(6, NEXT, incarnation=2)]
    run.changes = [change(5, PLACE, "ADDED"), change(6, NEXT, "MODIFIED", 2)]
    task = Task(subject=base.subject, setup=base.setup, steps=STEPS, plan=plan)
    finding = Finding(
        alarm=ALARM,
        task=task,
        sentence=f"after a crash, {HOSTILE}",
        runs=3,
        patterns=("crash",),
        confirmed=(2, 3),
        details=(DETAIL,),
    )
    return Outcome(
        base=base,
        reference=reference,
        findings=[finding],
        evidence=[Evidence(task, run, reference, [ALARM])],
        performed=[
            Performed(plan=plan, groups=(group_of(ALARM),)),
            Performed(plan=Plan("stale"), missed=True),
            Performed(plan=Plan("input", steps=STEPS), groups=(group_of(ALARM),), about="spec.text"),
        ],
        left_out={"gap": 4},
        notes=[HOSTILE],
    )
