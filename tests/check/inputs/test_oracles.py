"""The oracles about input, on states that are written down: what counts, and how much."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from konverge.check.model import Apply, Change, Checkpoint, Crash, Delete, Moment, Place, Plan, Ref, Run, Step
from konverge.check.oracles.desired import Difference, is_said, repeats
from konverge.check.oracles.effect import effect
from konverge.check.oracles.misoperation import misoperation
from konverge.check.oracles.path_dependence import path_dependence
from konverge.check.oracles.recovery import recovery
from konverge.check.reference import reference_of

Obj = dict[str, Any]
Said = list[tuple[str, str, str, str]]

GOOD, OTHER = {"color": "red"}, {"color": "blue"}


def custom(spec: Obj, status: Obj | None = None) -> Obj:
    metadata = {"name": "corner", "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec, "status": status or {}}


def child(resource: str, **content: Any) -> tuple[str, Obj]:
    kinds = {"secrets": "Secret", "pods": "Pod", "apps/statefulsets": "StatefulSet"}
    name = "corner-0" if resource == "pods" else "corner"
    obj = {"kind": kinds.get(resource, "Thing"), "metadata": {"name": name, "namespace": "default"}, **content}
    return f"{resource} default/{name}", obj


def step(name: str, spec: Obj, about: str = "spec.color", **more: Any) -> Step:
    return Step(name, (Apply(custom(spec)),), about=about, **more)


GONE = Step("delete", (Delete("example.com/v1", "Shop", "default", "corner"),))


def run_of(*rests: tuple[Step, Obj | None, list[tuple[str, Obj]]], plan: Plan | None = None) -> Run:
    """Steps, the custom resource's status after each (None: it is gone), and the children that are there."""
    steps = tuple(item[0] for item in rests)
    run = Run(plan=plan or Plan("input", steps=steps), seed=0, steps=steps)
    for number, (done, status, children) in enumerate(rests):
        state = dict(children)
        if status is not None:
            action = next(item for item in done.actions if isinstance(item, Apply))
            state["example.com/shops default/corner"] = custom(action.object["spec"], status)
        run.checkpoints.append(Checkpoint(step=done.name, revision=number, time=float(number), state=state))
        for key in state:
            resource, _, name = key.partition(" ")
            ref = Ref(resource if "/" in resource else f"/{resource}", "default", name.partition("/")[2])
            if resource != "pods":
                moment = Moment("ADDED", ref.resource, ref.namespace, ref.name)
                run.changes.append(Change(revision=number, time=0.0, moment=moment, ref=ref, uid="", writer="operator"))
    return run


def there_and_back(
    before: list[tuple[str, Obj]], after: list[tuple[str, Obj]], about: str = "spec.color", **more: Any
) -> Run:
    return run_of(
        (step("create", GOOD), {}, before),
        (step("change", OTHER, about), {}, [child("configmaps", data={"at": "change"})]),
        (step("change, back", GOOD, about), more.get("status", {}), after),
    )


def said(oracle: Any, run: Run) -> Said:
    reference = reference_of(run, run)
    return [(alarm.severity, alarm.object, alarm.field, alarm.step) for alarm in oracle(run, reference)]


SET, KEPT = child("apps/statefulsets", spec={"image": "a"}), child("apps/statefulsets", spec={"image": "b"})


@pytest.mark.spec("K-24")
def test_what_is_as_before_is_fine() -> None:
    assert said(path_dependence, there_and_back([SET], [SET])) == []


@pytest.mark.spec("K-24")
@pytest.mark.parametrize("oracle", [path_dependence, recovery])
def test_a_first_rest_at_which_the_operator_was_not_done_is_no_past(oracle: Any) -> None:
    """Where the undisturbed run was as the second, it is the first that differs."""
    mistake = {"expect": "harmless"} if oracle is recovery else {}
    run = run_of(
        (step("create", GOOD), {}, []),
        (step("change", OTHER, **mistake), {}, [SET]),
        (step("change, back", GOOD), {}, [SET]),
    )
    for before, found in (([SET], []), ([], [SET[0]])):
        usual = run_of((step("create", GOOD), {}, before), plan=Plan("reference"))
        assert [alarm.object for alarm in oracle(run, reference_of(usual, usual))] == found


@pytest.mark.spec("K-24")
@pytest.mark.parametrize(
    ("about", "first", "severity"),
    [("spec.annotations", {}, "high"), ("spec.color", {}, "medium"), ("spec.annotations", {"note": "4"}, "medium")],
)
def test_an_annotation_of_a_template_is_high_if_it_was_asked_for(about: str, first: Obj, severity: str) -> None:
    before, after = (
        child("apps/statefulsets", spec={"template": {"metadata": {"annotations": {"a": "1", **more}}}})
        for more in (first, {"note": "5"})
    )
    run = there_and_back([before], [after], about)
    assert [item[0] for item in said(path_dependence, run)] == [severity]


@pytest.mark.spec("K-91")
@pytest.mark.parametrize(
    ("note", "about", "severity"),
    [
        ("nacos.io/secrets-digest", "spec.color", "low"),
        ("checksum/config", "spec.color", "low"),
        ("example.dev/resourceHash", "spec.color", "low"),
        ("example.dev/owner", "spec.color", "medium"),
        ("checksum/config", "spec.annotations", "high"),
    ],
)
def test_a_digest_is_a_note_unless_it_was_asked_for(note: str, about: str, severity: str) -> None:
    before, after = (
        child("apps/statefulsets", spec={"template": {"metadata": {"annotations": {"a": "1", **more}}}})
        for more in ({}, {note: "5"})
    )
    assert [item[0] for item in said(path_dependence, there_and_back([before], [after], about))] == [severity]


@pytest.mark.spec("K-95")
@pytest.mark.parametrize(
    ("note", "severities"),
    [("checksum/config", ["low"]), ("lastTransitionTime", []), ("team", ["medium"])],
)
def test_a_first_annotation_is_what_it_says(note: str, severities: list[str]) -> None:
    before, after = (
        child("apps/statefulsets", spec={"template": {"metadata": more}}) for more in ({}, {"annotations": {note: "5"}})
    )
    assert [item[0] for item in said(path_dependence, there_and_back([before], [after]))] == severities


@pytest.mark.spec("K-24")
@pytest.mark.parametrize(
    ("before", "after", "severity", "thing", "field"),
    [
        ([SET], [KEPT], "high", "apps/statefulsets default/corner", "spec.image"),
        ([SET], [], "high", "apps/statefulsets default/corner", ""),
        ([], [SET], "high", "apps/statefulsets default/corner", ""),
        ([], [child("configmaps", data={})], "medium", "configmaps default/corner", ""),
        ([], [child("secrets", data={})], "low", "secrets default/corner", ""),
        ([], [child("persistentvolumeclaims", spec={})], "low", "persistentvolumeclaims default/corner", ""),
    ],
)
def test_what_stays_behind(before: Any, after: Any, severity: str, thing: str, field: str) -> None:
    assert said(path_dependence, there_and_back(before, after)) == [(severity, thing, field, "change, back")]


@pytest.mark.spec("K-24")
def test_an_annotation_that_was_asked_for_counts_more_than_another() -> None:
    def run(about: str) -> Run:
        before, after = child("services"), child("services")
        after[1]["metadata"]["annotations"] = {"a": "b"}
        return there_and_back([before], [after], about)

    assert [item[0] for item in said(path_dependence, run("spec.annotations"))] == ["high"]
    assert [item[0] for item in said(path_dependence, run("spec.color"))] == ["medium"]


@pytest.mark.spec("K-71")
@pytest.mark.parametrize(
    ("written", "shown", "severity"),
    [
        ({"team": "a", "tier": "1"}, {"team": "a"}, "high"),
        ({"team": "a"}, {"team": "b"}, "medium"),
        ({"team": "a"}, {"team": "a", "hash": "f00"}, "medium"),
        ({}, {"team": "a"}, "medium"),
        ({}, {}, "medium"),
    ],
)
def test_an_annotation_is_asked_for_by_what_was_written_too(written: Obj, shown: Obj, severity: str) -> None:
    before, after = child("services"), child("services")
    after[1]["metadata"]["annotations"] = shown
    run = run_of(
        (step("create", GOOD), {}, [before]),
        (step("change", {**GOOD, "notes": written}, "spec.notes"), {}, [SET]),
        (step("change, back", GOOD, "spec.notes"), {}, [after]),
    )
    assert [item[0] for item in said(path_dependence, run)] == [severity]


@pytest.mark.spec("K-71")
def test_an_annotation_that_only_a_new_custom_resource_leads_to_is_high() -> None:
    def run(there: Obj, new: Obj) -> Run:
        one, other = child("services"), child("services")
        one[1]["metadata"]["annotations"], other[1]["metadata"]["annotations"] = there, new
        asked = {**GOOD, "notes": ["a"]}
        return run_of(
            (step("create", GOOD), {}, [child("services")]),
            (step("change", asked, "spec.notes[0]"), {}, [one]),
            (GONE, None, []),
            (step("change, created again", asked, "spec.notes[0]"), {}, [other]),
        )

    assert [item[0] for item in said(path_dependence, run({}, {"team": "a"}))] == ["high"]
    assert [item[0] for item in said(path_dependence, run({"team": "b"}, {"team": "a"}))] == ["medium"]


def created_again(before: tuple[str, Obj], after: tuple[str, Obj]) -> Run:
    return run_of(
        (step("create", GOOD), {}, [SET]),
        (step("change", OTHER), {}, [before]),
        (GONE, None, []),
        (step("change, created again", OTHER), {}, [after]),
    )


@pytest.mark.spec("K-95")
@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        (("Unknown", "FailedReconcile"), ("Unknown", "FailedReconcile"), "low"),
        (("False", "InvalidSpec"), ("False", "InvalidSpec"), "low"),
        (("True", "Reconciled"), ("True", "Reconciled"), "high"),
        (("Unknown", "Starting"), ("Unknown", "Starting"), "high"),
    ],
)
def test_a_refused_custom_resource_leads_to_nothing_once_created_again(
    old: tuple[str, str], new: tuple[str, str], severity: str
) -> None:
    def status(said: tuple[str, str]) -> Obj:
        return {"conditions": [{"type": "Ready", "status": said[0], "reason": said[1]}]}

    run = run_of(
        (step("create", GOOD), {}, [SET]),
        (step("change", OTHER), status(old), [SET]),
        (GONE, None, []),
        (step("change, created again", OTHER), status(new), [child("configmaps", data={})]),
    )
    missing = [item for item in said(path_dependence, run) if item[1] == SET[0]]
    assert missing == [(severity, SET[0], "", "change, created again")]


@pytest.mark.spec("K-74")
@pytest.mark.parametrize(
    ("resource", "field", "severity"),
    [
        ("apps/statefulsets", "volumeClaimTemplates", "medium"),
        ("apps/statefulsets", "serviceName", "medium"),
        ("apps/statefulsets", "template", "high"),
        ("apps/statefulsets", "updateStrategy", "high"),
        ("apps/deployments", "serviceName", "high"),
    ],
)
def test_a_field_that_nobody_can_change_is_medium_once_created_again(resource: str, field: str, severity: str) -> None:
    one, other = (child(resource, spec={field: {"a": value}}) for value in "xy")
    assert [item[0] for item in said(path_dependence, created_again(one, other))] == [severity]
    assert [item[0] for item in said(path_dependence, there_and_back([one], [other]))] == ["high"], "in place"
    gone = created_again(one, child("configmaps", data={}))
    assert ("high", one[0], "", "change, created again") in said(path_dependence, gone), "the object itself"


@pytest.mark.spec("K-82")
@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("cdi.kubevirt.io/datavolumes", "low"),
        ("persistentvolumeclaims", "low"),
        ("persistentvolumes", "low"),
        ("cdi.kubevirt.io/dataimportcrons", "high"),
        ("kubevirt.io/virtualmachines", "high"),
    ],
)
def test_volumes_outlive_what_used_them(resource: str, expected: str) -> None:
    """Left over, missing when a new custom resource finds the old claim, or as they were when they were smaller."""
    key = f"{resource} default/corner-disk"

    def disk(size: str) -> tuple[str, Obj]:
        return key, {"kind": "Disk", "metadata": {"name": "corner-disk", "namespace": "default"}, "spec": {"a": size}}

    def severities(run: Run) -> list[str]:
        return [item[0] for item in said(path_dependence, run) if item[1] == key]

    assert severities(created_again(disk("x"), disk("y"))) == [expected]
    assert severities(created_again(disk("x"), child("services"))) == [expected]
    assert severities(there_and_back([SET], [SET, disk("x")])) == [expected]


@pytest.mark.spec("K-95")
@pytest.mark.parametrize(
    ("before", "after", "path", "severity"),
    [
        ("2Gi", "3Gi", "storage", "low"),
        ("3Gi", "2Gi", "storage", "high"),
        ("2Gi", "3Gi", "cpu", "high"),
        ("none", "3Gi", "storage", "high"),
    ],
)
def test_templates_of_claims_get_no_smaller_as_claims_do_not(before: str, after: str, path: str, severity: str) -> None:
    def claims(size: str) -> tuple[str, Obj]:
        template = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {path: size}}}}
        return child("apps/statefulsets", spec={"volumeClaimTemplates": [template]})

    assert [item[0] for item in said(path_dependence, there_and_back([claims(before)], [claims(after)]))] == [severity]


@pytest.mark.spec("K-74")
def test_children_follow_a_custom_resource_in_which_the_operator_wrote() -> None:
    def run(made: Run, **spec: Any) -> list[str]:
        shop = made.checkpoints[-1].state["example.com/shops default/corner"]
        shop["spec"] = {**shop["spec"], **spec}
        return [item[0] for item in said(path_dependence, made) if item[1] == SET[0]]

    assert run(there_and_back([SET], [KEPT]), color="blue") == ["medium"]
    assert run(there_and_back([SET], [KEPT], "spec.color.bright"), color="blue") == ["medium"]
    assert run(there_and_back([SET], [KEPT]), shape="round") == ["high"], "another field than the one changed back"
    assert run(there_and_back([SET], [KEPT], ""), color="blue") == ["high"], "nothing was changed back"
    one, other = (child("apps/statefulsets", spec={"template": value}) for value in "xy")
    assert run(created_again(one, other), shape="round") == ["medium"], "what was written went with the old one"
    assert run(created_again(one, other)) == ["high"]


@pytest.mark.spec("K-24")
def test_what_follows_from_another_difference_is_not_said() -> None:
    before = [
        child("apps/statefulsets", spec={"image": "a"}, status={"replicas": 1}),
        child("pods", spec={"image": "a"}),
    ]
    after = [
        child("apps/statefulsets", spec={"image": "b"}, status={"replicas": 2}),
        child("pods", spec={"image": "b"}),
    ]
    fields = [item[1:3] for item in said(path_dependence, there_and_back(before, after))]
    assert fields == [("apps/statefulsets default/corner", "spec.image")]
    alone = said(path_dependence, there_and_back([before[1]], [after[1]]))
    assert [item[:2] for item in alone] == [("medium", "pods default/corner-0")]


@pytest.mark.spec("K-24")
def test_a_refusal_in_the_status_makes_it_low() -> None:
    status = {"conditions": [{"type": "Accepted", "status": "False"}]}
    run = there_and_back([SET], [KEPT], status=status)
    run.checkpoints[0].state["example.com/shops default/corner"]["status"] = {
        "conditions": [{"type": "Accepted", "status": "True"}]
    }
    assert {item[0] for item in said(path_dependence, run)} == {"low"}
    conditions = [
        condition
        for checkpoint in run.checkpoints
        for condition in checkpoint.state["example.com/shops default/corner"]["status"].get("conditions", ())
    ]
    behind = ("high", "apps/statefulsets default/corner", "spec.image", "change, back")
    for condition in conditions:  # readiness alone is no refusal
        condition["type"] = "Ready"
    assert behind in said(path_dependence, copy.deepcopy(run))  # states of one run are remembered
    for condition in conditions:  # nor is a hint that something is left to do
        condition |= {"type": "RestartRequired", "status": "True" if condition["status"] == "False" else "False"}
    assert behind in said(path_dependence, copy.deepcopy(run))


@pytest.mark.spec("K-95")
@pytest.mark.parametrize("namespace", ["default", ""])
def test_what_a_custom_resource_says_counts_in_a_namespace_and_in_the_cluster(namespace: str) -> None:
    """The same refusal, said by an object of a namespace or of the whole cluster."""
    key = f"example.com/shops {namespace}/corner".replace(" /", " ")

    def shop(said: str) -> tuple[Step, Obj]:
        made = custom(GOOD if said else OTHER, {"conditions": [{"type": "Accepted", "status": said or "True"}]})
        made["metadata"] = {"name": "corner", **({"namespace": namespace} if namespace else {})}
        return Step(f"step {said}", (Apply({**made, "status": {}}),), about="spec.color"), made

    def severities(last: str) -> set[str]:
        rests = [(shop("True"), SET), (shop(""), KEPT), (shop(last), KEPT)]
        steps = (*(step for (step, _), _ in rests[:2]), Step("back", rests[2][0][0].actions, about="spec.color"))
        run = Run(plan=Plan("input", steps=steps), seed=0, steps=steps)
        for number, ((_, made), there) in enumerate(rests):
            state = {key: made, **dict([there])}
            run.checkpoints.append(Checkpoint(step=steps[number].name, revision=number, time=0.0, state=state))
        for ref in (Ref("apps/statefulsets", "default", "corner"), Ref("example.com/shops", namespace, "corner")):
            moment = Moment("ADDED", ref.resource, ref.namespace, ref.name)
            run.changes.append(Change(revision=0, time=0.0, moment=moment, ref=ref, uid="", writer="operator"))
        return {item[0] for item in said(path_dependence, run) if item[1] == SET[0]}

    assert severities("False") == {"low"}, "it says that it does not do it"
    assert severities("True") == {"high"}


@pytest.mark.spec("K-24")
def test_the_status_of_an_object_of_another_operator_is_low() -> None:
    one, other = child("kubevirt.io/machines", status={"a": 1}), child("kubevirt.io/machines", status={"a": 2})
    assert [item[0] for item in said(path_dependence, there_and_back([one], [other]))] == ["low"]


@pytest.mark.spec("K-24")
def test_an_order_that_is_withdrawn_is_not_the_opposite_order() -> None:
    assert [item[0] for item in said(path_dependence, there_and_back([SET], [KEPT], "spec.powerState"))] == ["low"]


@pytest.mark.spec("K-24")
def test_what_is_created_again_is_as_what_was_changed_but_for_its_passwords() -> None:
    def run(image: str) -> Run:
        old, new = child("secrets", data={"password": "a"}), child("secrets", data={"password": "b"})
        return run_of(
            (step("create", GOOD), {}, [SET, old]),
            (step("change", OTHER), {}, [KEPT, old]),
            (GONE, None, []),
            (step("change, created again", OTHER), {}, [child("apps/statefulsets", spec={"image": image}), new]),
        )

    assert said(path_dependence, run("b")) == []
    assert [item[1:3] for item in said(path_dependence, run("a"))] == [
        ("apps/statefulsets default/corner", "spec.image")
    ]


@pytest.mark.spec("K-24")
@pytest.mark.parametrize(
    ("before", "after", "asked", "severities"),
    [
        ("5e:6d:4d:04:1c:1a", "d2:37:32:04:6b:12", "", []),
        ("5E-6D-4D-04-1C-1A", "d2-37-32-04-6b-12", "", []),
        ("5e:6d:4d:04:1c:1a", "d2:37:32:04:6b:12", "D2:37:32:04:6B:12", ["high"]),
        ("5e:6d:4d:04:1c:1a", "d2:37:32:04:6b:12", "5e:6d:4d:04:1c:1a", ["high"]),
        ("5e:6d:4d:04:1c:1a", "none", "", ["high"]),
        ("5e:6d:4d:04:1c", "d2:37:32:04:6b", "", ["high"]),
    ],
)
def test_what_is_created_again_has_other_addresses_unless_they_were_asked_for(
    before: str, after: str, asked: str, severities: list[str]
) -> None:
    one, other = (child("apps/deployments", spec={"macAddress": address}) for address in (before, after))
    wanted = {"macAddress": asked} if asked else OTHER
    run = run_of(
        (step("create", GOOD), {}, []),
        (step("change", wanted), {}, [one]),
        (GONE, None, []),
        (step("change, created again", wanted), {}, [other]),
    )
    assert [item[0] for item in said(path_dependence, run)] == severities
    in_place = run_of(
        (step("create", wanted), {}, [one]), (step("change", GOOD), {}, []), (step("back", wanted), {}, [other])
    )
    assert [item[0] for item in said(path_dependence, in_place)] == ["high"]


@pytest.mark.spec("K-24")
def test_what_was_refused_was_not_asked_for() -> None:
    run = there_and_back([SET], [KEPT])
    run.checkpoints[2].refused = "no"
    assert list(repeats(run)) == []


@pytest.mark.spec("K-24")
@pytest.mark.parametrize("oracle", [path_dependence, recovery, misoperation])
def test_runs_with_faults_are_judged_by_others(oracle: Any) -> None:
    run = there_and_back([SET], [KEPT])
    run.plan = Plan("crash", (Crash(Place("create", "/pods", "default", "a")),))
    assert said(oracle, run) == []


def mistaken(after: list[tuple[str, Obj]], status: Obj | None = None) -> Run:
    def workload(ready: int, image: str) -> tuple[str, Obj]:
        spec = {"replicas": 1, "image": image}
        return child("apps/statefulsets", spec=spec, status={"readyReplicas": ready, "updatedReplicas": 1})

    return run_of(
        (step("create", GOOD), {"phase": "Running"}, [workload(1, "a")]),
        (step("mistake", OTHER, expect="harmless"), status or {"phase": "Running"}, [workload(0, "b")]),
        (step("mistake, back", GOOD), {"phase": "Running"}, after or [workload(1, "a")]),
    )


def owned(key: str, obj: Obj) -> tuple[str, Obj]:
    metadata = {**obj["metadata"], "ownerReferences": [{"kind": "Shop", "name": "corner", "uid": "u1"}]}
    return key, {**obj, "metadata": metadata}


MADE, WRONG = (owned(*child("things", spec={"image": image})) for image in "ab")


def begun(*children: tuple[str, Obj]) -> Run:
    """Created, deleted, created with a mistake; and what there is once that is corrected."""
    run = run_of(
        (step("create", GOOD), {"phase": "Running"}, [MADE]),
        (GONE, None, []),
        (step("mistake, from the beginning", OTHER, expect="harmless"), {"phase": "Running"}, [WRONG]),
        (step("mistake, back", GOOD), {"phase": "Running"}, list(children)),
    )
    for checkpoint in run.checkpoints:
        for key, obj in checkpoint.state.items():
            if key.startswith("example.com/"):
                obj["metadata"]["uid"] = "u1"
    return run


def said_beside(run: Run, *again: tuple[str, Obj]) -> Said:
    """Beside an undisturbed run that has this once the custom resource was created again."""
    usual = run_of(
        (step("create", GOOD), {"phase": "Running"}, [MADE]),
        (GONE, None, []),
        (step("create again", GOOD), {"phase": "Running"}, list(again)),
        plan=Plan("reference"),
    )
    reference = reference_of(usual, usual)
    return [(alarm.severity, alarm.object, alarm.field, alarm.step) for alarm in recovery(run, reference)]


@pytest.mark.spec("K-119")
def test_what_was_created_with_a_mistake_is_as_well_as_any_once_it_is_corrected() -> None:
    assert said_beside(begun(MADE), MADE) == []
    stuck = said_beside(begun(WRONG), MADE)
    assert stuck == [("high", "things default/corner", "spec.image", "mistake, back")]
    assert said_beside(begun(), MADE) == [("high", "things default/corner", "", "mistake, back")]


@pytest.mark.spec("K-119")
def test_others_may_keep_what_they_took_from_a_mistake() -> None:
    """A machine that was made while its template was wrong: it is not the template's."""
    run = begun(MADE)
    other = {"kind": "Thing", "metadata": {"name": "other", "namespace": "default"}}
    right, wrong = (("things default/other", {**other, "spec": {"image": image}}) for image in "ab")
    run.checkpoints[0].state.update([right])
    run.checkpoints[3].state.update([wrong])
    assert said_beside(run, MADE, right) == []


@pytest.mark.spec("K-119")
def test_what_is_generated_anew_and_what_cannot_be_changed_says_little() -> None:
    def password(value: str) -> tuple[str, Obj]:
        return owned(*child("secrets", data={"password": value}))

    run = begun(MADE, password("b"))
    run.checkpoints[0].state.update([password("a")])
    assert said_beside(run, MADE, password("c")) == []
    before, after = (owned(*child("apps/statefulsets", spec={"volumeClaimTemplates": [{"a": n}]})) for n in "ab")
    run = begun(MADE, after)
    run.checkpoints[0].state.update([before])
    assert [item[0] for item in said_beside(run, MADE, before)] == ["low"]


@pytest.mark.spec("K-119")
def test_what_the_undisturbed_run_has_when_it_is_created_again_is_right() -> None:
    assert said_beside(begun(WRONG), WRONG) == []


@pytest.mark.spec("K-24")
def test_a_mistake_that_is_taken_back_leaves_nothing() -> None:
    assert said(recovery, mistaken([])) == []
    assert said(path_dependence, mistaken([KEPT])) == []
    stuck = said(recovery, mistaken([child("apps/statefulsets", spec={"replicas": 1, "image": "b"})]))
    assert ("high", "apps/statefulsets default/corner", "spec.image", "mistake, back") in stuck


@pytest.mark.spec("K-24")
def test_a_mistake_that_does_harm_is_said_by_the_status() -> None:
    assert said(misoperation, mistaken([], {"phase": "Failed"})) == []
    assert [item[0] for item in said(misoperation, mistaken([]))] == ["low"]
    stuck = [child("apps/statefulsets", spec={"replicas": 1, "image": "b"})]
    assert [item[0] for item in said(misoperation, mistaken(stuck))] == ["medium"]


def changed(core: str = "", *more: tuple[Step, Obj | None, list[tuple[str, Obj]]]) -> Run:
    return run_of((step("create", GOOD), {}, [SET]), (step("change", OTHER, core=core), {}, [SET]), *more)


@pytest.mark.spec("K-25")
def test_a_change_without_effect() -> None:
    assert [item[0] for item in said(effect, changed())] == ["low"]
    assert [item[0] for item in said(effect, changed("Tolerations"))] == ["medium"]


@pytest.mark.spec("K-135")
def test_an_image_that_was_not_named_may_be_that_of_a_part_that_is_not_there() -> None:
    def run(core: str, *second: Obj) -> Run:
        steps = [step("create", {"color": "red"})]
        steps += [step(f"{number}", spec, "spec.image", core=core) for number, spec in enumerate(second)]
        return run_of(*((item, {}, [SET]) for item in steps))

    one, other = {"color": "red", "image": "a"}, {"color": "red", "image": "b"}
    assert [item[0] for item in said(effect, run("Image", one))] == ["low"]
    assert [item[0] for item in said(effect, run("Labels", one))] == ["medium"]
    named = run_of((step("create", one), {}, [SET]), (step("change", other, "spec.image", core="Image"), {}, [SET]))
    assert [item[0] for item in said(effect, named)] == ["medium"]


@pytest.mark.spec("K-25")
def test_another_order_of_a_list_is_a_guess() -> None:
    def run(*second: str) -> Run:
        change = step("change", {"hosts": list(second)}, "spec.hosts", core="Tolerations")
        return run_of((step("create", {"hosts": ["a", "b"]}), {}, [SET]), (change, {}, [SET]))

    assert [item[0] for item in said(effect, run("b", "a"))] == ["low"]
    assert [item[0] for item in said(effect, run("b", "b"))] == ["medium"]


@pytest.mark.spec("K-25")
@pytest.mark.parametrize("failure", [{"error": "no"}, {"logs": {"errors": {"1": "no"}}}, {"phase": "Failed"}], ids=str)
def test_a_value_that_is_refused_in_place_of_another_has_no_effect(failure: Obj) -> None:
    other = step("other", {"color": "green"})

    def run(before: Obj, now: Obj) -> Run:
        return run_of(
            (step("create", GOOD), before, [SET]), (step("change", OTHER), before, [KEPT]), (other, now, [KEPT])
        )

    assert said(effect, run(failure, failure)) == []
    assert [item[0] for item in said(effect, run({}, {}))] == ["medium"]


@pytest.mark.spec("K-25")
def test_the_status_is_an_effect() -> None:
    run = run_of((step("create", GOOD), {}, [SET]), (step("change", OTHER), {"color": "blue"}, [SET]))
    assert said(effect, run) == []


@pytest.mark.spec("K-25")
def test_a_status_that_repeats_what_was_asked_for_is_none_for_what_is_handed_on() -> None:
    def run(status: Obj) -> Run:
        grow = step("grow", OTHER, core="StorageSize")
        return run_of((step("create", GOOD), {"size": "red", "phase": "Running"}, [SET]), (grow, status, [SET]))

    assert [item[0] for item in said(effect, run({"size": "blue", "phase": "Running"}))] == ["medium"]
    assert said(effect, run({"size": "red", "phase": "Resizing"})) == []


@pytest.mark.spec("K-126")
def test_what_is_of_a_part_that_does_nothing_when_it_is_switched_on_is_a_guess() -> None:
    """The kind of object that it makes may not be there: a monitor without its definition."""

    create, on = step("create", GOOD), step("monitor.enabled: on", {**GOOD, "on": True}, "spec.on")
    labels = step("monitor.labels: add", {**OTHER, "on": True}, core="Labels")
    alone = step("monitor.labels: add", OTHER, core="Labels")
    made = [SET, child("monitors", spec={})]
    idle, at_once = run_of((create, {}, [SET]), (on, {}, [SET]), (labels, {}, [SET])), (labels, {}, [SET])
    assert [item[0] for item in said(effect, idle) if item[2] == "spec.color"] == ["low"]
    assert [item[0] for item in said(effect, run_of((create, {}, [SET]), at_once))] == ["low"]
    assert [item[0] for item in said(effect, run_of((create, {}, [SET]), (on, {}, made), (labels, {}, made)))] == [
        "medium"
    ]
    assert [item[0] for item in said(effect, run_of((create, {}, [SET]), (alone, {}, [SET])))] == ["medium"]


@pytest.mark.spec("K-126")
def test_a_digest_in_the_status_is_no_effect_of_what_is_handed_on() -> None:
    """It sums up the custom resource, whatever becomes of the change. What is for the application may be seen in it."""

    def run(core: str, **more: str) -> Run:
        change = step("change", OTHER, core=core)
        return run_of((step("create", GOOD), {"specHash": "1"}, [SET]), (change, {"specHash": "2", **more}, [SET]))

    assert [item[0] for item in said(effect, run("Tolerations"))] == ["medium"]
    assert said(effect, run("Tolerations", phase="Updating")) == []
    assert said(effect, run("")) == []


@pytest.mark.spec("K-25")
def test_a_field_that_had_an_effect_and_has_none_any_more() -> None:
    run = run_of(
        (step("create", GOOD), {}, [SET]),
        (step("change", OTHER), {}, [KEPT]),
        (step("change (2)", {"color": "green"}), {}, [KEPT]),
    )
    assert [(item[0], item[3]) for item in said(effect, run)] == [("medium", "change (2)")]


@pytest.mark.spec("K-25")
def test_after_something_stayed_behind_nothing_is_said_of_effects() -> None:
    run = run_of(
        (step("create", GOOD), {}, [SET]),
        (step("change", OTHER), {}, [KEPT]),
        (step("change, back", GOOD), {}, [KEPT]),
        (step("other", {**GOOD, "size": 1}, "spec.size"), {}, [KEPT]),
    )
    assert said(path_dependence, run) != []
    assert said(effect, run) == []


@pytest.mark.spec("K-25")
def test_an_operator_that_says_it_is_held_up_needs_no_effect() -> None:
    run = run_of(
        (step("create", GOOD), {"phase": "Running"}, [SET]),
        (step("wrong", {**GOOD, "size": -1}, "spec.size"), {"phase": "Invalid"}, [SET]),
        (step("wrong (2)", {**GOOD, "size": -2}, "spec.size", core="Replicas"), {"phase": "Invalid"}, [SET]),
    )
    assert said(effect, run) == []


@pytest.mark.spec("K-24")
def test_when_something_was_done_may_stay_written() -> None:
    def run(value: str) -> Run:
        after = child("services")
        after[1]["metadata"]["annotations"] = {"restarted-at": value}
        return there_and_back([child("services")], [after])

    assert said(path_dependence, run("2026-01-01T00:00:31Z")) == []
    assert [item[0] for item in said(path_dependence, run("yes"))] == ["medium"]
    stamped = child("configmaps", metadata={"name": "corner", "annotations": {"updatedAt": "2026-01-01T00:00:31Z"}})
    plain = child("configmaps", metadata={"name": "corner"})
    assert said(path_dependence, there_and_back([stamped], [plain])) == []


@pytest.mark.spec("K-24")
def test_an_annotation_that_a_mistake_left_is_medium() -> None:
    spec = {"replicas": 1, "image": "a"}
    after = child("apps/statefulsets", spec=spec, status={"readyReplicas": 1, "updatedReplicas": 1})
    after[1]["metadata"]["annotations"] = {"a": "b"}
    assert [item[0] for item in said(recovery, mistaken([after]))] == ["medium"]


@pytest.mark.spec("K-112")
@pytest.mark.parametrize(("name", "said"), [("a", True), ("b", True), ("c", False)])
def test_each_custom_resource_that_a_step_applies_may_say_that_it_was_held(name: str, said: bool) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    one, other = (config | {"apiVersion": "x.dev/v1", "metadata": {"name": n, "namespace": "default"}} for n in "ab")
    again = Step("created again", (Apply(one), Apply(config), Apply(other)))
    told = Difference(f"x.dev/things default/{name}", "status.conditions[Ready].status", "False", "True")
    assert is_said([told], again) is said
    assert not is_said([told._replace(key=f"pods default/{name}")], again), "a pod of that name is no custom resource"
