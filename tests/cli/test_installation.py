"""What the commands print is what a cluster accepts, and what an operator needs: no more and no less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.apiserver import ApiServer
from konverge.cli.install_objects import install_definitions
from konverge.cli.main import main, parser
from konverge.cli.run import make_manager
from konverge.client import Client, Forbidden, Static
from konverge.objects import ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Event, Namespace, Secret
from konverge.objects.resource import Resource
from konverge.operators.catalog import find
from konverge.operators.webapp import WebApp, WebAppSpec
from konverge.runtime.config import Configuration
from konverge.sim.cluster import Cluster


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(arguments) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def kinds(objects: list[dict[str, Any]]) -> list[str]:
    return [obj["kind"] for obj in objects]


def test_the_definition_is_that_of_the_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "crd", "webapp") == find("webapp").definitions()
    assert main(["crd", "webapp", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == find("webapp").definitions()


def test_roles_grant_what_the_code_declares(capsys: pytest.CaptureFixture[str]) -> None:
    account, cluster, cluster_binding, local, _ = printed(capsys, "rbac", "webapp", "--namespace", "tools")
    assert account["metadata"]["namespace"] == "tools"
    granted = {(rule["apiGroups"][0], name): rule["verbs"] for rule in cluster["rules"] for name in rule["resources"]}
    assert granted == {
        ("", "events"): ["create", "patch"],
        ("", "services"): ["create", "delete", "get", "list", "patch", "watch"],
        ("apps", "deployments"): ["create", "delete", "get", "list", "patch", "watch"],
        ("apps.konverge.dev", "webapps"): ["get", "list", "patch", "watch"],
        ("apps.konverge.dev", "webapps/finalizers"): ["update"],
        ("apps.konverge.dev", "webapps/status"): ["patch"],
    }
    assert cluster_binding["subjects"] == [{"kind": "ServiceAccount", "name": "webapp-operator", "namespace": "tools"}]
    assert local["metadata"]["namespace"] == "tools"
    assert [rule["resources"] for rule in local["rules"]] == [["leases"]]


def test_who_looks_at_one_namespace_needs_no_role_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    objects = printed(capsys, "rbac", "webapp", "--watch-namespace", "shop")
    assert kinds(objects) == ["ServiceAccount", "Role", "RoleBinding", "Role", "RoleBinding"]
    assert {obj["metadata"]["namespace"] for obj in objects} == {"konverge-system", "shop"}


def test_manifests_are_everything_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    objects = printed(
        capsys, "manifests", "webapp", "--image", "example.com/k:1", "--replicas", "3", "--service-monitor"
    )
    assert kinds(objects) == [
        "CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
        "RoleBinding", "Deployment", "Service", "PodDisruptionBudget", "ServiceMonitor",
    ]  # fmt: skip
    deployment = next(obj for obj in objects if obj["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert (deployment["spec"]["replicas"], container["image"]) == (3, "example.com/k:1")
    parsed = parser().parse_args(container["args"])
    assert (parsed.operators, parsed.leader_elect, parsed.metrics_bind_address) == (["webapp"], True, ("0.0.0.0", 8080))


@pytest.mark.virtual
async def test_the_pod_of_the_manifests_is_let_in_and_comes_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The namespace enforces the strictest Pod Security there is."""
    objects = printed(capsys, "manifests", "webapp")
    async with Cluster() as cluster:
        for obj in objects:
            await cluster.client.apply(obj, field_manager="test")
        await cluster.settle()
        deployment = await cluster.client.get(Deployment, "webapp-operator", "konverge-system")
        assert deployment.status.ready_replicas == 2


@pytest.mark.virtual
@pytest.mark.parametrize("watched", ["", "shop"])
async def test_with_just_these_roles_the_operator_works(watched: str, capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--watch-namespace", watched] if watched else []
    arguments = parser().parse_args(["run", "webapp", *only, "--leader-election-namespace", "konverge-system"])
    arguments.metrics_bind_address = arguments.health_probe_bind_address = None  # in virtual time there are no sockets
    async with Cluster() as cluster:
        admin = cluster.client
        await install_definitions(admin, [find("webapp")])
        for name in ("konverge-system", "shop"):
            await admin.create(Namespace(metadata=ObjectMeta(name=name)))
        for obj in printed(capsys, "rbac", "webapp", *only):
            await admin.apply(obj, field_manager="test")
        async with await as_account(cluster.server, admin) as client:
            manager = make_manager(arguments, [find("webapp")], Configuration(), client, "default")
            async with manager.running():
                metadata = ObjectMeta(name="web", namespace="shop")
                await admin.create(WebApp(metadata=metadata, spec=WebAppSpec(image="nginx:1", replicas=1)))
                await cluster.settle()
                assert (await admin.get(WebApp, "web", "shop")).status.phase == "Running"
                assert len(await admin.list(Event, "shop", field_selector="involvedObject.kind=WebApp")) == 3
                await admin.delete(WebApp, "web", "shop")
                await cluster.settle()
                assert not await admin.list(WebApp)
                assert manager.engines["webapp"].numbers.errors == 0
            with pytest.raises(Forbidden):
                await client.list(Secret, "shop")


async def as_account(server: ApiServer, admin: Client) -> Client:
    """A client with the token of the operator's service account."""
    accounts = Resource("", "v1", "ServiceAccount", "serviceaccounts")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = await admin.create_sub(accounts, "webapp-operator", "token", request, "konverge-system")
    return Client(server.transport, credentials=Static.bearer(token["status"]["token"]))


@pytest.mark.spec("R-82")
def test_a_sharded_operator_gets_its_replicas_and_may_keep_the_leases_of_its_group(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "sharded.py"
    program.write_text(
        "from konverge import Controller, Manager, Sharding\n"
        "from konverge.objects.kinds.core_v1 import ConfigMap\n"
        "async def nothing(ctx): ...\n"
        "sharding = Sharding(name='shop', replicas=5)\n"
        "manager = Manager(name='shop', sharding=sharding).add(Controller(ConfigMap, nothing))\n"
    )
    objects = printed(capsys, "manifests", str(program), "--namespace", "tools")
    assert next(obj for obj in objects if obj["kind"] == "Deployment")["spec"]["replicas"] == 5
    leases = [
        rule for obj in objects if obj["kind"] == "Role" for rule in obj["rules"] if "leases" in rule["resources"]
    ]
    assert [rule["verbs"] for rule in leases] == [["create", "delete", "get", "list", "update", "watch"]]
    fewer = printed(capsys, "manifests", str(program), "--replicas", "3")
    assert next(obj for obj in fewer if obj["kind"] == "Deployment")["spec"]["replicas"] == 3
