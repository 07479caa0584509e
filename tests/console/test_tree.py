"""Trees, whys and overviews as the browser gets them, read with the rights of whoever asks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Expired
from konverge.console.views import said
from konverge.explain import Explainer, Gatherer, Ref, World
from konverge.explain.graph import graph, ready_count
from konverge.explain.sentences import parts, say
from konverge.sim.cluster import Cluster
from tests.console.office import API, SPACE, Office, decoded, in_front_of
from tests.explain.samples import create, deployment, obj, ref, stateful_set

pytestmark = [pytest.mark.virtual, pytest.mark.spec("C-07")]

DEPLOYMENT = {"kind": "apps/v1/Deployment", "namespace": SPACE, "name": "web"}


def by_name(tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{node['kind']} {node['name']}": node for node in tree["nodes"]}


def relations(tree: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Kind, relation, kind."""
    kinds = {node["id"]: node["kind"] for node in tree["nodes"]}
    return {(kinds[edge["from"]], edge["relation"], kinds[edge["to"]]) for edge in tree["edges"]}


async def show(office: Office, query: dict[str, str], **more: str) -> dict[str, Any]:
    shown: dict[str, Any] = await office.get(f"{API}/tree", **query, **more)
    assert shown["root"] in {node["id"] for node in shown["nodes"]}
    return shown


async def test_a_tree_has_what_an_object_owns_mounts_and_runs_on() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        mounted = [{"name": "s", "secret": {"secretName": "here"}}]
        await create(cluster.client, obj("Secret", "here", data={"k": "c2VjcmV0"}))
        await create(cluster.client, deployment("web", replicas=2, volumes=mounted))
        await cluster.settle()
        tree = await show(office, DEPLOYMENT)
        nodes = by_name(tree)
        assert relations(tree) == {
            ("Deployment", "owns", "ReplicaSet"),
            ("ReplicaSet", "owns", "Pod"),
            ("Pod", "mounts", "Secret"),
            ("Pod", "runs on", "Node"),
        }
        root = nodes["Deployment web"]
        assert (root["id"], root["resource"], root["apiVersion"]) == (tree["root"], "deployments", "apps/v1")
        assert (root["health"], root["ready"], root["deleting"]) == ("ok", "2/2", False)
        assert root["sentence"] == "Deployment web has 2 of 2 replicas ready"
        assert (root["says"], nodes["Secret here"]["says"]) == ("has 2 of 2 replicas ready", "exists")
        assert nodes["Node node-1"]["namespace"] == ""
        assert len([node for node in tree["nodes"] if node["kind"] == "Pod"]) == 2
        assert "c2VjcmV0" not in str(tree)


async def test_a_pod_is_shown_with_its_owners_above_it() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await create(cluster.client, deployment("web"), deployment("other"))
        await cluster.settle()
        tree = await show(office, DEPLOYMENT)
        pod = next(node for node in tree["nodes"] if node["kind"] == "Pod")
        above = await show(office, {"kind": "v1/Pod", "namespace": SPACE, "name": pod["name"]})
        assert above["root"] == pod["id"]
        assert relations(above) >= {("Deployment", "owns", "ReplicaSet"), ("ReplicaSet", "owns", "Pod")}
        assert {node["name"] for node in above["nodes"] if node["kind"] == "Deployment"} == {"web"}


async def test_a_service_leads_to_its_pods_by_its_slices_too() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        service = obj("Service", "web", {"selector": {"app": "web"}, "ports": [{"port": 80}]})
        await create(cluster.client, deployment("web"), service)
        await cluster.settle()
        tree = await show(office, {"kind": "v1/Service", "namespace": SPACE, "name": "web"})
        assert relations(tree) >= {
            ("Service", "selects", "Pod"),
            ("Service", "owns", "EndpointSlice"),
            ("EndpointSlice", "routes to", "Pod"),
        }


async def test_what_is_missing_is_a_node_that_is_gone_and_why_leads_to_it() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await create(cluster.client, stateful_set("db", storage_class="fast"))
        await asyncio.sleep(60)
        query = {"kind": "apps/v1/StatefulSet", "namespace": SPACE, "name": "db"}
        nodes = by_name(await show(office, query))
        assert nodes["StorageClass fast"]["health"] == "gone"
        assert nodes["StorageClass fast"]["sentence"] == "storage class fast does not exist"
        assert nodes["StorageClass fast"]["says"] == "does not exist"
        assert nodes["Pod db-0"]["says"] == "waits until its claims are bound: data-db-0"
        assert {nodes[name]["health"] for name in ("StatefulSet db", "Pod db-0")} == {"waiting"}
        answer = await office.get(f"{API}/why", **query)
        assert (answer["health"], answer["cause"]) == ("waiting", "missing-storage-class"), "as in the tree"
        assert answer["chain"][-1]["health"] == "broken"
        assert answer["sentence"].endswith("whose storage class `fast` does not exist")
        assert [step["kind"] for step in answer["chain"]][-1] == "StorageClass"
        assert answer["chain"][-1]["resource"] == "storageclasses"
        assert answer["advice"] == "create the storage class fast, or correct the name where it is used"


@pytest.mark.spec("C-37")
async def test_sentences_come_with_what_another_language_needs() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await create(cluster.client, stateful_set("db", storage_class="fast"), deployment("good"))
        await asyncio.sleep(60)
        query = {"kind": "apps/v1/StatefulSet", "namespace": SPACE, "name": "db"}
        answer = await office.get(f"{API}/why", **query)
        assert answer["parts"]["sentence"]["say"] == "{text}, whose {whose}"
        assert answer["parts"]["advice"]["say"] == "create the {object}, or correct the name where it is used"
        assert answer["parts"]["unread"] == answer["unread"] == []
        assert answer["chain"][-1]["parts"] == {"sentence": {"say": "does not exist", "with": {}}}
        (card,) = (await office.get(f"{API}/overview"))["problems"]
        assert (card["sentence"], card["parts"]) == (answer["sentence"], answer["parts"])
        shown = await show(office, query)
        missing = by_name(shown)["StorageClass fast"]["parts"]["sentence"]
        assert (missing["say"], missing["with"]["says"]["say"]) == ("{object} {says}", "does not exist")
        assert by_name(shown)["StatefulSet db"]["parts"]["sentence"] == answer["parts"]["sentence"]
        assert by_name(shown)["StatefulSet db"]["parts"]["says"]["with"] == {"ready": 0, "wanted": 1}
        assert shown["parts"] == {"unread": []}
        fine = await office.get(f"{API}/why", kind="apps/v1/Deployment", namespace=SPACE, name="good")
        assert (fine["health"], fine["advice"], fine["parts"]["advice"]) == ("ok", None, {"say": "", "with": {}})


@pytest.mark.spec("C-37")
async def test_what_could_not_be_read_has_parts_too() -> None:
    sentence = say("{what}: {why}", what="pods", why=say("you may not list them"))
    assert said(unread=[sentence], sentence="plain") == {
        "unread": ["pods: you may not list them"],
        "sentence": "plain",
        "parts": {"unread": [parts(sentence)], "sentence": "plain"},
    }


@pytest.mark.spec("C-22")
async def test_what_is_scaled_to_zero_is_asleep() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await create(cluster.client, deployment("web", replicas=0), deployment("on", replicas=1))
        await cluster.settle()
        assert by_name(await show(office, DEPLOYMENT))["Deployment web"]["health"] == "asleep"
        assert (await office.get(f"{API}/why", **DEPLOYMENT))["health"] == "asleep"
        on = DEPLOYMENT | {"name": "on"}
        assert by_name(await show(office, on))["Deployment on"]["health"] == "ok"
        assert (await office.get(f"{API}/why", **on))["health"] == "ok"


@pytest.mark.spec("C-08")
async def test_why_is_what_the_command_says() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await create(cluster.client, deployment("web", "crash-loop"))
        await asyncio.sleep(120)
        shown = await office.get(f"{API}/why", **DEPLOYMENT)
        said = await Gatherer(cluster.client).why(ref("Deployment", "web"))
        assert shown["sentence"] == said.sentence
        assert [(step["kind"], step["name"]) for step in shown["chain"]] == [
            (step.ref.kind, step.ref.name) for step in said.chain
        ]
        assert (shown["cause"], shown["log"]) == ("crash-loop", said.log)


@pytest.mark.spec("C-08")
async def test_an_overview_counts_every_kind_and_has_one_problem_per_cause() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await create(cluster.client, *(deployment(f"web-{number}", "crash-loop") for number in range(2)))
        await create(cluster.client, deployment("good", replicas=3))
        quota = obj("ResourceQuota", "none", {"hard": {"pods": "0"}}, namespace="small")
        await create(cluster.client, obj("Namespace", "small", namespace=""), quota)
        starved = [{**deployment(name), "metadata": {"name": name, "namespace": "small"}} for name in ("a", "b")]
        await create(cluster.client, *starved)
        await asyncio.sleep(120)
        overview = await office.get(f"{API}/overview")
        kinds = {entry["kind"]: entry for entry in overview["kinds"]}
        assert {"default", "small", "kube-system"} <= set(overview["namespaces"])
        assert (kinds["Pod"]["count"], kinds["Deployment"]["count"]) == (5, 5)
        assert (kinds["Pod"]["broken"], kinds["Node"]["broken"]) == (2, 0)
        assert kinds["Deployment"]["broken"] + kinds["Deployment"]["waiting"] == 4
        assert (kinds["Pod"]["resource"], kinds["Pod"]["namespaced"]) == ("pods", True)
        assert kinds["Node"]["namespaced"] is False
        causes = {problem["cause"]: problem for problem in overview["problems"]}
        assert causes["quota"]["others"] == 1
        assert len([problem for problem in overview["problems"] if problem["cause"] == "crash-loop"]) == 2
        assert all(problem["chain"] and problem["sentence"] for problem in overview["problems"])
        assert causes["crash-loop"]["health"] == "broken", "the health of the sickest of the chain"


@pytest.mark.spec("C-08")
async def test_an_overview_is_not_read_again_for_each_look_and_is_never_another_callers() -> None:
    async with Cluster(nodes=1, controllers=False) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await office.get(f"{API}/overview")
        await create(cluster.client, obj("ConfigMap", "fresh", data={}))

        async def count(overview: dict[str, Any]) -> int | None:
            kinds = {entry["kind"]: entry["count"] for entry in overview["kinds"]}
            return kinds["ConfigMap"]

        before = await count(await office.get(f"{API}/overview"))
        reader = office.another()
        await reader.sign_in(token=await office.account("jane", "get", "list"))
        assert await count(await reader.get(f"{API}/overview")) is None  # not theirs to list
        await asyncio.sleep(60)
        assert await count(await office.get(f"{API}/overview")) == (before or 0) + 1


async def test_what_the_caller_may_not_read_is_not_in_the_tree() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await create(cluster.client, deployment("web"))
        await cluster.settle()
        pod = next(node for node in (await show(office, DEPLOYMENT))["nodes"] if node["kind"] == "Pod")
        reader = office.another()
        await reader.sign_in(token=await office.account("jane", "get", "list"))
        refused = await reader.send("GET", f"{API}/tree?kind=apps/v1/Deployment&namespace={SPACE}&name=web")
        assert (refused.status, decoded(refused)["reason"], decoded(refused)["code"]) == (403, "Forbidden", 403)
        tree = await reader.get(f"{API}/tree", kind="v1/Pod", namespace=SPACE, name=pod["name"])
        assert {node["kind"] for node in tree["nodes"]} == {"Pod"}
        assert any("nodes" in text for text in tree["unread"])


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("?kind=Pod&name=a", 400),
        ("?kind=v1/Pod", 400),
        (f"?kind=v1/Pod&name={'a' * 300}", 400),
        ("?kind=v1/Pod&namespace=default&name=none", 404),
        ("?kind=example.com/v1/Nothing&name=a", 404),
        ("?kind=v1/Pod&namespace=default&name=none&at=x", 400),
    ],
)
async def test_what_cannot_be_shown_is_said(query: str, status: int) -> None:
    async with Cluster(nodes=0, controllers=False) as cluster, in_front_of(cluster.server, cluster.client) as office:
        answer = await office.send("GET", f"{API}/tree{query}")
        assert (answer.status, decoded(answer)["code"]) == (status, status)
        assert decoded(answer)["error"]


async def test_a_tree_as_it_was() -> None:
    async with Cluster(nodes=1) as cluster, in_front_of(cluster.server, cluster.client) as office:
        await create(cluster.client, deployment("web", replicas=1))
        await cluster.settle()
        then = cluster.server.store.durable
        path = f"/k8s/apis/apps/v1/namespaces/{SPACE}/deployments/web"
        await office.send("PATCH", path, {"spec": {"replicas": 3}}, content_type="application/merge-patch+json")
        await cluster.settle()
        now, past = await show(office, DEPLOYMENT), await show(office, DEPLOYMENT, at=str(then))
        assert (by_name(now)["Deployment web"]["ready"], now["at"]) == ("3/3", None)
        assert (by_name(past)["Deployment web"]["ready"], past["at"]) == ("1/1", str(then))
        assert [len([node for node in tree["nodes"] if node["kind"] == "Pod"]) for tree in (now, past)] == [3, 1]
        await office.send("DELETE", path)
        await cluster.settle()
        assert len((await show(office, DEPLOYMENT, at=str(then)))["nodes"]) == len(past["nodes"])
        gone = await office.send("GET", f"{API}/tree?kind=apps/v1/Deployment&namespace={SPACE}&name=web&at=1")
        assert gone.status in (404, 410)
        cluster.server.store.compact(cluster.server.store.revision)
        with pytest.raises(Expired):
            await Gatherer(cluster.client, at=str(then)).explore(ref("Deployment", "web"))
        expired = await office.send("GET", f"{API}/tree?kind=apps/v1/Deployment&namespace={SPACE}&name=web&at={then}")
        assert (expired.status, decoded(expired)["reason"]) == (410, "Expired")


# ------------------------------------------------------------------ the graph itself


def owned(kind: str, name: str, *owners: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = obj(kind, name, **more)
    made["metadata"] |= {"uid": f"uid-{name}", "ownerReferences": [_reference(owner) for owner in owners]}
    return made


def _reference(owner: dict[str, Any]) -> dict[str, str]:
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}


def test_owners_in_a_ring_are_drawn_once() -> None:
    one = owned("ConfigMap", "one")
    two = owned("ConfigMap", "two", one)
    one["metadata"]["ownerReferences"] = [_reference(two)]
    shown = graph(Explainer(World([one, two])), ref("ConfigMap", "one"))
    assert sorted(node.name for node in shown.nodes) == ["one", "two"]
    assert len(shown.edges) == 2


def test_a_graph_is_bounded_and_says_how_much_is_left_out() -> None:
    top = owned("ConfigMap", "top")
    children = [owned("ConfigMap", f"c-{number}", top) for number in range(20)]
    shown = graph(Explainer(World([top, *children])), ref("ConfigMap", "top"), most=5)
    assert (len(shown.nodes), shown.cut) == (5, 16)
    assert {edge.below for edge in shown.edges} <= set(shown.nodes)


@pytest.mark.parametrize(
    ("shown", "ready"),
    [
        ({"kind": "DaemonSet", "status": {"numberReady": 1, "desiredNumberScheduled": 3}}, "1/3"),
        ({"kind": "Pod", "spec": {"containers": [{}, {}]}, "status": {"containerStatuses": [{"ready": True}]}}, "1/2"),
        ({"kind": "WebApp", "spec": {"replicas": 2}, "status": {}}, "0/2"),
        ({"kind": "Service", "spec": {}}, ""),
        ({"kind": "X", "spec": {"replicas": True}}, ""),
        (None, ""),
    ],
)
def test_how_much_is_ready(shown: Any, ready: str) -> None:
    assert ready_count(shown) == ready


def test_an_object_may_be_anything() -> None:
    strange = {"apiVersion": 7, "kind": "Pod", "metadata": {"name": "x", "ownerReferences": "none"}, "spec": []}
    assert graph(Explainer(World([strange])), Ref("Pod", "x")).nodes == [Ref("Pod", "x")]
