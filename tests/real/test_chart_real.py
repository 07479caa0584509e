"""The charts that `konverge chart` makes, in the hands of the real helm and on the real API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cli.installation import Installation
from konverge.cli.main import main
from konverge.operators.catalog import SUMMARIES, find
from tests.real.embedded import Tool

Obj = dict[str, Any]
NAMED = ("app.kubernetes.io/name", "app.kubernetes.io/part-of")


@pytest.fixture
def helm(binaries: Path, either_kubeconfig: Path, tmp_path: Path) -> Tool:
    if not (binaries / "helm").exists():
        pytest.skip(f"no helm in {binaries}")
    return Tool(binaries / "helm", either_kubeconfig, tmp_path)


@pytest.fixture(params=SUMMARIES)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """The name of an operator, and its chart."""
    assert main(["chart", request.param, "--dir", str(tmp_path)]) == 0
    return request.param, tmp_path / f"{request.param}-operator"


@pytest.mark.spec("N-21")
def test_it_is_linted_and_packed(helm: Tool, made: tuple[str, Path]) -> None:
    _, folder = made
    assert "0 chart(s) failed" in helm("lint", "--strict", str(folder))
    assert f"{folder.name}-0.1.0.tgz" in helm("package", str(folder), "--destination", str(folder.parent))


def test_it_says_the_same_as_the_manifests(helm: Tool, made: tuple[str, Path]) -> None:
    name, folder = made
    text = helm(
        "template", folder.name, str(folder), "--namespace", "tools", "--set", "metrics.serviceMonitor.enabled=true"
    )
    rendered = {key(one): plain(one) for one in yaml.safe_load_all(text) if one}
    plan = Installation(operators=[find(name)], namespace="tools", image="konverge:0.1.0", service_monitor=True)
    wanted = {key(one): plain(one) for one in plan.everything() if not key(one).startswith(("Custom", "Namespace"))}
    assert rendered == wanted


def test_it_looks_at_some_namespaces_only(helm: Tool, made: tuple[str, Path]) -> None:
    name, folder = made
    text = helm("template", folder.name, str(folder), "--namespace", "tools", "--set", "watchNamespaces={a,b}")
    found = [one for one in yaml.safe_load_all(text) if one]
    plan = Installation(operators=[find(name)], namespace="tools", watched=("a", "b"))
    wanted = {role_of(one): rules(one) for one in plan.access() if "rules" in one}
    assert {role_of(one): rules(one) for one in found if "rules" in one} == wanted
    (deployment,) = (one for one in found if one["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--watch-namespace=a", "--watch-namespace=b"} <= set(arguments)


@pytest.mark.spec("N-21")
def test_it_is_installed_changed_and_taken_away(helm: Tool, made: tuple[str, Path], kubectl: Path) -> None:
    name, folder = made
    space = f"chart-{name}"
    hand = Tool(kubectl, helm.kubeconfig, helm.home)
    helm("install", folder.name, str(folder), "--namespace", space, "--create-namespace")
    hand(
        "wait", "--for=condition=Established", f"crd/{find(name).definitions()[0]['metadata']['name']}", "--timeout=60s"
    )
    hand("get", "deployment,service,serviceaccount,pdb", folder.name, "--namespace", space)
    helm("upgrade", folder.name, str(folder), "--namespace", space, "--set", "replicas=3,image.tag=2.0.0")
    deployment = hand.json("get", "deployment", folder.name, "--namespace", space)
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "konverge:2.0.0"
    helm("uninstall", folder.name, "--namespace", space)
    assert "not found" in hand.fails("get", "deployment", folder.name, "--namespace", space)


def test_a_value_that_is_misspelt_is_refused(helm: Tool, made: tuple[str, Path]) -> None:
    _, folder = made
    assert "'replica' not allowed" in helm.fails("template", "x", str(folder), "--set", "replica=3")


def key(one: Obj) -> str:
    return f"{one['kind']}/{one['metadata']['name'].removesuffix('-leader')}"


def role_of(one: Obj) -> str:
    return f"{one['metadata'].get('namespace', '')}/{one['kind']}"


def rules(one: Obj) -> list[str]:
    return sorted(json.dumps(rule, sort_keys=True) for rule in one["rules"])


def plain(one: Obj) -> Obj:
    """Without what a chart has beyond the plain manifests."""
    found: Obj = json.loads(json.dumps(one).replace('-leader"', '"'))
    labels = found["metadata"].get("labels", {})
    found["metadata"]["labels"] = {name: labels[name] for name in NAMED if name in labels}
    if found["kind"] == "Deployment":
        container = found["spec"]["template"]["spec"]["containers"][0]
        container.pop("imagePullPolicy", None)
    if found["kind"] == "ServiceMonitor":
        for endpoint in found["spec"]["endpoints"]:
            endpoint.pop("interval", None)
    if "rules" in found:
        found["rules"] = rules(found)
    return found
