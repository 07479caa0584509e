"""One file per operator: what it says, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.check.accounts import granted
from konverge.check.in_process import run_in_process
from konverge.check.manifests import CannotCheck
from konverge.check.model import Plan, Setup, Task
from konverge.check.old_apis import modern
from konverge.check.profile import Given, load
from konverge.check.subjects import from_file, from_target
from konverge.check.workload import basic
from konverge.operators.catalog import find

SAMPLE = "apiVersion: example.dev/v1\nkind: Thing\nmetadata: {name: first}\nspec: {size: 1}\n"
DEFINITION = """
apiVersion: apiextensions.k8s.io/VERSION
kind: CustomResourceDefinition
metadata: {name: things.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions: [{name: v1, served: true, storage: true}]
"""
PATCHES = """
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.dev}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.dev}
spec: {conversion: {strategy: Webhook}}
"""
BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects:
- {kind: ServiceAccount, name: manager, namespace: things-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: election}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: election}
subjects:
- {kind: ServiceAccount, name: manager, namespace: things-system}
"""


def write(folder: Path, text: str, version: str = "v1") -> Path:
    (folder / "crds").mkdir()
    (folder / "crds" / "thing.yaml").write_text(DEFINITION.replace("VERSION", version))
    (folder / "crds" / "kustomization.yaml").write_text("resources: [thing.yaml]\n")
    (folder / "sample.yaml").write_text(SAMPLE)
    (folder / "empty").mkdir()
    (folder / "patches").mkdir()
    (folder / "patches" / "webhook.yaml").write_text(PATCHES)
    (folder / "rbac.yaml").write_text(BINDING)
    program = folder / "manager"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = folder / "check.toml"
    path.write_text(text)
    return path


@pytest.mark.spec("K-03")
def test_paths_are_relative_to_the_file_and_variables_are_filled_in(tmp_path: Path) -> None:
    text = 'command = ["./manager", "--size=${SIZE}"]\ncrds = ["crds"]\nsample = "sample.yaml"\n'
    text += '[environment]\nA = "${SIZE}"\n'
    profile = load(write(tmp_path, text), {"SIZE": "7"})
    assert profile.subject.command == (str(tmp_path / "manager"), "--size=7")
    assert profile.subject.environment == {"A": "7"}
    assert [obj["metadata"]["name"] for obj in profile.setup.objects] == ["things.example.dev"]
    assert profile.samples[0]["kind"] == "Thing"
    assert profile.setup.account == ""
    assert any("permissions were not tested" in note for note in profile.notes)


@pytest.mark.spec("K-03")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('command = ["./manager"]\nsample = "sample.yaml"\nsamplez = 1\n', "samplez"),
        ('command = ["./manager"]\n', "sample"),
        ('command = ["./absent"]\nsample = "sample.yaml"\n', "build the operator"),
        ('command = ["./crds"]\nsample = "sample.yaml"\n', "crds is not there, or is no program"),
        ('command = ["absent-manager"]\nsample = "sample.yaml"\n', "absent-manager is in no folder of the PATH"),
        (
            'command = ["sh"]\nsample = "sample.yaml"\n[environment]\nPATH = "/nowhere"\n',
            "sh is in no folder of the PATH",
        ),
        ('command = ["./manager"]\nsample = "crds/kustomization.yaml"\n', "no apiVersion"),
        ('command = ["./manager"]\nsample = ["empty", "empty"]\n', "no object is in .*empty, .*empty: give the custom"),
        ('command = ["./manager"]\ncrds = ["sample.yaml"]\nsample = "sample.yaml"\n', "no CustomResourceDefinition is"),
        ('command = ["./manager"]\ncrds = ["patches"]\nsample = "sample.yaml"\n', "is in .*patches: give the files"),
        ('sample = "sample.yaml"\n', "command"),
        ('command = ["./manager"]\ntarget = "a:b"\nsample = "sample.yaml"\n', "either"),
        ('command = ["${NOT_SET}"]\nsample = "sample.yaml"\n', "NOT_SET"),
        ('command = ["./manager"]\nsample = "nowhere.yaml"\n', "nowhere.yaml"),
        ('command = ["./manager"]\nsample = "sample.yaml"\nnodes = "two"\n', "nodes"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(CannotCheck, match=says):
        load(write(tmp_path, text), {})


@pytest.mark.spec("K-151")
def test_patches_of_a_kustomization_define_nothing(tmp_path: Path) -> None:
    text = 'command = ["sh"]\ncrds = ["patches", "crds"]\nsample = "sample.yaml"\n'
    [definition] = load(write(tmp_path, text), {}).setup.objects
    assert definition["spec"]["group"] == "example.dev"


@pytest.mark.spec("K-151")
def test_a_sample_of_a_version_that_is_not_served_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, 'command = ["./manager"]\ncrds = ["crds"]\nsample = "sample.yaml"\n')
    definition = tmp_path / "crds" / "thing.yaml"
    definition.write_text(definition.read_text().replace("name: v1,", "name: v2,"))
    with pytest.raises(CannotCheck, match="serves v2; correct the sample"):
        from_file(path)


@pytest.mark.spec("K-04")
def test_the_account_is_the_one_that_the_roles_are_bound_to(tmp_path: Path) -> None:
    text = 'command = ["./manager"]\nrbac = ["rbac.yaml"]\nsample = "sample.yaml"\n'
    setup = load(write(tmp_path, text), {}).setup
    assert setup.account == "things-system/manager"
    created = [(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in setup.objects]
    assert created == [
        ("Namespace", "", "things-system"),
        ("ServiceAccount", "things-system", "manager"),
        ("RoleBinding", "things-system", "election"),
        ("ClusterRoleBinding", "", "manager"),
    ]


@pytest.mark.spec("K-04")
def test_a_subject_without_a_namespace_is_the_account_that_another_binding_names() -> None:
    objects, account = granted([binding("operator"), binding("operator", namespace="shop-system")], "shop")
    assert account == "shop-system/operator"
    subjects = [subject for obj in objects for subject in obj.get("subjects", ())]
    assert {subject["namespace"] for subject in subjects} == {"shop-system"}


def binding(name: str, **more: str) -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": name, **more}
    meta = {"name": "-".join([name, *more])}
    return {"apiVersion": "v1", "kind": "RoleBinding", "metadata": meta, "subjects": [subject]}


@pytest.mark.spec("K-04")
def test_of_several_accounts_one_has_to_be_named() -> None:
    manifests = [binding("database"), binding("operator")]
    with pytest.raises(CannotCheck, match=r"shop/database, shop/operator"):
        granted(manifests, "shop")
    objects, account = granted(manifests, "shop", "operator")
    assert account == "shop/operator"
    assert all(subject["namespace"] == "shop" for obj in objects for subject in obj.get("subjects", ()))


@pytest.mark.spec("K-09")
def test_old_definitions_are_refused_unless_old_apis_are_asked_for(tmp_path: Path) -> None:
    text = 'command = ["./manager"]\ncrds = ["crds"]\nsample = "sample.yaml"\n'
    path = write(tmp_path, text, "v1beta1")
    with pytest.raises(CannotCheck, match="old_apis = true"):
        load(path, {})
    path.write_text("old_apis = true\n" + text)
    (tmp_path / "crds" / "thing.yaml").write_text(DEFINITION.replace("VERSION", "v1beta1") + "  version: v1\n")
    profile = load(path, {})
    assert profile.setup.old_apis
    assert profile.setup.objects[0]["apiVersion"] == "apiextensions.k8s.io/v1"
    assert any("apiextensions.k8s.io/v1beta1" in note for note in profile.notes)


@pytest.mark.spec("K-09")
def test_what_versions_shared_is_given_to_each() -> None:
    spec = {
        "group": "example.dev",
        "versions": [{"name": "v1", "served": True, "storage": True}, {"name": "v2", "served": True, "storage": False}],
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}],
        "subresources": {"status": {}},
        "validation": {
            "openAPIV3Schema": {"properties": {"spec": {"properties": {"size": {"type": "integer"}, "any": {}}}}}
        },
    }
    obj = {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {},
        "spec": spec,
    }
    versions = modern(obj)["spec"]["versions"]
    assert [version["name"] for version in versions] == ["v1", "v2"]
    for version in versions:
        schema = version["schema"]["openAPIV3Schema"]
        assert version["subresources"] == {"status": {}}
        assert version["additionalPrinterColumns"][0]["jsonPath"] == ".spec.size"
        assert schema["type"] == schema["properties"]["spec"]["type"] == "object"
        assert schema["properties"]["spec"]["properties"]["any"] == {"x-kubernetes-preserve-unknown-fields": True}
        assert schema["x-kubernetes-preserve-unknown-fields"] is True  # the default of v1beta1


def test_a_list_whose_keys_may_be_absent_is_no_map() -> None:
    ports = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {"port": {"type": "integer"}, "protocol": {"type": "string"}},
        },
    }
    schema = {"properties": {"ports": ports, "kept": {**ports, "x-kubernetes-list-map-keys": ["port"]}}}
    spec = {"group": "x.io", "version": "v1", "names": {}, "validation": {"openAPIV3Schema": schema}}
    old = {"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "spec": spec}
    made = modern({**old, "metadata": {"name": "a"}})["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert "x-kubernetes-list-type" not in made["ports"]
    assert made["kept"]["x-kubernetes-list-map-keys"] == ["port"]


@pytest.mark.spec("K-04")
def test_an_operator_in_python_has_the_roles_that_its_declarations_ask_for() -> None:
    checked = from_target("webapp")
    assert checked.setup.account == "operators/webapp-operator"
    task = Task(
        subject=checked.subject,
        setup=msgspec.structs.replace(checked.setup, nodes=1),
        steps=basic(checked.samples[:1])[:1],
        plan=Plan("reference"),
    )
    run = run_in_process(task, find("webapp"))
    assert any(exchange.place is not None for exchange in run.exchanges)
    assert [exchange for exchange in run.exchanges if exchange.status == 403] == []
    fewer = [obj for obj in checked.setup.objects if obj["kind"] != "ClusterRole"]
    setup = Setup(objects=tuple(fewer), account="operators/webapp-operator", nodes=1)
    run = run_in_process(msgspec.structs.replace(task, setup=setup), find("webapp"))
    assert not any(exchange.place is not None for exchange in run.exchanges)


@pytest.mark.spec("K-92")
def test_an_operator_in_python_takes_the_options_of_programs_too(tmp_path: Path) -> None:
    (tmp_path / "objects.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: before, namespace: default}}"
    )
    (tmp_path / "stand-ins.yaml").write_text("pods: []")
    given = Given(objects=("objects.yaml",), simulate="stand-ins.yaml")
    plain, checked = from_target("webapp"), from_target("webapp", (), given, tmp_path)
    assert checked.setup.objects[:-1] == plain.setup.objects, "definitions and roles come first"
    assert checked.setup.objects[-1]["metadata"]["name"] == "before"
    assert checked.setup.simulate == "pods: []"
    assert (checked.samples, checked.roles_given) == (plain.samples, False)


@pytest.mark.spec("K-92")
def test_roles_that_are_given_replace_those_of_the_declarations(tmp_path: Path) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "shop", "namespace": "mine"}}
    (tmp_path / "rbac.json").write_bytes(msgspec.json.encode(account))
    checked = from_target("webapp", (), Given(rbac=("rbac.json",), account="mine/shop"), tmp_path)
    assert (checked.setup.account, checked.roles_given) == ("mine/shop", True)
    assert not [obj for obj in checked.setup.objects if obj["kind"] == "ClusterRole"]
