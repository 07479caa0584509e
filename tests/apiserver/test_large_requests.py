"""Large requests hold the loop for at most 100 ms: each is sent beside a probe.

The bodies are as large as a test has time for, below the 3 MB that are allowed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from konverge.apiserver import ApiServer, aside
from konverge.apiserver.http.bodies import BODY_LIMIT
from tests.apiserver.api import APPLY, CONFIG_MAPS, MERGE, Api
from tests.apiserver.held import held

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

pytestmark = [pytest.mark.spec("T-08"), pytest.mark.blocking]


def env(count: int) -> list[Any]:
    return [{"name": f"E{number}", "value": "v"} for number in range(count)]


def pod(**container: Any) -> Any:
    return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i", **container}]}}


def deployment(**container: Any) -> Any:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(**container)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


def config_map(**metadata: Any) -> Any:
    return {"metadata": {"name": "x", **metadata}}


def owners(count: int, **more: Any) -> list[Any]:
    return [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": f"u{n}", **more} for n in range(count)]


def managers(count: int) -> list[Any]:
    entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return [{**entry, "manager": f"m{n}", "fieldsV1": {f"f:a{n}": {}}} for n in range(count)]


CREATES: dict[str, tuple[str, Callable[[], Any], int]] = {
    "finalizers": (CONFIG_MAPS, lambda: config_map(finalizers=[f"a.b/{n}" for n in range(100_000)]), 201),
    "wrong finalizers": (CONFIG_MAPS, lambda: config_map(finalizers=[f"_{n}" for n in range(100_000)]), 422),
    "unknown fields": (CONFIG_MAPS, lambda: {**config_map(), **{f"u{n}": 1 for n in range(220_000)}}, 201),
    "labels": (CONFIG_MAPS, lambda: config_map(labels={f"k{n}": "v" for n in range(40_000)}), 201),
    "wrong labels": (CONFIG_MAPS, lambda: config_map(labels={f"_{n}": "_" for n in range(150_000)}), 422),
    "controllers": (CONFIG_MAPS, lambda: config_map(ownerReferences=owners(20_000, controller=True)), 422),
    "managers": (CONFIG_MAPS, lambda: config_map(managedFields=managers(20_000)), 201),
    "env": (PODS, lambda: pod(env=env(50_000)), 201),
    "the same port": (PODS, lambda: pod(ports=[{"containerPort": 1}] * 50_000), 500),  # larger than etcd takes it
    "empty containers": (PODS, lambda: {"metadata": {"name": "x"}, "spec": {"containers": [{}] * 50_000}}, 422),
    "service ports": (SERVICES, lambda: service([{"port": 1 + n, "name": f"p{n}"} for n in range(10_000)]), 201),
    "node ports": (
        SERVICES,
        lambda: service([{"port": 1 + n, "name": f"p{n}"} for n in range(9_000)], "NodePort"),
        500,
    ),
    "groups of a review": (REVIEWS, lambda: review([f"g{n}" for n in range(100_000)]), 201),
}


def service(ports: list[Any], kind: str = "ClusterIP") -> Any:
    return {"metadata": {"name": "x"}, "spec": {"ports": ports, "type": kind}}


def review(groups: list[str]) -> Any:
    attributes = {"verb": "get", "resource": "pods"}
    return {"spec": {"user": "a", "groups": groups, "resourceAttributes": attributes}}


async def sent(api: Api, method: str, path: str, body: Any, expected: int, **headers: Any) -> Any:
    data = None if body is None else json.dumps(body).encode()
    assert data is None or len(data) < BODY_LIMIT
    probe = await held(api, method, path, data, **headers)
    assert probe.response.status == expected, probe.response.body[:300]
    probe.check()
    return json.loads(probe.response.body)


@pytest.fixture
async def with_account(api: Api) -> AsyncGenerator[Api, None]:
    await api.create("default", "/api/v1/namespaces/default/serviceaccounts")
    yield api  # noqa: PT022 - the harness runs async generators


@pytest.mark.parametrize("case", CREATES)
async def test_creating_a_large_object(with_account: Api, case: str) -> None:
    path, body, expected = CREATES[case]
    answer = await sent(with_account, "POST", path, body(), expected)
    if expected == 422:  # errors have a bound: 3 MB of wrong labels would be answered with 100 MB
        assert len(json.dumps(answer)) < 5_000_000
        assert "there are more errors" in answer["message"]


@pytest.mark.parametrize(("validation", "expected"), [("Strict", 400), ("Ignore", 201)])
async def test_unknown_fields_with_another_validation(api: Api, validation: str, expected: int) -> None:
    body = {**config_map(), **{f"u{n}": 1 for n in range(220_000)}}
    answer = await sent(api, "POST", CONFIG_MAPS, body, expected, query={"fieldValidation": validation})
    assert ('unknown field "u99"' in json.dumps(answer).replace("\\", "")) == (validation == "Strict")


# --- patches of a Deployment


@pytest.fixture
async def deployed(api: Api) -> AsyncGenerator[Api, None]:
    await api.call("POST", DEPLOYMENTS, deployment(env=env(2_000)))
    yield api  # noqa: PT022 - the harness runs async generators


def containers(**container: Any) -> Any:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", **container}]}}}}


def env_of(answer: Any) -> list[str]:
    return [entry["name"] for entry in answer["spec"]["template"]["spec"]["containers"][0].get("env", ())]


async def test_a_strategic_patch_with_15_000_items(deployed: Api) -> None:
    path = f"{DEPLOYMENTS}/x"
    answer = await sent(deployed, "PATCH", path, containers(env=env(15_000)), 200, content_type=STRATEGIC)
    names = [f"E{n}" for n in range(15_000)]
    assert env_of(answer) == names
    order = {"$setElementOrder/env": [{"name": name} for name in reversed(names)]}
    answer = await sent(deployed, "PATCH", path, containers(**order), 200, content_type=STRATEGIC)
    assert env_of(answer) == names[::-1]
    gone = [{"$patch": "delete", "name": name} for name in names[1:]]
    answer = await sent(deployed, "PATCH", path, containers(env=gone), 200, content_type=STRATEGIC)
    assert env_of(answer) == ["E0"]


async def test_an_apply_with_many_ports(deployed: Api) -> None:
    ports = [{"containerPort": 1 + n} for n in range(8_000)]
    path = f"{DEPLOYMENTS}/x?fieldManager=m"
    answer = await sent(deployed, "PATCH", path, deployment(ports=ports), 200, content_type=APPLY)
    assert len(answer["spec"]["template"]["spec"]["containers"][0]["ports"]) == 8_000
    answer = await sent(deployed, "PATCH", path, deployment(ports=ports[::-2]), 200, content_type=APPLY)
    shown = answer["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert [port["containerPort"] for port in shown] == [port["containerPort"] for port in ports[::-2]]
    await sent(deployed, "PATCH", path, deployment(ports=[{"containerPort": 1}] * 30_000), 500, content_type=APPLY)


async def test_json_and_merge_patches(api: Api) -> None:
    await api.create("x", data={f"k{n}": "v" for n in range(5_000)})
    path = f"{CONFIG_MAPS}/x"
    operations = [{"op": "add", "path": f"/data/x{n}", "value": "v"} for n in range(10_000)]
    answer = await sent(api, "PATCH", path, operations, 200, content_type=JSON_PATCH)
    assert len(answer["data"]) == 15_000
    await sent(api, "PATCH", path, [*operations, operations[0]], 413, content_type=JSON_PATCH)
    change = {"data": {f"x{n}": None for n in range(100_000)}}
    answer = await sent(api, "PATCH", path, change, 200, content_type=MERGE)
    assert len(answer["data"]) == 5_000


async def test_what_others_do_with_a_large_object(api: Api) -> None:
    """Small requests about it, its tables, its deletion."""
    await api.create("x", metadata={"finalizers": [f"a.b/{n}" for n in range(60_000)]})
    path = f"{CONFIG_MAPS}/x"
    await sent(api, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, 200, content_type=MERGE)
    await sent(api, "PATCH", f"{path}?dryRun=All", {"data": {"a": "b"}}, 200, content_type=MERGE)
    table = await sent(api, "GET", CONFIG_MAPS, None, 200, accept=TABLE)
    assert len(table["rows"]) == 1
    await sent(api, "DELETE", path, None, 200)
    marked = await api.call("GET", path)
    assert marked["metadata"]["deletionTimestamp"]
    await sent(api, "PATCH", path, {"metadata": {"finalizers": None}}, 200, content_type=MERGE)
    await api.call("GET", path, expect=404)


async def test_many_terms_of_a_selector(api: Api) -> None:
    for number in range(500):
        await api.create(f"m{number}", labels={"a": f"v{number}"})
    terms = ",".join(f"a!=w{number}" for number in range(3_000))
    listed = await sent(api, "GET", f"{CONFIG_MAPS}?labelSelector={terms}", None, 200)
    assert len(listed["items"]) == 500


# --- another writer between the steps of a large write


async def test_a_large_patch_begins_again_when_another_write_comes_between(api: Api) -> None:
    await api.create("x")
    path = f"{CONFIG_MAPS}/x"
    large = api.request("PATCH", path, {"data": {f"k{n}": "v" for n in range(30_000)}}, content_type=MERGE)
    task = asyncio.create_task(api.server.transport.send(large))
    await asyncio.sleep(0)
    assert not task.done()
    await api.patch(path, {"data": {"small": "v"}})
    assert (await task).status == 200
    data = (await api.call("GET", path))["data"]
    assert data["small"] == "v"
    assert len(data) == 30_001


async def test_an_address_is_claimed_while_its_request_is_under_way(api: Api) -> None:
    large = {f"k{n}": "v" * 50 for n in range(2_000)}
    requests = [
        api.request("POST", SERVICES, {"metadata": {"name": f"s{n}", "annotations": large}, "spec": spec})
        for n, spec in enumerate([{"ports": [{"port": 1}], "clusterIP": "10.96.7.7"}] * 2)
    ]
    answers = await asyncio.gather(*(api.server.transport.send(request) for request in requests))
    assert sorted(answer.status for answer in answers) == [201, 422]
    winner = next(json.loads(answer.body) for answer in answers if answer.status == 201)
    await api.call("DELETE", f"{SERVICES}/{winner['metadata']['name']}")
    await api.create("later", SERVICES, spec={"ports": [{"port": 1}], "clusterIP": "10.96.7.7"})


async def test_a_refused_service_leaves_its_address_free(api: Api) -> None:
    spec = {"ports": [{"port": 0}], "clusterIP": "10.96.7.8"}
    await api.call("POST", SERVICES, {"metadata": {"name": "bad"}, "spec": spec}, expect=422)
    await api.create("good", SERVICES, spec={**spec, "ports": [{"port": 1}]})


# --- the thread aside


async def test_work_aside_asks_the_loop_and_leaves_nothing_changed(server: ApiServer) -> None:
    interval = sys.getswitchinterval()
    loop = asyncio.get_running_loop()

    def work() -> tuple[bool, bool]:
        return asyncio._get_running_loop() is None, aside.on_loop(asyncio.get_running_loop) is loop

    assert await aside.run(aside.FROM, work) == (True, True)
    assert await aside.run(0, work) == (False, True)
    with pytest.raises(ZeroDivisionError):
        await aside.run(aside.FROM, aside.on_loop, lambda: 1 // 0)
    assert sys.getswitchinterval() == interval


def full_collections_wait() -> bool:
    """Whether no full collection will come by itself; those of young objects come as ever."""
    assert gc.isenabled()
    assert gc.get_threshold()[:2] == USUAL[:2]
    return gc.get_threshold()[2] > 1_000_000


USUAL = gc.get_threshold()


async def test_the_collector_pauses_for_large_requests_and_goes_on() -> None:
    with aside.collector_paused:
        with aside.collector_paused:
            assert full_collections_wait()
        assert full_collections_wait()
    assert gc.get_threshold() == USUAL
    with aside.collector_paused:
        gc.set_threshold(USUAL[0] + 1, 5, 5)
    try:
        assert gc.get_threshold() == (USUAL[0] + 1, 5, 5)  # what another has set stays
    finally:
        gc.set_threshold(*USUAL)


def test_the_collector_does_not_pause_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop was closed over a request, which will never end."""
    monkeypatch.setattr(aside._Collector, "LONGEST", 0.01)
    monkeypatch.setattr(aside._Collector, "TURN", 60.0)
    paused = aside._Collector()
    paused.__enter__()
    while full_collections_wait():
        time.sleep(0.001)
    with paused:
        assert gc.get_threshold() == USUAL, "it has its turn"
    monkeypatch.setattr(paused, "_not_before", 0.0)
    with paused:
        assert full_collections_wait(), "the request that did not end counts no more"
    assert gc.get_threshold() == USUAL
    paused.__exit__()
    with paused:
        assert full_collections_wait(), "nor when it ends late"
    assert gc.get_threshold() == USUAL


async def test_what_a_large_request_has_decoded_is_never_walked_over_by_the_collector(api: Api) -> None:
    """Every collection while it is under way is of young objects, of which there are never many."""
    seen: list[tuple[int, int]] = []

    def begun(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            young = gc.get_objects(generation=0)
            seen.append((info["generation"], len(young)))

    lists = 60_000
    body = b"metadata: {name: x}\nspec: [" + b"[]," * lists + b"]\n"
    gc.collect()
    gc.set_threshold(2_000, 4, 2)
    gc.callbacks.append(begun)
    try:
        assert (await api.send("POST", CONFIG_MAPS, body, content_type="application/yaml")).status == 201
    finally:
        gc.callbacks.remove(begun)
        gc.set_threshold(*USUAL)
    assert len(seen) > 20, "young objects are collected"
    assert {generation for generation, _ in seen} <= {0, 1}
    # Since Python 3.12 the collector waits for the end of a call into C: what the two that decode made is young once.
    many = sum(young >= lists / 4 for _, young in seen)
    assert many <= (2 if sys.version_info >= (3, 12) else 0)


def test_work_for_a_loop_that_ended_does_not_hold_up_others() -> None:
    """Neither for one that is closed nor for one that was only stopped."""
    for closes in (False, True):
        begun, ended = threading.Event(), threading.Event()

        def work(begun: threading.Event = begun, ended: threading.Event = ended) -> None:
            begun.set()
            assert ended.wait(60)
            aside.on_loop(int)

        async def abandon(begun: threading.Event = begun) -> None:
            asyncio.get_running_loop().create_task(aside.run(aside.FROM, work))
            while not begun.is_set():
                await asyncio.sleep(0)

        loop = asyncio.new_event_loop()
        loop.run_until_complete(abandon())
        if closes:
            loop.close()
        ended.set()
        assert asyncio.run(asyncio.wait_for(aside.run(aside.FROM, sorted, [2, 1]), 30)) == [1, 2]
        if not closes:
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()


@pytest.mark.virtual
async def test_others_come_in_between_in_virtual_time() -> None:
    order: list[str] = []

    async def other() -> None:
        for number in range(50):
            order.append(str(number))
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    for number in range(8):
        await aside.run(aside.FROM, order.append, f"work {number}")
    await running
    assert order.index("work 7") > order.index("2")


FORKED = """
import asyncio, gc, os, signal, sys
from konverge.apiserver import aside

def compute():
    assert asyncio.run(aside.run(aside.FROM, sorted, [2, 1])) == [1, 2]

compute()
usual = gc.get_threshold()
with aside.collector_paused:
    child = os.fork()
    if not child:
        signal.alarm(30)  # ends a child that waits for ever
        assert gc.get_threshold() == usual
        with aside.collector_paused:
            assert gc.get_threshold() != usual
        assert gc.get_threshold() == usual
        compute()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert gc.get_threshold() != usual
compute()
"""


async def test_a_forked_process_has_a_thread_of_its_own() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-W", "ignore", "-c", FORKED)
    assert await process.wait() == 0
