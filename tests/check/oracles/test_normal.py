"""A state as two runs can share it."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.differences import Masks
from konverge.check.folding import folded
from konverge.check.model import Obj
from konverge.check.normal import _Texts, compared, normal

UID = "3f1c2b9a-7d60-4a4e-9a53-0d9f6f2f8f10"
OTHER = "aaaaaaaa-7d60-4a4e-9a53-0d9f6f2f8f10"


def pod(name: str, uid: str, address: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid}
    return {"kind": "Pod", "metadata": metadata, "status": {"podIP": address}, **more}


@pytest.mark.spec("K-30")
@pytest.mark.parametrize(
    ("name", "common"),
    [
        ("web-6d4cf56db6-x7k2p", "web-*-*"),
        ("rabbit-server-0", "rabbit-server-0"),
        ("my-database", "my-database"),
        (f"pvc-{UID}", "pvc-*"),
        ("backup-28900140", "backup-*"),
    ],
)
def test_generated_parts_of_names_are_folded_and_no_others(name: str, common: str) -> None:
    assert folded(name) == common


@pytest.mark.spec("K-30")
def test_a_generated_name_inside_of_a_value_is_the_same_in_both_runs() -> None:
    def of(name: str, uid: str, address: str) -> dict[str, Any]:
        config = {
            "kind": "ConfigMap",
            "metadata": {"name": "members", "ownerReferences": [{"name": name, "uid": uid}]},
            "data": {"members": f"http://{name}.svc:80,{address}:90", "at": "2026-01-01T00:00:31Z"},
        }
        return {f"pods default/{name}": pod(name, uid, address), "configmaps default/members": config}

    one = normal(of("web-6d4cf56db6-x7k2p", UID, "10.0.0.7"))
    assert one == normal(of("web-6d4cf56db6-q8zzz", OTHER, "10.0.1.9"))
    assert one["configmaps default/members"][0]["data"]["members"].startswith("http://web-*-*.svc:80,<address of pods")


@pytest.mark.spec("K-30")
def test_a_reference_to_an_object_that_is_gone_differs_from_one_to_the_present_object() -> None:
    def of(owner: str) -> dict[str, Any]:
        child = {"kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": [{"uid": owner}]}}
        return {"pods default/web": pod("web", UID, "10.0.0.7"), "configmaps default/a": child}

    assert normal(of(UID)) != normal(of(OTHER))


@pytest.mark.spec("K-30")
def test_pods_of_one_folded_name_are_matched_by_what_they_are() -> None:
    def of(first: str, second: str) -> dict[str, Any]:
        pods = [pod("a-zzzzz", UID, "10.0.0.1"), pod("a-bbbbb", OTHER, "10.0.0.2")]
        for item, role in zip(pods, (first, second), strict=True):
            item["metadata"]["labels"] = {"role": role}
        return {f"pods default/{item['metadata']['name']}": item for item in pods}

    roles = [[item["metadata"]["labels"] for item in normal(of(*both))["pods default/a-*"]] for both in ("xy", "yx")]
    assert roles[0] == roles[1]


@pytest.mark.spec("K-30")
def test_a_state_that_has_become_another_is_looked_at_again() -> None:
    """The last results are remembered, by the objects that a state has."""
    state = {"pods default/web": pod("web", UID, "10.0.0.7")}
    assert normal(state) is normal(state)
    assert normal(dict(state)) == normal(state)
    state["pods default/web"] = pod("web", UID, "10.0.0.7", spec={"nodeName": "n"})
    assert normal(state)["pods default/web"][0]["spec"] == {"nodeName": "n"}
    state["pods default/other"] = pod("other", OTHER, "10.0.0.8")
    assert sorted(normal(state)) == ["pods default/other", "pods default/web"]


@pytest.mark.spec("K-30")
@pytest.mark.parametrize(
    ("key", "where", "name", "same"),
    [
        ("apps/statefulsets default/a", "labels", "owner-rv", True),
        ("apps/statefulsets default/a", "annotations", "example.com/observed-generation", True),
        ("apps/statefulsets default/a", "labels", "version", False),
        ("apps/statefulsets default/a", "labels", "curve", False),
        ("pods default/a-0", "annotations", "agent.example.com/version", True),
        ("pods default/a-0", "labels", "version", False),
    ],
)
def test_versions_that_objects_note_are_not_compared(key: str, where: str, name: str, same: bool) -> None:
    def noted(value: str) -> dict[str, Any]:
        return {"metadata": {"name": "a", where: {name: value}}}

    assert (compared(key, noted("17"), noted("23"), Masks(), derived=False) == []) is same
    assert compared(key, noted("17"), noted("a"), Masks(), derived=False) != []
    unnoted = {"metadata": {"name": "a", where: {}}}
    absent = compared(key, unnoted, noted("23"), Masks(), derived=False)
    assert (absent == []) is (same and not key.startswith("pods"))


def test_names_with_a_generated_part_are_found_wherever_they_stand_and_the_longest_first() -> None:
    def state(first: str, second: str, note: str) -> dict[str, Obj]:
        known = {
            f"things default/{name}": {"metadata": {"name": name, "namespace": "default"}} for name in (first, second)
        }
        return {**known, "things default/note": {"metadata": {"name": "note"}, "spec": {note: 1, "text": note}}}

    one = normal(state("web-x7k2p", "web-x7k2p-bcdfg", "web-x7k2p-bcdfg\nweb-x7k2p.svc"))
    assert one["things default/note"][0]["spec"] == {
        "web-x7k2p-*\nweb-*.svc": 1,
        "text": "web-x7k2p-*\nweb-*.svc",
    }
    longer = normal(state("web-x7k2p", "web-z8w4q", "my-web-x7k2p web-x7k2pq 10.0.0.1"))
    assert longer["things default/note"][0]["spec"]["text"] == "my-web-x7k2p web-x7k2pq 10.0.0.1"


def test_a_text_of_one_run_is_looked_at_anew_where_it_means_something_else() -> None:
    def state(uid: str) -> dict[str, Obj]:
        one = {"metadata": {"name": "one", "uid": uid}}
        return {"things one": one, "things two": {"metadata": {"name": "two"}, "spec": {"of": UID}}}

    assert normal(state(UID))["things two"][0]["spec"] == {"of": "<uid of things one>"}
    assert normal(state("another"))["things two"][0]["spec"] == {"of": "<uid of what is gone>"}


def test_what_is_remembered_of_texts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge.check.normal._MOST_TEXTS", 3)
    texts = _Texts(())
    for number in range(4):
        assert texts.rewriter({})({"time": f"2026-11-18T00:00:0{number}Z"}) == {"time": "<time>"}
    assert len(texts._is_of_one_run) <= 5
