"""How long requests of every kind hold up all others: a table of requests, each sent beside the probe.

What each of them took is in docs/architecture/apiserver.md. The sizes are what a test has time for.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from konverge.apiserver.go.yaml_text import dump
from tests.apiserver.api import CONFIG_MAPS, MERGE, Api
from tests.apiserver.held import Held, held, measured
from tests.apiserver.test_large_requests import JSON_PATCH, PODS, TABLE, pod

pytestmark = [pytest.mark.spec("T-08"), pytest.mark.blocking]
NAMESPACE = "/api/v1/namespaces/default"
ACCESS = "/apis/authorization.k8s.io/v1"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
NETWORK = "/apis/networking.k8s.io/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
YAML = "application/yaml"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
AS_USER = {"impersonate_user": "u", "impersonate_group": "system:authenticated"}


class Case(NamedTuple):
    method: str
    path: str
    body: Callable[[], Any] = lambda: None
    status: int = 200
    headers: dict[str, str] = {}
    before: Callable[[Api], Awaitable[Any]] | None = None


def patches(*operations: Any) -> Callable[[], Any]:
    return lambda: [{"op": "add", "path": "/data", "value": {"a": "b" * 300}}, *operations]


async def config_map(api: Api) -> None:
    await api.create("x", data={f"k{number}": "v" for number in range(3_000)})


async def large_pod(api: Api) -> None:
    await api.create("default", f"{NAMESPACE}/serviceaccounts")
    await api.call("POST", PODS, pod(env=[{"name": f"E{number}", "value": "v"} for number in range(6_000)]))


async def small_pod(api: Api) -> None:
    await api.create("default", f"{NAMESPACE}/serviceaccounts")
    await api.call("POST", PODS, pod())


async def ingress(api: Api) -> None:
    backend = {"service": {"name": "s", "port": {"number": 1}}}
    http = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
    rules = [{"host": f"h{number}.a.b", "http": http} for number in range(4_000)]
    await api.create("x", f"{NETWORK}/ingresses", spec={"rules": rules})


async def endpoints(api: Api) -> None:
    addresses = [{"ip": "10.0.0.1"} for _ in range(6_000)]
    ports = [{"port": 1, "name": f"p{number}"} for number in range(8_000)]
    await api.create("x", f"{NAMESPACE}/endpoints", subsets=[{"addresses": addresses, "ports": ports}])


async def indexed_job(api: Api) -> None:
    spec = {"completions": 100_000, "parallelism": 1, "completionMode": "Indexed"}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    await api.create("j", JOBS, spec={**spec, "template": template})


def indexes() -> Any:
    completed = ",".join(str(2 * number) for number in range(60_000))
    return {"status": {"completedIndexes": completed, "failedIndexes": completed.replace("0,", "1,")}}


def binding_of(name: str, role: str, *subjects: str) -> Any:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    bound = [{"kind": "User", "name": subject, "apiGroup": "rbac.authorization.k8s.io"} for subject in subjects]
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": bound}


def rules(count: int, group: str = "") -> list[Any]:
    return [{"apiGroups": [group], "resources": [f"a{number}"], "verbs": ["b", "c"]} for number in range(count)]


async def may_make_roles(api: Api) -> None:
    """A user who may write roles, and holds thousands of rules."""
    own = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}
    await api.call("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "r"}, "rules": [own, *rules(8_000)]})
    await api.call("POST", f"{RBAC}/clusterrolebindings", binding_of("r", "r", "u"))


async def many_roles(api: Api) -> None:
    for number in range(1_500):
        name = f"r{number}"
        role = {"apiGroups": [""], "resources": [f"x{number}"], "verbs": ["get"]}
        await api.call("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [role]})
        await api.call("POST", f"{RBAC}/clusterrolebindings", binding_of(name, name, "u"))


async def many_subjects(api: Api) -> None:
    await api.send("GET", CONFIG_MAPS, **AS_USER)  # from now on there is an index
    bound = binding_of("x", "view", *(f"u{number}" for number in range(16_000)))
    await api.call("POST", f"{RBAC}/clusterrolebindings", bound)


def requirements(count: int) -> Any:
    wanted = [{"key": f"a{number}", "operator": "In", "values": ["a"]} for number in range(count)]
    return {"verb": "list", "resource": "pods", "labelSelector": {"requirements": wanted}}


def asks(user: str = "a", **spec: Any) -> Callable[[], Any]:
    attributes = {"verb": "get", "resource": "pods", "namespace": "default"}
    return lambda: {"spec": {"user": user, "resourceAttributes": attributes, **spec}}


def claims() -> str:
    text = base64.urlsafe_b64encode(json.dumps({"iss": "x", "a": [[]] * 200_000}).encode()).decode()
    return f"e30.{text.rstrip('=')}.aa"


LONG = ",".join(f"a!=w{number}" for number in range(12_000))
CASES = {
    "copies": Case(
        "PATCH",
        f"{CONFIG_MAPS}/x",
        patches(*({"op": "copy", "from": "/data/a", "path": f"/data/c{number}"} for number in range(2_500))),
        headers={"content_type": JSON_PATCH},
        before=config_map,
    ),
    "copies of all that there is": Case(
        "PATCH",
        f"{CONFIG_MAPS}/x",
        patches(*({"op": "copy", "from": "", "path": f"/data/c{number}"} for number in range(40))),
        422,
        {"content_type": JSON_PATCH},
        config_map,
    ),
    "moves": Case(
        "PATCH",
        f"{CONFIG_MAPS}/x",
        patches(
            *({"op": "move", "from": f"/data/{'ab'[n % 2]}", "path": f"/data/{'ba'[n % 2]}"} for n in range(9_000))
        ),
        headers={"content_type": JSON_PATCH},
        before=config_map,
    ),
    "label selector": Case("GET", f"{CONFIG_MAPS}?labelSelector={LONG}"),
    "label selector of a deletion": Case("DELETE", f"{CONFIG_MAPS}?labelSelector={LONG}"),
    "label selector that is none": Case("GET", f"{CONFIG_MAPS}?labelSelector={'(' * 120_000}", status=400),
    "field selector": Case(
        "GET", f"{CONFIG_MAPS}?fieldSelector={','.join(f'metadata.name!=w{n}' for n in range(5_500))}"
    ),
    "escapes": Case("GET", f"{CONFIG_MAPS}?x={'%41' * 40_000}"),
    "groups": Case("POST", f"{ACCESS}/subjectaccessreviews", asks(groups=[f"g{n}" for n in range(200_000)]), 201),
    "selector of a review": Case(
        "POST",
        f"{ACCESS}/subjectaccessreviews",
        lambda: {"spec": {"user": "a", "resourceAttributes": requirements(30_000)}},
        201,
    ),
    "a token": Case("POST", TOKENS, lambda: {"spec": {"token": "a" * 2_900_000}}, 201),
    "a token of many claims": Case("POST", TOKENS, lambda: {"spec": {"token": claims()}}, 201),
    "my rules": Case(
        "POST",
        f"{ACCESS}/selfsubjectrulesreviews",
        lambda: {"spec": {"namespace": "default"}},
        201,
        AS_USER,
        many_roles,
    ),
    "a role that one holds": Case(
        "POST",
        f"{RBAC}/clusterroles",
        lambda: {"metadata": {"name": "x"}, "rules": rules(8_000)},
        201,
        AS_USER,
        may_make_roles,
    ),
    "a role that one does not hold": Case(
        "POST",
        f"{RBAC}/clusterroles",
        lambda: {"metadata": {"name": "x"}, "rules": rules(8_000, "other")},
        403,
        AS_USER,
        may_make_roles,
    ),
    "subjects": Case("DELETE", f"{RBAC}/clusterrolebindings/x", before=many_subjects),
    "table of an ingress": Case("GET", f"{NETWORK}/ingresses", headers={"accept": TABLE}, before=ingress),
    "metadata of an ingress": Case("GET", f"{NETWORK}/ingresses", headers={"accept": PARTIAL}, before=ingress),
    "table of endpoints": Case("GET", f"{NAMESPACE}/endpoints", headers={"accept": TABLE}, before=endpoints),
    "YAML of endpoints": Case("GET", f"{NAMESPACE}/endpoints/x", headers={"accept": YAML}, before=endpoints),
    "binding of a large pod": Case(
        "POST",
        f"{PODS}/x/binding",
        lambda: {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "n"}},
        201,
        before=large_pod,
    ),
    "eviction of a large pod": Case(
        "POST", f"{PODS}/x/eviction", lambda: {"metadata": {"name": "x"}}, 201, before=large_pod
    ),
    "eviction with a large body": Case(
        "POST",
        f"{PODS}/x/eviction",
        lambda: {"metadata": {"name": "x", "annotations": {f"a{n}": "b" * 90 for n in range(20_000)}}},
        201,
        before=small_pod,
    ),
    "status of an indexed job": Case("PATCH", f"{JOBS}/j/status", indexes, 422, {"content_type": MERGE}, indexed_job),
    "deletion with a large body": Case(
        "DELETE",
        f"{CONFIG_MAPS}/x",
        lambda: {"kind": "DeleteOptions", "apiVersion": "v1", **{f"u{n}": 1 for n in range(180_000)}},
        before=config_map,
    ),
    "secret of many keys": Case(
        "POST",
        f"{NAMESPACE}/secrets",
        lambda: {"metadata": {"name": "x"}, "data": {f"k{n}": "YQ==" for n in range(50_000)}},
        201,
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_request_that_takes_long(api: Api, name: str) -> None:
    case = CASES[name]
    if case.before is not None:
        await case.before(api)
    await api.send("GET", CONFIG_MAPS)
    probe = await held(api, case.method, case.path, case.body(), **case.headers)
    assert probe.response.status == case.status, probe.response.body[:300]
    probe.check()


async def test_what_a_binding_and_an_eviction_did(api: Api) -> None:
    await large_pod(api)
    await api.call("POST", f"{PODS}/x/binding", {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "n"}})
    bound = await api.call("GET", f"{PODS}/x")
    assert bound["spec"]["nodeName"] == "n"
    assert len(bound["spec"]["containers"][0]["env"]) == 6_000
    await api.call("PATCH", f"{PODS}/x/status", {"status": {"phase": "Running"}}, content_type=MERGE)
    await api.call("POST", f"{PODS}/x/eviction", {"metadata": {"name": "x"}})
    evicted = await api.call("GET", f"{PODS}/x")
    assert evicted["metadata"]["deletionTimestamp"]
    assert [entry["reason"] for entry in evicted["status"]["conditions"] if entry["type"] == "DisruptionTarget"]


async def test_a_binding_begins_again_when_another_write_comes_between(api: Api) -> None:
    await large_pod(api)
    body = {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "n"}}
    request = api.request("POST", f"{PODS}/x/binding", body)
    task = asyncio.create_task(api.server.transport.send(request))
    await asyncio.sleep(0)
    assert not task.done()
    await api.server.objects.update_aside(
        "", "pods", "default", "x", lambda obj: obj["metadata"].update(labels={"a": "b"})
    )
    assert (await task).status == 201
    stored = await api.call("GET", f"{PODS}/x")
    assert (stored["spec"]["nodeName"], stored["metadata"]["labels"]) == ("n", {"a": "b"})


async def test_watchers_of_a_large_object(api: Api) -> None:
    """Each gets it as a table, and it is decoded once."""
    await api.create("x", data={f"k{number}": "v" for number in range(40_000)})
    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        begun = [asyncio.Event() for _ in range(20)]
        seen = [group.create_task(_rows(api, 2, event)) for event in begun]
        for event in begun:
            await event.wait()
        probe = await held(api, "PATCH", f"{CONFIG_MAPS}/x", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
        probe.check()
    for task in seen:
        first, second = map(json.loads, b"".join(task.result()).splitlines())
        assert first["object"]["columnDefinitions"]
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][:2] == ["x", 40_000]
        assert second["object"]["rows"][0]["object"]["metadata"]["labels"] == {"a": "b"}


async def _rows(api: Api, count: int, begun: asyncio.Event) -> list[bytes]:
    request = api.request("GET", CONFIG_MAPS, query={"watch": "true"}, accept=TABLE)
    stream = await api.server.transport.stream(request)
    chunks: list[bytes] = []
    try:
        async for chunk in stream:  # they are decoded when the probe has ended
            chunks.append(bytes(chunk))
            begun.set()
            if sum(chunk.count(b"\n") for chunk in chunks) >= count:
                break
    finally:
        await stream.aclose()
    return chunks


async def test_a_list_as_yaml_is_made_in_parts(api: Api) -> None:
    for number in range(300):
        await api.create(f"x{number}", data={"a": "b: {c\nd", "e": "f" * 900})
    for query in ({}, {"limit": "1"}, {"limit": "2"}, {"labelSelector": "none=here"}):
        probe = await held(api, "GET", CONFIG_MAPS, query=query, accept=YAML)
        probe.check()
        listed = await api.call("GET", CONFIG_MAPS, query=query)
        assert probe.response.body.decode() == dump(listed)


async def test_several_lists_of_yaml_leave_room_for_a_large_write(api: Api) -> None:
    """The thread is theirs for a part of the list only."""
    for number in range(60):
        await api.create(f"x{number}", data={f"k{key}": "v" * 50 for key in range(600)})
    lists = [api.request("GET", CONFIG_MAPS, accept=YAML) for _ in range(3)]

    async def all_of_them() -> list[Any]:
        tasks = [asyncio.create_task(api.server.transport.send(request)) for request in lists]
        await asyncio.sleep(0)
        await api.create("large", data={f"k{key}": "v" for key in range(20_000)})
        assert not all(task.done() for task in tasks)
        return [await task for task in tasks]

    answers, probe = await measured(all_of_them())
    assert {answer.status for answer in answers} == {200}
    Held(answers[0], *probe).check()


async def test_the_time_limit_holds_for_reading_yaml(api: Api) -> None:
    body = b"metadata: {name: x}\ndata:\n" + b"".join(b"  k%d: v\n" % number for number in range(20_000))
    late = await api.send("POST", f"{CONFIG_MAPS}?timeout=1ms", body, content_type=YAML)
    assert late.status == 504
    assert (await api.send("GET", f"{CONFIG_MAPS}/x")).status == 404
    assert (await api.send("POST", CONFIG_MAPS, body, content_type=YAML)).status == 201


@pytest.mark.parametrize(
    "text",
    [
        b"  a: b\n" + b"# a comment that is long enough\n" * 90_000,
        b"  a: |\n" + b"    text text\n" * 200_000,
        b"  a: b\n" + b"---\na: b\n" * 250_000,
        b"".join(b"  a%d: &a%d [x]\n" % (number, number) for number in range(20_000)),
    ],
    ids=["comments", "text", "documents", "anchors"],
)
async def test_yaml_of_every_form(api: Api, text: bytes) -> None:
    probe = await held(api, "POST", CONFIG_MAPS, b"metadata: {name: x}\nspec:\n" + text, content_type=YAML)
    assert probe.response.status == 201, probe.response.body[:300]
    probe.check()
