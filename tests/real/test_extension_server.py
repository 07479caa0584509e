"""Groups of another API server: the same extension server behind kube-apiserver and behind ours."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from konverge.wire import x509
from tests.real.embedded import Tool
from tests.real.extension_server import GROUP, LIMIT, REGISTERED, SERVICES, Extended, extended, front_proxy
from tests.real.sides import side_of
from tests.wire.websocket_client import Talker, handshake
from tools.control_plane import ControlPlane

pytestmark = [pytest.mark.real, pytest.mark.spec("S-27", "S-30")]

Sides = tuple[Extended, Extended]
API = f"/apis/{GROUP}"
COATS = f"{API}/v1/namespaces/default/coats"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture(scope="module")
def both(binaries: Path, embedded_server: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """kube-apiserver and ours, each with an extension server that is available."""
    folder = tmp_path_factory.mktemp("extension")
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(binaries, extra_args=front_proxy(folder)))
        real = stack.enter_context(extended(plane.kubeconfig, folder / "real"))
        ours = stack.enter_context(extended(embedded_server, folder / "ours"))
        for side in (real, ours):
            side.is_available()
        yield real, ours


def same(both: Sides, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """The answer of both."""
    real, ours = (side.ask(method, path, body, **headers) for side in both)
    assert ours == real, (method, path)
    return real


def test_requests_go_through(both: Sides) -> None:
    assert same(both, "GET", COATS)[2]["kind"] == "CoatList"
    assert same(both, "GET", f"{COATS}/odd")[:2] == (
        418, {"Content-Type": "application/x-odd+json", "Warning": '299 - "tea"', "X-Odd": "1", "Retry-After": "7"}
    )  # fmt: skip
    assert same(both, "GET", f"{COATS}/redirect")[0] == 502
    assert same(both, "GET", f"{COATS}/nothing")[0] == 204
    assert same(both, "GET", f"{API}/v1/nothing")[0] == 404
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        seen = same(both, method, f"{COATS}/me?a=%2F&b=2&dryRun=All", {"a": "ä"})[2]
        assert json.loads(seen["body"]) == {"a": "ä"}
    same(both, "GET", f"{API}/v2/coats")
    same(both, "GET", f"{COATS}/slow?timeout=1s")


def test_the_server_behind_knows_who_asks(both: Sides) -> None:
    about = {"X_Mine": "1", "X_Remote_User": "root", "X_Remote_Group": "system:masters", "X_Remote_Extra_A": "b"}
    seen = same(both, "GET", f"{COATS}/me", **about)[2]
    assert seen["user"]["user"] == "kubernetes-admin"
    assert seen["sent"] == {"X-Mine": ["1"], "Authorization": None, "Impersonate-User": None}
    role = {
        "metadata": {"name": "coats"},
        "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list"]}],
    }
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "coats"}
    binding = {"metadata": {"name": "coats"}, "subjects": [subject], "roleRef": reference}
    for side in both:
        for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
            assert side.ask("POST", f"/apis/rbac.authorization.k8s.io/v1/{plural}", body)[0] == 201
    jane = {"Impersonate_User": "jane", "Impersonate_Extra_Acme.com%2Fteam": "a b"}
    while any(side.ask("GET", COATS, **jane)[0] == 403 for side in both):  # the real server learns of roles by and by
        time.sleep(0.05)
    assert same(both, "GET", f"{COATS}/me", **jane)[2]["user"]["user"] == "jane"
    assert same(both, "DELETE", f"{COATS}/me", **jane)[0] == 403
    assert same(both, "GET", COATS, Impersonate_User="joe")[0] == 403
    same(both, "GET", f"{API}/v1", Impersonate_User="joe")


def is_discovered(both: Sides) -> bool:
    """Whether both show the same of the group: the real server asks the one behind it once in a while."""
    for accept in (AGGREGATED, "application/json"):
        groups = []
        for side in both:
            document = side.ask("GET", "/apis", Accept=accept)[2]
            entries = document.get("items") or document["groups"]
            groups.append([one for one in entries if GROUP in (one.get("name"), one.get("metadata", {}).get("name"))])
        if groups[0] != groups[1] or not groups[0]:
            return False
    return True


def openapi_places(side: Extended) -> dict[str, Any]:
    paths = json.loads(side.ask("GET", "/openapi/v3")[2])["paths"]
    return {name: place for name, place in paths.items() if GROUP in name}


def shortly(holds: Callable[[], bool]) -> bool:
    """Whether something holds before long."""
    end = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_discovery_and_openapi_are_merged(both: Sides) -> None:
    assert shortly(lambda: is_discovered(both))
    same(both, "GET", API)
    same(both, "GET", f"{API}/")
    same(both, "GET", f"{API}/v1")
    assert [path for path in both[1].ask("GET", "/")[2]["paths"] if GROUP in path] == [API, f"{API}/v1"]
    assert shortly(lambda: openapi_places(both[1]) == openapi_places(both[0]) != {})
    same(both, "GET", openapi_places(both[0])[f"apis/{GROUP}/v1"]["serverRelativeURL"])


def settled(both: Sides, read: Callable[[Extended], Any]) -> Any:
    """What both say, once they say the same: the real server asks for these once in a while."""
    said: list[Any] = []

    def same_word() -> bool:
        said[:] = map(read, both)
        return bool(said[0] == said[1])

    shortly(same_word)
    assert said[1] == said[0]
    return said[0]


@pytest.mark.spec("S-49")
def test_openapi_v2_is_merged(both: Sides) -> None:
    def document(side: Extended) -> Any:
        found = side.ask("GET", "/openapi/v2")[2]
        return {key: found.get(key) for key in ("paths", "definitions", "parameters")}

    definitions = settled(both, document)["definitions"]
    assert "com.example.Coat" in definitions
    assert definitions["com.example.Coat"]["properties"]["metadata"]["$ref"].endswith(".ObjectMeta_v2")
    assert "com.example.Stranger" not in definitions


@pytest.mark.spec("S-49")
def test_groups_and_versions_are_ordered_by_priority(both: Sides) -> None:
    added = [
        ("early.example.com", "v1", 17850, 15),
        ("first.example.com", "v1", 20000, 15),
        ("late.example.com", "v1", 1, 15),
        ("apps", "v9", 100, 100),
        ("apps", "v8", 100, 1),
        (GROUP, "v3", 2000, 15),
    ]
    for group, version, group_priority, priority in added:
        for side in both:
            side.register(version, group=group, groupPriorityMinimum=group_priority, versionPriority=priority)

    def shown(side: Extended) -> Any:
        old = [
            (group["name"], [version["version"] for version in group["versions"]], group["preferredVersion"]["version"])
            for group in side.ask("GET", "/apis")[2]["groups"]
        ]
        new = [
            (group["metadata"]["name"], [(entry["version"], entry["freshness"]) for entry in group["versions"]])
            for group in side.ask("GET", "/apis", Accept=AGGREGATED)[2]["items"]
        ]
        return old, new

    try:
        old, _ = settled(both, shown)
        assert [name for name, *_ in old[:4]] == [
            "apiregistration.k8s.io",
            "first.example.com",
            "early.example.com",
            "apps",
        ]
    finally:
        for group, version, *_ in added:
            for side in both:
                side.ask("DELETE", f"{SERVICES}/{version}.{group}")


def test_events_are_passed_on_as_they_come(both: Sides) -> None:
    for side in both:
        connection, numbers = side.side.connection, []
        connection.request("GET", f"{COATS}?watch=1", None, side.side.headers)
        connection.sock.settimeout(60)
        with closing(side_of(side.kubeconfig)) as other:
            for line in connection.getresponse():  # the next one is sent when this one has come
                numbers.append(json.loads(line)["object"]["number"])
                assert other.send("GET", f"{COATS}/next")[0] == 200
        connection.sock.settimeout(None)
        assert numbers == [0, 1, 2]


async def test_connections_are_upgraded(both: Sides) -> None:
    async def talk(side: Extended) -> Any:
        place = side.side
        reader, writer = await asyncio.open_connection(place.host, place.port, ssl=place.tls)
        writer.write(handshake(f"{COATS}/brush"))
        talker = Talker(reader, writer, (await reader.readuntil(b"\r\n\r\n")).decode())
        first = await talker.receive()
        talker.send(b"soft")
        second = await talker.receive()
        writer.transport.abort()  # to close it would wait for the other side, longer than this test lasts
        return talker.status, first, second

    async with asyncio.timeout(60):
        real, ours = [await talk(side) for side in both]
    assert ours == real
    assert (real[0], real[1][1], real[2][1]) == (101, b"hello", b"soft")


def test_kubectl_shows_what_is_behind(both: Sides, kubectl: Path, tmp_path: Path) -> None:
    assert shortly(lambda: is_discovered(both))
    tools = [Tool(kubectl, side.kubeconfig, tmp_path / str(number)) for number, side in enumerate(both)]
    for arguments in (("api-resources", f"--api-group={GROUP}"), ("get", "--raw", f"{COATS}/odd"), ("get", "coats")):
        real, ours = (tool.run(*arguments) for tool in tools)
        assert (ours.returncode, ours.stdout, ours.stderr) == (real.returncode, real.stdout, real.stderr)


def test_an_apiservice_without_a_service_is_local(both: Sides) -> None:
    for side in both:
        side.register(group="nobody.example.com", service=None, caBundle=None)
    real, ours = (side.condition("v1.nobody.example.com", lambda entry: "type" in entry) for side in both)
    assert ours == real
    for path in ("/apis/nobody.example.com/v1", "/apis/nobody.example.com/v1/things"):
        same(both, "GET", path)


def test_another_authority_is_not_believed(both: Sides) -> None:
    """And the right one is, again."""
    right = [side.ask("GET", f"/apis/apiregistration.k8s.io/v1/apiservices/{REGISTERED}")[2]["spec"] for side in both]
    for side in both:
        side.change(caBundle=base64.b64encode(x509.authority("other").pem[0]).decode())
    real, ours = (side.is_available(False) for side in both)
    assert ours == real
    assert same(both, "GET", COATS)[0] == 503
    for side in both:
        side.change(caBundle=None, insecureSkipTLSVerify=True)
        side.is_available()
    assert same(both, "GET", COATS)[0] == 200
    for side, spec in zip(both, right, strict=True):
        side.change(caBundle=spec["caBundle"], insecureSkipTLSVerify=None)
        side.is_available()


def shown_while_away(side: Extended) -> Any:
    groups = side.ask("GET", "/apis", Accept=AGGREGATED)[2]["items"]
    documents = json.loads(side.ask("GET", "/openapi/v3")[2])["paths"]
    return (
        [group for group in groups if group["metadata"]["name"] == GROUP],
        [name for name in documents if GROUP in name],
        "com.example.Coat" in side.ask("GET", "/openapi/v2")[2]["definitions"],
    )


def test_a_server_that_goes_away_and_comes_back(both: Sides) -> None:
    assert same(both, "GET", f"{COATS}/gone")[0] == 503
    for side in both:
        side.stop()
    refused = "error trying to reach service: dial tcp 127.0.0.1:?: connect: connection refused\n"
    for side in both:
        status, _, text = side.ask("GET", COATS)
        assert status == 503
        assert text in (refused, "service unavailable\n")  # the latter if it was looked at in between
        side.change()
    real, ours = (side.is_available(False) for side in both)
    assert ours == real
    for path in (COATS, f"{API}/v1", API, f"/openapi/v3/apis/{GROUP}/v1"):
        same(both, "GET", path)
    settled(both, shown_while_away)
    for side in both:
        side.start()
    for side in both:
        side.is_available()
    assert same(both, "GET", COATS)[0] == 200
