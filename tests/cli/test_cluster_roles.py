"""Roles of an operator of several clusters: each cluster grants what is done in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cli.charts import chart
from konverge.cli.checks import _permissions
from konverge.cli.installation import Installation
from konverge.cli.main import main
from konverge.client import Client, Static
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import Namespace
from konverge.objects.kinds.rbac_v1 import Role
from konverge.objects.resource import Resource
from konverge.operators.loading.references import load
from konverge.runtime.clusters import fleet as loaded
from konverge.runtime.rbac import MissingPermissions
from konverge.sim.cluster import Cluster

assert loaded  # before a loop runs
pytestmark = pytest.mark.spec("O-03", "R-84")

PROGRAM = """
from konverge import Context, Controller, Manager, Use, Watches
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, Pod, Service
from konverge.runtime.clusters import KubeconfigSecrets


async def nothing(ctx): ...


manager = Manager(name="greeter", clusters=KubeconfigSecrets("fleet"))
manager.add(Controller(Namespace, nothing, name="everywhere", owns=[ConfigMap], clusters="all"))
manager.add(Controller(Deployment, nothing, name="there", clusters="others"))
seen = Watches(Pod, requests=lambda pod: [], clusters="others")
manager.add(Controller(Service, nothing, name="here", watches=[seen], uses=[Use(ConfigMap, "get")]))
"""
SHARED = {"configmaps", "namespaces", "namespaces/finalizers", "namespaces/status", "events"}
HOME = SHARED | {"services", "services/status"}
SHOP = {"configmaps", "events", "deployments", "deployments/status", "pods"}
OTHERS = SHARED | {"deployments", "deployments/status", "pods"}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "greeter.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return "greeter.py"


def resources(rules: list[dict[str, Any]]) -> set[str]:
    return {name for rule in rules for name in rule["resources"]}


def granted(objs: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Namespace (empty for all) -> the resources of its role."""
    return {obj["metadata"].get("namespace", ""): resources(obj["rules"]) for obj in objs if "rules" in obj}


def test_at_home_there_is_what_runs_there_and_what_finds_the_others(program: str) -> None:
    objs = Installation(operators=[load(program)], namespace="tools").access()
    assert granted(objs) == {"": HOME, "fleet": {"secrets", "events"}, "tools": {"leases"}}
    (fleet,) = (obj["rules"] for obj in objs if "rules" in obj and obj["metadata"].get("namespace") == "fleet")
    verbs = {name: rule["verbs"] for rule in fleet for name in rule["resources"]}
    assert verbs == {"secrets": ["get", "list", "watch"], "events": ["create", "patch"]}


def test_the_chart_grants_the_same(program: str) -> None:
    made = chart(load(program), "1.2.3")
    rules = {place: resources(yaml.safe_load(made[f"rules/{place}.yaml"])) for place in ("cluster", "namespaced")}
    assert rules["cluster"] | rules["namespaced"] == HOME
    declared = yaml.safe_load(made["rules/declared.yaml"])
    assert {space: resources(granted) for space, granted in declared.items()} == {"fleet": {"secrets", "events"}}


def test_the_other_clusters_have_roles_of_their_own(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rbac", program, "--other-clusters"]) == 0
    objs = list(yaml.safe_load_all(capsys.readouterr().out))
    assert granted(objs) == {"": OTHERS}
    assert objs[0]["kind"] == "ServiceAccount"
    verbs = {name: rule["verbs"] for rule in objs[1]["rules"] for name in rule["resources"]}
    assert (verbs["pods"], verbs["deployments"]) == (["get", "list", "watch"], ["get", "list", "watch"])
    assert main(["rbac", program, "--other-clusters", "--watch-namespace", "shop"]) == 0
    objs = list(yaml.safe_load_all(capsys.readouterr().out))
    assert granted(objs) == {"": OTHERS - SHOP, "shop": SHOP}


@pytest.mark.virtual
async def test_with_these_roles_it_starts_and_the_doctor_is_content(program: str) -> None:
    operator = load(program)
    async with Cluster() as cluster:
        admin = cluster.client
        for name in ("tools", "fleet"):
            await admin.create(Namespace(metadata=ObjectMeta(name=name)))
        for obj in Installation(operators=[operator], namespace="tools").access():
            await admin.apply(obj, field_manager="test")
        accounts = Resource("", "v1", "ServiceAccount", "serviceaccounts")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = await admin.create_sub(accounts, "greeter-operator", "token", request, "tools")
        async with Client(cluster.server.transport, credentials=Static.bearer(token["status"]["token"])) as client:
            assert operator.manager is not None
            async with operator.manager.bound_to(client).running() as running:
                await cluster.settle()
                assert running.fleet is not None
                assert running.fleet.remarks() == ""
            assert (await _permissions(client, operator, "tools"))[0] == "ok"
            await admin.delete(Role.resource, "greeter-operator", "fleet")
            verdict, text = await _permissions(client, operator, "tools")
            assert verdict == "fail"
            assert "secrets in namespace fleet" in text
            with pytest.raises(MissingPermissions, match="list secrets in namespace fleet"):
                async with operator.manager.bound_to(client).running():
                    pass
