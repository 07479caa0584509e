"""What belongs to one custom resource selects its own pods alone."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.model import Apply, Run, Step
from konverge.check.oracles.selection import selection
from tests.check.oracles.histories import STEPS, History, obj, reference
from tests.check.oracles.test_company import BESIDE, KEY, OTHER, SANE, history_of, thing

POD, OTHER_POD = "pods default/a-0", "pods default/a-other-0"


def owned(kind: str, by: str, name: str, version: str = "v1", **more: Any) -> dict[str, Any]:
    owner = [{"kind": "Thing", "name": by, "uid": f"uid-Thing-{by}"}]
    metadata = {"ownerReferences": owner, "namespace": "default", **more.pop("metadata", {})}
    return obj(kind, name, apiVersion=version, metadata=metadata, **more)


def pod(by: str) -> dict[str, Any]:
    return owned("Pod", by, f"{by}-0", metadata={"labels": {"app": "thing", "of": by}})


def state(**more: Any) -> dict[str, Any]:
    return {KEY: thing(), OTHER: thing("a-other"), POD: pod("a"), OTHER_POD: pod("a-other"), **more}


def beside(key: str, made: dict[str, Any]) -> Run:
    return history_of(BESIDE).rest({OTHER: thing("a-other")}).rest(state(**{key: made})).run


WIDE, OWN = {"app": "thing"}, {"app": "thing", "of": "a"}


@pytest.mark.spec("K-121")
@pytest.mark.parametrize(
    ("key", "kind", "member", "plain"),
    [
        ("services default/a", "Service", "selector", True),
        ("policy/poddisruptionbudgets default/a", "PodDisruptionBudget", "selector", False),
        ("networking.k8s.io/networkpolicies default/a", "NetworkPolicy", "podSelector", False),
        ("apps/statefulsets default/a", "StatefulSet", "selector", False),
    ],
)
def test_the_pods_of_another_custom_resource_are_not_selected(key: str, kind: str, member: str, plain: bool) -> None:
    def made(labels: dict[str, str]) -> dict[str, Any]:
        return owned(kind, "a", "a", spec={member: labels if plain else {"matchLabels": labels}})

    (alarm,) = selection(beside(key, made(WIDE)), SANE)
    assert (alarm.object, alarm.severity) == (key, "medium")
    assert "pods default/a-other-0" in alarm.sentence
    assert list(selection(beside(key, made(OWN)), SANE)) == []
    assert list(selection(beside(key, made({})), SANE)) == []  # all of the namespace, on purpose


@pytest.mark.spec("K-121")
def test_what_belongs_to_nobody_or_to_both_may_select_both() -> None:
    service = owned("Service", "a", "a", spec={"selector": WIDE})
    shared = {**service, "metadata": {**service["metadata"]}}
    shared["metadata"]["ownerReferences"] = [
        {"kind": "Thing", "name": name, "uid": f"uid-Thing-{name}"} for name in ("a", "a-other")
    ]
    assert list(selection(beside("services default/a", shared), SANE)) == []
    nobodys = {**service, "metadata": {**service["metadata"], "ownerReferences": []}}
    assert list(selection(beside("services default/a", nobodys), SANE)) == []
    elsewhere = {**service, "metadata": {**service["metadata"], "namespace": "other"}}
    assert list(selection(beside("services other/a", elsewhere), SANE)) == []


@pytest.mark.spec("K-121")
def test_what_belongs_to_another_kind_may_select_them() -> None:
    """It refers to them: an address, a policy for all of them."""
    owner = [{"kind": "Place", "name": "p", "uid": "uid-Place-p"}]
    place = obj("Place", "p", apiVersion="example.dev/v1")
    of_place = obj("Service", "p", spec={"selector": WIDE}, metadata={"ownerReferences": owner, "namespace": "default"})
    steps = (Step("create", (*STEPS[0].actions, Apply({**place, "metadata": {"name": "p", "namespace": "default"}}))),)
    made = state(**{"services default/p": of_place, "example.dev/places default/p": place})
    sane = reference(History(steps).rest(made))
    assert list(selection(sane.run, sane)) == []


@pytest.mark.spec("K-121")
def test_the_undisturbed_run_is_asked_as_well_and_faults_are_not() -> None:
    steps = (Step("create", (*STEPS[0].actions, Apply(BESIDE.steps[0].actions[0].object))),)  # type: ignore[index,union-attr]
    made = state(**{"services default/a": owned("Service", "a", "a", spec={"selector": WIDE})})
    sane = reference(History(steps).rest(made))
    (alarm,) = selection(sane.run, sane)
    assert alarm.step == "create"
    assert list(selection(History(steps).rest(made).run, sane)) == []
