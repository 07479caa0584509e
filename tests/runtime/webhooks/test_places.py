"""Where webhooks are reached: names, hosts and permissions of an installation, and runs without one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.runtime.rbac import Permission
from konverge.runtime.webhooks import Conversion, InCluster, InProcess, Mounted, Review, Webhooks, mutating, validating
from konverge.runtime.webhooks.certificates.publishing import Targets
from konverge.runtime.webhooks.local import is_elsewhere
from konverge.runtime.webhooks.permissions import webhook_permissions
from konverge.runtime.webhooks.places import FILES, LOOK_EVERY, Serving
from konverge.runtime.webhooks.server import Reviews
from tests.objects.pools import Pool as Versioned
from tests.objects.pools import PoolV1
from tests.runtime.webhooks.pools import Pool
from tests.runtime.webhooks.test_certificates import Wire
from tests.runtime.webhooks.test_server import Recorded
from tests.wire.certificates import authority

pytestmark = pytest.mark.spec("R-70")

CONFIGURATIONS = "admissionregistration.k8s.io"
CONVERSION = Conversion(PoolV1, Versioned)
DEFINITION = CONVERSION.definition


@validating(Pool)
def check(review: Review[Pool]) -> None: ...


@mutating(Pool)
def default(review: Review[Pool]) -> None: ...


def serving(client: Client, *webhooks: Any, name: str = "pools") -> Serving:
    served = Webhooks().add_all(webhooks)
    return Serving(name=name, webhooks=served, client=client, reviews=Reviews(served))


# ------------------------------------------------------------------ behind a Service


def test_everything_is_named_after_the_service_unless_it_is_given() -> None:
    place = InCluster(service="s", namespace="ns")
    assert (place.secret_name, place.configuration_name) == ("s", "s")
    given = InCluster(service="s", namespace="ns", secret="x", configuration="y")
    assert (given.secret_name, given.configuration_name) == ("x", "y")
    assert given.hosts == place.hosts == ("s.ns.svc", "s.ns.svc.cluster.local", "s.ns", "s")


@pytest.mark.parametrize(
    ("webhooks", "targets"),
    [
        ([], {}),
        ([check], {"validating": "y"}),
        ([default], {"mutating": "y"}),
        ([check, default], {"validating": "y", "mutating": "y"}),
        ([CONVERSION], {"definitions": (DEFINITION,)}),
    ],
)
def test_the_authority_is_published_where_webhooks_are(webhooks: list[Any], targets: dict[str, Any]) -> None:
    place = InCluster(service="s", namespace="ns", configuration="y")
    assert place.targets(Webhooks().add_all(webhooks)) == Targets(service="s", namespace="ns", **targets)


def kept(group: str, plural: str, name: str) -> list[Permission]:
    return [Permission(group, plural, verb, "", name) for verb in ("get", "patch")]


OF_THE_SECRET = [
    Permission("", "secrets", "create", "ns"),
    Permission("", "secrets", "get", "ns", "x"),
    Permission("", "secrets", "update", "ns", "x"),
]
VALIDATING = kept(CONFIGURATIONS, "validatingwebhookconfigurations", "y")
MUTATING = kept(CONFIGURATIONS, "mutatingwebhookconfigurations", "y")


@pytest.mark.parametrize(
    ("webhooks", "more"),
    [
        ([check], VALIDATING),
        ([default], MUTATING),
        ([check, default], MUTATING + VALIDATING),
        ([CONVERSION], kept("apiextensions.k8s.io", "customresourcedefinitions", DEFINITION)),
        ([Recorded()], []),
    ],
)
def test_each_permission_names_its_object(webhooks: list[Any], more: list[Permission]) -> None:
    place = InCluster(service="s", namespace="ns", secret="x", configuration="y")
    assert place.permissions(Webhooks().add_all(webhooks)) == OF_THE_SECRET + more


def test_without_webhooks_and_with_mounted_certificates_nothing_is_needed() -> None:
    assert webhook_permissions([], namespace="ns", secret="x", configuration="y") == []
    assert Mounted(folder=Path("x")).permissions(Webhooks().add(check)) == []


def test_definitions_are_listed_once_and_in_order() -> None:
    webhooks = Webhooks()
    for path, definition in (("/1", "c"), ("/2", "a"), ("/3", ""), ("/4", "b"), ("/5", "c"), ("/6", "d")):
        webhook = Recorded(path)
        webhook.definition = definition
        assert webhooks.add(webhook) is webhooks
    assert webhooks.definitions == ["a", "b", "c", "d"]


# ------------------------------------------------------------------ health


def test_the_first_thing_that_is_wrong_is_reported(client: Client) -> None:
    at_work = serving(client)
    assert at_work.check() == "not served yet"
    at_work.problem = ""
    assert at_work.check() == ""
    at_work.checks += [lambda: "", lambda: "no certificate", lambda: "never seen"]
    assert at_work.check() == "no certificate"
    at_work.problem = "no longer served"
    assert at_work.check() == "no certificate"


@pytest.mark.virtual
async def test_a_certificate_that_is_late_is_named(client: Client, tmp_path: Path) -> None:
    at_work = serving(client)
    waiting = asyncio.create_task(Mounted(folder=tmp_path)._certificate(at_work))
    await asyncio.sleep(LOOK_EVERY * 2.5)
    assert not waiting.done()
    assert at_work.problem.startswith(f"no certificate in {tmp_path}: ")
    assert "tls.crt" in at_work.problem
    waiting.cancel()
    await asyncio.wait([waiting])


@pytest.mark.virtual
async def test_an_installed_operator_says_why_it_has_no_certificate(server: ApiServer) -> None:
    wire = Wire(server)
    wire.cut = True
    at_work = serving(Client(wire, credentials=Static.bearer(server.token)), check)
    place = InCluster(service="s", namespace="ns")
    waiting = asyncio.create_task(place.serving(at_work).__aenter__())
    await asyncio.sleep(60)
    assert at_work.check() == (
        "the certificate cannot be kept up to date: GET /api/v1/namespaces/ns/secrets/s at the API server: "
        "the network is down"
    )
    waiting.cancel()
    await asyncio.wait([waiting])


def at_work_for_certificates() -> set[str]:
    return {name for task in asyncio.all_tasks() if (name := task.get_name()).startswith("webhook certificate")}


async def test_nobody_keeps_certificates_after_the_end(client: Client, tmp_path: Path) -> None:
    address = ("127.0.0.1", 0)
    for name, data in zip(FILES, authority("any").issue("a", ["localhost"]), strict=True):
        (tmp_path / name).write_bytes(data)
    places = {
        "webhook certificates": InCluster(service="s", namespace="default", address=address),
        "webhook certificate": Mounted(folder=tmp_path, address=address),
    }
    for name, place in places.items():
        at_work = serving(client, check)
        async with place.serving(at_work):
            assert at_work_for_certificates() == {name}
            assert (at_work.check(), at_work.port > 0) == ("", True)
        assert at_work_for_certificates() == set()
        assert at_work.check() == "no longer served"


# ------------------------------------------------------------------ without an installation


@pytest.mark.parametrize(
    ("server", "elsewhere"),
    [
        ("", False),
        ("https://localhost:6443", False),
        ("https://127.0.0.1:6443", False),
        ("https://127.8.9.1", False),
        ("https://[::1]:6443", False),
        ("https://10.0.0.1", True),
        ("https://[fd00::1]", True),
        ("https://api.example.com", True),
        ("https://localhost.example.com", True),
    ],
)
def test_an_address_tells_whether_a_server_is_on_this_machine(server: str, elsewhere: bool) -> None:
    assert is_elsewhere(server) is elsewhere


@pytest.mark.virtual
@pytest.mark.parametrize(("name", "host"), [("pools", "pools"), ("My Pools!", "my-pools"), ("!", "operator")])
async def test_in_process_each_run_has_a_host_of_its_own(client: Client, name: str, host: str) -> None:
    transports: dict[str, Any] = {}
    place = InProcess(transports=transports)
    first, second = (serving(client, Recorded(), name=name) for _ in range(2))
    async with place.serving(first):
        assert list(transports) == [f"{host}-1.in-process"]
        assert (first.problem, second.problem) == ("", "not served yet")
        async with place.serving(second):
            assert list(transports) == [f"{host}-1.in-process", f"{host}-2.in-process"]
        assert second.problem == "no longer served"
        assert list(transports) == [f"{host}-1.in-process"]
    assert (transports, first.problem) == ({}, "no longer served")
