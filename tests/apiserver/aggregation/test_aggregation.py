"""Groups that other API servers answer: what they are asked, and what is shown of them."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509 as certificates

from konverge.apiserver import ApiServer
from konverge.apiserver.aggregation import availability
from konverge.wire import x509
from tests.apiserver.aggregation.extension import (
    AGGREGATED,
    CONFIG,
    GROUP,
    NAME,
    NAMESPACE,
    REGISTERED,
    RESOURCES,
    SERVICES,
    api_service,
    available,
    extension,
    publish,
    reason,
)
from tests.apiserver.api import Api
from tests.wire.websocket_client import talking

pytestmark = pytest.mark.spec("S-27")


async def test_requests_reach_the_server_under_the_name_of_their_user(api: Api) -> None:
    async with available(api) as made:
        path = f"/apis/{GROUP}/v1/namespaces/a/coats/b%20c"
        headers = {"x_remote_user": "root", "x_remote_group": "system:masters", "x_mine": "1"}
        response = await api.send("PUT", path, {"size": 4}, query={"dryRun": "All"}, **headers)
        assert (response.status, json.loads(response.body)) == (202, {"kind": "Coat", "path": path})
        last = made.seen[-1]
        assert (last.method, last.target, json.loads(last.body)) == ("PUT", f"{path}?dryRun=All", {"size": 4})
        sent = made.headers()
        assert sent["x-remote-user"] == ["admin"]
        assert sent["x-remote-group"] == ["system:masters", "system:authenticated"]
        assert sent["x-mine"] == ["1"]
        assert "authorization" not in sent


@pytest.mark.spec("S-30")
async def test_nobody_is_sent_elsewhere(api: Api) -> None:
    """A client would follow with its credentials."""
    async with available(api):
        response = await api.send("GET", f"/apis/{GROUP}/v1/namespaces/a/coats/moved")
        assert (response.status, response.headers.get("location")) == (502, "")
        assert response.body == b"the backend attempted to redirect this request, which is not permitted"
        assert (await api.send("GET", f"/apis/{GROUP}/v1/namespaces/a/coats/unchanged")).status == 304


async def test_an_impersonated_user_is_who_asks(api: Api) -> None:
    async with available(api) as made:
        rules = [{"apiGroups": [GROUP], "resources": ["coats"], "verbs": ["get"]}]
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        await api.create("coats", f"{rbac}/clusterroles", rules=rules)
        subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "coats"}
        await api.create("coats", f"{rbac}/clusterrolebindings", subjects=[subject], roleRef=role)
        jane = {"impersonate_user": "jane", "impersonate_extra_team%2fa": "x"}
        assert (await api.send("GET", f"/apis/{GROUP}/v1/namespaces/a/coats/b", **jane)).status == 202
        sent = made.headers()
        assert sent["x-remote-user"] == ["jane"]
        assert sent["x-remote-extra-team%2fa"] == ["x"]
        assert not [name for name in sent if name.startswith("impersonate")]
        asked = len(made.seen)
        refused = await api.call("DELETE", f"/apis/{GROUP}/v1/namespaces/a/coats/b", expect=403, **jane)
        assert "jane" in refused["message"]
        assert len(made.seen) == asked


async def test_the_server_can_tell_us_from_users(api: Api) -> None:
    async with available(api) as made:
        await api.send("GET", f"/apis/{GROUP}/v1/coats")
        peer = made.seen[-1].peer.certificate
        assert peer is not None
        shown = certificates.load_der_x509_certificate(peer)
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        data = (await api.call("GET", path))["data"]
        assert shown.subject.rfc4514_string() == "CN=front-proxy-client"
        assert json.loads(data["requestheader-allowed-names"]) == ["front-proxy-client"]
        authority = certificates.load_pem_x509_certificate(data["requestheader-client-ca-file"].encode())
        shown.verify_directly_issued_by(authority)
        users = certificates.load_pem_x509_certificate(api.server.certificates("localhost").authority)
        assert users.public_key() != authority.public_key()


async def test_watches_stream_and_connections_are_upgraded(api: Api) -> None:
    async with available(api):
        async with api.watch(f"/apis/{GROUP}/v1/coats") as watch:
            assert [(await watch.next())["object"]["number"] for _ in range(3)] == [0, 1, 2]
        url = urlsplit(await api.server.listen())
        token = f"authorization: Bearer {api.server.token}\r\n"
        target = f"/apis/{GROUP}/v1/namespaces/a/coats/b/brush"
        async with talking(url.port or 0, target, extra=token) as talker:
            assert talker.status == 101
            talker.send(b"soft")
            assert (await talker.receive())[1] == b"SOFT"


async def test_discovery_shows_what_the_server_serves(api: Api) -> None:
    async with available(api):
        listed = await api.call("GET", "/apis")
        names = [group["name"] for group in listed["groups"]]
        assert names[-1] == GROUP
        version = {"groupVersion": f"{GROUP}/v1", "version": "v1"}
        entry = {"name": GROUP, "versions": [version], "preferredVersion": version}
        assert listed["groups"][-1] == entry
        assert (await api.call("GET", f"/apis/{GROUP}")) == {"kind": "APIGroup", "apiVersion": "v1", **entry}
        assert (await api.call("GET", f"/apis/{GROUP}/v1"))["resources"] == RESOURCES
        assert f"/apis/{GROUP}/v1" in (await api.call("GET", "/"))["paths"]
        documents = await api.call("GET", "/apis", accept=AGGREGATED)
        (group,) = [item for item in documents["items"] if item["metadata"]["name"] == GROUP]
        assert group["versions"] == [
            {
                "version": "v1",
                "resources": [
                    {
                        "resource": "coats",
                        "responseKind": {"group": "", "version": "", "kind": "Coat"},
                        "scope": "Namespaced",
                        "singularResource": "coat",
                        "verbs": ["get", "list"],
                        "shortNames": ["ct"],
                        "subresources": [
                            {
                                "subresource": "brush",
                                "responseKind": {"group": "", "version": "", "kind": "Brush"},
                                "verbs": ["create"],
                            }
                        ],
                    }
                ],
                "freshness": "Current",
            }
        ]
        await api.call("DELETE", REGISTERED)
        assert GROUP not in [group["name"] for group in (await api.call("GET", "/apis"))["groups"]]
        assert (await api.send("GET", f"/apis/{GROUP}/v1/coats")).status == 404


async def test_the_order_of_groups_is_that_of_their_priorities(api: Api) -> None:
    names = {"plural": "hats", "kind": "Hat"}
    versions = [{"name": "v1", "served": True, "storage": True}]
    versions[0]["schema"] = {"openAPIV3Schema": {"type": "object"}}  # type: ignore[assignment]
    spec = {"group": "aaa.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await api.create("hats.aaa.example.com", path, spec=spec)
    async with available(api):
        assert [group["name"] for group in (await api.call("GET", "/apis"))["groups"]][-2:] == [GROUP, spec["group"]]


@pytest.mark.spec("S-30")
async def test_the_version_that_is_preferred(api: Api) -> None:
    """By priority, then the most stable one, then the newest: as kube-aggregator ranks them."""
    for version, priority in (("v1alpha1", 15), ("v1beta1", 15), ("v2", 15), ("v10", 15), ("v1beta2", 15), ("odd", 20)):
        spec = api_service(version=version, versionPriority=priority)["spec"]
        await api.call("POST", SERVICES, {"metadata": {"name": f"{version}.{GROUP}"}, "spec": spec})
    group = await api.call("GET", f"/apis/{GROUP}")
    versions = [version["version"] for version in group["versions"]]
    assert versions == ["odd", "v10", "v2", "v1beta2", "v1beta1", "v1alpha1"]
    assert group["preferredVersion"]["version"] == "odd"


async def _documents(api: Api) -> dict[str, str]:
    paths = json.loads((await api.send("GET", "/openapi/v3")).body)["paths"]
    return {name: place["serverRelativeURL"] for name, place in paths.items() if GROUP in name}


@pytest.mark.spec("S-30")
async def test_the_openapi_of_the_server_is_passed_on(api: Api) -> None:
    async with available(api) as made:
        url = f"/openapi/v3/apis/{GROUP}/v1?hash=A1"
        assert await _documents(api) == {f"apis/{GROUP}/v1": url}
        assert (await api.send("GET", url)).status == 202
        assert made.seen[-1].target == url
        assert (await api.send("GET", f"/openapi/v3/apis/{GROUP}/v2")).status == 404
        assert len(made.seen) == 1


@pytest.mark.parametrize(
    ("index", "shown"),
    [
        (None, {}),
        ([], {}),
        ({"paths": None}, {}),
        ({"paths": {"apis/apps/v1": {"serverRelativeURL": "/theirs"}, f"apis/{GROUP}x/v1": {}, "version": {}}}, {}),
        ({"paths": {f"apis/{GROUP}": {"serverRelativeURL": "/g"}}}, {f"apis/{GROUP}": "/g"}),
    ],
)
@pytest.mark.spec("S-30")
async def test_a_server_speaks_for_its_own_group_alone(api: Api, index: Any, shown: dict[str, str]) -> None:
    async with extension(api.server) as (made, port):
        made.index = index
        await publish(api, port)
        before = json.loads((await api.send("GET", "/openapi/v3")).body)["paths"]
        await api.call("POST", SERVICES, api_service())
        await reason(api, "Passed")
        assert await _documents(api) == shown
        after = json.loads((await api.send("GET", "/openapi/v3")).body)["paths"]
        assert after["apis/apps/v1"] == before["apis/apps/v1"]


async def _shown(api: Api) -> Any:
    """The versions of the group in aggregated discovery."""
    documents = await api.call("GET", "/apis", accept=AGGREGATED)
    (group,) = [item for item in documents["items"] if item["metadata"]["name"] == GROUP]
    return group["versions"]


def _groups(*resources: Any, group: str = GROUP, version: str = "v1") -> Any:
    versions = [{"version": version, "resources": list(resources), "freshness": "Current"}]
    return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": group}, "versions": versions}]}


COATS = {
    "resource": "coats",
    "responseKind": {"group": GROUP, "version": "v1", "kind": "Coat"},
    "scope": "Namespaced",
    "singularResource": "coat",
    "verbs": ["get", "list"],
    "shortNames": ["ct"],
    "categories": ["all"],
    "subresources": [
        {
            "subresource": "brush",
            "responseKind": {"group": GROUP, "version": "v1", "kind": "Brush"},
            "acceptedTypes": [{"group": GROUP, "version": "v1", "kind": "Hand"}],
            "verbs": ["create"],
        }
    ],
}
BARE = {"resource": "hats", "responseKind": None, "scope": "Cluster", "subresources": [{"subresource": "feather"}]}
NO_KIND = {"group": "", "version": "", "kind": ""}


@pytest.mark.parametrize(
    ("groups", "resources"),
    [
        (_groups(COATS), [COATS]),
        (
            _groups(BARE),
            [
                {
                    **BARE,
                    "responseKind": NO_KIND,
                    "singularResource": "",
                    "verbs": None,
                    "subresources": [{"subresource": "feather", "responseKind": NO_KIND, "verbs": None}],
                }
            ],
        ),
        (_groups(COATS, version="v2"), []),
        (_groups(COATS, group="other.example.com"), []),
        ({"items": None}, []),
    ],
)
@pytest.mark.spec("S-30")
async def test_discovery_shows_what_the_server_says_itself(api: Api, groups: Any, resources: Any) -> None:
    """The newer document of a server has more in it than its list, and is asked for first."""
    async with extension(api.server) as (made, port):
        made.groups = groups
        await publish(api, port)
        await api.call("POST", SERVICES, api_service())
        await reason(api, "Passed")
        (version,) = await _shown(api)
        assert (version.get("resources", []), version["freshness"]) == (resources, "Current")


@pytest.mark.parametrize(
    ("groups", "media"),
    [
        (_groups(COATS), "application/json"),
        (_groups(COATS), AGGREGATED.replace("v2", "v2beta1")),
        (_groups({"resource": 5}), AGGREGATED),
    ],
)
@pytest.mark.spec("S-30")
async def test_without_the_newer_document_the_list_is_shown(api: Api, groups: Any, media: str) -> None:
    async with extension(api.server) as (made, port):
        made.groups, made.groups_type = groups, media
        made.resources = [{"name": "socks/wash", "kind": "Wash", "namespaced": True, "verbs": ["create"]}]
        await publish(api, port)
        await api.call("POST", SERVICES, api_service())
        await reason(api, "Passed")
        (version,) = await _shown(api)
        part = {"subresource": "wash", "responseKind": {**NO_KIND, "kind": "Wash"}, "verbs": ["create"]}
        parent = {"resource": "socks", "responseKind": NO_KIND, "scope": "Namespaced", "singularResource": ""}
        assert version["resources"] == [{**parent, "verbs": None, "subresources": [part]}]


@pytest.mark.spec("S-30")
async def test_resources_are_not_shown_while_their_server_is_away(api: Api) -> None:
    """Its documents are, as those of the real server."""
    async with available(api):
        path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices/{NAME}"
        await api.call("DELETE", path)
        await reason(api, "EndpointsNotFound")
        assert await _shown(api) == [{"version": "v1", "freshness": "Stale"}]
        assert list(await _documents(api)) == [f"apis/{GROUP}/v1"]


@pytest.mark.spec("S-30")
async def test_servers_can_read_whom_to_believe_before_there_is_an_apiservice(api: Api) -> None:
    """A real one ends when it is not there. Without TLS there is no authority to speak of."""
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    await api.server.listen()
    assert (await api.call("GET", path))["data"]["requestheader-client-ca-file"] == ""
    made = api.server.certificates("127.0.0.1")
    await api.server.listen(tls=made.context())
    data = (await api.call("GET", path))["data"]
    assert data["client-ca-file"].encode() == made.authority
    assert data["requestheader-client-ca-file"].encode() == api.server.aggregation.connections.identity()[0]
    assert json.loads(data["requestheader-allowed-names"]) == ["front-proxy-client"]
    assert json.loads(data["requestheader-extra-headers-prefix"]) == ["X-Remote-Extra-"]
    api.server.aggregation.publish("")
    assert (await api.call("GET", path))["data"] == data
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("availability")]


@pytest.mark.parametrize(
    ("spec", "why", "message"),
    [
        ({"caBundle": None, "insecureSkipTLSVerify": True}, "Passed", "all checks passed"),
        (
            {"caBundle": base64.b64encode(x509.authority("other").pem[0]).decode()},
            "FailedDiscoveryCheck",
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ),
        (
            {"service": {"namespace": NAMESPACE, "name": NAME, "port": 8443}},
            "ServicePortError",
            f'service/{NAME} in "{NAMESPACE}" is not listening on port 8443',
        ),
        (
            {"service": {"namespace": NAMESPACE, "name": "none"}},
            "ServiceNotFound",
            f'service/none in "{NAMESPACE}" is not present',
        ),
    ],
)
async def test_why_a_server_is_not_available(api: Api, spec: dict[str, Any], why: str, message: str) -> None:
    async with extension(api.server) as (made, port):
        await publish(api, port)
        await api.call("POST", SERVICES, api_service(**spec))
        assert message in await reason(api, why)
        response = await api.send("GET", f"/apis/{GROUP}/v1/coats")
        if why == "Passed":
            assert response.status == 202
            return
        assert (response.status, response.body) == (503, b"service unavailable\n")
        assert not made.seen
        documents = await api.call("GET", "/apis", accept=AGGREGATED)
        (group,) = [item for item in documents["items"] if item["metadata"]["name"] == GROUP]
        assert group["versions"] == [{"version": "v1", "freshness": "Stale"}]


async def test_a_certificate_for_another_service_is_refused(api: Api) -> None:
    async with extension(api.server, "other.default.svc") as (_, port):
        await publish(api, port)
        await api.call("POST", SERVICES, api_service())
        message = await reason(api, "FailedDiscoveryCheck")
        assert message.endswith(f"certificate is valid for other.default.svc, not {NAME}.{NAMESPACE}.svc")


async def test_endpoints_that_come_and_go_are_followed(api: Api) -> None:
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    async with available(api):
        await api.call("DELETE", f"{slices}/{NAME}")
        missing = f'cannot find endpointslices for service/{NAME} in "{NAMESPACE}"'
        assert await reason(api, "EndpointsNotFound") == missing
        labels = {"kubernetes.io/service-name": NAME}
        gone = [{"addresses": ["127.0.0.1"], "conditions": {"ready": False}}]
        await api.create(
            "b", slices, labels=labels, addressType="IPv4", endpoints=gone, ports=[{"name": "https", "port": 1}]
        )
        message = f'endpointslices for service/{NAME} in "{NAMESPACE}" have no addresses with port name "https"'
        assert await reason(api, "MissingEndpoints") == message


async def test_a_server_that_fails_is_asked_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "FIRST_RETRY", 0.01)
    monkeypatch.setattr(availability, "EVERY", 0.02)
    async with available(api) as made:
        made.discovery = 500
        assert "bad status from" in await reason(api, "FailedDiscoveryCheck")
        made.discovery, made.resources = 200, []
        await reason(api, "Passed")


async def test_a_server_that_is_gone_is_an_answer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async with available(api):
        pass
    response = await api.send("GET", f"/apis/{GROUP}/v1/coats")
    assert response.status == 503
    assert b"error trying to reach service: dial tcp 127.0.0.1:" in response.body
    assert b"connection refused" in response.body


async def test_a_discovery_that_cannot_be_read_shows_nothing(api: Api) -> None:
    async with extension(api.server) as (made, port):
        made.resources = [{"name": 5}]
        await publish(api, port)
        await api.call("POST", SERVICES, api_service())
        await reason(api, "Passed")
        documents = await api.call("GET", "/apis", accept=AGGREGATED)
        (group,) = [item for item in documents["items"] if item["metadata"]["name"] == GROUP]
        assert group["versions"] == [{"version": "v1", "freshness": "Current"}]
        assert (await api.send("GET", f"/apis/{GROUP}/v1/coats")).status == 202


async def test_a_server_that_starts_again_knows_its_apis_and_its_identity(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        async with ApiServer(config=CONFIG, data_dir=tmp_path) as server:
            made, port = await stack.enter_async_context(extension(server))
            api = Api(server)
            await publish(api, port)
            await api.call("POST", SERVICES, api_service())
            await reason(api, "Passed")
            await api.send("GET", f"/apis/{GROUP}/v1/coats")
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "pki").glob("front_proxy*")} == {0o600}
        async with ApiServer(config=CONFIG, data_dir=tmp_path) as server:
            assert (await Api(server).send("GET", f"/apis/{GROUP}/v1/coats")).status == 202
    first, second = (request.peer.certificate for request in made.seen)
    assert first == second
    assert first is not None


async def test_a_server_without_any_begins_nothing(api: Api) -> None:
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("availability")]
    config = await api.call("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
    assert config["data"]["requestheader-client-ca-file"] == ""
