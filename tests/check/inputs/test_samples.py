"""Samples and manifests that no run could use are refused before any, with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge.check.inputs import Admission
from konverge.check.inputs.references import references
from konverge.check.inputs.samples import require_usable
from konverge.check.manifests import CannotCheck, read_objects
from konverge.check.model import Apply

from .test_fields import definition_of, sample_of

SAMPLE = sample_of({})
DEFINITION = definition_of({})
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
BOTH_NULL: dict[str, Any] = {"data": None, "stringData": None}


OF_ONE_VERSION = {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": None, "version": "v1"}}
"""As definitions of apiextensions.k8s.io/v1beta1 may be."""


@pytest.mark.spec("K-151")
@pytest.mark.parametrize(
    ("sample", "definitions", "says"),
    [
        ({**SAMPLE, "apiVersion": "example.com/v2"}, [DEFINITION], "v2 Shop corner .* serves v1; correct the sample"),
        ({**SAMPLE, "apiVersion": "example.com/v2"}, [OF_ONE_VERSION], "serves v1; correct the sample"),
        (SAMPLE, [definition_of({}, served=False)], "serves no version at all"),
        ({**SAMPLE, "kind": "Shp"}, [DEFINITION], "nothing defines the kind of the sample example.com/v1 Shp corner"),
        ({**SAMPLE, "apiVersion": "example.org/v1"}, [DEFINITION], "or give the definition with --crds"),
        ({**CONFIG, "apiVersion": "v2"}, [DEFINITION], "nothing defines the kind of the sample v2 ConfigMap settings"),
        (
            {**SAMPLE, "metadata": {"generateName": "corner-"}},
            [],
            "kind Shop has no metadata.name, only generateName: give",
        ),
        ({**CONFIG, "metadata": {"name": "", "generateName": "a-"}}, [], "kind ConfigMap has no metadata.name"),
    ],
)
def test_a_sample_that_no_run_could_create_is_refused(
    sample: dict[str, Any], definitions: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(CannotCheck, match=says):
        require_usable([CONFIG, sample], definitions)


@pytest.mark.spec("K-151")
@pytest.mark.parametrize(
    ("samples", "definitions"),
    [
        ([CONFIG, SAMPLE], [DEFINITION]),
        ([CONFIG, SAMPLE], [OF_ONE_VERSION]),
        ([SAMPLE], []),  # an operator may make its definitions itself
        ([DEFINITION, SAMPLE], [definition_of({}) | {"spec": {**DEFINITION["spec"], "group": "other.io"}}]),
        ([{**SAMPLE, "apiVersion": "apps/v1", "kind": "Deployment"}], [DEFINITION]),
    ],
    ids=[
        "defined and built in",
        "defined in one version",
        "no definitions",
        "defined among the samples",
        "built in, of a group",
    ],
)
def test_a_sample_that_may_be_served_is_taken(samples: list[dict[str, Any]], definitions: list[dict[str, Any]]) -> None:
    require_usable(samples, definitions)


def test_a_version_that_a_definition_lacks_is_said_by_what_compiles_it() -> None:
    with pytest.raises(LookupError, match="no version 'v2', only v1: correct the sample"):
        Admission(DEFINITION, "v2")


@pytest.mark.spec("K-151")
@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
@pytest.mark.parametrize(
    ("contents", "rotated", "empty"),
    [
        (BOTH_NULL, BOTH_NULL, BOTH_NULL),
        (
            {"stringData": {"a": None, "b": "x"}},
            {"stringData": {"a": "2", "b": "x2"}},
            {"stringData": {"a": "", "b": ""}},
        ),
        ({}, {}, {}),
    ],
)
def test_what_is_null_in_a_secret_is_rotated_as_what_is_empty(
    kind: str, contents: dict[str, Any], rotated: dict[str, Any], empty: dict[str, Any]
) -> None:
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "login"}}
    done = {
        name.rpartition(" ")[2]: action.object
        for name, action, _, _ in references([{**obj, **contents}], sample_of({"secretName": "login"}))
        if isinstance(action, Apply)
    }
    assert done == {"rotated": {**obj, **rotated}, "empty": {**obj, **empty}}


@pytest.mark.spec("K-151")
def test_a_null_value_of_a_secrets_data_is_rotated_in_base64() -> None:
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"a": None}}
    _, rotated, _, _ = next(references([obj], sample_of({"secretName": "login"})))
    assert isinstance(rotated, Apply)
    assert rotated.object["data"] == {"a": "Mg=="}


@pytest.mark.spec("K-151")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [b\n c: }}\n", "given.yaml is no YAML or JSON: (.|\n)*; correct it"),
        ("a: 0x" + "1" * 2000, "given.yaml is no YAML or JSON"),
        ("just text", "given.yaml: a document has no apiVersion"),
        ("{kind: List, items: [{apiVersion: v1, kind: Secret}]}", "no apiVersion, kind or metadata.name"),
        ("{kind: List, items: [3]}", "no apiVersion, kind or metadata.name"),
        ("{apiVersion: 1, kind: Secret, metadata: {name: a}}", "no apiVersion, kind or metadata.name"),
        ("{apiVersion: v1, kind: [], metadata: {name: a}}", "no apiVersion, kind or metadata.name"),
        ("{apiVersion: '', kind: Secret, metadata: {name: a}}", "no apiVersion, kind or metadata.name"),
    ],
)
def test_a_file_without_objects_is_refused_with_its_name(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "given.yaml"
    path.write_text(text)
    with pytest.raises(CannotCheck, match=says):
        read_objects([path])


@pytest.mark.spec("K-151")
def test_lists_are_taken_apart_and_what_is_no_object_is_left_out_of_a_folder(tmp_path: Path) -> None:
    item = "{apiVersion: v1, kind: Secret, metadata: {name: a}}"
    (tmp_path / "list.yaml").write_text(f"{{kind: SecretList, items: [{item}, {{kind: Secret}}, 3]}}\n---\n---\n{item}")
    (tmp_path / "nothing.yaml").write_text("{kind: List, items: }\n---\n{kind: List, items: 3}\n---\ntext")
    assert [obj["metadata"]["name"] for obj in read_objects([tmp_path])] == ["a", "a"]
    assert read_objects([tmp_path], ["ConfigMap"]) == []
