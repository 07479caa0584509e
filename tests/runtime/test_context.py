"""A context alone: which cache is asked, what is read live, and what is sent."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from konverge.cache import CacheSpec
from konverge.cache.record import Key, Record, receive
from konverge.client import ApplyPatch, Client, Conflict, Forbidden, Invalid, MergePatch
from konverge.client.errors import error_from_answer
from konverge.objects import labels
from konverge.objects.codec import to_dict
from konverge.objects.kinds.core_v1 import ConfigMap, Node, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, NotOwned, Request, Retry
from konverge.runtime.owners import controller_reference
from konverge.runtime.server_additions import ServerAdditions

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-10", "R-25")]


def refused(code: int, reason: str, **details: Any) -> Any:
    body = {"kind": "Status", "code": code, "reason": reason, "message": "no", "details": details}
    return error_from_answer(code, json.dumps(body).encode())


class Server(Client):
    """Notes every call. Answers from `objects`, and raises `error` at a write."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Any] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.error: Exception | None = None

    def _answer(self, kind: Any, name: str, namespace: str) -> Any:
        try:
            return self.objects[kind.__name__, namespace, name]
        except KeyError:
            raise refused(404, "NotFound", name=name) from None

    async def get(self, kind: Any, name: str, namespace: str = "", **options: Any) -> Any:
        self.calls.append(("get", kind.__name__, namespace, name, options))
        return self._answer(kind, name, namespace)

    async def get_bytes(self, kind: Any, name: str, namespace: str = "", **options: Any) -> bytes:
        self.calls.append(("get_bytes", kind.__name__, namespace, name, options))
        return raw(self._answer(kind, name, namespace))

    async def list(self, kind: Any, namespace: str = "", **options: Any) -> Any:
        self.calls.append(("list", kind.__name__, namespace, options))
        return type("Listed", (), {"items": ["live"]})

    async def send_patch(self, kind: Any, name: str, patch: Any, namespace: str = "", **options: Any) -> bytes:
        self.calls.append(("patch", kind.__name__, namespace, name, patch, options))
        if self.error is not None:
            raise self.error
        return raw(secret(version="9"))

    async def delete(self, kind: Any, name: str, namespace: str = "", **options: Any) -> Any:
        self.calls.append(("delete", kind.__name__, namespace, name, options))
        if self.error is not None:
            raise self.error
        return None


class Cached:
    """A cache of one kind, as lister and as informer. `covers` says whether it can know the object."""

    spec = CacheSpec(resource=Secret.resource)
    readable = True

    def __init__(self, *objects: Any, served: bool = True, covers: bool = True, indexes: tuple[str, ...] = ()) -> None:
        self.records = {Key(o.metadata.namespace, o.metadata.name): record(o) for o in objects}
        self.asked: list[tuple[Any, ...]] = []
        self.informer = self
        self.served, self.covers, self.indexes = served, covers, indexes
        self.found: list[Any] = []
        """What is under every value of an index."""

    def get(self, key: Any, namespace: str = "") -> Any:
        if isinstance(key, Key):
            return self.records.get(key)
        self.asked.append(("get", namespace, key))
        return self.records.get(Key(namespace, key))

    def raw(self, name: str, namespace: str = "") -> Record | None:
        return self.records.get(Key(namespace, name))

    def list(self, namespace: str | None, selector: Any) -> Any:
        self.asked.append(("list", namespace, selector))
        return ["cached"]

    def has_index(self, name: str) -> bool:
        return name in self.indexes

    def by_index(self, index: str, value: str) -> Any:
        self.asked.append(("index", index, value))
        return self.found


class Caches:
    def __init__(self, **by_kind: Cached) -> None:
        self._by_kind = by_kind
        self.additions = ServerAdditions()
        self.required: list[tuple[str, str]] = []

    def lister(self, kind: Any) -> Any:
        return self._by_kind.get(kind.__name__)

    def covering(self, kind: Any, key: Key) -> Any:
        lister = self.lister(kind)
        return lister if lister is not None and lister.covers else None

    def covering_list(self, kind: Any, namespace: str, selector: Any) -> Any:
        return self.covering(kind, Key(namespace, ""))

    def presence(self, kind: Any, key: Key) -> Any:
        return self.covering(kind, key)

    def serves(self, kind: Any) -> bool:
        lister = self.lister(kind)
        return lister is not None and lister.served

    def undeclared(self, kind: Any, verbs: tuple[str, ...], namespace: str, use: str = "") -> str:
        return ""

    def require_namespace(self, kind: Any, namespace: str) -> None:
        self.required.append((kind.__name__, namespace))


class Events:
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def event(self, reason: str, message: str, *, about: Any, type: str = "Normal") -> None:
        self.events.append((about, type, reason, message))


def secret(version: str = "5", **meta: Any) -> Secret:
    return Secret(metadata=ObjectMeta(name="s", namespace="shop", uid="u", resource_version=version, **meta))


def raw(obj: Any) -> bytes:
    return json.dumps(to_dict(obj)).encode()


def record(obj: Any) -> Record:
    return receive(raw(obj))[1]


class Scene:
    def __init__(self, obj: Secret | None = None, **caches: Cached) -> None:
        self.server, self.events, self.caches = Server(), Events(), Caches(**caches)
        self.ctx: Context[Secret] = Context(
            Request("shop", "s"),
            Secret,
            record(obj or secret()),
            client=self.server,
            caches=self.caches,
            recorder=self.events,
            manager="me",
            reasons=(Retry(1),),
            log=logging.getLogger("konverge.controller"),
        )

    @property
    def sent(self) -> tuple[Any, ...]:
        """The one write: kind, namespace, name, the object that was sent, options."""
        ((_, kind, namespace, name, patch, options),) = (call for call in self.server.calls if call[0] == "patch")
        assert isinstance(patch, ApplyPatch)
        return kind, namespace, name, to_dict(patch.desired), options

    @property
    def verbs(self) -> list[str]:
        return [call[0] for call in self.server.calls]


def config_map(uid: str = "", owner: Secret | None = None, namespace: str = "shop", **data: str) -> ConfigMap:
    made = ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace, uid=uid), data=data)
    if owner is not None:
        made.metadata.owner_references = [controller_reference(owner)]
    return made


OURS = to_dict(config_map(owner=secret()))["metadata"]["ownerReferences"]

# ------------------------------------------------------------------ reading


async def test_an_object_whose_deletion_was_requested_is_deleting() -> None:
    assert not Scene().ctx.deleting
    assert Scene().ctx.reasons == (Retry(1),)
    assert Scene(secret(deletion_timestamp="2026-01-01T00:00:00Z")).ctx.deleting


async def test_a_kind_is_served_when_its_cache_has_it() -> None:
    scene = Scene(ConfigMap=Cached(), Node=Cached(served=False))
    assert [scene.ctx.serves(kind) for kind in (ConfigMap, Node, Secret)] == [True, False, False]
    assert scene.ctx.caches is scene.caches


async def test_a_cached_object_is_read_from_the_cache() -> None:
    cached, nodes = Cached(), Cached()
    scene = Scene(ConfigMap=cached, Node=nodes)
    await scene.ctx.get(ConfigMap, "c")
    await scene.ctx.get(ConfigMap, "c", "other")
    await scene.ctx.get(ConfigMap, "c", "")
    await scene.ctx.get(Node, "n")
    await scene.ctx.get(Node, "n", "ignored")
    assert cached.asked == [("get", "shop", "c"), ("get", "other", "c"), ("get", "", "c")]
    assert nodes.asked == [("get", "", "n"), ("get", "", "n")]
    assert scene.server.calls == []


async def test_what_no_cache_knows_is_read_live_and_absence_is_none() -> None:
    scene = Scene(ConfigMap=Cached(covers=False))
    scene.server.objects["ConfigMap", "shop", "c"] = "live"
    assert await scene.ctx.get(ConfigMap, "c") == "live"  # type: ignore[comparison-overlap]
    assert await scene.ctx.get(Node, "absent") is None
    assert scene.server.calls == [("get", "ConfigMap", "shop", "c", {}), ("get", "Node", "", "absent", {})]
    assert scene.caches.required == [("ConfigMap", "shop"), ("Node", "")]


async def test_a_list_comes_from_a_cache_that_has_all_of_it_or_from_the_server() -> None:
    selector = labels.parse("app=web")
    cached, nodes = Cached(), Cached()
    scene = Scene(ConfigMap=cached, Node=nodes)
    assert await scene.ctx.list(ConfigMap) == ["cached"]
    await scene.ctx.list(ConfigMap, "", selector)
    await scene.ctx.list(Node)
    assert cached.asked == [("list", "shop", None), ("list", None, selector)]
    assert nodes.asked == [("list", None, None)]
    scene = Scene()
    assert await scene.ctx.list(ConfigMap) == ["live"]
    await scene.ctx.list(ConfigMap, "other", selector)
    assert scene.server.calls == [
        ("list", "ConfigMap", "shop", {"label_selector": ""}),
        ("list", "ConfigMap", "other", {"label_selector": selector}),
    ]
    assert scene.caches.required == [("ConfigMap", "shop"), ("ConfigMap", "other")]


async def test_owned_and_indexed_objects_need_a_declared_cache() -> None:
    cached, nodes = Cached(indexes=("owner",)), Cached()
    scene = Scene(ConfigMap=cached, Node=nodes)
    assert await scene.ctx.owned(ConfigMap) == []
    assert cached.asked == [("index", "owner", "u")]
    for kind in (Node, Secret):
        with pytest.raises(LookupError, match="declare it with owns"):
            await scene.ctx.owned(kind)
    nodes.found = [Node()]
    assert scene.ctx.indexed(Node, "zone", "a") == nodes.found
    assert nodes.asked == [("index", "zone", "a")]
    with pytest.raises(LookupError, match="Secret is not cached"):
        scene.ctx.indexed(Secret, "zone", "a")


@pytest.mark.spec("R-97")
async def test_owned_objects_are_those_that_the_object_controls() -> None:
    """The index has every owner: an object may go with this one and belong to another, or to nobody."""
    cached = Cached(indexes=("owner",))
    scene = Scene(ConfigMap=cached)
    ours, weak, theirs = config_map(owner=secret()), config_map(owner=secret()), config_map(owner=secret())
    for other in (weak, theirs):
        other.metadata.owner_references[0].controller = None
    controller = controller_reference(Secret(metadata=ObjectMeta(name="x", namespace="shop", uid="another")))
    theirs.metadata.owner_references.append(controller)
    cached.found = [weak, ours, theirs]
    assert await scene.ctx.owned(ConfigMap) == [ours]


# ------------------------------------------------------------------ applying


@pytest.mark.parametrize("cached", [Cached(), Cached(served=False), Cached(covers=False), None])
async def test_an_object_that_is_absent_is_made_with_its_owner_and_takes_over_nothing(cached: Cached | None) -> None:
    scene = Scene(**({} if cached is None else {"ConfigMap": cached}))
    assert await scene.ctx.apply(config_map(namespace="", a="1"))
    kind, namespace, name, body, options = scene.sent
    assert (kind, namespace, name) == ("ConfigMap", "shop", "c")
    assert body["metadata"] == {"name": "c", "namespace": "shop", "ownerReferences": OURS}
    assert body["data"] == {"a": "1"}
    assert options == {"field_manager": "me", "force": False}
    knows = cached is not None and cached.covers and cached.served
    assert scene.verbs == (["patch"] if knows else ["get_bytes", "patch"])


@pytest.mark.parametrize("live", [False, True])
async def test_our_own_object_is_written_only_when_it_differs_and_only_that_one(live: bool) -> None:
    present = config_map("child", secret(), a="1")
    scene = Scene(ConfigMap=Cached(*([] if live else [present]), covers=not live))
    scene.server.objects["ConfigMap", "shop", "c"] = present
    assert not await scene.ctx.apply(config_map(a="1"))
    assert scene.verbs == (["get_bytes"] if live else [])
    assert await scene.ctx.apply(config_map(a="2"))
    _, _, _, body, options = scene.sent
    assert body["metadata"]["uid"] == "child"
    assert options == {"field_manager": "me", "force": True}


async def test_a_write_that_takes_no_fields_by_force_can_be_asked_for() -> None:
    scene = Scene(ConfigMap=Cached(config_map("child", secret())))
    await scene.ctx.apply(config_map(a="1"), force=False)
    assert scene.sent[4]["force"] is False


async def test_the_object_of_another_is_not_written() -> None:
    scene = Scene(ConfigMap=Cached(config_map("child")))
    with pytest.raises(NotOwned):
        await scene.ctx.apply(config_map(a="1"))
    assert scene.server.calls == []
    assert await scene.ctx.apply(config_map(a="1"), adopt=True)
    assert scene.sent[3]["metadata"]["uid"] == "child"


@pytest.mark.parametrize("cached", [Cached(config_map("child", a="0")), Cached(), None])
async def test_without_ownership_there_is_neither_a_check_nor_a_reference(cached: Cached | None) -> None:
    scene = Scene(**({} if cached is None else {"ConfigMap": cached}))
    assert await scene.ctx.apply(config_map(a="1"), own=False)
    assert scene.sent[3]["metadata"] == {"name": "c", "namespace": "shop"}
    assert scene.sent[4]["force"] is True
    assert scene.verbs == ["patch"]


async def test_without_ownership_an_object_that_is_as_desired_is_not_written() -> None:
    scene = Scene(ConfigMap=Cached(config_map("child", a="1", b="2")))
    assert not await scene.ctx.apply(config_map(a="1"), own=False)
    assert scene.server.calls == []


async def test_a_namespace_that_is_given_stays() -> None:
    scene = Scene()
    await scene.ctx.apply(config_map(namespace="other", a="1"), own=False)
    assert scene.sent[1:3] == ("other", "c")


async def test_an_object_of_the_cluster_gets_no_namespace() -> None:
    scene = Scene(Node=Cached())
    await scene.ctx.apply(Node(metadata=ObjectMeta(name="n")), own=False)
    assert scene.sent[:3] == ("Node", "", "n")


@pytest.mark.parametrize(
    ("present", "field", "error"),
    [(True, "metadata.uid", Conflict), (True, "data", Invalid), (False, "metadata.uid", Invalid)],
)
async def test_an_object_that_was_replaced_is_a_conflict(present: bool, field: str, error: type[Exception]) -> None:
    scene = Scene(ConfigMap=Cached(*([config_map("child", secret())] if present else [])))
    causes = [{"field": "other", "message": "m"}, {"field": field, "message": "m"}]
    scene.server.error = refused(422, "Invalid", causes=causes)
    with pytest.raises(error) as caught:
        await scene.ctx.apply(config_map(a="1"))
    assert type(caught.value) is error


# ------------------------------------------------------------------ deleting, saving, events


async def test_what_the_cache_shows_is_deleted_and_nothing_else() -> None:
    scene = Scene(ConfigMap=Cached(config_map("child")))
    assert await scene.ctx.delete(ConfigMap, "c")
    assert not await scene.ctx.delete(ConfigMap, "absent")
    assert not await scene.ctx.delete(ConfigMap, "c", "other")
    options = {"propagation": "Background", "uid": "child"}
    assert scene.server.calls == [("delete", "ConfigMap", "shop", "c", options)]


async def test_without_a_cache_the_server_says_whether_there_was_anything_to_delete() -> None:
    scene = Scene()
    assert await scene.ctx.delete(ConfigMap, "c", "other")
    assert scene.server.calls == [("delete", "ConfigMap", "other", "c", {"propagation": "Background", "uid": ""})]
    scene.server.error = refused(404, "NotFound", name="c")
    assert not await scene.ctx.delete(ConfigMap, "c")
    scene.server.error = refused(403, "Forbidden")
    with pytest.raises(Forbidden):
        await scene.ctx.delete(ConfigMap, "c")


async def test_labels_annotations_and_finalizers_are_saved_with_the_version_that_was_read() -> None:
    scene = Scene(secret(labels={"a": "1"}, finalizers=["x.dev/y"]))
    assert not await scene.ctx.save_metadata()
    assert scene.server.calls == []
    meta = scene.ctx.obj.metadata
    meta.labels, meta.annotations, meta.finalizers = {}, {"b": "2"}, ["x.dev/z"]
    meta.owner_references = [controller_reference(secret())]  # is not written here
    assert await scene.ctx.save_metadata()
    ((_, kind, namespace, name, patch, options),) = scene.server.calls
    assert (kind, namespace, name) == ("Secret", "shop", "s")
    assert isinstance(patch, MergePatch)
    assert patch.body == {
        "metadata": {
            "labels": None, "annotations": {"b": "2"}, "finalizers": ["x.dev/z"], "resourceVersion": "5",
        }
    }  # fmt: skip
    assert options == {"subresource": "", "field_manager": "me"}
    assert meta.resource_version == "9", "the next write is guarded by what was written now"


async def test_an_object_without_a_status_has_none_to_save() -> None:
    scene = Scene()
    assert not await scene.ctx.save_status()
    assert scene.server.calls == []


async def test_events_are_about_the_object_or_another_one() -> None:
    scene = Scene()
    other = config_map()
    scene.ctx.event("Made", "one")
    scene.ctx.event("Made", "two", type="Warning", about=other)
    scene.ctx.warning("Bad", "three")
    scene.ctx.warning("Bad", "four", about=other)
    assert scene.events.events == [
        (scene.ctx.obj, "Normal", "Made", "one"),
        (other, "Warning", "Made", "two"),
        (scene.ctx.obj, "Warning", "Bad", "three"),
        (other, "Warning", "Bad", "four"),
    ]
