"""The children of a call: what is refused before anything is written, the order, and what marks a member."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.apps_v1 import Deployment, DeploymentSpec
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Secret
from konverge.objects.meta import LabelSelector, ObjectMeta
from konverge.runtime import OwnershipError
from konverge.runtime.apply_set import Child
from konverge.runtime.apply_set.members import AFTER, PART_OF, after_tokens, set_id
from konverge.runtime.apply_set.plan import Step, plan
from konverge.runtime.owners import controller_of

pytestmark = pytest.mark.spec("R-62")


def owner(name: str = "a", uid: str = "1") -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace="default", uid=uid))


def child(name: str, **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels))


def planned(*children: Any, stages: Any = ()) -> list[Step]:
    return plan(owner(), children, stages, "id")


def names(steps: list[Step]) -> list[str]:
    return [step.ref.name for step in steps]


def test_without_dependencies_the_order_is_that_of_the_list() -> None:
    assert names(planned(child("c"), child("a"), child("b"))) == ["c", "a", "b"]


def test_a_child_comes_after_what_it_depends_on() -> None:
    first, second, third = child("first"), child("second"), child("third")
    steps = planned(Child(third, after=[second, first]), Child(second, after=[first]), first)
    assert names(steps) == ["first", "second", "third"]
    assert [{ref.name for ref in step.after} for step in steps] == [set(), {"first"}, {"first", "second"}]


def test_a_stage_comes_after_the_one_before() -> None:
    steps = planned(stages=[[child("a"), child("b")], [], [child("c")], [Child(child("d"))]])
    assert {step.ref.name: {ref.name for ref in step.after} for step in steps} == {
        "a": set(), "b": set(), "c": {"a", "b"}, "d": {"c"},
    }  # fmt: skip


def test_a_member_carries_label_reference_and_what_it_depends_on() -> None:
    first, second = child("first", app="x"), child("second")
    planned(first, Child(second, after=[first]))
    assert first.metadata.labels == {"app": "x", PART_OF: "id"}
    assert first.metadata.annotations == {}
    assert after_tokens(second.metadata.annotations) == {"ConfigMap/default/first"}
    for made in (first, second):
        reference = controller_of(made)
        assert reference is not None
        assert reference.uid == "1"
        assert made.metadata.namespace == "default"


def test_labels_that_are_a_selector_too_are_not_changed_in_it() -> None:
    labels = {"app": "x"}
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels))
    web = Deployment(metadata=ObjectMeta(name="web", labels=labels), spec=spec)
    planned(web)
    assert labels == {"app": "x"}
    assert web.spec.selector.match_labels == {"app": "x"}
    assert web.metadata.labels == {"app": "x", PART_OF: "id"}


def test_a_dependency_that_is_no_longer_declared_leaves_no_annotation() -> None:
    again = child("a")
    again.metadata.annotations = {AFTER: '["ConfigMap/default/gone"]', "other": "kept"}
    planned(again)
    assert again.metadata.annotations == {"other": "kept"}


def test_the_annotation_names_kinds_with_their_groups() -> None:
    web = Deployment(metadata=ObjectMeta(name="web"))
    after = child("after")
    planned(web, Child(after, after=[web]))
    assert after.metadata.annotations == {AFTER: '["Deployment.apps/default/web"]'}


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "[1]"])
def test_an_annotation_that_a_user_broke_says_nothing(text: str) -> None:
    assert after_tokens({AFTER: text}) == frozenset()


def test_what_is_refused() -> None:
    a, b = child("a"), child("b")
    with pytest.raises(ValueError, match="ConfigMap a is in the set twice"):
        planned(a, child("a"))
    with pytest.raises(ValueError, match="ConfigMap b comes after ConfigMap a, which is not in the set"):
        planned(Child(b, after=[a]))
    with pytest.raises(ValueError, match=r"in a circle: ConfigMap [ab] after ConfigMap [ab] after ConfigMap [ab]"):
        planned(Child(a, after=[b]), Child(b, after=[a]))
    with pytest.raises(ValueError, match="a ConfigMap of the set has no name"):
        planned(child(""))
    with pytest.raises(ValueError, match="not both"):
        plan(owner(), [a], [[b]], "id")
    with pytest.raises(ValueError, match="carries the label"):
        planned(child("a", **{PART_OF: "other"}))
    with pytest.raises(OwnershipError, match="cluster-scoped"):
        planned(Namespace(metadata=ObjectMeta(name="n")))


def test_the_same_name_of_two_kinds_is_two_children() -> None:
    assert names(planned(child("a"), Secret(metadata=ObjectMeta(name="a")))) == ["a", "a"]


@pytest.mark.spec("R-63")
def test_the_id_is_that_of_kubectl_and_differs_by_owner_kind_and_name() -> None:
    # the example of Kubernetes' list of well-known labels
    documented = Secret(metadata=ObjectMeta(name="my-set", namespace="test"))
    assert set_id(documented) == "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"
    ids = {
        set_id(owner()), set_id(owner("b")), set_id(owner(), "x"), set_id(owner(), "y"),
        set_id(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"))),
        set_id(Secret(metadata=ObjectMeta(name="a", namespace="other"))),
    }  # fmt: skip
    assert len(ids) == 6
    assert all(len(entry) <= 63 for entry in ids)
    assert set_id(owner(uid="1")) == set_id(owner(uid="2"))
