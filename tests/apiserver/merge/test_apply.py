from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.merge import Owner, field_set
from konverge.apiserver.merge.apply import LAST_APPLIED, apply, read, warnings
from konverge.apiserver.merge.managed_fields import update
from konverge.apiserver.merge.path_listing import everything
from konverge.apiserver.merge.typed import fields_of
from konverge.apiserver.schema import lookup
from konverge.apiserver.status import ApiError
from tests.apiserver.merge.kinds import STACK, Obj, config_map, map_owner, owned, stack, stack_owner


def applied(
    live: Obj | None, spec: Obj | None, manager: str, *, force: bool = False, now: str = "2026-01-01T00:00:01Z"
) -> Obj:
    return stored(apply(copy.deepcopy(live), stack(spec), stack_owner(manager, now), force=force))


def stored(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "uid": "u"}}


def refused(live: Obj | None, spec: Obj, manager: str) -> ApiError:
    with pytest.raises(ApiError) as failure:
        applied(live, spec, manager)
    return failure.value


@pytest.mark.spec("S-07")
def test_an_apply_owns_its_fields() -> None:
    spec = {"ports": [{"port": 80}], "tags": ["a"], "args": ["1"], "env": {"X": "1"}, "atom": {"a": "1"}, "n": 1}
    new = applied(None, spec, "one")
    assert new["spec"] == spec
    assert owned(new)["one Apply"] == {
        "f:spec": {
            "f:args": {},
            "f:atom": {},
            "f:env": {"f:X": {}},
            "f:n": {},
            "f:ports": {'k:{"port":80,"proto":"TCP"}': {".": {}, "f:port": {}}},
            "f:tags": {'v:"a"': {}},
        }
    }


@pytest.mark.spec("S-07")
@pytest.mark.parametrize(
    ("live", "more", "result"),
    [
        ({"tags": ["a", "b"]}, {"tags": ["c"]}, {"tags": ["a", "b", "c"]}),
        ({"tags": ["a", "b"]}, {"tags": ["c", "a"]}, {"tags": ["c", "a", "b"]}),
        ({"env": {"X": "1"}}, {"env": {"Y": "2"}}, {"env": {"X": "1", "Y": "2"}}),
        ({"ports": [{"port": 1}]}, {"ports": [{"port": 2}]}, {"ports": [{"port": 1}, {"port": 2}]}),
        (
            {"ports": [{"port": 1, "proto": "TCP"}]},
            {"ports": [{"port": 1, "name": "x"}]},
            {"ports": [{"port": 1, "proto": "TCP", "name": "x"}]},
        ),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": {"c": [1]}}}, {"free": {"a": {"b": 1, "c": [1]}}}),
        ({"n": 1}, {}, {"n": 1}),
    ],
)
def test_two_managers_are_merged(live: Obj, more: Obj, result: Obj) -> None:
    assert applied(applied(None, live, "one"), more, "two")["spec"] == result


@pytest.mark.spec("S-07")
def test_conflicts_name_managers_and_fields() -> None:
    live = applied(None, {"args": ["1"], "env": {"X": "1"}, "n": 1}, "one")
    error = refused(live, {"args": ["2"], "env": {"X": "2"}, "n": 2}, "two")
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .spec.args\n- .spec.n\n- .spec.env.X'
    )
    assert error.details is not None
    assert error.details["causes"][0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "one"',
        "field": ".spec.args",
    }
    assert set(error.details) == {"causes"}


def test_a_conflict_with_an_update_names_its_version() -> None:
    live = stack({"n": 1})
    update(None, live, stack_owner("one"))
    error = refused(stored(live), {"n": 2}, "two")
    assert error.message == 'Apply failed with 1 conflict: conflict with "one" using x.io/v1: .spec.n'
    live = stack({"n": 1}, status={"a": 1})
    update(None, live, stack_owner("one", subresource="status"))
    with pytest.raises(ApiError, match=r'"one" with subresource "status" using x\.io/v1: \.status\.a'):
        apply(stored(live), stack({}, status={"a": 2}), stack_owner("two", subresource="status"))


@pytest.mark.spec("S-07")
def test_force_takes_fields_and_removes_empty_entries() -> None:
    live = applied(None, {"n": 1}, "one")
    new = applied(live, {"n": 2}, "two", force=True)
    assert new["spec"] == {"n": 2}
    assert set(owned(new)) == {"two Apply"}


@pytest.mark.spec("S-07")
def test_equal_values_are_owned_together() -> None:
    live = applied(None, {"n": 1, "tags": ["a"]}, "one")
    both = applied(live, {"n": 1}, "two", now="2027-01-01T00:00:00Z")
    entries = {entry["manager"]: entry for entry in both["metadata"]["managedFields"]}
    assert "time" not in entries["two"]
    assert entries["one"] == live["metadata"]["managedFields"][0]
    left = applied(both, {"tags": ["a"]}, "one")
    assert left["spec"] == {"n": 1, "tags": ["a"]}
    assert owned(left)["two Apply"] == {"f:spec": {"f:n": {}}}


@pytest.mark.spec("S-07")
def test_a_field_that_is_no_longer_applied_is_removed_unless_owned() -> None:
    live = applied(None, {"n": 1, "tags": ["a", "b"], "env": {"X": "1"}, "ports": [{"port": 1}, {"port": 2}]}, "one")
    live = applied(live, {"tags": ["b"], "ports": [{"port": 2, "name": "x"}]}, "two")
    new = applied(live, None, "one")
    assert new["spec"] == {"tags": ["b"], "ports": [{"port": 2, "name": "x"}]}
    assert set(owned(new)) == {"two Apply"}


def test_defaults_inside_an_item_are_removed_and_kept_with_it() -> None:
    live = applied(None, {"ports": [{"port": 1}, {"port": 2}]}, "one")
    for port in live["spec"]["ports"]:
        port["proto"] = "TCP"
    new = applied(live, {"ports": [{"port": 2}]}, "one")
    assert new["spec"]["ports"] == [{"port": 2, "proto": "TCP"}]


@pytest.mark.spec("S-07")
def test_the_first_apply_conflicts_with_existing_fields() -> None:
    live = stored(stack({"n": 1}))
    assert refused(live, {"n": 2}, "one").message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using x.io/v1: .spec.n'
    )
    new = applied(live, {"n": 1, "tags": ["a"]}, "one")
    assert owned(new)["before-first-apply Update"] == {"f:spec": {".": {}, "f:n": {}}}


@pytest.mark.spec("S-07")
@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"odd": 1}, ".spec.odd: field not declared in schema"),
        ({"n": "x"}, ".spec.n: expected numeric (int or float), got string"),
        ({"tags": "x"}, ".spec.tags: expected list, got &{x}"),
        ({"env": [1]}, ".spec.env: expected map, got &{[1]}"),
        ({"env": {"a": 1}}, ".spec.env.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        (
            {"ports": [{"port": 1}, {"port": 1, "proto": "TCP"}]},
            '.spec.ports: duplicate entries for key [port=1,proto="TCP"]',
        ),
        (
            {"n": "x", "tags": 1},
            "errors:\n  .spec.n: expected numeric (int or float), got string\n  .spec.tags: expected list, got &{1}",
        ),
    ],
)
def test_a_configuration_that_does_not_conform_is_an_error(spec: Obj, why: str) -> None:
    error = refused(None, spec, "one")
    assert (error.code, error.reason) == (500, "")
    assert error.message == f"failed to create typed patch object (/s; x.io/v1, Kind=Stack): {why}"


def test_a_list_item_without_its_keys_is_an_error() -> None:
    node = lookup("", "v1", "Pod")
    assert node is not None
    owner = Owner(node=node, manager="m", api_version="v1", kind="Pod", now="")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}, None]}}
    with pytest.raises(ApiError, match="element 1: associative list with keys may not have a null element"):
        apply(None, pod, owner)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "Other"}, "invalid object type: x.io/v1, Kind=Other"),
        ({"apiVersion": "x.io/v2"}, "invalid object type: x.io/v2, Kind=Stack"),
        ({"metadata": {"name": "s", "managedFields": []}}, "metadata.managedFields must be nil"),
    ],
)
def test_a_configuration_of_another_kind_is_an_error(change: Obj, why: str) -> None:
    with pytest.raises(ApiError) as failure:
        apply(None, {**stack({}), **change}, stack_owner("one"))
    assert (failure.value.code, failure.value.message) == (400, why)


def test_a_value_that_its_type_refuses_is_an_error() -> None:
    node = lookup("", "v1", "LimitRange")
    assert node is not None
    owner = Owner(node=node, manager="m", api_version="v1", kind="LimitRange", now="")
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l"},
        "spec": {"limits": [{"max": {"cpu": "?"}}]},
    }
    with pytest.raises(ApiError) as failure:
        apply(None, limits, owner)
    assert failure.value.message.startswith(
        "failed to convert new object (/l; /v1, Kind=LimitRange) to proper version: "
        "unable to convert unstructured object to /v1, Kind=LimitRange: quantities must match"
    )


@pytest.mark.spec("S-07")
def test_kubectl_takes_over_what_it_applied_on_the_clients_side() -> None:
    annotation = '{"apiVersion":"v1","kind":"ConfigMap","data":{"x":"1","y":"1"},"metadata":{"name":"c"}}'
    live = config_map({"x": "1", "y": "2"}, annotations={LAST_APPLIED: annotation})
    update(None, live, map_owner("kubectl-client-side-apply"))
    live = stored(live)
    new = apply(live, config_map({"x": "2"}), map_owner("kubectl"))
    assert new["data"] == {"x": "2", "y": "2"}
    assert new["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"v1","data":{"x":"2"},"kind":"ConfigMap","metadata":{"name":"c"}}\n'
    )
    with pytest.raises(ApiError, match=r"\.data\.y"):
        apply(live, config_map({"y": "3"}), map_owner("kubectl"))
    with pytest.raises(ApiError, match=r"\.data\.x"):
        apply(live, config_map({"x": "2"}), map_owner("other"))


def test_a_field_that_becomes_atomic_is_owned_as_a_whole() -> None:
    live = applied(None, {"atom": {"a": "1"}}, "one")
    live["metadata"]["managedFields"][0]["fieldsV1"] = {"f:spec": {"f:atom": {"f:a": {}}}}
    assert refused(live, {"atom": {"b": "1"}}, "two").message.endswith(".spec.atom")


def test_versions_without_conversion_have_the_same_fields() -> None:
    live = applied(None, {"n": 1}, "one")
    newer = Owner(node=STACK, manager="two", api_version="x.io/v2", kind="Stack", now="")
    with pytest.raises(ApiError, match=r"\.spec\.n"):
        apply(live, {**stack({"n": 2}), "apiVersion": "x.io/v2"}, newer)
    mine = Owner(node=STACK, manager="one", api_version="x.io/v2", kind="Stack", now="")
    new = apply(live, {**stack({"n": 2}), "apiVersion": "x.io/v2"}, mine)
    assert [entry["apiVersion"] for entry in new["metadata"]["managedFields"]] == ["x.io/v2"]


def test_entries_of_a_version_that_is_not_served_are_removed() -> None:
    live = applied(None, {"n": 1}, "one")
    owner = Owner(node=STACK, manager="two", api_version="x.io/v2", kind="Stack", now="", convert=lambda *_: None)
    new = apply(live, {**stack({"n": 2}), "apiVersion": "x.io/v2"}, owner)
    assert set(owned(new)) == {"two Apply"}


def test_a_configuration_may_be_yaml_or_json() -> None:
    assert read(b'{"a":1}').obj == read(b"a: 1").obj == {"a": 1}
    twice = read(b'{"a":1,\n"a":2}')
    assert twice.obj == {"a": 2}
    assert warnings(twice, "Warn") == ['line 2: key "a" already set in map']
    assert warnings(twice, "Ignore") == []
    with pytest.raises(ApiError) as failure:
        warnings(twice, "Strict")
    assert failure.value.message == (
        "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 2: key "a" already set in map'
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"a: [", "error encoding patch: yaml: line 1: did not find expected node content"),
        (b"{", "error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected node content"),
        (
            b"[]",
            "error decoding patch: error unmarshaling JSON: while decoding JSON: "
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
    ],
)
def test_an_unreadable_configuration_is_an_error(body: bytes, why: str) -> None:
    with pytest.raises(ApiError) as failure:
        read(body)
    assert (failure.value.code, failure.value.message) == (400, why)


small = st.sampled_from(["1", "2", "3"])
# Never empty: a container that loses its last member becomes null, which is another story.
specs = st.fixed_dictionaries(
    {"n": st.integers(1, 3)},
    optional={
        "ports": st.lists(
            st.fixed_dictionaries({"port": st.integers(1, 3)}, optional={"name": small}),
            min_size=1,
            max_size=3,
            unique_by=lambda p: p["port"],
        ),
        "tags": st.lists(small, min_size=1, max_size=3, unique=True),
        "args": st.lists(small, min_size=1, max_size=2),
        "env": st.dictionaries(small, small, min_size=1, max_size=3),
        "atom": st.fixed_dictionaries({"a": small}, optional={"b": small}),
        "free": st.dictionaries(
            small, st.one_of(small, st.dictionaries(small, small, min_size=1, max_size=2)), min_size=1, max_size=2
        ),
    },
)
managers = st.sampled_from(["one", "two", "three"])
histories = st.lists(st.tuples(managers, specs), min_size=1, max_size=5)


def history(steps: list[tuple[str, Obj]]) -> Obj:
    live: Obj | None = None
    for index, (manager, spec) in enumerate(steps):
        live = applied(live, spec, manager, force=True, now=f"2026-01-01T00:00:{index:02}Z")
    assert live is not None
    return live


@given(histories)
def test_applying_again_changes_nothing(steps: list[tuple[str, Obj]]) -> None:
    live = history(steps)
    manager, spec = steps[-1]
    assert applied(live, spec, manager, now="2030-01-01T00:00:00Z") == live


@given(histories)
def test_the_last_forced_apply_decides_the_values(steps: list[tuple[str, Obj]]) -> None:
    live = history(steps)
    wanted = fields_of(STACK, stack(steps[-1][1]))
    assert field_set.difference(wanted, everything(STACK, live)) == {}


@given(histories)
def test_every_owned_field_exists(steps: list[tuple[str, Obj]]) -> None:
    live = history(steps)
    there = everything(STACK, live)
    for fields in owned(live).values():
        assert field_set.difference(fields, there) == {}


@given(histories, specs)
def test_without_force_fields_of_others_do_not_change(steps: list[tuple[str, Obj]], spec: Obj) -> None:
    live = history(steps)
    try:
        new = applied(live, spec, "newcomer")
    except ApiError:
        return
    for name, fields in owned(live).items():
        assert owned(new)[name] == fields


@given(histories)
def test_an_empty_apply_gives_up_all_fields(steps: list[tuple[str, Obj]]) -> None:
    live = history(steps)
    for manager in ("one", "two", "three"):
        live = applied(live, None, manager, force=True)
    assert "managedFields" not in live["metadata"] or owned(live).keys() == {"before-first-apply Update"}


@given(histories, specs)
def test_arguments_are_not_changed(steps: list[tuple[str, Obj]], spec: Obj) -> None:
    live = history(steps)
    before: Any = copy.deepcopy((live, spec))
    apply(live, stack(spec), stack_owner("one"), force=True)
    assert (live, spec) == before
