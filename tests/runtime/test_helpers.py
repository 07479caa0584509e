"""Conditions, owners, predicates, permissions: the small parts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cache.record import Key, Record
from konverge.cache.store import Change, ChangeType
from konverge.client import Client, Static
from konverge.objects import Condition, ObjectMeta, Resource
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret
from konverge.runtime import (
    Context,
    Controller,
    Manager,
    OwnershipError,
    Reconciler,
    Watch,
    all_of,
    annotations_changed,
    any_of,
    controller_of,
    generation_changed,
    is_true,
    labels_changed,
    not_,
    resource_version_changed,
    set_condition,
    set_controller_reference,
)
from konverge.runtime.manager import MissingPermissions
from konverge.runtime.rbac import Permission, missing_permissions, permissions, rules_for
from konverge.sim.faults import Faulty, Plan

# ------------------------------------------------------------------ conditions


@pytest.mark.virtual
@pytest.mark.spec("R-24")
async def test_the_transition_time_moves_with_the_status_only() -> None:
    conditions: list[Condition] = []
    assert set_condition(conditions, "Ready", False, "Waiting", "2 of 3", observed_generation=1)
    first = conditions[0].last_transition_time
    await asyncio.sleep(60)
    assert set_condition(conditions, "Ready", False, "Waiting", "1 of 3", observed_generation=2)
    assert (conditions[0].last_transition_time, conditions[0].observed_generation) == (first, 2)
    assert not set_condition(conditions, "Ready", False, "Waiting", "1 of 3", observed_generation=2)
    assert set_condition(conditions, "Ready", True, "AllReady")
    assert conditions[0].last_transition_time > first
    assert is_true(conditions, "Ready")
    assert not is_true(conditions, "Other")


# ------------------------------------------------------------------ owners


def named(kind: type[Any], name: str, namespace: str = "shop", uid: str = "u") -> Any:
    return kind(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


@pytest.mark.spec("R-22")
def test_an_owner_is_set_once() -> None:
    owned = ConfigMap(metadata=ObjectMeta(name="c", namespace="shop"))
    owner = named(Secret, "s")
    set_controller_reference(owner, owned)
    set_controller_reference(owner, owned)
    assert len(owned.metadata.owner_references) == 1
    found = controller_of(owned)
    assert found is not None
    assert (found.kind, found.name, found.block_owner_deletion) == ("Secret", "s", True)


@pytest.mark.spec("R-22")
@pytest.mark.parametrize(
    ("owner", "owned", "message"),
    [
        (named(Secret, "other", uid="u2"), named(ConfigMap, "c"), "is already controlled by Secret s"),
        (named(Secret, "s", "there"), named(ConfigMap, "c"), "owners work within one namespace only"),
        (named(Secret, "s"), named(Node, "n", ""), "is cluster-scoped and cannot be owned"),
    ],
)
def test_owners_that_the_collector_would_punish_are_refused(owner: Any, owned: Any, message: str) -> None:
    if "already" in message:
        set_controller_reference(named(Secret, "s"), owned)
    with pytest.raises(OwnershipError, match=message):
        set_controller_reference(owner, owned)


def test_a_cluster_scoped_owner_may_own_anything() -> None:
    owned = named(Pod, "p")
    set_controller_reference(named(Node, "n", ""), owned)
    assert controller_of(owned) is not None


# ------------------------------------------------------------------ predicates


def record(version: int, generation: int = 1, **metadata: Any) -> Record:
    raw = json.dumps({"metadata": {"name": "a", "uid": "u", **metadata}}).encode()
    return Record(raw, version, "u", generation)


def changed(old: Record | None, new: Record | None) -> Change:
    kind = ChangeType.ADDED if old is None else ChangeType.DELETED if new is None else ChangeType.UPDATED
    return Change(kind, Key("", "a"), old, new)


@pytest.mark.spec("R-23")
def test_predicates_tell_changes_apart() -> None:
    base = record(1)
    spec = changed(base, record(2, 2))
    status = changed(base, record(2))
    labels = changed(base, record(2, labels={"a": "1"}))
    notes = changed(base, record(2, annotations={"a": "1"}))
    resync = changed(base, base)
    table = {
        generation_changed: [spec],
        labels_changed: [labels],
        annotations_changed: [notes],
        resource_version_changed: [spec, status, labels, notes],
        any_of(labels_changed, annotations_changed): [labels, notes],
        all_of(resource_version_changed, not_(generation_changed)): [status, labels, notes],
    }
    for predicate, passing in table.items():
        for change in (spec, status, labels, notes, resync):
            assert predicate(change) == (change in passing)
    for whole in (changed(None, base), changed(base, None)):
        assert all(predicate(whole) for predicate in (generation_changed, labels_changed, annotations_changed))


# ------------------------------------------------------------------ permissions


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that is content."""


class Cleaning(Reconciler[Secret]):
    async def reconcile(self, ctx: Context[Secret]) -> None: ...

    async def cleanup(self, ctx: Context[Secret]) -> None: ...


def test_rules_come_from_the_declaration_with_nothing_to_spare() -> None:
    controller = Controller(
        Secret, Cleaning(), owns=[ConfigMap], watches=[Watch(kind=Node, requests=lambda node: [])], namespaces=("shop",)
    )
    rules = rules_for(permissions([controller], lease_namespace="ops"))
    granted = {(rule["apiGroups"][0], tuple(rule["resources"])): " ".join(rule["verbs"]) for rule in rules}
    assert granted["", ("configmaps",)] == "create delete get list patch watch"
    assert granted["", ("nodes",)] == "get list watch"
    assert granted["", ("secrets",)] == "get list patch watch"
    assert granted["", ("secrets/finalizers",)] == "update"
    assert granted["coordination.k8s.io", ("leases",)] == "create get update"
    owner = permissions([Controller(Secret, nothing, owns=[ConfigMap])])
    assert Permission("", "secrets/finalizers", "update") in owner, "for blockOwnerDeletion of its children"
    assert not [one for one in permissions([Controller(Secret, nothing)]) if one.resource == "secrets/finalizers"]
    assert Permission("", "nodes", "list") in permissions([controller])
    assert Permission("", "secrets", "list", "shop") in permissions([controller])


def test_no_verb_is_granted_beyond_what_is_declared() -> None:
    guests = Resource("tests.konverge.dev", "v1", "Guest", "guests")
    controller = Controller(ConfigMap, nothing, changes=[ConfigMap], deletes=[Pod], calls=[(guests, "pause")])
    needed = permissions([controller])
    assert [one.verb for one in needed if one.resource == "configmaps"] == ["get", "list", "patch", "watch"]
    assert [one.verb for one in needed if one.resource == "pods"] == ["delete"]
    assert [one.verb for one in needed if one.group == guests.group] == ["update"]
    assert Permission("tests.konverge.dev", "guests/pause", "update") in needed


@pytest.mark.virtual
@pytest.mark.spec("R-01")
async def test_a_missing_permission_is_one_line_before_anything_starts(server: ApiServer, client: Client) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poor", "namespace": "default"}}
    await client.create(account)
    token = await client.request_token("poor", "default")
    poor = Client(server.transport, credentials=Static.bearer(token.token))
    manager = Manager(poor).add(Controller(Secret, nothing))
    with pytest.raises(MissingPermissions) as caught:
        await manager.serve(asyncio.Event())
    text = str(caught.value)
    assert text.startswith("missing permissions: create events in all namespaces; ")
    assert "list secrets in all namespaces" in text
    assert "\n" not in text


@pytest.mark.virtual
async def test_the_check_of_permissions_outlasts_a_server_that_is_away() -> None:
    async with ApiServer() as server:
        troubled = Faulty(server.transport, Plan.read("lost-after@0 lost-before@1 503@2").faults)
        async with Client(troubled, credentials=Static.bearer(server.token)) as client:
            assert await missing_permissions(client, [Permission("", "pods", "get")]) == []
    assert len(troubled.happened) == 3
