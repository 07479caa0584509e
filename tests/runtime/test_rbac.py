"""Permissions: the rules to grant, and the check at the start."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects import Resource
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret
from konverge.runtime import (
    Context,
    Controller,
    Manager,
    Reconciler,
    Watch,
)
from konverge.runtime.manager import MissingPermissions
from konverge.runtime.rbac import Permission, missing_permissions, permissions, rules_for
from konverge.sim.faults import Faulty, Plan


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that does nothing."""


class Cleaning(Reconciler[Secret]):
    async def reconcile(self, ctx: Context[Secret]) -> None: ...

    async def cleanup(self, ctx: Context[Secret]) -> None: ...


def test_rules_grant_what_the_declaration_needs_and_nothing_more() -> None:
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
    assert not [
        permission
        for permission in permissions([Controller(Secret, nothing)])
        if permission.resource == "secrets/finalizers"
    ]
    assert Permission("", "nodes", "list") in permissions([controller])
    made = rules_for(permissions([Controller(Secret, nothing, makes=[ConfigMap])]))
    # Without a cache it is read before every apply: is it ours?
    assert {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "delete", "get", "patch"]} in made
    assert Permission("", "secrets", "list", "shop") in permissions([controller])


def test_no_verb_is_granted_beyond_what_is_declared() -> None:
    guests = Resource("tests.konverge.dev", "v1", "Guest", "guests")
    controller = Controller(ConfigMap, nothing, changes=[ConfigMap], deletes=[Pod], calls=[(guests, "pause")])
    needed = permissions([controller])
    assert [permission.verb for permission in needed if permission.resource == "configmaps"] == [
        "get",
        "list",
        "patch",
        "watch",
    ]
    assert [permission.verb for permission in needed if permission.resource == "pods"] == ["delete"]
    assert [permission.verb for permission in needed if permission.group == guests.group] == ["update"]
    assert Permission("tests.konverge.dev", "guests/pause", "update") in needed


@pytest.mark.virtual
@pytest.mark.spec("R-01")
async def test_a_missing_permission_is_reported_in_one_line_before_anything_starts(
    server: ApiServer, client: Client
) -> None:
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
async def test_the_check_of_permissions_is_repeated_while_the_server_cannot_be_reached() -> None:
    async with ApiServer() as server:
        troubled = Faulty(server.transport, Plan.read("lost-after@0 lost-before@1 503@2").faults)
        async with Client(troubled, credentials=Static.bearer(server.token)) as client:
            assert await missing_permissions(client, [Permission("", "pods", "get")]) == []
    assert len(troubled.happened) == 3
