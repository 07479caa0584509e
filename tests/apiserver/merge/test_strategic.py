from __future__ import annotations

import copy
from typing import Any

import pytest

from konverge.apiserver.merge import strategic
from konverge.apiserver.merge.strategic_errors import StrategicError
from tests.apiserver.merge.kinds import CONFIG_MAP, DEPLOYMENT, builtin

POD_SPEC = builtin("", "v1", "Pod").fields["spec"].node
DEPLOYMENT_SPEC = DEPLOYMENT.fields["spec"].node


def a(**more: Any) -> Any:
    return {"name": "a", **more}


def b(**more: Any) -> Any:
    return {"name": "b", **more}


def c(**more: Any) -> Any:
    return {"name": "c", **more}


@pytest.mark.spec("S-04")
@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        # Items are merged by key, in the order of the patch, the server's own kept among them.
        ({"containers": [a(image="1")]}, {"containers": [a(image="2")]}, {"containers": [a(image="2")]}),
        ({"containers": [a(), b()]}, {"containers": [b(image="2"), c()]}, {"containers": [a(), b(image="2"), c()]}),
        ({"containers": [a(), b()]}, {"containers": [c(), a()]}, {"containers": [c(), a(), b()]}),
        ({"containers": [a(image="1", tty=True)]}, {"containers": [a(tty=None)]}, {"containers": [a(image="1")]}),
        ({}, {"containers": [a(image=None)]}, {"containers": [a()]}),
        # Lists without a merge strategy are replaced.
        ({"tolerations": [{"key": "x"}]}, {"tolerations": [{"key": "y"}]}, {"tolerations": [{"key": "y"}]}),
        ({"containers": [a(args=["1", "2"])]}, {"containers": [a(args=["3"])]}, {"containers": [a(args=["3"])]}),
        # Directives.
        ({"containers": [a(), b()]}, {"containers": [{"name": "a", "$patch": "delete"}]}, {"containers": [b()]}),
        ({"containers": [a(), b()]}, {"containers": [{"$patch": "replace"}, c()]}, {"containers": [c()]}),
        ({"containers": [a()]}, {"containers": [{"name": "x", "$patch": "delete"}]}, {"containers": [a()]}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "replace", "b": "2"}}, {"nodeSelector": {"b": "2"}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "delete"}}, {"nodeSelector": {}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"b": "2", "a": None}}, {"nodeSelector": {"b": "2"}}),
        ({}, {"nodeSelector": {"$patch": "delete"}}, {}),
        ({}, {"containers": [a(), {"name": "b", "$patch": "delete"}]}, {"containers": [a()]}),
        # The order of a list.
        (
            {"containers": [a(), b()]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            {"containers": [b(), a()]},
        ),
        (
            {"containers": [a(), b()]},
            {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [c()]},
            {"containers": [c(), a(), b()]},
        ),
        (
            {"containers": [a(), b(), c()]},
            {
                "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                "containers": [{"name": "b", "$patch": "delete"}],
            },
            {"containers": [c(), a()]},
        ),
        ({}, {"$setElementOrder/containers": [{"name": "a"}], "containers": [a()]}, {"containers": [a()]}),
        ({}, {"$setElementOrder/containers": [{"name": "a"}]}, {}),
        # A volume is of one kind only: retainKeys clears the others.
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
        ),
    ],
)
def test_a_strategic_patch_of_a_pod(live: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy((live, patch))
    assert strategic.apply(POD_SPEC, live, patch) == result
    assert (live, patch) == before


@pytest.mark.spec("S-04")
@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        (["a", "b"], {"finalizers": ["c", "a"]}, ["c", "a", "b"]),
        (["a", "b", "c"], {"$deleteFromPrimitiveList/finalizers": ["b"]}, ["a", "c"]),
        (["a", "b"], {"$setElementOrder/finalizers": ["b", "a"]}, ["b", "a"]),
        (
            ["a", "b"],
            {
                "$setElementOrder/finalizers": ["c", "a"],
                "finalizers": ["c"],
                "$deleteFromPrimitiveList/finalizers": ["b"],
            },
            ["c", "a"],
        ),
    ],
)
def test_a_strategic_patch_of_a_list_of_texts(live: list[str], patch: Any, result: list[str]) -> None:
    patched = strategic.apply(CONFIG_MAP, {"metadata": {"finalizers": live}}, {"metadata": patch})
    assert patched["metadata"]["finalizers"] == result


def test_retained_keys_of_a_strategy() -> None:
    live = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert strategic.apply(DEPLOYMENT_SPEC, live, patch) == {"strategy": {"type": "Recreate"}}


@pytest.mark.spec("S-04")
@pytest.mark.parametrize(
    ("patch", "code", "why"),
    [
        ({"containers": [{"image": "x"}]}, 500, "map: map[image:x] does not contain declared merge key: name"),
        (
            {"containers": [{"$patch": "delete"}]},
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        ({"containers": [a(**{"$patch": "odd"})]}, 500, "unknown patch type: odd in map: map[$patch:odd name:a]"),
        ({"containers": [{"$patch": "merge"}]}, 500, "merging lists cannot yet be specified in the patch"),
        ({"nodeSelector": {"$patch": "odd"}}, 500, "unknown patch type: odd in map: map[$patch:odd]"),
        (
            {"containers": [b()], "$setElementOrder/containers": [{"name": "a"}]},
            500,
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
        ({"$setElementOrder/containers": "x"}, 500, "expected a []interface {}, but received a string"),
        ({"$setElementOrder": []}, 400, "invalid patch format of setElementOrder list"),
        ({"$deleteFromPrimitiveList": []}, 400, "invalid patch format of primitive list"),
        ({"$retainKeys": "x"}, 400, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["a"], "b": 1}, 400, "invalid patch format of retainKeys"),
        ({"containers": [a(), "x"]}, 500, "list element types are not identical: [[map[name:a]] [map[name:a] x]]"),
        ({"containers": [[]]}, 500, "list element types are not identical: [[map[name:a]] [[]]]"),
    ],
)
def test_an_impossible_strategic_patch_fails(patch: Any, code: int, why: str) -> None:
    live = {"containers": [a()], "nodeSelector": {"x": "1"}}
    with pytest.raises(StrategicError) as failure:
        strategic.apply(POD_SPEC, live, patch)
    assert (failure.value.code, str(failure.value)) == (code, why)


def test_maps_of_structs_cannot_be_merged() -> None:
    node = builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition").fields["spec"].node.fields["versions"].node
    assert node.element is not None
    schema = node.element.fields["schema"].node.fields["openAPIV3Schema"].node
    live = {"properties": {"a": {"type": "object"}}}
    with pytest.raises(StrategicError, match="data type is not struct, instead is: map"):
        strategic.apply(schema, live, {"properties": {"a": {"type": "string"}}})
