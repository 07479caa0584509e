"""The index of bindings follows the store."""

from __future__ import annotations

import pytest

from konverge.apiserver import bootstrap
from konverge.apiserver.auth.rbac import GROUP, Rbac
from konverge.apiserver.auth.rules import Attributes
from konverge.apiserver.object_access import Objects
from konverge.apiserver.request.user import User
from konverge.apiserver.storage import Store
from konverge.apiserver.strategy import Obj

READ = Attributes("get", "", "configmaps", namespace="one", name="x")
ANN = User("ann", groups=("team",))


@pytest.fixture
def objects() -> Objects:
    return Objects(Store())


def _rbac(objects: Objects) -> Rbac:
    return Rbac(objects._store)


def _role(objects: Objects, verbs: list[str]) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]
    objects.create(GROUP, "roles", {"metadata": {"name": "r", "namespace": "one"}, "rules": rules})


def _bind(objects: Objects, *subjects: Obj, name: str = "b") -> None:
    ref = {"apiGroup": GROUP, "kind": "Role", "name": "r"}
    metadata = {"name": name, "namespace": "one"}
    objects.create(GROUP, "rolebindings", {"metadata": metadata, "roleRef": ref, "subjects": list(subjects)})


@pytest.mark.spec("S-12")
def test_bindings_count_before_and_after_the_first_decision(objects: Objects) -> None:
    _role(objects, ["get"])
    rbac = _rbac(objects)
    assert not rbac.decide(ANN, READ).allowed
    _bind(objects, {"kind": "User", "name": "ann"})
    decision = rbac.decide(ANN, READ)
    assert decision.reason == 'RBAC: allowed by RoleBinding "b/one" of Role "r" to User "ann"'
    assert _rbac(objects).decide(ANN, READ).allowed


@pytest.mark.spec("S-12")
def test_a_role_without_rules_and_a_binding_without_subjects_grant_nothing(objects: Objects) -> None:
    objects.create(GROUP, "roles", {"metadata": {"name": "r", "namespace": "one"}, "rules": None})
    _bind(objects, {"kind": "User", "name": "ann"})
    ref = {"apiGroup": GROUP, "kind": "Role", "name": "r"}
    metadata = {"name": "none", "namespace": "one"}
    objects.create(GROUP, "rolebindings", {"metadata": metadata, "roleRef": ref, "subjects": None})
    decision = _rbac(objects).decide(ANN, READ)
    assert (decision.allowed, decision.reason) == (False, "")


@pytest.mark.spec("S-12")
def test_a_changed_role_and_a_changed_binding_take_effect_at_once(objects: Objects) -> None:
    _role(objects, ["get"])
    _bind(objects, {"kind": "Group", "name": "team"})
    rbac = _rbac(objects)
    assert rbac.decide(ANN, READ).allowed
    objects.update(GROUP, "roles", "one", "r", lambda role: {**role, "rules": []})
    assert not rbac.decide(ANN, READ).allowed
    objects.update(GROUP, "roles", "one", "r", lambda role: {**role, "rules": [_all()]})
    assert rbac.decide(ANN, READ).allowed
    objects.update(GROUP, "rolebindings", "one", "b", lambda binding: {**binding, "subjects": []})
    assert not rbac.decide(ANN, READ).allowed


def _all() -> Obj:
    return {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def test_a_binding_reaches_its_namespace_only(objects: Objects) -> None:
    _role(objects, ["get"])
    _bind(objects, {"kind": "User", "name": "ann"})
    rbac = _rbac(objects)
    assert not rbac.decide(ANN, Attributes("get", "", "configmaps", namespace="two")).allowed
    assert not rbac.decide(ANN, Attributes("get", "", "configmaps")).allowed


def test_accounts_are_bound_by_name_in_the_namespace_of_the_binding(objects: Objects) -> None:
    _role(objects, ["get"])
    _bind(objects, {"kind": "ServiceAccount", "name": "robot"})
    rbac = _rbac(objects)
    assert rbac.decide(User("system:serviceaccount:one:robot"), READ).allowed
    assert not rbac.decide(User("system:serviceaccount:two:robot"), READ).allowed


def test_a_deleted_binding_and_a_deleted_role_are_gone(objects: Objects) -> None:
    _role(objects, ["get"])
    _bind(objects, {"kind": "User", "name": "ann"})
    rbac = _rbac(objects)
    assert rbac.decide(ANN, READ).allowed
    objects.delete(GROUP, "roles", "one", "r")
    decision = rbac.decide(ANN, READ)
    assert decision.reason == f'rbac: RBAC: role.{GROUP} "r" not found'
    objects.delete(GROUP, "rolebindings", "one", "b")
    assert rbac.decide(ANN, READ).reason == ""


@pytest.mark.spec("S-12")
def test_the_default_policy_grants_discovery_and_reviews(objects: Objects) -> None:
    bootstrap.create_policy(objects)
    rbac = _rbac(objects)
    authenticated = User("x", groups=("system:authenticated",))
    assert rbac.decide(authenticated, Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews")).allowed
    assert rbac.decide(authenticated, Attributes("get", path="/api/v1", is_resource=False)).allowed
    assert not rbac.decide(authenticated, Attributes("list", "", "pods")).allowed
    scheduler = User("system:kube-scheduler")
    assert rbac.decide(scheduler, Attributes("create", "", "pods", "binding", "default", "p")).allowed
    roles = {role["metadata"]["name"]: role for role in objects.scan(GROUP, "clusterroles")}
    assert len(roles) == 73
    rules = [rule for rule in roles["view"]["rules"] if "pods" in rule["resources"]]
    assert rules, "the aggregated roles hold what they gather"


def test_the_default_policy_is_created_once(objects: Objects) -> None:
    bootstrap.create_policy(objects)
    revision = objects._store.revision
    bootstrap.create_policy(objects)
    assert objects._store.revision == revision
