"""Updates that change nothing which counts need no rights of the role; as kube-apiserver 1.37.1 decides."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.apiserver.api import Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
AGGREGATION = {"clusterRoleSelectors": [{"matchLabels": {"none": "such"}}]}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
OBJECTS = ["clusterroles/strong", "clusterroles/aggregated", "clusterrolebindings/strong"]


def _binding(role: str, user: str) -> Any:
    group = "rbac.authorization.k8s.io"
    subjects = [{"apiGroup": group, "kind": "User", "name": user}]
    return {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role}, "subjects": subjects}


async def _prepare(api: Api) -> None:
    """The user uma may update roles and bindings, and nothing else."""
    kinds = ["clusterroles", "clusterrolebindings"]
    rule = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": kinds, "verbs": ["update", "patch"]}
    await api.create("updater", f"{RBAC}/clusterroles", rules=[rule])
    await api.create("updater", f"{RBAC}/clusterrolebindings", **_binding("updater", "uma"))
    await api.create("strong", f"{RBAC}/clusterroles", rules=[SECRETS], labels={"a": "b"})
    await api.create("aggregated", f"{RBAC}/clusterroles", aggregationRule=AGGREGATION)
    await api.create("strong", f"{RBAC}/clusterrolebindings", **_binding("strong", "else"))


async def _put(api: Api, path: str, change: Any, *, without: str = "", expect: int) -> None:
    obj = copy.deepcopy(await api.call("GET", f"{RBAC}/{path}"))
    obj["metadata"].pop(without, None)
    obj["metadata"] |= change.pop("metadata", {})
    await api.call("PUT", f"{RBAC}/{path}", {**obj, **change}, impersonate_user="uma", expect=expect)


@pytest.mark.spec("S-68")
@pytest.mark.parametrize("path", OBJECTS)
async def test_an_update_to_what_it_is_needs_no_rights(api: Api, path: str) -> None:
    await _prepare(api)
    await _put(api, path, {}, expect=200)
    await _put(api, path, {}, without="managedFields", expect=200)
    await api.patch(f"{RBAC}/{path}", {}, impersonate_user="uma")


@pytest.mark.spec("S-68")
@pytest.mark.parametrize("path", OBJECTS)
@pytest.mark.parametrize(
    "metadata", [{"finalizers": ["x.y/z"]}, {"ownerReferences": [OWNER]}, {"managedFields": []}, {"selfLink": "/x"}]
)
async def test_what_the_garbage_collector_changes_needs_no_rights(api: Api, path: str, metadata: Any) -> None:
    await _prepare(api)
    await _put(api, path, {"metadata": metadata}, expect=200)


@pytest.mark.spec("S-68")
@pytest.mark.parametrize("path", OBJECTS)
async def test_any_other_change_needs_the_rights_of_the_role(api: Api, path: str) -> None:
    await _prepare(api)
    await _put(api, path, {"metadata": {"labels": {"c": "d"}}}, expect=403)
    await _put(api, path, {"metadata": {"labels": {"c": "d"}, "finalizers": ["x.y/z"]}}, expect=403)
    await _put(api, path, {}, without="uid", expect=403)
    await _put(api, path, {}, without="creationTimestamp", expect=403)


@pytest.mark.spec("S-68")
async def test_a_change_of_the_rights_alone_needs_them(api: Api) -> None:
    await _prepare(api)
    more = {**SECRETS, "verbs": ["get", "list"]}
    await _put(api, "clusterroles/strong", {"rules": [more]}, expect=403)
    await _put(api, "clusterroles/aggregated", {"aggregationRule": None}, expect=403)
    subjects = _binding("strong", "uma")["subjects"]
    await _put(api, "clusterrolebindings/strong", {"subjects": subjects}, expect=403)
