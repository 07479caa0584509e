"""The charts that `konverge chart` makes, used by the real helm on the embedded API server and on the real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cli.installation import Installation
from konverge.cli.main import main
from konverge.cli.management import Management
from konverge.operators.catalog import SUMMARIES, find
from konverge.runtime.rbac import rules_for
from tests.real.embedded import Tool

Obj = dict[str, Any]
ON = "management.enabled=true"
NAMED = ("app.kubernetes.io/name", "app.kubernetes.io/part-of")


@pytest.fixture
def helm(helm_program: Path, either_kubeconfig: Path, tmp_path: Path) -> Tool:
    return Tool(helm_program, either_kubeconfig, tmp_path)


@pytest.fixture(params=SUMMARIES)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """The name of an operator, and its chart."""
    assert main(["chart", request.param, "--dir", str(tmp_path)]) == 0
    return request.param, tmp_path / f"{request.param}-operator"


@pytest.fixture
def nacos(tmp_path: Path) -> Path:
    assert main(["chart", "nacos", "--dir", str(tmp_path)]) == 0
    return tmp_path / "nacos-operator"


@pytest.mark.spec("N-21")
def test_helm_lints_and_packages_the_chart(helm: Tool, made: tuple[str, Path]) -> None:
    _, folder = made
    assert "0 chart(s) failed" in helm("lint", "--strict", str(folder))
    assert f"{folder.name}-0.1.0.tgz" in helm("package", str(folder), "--destination", str(folder.parent))


def test_the_chart_renders_the_manifests(helm: Tool, made: tuple[str, Path]) -> None:
    name, folder = made
    text = helm(
        "template", folder.name, str(folder), "--namespace", "tools", "--set", "monitoring.enabled=true",
        "--set", "metrics.secure=true",
    )  # fmt: skip
    rendered = {key(obj): plain(obj) for obj in installed(text)}
    plan = Installation(
        operators=[find(name)], namespace="tools", image="konverge:0.1.0", monitoring=True, secure_metrics=True
    )
    objs = without_webhooks(plan, plan.everything())
    wanted = {key(obj): plain(obj) for obj in objs if not key(obj).startswith(("Custom", "Namespace"))}
    assert rendered == wanted


def test_the_chart_can_limit_the_operator_to_namespaces(helm: Tool, made: tuple[str, Path]) -> None:
    name, folder = made
    text = helm("template", folder.name, str(folder), "--namespace", "tools", "--set", "watchNamespaces={a,b}")
    rendered = installed(text)
    plan = Installation(operators=[find(name)], namespace="tools", watched=("a", "b"))
    wanted = {role_of(obj): rules(obj) for obj in without_webhooks(plan, plan.access()) if "rules" in obj}
    assert {role_of(obj): rules(obj) for obj in rendered if "rules" in obj} == wanted
    (deployment,) = (obj for obj in rendered if obj["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--watch-namespace=a", "--watch-namespace=b"} <= set(arguments)


@pytest.mark.spec("N-21")
def test_helm_installs_upgrades_and_uninstalls_the_chart(helm: Tool, made: tuple[str, Path], kubectl: Path) -> None:
    name, folder = made
    space = f"chart-{name}"
    kubectl_tool = Tool(kubectl, helm.kubeconfig, helm.home)
    helm("install", folder.name, str(folder), "--namespace", space, "--create-namespace")
    kubectl_tool.serves(find(name).definitions()[0]["metadata"]["name"])
    kubectl_tool("get", "deployment,service,serviceaccount,pdb", folder.name, "--namespace", space)
    helm("upgrade", folder.name, str(folder), "--namespace", space, "--set", "replicas=3,image.tag=2.0.0")
    deployment = kubectl_tool.json("get", "deployment", folder.name, "--namespace", space)
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "konverge:2.0.0"
    helm("uninstall", folder.name, "--namespace", space)
    assert "not found" in kubectl_tool.fails("get", "deployment", folder.name, "--namespace", space)


@pytest.mark.spec("N-21", "N-22")
@pytest.mark.parametrize("tls", ["", "certificate"], ids=["proxy", "tls"])
def test_the_chart_renders_the_management_service_of_the_manifests(helm: Tool, nacos: Path, tls: str) -> None:
    way = f"management.tls.secretName={tls}" if tls else "management.behindProxy=true"
    text = helm("template", "nacos-operator", str(nacos), "--namespace", "tools", "--set", f"{ON},{way}")
    rendered = {key(obj): plain(obj) for obj in installed(text) if is_management(obj)}
    plan = Management(operator="nacos-operator", namespace="tools", image="konverge:0.1.0", tls_secret=tls)
    assert rendered == {key(obj): plain(obj) for obj in plan.everything()}


@pytest.mark.spec("N-21", "N-22")
def test_the_management_service_is_installed_and_its_account_may_do_nothing(
    helm: Tool, nacos: Path, kubectl: Path
) -> None:
    space, name = "chart-management", "console-management"
    kubectl_tool = Tool(kubectl, helm.kubeconfig, helm.home)
    ingress = "management.ingress.enabled=true,management.ingress.host=nacos.example.com"
    secret = "management.tls.secretName=certificate,management.ingress.tlsSecretName=front"
    values = ["--namespace", space, "--set", f"{ON},{ingress},{secret},management.catalogue.versions={{2.4.3,3.0.3}}"]
    assert "0 chart(s) failed" in helm("lint", "--strict", str(nacos), *values[2:])
    kubectl_tool("delete", "crd", "nacos.nacos.io", "--ignore-not-found")  # a release of another name has left it
    notes = helm("install", "console", str(nacos), "--create-namespace", *values)
    assert "port-forward service/console-management 8443:443" in notes
    kubectl_tool("get", "deployment,service,serviceaccount,pdb,ingress", name, "--namespace", space)
    for role in ("console-viewer", "console-editor"):
        kubectl_tool("get", "clusterrole", role)
    account = f"--as=system:serviceaccount:{space}:{name}"
    for verb in ("get", "list", "create", "delete"):
        assert "no" in kubectl_tool.run("auth", "can-i", verb, "nacos.nacos.io", "-A", account).stdout
    pod = kubectl_tool.json("get", "deployment", name, "--namespace", space)["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert "--versions=2.4.3,3.0.3" in pod["containers"][0]["args"]
    helm("upgrade", "console", str(nacos), "--namespace", space, "--set", "management.enabled=false")
    assert "not found" in kubectl_tool.fails("get", "deployment", name, "--namespace", space)
    helm("uninstall", "console", "--namespace", space)


@pytest.mark.spec("N-22")
def test_the_management_service_needs_tls_or_a_proxy(helm: Tool, nacos: Path) -> None:
    assert "tokens would travel in the clear" in helm.fails("template", "x", str(nacos), "--set", ON)


def test_a_value_that_is_misspelt_is_refused(helm: Tool, made: tuple[str, Path]) -> None:
    _, folder = made
    assert "'replica' not allowed" in helm.fails("template", "x", str(folder), "--set", "replica=3")


def installed(text: str) -> list[Obj]:
    """What a chart installs, without definitions and without its roles for webhooks: test_webhook_charts has those."""
    objs = [obj for obj in yaml.safe_load_all(text) if obj and obj["kind"] != "CustomResourceDefinition"]
    return [obj for obj in objs if "Role" not in obj["kind"] or not obj["metadata"]["name"].endswith("-webhook")]


def without_webhooks(plan: Installation, objs: list[Obj]) -> list[Obj]:
    """The same of the manifests, where one role grants everything."""
    granted = rules_for(plan.webhooks.permissions())
    for obj in objs:
        if "rules" in obj:
            obj["rules"] = [rule for rule in obj["rules"] if rule not in granted]
    return [obj for obj in objs if obj.get("rules") != []]


def key(obj: Obj) -> str:
    return f"{obj['kind']}/{obj['metadata']['name'].removesuffix('-leader')}"


def is_management(obj: Obj) -> bool:
    return str(obj["metadata"]["labels"]["app.kubernetes.io/name"]).endswith("-management")


def role_of(obj: Obj) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['kind']}"


def rules(obj: Obj) -> list[str]:
    return sorted(json.dumps(rule, sort_keys=True) for rule in obj["rules"])


def plain(obj: Obj) -> Obj:
    """Without what a chart has beyond the plain manifests."""
    kept: Obj = json.loads(json.dumps(obj).replace('-leader"', '"'))
    labels = kept["metadata"].get("labels", {})
    kept["metadata"]["labels"] = {name: labels[name] for name in NAMED if name in labels}
    if kept["kind"] == "Deployment":
        container = kept["spec"]["template"]["spec"]["containers"][0]
        container.pop("imagePullPolicy", None)
    if kept["kind"] == "ServiceMonitor":
        for endpoint in kept["spec"]["endpoints"]:
            endpoint.pop("interval", None)
    if "rules" in kept:
        kept["rules"] = rules(kept)
    return kept
