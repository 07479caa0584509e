from __future__ import annotations

import copy
from typing import Any

import pytest

from konverge.apiserver.merge import field_set, manager_of
from konverge.apiserver.merge.managed_entries import EntryError, decode, keep_times
from konverge.apiserver.merge.managed_fields import update
from konverge.apiserver.merge.owner import Owner
from konverge.apiserver.merge.reset_fields import may_own
from tests.apiserver.merge.kinds import DEPLOYMENT, Obj, config_map, map_owner, owned, stack, stack_owner


def created(obj: Obj, owner: Owner) -> Obj:
    new = copy.deepcopy(obj)
    update(None, new, owner)
    return new


def updated(live: Obj, obj: Obj, owner: Owner) -> Obj:
    new = copy.deepcopy(obj)
    update(live, new, owner)
    return new


@pytest.mark.spec("S-07")
def test_a_creation_owns_what_is_set() -> None:
    new = created(config_map({"a": "1"}, labels={"l": "m"}, uid="u"), map_owner("one"))
    assert new["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:01Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
        }
    ]


def test_structs_that_are_always_written_are_not_owned() -> None:
    owner = Owner(node=DEPLOYMENT, manager="m", api_version="apps/v1", kind="Deployment", now="")
    new = created({"metadata": {}, "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}, owner)
    template = owned(new)["m Update"]["f:spec"]["f:template"]
    assert template == {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}}}


def test_the_creator_of_a_custom_resource_owns_all_its_fields() -> None:
    assert owned(created(stack({"n": 1}), stack_owner("m")))["m Update"] == {"f:spec": {".": {}, "f:n": {}}}


@pytest.mark.spec("S-07")
def test_the_manager_that_changes_a_field_takes_it() -> None:
    live = created(config_map({"a": "1", "b": "1"}), map_owner("one"))
    new = updated(live, config_map({"a": "2", "b": "1", "c": "1"}), map_owner("two", "2026-01-01T00:00:02Z"))
    assert owned(new) == {
        "one Update": {"f:data": {".": {}, "f:b": {}}},
        "two Update": {"f:data": {"f:a": {}, "f:c": {}}},
    }
    assert [entry["time"] for entry in new["metadata"]["managedFields"]] == [
        "2026-01-01T00:00:01Z",
        "2026-01-01T00:00:02Z",
    ]


def test_the_manager_that_removes_a_field_takes_it_from_all() -> None:
    live = created(config_map({"a": "1", "b": "1"}), map_owner("one"))
    new = updated(live, config_map({"b": "1"}), map_owner("two"))
    assert owned(new) == {"one Update": {"f:data": {".": {}, "f:b": {}}}}
    assert owned(updated(new, config_map(None), map_owner("two"))) == {}


def test_the_time_stays_where_nothing_changes() -> None:
    live = created(config_map({"a": "1"}), map_owner("one"))
    new = updated(live, config_map({"a": "1"}), map_owner("one", "2027-01-01T00:00:00Z"))
    assert new["metadata"]["managedFields"] == live["metadata"]["managedFields"]


@pytest.mark.parametrize("reset", [[], [{}]])
@pytest.mark.spec("S-07")
def test_a_client_may_end_the_tracking_of_fields(reset: list[Any]) -> None:
    live = created(config_map({"a": "1"}), map_owner("one"))
    new = updated(live, config_map({"a": "2"}, managedFields=reset), map_owner("two"))
    assert "managedFields" not in new["metadata"]
    again = updated(new, config_map({"a": "3"}), map_owner("two"))
    assert "managedFields" not in again["metadata"]


def test_a_client_may_write_entries_but_not_through_a_subresource() -> None:
    live = created(stack({"n": 1}), stack_owner("one"))
    given = [{**live["metadata"]["managedFields"][0], "manager": "other"}]
    new = {**stack({"n": 1}), "metadata": {"name": "s", "managedFields": given}}
    assert set(owned(updated(live, new, stack_owner("two")))) == {"other Update"}
    assert set(owned(updated(live, new, stack_owner("two", subresource="status")))) == {"one Update"}


def test_invalid_entries_of_a_client_are_ignored() -> None:
    live = created(config_map({"a": "1"}), map_owner("one"))
    new = updated(live, config_map({"a": "1"}, managedFields=[{"operation": "Sing"}]), map_owner("two"))
    assert set(owned(new)) == {"one Update"}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"operation": "Sing"}, "operation must be `Apply` or `Update`"),
        ({"operation": "Apply"}, "apiVersion must not be empty"),
        ({"operation": "Apply", "apiVersion": "v1"}, "missing fieldsType in managed fields entry 0"),
        (
            {"operation": "Apply", "apiVersion": "v1", "fieldsType": "V2"},
            'invalid fieldsType "V2" in managed fields entry 0',
        ),
    ],
)
def test_invalid_entries_are_an_error(entry: Obj, why: str) -> None:
    with pytest.raises(EntryError) as failure:
        decode([entry])
    assert str(failure.value) == why


@pytest.mark.spec("S-07")
def test_old_updates_are_merged_when_there_are_many() -> None:
    live = created(config_map({"k0": "1"}), map_owner("m0", "2026-01-01T00:00:00Z"))
    data = {"k0": "1"}
    for index in range(1, 13):
        data[f"k{index}"] = "1"
        live = updated(live, config_map(dict(data)), map_owner(f"m{index}", f"2026-01-01T00:00:{index:02}Z"))
    entries = owned(live)
    assert len(entries) == 10
    assert entries["ancient-changes Update"] == {"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}}
    assert "m12 Update" in entries


@pytest.mark.spec("S-83")
@pytest.mark.parametrize(
    ("others", "merged"),
    [(7, ["ancient-changes"]), (8, None), (9, ["A", "m0"])],
)
def test_the_entry_of_old_updates_is_lost_where_an_older_one_comes_first(others: int, merged: list[str] | None) -> None:
    names = ["A", "ancient-changes", *(f"m{index}" for index in range(others))]
    live = config_map(dict.fromkeys(names, "1"), managedFields=[entry_of(name, name) for name in names])
    entries = owned(updated(live, config_map({**live["data"], "new": "1"}), map_owner("new")))
    ancient = entries.get("ancient-changes Update")
    assert (None if ancient is None else [name[2:] for name in ancient["f:data"]]) == merged
    assert len(entries) == 10
    assert entries["new Update"] == {"f:data": {"f:new": {}}}


@pytest.mark.spec("S-83")
def test_what_was_merged_into_the_entry_of_old_updates_is_lost_with_it() -> None:
    names = ["A", "B", "ancient-changes", *(f"m{index}" for index in range(9))]
    live = config_map(dict.fromkeys(names, "1"), managedFields=[entry_of(name, name) for name in names])
    entries = owned(updated(live, config_map({**live["data"], "new": "1"}), map_owner("new")))
    assert entries["ancient-changes Update"] == {"f:data": {"f:A": {}, "f:m0": {}}}
    assert set(entries) == {"ancient-changes Update", "new Update", *(f"m{index} Update" for index in range(1, 9))}


def entry_of(manager: str, key: str) -> Obj:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:01Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {f"f:{key}": {}}},
    }


@pytest.mark.parametrize(
    ("group", "plural", "subresource", "owned"),
    [
        ("", "configmaps", "", {"f:metadata", "f:spec"}),
        ("apps", "deployments", "", {"f:metadata", "f:spec"}),
        ("apps", "statefulsets", "status", {"f:metadata", "f:status"}),
        ("x.io", "stacks", "status", {"f:status"}),
        ("certificates.k8s.io", "certificatesigningrequests", "", {"f:metadata"}),
        ("", "pods", "ephemeralcontainers", set()),
    ],
)
def test_what_an_endpoint_resets_is_not_owned(group: str, plural: str, subresource: str, owned: set[str]) -> None:
    fields = field_set.of(("f:spec", "f:a"), ("f:status", "f:a"), ("f:metadata", "f:labels"))
    assert set(may_own(group, plural, subresource)(fields)) == owned


def test_resizing_owns_resources_alone() -> None:
    container = ("f:spec", "f:containers", 'k:{"name":"c"}')
    fields = field_set.of((*container, "f:image"), (*container, "f:resources", "f:limits"), ("f:spec", "f:nodeName"))
    assert may_own("", "pods", "resize")(fields) == field_set.of((*container, "f:resources", "f:limits"))


def test_new_times_alone_are_not_a_change() -> None:
    old = created(config_map({"a": "1"}), map_owner("one"))
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = "2030-01-01T00:00:00Z"
    other = {**copy.deepcopy(new), "data": {"a": "2"}}
    keep_times(old, new)
    assert new == old
    keep_times(old, other)
    assert other["metadata"]["managedFields"][0]["time"] == "2030-01-01T00:00:00Z"


@pytest.mark.spec("S-85")
def test_a_boolean_in_the_place_of_a_number_keeps_its_time() -> None:
    old = created(stack({"free": 1}), stack_owner("one"))
    new = created(stack({"free": True}), stack_owner("one", "2030-01-01T00:00:00Z"))
    keep_times(old, new)
    assert new["metadata"]["managedFields"][0]["time"] == "2030-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("field_manager", "user_agent", "manager"),
    [
        ("given", "x/1", "given"),
        ("", "tool/v1 (linux)", "tool"),
        ("", "", "unknown"),
        ("", "a\x00b/1", "ab"),
        ("", "x" * 200, "x" * 128),
    ],
)
def test_the_manager_is_named_by_the_client_or_its_program(field_manager: str, user_agent: str, manager: str) -> None:
    assert manager_of(field_manager, user_agent) == manager
