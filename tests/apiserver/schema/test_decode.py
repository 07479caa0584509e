from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.schema import (
    TypeNode,
    compiled_decoder,
    decode,
    exact_decoder,
    lookup,
)
from konverge.apiserver.schema.decode import DecodeError
from konverge.apiserver.status import ApiError


def node(group: str, version: str, kind: str) -> TypeNode:
    type_node = lookup(group, version, kind)
    assert type_node is not None
    return type_node


CONFIG_MAP, POD, SECRET = (node("", "v1", kind) for kind in ("ConfigMap", "Pod", "Secret"))
DEPLOYMENT, LEASE = node("apps", "v1", "Deployment"), node("coordination.k8s.io", "v1", "Lease")


def decoded(node: TypeNode, body: Any) -> Any:
    return decode.from_obj(node, body).obj


@pytest.mark.spec("S-03")
@pytest.mark.parametrize(
    ("node", "body", "written"),
    [
        (CONFIG_MAP, {}, {"metadata": {}}),
        (CONFIG_MAP, {"data": None, "binaryData": {}, "immutable": False}, {"metadata": {}, "immutable": False}),
        (CONFIG_MAP, {"data": {"a": None, "b": ""}}, {"metadata": {}, "data": {"a": "", "b": ""}}),
        (
            CONFIG_MAP,
            {"metadata": {"name": "", "labels": {}, "creationTimestamp": None, "generation": 0}},
            {"metadata": {}},
        ),
        (
            DEPLOYMENT,
            {"spec": {"replicas": 0, "minReadySeconds": 0, "paused": False}},
            {
                "metadata": {},
                "spec": {
                    "replicas": 0,
                    "selector": None,
                    "strategy": {},
                    "template": {"metadata": {}, "spec": {"containers": None}},
                },
                "status": {},
            },
        ),
        (
            SECRET,
            {"data": {"a": "YR==", "b": "Y\nQ==", "c": None}},
            {"metadata": {}, "data": {"a": "YQ==", "b": "YQ==", "c": ""}},  # null until it is stored
        ),
        (
            LEASE,
            {"spec": {"renewTime": "2020-01-01T02:00:00.000001+02:00"}},
            {"metadata": {}, "spec": {"renewTime": "2020-01-01T00:00:00.000001Z"}},
        ),
    ],
)
def test_values_are_written_as_go_writes_them(node: TypeNode, body: Any, written: Any) -> None:
    assert decoded(node, body) == written


def test_structs_that_are_not_set_are_written_all_the_same() -> None:
    body = {
        "spec": {
            "containers": [{"name": "c", "env": [{"name": "e", "valueFrom": {"resourceFieldRef": {"resource": "x"}}}]}]
        }
    }
    container = decoded(POD, body)["spec"]["containers"][0]
    assert container["resources"] == {}
    assert container["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"


def test_quantities_become_canonical() -> None:
    body = {
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 1.5, "memory": "1024Ki", "x": "1000m"}}}]}
    }
    limits = decoded(POD, body)["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "1500m", "memory": "1Mi", "x": "1"}


@pytest.mark.spec("S-03")
@pytest.mark.parametrize(
    ("node", "body", "text"),
    [
        (
            CONFIG_MAP,
            {"data": "x"},
            "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            CONFIG_MAP,
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            CONFIG_MAP,
            {"metadata": []},
            "json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
        ),
        (
            CONFIG_MAP,
            {"metadata": {"labels": {"a": True}}},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            DEPLOYMENT,
            {"spec": {"replicas": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENT,
            {"spec": {"replicas": 99999999999}},
            "json: cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            POD,
            {"spec": {"containers": [{"imagePullPolicy": 1}]}},
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy "
            "of type v1.PullPolicy",
        ),
        (
            POD,
            {"spec": {"volumes": [{"emptyDir": []}]}},
            "json: cannot unmarshal array into Go struct field Volume.spec.volumes.VolumeSource.emptyDir "
            "of type v1.EmptyDirVolumeSource",
        ),
        (SECRET, {"data": {"a": "%%%"}}, "illegal base64 data at input byte 0"),
        (
            LEASE,
            {"spec": {"renewTime": "yesterday"}},
            'parsing time "yesterday" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "yesterday" as "2006"',
        ),
        (
            LEASE,
            {"spec": {"renewTime": 5}},
            "json: cannot unmarshal number into Go struct field LeaseSpec.spec.renewTime of type string",
        ),
        (
            POD,
            {"spec": {"containers": [{"resources": {"limits": {"cpu": "many"}}}]}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_wrong_types_give_the_messages_of_the_codec(node: TypeNode, body: Any, text: str) -> None:
    with pytest.raises(DecodeError) as failure:
        decode.from_json(node, json.dumps(body).encode())
    assert str(failure.value) == text


def test_the_first_wrong_type_is_named_unless_a_value_refuses_itself() -> None:
    body: Any = {
        "spec": {"activeDeadlineSeconds": "x", "containers": [{"name": 1, "resources": {"limits": {"cpu": "?"}}}]}
    }
    with pytest.raises(DecodeError, match="quantities must match"):
        decode.from_obj(POD, body)
    del body["spec"]["containers"][0]["resources"]
    with pytest.raises(DecodeError, match=r"PodSpec\.spec\.activeDeadlineSeconds"):
        decode.from_obj(POD, body)


@pytest.mark.spec("S-03")
def test_strict_errors_are_in_the_order_of_the_document() -> None:
    body = (
        b'{"metadata":{"name":"c","bogus":1,"labels":{"a":"1","a":"2"}},"data":{"x":"1","x":"2"},'
        b'"extra":true,"extra":false,"Data":{}}'
    )
    decoded = decode.from_json(CONFIG_MAP, body)
    assert list(decoded.strict) == [
        'unknown field "metadata.bogus"',
        'duplicate field "metadata.labels.a"',
        'duplicate field "data.x"',
        'unknown field "extra"',
        'unknown field "Data"',
    ]
    assert decoded.obj == {"metadata": {"name": "c", "labels": {"a": "2"}}, "data": {"x": "2"}}


def test_paths_of_unknown_fields_have_indices() -> None:
    decoded = decode.from_obj(POD, {"spec": {"containers": [{"name": "a"}, {"name": "b", "bar": 1}]}})
    assert list(decoded.strict) == ['unknown field "spec.containers[1].bar"']


def test_at_most_a_hundred_strict_errors_are_reported() -> None:
    decoded = decode.from_obj(CONFIG_MAP, {f"x{i}": 1 for i in range(300)})
    assert len(decoded.strict) == 100


def test_field_validation_decides_what_strict_errors_do() -> None:
    body = b'{"x":1}'
    assert decode.strict(CONFIG_MAP, body, kind="ConfigMap", version="v1").strict == ['unknown field "x"']
    assert decode.strict(CONFIG_MAP, body, kind="ConfigMap", version="v1", validation="Ignore").strict == ()
    with pytest.raises(ApiError) as failure:
        decode.strict(CONFIG_MAP, body, kind="ConfigMap", version="v1", validation="Strict")
    assert failure.value.code == 400
    assert failure.value.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "x"'
    )


@pytest.mark.parametrize(
    ("body", "repeats"),
    [
        (b'{"a":1}', False),
        (b'{"a":"x:y","b":["c:d"]}', False),
        (b'{"a":"\\":"}', False),
        (b'{"a":1,"a":2}', True),
        (b'{"a":{"b":1,"b":2},"c":":"}', True),
    ],
)
def test_repeated_fields_are_suspected(body: bytes, repeats: bool) -> None:
    assert decode.may_repeat(body, json.loads(body)) is repeats


def test_duplicates_without_a_type() -> None:
    assert decode.duplicates(b'{"a":{"b":1,"b":2},"c":[{"d":1,"d":2}]}') == [
        'duplicate field "a.b"',
        'duplicate field "c[0].d"',
    ]


def test_schemas_in_definitions_decode_themselves() -> None:
    crd = node("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "odd": 1}}}, "odd": 1}
    body = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    decoded = decode.from_obj(crd, body)
    assert list(decoded.strict) == ['unknown field "spec.versions[0].schema.openAPIV3Schema.odd"']
    kept = decoded.obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert kept["properties"]["a"]["items"] == {"type": "string"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"spec": "x"}, "cannot restore struct from: string"),
        ({"spec": {"template": {"spec": {"containers": {}}}}}, "cannot restore slice from map"),
        ({"metadata": {"labels": []}}, "cannot restore map from slice"),
        ({"spec": {"replicas": "x"}}, "unrecognized type: int32"),
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"metadata": {"name": 1}}, "cannot convert int64 to string"),
        ({"metadata": {"name": True}}, "unrecognized type: string"),
    ],
)
def test_the_result_of_a_merge_gives_the_messages_of_the_converter(body: Any, text: str) -> None:
    with pytest.raises(DecodeError) as failure:
        decode.from_patched(DEPLOYMENT, body)
    assert str(failure.value) == text


def test_unknown_fields_of_a_merge_come_sorted() -> None:
    decoded = decode.from_patched(CONFIG_MAP, {"z": 1, "metadata": {"b": 1, "a": 2}, "data": {"k": "v"}})
    assert list(decoded.strict) == ['unknown field "metadata.a"', 'unknown field "metadata.b"', 'unknown field "z"']


texts = st.text(max_size=5)
maps = st.dictionaries(texts, texts, max_size=3)
pods = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"name": texts, "labels": maps, "generation": st.integers(0, 9)}
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "nodeSelector": st.one_of(st.none(), maps),
                "activeDeadlineSeconds": st.one_of(st.none(), st.integers(0, 5)),
                "hostNetwork": st.booleans(),
                "containers": st.one_of(
                    st.none(),
                    st.lists(
                        st.fixed_dictionaries(
                            {"name": texts},
                            optional={
                                "args": st.lists(texts, max_size=2),
                                "resources": st.fixed_dictionaries(
                                    {},
                                    optional={"limits": st.dictionaries(texts, st.sampled_from(["1", "1000m", "1Ki"]))},
                                ),
                                "tty": st.booleans(),
                            },
                        ),
                        max_size=2,
                    ),
                ),
            },
        ),
    },
)


@given(pods)
def test_both_decoders_agree(pod: Any) -> None:
    assert compiled_decoder.decoder(POD)(pod) == exact_decoder.Exact().decode(POD, pod)


@given(pods)
def test_what_is_written_reads_back_the_same(pod: Any) -> None:
    once = decode.normalise(POD, pod)
    assert decode.normalise(POD, once) == once
