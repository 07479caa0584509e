"""What the mapper makes of what the server serves: names, versions, scopes, and when it asks again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client, Forbidden, MalformedAnswer, NotFound, UnknownKind
from konverge.client.discovery import AGGREGATED, Served
from konverge.objects.resource import Resource
from konverge.wire import Request, Response
from tests.client.scripted import Script, ok, refused

JOBS = {
    "resource": "cronjobs",
    "responseKind": {"group": "batch", "version": "v1", "kind": "CronJob"},
    "scope": "Namespaced",
    "singularResource": "timer",
    "shortNames": ["cj"],
    "categories": ["all"],
    "verbs": ["get", "list"],
    "subresources": [{"subresource": "status"}, {"subresource": "scale"}],
}
NODES = {"resource": "nodes", "responseKind": {"kind": "Node"}, "scope": "Cluster"}


def group(name: str, **versions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [{"version": version, "resources": entries} for version, entries in versions.items()],
    }


def serving(core: list[dict[str, Any]], groups: list[dict[str, Any]]) -> Script:
    def answer(request: Request) -> Response:
        return ok({"kind": "APIGroupDiscoveryList", "items": core if request.target == "/api" else groups})

    return Script(answer)


def thing(kind: str = "Thing") -> dict[str, Any]:
    return {"resource": f"{kind.lower()}s", "responseKind": {"kind": kind}, "scope": "Cluster"}


async def test_everything_that_aggregated_discovery_says() -> None:
    server = serving([group("", v1=[NODES])], [group("batch", v1=[JOBS], v1beta1=[JOBS])])
    node, newer, older = await server.client().mapper.all()
    assert node == Served(resource=Resource("", "v1", "Node", "nodes", False))
    assert newer == Served(
        resource=Resource("batch", "v1", "CronJob", "cronjobs", True),
        singular="timer",
        short_names=("cj",),
        categories=("all",),
        verbs=("get", "list"),
        subresources=("status", "scale"),
    )
    assert (older.resource.version, newer.preferred, older.preferred) == ("v1beta1", True, False)
    assert server.lines == ["GET /api", "GET /apis"]
    assert {request.headers.get("accept") for request in server.requests} == {f"{AGGREGATED},application/json"}


@pytest.mark.parametrize(
    "name",
    ["cronjobs", "timer", "cronjob", "CronJob", "cj", "cj.batch", "CronJob.v1.batch", "cronjobs.v1.batch"],
)
async def test_every_name_of_a_kind_leads_to_it(name: str) -> None:
    mapper = serving([], [group("batch", v1=[JOBS])]).client().mapper
    assert await mapper.find(name) == Resource("batch", "v1", "CronJob", "cronjobs", True)


@pytest.mark.parametrize("name", ["cj.apps", "cj.v2.batch", "cj.v1", "", "cronjobs.batch.v1"])
async def test_a_name_that_is_nearly_right_is_wrong(name: str) -> None:
    with pytest.raises(UnknownKind):
        await serving([], [group("batch", v1=[JOBS])]).client().mapper.find(name)


async def test_the_core_group_then_the_preferred_version_win() -> None:
    groups = [group("a.io", v1=[], v2=[thing(), thing("Event")]), group("b.io", v1=[thing()])]
    mapper = serving([group("", v1=[thing("Event")])], groups).client().mapper
    assert (await mapper.find("event")).api_version == "v1"
    assert (await mapper.find("thing")).api_version == "b.io/v1"
    assert (await mapper.find("event.a.io")).api_version == "a.io/v2"
    assert (await mapper.kind("a.io/v2", "Thing")).api_version == "a.io/v2"
    assert (await mapper.kind("v1", "Event")).api_version == "v1"


async def test_a_kind_whose_server_does_not_answer_is_left_out() -> None:
    away = {"resource": "lost", "scope": "Cluster", "responseKind": {}}
    mapper = serving([], [group("a.io", v1=[away, {"resource": "lost", "scope": "Cluster"}, thing()])]).client().mapper
    assert [served.resource.plural for served in await mapper.all()] == ["things"]


class Slow(Script):
    """Answers after the others have had their turn."""

    async def __call__(self, request: Request) -> Response:
        await asyncio.sleep(0)
        return await super().__call__(request)


async def test_many_that_ask_at_once_make_it_look_once() -> None:
    server = Slow(*serving([], [group("a.io", v1=[thing()])]).answers)
    mapper = server.client().mapper
    await asyncio.gather(*(mapper.find("thing") for _ in range(10)))
    assert len(server.requests) == 2
    await asyncio.gather(*(mapper.find("gone") for _ in range(10)), return_exceptions=True)
    assert len(server.requests) == 4
    mapper.invalidate()
    await mapper.find("thing")
    await mapper.all()
    assert len(server.requests) == 6


async def test_an_answer_that_has_not_changed_is_not_sent_again() -> None:
    def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == f'"{request.target}"':
            return ok(b"", 304)
        assert not request.headers.get("if-none-match")
        items = [group("a.io", v1=[thing()])] if request.target == "/apis" else []
        return ok({"kind": "APIGroupDiscoveryList", "items": items}, etag=f'"{request.target}"')

    sent: list[str] = []

    def noting(request: Request) -> Response:
        response = answer(request)
        sent.append(f"{request.target} {response.status}")
        return response

    mapper = Script(noting).client().mapper
    first = await mapper.all()
    mapper.invalidate()
    assert await mapper.all() == first
    assert (await mapper.find("thing")).group == "a.io"
    assert sent == ["/api 200", "/apis 200", "/api 304", "/apis 304"]


# ------------------------------------------------------------------ servers without aggregated discovery

OLD: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "batch",
                "versions": [{"groupVersion": "batch/v1beta1"}, {"groupVersion": "batch/v1"}],
                "preferredVersion": {"groupVersion": "batch/v1"},
            }
        ],
    },
    "/api/v1": {"resources": [{"name": "nodes", "kind": "Node", "namespaced": False}]},
    "/apis/batch/v1": {
        "resources": [
            {
                "name": "cronjobs",
                "kind": "CronJob",
                "namespaced": True,
                "singularName": "timer",
                "shortNames": ["cj"],
                "categories": ["all"],
                "verbs": ["get", "list"],
            },
            {"name": "cronjobs/status", "kind": "CronJob", "namespaced": True},
            {"name": "others/scale", "kind": "Scale", "namespaced": True},
            {"name": "cronjobs/scale", "kind": "Scale", "namespaced": True},
        ]
    },
    "/apis/batch/v1beta1": {"resources": [{"name": "cronjobs", "kind": "CronJob", "namespaced": True}]},
}


async def test_a_server_asked_group_by_group_says_the_same() -> None:
    mapper = Script(lambda request: ok(OLD[request.target])).client().mapper
    node, older, newer = await mapper.all()
    assert node == Served(resource=Resource("", "v1", "Node", "nodes", False))
    assert newer == Served(
        resource=Resource("batch", "v1", "CronJob", "cronjobs", True),
        singular="timer",
        short_names=("cj",),
        categories=("all",),
        verbs=("get", "list"),
        subresources=("status", "scale"),
    )
    assert (older.preferred, older.resource.version) == (False, "v1beta1")
    assert (await mapper.find("cronjob")).version == "v1"


@pytest.mark.parametrize("code", [404, 406])
async def test_a_server_that_refuses_the_new_form_is_asked_for_the_old_one(code: int) -> None:
    def answer(request: Request) -> Response:
        return refused(code) if "apidiscovery" in request.headers.get("accept") else ok(OLD[request.target])

    server = Script(answer)
    assert [served.resource.kind for served in await server.client().mapper.all()] == ["Node", "CronJob", "CronJob"]
    assert {request.target for request in server.requests} == set(OLD)


@pytest.mark.parametrize("code", [404, 503])
async def test_a_group_that_does_not_answer_is_named_until_it_does(code: int) -> None:
    away = ["/apis/batch/v1", "/api/v1"]

    def answer(request: Request) -> Response:
        return refused(code) if request.target in away else ok(OLD[request.target])

    mapper = Script(answer).client().mapper
    assert [served.resource.version for served in await mapper.all()] == ["v1beta1"]
    assert mapper.unavailable == {"batch/v1", "v1"}
    away.clear()
    assert (await mapper.find("cj")).version == "v1"
    assert mapper.unavailable == set()


async def test_any_other_refusal_is_raised_and_the_next_to_ask_tries_again() -> None:
    server = Script(refused(403, "Forbidden"), lambda request: ok(OLD[request.target]))
    client: Client = server.client()
    with pytest.raises(Exception, match="no"):
        await client.mapper.find("cj")
    assert (await client.mapper.find("cj")).kind == "CronJob"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api", b"<html>"),
        ("/apis", {"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"resources": []}]}, 5]}),
        ("/apis", {"kind": "APIGroupList", "groups": [{"versions": [{}]}]}),
        ("/apis/batch/v1", {"resources": [{"name": "x"}]}),
        ("/apis/batch/v1", b"null"),
    ],
)
async def test_the_path_of_an_answer_that_cannot_be_read_is_named(path: str, body: Any) -> None:
    server = Script(lambda request: ok(body if request.target == path else OLD[request.target]))
    with pytest.raises(MalformedAnswer, match=f"discovery at {path} is"):
        await server.client().mapper.all()


# ------------------------------------------------------------------ kinds that come and go

LEGACY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "apps",
                "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
            }
        ],
    },
    "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "shortNames": ["po"]}]},
    "/apis/apps/v1": {
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True, "singularName": "deployment"},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
        ]
    },
}


async def test_discovery_group_by_group() -> None:
    server = Script(lambda request: ok(LEGACY[request.target]))
    mapper = server.client().mapper
    assert await mapper.find("po") == Resource("", "v1", "Pod", "pods")
    assert (await mapper.served("deployment")).subresources == ("scale",)
    assert len(server.requests) == 4


async def test_discovery_does_without_a_group_whose_server_is_down() -> None:
    def answer(request: Any) -> Any:
        return refused(503, "ServiceUnavailable") if request.target == "/apis/apps/v1" else ok(LEGACY[request.target])

    mapper = Script(answer).client().mapper
    assert (await mapper.find("po")).kind == "Pod"
    with pytest.raises(UnknownKind):
        await mapper.find("deployment")
    assert mapper.unavailable == {"apps/v1"}


async def test_discovery_says_which_groups_it_has_no_answer_of() -> None:
    document = aggregated("thing")
    versions = [{"version": "v1", "freshness": "Stale"}, {"version": "v2", "freshness": "Current"}]
    document["items"].append({"metadata": {"name": "away.io"}, "versions": versions})
    answers = [document, aggregated("thing")]
    server = Script(lambda request: ok(answers[0] if request.target == "/apis" else aggregated()))
    mapper = server.client().mapper
    await mapper.all()
    assert mapper.unavailable == {"away.io/v1"}
    answers.pop(0)
    mapper.invalidate()
    await mapper.all()
    assert mapper.unavailable == set()


def aggregated(*names: str) -> dict[str, Any]:
    entries = [
        {"resource": f"{name}s", "responseKind": {"kind": name.title()}, "scope": "Cluster", "singularResource": name}
        for name in names
    ]
    group = {"metadata": {"name": "x.io"}, "versions": [{"version": "v1", "resources": entries}]}
    return {"kind": "APIGroupDiscoveryList", "items": [group]}


async def test_discovery_looks_again_on_a_miss_and_asks_with_its_etag() -> None:
    known = ["thing"]

    def answer(request: Any) -> Any:
        names = known if request.target == "/apis" else []
        tag = '"' + "-".join(names) + '"'
        if request.headers.get("if-none-match") == tag:
            return ok(b"", 304)
        return ok(aggregated(*names), etag=tag)

    server = Script(answer)
    client: Client = server.client()
    assert (await client.mapper.find("things")).group == "x.io"
    await client.mapper.find("Thing.x.io")
    assert len(server.requests) == 2
    known.append("gadget")
    assert (await client.mapper.kind("x.io/v1", "Gadget")).plural == "gadgets"
    assert len(server.requests) == 4
    with pytest.raises(UnknownKind, match="kubectl api-resources"):
        await client.mapper.find("absent")


async def test_a_look_that_fails_half_way_loses_no_name_and_the_next_one_has_them_all() -> None:
    core, groups = ["pod"], ["thing"]
    failing = False

    def answer(request: Any) -> Any:
        names = groups if request.target == "/apis" else core
        if failing and request.target == "/apis":
            return refused(403, "Forbidden", "not now")
        tag = '"' + "-".join(names) + '"'
        return ok(b"", 304) if request.headers.get("if-none-match") == tag else ok(aggregated(*names), etag=tag)

    mapper = Script(answer).client().mapper
    await mapper.find("thing")
    core, failing = ["pod", "node"], True
    with pytest.raises(Forbidden):
        await mapper.find("node")
    await mapper.find("thing")
    failing = False
    assert (await mapper.find("node")).kind == "Node"


async def test_discovery_looks_again_when_a_kind_is_no_longer_served() -> None:
    version = "v1"

    def answer(request: Any) -> Any:
        if request.target in ("/api", "/apis"):
            group = aggregated("thing")
            group["items"][0]["versions"][0]["version"] = version
            return ok(group if request.target == "/apis" else {"kind": "APIGroupDiscoveryList", "items": []})
        return ok({"metadata": {"name": "a"}}) if f"/{version}/" in request.target else ok(b"404 page not found", 404)

    client: Client = Script(answer).client()
    await client.get("thing", "a")
    version = "v2"
    with pytest.raises(NotFound):
        await client.get("thing", "a")
    await client.get("thing", "a")
