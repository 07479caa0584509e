"""Stories: of the history of a server in this process, of what any server says, and as they happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.cli.console_sources import StoreHistory, reconciles_of
from konverge.client import Client
from konverge.console.story.entries import Named, is_ready, of_change, of_event, of_managers, of_reconcile, writers
from konverge.console.story.family import Family
from konverge.console.story.following import follow
from konverge.console.story.telling import STREAMS, Teller
from konverge.objects.resource import Resource
from konverge.runtime.story.model import Cause, FieldChange, ReconcileStory, Write
from konverge.sim.cluster import Cluster
from tests.console.office import API, SPACE, Office, decoded, in_front_of
from tests.explain.samples import create, deployment, obj, ref

pytestmark = [pytest.mark.virtual, pytest.mark.spec("C-09")]

DEPLOYMENT = {"kind": "apps/v1/Deployment", "namespace": SPACE, "name": "web"}
PATH = f"/k8s/apis/apps/v1/namespaces/{SPACE}/deployments/web"
STREAM = f"{API}/story/stream?kind=apps/v1/Deployment&namespace={SPACE}&name=web"
MERGE = "application/merge-patch+json"
NAMED = Named("v1", "Secret", "secrets", SPACE, "s")


@asynccontextmanager
async def a_web(*, history: bool = True) -> AsyncIterator[tuple[Cluster, Office]]:
    """A Deployment that runs, and a console that knows the history or does not."""
    async with Cluster(nodes=1) as cluster:
        kept = StoreHistory(cluster.server.store) if history else None
        teller = Teller(kept, reconciles_of(lambda: [cluster.manager], list)) if history else Teller()
        async with in_front_of(cluster.server, cluster.client, teller=teller) as office:
            await create(cluster.client, deployment("web", replicas=1))
            await cluster.settle()
            yield cluster, office


async def scale(office: Office, replicas: int, who: str = "jane") -> int:
    body = {"spec": {"replicas": replicas}}
    answer = await office.send("PATCH", f"{PATH}?fieldManager={who}", body, content_type=MERGE)
    return int(decoded(answer)["metadata"]["resourceVersion"])


def about(story: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    return [entry for entry in story["entries"] if all(entry.get(key) == value for key, value in wanted.items())]


async def test_a_write_has_who_made_it_when_and_what_it_changed() -> None:
    async with a_web() as (cluster, office):
        revision = await scale(office, 2)
        await cluster.settle()
        story = await office.get(f"{API}/story", **DEPLOYMENT)
        (entry,) = about(story, revision=revision)
        assert (entry["type"], entry["who"], entry["object"]["kind"]) == ("changed", "jane", "Deployment")
        assert entry["difference"] == [{"path": "spec.replicas", "old": 1, "new": 2}]
        assert entry["sentence"] == "jane changed spec.replicas 1 → 2"
        times = [entry["at"] for entry in story["entries"]]
        assert times == sorted(times)


async def test_the_children_belong_to_the_story_also_when_they_are_gone_and_nothing_else_does() -> None:
    async with a_web() as (cluster, office):
        await create(cluster.client, deployment("other"))
        await scale(office, 2)
        await cluster.settle()
        await scale(office, 0)
        await cluster.settle()
        story = await office.get(f"{API}/story", **DEPLOYMENT)
        pods = [entry for entry in story["entries"] if entry["object"]["kind"] == "Pod"]
        assert len({entry["object"]["name"] for entry in pods if entry["type"] == "created"}) == 2
        assert len({entry["object"]["name"] for entry in pods if entry["type"] == "deleted"}) == 2
        assert {"event", "changed"} <= {entry["type"] for entry in pods}
        assert not [entry for entry in story["entries"] if entry["object"]["name"].startswith("other")]


async def test_reconciles_have_their_reason_and_duration_and_there_are_plots() -> None:
    async with a_web() as (cluster, office):
        await scale(office, 3)
        await cluster.settle()
        story = await office.get(f"{API}/story", **DEPLOYMENT)
        reconciles = about(story, type="reconcile")
        assert any("spec.replicas" in entry["sentence"] for entry in reconciles)
        assert all(entry["duration"] >= 0 and entry["who"] == "deployment" for entry in reconciles)
        plots = {plot["name"]: plot["points"] for plot in story["series"]}
        assert [value for _, value in plots["replicas wanted"]][-1] == 3
        assert [value for _, value in plots["replicas ready"]][-1] == 3
        assert [value for _, value in plots["pods ready"]][-1] == 3
        assert plots["pods ready"][0][1] == 0 or plots["pods ready"][0][1] == 1
        assert len(plots["reconcile duration"]) == len(reconciles)
        for points in plots.values():
            assert [then for then, _ in points] == sorted(then for then, _ in points)


async def test_an_object_that_is_gone_still_has_its_story() -> None:
    async with a_web() as (cluster, office):
        await office.send("DELETE", PATH)
        await cluster.settle()
        story = await office.get(f"{API}/story", **DEPLOYMENT)
        assert {entry["type"] for entry in story["entries"] if entry["object"]["name"] == "web"} >= {
            "created",
            "deleted",
        }
        never = await office.send("GET", f"{API}/story?kind=apps/v1/Deployment&namespace={SPACE}&name=never")
        assert (never.status, decoded(never)["reason"]) == (404, "NotFound")


async def test_since_a_revision_there_is_only_what_came_after() -> None:
    async with a_web() as (cluster, office):
        await scale(office, 2)
        await cluster.settle()
        revision = await scale(office, 3)
        await cluster.settle()
        story = await office.get(f"{API}/story", **DEPLOYMENT, since=str(revision - 1))
        assert min(entry["revision"] for entry in story["entries"] if "revision" in entry) == revision
        assert story["revisions"]["oldest"] < revision < story["revisions"]["newest"]


@pytest.mark.spec("C-10")
async def test_the_history_shows_a_caller_only_what_they_may_watch() -> None:
    async with a_web() as (cluster, office):
        await scale(office, 2)
        await cluster.settle()
        reader = office.another()
        token = await office.account("jane", "get", "list", "watch")
        await reader.sign_in(token=token)
        pod = (await cluster.client.list("pods", SPACE)).items[0]
        story = await reader.get(f"{API}/story", kind="v1/Pod", namespace=SPACE, name=pod["metadata"]["name"])
        assert {entry["object"]["kind"] for entry in story["entries"] if entry["type"] != "event"} == {"Pod"}
        refused = await reader.send("GET", f"{API}/story?kind=apps/v1/Deployment&namespace={SPACE}&name=web")
        assert refused.status == 403
        lister = office.another()
        await lister.sign_in(token=await office.account("joe", "get", "list"))
        story = await lister.get(f"{API}/story", kind="v1/Pod", namespace=SPACE, name=pod["metadata"]["name"])
        assert not [entry for entry in story["entries"] if entry.get("difference")]


@pytest.mark.spec("C-10")
async def test_the_content_of_a_secret_is_in_no_story() -> None:
    async with a_web() as (_, office):
        path = f"/k8s/api/v1/namespaces/{SPACE}/secrets"
        await office.send("POST", path, obj("Secret", "s", stringData={"password": "hunter2"}))
        query = {"kind": "v1/Secret", "namespace": SPACE, "name": "s"}
        stream = await office.stream(f"{API}/story/stream?kind=v1/Secret&namespace={SPACE}&name=s")
        chunks = aiter(stream)
        await anext(chunks)
        await asyncio.sleep(1)
        body = {"stringData": {"password": "correct-horse"}, "metadata": {"labels": {"a": "b"}}}
        await office.send("PATCH", f"{path}/s", body, content_type=MERGE)
        live = await anext(chunks)
        await stream.aclose()
        story = await office.get(f"{API}/story", **query)
        (entry,) = [entry for entry in about(story, type="changed") if entry.get("difference")]
        assert {change["path"] for change in entry["difference"]} == {"data.password", "metadata.labels.a"}
        assert {"path": "data.password", "hidden": True} in entry["difference"]
        for text in (json.dumps(story), live.decode()):
            for secret in ("hunter2", "correct-horse", "aHVudGVyMg", "Y29ycmVjdC1ob3JzZQ"):
                assert secret not in text


async def test_without_a_history_objects_speak_for_themselves() -> None:
    async with a_web(history=False) as (cluster, office):
        await asyncio.sleep(5)
        await scale(office, 2)
        await cluster.settle()
        story = await office.get(f"{API}/story", **DEPLOYMENT)
        assert story["revisions"] is None
        (entry,) = about(story, who="jane")
        assert (entry["type"], entry["sentence"]) == ("changed", "jane last wrote spec.replicas")
        (pod, *_) = [entry for entry in about(story, type="created") if entry["object"]["kind"] == "Pod"]
        assert pod["who"] == "kube-controller-manager"
        assert pod["sentence"].endswith("(by its managed fields: Update)")
        assert any(entry["sentence"].startswith("ScalingReplicaSet: ") for entry in about(story, type="event"))


async def entries_of(stream: Any, count: int) -> list[dict[str, Any]]:
    received: list[dict[str, Any]] = []
    rest = b""
    async for chunk in stream:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        received += [json.loads(block[6:]) for block in blocks if block.startswith(b"data: ")]
        if len(received) >= count:
            break
    return received


@pytest.mark.parametrize("history", [True, False])
async def test_a_stream_says_what_happens_and_what_it_said_is_remembered(history: bool) -> None:
    async with a_web(history=history) as (_, office):
        stream = await office.stream(STREAM)
        assert stream.headers.get("content-type") == "text/event-stream"
        reading = asyncio.create_task(entries_of(stream, 6))
        await asyncio.sleep(1)
        revision = await scale(office, 2)
        entries = await reading
        await stream.aclose()
        changed = next(entry for entry in entries if entry.get("revision") == revision)
        assert (changed["who"], changed["difference"]) == ("jane", [{"path": "spec.replicas", "old": 1, "new": 2}])
        assert {"Pod", "ReplicaSet"} & {entry["object"]["kind"] for entry in entries}
        story = await office.get(f"{API}/story", **DEPLOYMENT)
        assert len(about(story, revision=revision)) == 1
        assert about(story, revision=revision)[0]["difference"] == changed["difference"]


async def test_nothing_is_watched_when_no_page_looks() -> None:
    async with a_web() as (cluster, office):
        before = len(cluster.server.streams)
        stream = await office.stream(STREAM)
        await asyncio.sleep(1)
        assert len(cluster.server.streams) > before
        await stream.aclose()
        await asyncio.sleep(1)
        assert len(cluster.server.streams) == before


async def test_stories_that_one_caller_follows_are_bounded() -> None:
    async with a_web() as (_, office):
        streams = [await office.stream(STREAM) for _ in range(STREAMS)]
        await asyncio.sleep(1)
        further = await office.stream(STREAM)
        with pytest.raises(ConnectionError):
            await entries_of(further, 1)
        for stream in (*streams, further):
            await stream.aclose()


async def test_what_a_watch_missed_is_found_by_the_next_list() -> None:
    async with Cluster(nodes=1) as cluster:
        client: Client = cluster.client
        await create(client, deployment("web"))
        await cluster.settle()
        family = await Family.read(client, ref("Deployment", "web"))
        followed = follow(client, family)
        first = asyncio.ensure_future(anext(followed))
        await asyncio.sleep(1)
        store = cluster.server.store
        for stream in list(cluster.server.streams):
            stream.end()
        await client.delete("deployments", "web", SPACE, propagation="Background")
        store.compact(store.revision)
        seen = [await first]
        while not any(entry.type == "deleted" and entry.object.kind == "Deployment" for entry in seen):
            seen.append(await anext(followed))
        await followed.aclose()


# ------------------------------------------------------------------ entries


def managed(*entries: tuple[str, str, str], **spec: Any) -> dict[str, Any]:
    """An object with managers, times and subresources."""
    fields = [
        {"manager": manager, "time": time, "fieldsV1": {"f:x": {}}, **({"subresource": part} if part else {})}
        for manager, time, part in entries
    ]
    return {"kind": "Pod", "metadata": {"name": "a", "managedFields": fields}, "spec": spec}


def test_who_wrote_is_whose_entry_is_new_not_who_lost_a_field() -> None:
    old = managed(("ann", "2026-01-01T00:00:00Z", ""))
    new = managed(("ann", "2026-01-01T00:00:00Z", ""), ("bob", "2026-01-01T00:00:05Z", ""))
    new["metadata"]["managedFields"][0]["fieldsV1"] = {}
    assert writers(old, new) == "bob"


def test_within_a_second_the_part_of_the_object_tells() -> None:
    both = (("ann", "2026-01-01T00:00:00Z", ""), ("kubelet", "2026-01-01T00:00:00Z", "status"))
    assert writers(managed(*both), managed(*both), status=True) == "kubelet"
    assert writers(managed(*both), managed(*both), status=False) == "ann"
    assert writers(managed(*both), None) == ""


def test_a_write_that_people_cannot_see_is_no_entry() -> None:
    old, new = managed(("a", "2026-01-01T00:00:00Z", "")), managed(("a", "2026-01-01T00:00:09Z", ""))
    assert of_change(NAMED, old, new, 5, 0.0) is None


def test_hostile_texts_are_shortened_to_one_line() -> None:
    event = {"reason": "X", "message": "a\n" * 5000, "involvedObject": {"kind": "Pod", "name": "a"}, "count": 3}
    entry = of_event(event)
    assert len(entry.sentence) < 300
    assert "\n" not in entry.sentence
    assert (entry.count, entry.object.kind) == (3, "Pod")


def told(created: str, *entries: tuple[str, str, str], fields: dict[str, Any] | None = None) -> list[Any]:
    """What an object says of its past; `fields` are those of its first entry."""
    thing = managed(*entries)
    thing["metadata"]["creationTimestamp"] = created
    for entry in thing["metadata"]["managedFields"]:
        entry["operation"] = "Update"
    if fields is not None:
        thing["metadata"]["managedFields"][0]["fieldsV1"] = fields
    return list(of_managers(NAMED, thing))


BORN = "2026-01-01T00:00:05Z"


@pytest.mark.spec("C-38")
@pytest.mark.parametrize("time", ["2026-01-01T00:00:04Z", BORN, "2026-01-01T00:00:06Z"])
def test_who_created_an_object_is_in_its_managed_fields(time: str) -> None:
    (created,) = told(BORN, ("ann", time, ""))
    assert (created.type, created.who, created.at) == ("created", "ann", BORN)
    assert created.sentence == "ann created Secret s (by its managed fields: Update)"
    assert created.parts["with"]["operation"] == "Update"


@pytest.mark.spec("C-38")
def test_what_is_written_through_a_subresource_creates_nothing() -> None:
    created, status = told(BORN, ("kubelet", BORN, "status"))
    assert (created.sentence, created.who) == ("Secret s was created", "")
    assert (status.type, status.sentence, status.who) == ("changed", "kubelet last wrote x", "kubelet")


@pytest.mark.spec("C-38")
def test_of_two_writers_in_one_second_the_one_with_most_fields_created_it() -> None:
    many = {"f:spec": {"f:a": {}, "f:b": {}}}
    created, other = told(BORN, ("ann", BORN, ""), ("bob", BORN, ""), fields=many)
    assert (created.who, other.sentence) == ("ann", "bob last wrote x")
    created, other = told(BORN, ("ann", BORN, ""), ("bob", BORN, ""), fields={})
    assert (created.who, other.sentence) == ("bob", "ann last wrote it")


@pytest.mark.spec("C-38")
@pytest.mark.parametrize("time", ["2026-01-01T00:00:07Z", "2026-01-01T00:00:03Z"])
def test_a_creator_that_wrote_again_is_named_as_what_it_is(time: str) -> None:
    created, last, later = told(BORN, ("ann", time, ""), ("bob", "2026-01-01T00:01:00Z", ""))
    assert created.sentence == (
        f"Secret s was created; the oldest entry of its managed fields is of ann (Update, {time})"
    )
    assert (created.type, created.who) == ("created", "")
    assert (last.who, last.at, later.who) == ("ann", time, "bob")


def changed(new: dict[str, str], named: Named) -> Any:
    old = {"metadata": {}, "data": {"a": "1", "b": "2", "c": "3"}}
    return of_change(named, old, {"metadata": {}, "data": new}, 5, 0.0)


@pytest.mark.spec("C-37")
def test_the_fields_of_a_sentence_are_counted_and_can_be_said_in_another_language() -> None:
    settings = Named("v1", "ConfigMap", "configmaps", SPACE, "c")
    one = changed({"a": "1", "b": "2"}, settings)
    assert one.sentence == "a writer changed data.c removed"
    removed = {"say": "{path} removed", "with": {"path": "data.c"}}
    assert one.parts == {
        "say": "{who} changed {fields}",
        "with": {"who": {"say": "a writer", "with": {}}, "fields": [removed]},
    }
    two = changed({"a": "1", "b": "3"}, settings)
    assert two.sentence == "a writer changed data.b 2 → 3, data.c removed"
    assert two.parts["with"]["fields"] == ["data.b 2 → 3", removed]
    assert changed({}, settings).sentence == "a writer changed data.a removed, data.b removed and 1 more"
    hidden = changed({"a": "1", "b": "2", "c": "4"}, NAMED)
    assert hidden.sentence == "a writer changed data.c changed (hidden)"
    assert hidden.parts["with"]["fields"] == [{"say": "{path} changed (hidden)", "with": {"path": "data.c"}}]
    long = changed({"a": "1", "b": "2", "c": "3", "k" * 90: "x"}, settings)
    assert long.parts["with"]["fields"] == [f"data.{'k' * 74}…"]


APP = Resource("example.com", "v1", "App", "apps")
SHOWN = {("v1", "ConfigMap")}


def reconciled(**values: Any) -> Any:
    return of_reconcile(ReconcileStory(controller="app", kind="App", namespace=SPACE, name="a", **values), APP, SHOWN)


def written(kind: str, path: str = "data.a") -> Write:
    return Write(method="PATCH", kind=kind, api_version="v1", changes=[FieldChange(path=path, new="1")])


@pytest.mark.spec("C-37")
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "app reconciled (no reason is known): done"),
        ({"outcome": "requeue"}, "app reconciled (no reason is known): comes back"),
        ({"outcome": "gone"}, "app reconciled (no reason is known): the object was gone"),
        ({"outcome": "other"}, "app reconciled (no reason is known): done"),
        ({"requeue_after": 30.0}, "app reconciled (no reason is known): comes back after 30 s"),
        ({"reasons": [Cause(type="timer", text=text) for text in "abc"]}, "app reconciled (a; b): done"),
        ({"writes": [written("Secret")]}, "app reconciled (no reason is known), 1 write: done"),
        ({"writes": [written("Secret")] * 2}, "app reconciled (no reason is known), 2 writes: done"),
        (
            {"error": "no", "error_type": "ValueError", "outcome": "error", "requeue_after": 1.0},
            "app reconciled (no reason is known): failed: ValueError: no",
        ),
    ],
)
def test_a_reconcile_says_why_it_ran_what_it_wrote_and_how_it_ended(values: dict[str, Any], sentence: str) -> None:
    entry = reconciled(**values)
    assert entry.sentence == sentence
    assert entry.parts["say"] == "{what}: {end}"
    assert (entry.type, entry.who, entry.object.resource) == ("reconcile", "app", "apps")


def test_a_reconcile_lists_the_changes_of_what_the_reader_may_see() -> None:
    entry = reconciled(writes=[written("Secret"), written("ConfigMap", "data.b")], seconds=0.5, number=7)
    assert [change.path for change in entry.difference] == ["data.b"]
    assert (entry.duration, entry.number, entry.result) == (0.5, 7, "done")
    assert reconciled(error="no", outcome="error").result == "error"


@pytest.mark.parametrize(
    ("event", "who"),
    [
        ({"source": {"component": "kubelet"}, "reportingComponent": "other"}, "kubelet"),
        ({"reportingComponent": "scheduler"}, "scheduler"),
        ({"reportingController": "mine"}, "mine"),
        ({}, ""),
    ],
)
def test_an_event_is_by_who_reported_it(event: dict[str, Any], who: str) -> None:
    entry = of_event(event | {"reason": "Pulled", "message": "done", "type": "Normal"})
    assert (entry.who, entry.sentence, entry.level) == (who, "Pulled: done", "Normal")
    assert of_event({"reason": "Pulled", "message": "x", "count": 4}).sentence == "Pulled: x (seen 4 times)"


def test_a_large_change_says_how_much_is_left_out() -> None:
    many = {f"k{number:03}": "1" for number in range(80)}
    entry = of_change(Named("v1", "ConfigMap", "configmaps", SPACE, "c"), {"data": {}}, {"data": many}, 5, 0.0)
    assert entry is not None
    assert len(entry.difference) + entry.more == 80
    assert entry.more > 0
    assert entry.sentence.endswith(" and 78 more")


def test_a_pod_that_is_being_deleted_is_not_ready() -> None:
    pod: dict[str, Any] = {"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert is_ready(pod)
    assert not is_ready(pod | {"metadata": {"deletionTimestamp": BORN}})
    assert not is_ready({"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    assert not is_ready({"metadata": {}})


def test_who_gained_a_field_within_the_same_second_wrote() -> None:
    both = (("ann", BORN, ""), ("bob", BORN, ""))
    old, new = managed(*both), managed(*both)
    new["metadata"]["managedFields"][1]["fieldsV1"] = {"f:x": {}, "f:y": {}}
    assert writers(old, new) == "bob"


@pytest.mark.parametrize("strange", [{}, {"metadata": []}, {"metadata": {"managedFields": [7, {"fieldsV1": "x"}]}}])
def test_an_object_may_be_anything(strange: Any) -> None:
    assert [entry.type for entry in of_managers(NAMED, strange)] == []
    assert of_change(NAMED, None, strange, 1, 0.0) is not None
    assert of_event(strange).type == "event"
