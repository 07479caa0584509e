"""Permissions: the rules to grant, and the check at the start."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, ClientError, ConnectionFailed, ConnectionLost, Forbidden, Static
from konverge.client.errors import error_from_answer
from konverge.objects import Resource
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Pod, Secret
from konverge.runtime import (
    Context,
    Controller,
    Manager,
    Owns,
    Reconciler,
    Use,
    Watches,
)
from konverge.runtime.manager import MissingPermissions
from konverge.runtime.rbac import RETRY_DELAYS, Permission, missing_permissions, permissions, rules_for
from konverge.sim.faults import Faulty, Plan


async def nothing(ctx: Context[Any]) -> None:
    """A reconciler that does nothing."""


class Cleaning(Reconciler[Secret]):
    async def reconcile(self, ctx: Context[Secret]) -> None: ...

    async def cleanup(self, ctx: Context[Secret]) -> None: ...


def test_rules_grant_what_the_declaration_needs_and_nothing_more() -> None:
    controller = Controller(
        Secret, Cleaning(), owns=[ConfigMap], watches=[Watches(Node, requests=lambda node: [])], namespaces=("shop",)
    )
    rules = rules_for(permissions([controller], lease_namespace="ops"))
    granted = {(rule["apiGroups"][0], tuple(rule["resources"])): " ".join(rule["verbs"]) for rule in rules}
    assert granted["", ("configmaps",)] == "create delete get list patch watch"
    assert granted["", ("nodes",)] == "get list watch"
    assert granted["", ("secrets",)] == "get list patch watch"
    assert granted["", ("secrets/finalizers",)] == "update"
    assert granted["coordination.k8s.io", ("leases",)] == "create get update watch"
    owner = permissions([Controller(Secret, nothing, owns=[ConfigMap])])
    assert Permission("", "secrets/finalizers", "update") in owner, "for blockOwnerDeletion of its children"
    assert not [
        permission
        for permission in permissions([Controller(Secret, nothing)])
        if permission.resource == "secrets/finalizers"
    ]
    assert Permission("", "nodes", "list") in permissions([controller])
    made = rules_for(permissions([Controller(Secret, nothing, uses=[Use(ConfigMap, "apply", "delete")])]))
    # Without a cache it is read before every apply: is it ours?
    assert {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "delete", "get", "patch"]} in made
    assert Permission("", "secrets", "list", "shop") in permissions([controller])


def test_no_verb_is_granted_beyond_what_is_declared() -> None:
    guests = Resource("tests.konverge.dev", "v1", "Guest", "guests")
    controller = Controller(
        ConfigMap,
        nothing,
        uses=[Use(ConfigMap, "patch"), Use(Pod, "delete"), Use(guests, "update", subresource="pause")],
    )
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


# ------------------------------------------------------------------ each declaration


GUESTS = Resource("tests.konverge.dev", "v1", "Guest", "guests")
HERE = ("shop", "bar")


def granted(*, lease_namespace: str = "", **declared: Any) -> set[tuple[str, str, str]]:
    """(resource with its group, verb, namespace) of a controller of Secrets in two namespaces."""
    controller = Controller(Secret, declared.pop("reconciler", nothing), **{"namespaces": HERE, **declared})
    return {
        (f"{needed.resource}.{needed.group}".rstrip("."), needed.verb, needed.namespace)
        for needed in permissions([controller], lease_namespace=lease_namespace)
    }


def of(resource: str, verbs: str, namespaces: tuple[str, ...] = HERE) -> set[tuple[str, str, str]]:
    return {(resource, verb, namespace) for verb in verbs.split() for namespace in namespaces}


PLAIN = of("secrets", "get list watch") | of("secrets/status", "patch") | of("events", "create patch")


@pytest.mark.parametrize(
    ("declared", "more"),
    [
        ({}, set()),
        ({"reconciler": Cleaning()}, of("secrets", "patch") | of("secrets/finalizers", "update")),
        ({"owns": [Pod]}, of("pods", "create delete get list patch watch") | of("secrets/finalizers", "update")),
        (
            {"owns": [Owns(Pod, namespaces=("far",), metadata_only=True, every_owner=True)]},
            of("pods", "create delete get list patch watch", ("far",)) | of("secrets/finalizers", "update"),
        ),
        ({"uses": [Use(Pod, "delete", "patch")]}, of("pods", "delete patch")),
        ({"uses": [Use(GUESTS, "update", subresource="pause")]}, of("guests/pause.tests.konverge.dev", "update")),
        ({"uses": [Use(Pod, "create", subresource="eviction")]}, of("pods/eviction", "create")),
        ({"uses": [Use(Pod, "apply")]}, of("pods", "create get patch")),  # an apply looks first, and may create
        ({"uses": [Use(Pod, "get")]}, of("pods", "get")),
        ({"uses": [Use(Pod, "watch")]}, of("pods", "get list watch")),  # what a cache needs
        ({"uses": [Use(Pod, "watch", cached=False)]}, of("pods", "watch")),
        ({"uses": [Use(Pod, "delete", cached=True)]}, of("pods", "delete get list watch")),
        ({"uses": [Use(Pod, "update", "deletecollection")]}, of("pods", "update deletecollection")),
        ({"uses": [Use(Pod, optional=True)]}, set()),
        ({"uses": [Use(Pod, "get", namespaces=("far",))]}, of("pods", "get", ("far",))),
        ({"uses": [Use(Node, "watch", namespaces=("far",))]}, of("nodes", "get list watch", ("",))),  # it has none
        ({"watches": [Pod]}, of("pods", "get list watch")),
        ({"watches": [Watches(Pod)]}, of("pods", "get list watch")),
        ({"watches": [Watches(Pod, namespaces=("far",))]}, of("pods", "get list watch", ("far",))),
        ({"watches": [Watches(Pod, namespaces=())]}, of("pods", "get list watch", ("",))),
        ({"lease_namespace": "ops"}, of("leases.coordination.k8s.io", "get create update watch", ("ops",))),
    ],
)
def test_a_declaration_needs_exactly_these_permissions(declared: dict[str, Any], more: set[Any]) -> None:
    assert granted(**declared) == PLAIN | more


def test_a_controller_of_all_namespaces_needs_its_permissions_in_all() -> None:
    everywhere = {(resource, verb, "") for resource, verb, _ in PLAIN}
    assert granted(namespaces=()) == everywhere


def test_permissions_are_sorted_and_each_is_asked_for_once() -> None:
    controllers = [Controller(Secret, nothing, name=name, uses=[Use(Pod, cached=True)]) for name in ("a", "b")]
    needed = permissions(controllers)
    assert needed == sorted(set(needed))
    assert needed == permissions(controllers[:1])


def test_a_rule_has_the_resources_of_a_group_that_have_the_same_verbs() -> None:
    needed = [
        Permission("", "pods", "list", "b"),
        Permission("", "pods", "get", "b"),
        Permission("", "pods", "get", "a"),
        Permission("", "nodes", "get"),
        Permission("apps", "deployments", "get"),
        Permission("", "secrets", "list"),
        Permission("", "secrets", "get"),
    ]
    assert rules_for(needed) == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
    ]


# ------------------------------------------------------------------ the check


class Reviewing(Client):
    """Answers reviews of access: what it was asked, and how many requests were open at the same time."""

    def __init__(self, *errors: ClientError, refuses: tuple[str, ...] = ("*",)) -> None:
        self.asked: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.open = self.most = 0
        self._errors, self._refuses = list(errors), refuses

    async def create(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0.001)
        self.open -= 1
        self.times.append(asyncio.get_running_loop().time())
        if self._errors:
            raise self._errors.pop(0)
        assert (obj["apiVersion"], obj["kind"]) == ("authorization.k8s.io/v1", "SelfSubjectAccessReview")
        assert kwargs["resource"].plural == "selfsubjectaccessreviews"
        self.asked.append(obj["spec"]["resourceAttributes"])
        return {"status": {"allowed": obj["spec"]["resourceAttributes"]["verb"] not in self._refuses}}


@pytest.mark.virtual
async def test_a_review_names_what_is_asked_for_and_leaves_out_what_is_empty() -> None:
    client = Reviewing(refuses=("get", "*"))
    get, create = Permission("", "pods", "get"), Permission("a.dev", "guests/pause", "create", "shop")
    assert await missing_permissions(client, iter([get, create])) == [get]
    assert client.asked == [
        {"group": "*", "resource": "*", "verb": "*"},
        {"resource": "pods", "verb": "get"},
        {"group": "a.dev", "resource": "guests", "subresource": "pause", "verb": "create", "namespace": "shop"},
    ]


@pytest.mark.virtual
async def test_few_reviews_are_asked_for_at_the_same_time() -> None:
    client = Reviewing()
    assert await missing_permissions(client, [Permission("", "pods", str(number)) for number in range(20)]) == []
    assert len(client.asked) == 1 + 20
    assert client.most == 4


@pytest.mark.virtual
@pytest.mark.spec("R-95")
async def test_who_may_do_everything_is_asked_once() -> None:
    client = Reviewing(refuses=())
    assert await missing_permissions(client, [Permission("", "pods", str(number)) for number in range(20)]) == []
    assert client.asked == [{"group": "*", "resource": "*", "verb": "*"}]
    client = Reviewing(refuses=("get",))
    assert await missing_permissions(client, [Permission("", "pods", "get")]) == [Permission("", "pods", "get")]
    assert client.asked == [{"resource": "pods", "verb": "get"}], "one question is no more than the other"


def refused(code: int, reason: str) -> ClientError:
    return error_from_answer(code, json.dumps({"kind": "Status", "reason": reason, "message": reason}).encode())


AWAY = [
    ConnectionFailed("away"),
    ConnectionLost("lost"),
    refused(429, "TooManyRequests"),
    refused(503, "ServiceUnavailable"),
    refused(500, "InternalError"),
]


@pytest.mark.virtual
async def test_a_review_without_an_answer_is_repeated_for_a_while() -> None:
    client = Reviewing(*AWAY)
    assert await missing_permissions(client, [Permission("", "pods", "get")]) == []
    gaps = [round(after - before, 1) for before, after in itertools.pairwise(client.times)]
    assert gaps == list(RETRY_DELAYS)
    client = Reviewing(*AWAY, ConnectionLost("for good"))
    with pytest.raises(ConnectionLost, match="for good"):
        await missing_permissions(client, [Permission("", "pods", "get")])


@pytest.mark.virtual
async def test_a_review_that_is_refused_is_not_repeated() -> None:
    client = Reviewing(refused(403, "Forbidden"))
    with pytest.raises(Forbidden):
        await missing_permissions(client, [Permission("", "pods", "get")])
    assert len(client.times) == 1
