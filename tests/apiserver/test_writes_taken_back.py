"""What a server does with writes that a failing disk takes back: no part of it goes on as if they were there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer, status
from konverge.apiserver.storage import sqlite
from tests.apiserver.api import CONFIG_MAPS, MERGE, Api
from tests.apiserver.definitions import definition
from tests.apiserver.storage.faulty_disk import BROKEN, Fault, FaultyDisk

pytestmark = [pytest.mark.virtual, pytest.mark.spec("T-05")]

SERVICES = "/api/v1/namespaces/default/services"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
EVENTS = "/api/v1/namespaces/default/events"


class Faulty(Api):
    """A server whose disk can be made to fail."""

    def __init__(self, server: ApiServer, disk: FaultyDisk) -> None:
        super().__init__(server)
        self.disk = disk

    def fail(self) -> None:
        """Writes are in doubt: in memory, and neither on disk nor taken back, until `heal`."""
        self.disk.fail("commit", "connect", fault=Fault(BROKEN))

    def fail_clearly(self) -> None:
        """Writes are taken back at once."""
        self.disk.fail("statement", "connect", fault=Fault(BROKEN))

    def fail_after(self, stored: int) -> None:
        """So many commits pass, then none does."""
        commits = 0

        def plan(kind: str) -> Fault | None:
            nonlocal commits
            commits += kind == "commit"
            return Fault(BROKEN) if kind == "commit" and commits > stored else None

        self.disk.plan = plan

    async def heal(self) -> None:
        self.disk.work()
        await asyncio.sleep(2)
        assert self.server.store.failure is None

    async def lose(self, *requests: Awaitable[Any]) -> None:
        """Send requests that are taken back."""
        self.fail()
        for answer in await asyncio.gather(*requests):
            assert answer.status >= 500
        await self.heal()


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[Faulty]:
    disk = FaultyDisk()
    async with ApiServer(data_dir=tmp_path, disk=disk) as server:
        yield Faulty(server, disk)


WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def widget(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, **metadata}}


def service(name: str, ip: str = "", port: int = 0) -> dict[str, Any]:
    ports = [{"port": 80, **({"nodePort": port} if port else {})}]
    kind = "NodePort" if port else "ClusterIP"
    return {"metadata": {"name": name}, "spec": {"type": kind, "ports": ports, **({"clusterIP": ip} if ip else {})}}


async def test_addresses_of_a_service_that_was_not_stored_are_free(faulty: Faulty) -> None:
    await faulty.lose(faulty.send("POST", SERVICES, service("a", "10.96.7.7", 30007)))
    await faulty.call("POST", SERVICES, service("b", "10.96.7.7", 30007))


async def test_addresses_of_a_service_whose_removal_was_not_stored_are_taken(faulty: Faulty) -> None:
    await faulty.call("POST", SERVICES, service("a", "10.96.7.7", 30007))
    await faulty.lose(
        faulty.send("DELETE", f"{SERVICES}/a"), faulty.send("POST", SERVICES, service("b", "10.96.7.7", 30007))
    )
    for other in (service("b", ip="10.96.7.7"), service("b", port=30007)):
        assert b"already allocated" in (await faulty.send("POST", SERVICES, other)).body
    await faulty.call("DELETE", f"{SERVICES}/a")
    await faulty.call("POST", SERVICES, service("b", "10.96.7.7", 30007))


async def is_allowed(api: Api) -> bool:
    attributes = {"namespace": "default", "verb": "get", "resource": "configmaps", "name": "x"}
    review = {"spec": {"user": "alice", "resourceAttributes": attributes}}
    answer = await api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
ROLE = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}
BINDING = {
    "metadata": {"name": "b"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
}


@pytest.mark.parametrize("lost", [(ROLES, ROLE), (BINDINGS, BINDING)], ids=["role", "binding"])
async def test_no_user_has_rights_by_what_was_not_stored(faulty: Faulty, lost: tuple[str, Any]) -> None:
    for path, obj in ((ROLES, ROLE), (BINDINGS, BINDING)):
        if path != lost[0]:
            await faulty.call("POST", path, obj)
    faulty.fail()
    assert (await faulty.send("POST", *lost)).status == 504
    assert not await is_allowed(faulty)
    await faulty.heal()
    assert not await is_allowed(faulty)
    await faulty.call("POST", *lost)
    assert await is_allowed(faulty)
    await faulty.lose(faulty.send("DELETE", f"{lost[0]}/{lost[1]['metadata']['name']}"))
    assert await is_allowed(faulty)


async def test_a_policy_that_was_not_stored_refuses_nothing(faulty: Faulty) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    policy = {"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail", **spec}}
    binding = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {"metadata": {"name": "h"}, "webhooks": [hook]}
    faulty.fail()
    sent = [
        faulty.send("POST", f"{POLICIES}/validatingadmissionpolicies", policy),
        faulty.send("POST", f"{POLICIES}/validatingadmissionpolicybindings", binding),
        faulty.send("POST", f"{POLICIES}/validatingwebhookconfigurations", configuration),
    ]
    await asyncio.gather(*sent)
    assert (await faulty.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})).status == 503  # it was asked
    await faulty.heal()
    await faulty.create("x")


async def condition(api: Api, path: str, kind: str) -> str:
    conditions = (await api.call("GET", path)).get("status", {}).get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == kind), "")


async def test_a_definition_is_served_when_the_disk_works_again(faulty: Faulty) -> None:
    """The server's own writes about it are taken back, or refused."""
    path = f"{DEFINITIONS}/widgets.example.com"
    faulty.fail_after(1)
    await faulty.call("POST", DEFINITIONS, definition("widgets", "Widget"))
    await asyncio.sleep(3)
    assert await condition(faulty, path, "Established") == ""
    assert (await faulty.send("GET", WIDGETS)).status == 404
    await faulty.heal()
    assert await condition(faulty, path, "Established") == "True"
    await faulty.call("POST", WIDGETS, widget("w"))


@pytest.mark.parametrize("stored", [1, 2])  # the mark; the condition; not the deletion of the instances
async def test_a_definition_is_deleted_when_the_disk_works_again(faulty: Faulty, stored: int) -> None:
    await faulty.call("POST", DEFINITIONS, definition("widgets", "Widget"))
    await asyncio.sleep(1)
    for name in "ab":
        await faulty.call("POST", WIDGETS, widget(name))
    faulty.fail_after(stored)
    await faulty.send("DELETE", f"{DEFINITIONS}/widgets.example.com")
    await asyncio.sleep(3)
    assert faulty.server.store.failure is not None
    assert len(faulty.server.store.table("example.com/widgets").records) == 2
    await faulty.heal()
    assert (await faulty.send("GET", f"{DEFINITIONS}/widgets.example.com")).status == 404
    assert not faulty.server.store.table("example.com/widgets").records


async def test_a_definition_goes_with_its_last_instance_when_the_disk_works_again(faulty: Faulty) -> None:
    await faulty.call("POST", DEFINITIONS, definition("widgets", "Widget"))
    await asyncio.sleep(1)
    await faulty.call("POST", WIDGETS, widget("a", finalizers=["example.com/held"]))
    await faulty.call("DELETE", f"{DEFINITIONS}/widgets.example.com")
    await asyncio.sleep(1)
    faulty.fail_after(1)
    await faulty.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": None}})
    await asyncio.sleep(3)
    assert (await faulty.send("GET", f"{DEFINITIONS}/widgets.example.com")).status == 200
    await faulty.heal()
    assert (await faulty.send("GET", f"{DEFINITIONS}/widgets.example.com")).status == 404


async def create_events(api: Api) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    for name in "ab":
        await api.call("POST", EVENTS, {"metadata": {"name": name}, "involvedObject": about, "reason": "R"})


async def test_events_expire_when_the_disk_works_again(faulty: Faulty) -> None:
    await create_events(faulty)
    faulty.fail_clearly()
    assert (await faulty.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})).status == 503
    await asyncio.sleep(3700)
    assert len((await faulty.call("GET", EVENTS))["items"]) == 2
    await faulty.heal()
    assert (await faulty.call("GET", EVENTS))["items"] == []


async def test_events_whose_removal_was_not_stored_expire_later(faulty: Faulty) -> None:
    await create_events(faulty)
    faulty.fail_clearly()
    await asyncio.sleep(3700)
    assert len((await faulty.call("GET", EVENTS))["items"]) == 2
    faulty.disk.work()
    await asyncio.sleep(3700)
    assert (await faulty.call("GET", EVENTS))["items"] == []


async def test_conditions_follow_when_the_disk_works_again(faulty: Faulty) -> None:
    faulty.fail_after(1)
    spec = {"priorityLevelConfiguration": {"name": "mine"}, "matchingPrecedence": 500}
    await faulty.call("POST", f"{FLOW}/flowschemas", {"metadata": {"name": "s"}, "spec": spec})
    await asyncio.sleep(3)
    assert await condition(faulty, f"{FLOW}/flowschemas/s", "Dangling") == ""
    await faulty.heal()
    assert await condition(faulty, f"{FLOW}/flowschemas/s", "Dangling") == "True"


class Slow:
    """Admission that waits for the test."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.release = asyncio.Event()
        self._refuses = refuses

    async def admit(self, request: Any) -> None:
        await self.release.wait()
        if self._refuses:
            raise status.forbidden("", "configmaps", "x", "no")

    async def validate(self, request: Any) -> None:
        pass


REQUESTS: dict[str, tuple[str, str, Any]] = {
    "create": ("POST", CONFIG_MAPS, {"metadata": {"name": "new"}}),
    "update": ("PATCH", f"{CONFIG_MAPS}/x", {"data": {"a": "b"}}),
    "no change": ("PATCH", f"{CONFIG_MAPS}/x", {}),
    "dry run": ("PATCH", f"{CONFIG_MAPS}/x?dryRun=All", {"data": {"a": "b"}}),
    "delete": ("DELETE", f"{CONFIG_MAPS}/x", None),
    "delete all": ("DELETE", CONFIG_MAPS, None),
}


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("case", REQUESTS)
async def test_a_request_that_began_before_does_not_go_on(faulty: Faulty, case: str, refuses: bool) -> None:
    """What it read may have been taken back: a namespace, a quota, the object itself."""
    method, path, body = REQUESTS[case]
    await faulty.create("x")
    normal, slow = faulty.server.admission, Slow(refuses=refuses)
    faulty.server.admission = slow
    waiting = asyncio.create_task(faulty.send(method, path, body, content_type=MERGE if method == "PATCH" else ""))
    await asyncio.sleep(1)
    faulty.server.admission = normal
    await faulty.lose(faulty.send("POST", CONFIG_MAPS, {"metadata": {"name": "lost"}}))
    slow.release.set()
    answer = await waiting
    assert (answer.status, answer.headers.get("retry-after")) == (503, "2"), answer.body
    listed = await faulty.call("GET", CONFIG_MAPS)
    assert [(item["metadata"]["name"], item.get("data")) for item in listed["items"]] == [("x", None)]


async def test_openapi_shows_no_definition_that_was_not_stored(faulty: Faulty) -> None:
    await faulty.call("POST", DEFINITIONS, definition("widgets", "Widget"))
    await asyncio.sleep(1)
    faulty.fail()
    schema = {"type": "object", "properties": {"zebra": {"type": "string"}}}
    change = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]
    path = f"{DEFINITIONS}/widgets.example.com"
    patched = await faulty.send("PATCH", path, change, content_type="application/json-patch+json")
    assert patched.status == 504
    for _ in range(2):
        document = await faulty.call("GET", "/openapi/v3/apis/example.com/v1")
        assert "zebra" not in json.dumps(document)
        await faulty.heal()


async def test_an_object_that_was_taken_back_is_shown_by_the_present_schema(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    def schema(**color: str) -> dict[str, Any]:
        properties = {"color": {"type": "string", **color}, "size": {"type": "integer"}}
        return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}

    await faulty.call("POST", DEFINITIONS, definition("widgets", "Widget", schema=schema()))
    await asyncio.sleep(1)
    await faulty.call("POST", WIDGETS, {**widget("w"), "spec": {"size": 1}})
    monkeypatch.setattr(sqlite, "GROUP", 1)
    faulty.fail_after(1)
    change = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema(default="red")}]
    path = f"{DEFINITIONS}/widgets.example.com"
    answers = await asyncio.gather(
        faulty.send("PATCH", path, change, content_type="application/json-patch+json"),
        faulty.send("PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}}, content_type=MERGE),
    )
    assert [answer.status for answer in answers] == [200, 503]
    await faulty.heal()
    assert (await faulty.call("GET", f"{WIDGETS}/w"))["spec"] == {"color": "red", "size": 1}
