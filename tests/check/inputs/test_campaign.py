"""Campaigns of input find the mistakes of a small operator, without knowing it, and nothing in one without mistakes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from konverge.check.campaign import Campaign, Options, Outcome
from konverge.check.inputs import Admission, campaign, remainder
from konverge.check.model import Alarm, Apply, Plan, Run, Setup, Step, Subject, Task
from konverge.check.planning import Planned
from konverge.check.workload import basic
from konverge.operators.catalog import find

from . import shop
from .shop import judge

PLANS = tuple(campaign([shop.SAMPLE], [shop.DEFINITION]))


BEGUN = "from the beginning"


def plan_with(text: str) -> Plan:
    """The first plan that has a step of this name, and its way back."""
    turns = (plan for plan in PLANS if not any(" too" in step.name or BEGUN in step.name for step in plan.steps or ()))
    return next(plan for plan in turns if any(text in step.name for step in plan.steps or ()))


def said(mistake: str, plan: Plan) -> set[tuple[str, str, str, str]]:
    reference = shop.reference(mistake)
    return {_short(alarm) for alarm in judge(shop.run(mistake, plan), reference) if alarm.severity != "low"}


def _short(alarm: Alarm) -> tuple[str, str, str, str]:
    return alarm.oracle, alarm.severity, alarm.object, alarm.field


@pytest.mark.spec("K-23")
@pytest.mark.parametrize("number", range(len(PLANS)))
def test_nothing_is_wrong_with_an_operator_without_mistakes(number: int) -> None:
    reference = shop.reference("")
    run = shop.run("", PLANS[number])
    assert run.problem == ""
    assert [item.step for item in run.checkpoints] == [step.name for step in PLANS[number].steps or ()]
    assert not any(item.refused for item in run.checkpoints)
    assert judge(run, reference) == []


@pytest.mark.spec("K-24")
@pytest.mark.parametrize(
    ("mistake", "step", "oracle", "severity", "thing", "field"),
    [
        ("keeps labels", "spec.labels: add", "path-dependence", "high", "services default/corner", "metadata.labels"),
        (
            "ignores the second change",
            "spec.greeting: another value",
            "path-dependence",
            "high",
            "configmaps default/corner",
            "data.greeting",
        ),
        (
            "remembers members",
            "spec.replicas: scale up",
            "path-dependence",
            "medium",
            "configmaps default/corner-member-1",
            "",
        ),
        (
            "keeps a part that is off",
            "spec.metrics.enabled: on",
            "path-dependence",
            "medium",
            "configmaps default/corner-metrics",
            "",
        ),
        (
            "waits for health",
            "spec.image: an image that does not exist",
            "recovery",
            "high",
            "apps/deployments default/corner",
            "spec.template.spec.containers[shop].image",
        ),
    ],
)
def test_a_mistake_is_found(mistake: str, step: str, oracle: str, severity: str, thing: str, field: str) -> None:
    assert (oracle, severity, thing, field) in said(mistake, plan_with(step))


@pytest.mark.spec("K-119")
def test_a_mistake_from_the_beginning_is_corrected_as_well() -> None:
    """The operator is well once it has had a pod: what is changed later shows nothing."""
    begun = next(
        plan for plan in PLANS if any(BEGUN in step.name and "image" in step.name for step in plan.steps or ())
    )
    assert [step.name.partition(": ")[2] for step in (begun.steps or ())[1:]] == [
        "an image that does not exist, deleted",
        "an image that does not exist, from the beginning",
        "an image that does not exist, back",
    ]
    found = ("recovery", "high", "apps/deployments default/corner", "spec.template.spec.containers[shop].image")
    assert found in said("waits for its first pod", begun)
    assert found not in said("waits for its first pod", plan_with("spec.image: an image that does not exist"))


@pytest.mark.spec("K-119")
def test_few_mistakes_are_there_from_the_beginning_and_after_those_that_are_made_later() -> None:
    texts = [" ".join(step.name for step in plan.steps or ()) for plan in PLANS if plan.pattern == "recovery"]
    begun = [number for number, text in enumerate(texts) if BEGUN in text]
    assert len(begun) == 2
    assert begun[0] > 0


@pytest.mark.spec("K-25")
def test_a_field_without_any_effect_is_a_guess() -> None:
    plan = plan_with("spec.color: another value")
    alarms = judge(shop.run("ignores the color", plan), shop.reference("ignores the color"))
    assert [(alarm.oracle, alarm.severity, alarm.field) for alarm in alarms] == [("effect", "low", "spec.color")]


@pytest.mark.spec("K-25")
def test_labels_that_reach_nothing_are_more_than_a_guess() -> None:
    changed = {**shop.SAMPLE, "spec": {**shop.SAMPLE["spec"], "color": "blue"}}
    steps = (
        Step("create", (Apply(shop.SAMPLE),)),
        Step("spec.color: another", (Apply(changed),), about="spec.color", core="Labels"),
    )
    alarms = judge(shop.run("ignores the color", Plan("input", steps=steps)), shop.reference("ignores the color"))
    assert [(alarm.oracle, alarm.severity) for alarm in alarms] == [("effect", "medium")]


@pytest.mark.spec("K-25")
def test_a_default_that_is_written_out_needs_no_effect() -> None:
    plain = {**shop.SAMPLE, "spec": {**shop.SAMPLE["spec"], "color": "red"}}
    steps = (
        Step("create", (Apply(shop.SAMPLE),)),
        Step("spec.color: default", (Apply(plain),), about="spec.color", core="Labels"),
    )
    assert judge(shop.run("ignores the color", Plan("input", steps=steps)), shop.reference("ignores the color")) == []


@pytest.mark.spec("K-25")
def test_what_the_api_server_refuses_is_no_finding() -> None:
    wrong = {**shop.SAMPLE, "spec": {**shop.SAMPLE["spec"], "replicas": 10}}
    steps = (
        Step("create", (Apply(shop.SAMPLE),)),
        Step("spec.replicas: too many", (Apply(wrong),), about="spec.replicas", core="Replicas"),
        Step("spec.replicas: too many, back", (Apply(shop.SAMPLE),), about="spec.replicas"),
    )
    run = shop.run("ignores the color", Plan("input", steps=steps))
    assert run.checkpoints[1].refused
    assert judge(run, shop.reference("ignores the color")) == []


@pytest.mark.spec("K-23")
@pytest.mark.parametrize("name", ["webapp", "nacos", "wukong"])
def test_every_field_is_changed_and_every_step_is_accepted(name: str) -> None:
    operator = find(name)
    definition, sample = operator.definitions()[0], operator.sample_objects()[0]
    admission = Admission(definition, sample["apiVersion"].partition("/")[2])
    plans = list(campaign([sample], operator.definitions()))
    for plan in plans:
        last = None
        for step in plan.steps or ():
            for action in step.actions:
                if isinstance(action, Apply) and action.object["kind"] == sample["kind"]:
                    assert admission.errors(action.object, last) == [], step.name
                    last = action.object
                elif not isinstance(action, Apply) and action.kind == sample["kind"]:
                    last = None


@pytest.mark.spec("K-23")
def test_every_turn_ends_as_the_sample_or_its_chain_does() -> None:
    for plan in PLANS:
        steps = plan.steps or ()
        assert steps[0].name == "create"
        last = steps[-1]
        assert last.name.endswith((", back", ", created again"))
        for before, after in pairwise(steps):
            if before.expect and not after.expect:
                assert after.actions[0] == Apply(shop.SAMPLE)


MALL: dict[str, Any] = {
    **shop.SAMPLE,
    "metadata": {"name": "mall", "namespace": "default"},
    "spec": {"replicas": 3, "image": "shop:1", "metrics": {"enabled": True}, "greeting": "from-a-secret"},
}
SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "from-a-secret", "namespace": "default"},
    "stringData": {"a": "1"},
}


def changed_of(name: str, *samples: dict[str, Any]) -> set[str]:
    """The steps that change the custom resource of this name."""
    return {
        step.name
        for plan in campaign(samples, [shop.DEFINITION])
        for step in (plan.steps or ())[1:]
        if len(step.actions) == 1
        for action in step.actions
        if isinstance(action, Apply) and action.object["metadata"]["name"] == name
    }


@pytest.mark.spec("K-123")
def test_another_sample_of_a_kind_is_changed_where_it_differs() -> None:
    first, second = (changed_of(name, shop.SAMPLE, MALL) for name in ("corner", "mall"))
    assert {"spec.labels: add, change, remove", "spec.replicas: scale up"} <= first
    fields = {step.partition(":")[0] for step in second}
    assert {"spec.replicas", "spec.metrics.enabled"} <= fields
    assert "spec.image" not in fields  # as in the first
    assert "spec.labels" not in fields  # it does not set it
    assert not changed_of("mall", shop.SAMPLE, {**MALL, "spec": shop.SAMPLE["spec"]})


@pytest.mark.spec("K-123")
def test_what_another_sample_refers_to_is_rotated_once() -> None:
    third = {**MALL, "metadata": {"name": "third", "namespace": "default"}}
    plans = campaign([shop.SAMPLE, SECRET, MALL, third], [shop.DEFINITION])
    rotations = [step.name for plan in plans for step in plan.steps or () if step.name.endswith("rotated")]
    assert rotations == ["Secret from-a-secret rotated"]


@pytest.mark.spec("K-23")
def test_what_is_behind_an_alarm_starts_from_the_sample() -> None:
    plan = PLANS[0]
    names = [step.name for step in plan.steps or ()]
    position = names.index(next(name for name in names if name.endswith(", back")))
    rest = remainder(plan, names[1])
    assert rest is not None
    assert [step.name for step in rest.steps or ()] == ["create", *names[position + 1 :]]
    assert remainder(plan, names[-1]) is None
    assert remainder(plan, "no such step") is None


class Shops:
    """Runs of the shop with a mistake."""

    jobs = 1

    def __init__(self, mistake: str) -> None:
        self._mistake = mistake
        self.plans: list[Plan] = []

    def run(self, task: Task) -> Run:
        self.plans.append(task.plan)
        return shop.run(self._mistake, task.plan, task.seed)

    def cancel(self) -> None:
        raise AssertionError("there is one run at a time")


def checked(mistake: str, *plans: Plan) -> tuple[Outcome, list[list[str]]]:
    """A check with these plans: what is found, and the steps of the runs beside the two references."""
    runner = Shops(mistake)
    setup = Setup(objects=(shop.DEFINITION,), nodes=1)
    options = Options(shrink=False, repeats=0)
    made = Campaign(
        Subject(), setup, basic([shop.SAMPLE]), runner, options, planner=lambda *_: Planned(list(plans))
    ).check()
    return made, [[step.name for step in plan.steps or ()] for plan in runner.plans[2:]]


@pytest.mark.spec("K-25")
def test_a_change_without_effect_is_tried_on_a_new_custom_resource() -> None:
    labels = plan_with("spec.labels: add, change, remove")
    outcome, steps = checked("labels what is new", labels)
    name = "spec.labels: add, change, remove"
    assert steps[1] == ["create", name, f"{name}, deleted", f"{name}, created again"]
    worst = outcome.findings[0].alarm
    assert (worst.oracle, worst.severity) == ("path-dependence", "high")
    assert (worst.object, worst.field) == ("services default/corner", "metadata.labels")
    assert len(steps) == 2, "once for each field"
    assert checked("", labels)[0].findings == []


@pytest.mark.spec("K-23")
def test_what_is_behind_an_alarm_comes_next() -> None:
    plan, other = plan_with("spec.labels: add, change, remove"), PLANS[-1]
    _, steps = checked("keeps labels", plan, other)
    rest = remainder(plan, "spec.labels: add, change, remove")
    assert rest is not None
    assert steps[1] == [step.name for step in rest.steps or ()]
    assert steps[-1] == [step.name for step in other.steps or ()]


def with_more(properties: dict[str, Any], **given: Any) -> list[Plan]:
    """Plans for a shop with more fields, of which the sample has some."""
    spec = {**shop.SPEC, "properties": {**shop.SPEC["properties"], **properties}}
    definition = json.loads(json.dumps(shop.DEFINITION))
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
    sample = {**shop.SAMPLE, "spec": {**shop.SAMPLE["spec"], **given}}
    return list(campaign([sample], [definition]))


def versioned() -> list[Plan]:
    """With a version, and with more fields to make mistakes with."""
    more = {"version": {"type": "string"}, "backupImage": {"type": "string"}, "nodeSelector": shop.TEXTS}
    return with_more(more, version="1.2.3")


@pytest.mark.spec("K-23")
def test_parts_that_the_sample_has_come_before_parts_that_it_has_not() -> None:
    part = {"type": "object", "properties": {"annotations": shop.TEXTS}}
    plans = with_more({"backup": part, "web": part}, web={})
    names = [step.name for plan in plans for step in plan.steps or ()]
    change = "annotations: add, change, remove"
    assert names.index(f"spec.web.{change}") < names.index(f"spec.backup.{change}")


@pytest.mark.spec("K-23")
def test_texts_that_cannot_be_read_are_among_the_first_mistakes() -> None:
    first = next(plan for plan in versioned() if plan.pattern == "recovery")
    assert "spec.version: no version at all" in [step.name for step in first.steps or ()]


@pytest.mark.spec("K-23")
def test_a_mistake_with_a_field_does_not_put_off_what_users_do_with_it() -> None:
    names = [step.name for plan in versioned() for step in plan.steps or ()]
    assert names.index("spec.version: the next version") < names.index("spec.greeting: remove")


def test_seeds_change_the_order_and_nothing_else() -> None:
    def names(seed: int) -> list[str]:
        plans = campaign([shop.SAMPLE], [shop.DEFINITION], seed)
        return [step.name for plan in plans for step in plan.steps or () if "too" not in step.name]

    assert names(3) == names(3)
    assert sorted(set(names(3))) == sorted(set(names(0)))
    assert names(3) != names(0)


@pytest.mark.spec("K-23")
@pytest.mark.parametrize("field", ["hibernate", "hibernation", "sleeping", "suspend", "paused"])
def test_nothing_is_put_on_top_of_what_stops_an_operator(field: str) -> None:
    """A new custom resource that sleeps has nothing, one that was put to sleep has what it needs to wake."""
    names = {step.name for plan in with_more({field: {"type": "boolean"}}) for step in plan.steps or ()}
    assert f"spec.{field}: on" in names
    assert "spec.greeting: another value too" in names
    assert f"spec.{field}: on too" not in names


@pytest.mark.spec("K-102")
def test_the_second_of_a_type_waits_only_if_it_has_the_same_name() -> None:
    """Of two components with annotations of pods and of Services, the first of each name come before the second."""
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    component = {"type": "object", "properties": {"podAnnotations": texts, "serviceAnnotations": texts}}
    definition = json.loads(json.dumps(shop.DEFINITION))
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"] |= {"front": component, "store": component}
    sample = {**shop.SAMPLE, "spec": {**shop.SAMPLE["spec"], "front": {}, "store": {}}}
    plans = campaign([sample], [definition], apart=True)
    steps = [step.name for plan in plans for step in (plan.steps or ())[1:2] if not step.name.endswith(" too")]
    asked = "spec.{}: add, change, remove"
    front, store = (
        [steps.index(asked.format(f"{part}.{name}")) for name in ("podAnnotations", "serviceAnnotations")]
        for part in ("front", "store")
    )
    assert max(front) < steps.index("spec.image: another image") < min(store)
    assert max(store) < steps.index("spec.greeting: another value")
