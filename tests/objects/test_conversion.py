"""Conversion between versions: through the hub, with metadata as it was, and nothing lost that was to be kept."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from konverge.objects import (
    ConversionError,
    Conversions,
    CustomResource,
    Model,
    NoStatus,
    converts,
    converts_plain,
    crd_dict,
    webhook_conversion,
)
from tests.objects.pools import Pool, PoolV1, PoolV3

pytestmark = pytest.mark.spec("R-72")

V1, V2, V3 = (f"pools.example.com/v{number}" for number in (1, 2, 3))
KEPT_V2 = "pools.example.com/preserved-v2"
POOLS = Conversions(PoolV1, Pool, PoolV3)
METADATA = {
    "name": "a",
    "namespace": "default",
    "uid": "1234",
    "resourceVersion": "7",
    "generation": 3,
    "labels": {"app": "a"},
    "annotations": {"note": "x"},
    "finalizers": ["example.com/hold"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "9", "somethingNew": True}],
    "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:size": {}}}}],
}


DEFAULTS: dict[str, dict[str, Any]] = {
    V1: {"size": "1x1", "note": ""},
    V2: {"nodes": 1, "cores": 1, "note": "", "grace": 30},
    V3: {"nodes": 1, "cores": 1, "note": ""},
}


def pool(version: str = V2, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """As the API server shows it: with its defaults."""
    filled = DEFAULTS[version] | spec
    obj = {"apiVersion": version, "kind": "Pool", "metadata": copy.deepcopy(METADATA), "spec": filled}
    return obj if status is None else {**obj, "status": status}


def kept(obj: dict[str, Any], name: str = KEPT_V2) -> Any:
    return json.loads(obj["metadata"]["annotations"][name])


def test_an_object_is_converted_and_its_metadata_stays() -> None:
    old = pool(V1, size="3x8", note="hi", status={"phase": "Ready"})
    before = copy.deepcopy(old)
    assert POOLS.convert(old, V2) == pool(V2, nodes=3, cores=8, note="hi", status={"phase": "Ready"})
    assert old == before, "the given object is left alone"


def test_defaults_are_filled_in_as_the_server_would() -> None:
    """Else a patch in this version that changes nothing would change the object: the server fills them in by itself."""
    bare = {"apiVersion": V1, "kind": "Pool", "metadata": {"name": "a"}, "spec": {}}
    assert POOLS.convert(bare, V2)["spec"] == DEFAULTS[V2]
    zones = {"apiVersion": V2, "kind": "Pool", "metadata": {"name": "a"}, "spec": {"zones": [{"name": "z"}]}}
    there = POOLS.convert(zones, V1)
    assert "status" not in there
    assert POOLS.convert(there, V2)["spec"] == {**DEFAULTS[V2], "zones": [{"name": "z", "weight": 1}]}


def test_the_same_version_comes_back_as_it_is() -> None:
    obj = pool(V2, nodes=3, more={"x": None})
    assert POOLS.convert(obj, V2) == obj


def test_spokes_convert_through_the_hub() -> None:
    assert POOLS.hub is Pool
    newest = POOLS.convert(pool(V1, size="3x8"), V3)
    assert newest == pool(V3, nodes=3, cores=8)


def test_what_a_version_cannot_say_is_kept_and_comes_back() -> None:
    zones = [{"name": "a", "weight": 2}, {"name": "b", "weight": 1}]
    new = pool(V2, nodes=20000, cores=8, zones=zones, images=["x", "y"], grace=None, extra={"deep": {"er": [1, None]}})
    old = POOLS.convert(new, V1)
    assert old["spec"] == {"size": "9999x8", "note": ""}
    assert POOLS.convert(old, V2) == new
    assert POOLS.convert(POOLS.convert(old, V3), V2) == new, "also over another version"


def test_defaults_that_the_server_fills_in_are_not_kept() -> None:
    shown = pool(V2, nodes=2, cores=1, grace=30, note="")
    assert POOLS.convert(shown, V1)["metadata"] == METADATA
    assert kept(POOLS.convert(pool(V2, grace=31), V1)) == [{"at": ["spec", "grace"], "was": 30, "is": 31}]


def test_the_other_way_too() -> None:
    old = pool(V1, size="08x1")
    new = POOLS.convert(old, V2)
    assert new["spec"] == pool(V2, nodes=8)["spec"]
    assert POOLS.convert(new, V1) == old


def test_a_change_by_the_user_counts_more_than_what_was_kept() -> None:
    old = POOLS.convert(pool(V2, nodes=20000, images=["x"]), V1)
    old["spec"]["size"] = "5x1"
    assert POOLS.convert(old, V2) == pool(V2, nodes=5, images=["x"])


def test_entries_of_a_list_are_known_by_their_keys_or_by_their_content() -> None:
    """What was kept of one entry never becomes part of another, wherever it stands now."""
    from konverge.objects.custom import preserved

    schema: Any = {"properties": {"ports": {"x-kubernetes-list-map-keys": ["port"], "items": {}}}}
    before = {"ports": [{"port": 80}, {"port": 81}], "args": [{"a": 1}, {"a": 2}]}
    actual = {"ports": [{"port": 80}, {"port": 81, "name": "b"}], "args": [{"a": 1, "x": 1}, {"a": 2, "x": 2}]}
    differences = preserved.differences(before, actual, schema)
    assert preserved.restored(before, differences) == actual
    changed = {"ports": [{"port": 90}, {"port": 81, "host": 1}], "args": [{"a": 3}, {"a": 2}]}
    assert preserved.restored(changed, differences) == {
        "ports": [{"port": 90}, {"port": 81, "host": 1, "name": "b"}],
        "args": [{"a": 3}, {"a": 2, "x": 2}],
    }


def test_entries_that_look_alike_are_kept_as_a_whole_list() -> None:
    from konverge.objects.custom import preserved

    before: Any = {"args": [{}, {}]}
    actual = {"args": [{"x": 1}, {"x": 2}]}
    differences = preserved.differences(before, actual, {})
    assert preserved.restored(before, differences) == actual
    assert preserved.restored({"args": [{}]}, differences) == {"args": [{}]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "[1]",
        '[{"at":[]}]',
        '[{"at":["spec"],"items":[1]}]',
        '[{"at":[{}],"is":1}]',
        '[{"at":["spec","nodes"],"was":3,"is":"many"}]',
        '[{"at":["spec","nodes"],"was":3,"is":-5}]',
        '[{"at":["metadata","name"],"is":"other"}]',
        '[{"at":["metadata"],"is":{"name":"other"}}]',
        '[{"at":["metadata"],"is":"x"}]',
        '[{"at":["kind"],"is":"Other"}]',
        '[{"at":["apiVersion"],"is":"v1"}]',
        "[" * 5000,
        '[{"at":["spec","extra"],"is":{"a":' + "[" * 600 + "]" * 600 + "}}]",
        '[{"at":["spec","nodes","deeper"],"is":1}]',
    ],
)
def test_an_annotation_that_a_user_wrote_breaks_nothing(text: str) -> None:
    old = pool(V1, size="3x1")
    old["metadata"]["annotations"][KEPT_V2] = text
    assert POOLS.convert(old, V2) == pool(V2, nodes=3)


def test_what_an_object_is_never_comes_from_what_was_kept() -> None:
    """Whatever is in the annotation: it is taken as a whole or not at all, and never for the identity."""
    from konverge.objects.custom import preserved

    identity = [{"at": [name], "is": "other"} for name in ("apiVersion", "kind", "metadata")]
    good = {"at": ["spec", "images"], "is": ["x"]}
    assert preserved.decode(json.dumps([*identity, good])) == [good]


def test_an_entry_of_a_list_is_never_made_absent() -> None:
    zone = {"name": "a", "weight": 1}
    old = pool(V1, size="3x1")
    zones = {"at": ["spec", "zones"], "is": [zone]}
    gone = {"at": ["spec", "zones", {"name": "a"}], "was": zone}
    old["metadata"]["annotations"][KEPT_V2] = json.dumps([zones, gone])
    assert POOLS.convert(old, V2) == pool(V2, nodes=3, zones=[zone])


def test_where_nothing_is_kept_the_annotation_means_nothing() -> None:
    first, second = notes("v1", "v2")
    converts(first, second)(_into(second))
    converts(second, first)(_into(first))
    name = "n.example.com/preserved-v2"
    annotations = {name: '[{"at":["spec","text"],"was":"x","is":"y"}]'}
    obj = {
        "apiVersion": "n.example.com/v1",
        "kind": "Note",
        "metadata": {"name": "a", "annotations": annotations},
        "spec": {"text": "x"},
    }
    converted = Conversions(first, second).convert(obj, "n.example.com/v2")
    assert (converted["spec"], converted["metadata"]) == ({"text": "x"}, obj["metadata"])


def test_an_annotation_of_the_user_is_not_taken_for_what_was_kept() -> None:
    new = pool(V2, nodes=3)
    new["metadata"]["annotations"][KEPT_V2] = '[{"at":["spec","nodes"],"was":3,"is":5}]'
    assert POOLS.convert(POOLS.convert(new, V1), V2) == pool(V2, nodes=3)


def test_long_lists_are_not_compared_entry_by_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    from konverge.objects.custom import preserved

    looks = 0

    def counted(function: Any) -> Any:
        def call(*values: Any) -> Any:
            nonlocal looks
            looks += 1
            return function(*values)

        return call

    for name in ("same", "_canonical"):
        monkeypatch.setattr(preserved, name, counted(getattr(preserved, name)))
    size = 300
    before = {"args": [f"a{n}" for n in range(size)], "ports": [{"port": n} for n in range(size)]}
    actual = {"args": [f"b{n}" for n in range(size)], "ports": [{"port": n, "x": n} for n in range(size)]}
    schema: Any = {"properties": {"ports": {"x-kubernetes-list-map-keys": ["port"], "items": {}}}}
    differences = preserved.differences(before, actual, schema)
    assert preserved.restored(before, differences) == actual
    # A user's own: the same list again and again, and by other keys each time.
    again = [{"at": ["args"], "items": [["c", "d"]]} for _ in range(size)]
    others = [{"at": ["ports", {f"key{n}": None}], "was": 1, "is": 2} for n in range(size)]
    assert preserved.restored(before, [*again, *others]) == before
    assert looks < 30 * size, "not size * size"


def test_fields_that_the_classes_do_not_know_are_carried_over() -> None:
    """The definition may be newer than the operator."""
    new = pool(V2, nodes=3, zones=[], newer={"a": None})
    new["more"] = 1
    converted = POOLS.convert(new, V3)
    assert (converted["spec"]["newer"], converted["more"]) == ({"a": None}, 1)
    assert POOLS.convert(converted, V2) == new


def test_an_object_of_a_time_with_nulls_is_read() -> None:
    assert POOLS.convert(pool(V1, size="3x1", note=None), V2)["spec"] == pool(V2, nodes=3)["spec"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"spec": {"size": "big"}}, "it is no valid PoolV1: .*size"),
        ({"kind": "Lake"}, "it is of the kind 'Lake', not Pool"),
        (
            {"apiVersion": "pools.example.com/v9"},
            "there is no version 'pools.example.com/v9' of pools.pools.example.com",
        ),
        ({"apiVersion": None}, "there is no version None"),
        ({"metadata": None}, "it has no metadata"),
    ],
)
def test_what_cannot_be_converted_says_why(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ConversionError, match=why):
        POOLS.convert({**pool(V1, size="3x1"), **change}, V2)


class NoteSpec(Model):
    text: str = ""


def notes(*versions: str) -> list[Any]:
    made: list[Any] = []
    for version in versions:

        class Note(CustomResource[NoteSpec, NoStatus], group="n.example.com", version=version, kind="Note"):
            pass

        made.append(Note)
    return made


def _into(target: Any) -> Any:
    def convert(obj: Any) -> Any:
        return target(spec=obj.spec)

    return convert


def test_a_function_may_change_labels_and_annotations_alone() -> None:
    first, second = notes("v1", "v2")

    @converts(first, second)
    def up(old: Any) -> Any:
        old.metadata.labels = {"size": "large"}
        old.metadata.name = "other"
        old.metadata.annotations = {}
        return second(metadata=old.metadata)

    converts(second, first)(lambda new: first())
    conversions = Conversions(first, second)
    obj = {"apiVersion": "n.example.com/v1", "kind": "Note", "metadata": copy.deepcopy(METADATA), "spec": {}}
    expected = {**METADATA, "labels": {"size": "large"}}
    del expected["annotations"]
    assert conversions.convert(obj, "n.example.com/v2")["metadata"] == expected


def test_the_hub_is_the_version_that_all_others_convert_to_and_from() -> None:
    first, second, third = notes("v1", "v2", "v3")
    for source, target in ((first, second), (second, first), (third, second), (second, third)):
        converts(source, target)(_into(target))
    conversions = Conversions(first, second, third)
    assert conversions.hub is second, "though the first one is stored"
    obj = {"apiVersion": "n.example.com/v1", "kind": "Note", "metadata": {"name": "a"}, "spec": {"text": "x"}}
    assert conversions.convert(obj, "n.example.com/v3")["spec"] == {"text": "x"}
    pair = Conversions(first, second)
    assert pair.hub is first, "of two that could be, the stored one"


def test_missing_and_superfluous_functions_are_errors() -> None:
    first, second, third = notes("v1", "v2", "v3")
    converts(first, second)(lambda old: second())
    with pytest.raises(TypeError, match=r"nothing converts Note to Note: write a function with @converts"):
        Conversions(first, second)
    for source, target in ((second, first), (first, third), (third, first), (second, third)):
        converts(source, target)(_into(target))
    with pytest.raises(TypeError, match="past the hub"):
        Conversions(first, second, third)
    with pytest.raises(TypeError, match="is converted to Note already, by"):

        @converts(first, second)
        def again(old: Any) -> Any:
            return second()

    with pytest.raises(TypeError, match="another resource"):
        converts(first, Pool)
    with pytest.raises(TypeError, match="itself"):
        converts(first, first)
    with pytest.raises(TypeError, match="two classes at least"):
        Conversions(first)
    with pytest.raises(TypeError, match="none of the versions"):
        Conversions(first, second, hub=third)


def test_a_function_that_returns_another_class_is_an_error() -> None:
    first, second = notes("v1", "v2")
    converts(first, second)(lambda old: old)
    converts(second, first)(lambda new: first())
    obj = {"apiVersion": "n.example.com/v1", "kind": "Note", "metadata": {"name": "a"}}
    with pytest.raises(ConversionError, match="returned Note"):
        Conversions(first, second).convert(obj, "n.example.com/v2")


def test_the_definition_has_all_versions_and_their_conversion() -> None:
    spec = crd_dict(PoolV1, Pool, PoolV3)["spec"]
    rows = [(v["name"], v["served"], v["storage"], v.get("deprecationWarning")) for v in spec["versions"]]
    assert rows == [
        ("v1", True, False, "pools.example.com/v1 Pool is old; use v2"),
        ("v2", True, True, None),
        ("v3", True, False, None),
    ]
    assert spec["conversion"]["strategy"] == "Webhook", "None would lose what the stored version does not know"
    path = "/convert/pools.pools.example.com"
    service = {"name": "pools-webhook", "namespace": "pools-system", "path": path, "port": 443}
    made = webhook_conversion(Pool, service=("pools-webhook", "pools-system"), ca_bundle=b"PEM")
    assert made["webhook"]["clientConfig"] == {"service": service, "caBundle": "UEVN"}
    made = webhook_conversion(Pool, url="https://host:9443/")
    assert made["webhook"]["clientConfig"] == {"url": f"https://host:9443{path}"}
    assert crd_dict(PoolV1, Pool, conversion=made)["spec"]["conversion"] == made
    assert "conversion" not in crd_dict(Pool)["spec"]
    with pytest.raises(TypeError, match="one of them"):
        webhook_conversion(Pool)


class CaseV1(CustomResource[Model, NoStatus], group="cases.example.com", version="v1", kind="Case", storage=False):
    """A case with fields that the class does not name."""


class CaseSpec(Model):
    size: int = 1


class Case(CustomResource[CaseSpec, NoStatus], group="cases.example.com", version="v2", kind="Case"):
    """A case."""


@converts_plain(CaseV1, Case)
def case_upgraded(content: dict[str, Any]) -> dict[str, Any]:
    if "old" in content["spec"]:
        content["spec"]["size"] = content["spec"].pop("old")
    return content


@converts_plain(Case, CaseV1)
def case_downgraded(content: dict[str, Any]) -> dict[str, Any]:
    content["spec"]["old"] = content["spec"].pop("size")
    return content


def test_a_function_of_plain_data_also_converts_what_a_class_refuses() -> None:
    cases = Conversions(CaseV1, Case)
    metadata = {"name": "a", "uid": "u", "labels": {}, "managedFields": [{"manager": "m"}]}
    odd = {
        "apiVersion": "cases.example.com/v1",
        "kind": "Case",
        "metadata": metadata,
        "spec": {"old": "x", "n": [None]},
    }
    before = copy.deepcopy(odd)
    new = cases.convert(odd, "cases.example.com/v2")
    assert new == {**odd, "apiVersion": "cases.example.com/v2", "spec": {"size": "x", "n": [None]}}
    assert odd == before, "the function works on a copy"
    assert cases.convert(new, "cases.example.com/v1") == odd
    assert cases.convert({**odd, "spec": {}}, "cases.example.com/v2")["spec"] == {"size": 1}, "with defaults"


def test_functions_of_plain_data_are_declared_as_others() -> None:
    with pytest.raises(TypeError, match="itself"):
        converts_plain(Case, Case)
    with pytest.raises(TypeError, match="another resource"):
        converts_plain(Case, Pool)
    with pytest.raises(TypeError, match=r"already, by .*case_upgraded"):
        converts_plain(CaseV1, Case)(case_downgraded)
