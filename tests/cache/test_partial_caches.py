"""Caches that keep less than the whole object: they hold the same objects, less of each, through everything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.cache import Change, Key
from konverge.cache.quarantine import READ
from konverge.cache.spec import CacheSpec, check_projection, receiver_for
from konverge.cache.store import Store
from konverge.cache.watch_state import Watching
from konverge.client.errors import Invalid
from konverge.objects.codec import decoder, to_json
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.meta import Object, metadata_of
from konverge.objects.model import Model, field
from konverge.objects.quantity import Quantity
from tests.cache.scripted import Script, end, informed, refused
from tests.sizes import examples

pytestmark = pytest.mark.spec("R-55")


class SecretType(Object):
    """A Secret without its content."""

    resource = Secret.resource
    type: str = ""
    immutable: bool = False


class Sizes(Model):
    """A part with a type that msgspec does not know."""

    wanted: Quantity = field(default_factory=Quantity)


class Sized(Object):
    resource = Secret.resource
    sizes: Sizes = field(default_factory=Sizes)


def counted(obj: dict[str, Any]) -> dict[str, Any]:
    """What an author may do: replace the content by what is needed of it."""
    data = obj.pop("data", {})
    return {**obj, "immutable": len(data) > 1}


def as_bytes(obj: dict[str, Any]) -> bytes:
    return json.dumps(counted(obj)).encode()


def projected(data: bytes) -> bytes:
    return to_json(decoder(SecretType).decode(data))


def without_content(data: bytes) -> bytes:
    return json.dumps({"metadata": json.loads(data)["metadata"]}).encode()


FORMS: dict[str, tuple[dict[str, Any], Callable[[bytes], bytes]]] = {
    "metadata": ({"metadata_only": True}, without_content),
    "projection": ({"projection": SecretType}, projected),
    "transform": ({"transform": counted}, lambda data: json.dumps(counted(json.loads(data))).encode()),
    "bytes": ({"transform": as_bytes}, lambda data: as_bytes(json.loads(data))),
    "both": ({"transform": counted, "projection": SecretType}, lambda data: projected(as_bytes(json.loads(data)))),
}


def secret(name: str, version: int, uid: str, data: dict[str, str], labels: dict[str, str]) -> bytes:
    managed = [{"manager": "m", "operation": "Update", "fieldsV1": {"f:data": {}}}]
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(version)}
    metadata |= {"labels": labels, "managedFields": managed, "annotations": {"note": name}}
    obj = {"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "type": f"t{len(data)}", "data": data}
    return json.dumps(obj, separators=(",", ":")).encode()


# ------------------------------------------------------------------ the same as the whole cache, but smaller

NAMES = st.sampled_from(["a", "b", "c"])
DATA = st.dictionaries(st.sampled_from(["k", "l", "m"]), st.text("xy", max_size=3), max_size=3)
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["1", "2"]), max_size=2)
WRITES = st.tuples(st.just("write"), NAMES, DATA, LABELS)
DELETES = st.tuples(st.just("delete"), NAMES)
LOST = st.tuples(st.sampled_from(["lose", "relist"]))
"""From here on no event arrives, until the next list."""
STEPS = st.lists(st.one_of(WRITES, WRITES, DELETES, LOST), max_size=25)


class History:
    """A server's objects and its events, given to several caches alike."""

    def __init__(self, *watchings: Watching) -> None:
        self.watchings = watchings
        self.changes: list[list[Change]] = [[] for _ in watchings]
        self.objects: dict[str, bytes] = {}
        self._uids: dict[str, str] = {}
        self._version = 1
        self._lost = False
        self.relist()

    def step(self, what: str, *arguments: Any) -> None:
        if what == "relist":
            self.relist()
        elif what == "lose":
            self._lost = True
        elif what == "write":
            name, data, labels = arguments
            self._version += 1
            known = name in self.objects
            uid = self._uids[name] if known else self._uids.setdefault(name, "") + "u"
            self._uids[name] = uid
            self.objects[name] = secret(name, self._version, uid, data, labels)
            self._send("MODIFIED" if known else "ADDED", self.objects[name])
        elif arguments[0] in self.objects:
            self._version += 1
            last = json.loads(self.objects.pop(arguments[0]))
            last["metadata"]["resourceVersion"] = str(self._version)
            self._send("DELETED", json.dumps(last, separators=(",", ":")).encode())

    def relist(self) -> None:
        self._lost = False
        for watching, changes in zip(self.watchings, self.changes, strict=True):
            watching.begin_list()
            changes += watching.add_listed(self.objects.values())
            for part in watching.end_list(self._version):
                changes += part

    def _send(self, kind: str, obj: bytes) -> None:
        if self._lost:
            return
        for watching, changes in zip(self.watchings, self.changes, strict=True):
            for part in watching.feed(b'{"type":"%b","object":%b}\n' % (kind.encode(), obj)):
                changes += part


def watching(**options: Any) -> Watching:
    return Watching(Store(), receiver_for(CacheSpec(resource=Secret.resource, **options)), "")


def contents(cache: Watching) -> dict[Key, tuple[Any, int, str, int]]:
    return {
        key: (msgspec.json.decode(record.raw), record.version, record.uid, record.generation)
        for key, record in cache.store.items()
    }


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(1))
@given(STEPS)
def test_a_partial_cache_is_the_whole_cache_with_less_of_each_object(form: str, steps: list[Any]) -> None:
    options, reduce = FORMS[form]
    whole, partial = watching(), watching(**options)
    history = History(whole, partial)
    for step in steps:
        history.step(*step)
        expected = {
            key: (msgspec.json.decode(reduce(record.raw)), record.version, record.uid, record.generation)
            for key, record in whole.store.items()
        }
        assert contents(partial) == expected
        assert partial.store.version == whole.store.version
    seen = [[(change.type, change.key, change.latest.version) for change in changes] for changes in history.changes]
    assert seen[0] == seen[1], "handlers are called for the same changes"
    assert [change.meta for change in history.changes[0]] == [change.meta for change in history.changes[1]]


@settings(max_examples=examples(1))
@given(STEPS)
def test_objects_on_which_a_transform_raises_are_set_aside_and_all_others_are_as_they_are(steps: list[Any]) -> None:
    def picky(obj: dict[str, Any]) -> dict[str, Any]:
        if "k" in obj.get("data", {}):
            raise RuntimeError("k is not for me")
        return counted(obj)

    partial = watching(transform=picky)
    history = History(partial)
    for step in steps:
        history.step(*step)
    history.relist()
    bad = {name for name, obj in history.objects.items() if "k" in json.loads(obj).get("data", {})}
    quarantine = partial.store.quarantine
    assert {entry.key.name for entry in quarantine if entry.stage == READ} == bad
    for name, obj in history.objects.items():
        record = partial.store.get(Key("shop", name))
        if name in bad:
            assert quarantine.unread(Key("shop", name)) is not None
        else:
            assert record is not None
            assert record.version == int(json.loads(obj)["metadata"]["resourceVersion"])
    assert {key.name for key, _ in partial.store.items()} <= set(history.objects), "a deleted object is gone for all"


# ------------------------------------------------------------------ each option alone


@pytest.mark.spec("R-57")
@pytest.mark.parametrize("streaming", [True, False])
async def test_of_metadata_the_server_is_asked_for_no_more_and_no_more_is_kept_if_it_sends_more(
    streaming: bool,
) -> None:
    """A server that does not know the form (an aggregated one) sends whole objects."""
    sent = secret("a", 3, "u", {"password": "aHVudGVyMg=="}, {"app": "web"})
    listed = b'{"metadata":{"resourceVersion":"5"},"items":[%b]}' % sent
    streamed = b'{"type":"ADDED","object":%b}\n%b' % (sent, end(5))
    change = b'{"type":"MODIFIED","object":%b}\n' % secret("a", 7, "u", {"password": "aHVudGVyMw=="}, {})
    first = [streamed] if streaming else [refused(Invalid), listed]
    script = Script(*first, change)
    async with informed(script, metadata_only=True) as informer:
        await informer.synced.wait()
        await informer.wait_for_version(Key("shop", "a"), 7)
        record = informer.get(Key("shop", "a"))
        assert record is not None
        assert set(msgspec.json.decode(record.raw)) == {"metadata"}
        assert b"aHVu" not in record.raw
        assert b"managedFields" not in record.raw
        assert record.annotations == {"note": "a"}
        read = decoder(metadata_of(Secret)).decode(record.raw)
        assert (read.api_version, read.kind, read.metadata.name) == ("v1", "Secret", "a")
    form = {"list": "as=PartialObjectMetadataList;", "watch": "as=PartialObjectMetadata;"}
    assert all(form[call.verb] in call.accept for call in script.calls)
    assert {call.verb for call in script.calls} == ({"watch"} if streaming else {"list", "watch"})


async def test_a_projection_knows_the_types_of_the_object_model() -> None:
    sent = json.loads(secret("a", 3, "u", {"k": "v"}, {}))
    sent["sizes"] = {"wanted": "1500m", "other": 1}
    line = json.dumps({"type": "ADDED", "object": sent}).encode() + b"\n"
    async with informed(Script(line + end(5)), projection=Sized) as informer:
        await asyncio.wait_for(informer.synced.wait(), 5)
        record = informer.get(Key("shop", "a"))
        assert record is not None
        assert decoder(Sized).decode(record.raw).sizes.wanted == Quantity("1500m")
        assert set(msgspec.json.decode(record.raw)) == {"apiVersion", "kind", "metadata", "sizes"}
        assert set(msgspec.json.decode(record.raw)["sizes"]) == {"wanted"}


class NoLabels(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    namespace: str = ""
    resource_version: str = ""
    generation: int = 0
    owner_references: list[dict[str, Any]] = []
    deletion_timestamp: str = ""


class WithoutLabels(msgspec.Struct):
    metadata: NoLabels


class Demanding(Object):
    resource = Secret.resource
    number: int = msgspec.field(name="number")


class Nothing(msgspec.Struct):
    kind: str = ""


@pytest.mark.parametrize(
    ("projection", "problem"),
    [
        (WithoutLabels, r"drops metadata\.labels: derive it from konverge\.objects\.Object"),
        (Nothing, "cannot be read"),
        (Demanding, "give its fields defaults"),
    ],
)
def test_a_projection_that_cannot_work_is_refused_when_it_is_declared(
    projection: type[msgspec.Struct], problem: str
) -> None:
    with pytest.raises(TypeError, match=problem):
        check_projection(projection)
    with pytest.raises(TypeError, match=problem):
        receiver_for(CacheSpec(resource=Secret.resource, projection=projection))
    check_projection(SecretType)


def _rename(obj: dict[str, Any]) -> dict[str, Any]:
    obj["metadata"]["name"] = "other"
    return obj


def _unlabel(obj: dict[str, Any]) -> dict[str, Any]:
    del obj["metadata"]["labels"]
    return obj


def _disown(obj: dict[str, Any]) -> dict[str, Any]:
    obj["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"}]
    return obj


@pytest.mark.parametrize(
    "transform",
    [
        _rename, _unlabel, _disown, lambda obj: {"data": {}}, lambda obj: None, lambda obj: b"{", lambda obj: "text",
        lambda obj: {**obj, "set": object()}, lambda obj: 1 / 0,
    ],
    ids=["name", "labels", "owner", "no metadata", "None", "no JSON", "text", "no JSON form", "raises"],
)  # fmt: skip
def test_what_a_transform_does_wrong_costs_that_object_and_no_other(transform: Any) -> None:
    def only_bad(obj: dict[str, Any]) -> Any:
        return transform(obj) if obj["metadata"]["name"] == "b" else obj

    partial = watching(transform=only_bad)
    history = History(partial)
    for name in "abc":
        history.step("write", name, {"k": "v"}, {"app": "1"})
    assert {key.name for key, _ in partial.store.items()} == {"a", "c"}
    assert {entry.key.name for entry in partial.store.quarantine} == {"b"}
    history.step("delete", "b")
    assert list(partial.store.quarantine) == []


def test_a_transform_may_drop_what_the_cache_does_not_need() -> None:
    def trim(obj: dict[str, Any]) -> dict[str, Any]:
        del obj["metadata"]["annotations"]
        return obj

    partial = watching(transform=trim)
    History(partial).step("write", "a", {"k": "v"}, {"app": "1"})
    record = partial.store.get(Key("shop", "a"))
    assert record is not None
    assert record.annotations == {}
    assert record.meta.labels == {"app": "1"}


def test_caches_of_different_forms_are_different_caches_with_different_names() -> None:
    specs = [CacheSpec(resource=Secret.resource, **options) for options, _ in FORMS.values()]
    specs.append(CacheSpec(resource=Secret.resource))
    assert len(set(specs)) == len({str(spec) for spec in specs}) == len(specs)
    assert [spec.whole for spec in specs] == [False] * len(FORMS) + [True]
    for options, _ in FORMS.values():
        assert CacheSpec(resource=Secret.resource, **options) in specs, "equal options are one cache"
