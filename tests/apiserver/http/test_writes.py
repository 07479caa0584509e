"""Creates, updates and deletes: the rules of metadata, no-ops, dry runs, finalizers, grace."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import clock
from konverge.apiserver.meta import system
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.objects.times import parse_time
from tests.apiserver.api import CONFIG_MAPS, Api

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"


def deployment(name: str, **more: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "metadata": {"name": name, **more},
        "spec": {"selector": {"matchLabels": labels}, "template": template, "replicas": 2},
    }


@pytest.mark.spec("S-10")
async def test_a_write_that_changes_nothing_changes_no_version(api: Api) -> None:
    created = await api.create("a", data={"x": "1"})
    path, before = f"{CONFIG_MAPS}/a", api.server.store.revision
    assert await api.patch(path, {"data": {"x": "1"}}) == created
    assert await api.call("PUT", path, created) == created
    await api.patch(path, {"metadata": {"labels": None}})
    assert api.server.store.revision == before


@pytest.mark.spec("S-83")
async def test_managers_of_any_name_write_an_object_that_many_have_written(api: Api) -> None:
    await api.create("a", data={"x": "1"})
    path = f"{CONFIG_MAPS}/a"
    for name in [*(f"m{index:02}" for index in range(12)), "OpenAPI-Generator"]:
        written = await api.patch(path, {"data": {name: "1"}}, query={"fieldManager": name})
        assert written["data"][name] == "1"
    managers = [entry["manager"] for entry in written["metadata"]["managedFields"]]
    assert len(managers) <= 10
    assert "OpenAPI-Generator" in managers


@pytest.mark.spec("S-05", "S-04")
async def test_a_write_of_an_old_version_conflicts(api: Api) -> None:
    created = await api.create("a")
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
    refused = await api.call("PUT", f"{CONFIG_MAPS}/a", created, expect=409)
    assert refused["reason"] == "Conflict"
    assert "please apply your changes to the latest version" in refused["message"]
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"y": "2"}}
    await api.patch(f"{CONFIG_MAPS}/a", stale, expect=409)
    await api.call("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "a", "uid": "other"}}, expect=409)


@pytest.mark.spec("S-10")
async def test_dry_runs_leave_no_trace(api: Api) -> None:
    await api.create("a", metadata={"finalizers": ["example.com/f"]})
    before, dry = api.server.store.revision, {"dryRun": "All"}
    made = await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "new"}}, query=dry)
    copied = {"metadata": {"name": "copied", "resourceVersion": "77"}}  # only the storage would refuse it
    assert (await api.call("POST", CONFIG_MAPS, copied, query=dry))["metadata"]["resourceVersion"] == "77"
    await api.call("POST", CONFIG_MAPS, copied, expect=500)
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    patched = await api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}}, query=dry)
    assert patched["data"] == {"x": "1"}
    deleted = await api.call("DELETE", f"{CONFIG_MAPS}/a", query=dry)
    assert deleted["metadata"]["deletionTimestamp"]
    await api.call("DELETE", CONFIG_MAPS, query=dry)
    assert api.server.store.revision == before
    await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, query=dry, expect=409)


@pytest.mark.spec("S-10")
async def test_generated_names_are_unique(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await api.call("POST", CONFIG_MAPS, {"metadata": {"generateName": "x-"}})
    assert made["metadata"]["name"].startswith("x-")
    assert len(made["metadata"]["name"]) == 7
    await api.create("taken-1")
    tries = iter(["taken-1", "taken-1", "free"])
    monkeypatch.setattr(system, "generate_name", lambda base: next(tries))
    made = await api.call("POST", CONFIG_MAPS, {"metadata": {"generateName": "taken-"}})
    assert made["metadata"]["name"] == "free"
    monkeypatch.setattr(system, "generate_name", lambda base: "taken-1")
    refused = await api.call("POST", CONFIG_MAPS, {"metadata": {"generateName": "taken-"}}, expect=409)
    assert refused["message"].endswith("the server was not able to generate a unique name for the object")
    assert refused["details"]["retryAfterSeconds"] == 1


@pytest.mark.spec("S-10")
async def test_generation_counts_changes_of_the_spec(api: Api) -> None:
    made = await api.call("POST", DEPLOYMENTS, deployment("web"))
    assert made["metadata"]["generation"] == 1
    path = f"{DEPLOYMENTS}/web"
    labelled = await api.patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    ready = await api.patch(f"{path}/status", {"status": {"replicas": 2}, "spec": {"replicas": 9}})
    assert (ready["metadata"]["generation"], ready["spec"]["replicas"]) == (1, 2)
    scaled = await api.patch(path, {"spec": {"replicas": 3}, "status": {"replicas": 7}})
    assert (scaled["metadata"]["generation"], scaled["status"]["replicas"]) == (2, 2)
    foreground = await api.call("DELETE", path, {"propagationPolicy": "Foreground"})
    assert foreground["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert foreground["metadata"]["generation"] == 3


@pytest.mark.spec("S-10")
async def test_an_object_is_gone_with_its_last_finalizer(api: Api) -> None:
    await api.create("a", metadata={"finalizers": ["example.com/one", "example.com/two"]})
    path = f"{CONFIG_MAPS}/a"
    held = await api.call("DELETE", path)
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    again = await api.call("DELETE", path)
    assert again == held
    refused = await api.patch(path, {"metadata": {"finalizers": ["example.com/new"]}}, expect=422)
    assert "no new finalizers can be added" in refused["message"]
    await api.patch(path, {"metadata": {"finalizers": ["example.com/two"]}})
    async with api.watch(resourceVersion=str(api.server.store.revision)) as watch:
        last = await api.patch(path, {"metadata": {"finalizers": None}})
        assert "finalizers" not in last["metadata"]
        gone = await watch.next()
    assert gone["type"] == "DELETED"
    await api.call("GET", path, expect=404)


@pytest.mark.spec("S-10", "S-04")
async def test_a_delete_checks_its_preconditions(api: Api) -> None:
    made = await api.create("a")
    path = f"{CONFIG_MAPS}/a"
    await api.call("DELETE", path, {"preconditions": {"uid": "other"}}, expect=409)
    await api.call("DELETE", path, {"preconditions": {"resourceVersion": "1"}}, expect=409)
    done = await api.call("DELETE", path, {"preconditions": {"uid": made["metadata"]["uid"]}})
    assert done["status"] == "Success"
    assert done["details"]["uid"] == made["metadata"]["uid"]


@pytest.mark.spec("S-03")
async def test_bound_pods_are_deleted_gracefully(api: Api) -> None:
    await api.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await api.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    target = {"kind": "Node", "name": "n1"}
    bound = await api.call("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": target})
    assert bound["status"] == "Success"
    refused = await api.call("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": target}, expect=409)
    assert 'pod p is already assigned to node "n1"' in refused["message"]
    leaving = await api.call("DELETE", f"{PODS}/p")
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30
    longer = await api.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 60})
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = await api.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5})
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    await api.call("GET", f"{PODS}/p", expect=404)


NOW = "2026-11-20T00:17:59Z"


async def bound_pod(api: Api, monkeypatch: pytest.MonkeyPatch, **spec: Any) -> str:
    """A pod on a node, at NOW."""
    monkeypatch.setattr(clock, "now", parse_time(NOW).timestamp)
    await api.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    spec |= {"containers": [{"name": "c", "image": "i"}], "nodeName": "n1"}
    await api.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    return f"{PODS}/p"


def end(pod: Any) -> tuple[str, int]:
    return pod["metadata"]["deletionTimestamp"], pod["metadata"]["deletionGracePeriodSeconds"]


# As kube-apiserver 1.37.1 answers: a duration is 64 bits of nanoseconds, and more of them wrap around.
@pytest.mark.spec("S-70")
@pytest.mark.parametrize(
    ("grace", "when"),
    [
        (9_223_372_036, "2319-03-02T00:05:15Z"),
        (9_223_372_037, "1734-08-11T00:30:42Z"),
        (10**12, "2149-09-15T00:58:18Z"),
        (2**54, "1734-08-11T00:30:42Z"),
        (2**63 - 1, "2026-11-20T00:17:58Z"),
    ],
)
async def test_any_grace_period_is_taken(api: Api, monkeypatch: pytest.MonkeyPatch, grace: int, when: str) -> None:
    path = await bound_pod(api, monkeypatch)
    assert end(await api.call("DELETE", path, {"gracePeriodSeconds": grace})) == (when, grace)
    assert end(await api.call("DELETE", path)) == (when, grace)


@pytest.mark.spec("S-70")
@pytest.mark.parametrize(
    ("grace", "shorter", "when", "left"),
    [
        (10**12, 30, "2026-11-20T00:18:28Z", 30),
        (9_223_372_037, 9_223_372_036, "2319-03-02T00:05:14Z", 9_223_372_036),
        (2**63 - 1, 30, "2026-11-20T00:18:29Z", 30),
        (2**54, 9_223_372_036, NOW, 1),
        (10**12, 10**10, NOW, 1),
    ],
)
async def test_any_grace_period_is_shortened(
    api: Api, monkeypatch: pytest.MonkeyPatch, grace: int, shorter: int, when: str, left: int
) -> None:
    """What is stored has whole seconds, so that a fraction that wraps is lost on the way."""
    path = await bound_pod(api, monkeypatch)
    await api.call("DELETE", path, {"gracePeriodSeconds": grace})
    assert end(await api.call("DELETE", path, {"gracePeriodSeconds": shorter})) == (when, left)


@pytest.mark.spec("S-70")
async def test_a_collection_with_the_longest_grace_period_is_deleted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    path = await bound_pod(api, monkeypatch, terminationGracePeriodSeconds=2**63 - 1)
    await api.call("DELETE", PODS, expect=200)
    assert end(await api.call("GET", path)) == ("2026-11-20T00:17:58Z", 2**63 - 1)
    await api.call("DELETE", path, {"gracePeriodSeconds": 0})
    await api.call("GET", path, expect=404)


@pytest.mark.spec("S-03", "S-04")
async def test_eviction_asks_the_disruption_budget(api: Api) -> None:
    await api.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await api.call("POST", PODS, {"metadata": {"name": "p", "labels": {"app": "p"}}, "spec": spec})
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await api.patch(f"{PODS}/p/status", ready)
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}
    await api.call("POST", budgets, {"metadata": {"name": "b"}, "spec": budget})
    eviction = {"metadata": {"name": "p"}}
    refused = await api.call("POST", f"{PODS}/p/eviction", eviction, expect=429)
    assert refused["details"]["causes"][0]["reason"] == "DisruptionBudget"
    state = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
    }
    await api.patch(f"{budgets}/b/status", {"status": state})
    await api.call("POST", f"{PODS}/p/eviction", eviction, expect=201)
    left = await api.call("GET", f"{budgets}/b")
    assert left["status"]["disruptionsAllowed"] == 0
    assert list(left["status"]["disruptedPods"]) == ["p"]


@pytest.mark.spec("S-03")
async def test_scale_is_a_view_of_the_object(api: Api) -> None:
    await api.call("POST", DEPLOYMENTS, deployment("web"))
    scale = await api.call("GET", f"{DEPLOYMENTS}/web/scale")
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 2}, "app=web")
    scale["spec"]["replicas"] = 5
    await api.call("PUT", f"{DEPLOYMENTS}/web/scale", scale)
    web = await api.call("GET", f"{DEPLOYMENTS}/web")
    assert (web["spec"]["replicas"], web["metadata"]["generation"]) == (5, 2)
    owners = [entry for entry in web["metadata"]["managedFields"] if entry.get("subresource") == "scale"]
    assert owners[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    await api.call("PUT", f"{DEPLOYMENTS}/web/scale", scale, expect=409)
    await api.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": -1}}, expect=422)


@pytest.mark.spec("S-13")
async def test_a_namespace_must_exist_and_not_be_terminating(api: Api) -> None:
    missing = "/api/v1/namespaces/none/configmaps"
    refused = await api.call("POST", missing, {"metadata": {"name": "a"}}, expect=404)
    assert refused["message"] == 'namespaces "none" not found'
    await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "going"}})
    await api.call("DELETE", "/api/v1/namespaces/going")
    path = "/api/v1/namespaces/going/configmaps"
    refused = await api.call("POST", path, {"metadata": {"name": "a"}}, expect=403)
    assert refused["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await api.call("DELETE", "/api/v1/namespaces/default", expect=403)


class SlowAdmission:
    """Holds the first update until another has been written."""

    def __init__(self) -> None:
        self.calls = 0
        self.arrived, self.go_on = asyncio.Event(), asyncio.Event()

    async def admit(self, request: AdmissionRequest) -> None:
        self.calls += 1
        if self.calls == 1:
            self.arrived.set()
            await self.go_on.wait()

    async def validate(self, request: AdmissionRequest) -> None: ...


async def test_a_patch_is_applied_again_after_another_write(api: Api) -> None:
    await api.create("a", data={"x": "1"})
    slow = api.server.admission = SlowAdmission()
    patching = asyncio.create_task(api.patch(f"{CONFIG_MAPS}/a", {"data": {"slow": "yes"}}))
    await slow.arrived.wait()
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"quick": "yes"}})
    slow.go_on.set()
    assert (await patching)["data"] == {"x": "1", "quick": "yes", "slow": "yes"}
    assert slow.calls == 3
