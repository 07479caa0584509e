"""Patches with and without directives in random order, on the real server and on ours: the same answers."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.real.sides import NAMESPACE, Side, differences, normal, thorough

Obj = dict[str, Any]
NAMES = count()
COLLECTION = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
DEPLOYMENT: Obj = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["example.com/a", "example.com/b"]},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {
                "containers": [
                    {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
                    {"name": "b", "image": "2", "args": ["1", "2"], "ports": [{"containerPort": 1}]},
                    {"name": "c", "image": "3"},
                ],
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "imagePullSecrets": [{"name": "s"}],
            },
        },
    },
}
names = st.sampled_from(["a", "b", "c", "d"])
directive = st.fixed_dictionaries({}, optional={"$patch": st.sampled_from(["delete", "replace", "merge", "odd"])})


def rarely(often: st.SearchStrategy[Any], seldom: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 7).flatmap(lambda roll: seldom if roll == 0 else often)


envs = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["X", "Y", "Z"])}, optional={"value": st.sampled_from(["1", "2", None])}
    ),
    max_size=2,
)
plain = st.fixed_dictionaries(
    {"name": names},
    optional={
        "image": st.sampled_from(["1", "9", None]),
        "env": envs,
        "args": st.lists(st.sampled_from(["1", "2", "3"]), max_size=2),
        "$setElementOrder/env": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(["X", "Y", "Z"])}), max_size=3, unique_by=str
        ),
        "$retainKeys": st.just(["name", "image", "env", "args"]),
    },
)
special = st.one_of(
    st.fixed_dictionaries({"name": names, "$patch": st.just("delete")}),
    st.just({"$patch": "replace"}),
    st.just({"$patch": "delete"}),
    st.just({"image": "1"}),
    st.just({"name": "a", "$patch": "odd"}),
    st.just({"name": "a", "$patch": "merge"}),
)
orders = st.lists(st.fixed_dictionaries({"name": names}), max_size=4, unique_by=lambda item: item["name"])
finalizers = st.lists(st.sampled_from(["example.com/a", "example.com/b", "example.com/c"]), max_size=3)
patches = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": rarely(
                    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2", None]), max_size=2),
                    directive,
                ),
                "finalizers": finalizers,
                "$deleteFromPrimitiveList/finalizers": finalizers,
                "$setElementOrder/finalizers": finalizers,
            },
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "replicas": st.sampled_from([1, 2, None]),
                "strategy": st.one_of(
                    st.just({"type": "Recreate", "$retainKeys": ["type"]}),
                    st.just({"type": "Recreate", "rollingUpdate": None}),
                    st.just({"$retainKeys": ["type"], "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
                    st.just({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "30%"}}),
                    st.just({"$patch": "replace", "type": "Recreate"}),
                ),
                "template": st.fixed_dictionaries(
                    {
                        "spec": st.fixed_dictionaries(
                            {},
                            optional={
                                "containers": st.lists(rarely(plain, special), max_size=3),
                                "$setElementOrder/containers": orders,
                                "tolerations": st.lists(st.just({"key": "j", "operator": "Exists"}), max_size=1),
                                "imagePullSecrets": st.lists(st.fixed_dictionaries({"name": names}), max_size=2),
                                "nodeSelector": st.one_of(
                                    st.none(), st.just({"n": "1"}), st.just({"$patch": "delete"})
                                ),
                            },
                        )
                    }
                ),
            },
        ),
    },
)


def decided(patch: Obj) -> bool:
    """Additions and deletions in one list are done in no certain order, unless the order of the list is given too."""
    lists = set(patch.get("metadata", {}))
    return not {"finalizers", "$deleteFromPrimitiveList/finalizers"} <= lists or "$setElementOrder/finalizers" in lists


def unquoted(answer: Any) -> Any:
    """Without the object that a refusal of the result quotes: the request path does not yet write the members of
    built-in structs in Go's order there (json_patch.patched_text would). The rest is compared."""
    code, body = answer
    if code != 422 or "patch: Invalid value" not in str(body.get("message")):
        return answer
    return code, {"reason": body["reason"], "message": body["message"].rpartition('": ')[2]}


def compared(sides: tuple[Side, Side], media: str, sequence: list[Any]) -> None:
    name = f"p{next(NAMES)}"
    for side in sides:
        created = {**DEPLOYMENT, "metadata": {**DEPLOYMENT["metadata"], "name": name}}
        code, answer = side.send("POST", COLLECTION, created)
        assert code == 201, answer
    done = []
    for patch in sequence:
        real, ours = (side.send("PATCH", f"{COLLECTION}/{name}", patch, media) for side in sides)
        done.append(patch)
        if {real[0], ours[0]} <= {400, 500}:
            continue  # Of several mistakes in one patch the real server names any.
        assert differences(unquoted(normal(ours)), unquoted(normal(real))) == [], f"after {json.dumps(done)}"


@pytest.mark.spec("S-04")
@thorough(80)
@given(sequence=st.lists(patches.filter(decided), min_size=2, max_size=4))
def test_strategic_merge_patches_are_answered_alike(sides: tuple[Side, Side], sequence: list[Obj]) -> None:
    compared(sides, "application/strategic-merge-patch+json", sequence)


pointers = st.sampled_from(
    [
        *("/metadata/labels/a", "/metadata/labels/c", "/metadata/labels", "/metadata/annotations", "/spec/replicas"),
        *("/metadata/annotations/x~1y", "/metadata/finalizers/-", "/metadata/finalizers/0", "/metadata/finalizers/9"),
        *(
            "/spec/template/spec/containers/0",
            "/spec/template/spec/containers/-1",
            "/spec/template/spec/containers/0/image",
        ),
        *(
            "/spec/template/spec/containers/1/args/1",
            "/spec/template/spec/containers/1/args/-",
            "/nothing/there",
            "nope",
            "",
        ),
        *("/spec/template/spec/containers/1/args", "/spec/template/spec/nodeSelector"),
    ]
)
values = st.sampled_from(["1", "x", 1, None, {"a": "b"}, ["1"], True, {"name": "z", "image": "1"}])
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "add", "replace"]), "path": pointers},
    optional={"value": values, "from": pointers},
)


def answered(operation: Obj) -> bool:
    """The real server hangs up on a replacement of, or a test against, the whole document without a value; ours
    answers 422."""
    return operation["path"] != "" or operation["op"] not in ("replace", "test") or "value" in operation


@pytest.mark.spec("S-04")
@thorough(80)
@given(sequence=st.lists(st.lists(operations.filter(answered), min_size=1, max_size=3), min_size=2, max_size=5))
def test_json_patches_are_answered_alike(sides: tuple[Side, Side], sequence: list[Any]) -> None:
    compared(sides, "application/json-patch+json", sequence)
